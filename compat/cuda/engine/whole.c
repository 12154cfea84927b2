/* SPDX-License-Identifier: Apache-2.0 */
/** whole.c - kernels that run all threads of a block as loops, and the memory for variables that they keep between these. */
#include "compat/cuda/engine/worker.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

#include <sys/mman.h>

/* Mapped, and filled as far as it is used: 64 KiB for each thread, as much as the smallest stack. */
enum { LINE = 64 };
static const size_t room = (size_t)KL_BLOCK_THREADS << 16;

void __koloWholeBlock(void)
{
    if (kl_worker_here) kl_block_take_all(kl_worker_here);
}

void *__koloKeep(size_t bytes)
{
    struct kl_worker *w = kl_worker_here;
    size_t begin;

    bytes = (bytes + LINE - 1) / LINE * LINE;
    if (!w->kept) {
        void *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        w->kept = map == MAP_FAILED ? NULL : map;
    }
    if (!w->kept || bytes > room - w->kept_bytes)
        __koloTrap("no memory for the variables of its threads: with kolo-nvcc --barriers=fibres they lie on stacks");
    begin = w->kept_bytes;
    w->kept_bytes += bytes;
    return w->kept + begin;
}

void __koloDrop(void *kept)
{
    struct kl_worker *w = kl_worker_here;

    w->kept_bytes = (size_t)((char *)kept - w->kept);
}
