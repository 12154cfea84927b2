/* SPDX-License-Identifier: Apache-2.0 */
/** pool_blocks.h - internals of pools, for their own files. One lock protects all of it. */
#ifndef KL_CUDA_POOL_BLOCKS_H
#define KL_CUDA_POOL_BLOCKS_H

#include "compat/cuda/core/book.h"
#include "compat/cuda/core/state.h"
#include "compat/cuda/core/window.h"

enum kl_cuda_block_state {
    KL_CUDA_BLOCK_GIVEN,
    KL_CUDA_BLOCK_LEAVING, /* the free is being queued */
    KL_CUDA_BLOCK_FREE
};

struct kl_cuda_block {
    struct kl_cuda_pool *pool;
    void *ptr;
    size_t bytes;
    enum kl_cuda_block_state state;
    bool graphs;                  /* it belongs to a graph, which frees it at its end */
    struct kl_cuda_window window; /* of another process's memory; all 0: it is this one's */
    uint64_t lane;                /* the lane of its free */
    koloEvent_t freed;            /* done when the lane has executed the free */
    struct kl_cuda_block *next;   /* of the pool's free ones */
};

struct kl_cuda_pool {
    cudaMemPool_t handle;
    struct kl_cuda_pool *next; /* of all */
    int device;
    bool alive;      /* not destroyed; its blocks may outlive it */
    int imported;    /* where another process's pool has its memory; -1: it is this one's */
    unsigned shares; /* enum cudaMemAllocationHandleType: how it can be shared */
    size_t blocks;   /* given and free */
    struct kl_cuda_block *free;
    uint64_t threshold, used, used_high, reserved, reserved_high; /* bytes */
    uint64_t most;                                                /* the maximum from its creation; 0: no limit */
    int reuse[4];                                                 /* by attribute */
    uint8_t access[KL_CUDA_DEVICES];                              /* enum cudaMemAccessFlags */
};

/** The pool, with the lock, which kl_cuda_pool_let_go releases. Errors: 1 no pool, without it. */
cudaError_t kl_cuda_pool_hold(cudaMemPool_t handle, struct kl_cuda_pool **pool);

/** Yields `rc`. */
cudaError_t kl_cuda_pool_let_go(cudaError_t rc);

/** A pool of another process; takes ownership of its segment's descriptor. NULL: memory is short. */
cudaMemPool_t kl_cuda_pool_adopt(int device, int segment);

/** The range of a block that can be shared. Errors: 1 for any other address. */
cudaError_t kl_cuda_pool_shared(const void *ptr, struct kl_cuda_range *range);

#endif
