/* SPDX-License-Identifier: Apache-2.0 */
/** record.h - `kolo plugin record FILE`: run a command with a net plugin whose calls are recorded (examples/plugins/net/record.c). */
#ifndef KOLO_TOOL_PLUGIN_RECORD_H
#define KOLO_TOOL_PLUGIN_RECORD_H

/**
 * `to`: the files of calls are TO.PID. `command` ends with NULL; empty: print the variables that record, for a program of any library with
 * NCCL's plugins. Returns the exit code, or does not, as the command takes the place of this process.
 */
int kl_plugin_record(const char *file, const char *to, char **command);

#endif
