/* SPDX-License-Identifier: Apache-2.0 */
/** settings.h - settings that cost bandwidth, or explain what a log shows. Threads: const. */
#ifndef KL_LOGS_SETTINGS_H
#define KL_LOGS_SETTINGS_H

#include "logs/causes.h"

/** The row for a setting with this value; -1: it explains nothing. `weight` receives what it means. */
int kl_log_setting_find(const char *name, const char *value, enum kl_log_weight *weight);

/** What it does, a sentence without its full stop. */
const char *kl_log_setting_text(int row);

#endif
