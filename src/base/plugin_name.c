/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plugin_name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool kl_plugin_is_none(const char *name)
{
    return !strcasecmp(name, "none");
}

static bool is_file_name(const char *name)
{
    const size_t n = strlen(name);

    return strchr(name, '/') || (!strncmp(name, "lib", 3) && n > 6 && !strcmp(name + n - 3, ".so"));
}

int kl_plugin_files(const char *kind, const char *name, char file[KL_PLUGIN_FILES][KL_PLUGIN_FILE])
{
    if (kl_plugin_is_none(name) || strlen(name) >= KL_PLUGIN_FILE) return 0;
    if (!*name)
        snprintf(file[0], KL_PLUGIN_FILE, "libnccl-%s.so", kind);
    else
        snprintf(file[0], KL_PLUGIN_FILE, "%s", strcmp(name, "STATIC_PLUGIN") != 0 ? name : "");
    if (!*name || !*file[0] || is_file_name(name)) return 1;
    snprintf(file[1], KL_PLUGIN_FILE, "libnccl-%s-%.200s.so", kind, name);
    return KL_PLUGIN_FILES;
}
