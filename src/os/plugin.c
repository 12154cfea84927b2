/* SPDX-License-Identifier: Apache-2.0 */
#include "os/plugin.h"

#include "base/log.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <unistd.h>

bool kl_plugin_is_none(const char *name)
{
    return !strcasecmp(name, "none");
}

/* ---- libraries ---- */

static void *try_file(const char *kind, const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        KL_INFO(KL_INIT | KL_NET, "%s plugin: looked for %s, not taken: %s", kind, file ? file : "the program",
                dlerror());
    return library;
}

static bool is_file_name(const char *name)
{
    const size_t n = strlen(name);

    return strchr(name, '/') || (!strncmp(name, "lib", 3) && n > 6 && !strcmp(name + n - 3, ".so"));
}

static void *open_named(const char *kind, const char *name, char file[KL_PLUGIN_FILE])
{
    void *library;

    snprintf(file, KL_PLUGIN_FILE, "%s", name);
    library = try_file(kind, file);
    if (!library && !is_file_name(name)) {
        snprintf(file, KL_PLUGIN_FILE, "libnccl-%s-%.200s.so", kind, name);
        library = try_file(kind, file);
    }
    if (!library)
        KL_WARN(
            "%s plugin \"%s\" could not be loaded, and is not used; NCCL_DEBUG=INFO lists the files that were tried",
            kind, name);
    return library;
}

void *kl_plugin_open(const char *kind, const char *name, char file[KL_PLUGIN_FILE])
{
    *file = 0;
    if (strlen(name) >= KL_PLUGIN_FILE) {
        KL_WARN("%s plugin: a name of %zu characters is too long, and is not used", kind, strlen(name));
        return NULL;
    }
    if (kl_plugin_is_none(name)) return NULL;
    if (!strcmp(name, "STATIC_PLUGIN")) {
        snprintf(file, KL_PLUGIN_FILE, "STATIC_PLUGIN");
        return try_file(kind, NULL);
    }
    if (*name) return open_named(kind, name, file);
    snprintf(file, KL_PLUGIN_FILE, "libnccl-%s.so", kind);
    return try_file(kind, file);
}

void kl_plugin_close(void *library)
{
    if (library) dlclose(library);
}

/* ---- symbols ---- */

const void *kl_plugin_symbol(void *library, const char *file, const char *prefix, int newest, int oldest, int *version)
{
    char name[64];

    for (int v = newest; v >= oldest; v--) {
        snprintf(name, sizeof name, "%s%d", prefix, v);
        const void *symbol = dlsym(library, name);
        if (!symbol) continue;
        *version = v;
        return symbol;
    }
    KL_INFO(KL_INIT | KL_NET, "%s: looked for the symbols %s%d to %s%d, and found none", file, prefix, newest, prefix,
            oldest);
    return NULL;
}

/* Read through the kernel, which refuses addresses that are none. */
static bool read_byte(const char *from, char *byte)
{
    const struct iovec to = {.iov_base = byte, .iov_len = 1}, at = {.iov_base = (void *)(uintptr_t)from, .iov_len = 1};

    return process_vm_readv(getpid(), &to, 1, &at, 1, 0) == 1;
}

bool kl_plugin_is_text(const char *text, int most)
{
    char byte = 0;

    for (int i = 0; text && i <= most; i++) {
        if (!read_byte(text + i, &byte)) return false;
        if (!byte) return i > 0;
        if (!isprint((unsigned char)byte)) return false;
    }
    return false;
}
