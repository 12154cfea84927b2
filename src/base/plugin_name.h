/* SPDX-License-Identifier: Apache-2.0 */
/** plugin_name.h - the files in which a plugin is looked for, by NCCL's rules (docs/plugins.md). Pure. */
#ifndef KL_BASE_PLUGIN_NAME_H
#define KL_BASE_PLUGIN_NAME_H

#include <stdbool.h>

enum { KL_PLUGIN_FILE = 255, KL_PLUGIN_FILES = 2 }; /* bytes of a name; longer ones are refused */

/** Does `name` say that the user wants no plugin? */
bool kl_plugin_is_none(const char *name);

/**
 * The files to open for `name` ("": the default of the kind), in this order, and their number. An empty file is the program
 * itself. 0: no plugin is wanted, or the name is too long.
 */
int kl_plugin_files(const char *kind, const char *name, char file[KL_PLUGIN_FILES][KL_PLUGIN_FILE]);

#endif
