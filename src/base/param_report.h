/* SPDX-License-Identifier: Apache-2.0 */
/**
 * param_report.h - tell the user what became of what was set.
 *
 * Communicators come and go, each loading its parameters, so every function here says a thing once per process, and
 * again only when it has changed. What the log would not show is not counted as said.
 *
 * Threads: any. Two threads that report the same thing at the same moment may both print it.
 */
#ifndef KL_BASE_PARAM_REPORT_H
#define KL_BASE_PARAM_REPORT_H

#include "base/param.h"

/** A row was loaded: log the setting in force, or warn that it was refused and the default kept. */
void kl_param_report(const struct kl_param *param, enum kl_param_state state, const struct kl_setting *setting);

/** Warn about files that cannot be read and about lines that were left out. */
void kl_param_report_files(const struct kl_settings *settings);

/** Warn about a NCCL_* or KOLO_* that means nothing. `nearest` is a name that may have been meant, or NULL. */
void kl_param_report_unknown(const struct kl_setting *setting, const char *nearest);

#endif
