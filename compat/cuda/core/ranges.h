/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ranges.h - the memory ranges of the stand-in, found by any address within them.
 *
 * Ranges do not overlap.
 * Threads: any.
 */
#ifndef KL_CUDA_RANGES_H
#define KL_CUDA_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kl_cuda_memory {
    KL_CUDA_MEMORY_DEVICE,     /* cudaMalloc */
    KL_CUDA_MEMORY_MANAGED,    /* cudaMallocManaged */
    KL_CUDA_MEMORY_PINNED,     /* cudaMallocHost, cudaHostAlloc */
    KL_CUDA_MEMORY_REGISTERED, /* cudaHostRegister */
    KL_CUDA_MEMORY_POOL,       /* cudaMallocAsync */
    KL_CUDA_MEMORY_IMPORTED,   /* another process's */
    KL_CUDA_MEMORY_MAPPED,     /* cuMemMap */
    KL_CUDA_MEMORY_MULTICAST   /* the same, of a multicast object: addresses without memory */
};

struct kl_cuda_range {
    char *base;
    size_t bytes; /* the requested size */
    enum kl_cuda_memory kind;
    int device;     /* visible device; for host memory the current one at allocation */
    unsigned flags; /* flags of the allocation */
    uint64_t id;    /* unique among the ranges of the process */
    void *owner;    /* the creator's object */
};

/** Add a range; its id is set. False: memory is short, or it overlaps another one. */
bool kl_cuda_ranges_add(struct kl_cuda_range *range);

/** The range that an address is in. */
bool kl_cuda_ranges_find(const void *address, struct kl_cuda_range *range);

/** Does any range overlap these bytes? */
bool kl_cuda_ranges_overlap(const void *address, size_t bytes);

/** Remove the range that begins here, if its kind is in `kinds` (a bit for each). */
bool kl_cuda_ranges_remove(const void *base, unsigned kinds, struct kl_cuda_range *range);

/** The first range behind `after` (NULL: the first of all). */
bool kl_cuda_ranges_next(const void *after, struct kl_cuda_range *range);

#endif
