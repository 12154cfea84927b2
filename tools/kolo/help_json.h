/* SPDX-License-Identifier: Apache-2.0 */
/** help_json.h - all commands and their options as JSON, for man pages and completion (tools/manual). */
#ifndef KOLO_TOOL_HELP_JSON_H
#define KOLO_TOOL_HELP_JSON_H

#include "include/nccl.h"
#include "tools/kolo/cmd.h"

/**
 * Print {"commands": [...]}. A command: name, summary, about (help text before the options), options, notes (help text
 * behind them), operands (words that may stand first; absent: any). An option: letter and name (either may be absent),
 * value (none, optional, or its kind), argument (the value's name), doc, repeats. `commands` ends with NULL.
 */
ncclResult_t kl_help_json(const struct kl_command *const *commands, FILE *to);

#endif
