/* SPDX-License-Identifier: Apache-2.0 */
/**
 * plugin.h - shared libraries of plugins, found by NCCL's rules.
 *
 * A given name is first tried as it is. If there is no such file, and the name is neither a path nor "lib....so", the library is
 * libnccl-KIND-NAME.so. Without a name it is libnccl-KIND.so. "STATIC_PLUGIN" is the program itself, "none" is nothing.
 *
 * Log:     each attempt is a line of level INFO with the reason of a refusal; a name of the user that leads nowhere is a warning.
 * Threads: any. Opening may run constructors of the library.
 */
#ifndef KL_OS_PLUGIN_H
#define KL_OS_PLUGIN_H

#include <stdbool.h>

enum { KL_PLUGIN_FILE = 255 }; /* bytes of a name; longer ones are refused */

/** Is `name` "none", that is, wants the user no plugin? */
bool kl_plugin_is_none(const char *name);

/**
 * The library of `kind` ("net", "tuner", ...), or NULL. `name` "": the default. `file` is the name of the opened file. The caller closes it
 * with kl_plugin_close.
 */
void *kl_plugin_open(const char *kind, const char *name, char file[KL_PLUGIN_FILE]);
void kl_plugin_close(void *library);

/** The newest symbol PREFIX<version> from `newest` down to `oldest`, and its version; NULL: none, which is logged with `file`. */
const void *kl_plugin_symbol(void *library, const char *file, const char *prefix, int newest, int oldest, int *version);

/** Is `text` readable, printable and at most `most` bytes long? A table of another layout has something else where the name is. */
bool kl_plugin_is_text(const char *text, int most);

#endif
