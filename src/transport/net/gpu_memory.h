/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_memory.h - memory of GPUs that a network connection sends from and receives into without a CPU.
 *
 * An allocation is registered as a whole when a message first uses it, by its DMA-BUF or by its address. Registrations are kept
 * by the allocation's identity, so that one of freed memory is never used for other memory at the same address; the oldest
 * of KL_NET_GPU_REGIONS makes room, and the connection's end frees all. Until then the driver may keep freed memory.
 *
 * Threads: the connection's. kl_net_reach_has: any.
 */
#ifndef KL_TRANSPORT_NET_GPU_MEMORY_H
#define KL_TRANSPORT_NET_GPU_MEMORY_H

#include "device/cuda/rdma.h"
#include "net/net.h"

enum { KL_NET_GPU_REGIONS = 32 };

/** The flush that makes received data visible to the GPU. */
enum kl_net_flush { KL_NET_FLUSH_NONE, KL_NET_FLUSH_BY_NET, KL_NET_FLUSH_BY_CUDA };

/** How a NIC gets at memory of a rank's GPU. */
struct kl_net_reach {
    unsigned memory; /* KL_NET_CUDA and KL_NET_DMABUF, or one of them; 0: not at all */
    enum kl_net_flush flush;
    int device; /* the GPU */
};

/** Can it get at this allocation of the GPU: does CUDA give it to NICs? */
bool kl_net_reach_has(const struct kl_net_reach *reach, const struct kl_cuda_region *region);

struct kl_net_gpu_memory;

/** For a connection; NULL if the NIC does not get at any. */
ncclResult_t kl_net_gpu_memory_create(const struct kl_net_reach *reach, struct kl_net_gpu_memory **memory);

/** The next message's data, which are registered if need be; bytes 0: no message of a GPU is under way. */
ncclResult_t kl_net_gpu_memory_use(struct kl_net_gpu_memory *memory, const struct kl_net *net, void *connection,
                                   const void *data, size_t bytes);

/** The registration of data of this message; NULL: they are not in it. */
void *kl_net_gpu_memory_mr(const struct kl_net_gpu_memory *memory, const void *data);

/** Make data of this message visible. `*request` NULL: they are. */
ncclResult_t kl_net_gpu_memory_flush(struct kl_net_gpu_memory *memory, const struct kl_net *net, void *connection,
                                     void *data, size_t bytes, void **request);

/** End all registrations: the NIC touches none of the memory any more. */
void kl_net_gpu_memory_drop(struct kl_net_gpu_memory *memory, const struct kl_net *net, void *connection);

/** Before the connection is closed. NULL is fine. */
void kl_net_gpu_memory_free(struct kl_net_gpu_memory *memory, const struct kl_net *net, void *connection);

#endif
