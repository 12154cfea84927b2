/* SPDX-License-Identifier: Apache-2.0 */
/**
 * replay.h - `kolo plugin replay FILE...`: recorded calls of a net plugin (recorded.h), summed up, or made again.
 *
 * Made again: all files together in this process, each in its order, in turn. Calls whose result was "not yet" are left out; the
 * others are repeated until they have a result. Only the sizes of data come from the record.
 */
#ifndef KOLO_TOOL_PLUGIN_REPLAY_H
#define KOLO_TOOL_PLUGIN_REPLAY_H

#include "tools/kolo/plugin/recorded.h"

/** Print for each file the times of each kind of call, "not yet", failures, and calls that have not returned. Returns the exit code. */
int kl_plugin_summary(const struct kl_recorded *recorded, int n);

/** Make the calls again, of the plugin in `net`; without progress for `seconds` it fails, and names the call of each file. */
int kl_plugin_replay(const struct kl_recorded *recorded, int n, const char *net, int seconds);

#endif
