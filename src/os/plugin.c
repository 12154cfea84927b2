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

/* ---- libraries ---- */

static void *try_file(const char *kind, const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        KL_INFO(KL_INIT | KL_NET, "%s plugin: looked for %s, not taken: %s", kind, file ? file : "the program",
                dlerror());
    return library;
}

void *kl_plugin_open(const char *kind, const char *name, char file[KL_PLUGIN_FILE])
{
    char files[KL_PLUGIN_FILES][KL_PLUGIN_FILE];
    const int n = kl_plugin_files(kind, name, files);
    void *library = NULL;

    *file = 0;
    for (int i = 0; i < n && !library; i++) {
        snprintf(file, KL_PLUGIN_FILE, "%s", *files[i] ? files[i] : "STATIC_PLUGIN");
        library = try_file(kind, *files[i] ? file : NULL);
    }
    if (!library && *name && !kl_plugin_is_none(name))
        KL_WARN("%s plugin \"%.*s\" could not be loaded, and is not used; NCCL_DEBUG=INFO lists the files that were "
                "tried",
                kind, KL_PLUGIN_FILE, name);
    return library;
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
