/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_config.h"

const char *const kl_log_level_name[] = {"NONE", "VERSION", "WARN", "ATTN", "INFO", "ABORT", "TRACE", NULL};

/* In the order of enum kl_log_subsys; the last two are accepted because NCCL 2.30 has them. */
static const char *const subsystems[] = {"INIT",    "COLL",  "P2P",     "SHM",        "NET",  "GRAPH",     "TUNING",
                                         "ENV",     "ALLOC", "CALL",    "PROXY",      "NVLS", "BOOTSTRAP", "REG",
                                         "PROFILE", "RAS",   "DESTROY", "ALLOC_HOST", NULL};

static const struct kl_param rows[] = {
    KL_PARAM_ENUM(struct kl_log_config, level, "NCCL_DEBUG", KL_OWN, "NONE", kl_log_level_name,
                  "how much is logged; each level includes those before it"),
    KL_PARAM_LIST(struct kl_log_config, subsys, "NCCL_DEBUG_SUBSYS", KL_OWN, "INIT,BOOTSTRAP,ENV", subsystems,
                  "which subsystems log at level INFO and above"),
    KL_PARAM_STRING(
        struct kl_log_config, file, "NCCL_DEBUG_FILE", KL_OWN, "",
        "file for the log instead of standard output; %h stands for the host, %p for the process, %% for %"),
    KL_PARAM_LIST(struct kl_log_config, timestamp_levels, "NCCL_DEBUG_TIMESTAMP_LEVELS", KL_OWN, "WARN",
                  kl_log_level_name, "levels whose lines begin with the time"),
    KL_PARAM_STRING(struct kl_log_config, timestamp_format, "NCCL_DEBUG_TIMESTAMP_FORMAT", KL_OWN, "[%F %T] ",
                    "time format of strftime(3); %1f to %9f are digits of the second, _ is a blank"),
    KL_PARAM_BOOL(struct kl_log_config, warn_enables_info, "NCCL_WARN_ENABLE_DEBUG_INFO", KL_OWN, "0",
                  "raise the level to INFO when the first warning is logged"),
};

const struct kl_param_set kl_log_param_set = KL_PARAM_SET("log", struct kl_log_config, rows);
