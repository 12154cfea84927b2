/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration between `<<<...>>>` and the call of the kernel; the arguments may launch other kernels. */
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

#include <string.h>

/* Few: a program that loads the library while it runs has little room for variables of threads at fixed places. */
enum { DEPTH = 8 };

struct configuration {
    struct kl_engine_dim grid, block;
    size_t shared_bytes;
    void *stream;
};

KL_ENGINE_EXPORT __thread int __koloPending;
static __thread struct configuration pending[DEPTH];

/* The runtime's: a dim3 has this layout. */
extern int cudaLaunchKernel(const void *function, struct kl_engine_dim grid, struct kl_engine_dim block,
                            void **arguments, size_t shared_bytes, void *stream);

int __koloPushLaunch(struct kl_engine_dim grid, struct kl_engine_dim block, size_t shared_bytes, void *stream)
{
    if (__koloPending == DEPTH) { /* left by exceptions in arguments */
        memmove(pending, pending + 1, sizeof pending - sizeof pending[0]);
        __koloPending--;
    }
    pending[__koloPending++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

int kl_engine_pop_launch(struct kl_engine_dim *grid, struct kl_engine_dim *block, size_t *shared_bytes, void **stream)
{
    if (!__koloPending) return 0;
    *grid = pending[--__koloPending].grid;
    *block = pending[__koloPending].block;
    *shared_bytes = pending[__koloPending].shared_bytes;
    *stream = pending[__koloPending].stream;
    return 1;
}

void __koloLaunch(const void *host_function, void **arguments)
{
    struct configuration c = pending[--__koloPending];

    (void)cudaLaunchKernel(host_function, c.grid, c.block, arguments, c.shared_bytes,
                           c.stream); /* kept as the thread's last error */
}
