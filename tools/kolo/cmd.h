/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cmd.h - the commands of the kolo tool; each stands in its own file cmd_<name>.c.
 *
 * A command gets its own name as argv[0], prints results on stdout and diagnostics on stderr, and returns an exit code.
 */
#ifndef KOLO_TOOL_CMD_H
#define KOLO_TOOL_CMD_H

enum { EXIT_OK = 0, EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

int cmd_env(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_graph(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_perf_rank(int argc, char **argv); /* started by `kolo perf`; internal */
int cmd_ras(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_plugin(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_tune(int argc, char **argv);

#endif
