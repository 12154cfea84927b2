/* SPDX-License-Identifier: Apache-2.0 */
/** env_plugin_log.c - apart from env_plugin.c, as the log reads its settings through that. */
#include "base/env_plugin.h"

#include "base/atomic.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { NOTES = 2048 };

static void log_line(const char *text)
{
    KL_INFO(KL_ENV, "ENV/Plugin: %s", text);
}

void kl_env_plugin_log(void)
{
    static _Atomic int logged;
    bool is_problem;
    const char *notes = kl_env_plugin_notes(&is_problem);
    char *rest = NULL, lines[NOTES];

    if (kl_swap_acq_rel(&logged, 1)) return;
    kl_env_plugin_log_to(log_line);
    snprintf(lines, sizeof lines, "%s", notes);
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        KL_INFO(KL_INIT | KL_ENV, "%s", line);
    if (is_problem) KL_WARN("the plugin of NCCL_ENV_PLUGIN is not used; NCCL_DEBUG=INFO lists the reasons");
}
