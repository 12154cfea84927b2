/* SPDX-License-Identifier: Apache-2.0 */
/** gpu_graphs.h - the functions of CUDA's driver for graphs, which the library does not use, for tests. */
#ifndef KOLO_TEST_GPU_GRAPHS_H
#define KOLO_TEST_GPU_GRAPHS_H

#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu_graphs {
    int (*begin)(kl_cu_stream stream, int mode);
    int (*end)(kl_cu_stream stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, kl_cu_stream stream);
    int (*destroy)(void *executable), (*destroy_graph)(void *graph);
};

static inline void gpu_graphs_find(struct gpu_graphs *g)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
    static const char *const names[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                                        "cuGraphLaunch",           "cuGraphExecDestroy", "cuGraphDestroy"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found = library ? dlsym(library, names[i]) : NULL;
        if (!found) {
            fprintf(stderr, "libcuda.so.1 has no %s\n", names[i]);
            exit(1);
        }
        memcpy((char *)g + i * sizeof found, &found, sizeof found);
    }
}

/** End a capture, as something that can be launched; NULL: it failed. */
static inline void *gpu_graphs_finish(const struct gpu_graphs *g, kl_cu_stream stream)
{
    void *graph = NULL, *executable = NULL;

    if (g->end(stream, &graph) || g->instantiate(&executable, graph, 0)) return NULL;
    (void)g->destroy_graph(graph);
    return executable;
}

#endif
