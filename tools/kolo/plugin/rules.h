/* SPDX-License-Identifier: Apache-2.0 */
/** rules.h - `kolo plugin rules FILE`: a tuner's rules (graph/tuner_rules.h), looked at for mistakes, and written in either form. */
#ifndef KOLO_TOOL_PLUGIN_RULES_H
#define KOLO_TOOL_PLUGIN_RULES_H

/** `form`: "csv", "json", or NULL: only look. Mistakes and overlaps are printed to stderr. Returns the exit code: a mistake is a problem. */
int kl_plugin_rules(const char *file, const char *form);

#endif
