/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.h - registered memory: whole pages, shared by all registrations of a device that lie inside, and counted.
 *
 * Only memory that its owner registers is known here, never memory that merely passes by: a cache of the latter goes on
 * with the old pages after munmap and mmap. Memory that was not registered is copied (link.h, stages).
 *
 * Threads:  any.
 */
#ifndef KL_NET_VERBS_MEMORY_H
#define KL_NET_VERBS_MEMORY_H

#include "include/nccl.h"
#include "net/verbs/abi.h"

#include <stdbool.h>

struct kl_verbs_device;

struct kl_verbs_memory {
    struct kl_ibv_mr *mr;
    uintptr_t start, end;
    bool of_gpu; /* it is a connection's own, and CPUs do not touch it */
    int users;
    struct kl_verbs_memory *next;
};

ncclResult_t kl_verbs_memory_register(const struct kl_verbs_device *d, void *data, size_t bytes,
                                      struct kl_verbs_memory **memory);
void kl_verbs_memory_release(const struct kl_verbs_device *d, struct kl_verbs_memory *memory);

/** Memory of a GPU, by the descriptor of its DMA-BUF, in which it is at `offset`; or, fd -1, by its address. */
ncclResult_t kl_verbs_memory_register_gpu(const struct kl_verbs_device *d, void *data, size_t bytes, uint64_t offset,
                                          int fd, struct kl_verbs_memory **memory);

/** Bits of enum kl_net_memory for GPUs whose memory this card can register: it asks the card, and the kernel for nvidia_peermem. */
unsigned kl_verbs_memory_of_gpus(const struct kl_verbs_device *d);

/** One of its own, without sharing. NULL and the error are as of kl_verbs_memory_register. */
ncclResult_t kl_verbs_memory_map(const struct kl_verbs_device *d, size_t bytes, void **data, struct kl_ibv_mr **mr);
void kl_verbs_memory_unmap(void *data, size_t bytes, struct kl_ibv_mr *mr);

#endif
