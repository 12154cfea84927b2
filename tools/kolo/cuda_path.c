/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cuda_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef KOLO_LIBDIR
#define KOLO_LIBDIR "lib" /* where libraries are installed, from the prefix */
#endif

/* The folder of this program; "" if it is unknown. */
static void own_folder(char folder[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);

    folder[n > 0 ? n : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
}

static bool is_there(const char *root)
{
    char file[PATH_MAX];

    return snprintf(file, sizeof file, "%s/cuda/libcudart.so.13", root) < (int)sizeof file && !access(file, R_OK);
}

/* In a build tree they are below the tool, in an installed one beside its folder. */
static bool find_root(char root[PATH_MAX])
{
    static const char *const places[] = {"lib/kolo", "../" KOLO_LIBDIR "/kolo"};
    char folder[PATH_MAX], path[PATH_MAX];

    own_folder(folder);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, places[i]) < (int)sizeof path && realpath(path, root) &&
            is_there(root))
            return true;
    return false;
}

bool kl_cuda_path_use(char *why, size_t bytes)
{
    const char *before = getenv("LD_LIBRARY_PATH");
    char root[PATH_MAX], *path = NULL;

    if (!find_root(root)) {
        snprintf(why, bytes, "the CUDA stand-in is not installed beside this tool (lib/kolo/cuda)");
        return false;
    }
    bool more = before && *before;
    if (asprintf(&path, "%s/cuda:%s/nccl%s%s", root, root, more ? ":" : "", more ? before : "") < 0) path = NULL;
    bool set = path && !setenv("LD_LIBRARY_PATH", path, 1);
    free(path);
    if (!set) snprintf(why, bytes, "out of memory");
    return set;
}
