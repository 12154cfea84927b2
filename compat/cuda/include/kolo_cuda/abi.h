/* SPDX-License-Identifier: Apache-2.0 */
/**
 * abi.h - the C functions of the runtime's library for kernels of kolo-nvcc: the engine implements them, device.h wraps them.
 *
 * All of it is for code that runs inside of a kernel, in one thread of one block. `file` and `line` are where the program calls: they are
 * shown when the threads of a block wait for each other forever. The thread-local variables are read by kernels as constants: they
 * change between the threads of a block only.
 */
#ifndef KOLO_CUDA_ABI_H
#define KOLO_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOLO_CUDA_API __attribute__((visibility("default")))
#define KOLO_CUDA_TLS extern KOLO_CUDA_API __thread __attribute__((tls_model("initial-exec")))

KOLO_CUDA_TLS void *__koloShared; /* dynamic shared memory of the block, aligned to a page */
KOLO_CUDA_TLS int __koloImage;    /* the copies of variables that this thread uses: 0 the host's, 1 + d device d's */
KOLO_CUDA_TLS int __koloPending;  /* launches of this thread that have their configuration and wait for their kernel */
KOLO_CUDA_TLS int __koloPatience; /* polls of other threads' data that are left before it yields */

/* The result of a block's barrier for each of its threads. */
enum { KOLO_BARRIER_PLAIN, KOLO_BARRIER_COUNT, KOLO_BARRIER_AND, KOLO_BARRIER_OR };

/** Wait for the threads of the block that have not returned; `count` threads of them if that is not 0. `id` is 0 to 15. */
KOLO_CUDA_API int __koloBarrier(unsigned id, unsigned count, int kind, int predicate, const char *file, int line);

/** Arrive at such a barrier without waiting. */
KOLO_CUDA_API void __koloBarrierArrive(unsigned id, unsigned count);

/** Wait for `count` threads of a tile that is larger than a warp. Tiles of 64 threads have the barriers from 0, of 128 from 16, of 256 from
 * 24, of 512 from 28. */
enum { KOLO_TILE_BARRIERS = 30 };
KOLO_CUDA_API void __koloTileBarrier(unsigned which, unsigned count, const char *file, int line);

/** Wait for all threads of all blocks of a cooperative launch; anywhere else that is a trap. */
KOLO_CUDA_API void __koloGridBarrier(const char *file, int line);

/** Was the grid launched as a cooperative one? */
KOLO_CUDA_API int __koloCooperative(void);

/** The blocks of a cluster, one in each direction without any; a barrier of all their threads; where the shared memory of the block `rank` is,
 * given the address of one's own; whose an address is. */
KOLO_CUDA_API void __koloClusterDim(unsigned *x, unsigned *y, unsigned *z);
KOLO_CUDA_API void __koloClusterBarrier(const char *file, int line);
KOLO_CUDA_API void *__koloClusterShared(void *own, unsigned rank);
KOLO_CUDA_API unsigned __koloClusterRankOf(const void *address);

/** The kernel that was called runs all threads of its block by itself, as loops: none of them waits. */
KOLO_CUDA_API void __koloWholeBlock(void);

/** Memory for such a kernel, aligned to 64 bytes and given back in reverse order. A trap if there is none. */
KOLO_CUDA_API void *__koloKeep(size_t bytes);
KOLO_CUDA_API void __koloDrop(void *kept);

/* Operations of the lanes of a warp. The value returned, by operation: nothing; the lanes with values other than 0; the value of lane
 * `source`, or the own one if it takes no part; the lanes with the same value; all lanes if all values are equal, else 0; the reduction. */
enum {
    KOLO_WARP_SYNC,
    KOLO_WARP_BALLOT,
    KOLO_WARP_SHUFFLE,
    KOLO_WARP_MATCH_ANY,
    KOLO_WARP_MATCH_ALL,
    KOLO_WARP_ADD,
    KOLO_WARP_MIN,
    KOLO_WARP_MAX,
    KOLO_WARP_MIN_SIGNED,
    KOLO_WARP_MAX_SIGNED,
    KOLO_WARP_AND,
    KOLO_WARP_OR,
    KOLO_WARP_XOR
};

/** Wait for the lanes of `mask` that have not returned, and combine their values. */
KOLO_CUDA_API uint64_t __koloWarp(unsigned mask, int operation, uint64_t value, unsigned source, const char *file,
                                  int line);

/** The lanes of the warp that have come to this place together: when no lane of it can run otherwise, those that ask here. */
KOLO_CUDA_API unsigned __koloActiveMask(const char *file, int line);

/** The copies behind `bytes` of a multicast object: how many, the first one, and the distance to the next. No copies: a trap. */
KOLO_CUDA_API char *__koloMulticast(const void *address, size_t bytes, unsigned *count, size_t *stride);

/** Let other threads run: of this block, of others, of the host. */
KOLO_CUDA_API void __koloYield(void);

/** End the grid: 719, with a sentence; outside of kernels, the process. */
KOLO_CUDA_API void __koloTrap(const char *why) __attribute__((noreturn));

/** End this thread of the kernel. */
KOLO_CUDA_API void __koloExit(void) __attribute__((noreturn));

/** End the grid: 710, with the message of a device's assertion; outside of kernels, assert's own. */
KOLO_CUDA_API void __koloAssert(const char *expression, const char *file, unsigned line, const char *function)
    __attribute__((noreturn));

/** Monotonic: cycles of about 1 ns, and nanoseconds. */
KOLO_CUDA_API uint64_t __koloClock(void);
KOLO_CUDA_API uint64_t __koloNanoseconds(void);

#ifdef __cplusplus
}
#endif

#endif
