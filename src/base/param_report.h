/* SPDX-License-Identifier: Apache-2.0 */
/**
 * param_report.h - report how each setting was used.
 *
 * Communicators come and go, each loading its parameters, so every function here prints a message once per process, and
 * again only when it has changed. A message that the log filtered out does not count as printed.
 *
 * Threads: any. Two threads that report the same thing at the same moment may both print it.
 */
#ifndef KL_BASE_PARAM_REPORT_H
#define KL_BASE_PARAM_REPORT_H

#include "base/param.h"

/** A row was loaded: log the setting in force, or warn that it was refused and the default kept. */
void kl_param_report(const struct kl_param *param, enum kl_param_state state, const struct kl_setting *setting);

/** Warn about files that cannot be read and about lines that were ignored. */
void kl_param_report_files(const struct kl_settings *settings);

/** Warn about an unknown NCCL_* or KOLO_* variable. `nearest` is a name that may have been meant, or NULL. */
void kl_param_report_unknown(const struct kl_setting *setting, const char *nearest);

#endif
