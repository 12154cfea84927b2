/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cmd.h - the commands of the kolo tool; each stands in its own file cmd_<name>.c.
 *
 * A command gets its own name as argv[0], prints results on stdout and diagnostics on stderr, and returns an exit code.
 */
#ifndef KOLO_TOOL_CMD_H
#define KOLO_TOOL_CMD_H

#include "tools/kolo/options.h"

enum { EXIT_OK = 0, EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

/** Man pages and completion are made of these rows (help_json.h). */
struct kl_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;          /* NULL: internal, shown nowhere; it has none of the following */
    void (*print_help)(FILE *to); /* usage, description, options as kl_opts_help prints them, notes */
    const struct kl_opt *options;
    /* The i-th of the words that may stand first, NULL behind the last. NULL: any word may. */
    const char *(*operand)(int i);
};

extern const struct kl_command kl_command_env;
extern const struct kl_command kl_command_explain;
extern const struct kl_command kl_command_graph;
extern const struct kl_command kl_command_perf;
extern const struct kl_command kl_command_perf_rank;
extern const struct kl_command kl_command_plugin;
extern const struct kl_command kl_command_ras;
extern const struct kl_command kl_command_run;
extern const struct kl_command kl_command_topo;
extern const struct kl_command kl_command_trace;
extern const struct kl_command kl_command_tune;

#endif
