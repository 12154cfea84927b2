/* SPDX-License-Identifier: Apache-2.0 */
/** log_config.h - the parameters of the log: NCCL_DEBUG and the NCCL_DEBUG_* variables. */
#ifndef KL_BASE_LOG_CONFIG_H
#define KL_BASE_LOG_CONFIG_H

#include "base/param.h"

struct kl_log_config {
    int level;                 /* enum kl_log_level */
    uint32_t subsys;           /* enum kl_log_subsys, and bits of subsystems that only a later NCCL has */
    uint32_t timestamp_levels; /* a bit per enum kl_log_level */
    bool warn_enables_info;
    char file[KL_PARAM_TEXT];
    char timestamp_format[256];
};

extern const struct kl_param_set kl_log_param_set;

/** By enum kl_log_level, as NCCL_DEBUG has them; ends with NULL. */
extern const char *const kl_log_level_name[];

#endif
