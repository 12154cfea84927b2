/* SPDX-License-Identifier: Apache-2.0 */
/**
 * env_plugin.h - an environment plugin by NCCL's ABI (ncclEnvPlugin_v2, v1): it stands in place of the process's environment.
 *
 * NCCL_ENV_PLUGIN, of the environment itself, names it by the rules of plugin_name.h. A variable for which the plugin returns
 * NULL is unset, so that files count. It is loaded before the first setting is read, thus nothing is logged then: notes are
 * kept for kl_env_plugin_log. It is finalized when the process ends.
 *
 * Threads: kl_env_plugin_open once; the others any: the plugin is called by one thread at a time.
 * Source:  the specification of plugins, A11.
 */
#ifndef KL_BASE_ENV_PLUGIN_H
#define KL_BASE_ENV_PLUGIN_H

#include <stdbool.h>

/** Load it, unless there is none. False: the environment counts. */
bool kl_env_plugin_open(void);

/** The plugin's text of a variable; NULL: unset. It stays valid as long as the process lives. */
const char *kl_env_plugin_get(const char *name);

/** "env plugin NAME"; constant. */
const char *kl_env_plugin_origin(void);

/** Lines about the plugin that is used, or the reasons why none is; constant. *is_problem: one that was asked for is not used. */
const char *kl_env_plugin_notes(bool *is_problem);

/** From now on the plugin's own lines go here. */
void kl_env_plugin_log_to(void (*log)(const char *text));

/** Log, once in a process, the plugin that is used, or the reason why the one asked for is not. */
void kl_env_plugin_log(void);

#endif
