/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/places.h"
#include "compat/cuda/nvcc/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef KOLO_LIBDIR
#define KOLO_LIBDIR "lib"
#endif

/* `pattern` below the folder of the program, made plain; NULL if `file` is not in it. */
static char *below(const char *folder, const char *pattern, const char *file)
{
    char *path = must_print("%s/%s", folder, pattern), *probe = must_print("%s/%s", path, file), *real = NULL;

    if (access(probe, R_OK) == 0) real = realpath(path, NULL);
    free(path);
    free(probe);
    return real;
}

static char *first_below(const char *folder, const char *const *patterns, const char *file)
{
    char *found = NULL;

    for (; *patterns && !found; patterns++) found = below(folder, *patterns, file);
    return found;
}

bool places_find(struct places *p)
{
    static const char *const cuda[] = {("../" KOLO_LIBDIR "/kolo/cuda"), "../lib/kolo/cuda", "lib/kolo/cuda", "..",
                                       NULL};
    static const char *const nccl[] = {("../" KOLO_LIBDIR "/kolo/nccl"), "../lib/kolo/nccl", "lib/kolo/nccl", NULL};
    static const char *const include[] = {"../include/kolo", "include", NULL};
    static const char *const cccl[] = {"usr/local/cuda/include/cccl", "opt/cuda/include/cccl", NULL};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    *p = (struct places){0};
    self[n > 0 ? n : 0] = 0;
    slash = strrchr(self, '/');
    if (slash) *slash = 0;
    p->cuda = first_below(self, cuda, "include/kolo_cuda/device.h");
    p->libraries = p->cuda ? below(p->cuda, "lib64", "libcudart.so") : NULL;
    if (p->cuda && !p->libraries) p->libraries = must_print("%s", p->cuda);
    p->nccl = first_below(self, nccl, "libnccl.so");
    p->nccl_include = first_below(self, include, "nccl.h");
    if (p->cuda) p->cccl = below(p->cuda, "include/cccl", "cub/cub.cuh");
    if (!p->cccl) p->cccl = first_below("/", cccl, "cub/cub.cuh");
    if (p->cuda) return true;
    fprintf(stderr, "kolo-nvcc: no headers for kernels near %s; it must stay in the folder that it was installed in\n",
            self);
    return false;
}

void places_drop(struct places *p)
{
    free(p->cuda);
    free(p->libraries);
    free(p->nccl);
    free(p->nccl_include);
    free(p->cccl);
}
