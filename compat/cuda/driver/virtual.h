/* SPDX-License-Identifier: Apache-2.0 */
/**
 * virtual.h - the common part of the handles of cuMemCreate and of cuMulticastCreate, and the memory behind an address.
 *
 * One lock protects all handles and mappings.
 * Threads: any.
 */
#ifndef KL_CU_VIRTUAL_H
#define KL_CU_VIRTUAL_H

#include "compat/cuda/include/cuda.h"

#include <stdbool.h>

/** Bytes of which sizes, offsets and addresses are multiples. */
#define KL_CU_GRANULARITY ((size_t)2 << 20)

struct kl_cuda_multicast;

/** Memory, or a multicast object: its descriptor is for other processes. */
struct kl_cu_allocation {
    int fd, device;
    size_t bytes;
    unsigned count;                      /* handles, mappings, and where it is bound */
    unsigned handles;                    /* number of references */
    bool imported;                       /* the creating process counts it */
    struct kl_cuda_multicast *multicast; /* NULL: memory */
    CUmemAllocationProp properties;
    void *handle;
};

void kl_cu_virtual_lock(void);
void kl_cu_virtual_unlock(void);

/** Count an allocation's use once more, so that it stays. Error 1: there is no such handle. */
CUresult kl_cu_allocation_hold(CUmemGenericAllocationHandle handle, struct kl_cu_allocation **allocation);

/* ---- with the lock ---- */

/** The allocation of a handle, NULL: none. */
struct kl_cu_allocation *kl_cu_allocation_find(CUmemGenericAllocationHandle handle);

/** Give an allocation its handle; on an error the allocation goes. */
CUresult kl_cu_allocation_publish(struct kl_cu_allocation *allocation, CUmemGenericAllocationHandle *handle);

/** One use less: the last one ends it. */
void kl_cu_allocation_drop(struct kl_cu_allocation *allocation);

/** The memory behind `bytes` from an address that cuMemMap gave, and their offset in it. NULL: not mapped in one call, or multicast. */
struct kl_cu_allocation *kl_cu_allocation_at(const void *address, size_t bytes, size_t *offset);

/* ---- without it ---- */

/** The segment of such memory. The descriptor stays the allocation's. Errors: 1 none; 801 it is memory of the host. */
CUresult kl_cu_mapped_segment(const void *address, size_t bytes, int *fd, size_t *offset);

#endif
