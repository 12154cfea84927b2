/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/gpu_memory.h"

#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct entry {
    struct kl_cuda_region region; /* id 0: the entry is free */
    void *mr;
    uint64_t used; /* the message that used it last */
};

struct kl_net_gpu_memory {
    struct kl_net_reach reach;
    struct entry entry[KL_NET_GPU_REGIONS];
    const struct entry *current; /* of the message under way; NULL: none */
    uint64_t messages;
};

/* ---- which memory ---- */

/* The descriptor of its DMA-BUF, or -1 if it is registered by its address. False: neither is possible. */
static bool find_name(const struct kl_net_reach *reach, const struct kl_cuda_region *region, int *fd)
{
    *fd = reach->memory & KL_NET_DMABUF ? kl_cuda_region_export(region) : -1;
    return *fd >= 0 || (reach->memory & KL_NET_CUDA && region->by_address);
}

bool kl_net_reach_has(const struct kl_net_reach *reach, const struct kl_cuda_region *region)
{
    int fd;

    if (!reach->memory) return false;
    const bool has = find_name(reach, region, &fd);
    if (fd >= 0) close(fd);
    return has;
}

/* ---- life ---- */

ncclResult_t kl_net_gpu_memory_create(const struct kl_net_reach *reach, struct kl_net_gpu_memory **memory)
{
    *memory = NULL;
    if (!reach->memory) return ncclSuccess;
    struct kl_net_gpu_memory *m = calloc(1, sizeof *m);
    if (!m) return KL_NOMEM("a network connection");
    m->reach = *reach;
    *memory = m;
    return ncclSuccess;
}

static void drop(struct entry *e, const struct kl_net *net, void *connection)
{
    if (e->region.id && connection) (void)net->dereg_mr(connection, e->mr);
    *e = (struct entry){.mr = NULL};
}

void kl_net_gpu_memory_drop(struct kl_net_gpu_memory *m, const struct kl_net *net, void *connection)
{
    m->current = NULL;
    for (int i = 0; i < KL_NET_GPU_REGIONS; i++) drop(&m->entry[i], net, connection);
}

void kl_net_gpu_memory_free(struct kl_net_gpu_memory *m, const struct kl_net *net, void *connection)
{
    if (m) kl_net_gpu_memory_drop(m, net, connection);
    free(m);
}

/* ---- registrations ---- */

static bool overlaps(const struct kl_cuda_region *a, const struct kl_cuda_region *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes;
}

/* Other memory was there before, which the program has freed. */
static void drop_stale(struct kl_net_gpu_memory *m, const struct kl_net *net, void *connection,
                       const struct kl_cuda_region *region)
{
    for (struct entry *e = m->entry; e < m->entry + KL_NET_GPU_REGIONS; e++)
        if (e->region.id && e->region.id != region->id && overlaps(&e->region, region)) drop(e, net, connection);
}

static struct entry *find(struct kl_net_gpu_memory *m, const struct kl_cuda_region *region)
{
    struct entry *e = m->entry;

    while (e < m->entry + KL_NET_GPU_REGIONS && e->region.id != region->id) e++;
    return e < m->entry + KL_NET_GPU_REGIONS ? e : NULL;
}

/* A free one, or the one that was not used for the longest time. */
static struct entry *find_oldest(struct kl_net_gpu_memory *m)
{
    struct entry *oldest = m->entry;

    for (struct entry *e = m->entry; e < m->entry + KL_NET_GPU_REGIONS; e++)
        if (e->used < oldest->used) oldest = e;
    return oldest;
}

static ncclResult_t describe(const struct kl_cuda_region *region, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];

    snprintf(text, sizeof text, "%s", kl_error_text());
    return KL_FAIL(
        rc,
        "%zu bytes of device %d cannot be registered for RDMA; NCCL_NET_GDR_LEVEL=LOC goes over host memory: "
        "%.700s",
        region->bytes, region->device, text);
}

static ncclResult_t register_by(const struct kl_net *net, void *connection, const struct kl_cuda_region *region, int fd,
                                void **mr)
{
    size_t bytes;
    char *start;

    kl_cuda_region_pages(region, &start, &bytes);
    if (fd >= 0) return net->reg_mr_dmabuf(connection, start, bytes, 0, fd, mr);
    return net->reg_mr(connection, region->base, region->bytes, KL_NET_CUDA, mr);
}

static ncclResult_t add(struct kl_net_gpu_memory *m, const struct kl_net *net, void *connection,
                        const struct kl_cuda_region *region, struct entry **out)
{
    struct entry *e = find_oldest(m);
    int fd;

    drop(e, net, connection);
    if (!find_name(&m->reach, region, &fd))
        return KL_FAIL(ncclUnhandledCudaError, "device %d: CUDA gives NICs no access to the memory at %p any more",
                       region->device, (void *)region->base);
    kl_cuda_region_synchronise(region);
    const ncclResult_t rc = register_by(net, connection, region, fd, &e->mr);
    if (fd >= 0) close(fd);
    if (rc) return describe(region, rc);
    if (!e->mr) return KL_FAIL(ncclInternalError, "NET/%s registers memory of a GPU without a handle", net->name);
    e->region = *region;
    *out = e;
    KL_INFO(KL_ALLOC | KL_NET, "NET/%s: %zu bytes of device %d at %p are registered by their %s", net->name,
            region->bytes, region->device, (void *)region->base, fd >= 0 ? "DMA-BUF" : "address");
    return ncclSuccess;
}

ncclResult_t kl_net_gpu_memory_use(struct kl_net_gpu_memory *m, const struct kl_net *net, void *connection,
                                   const void *data, size_t bytes)
{
    struct kl_cuda_region region;

    m->current = NULL;
    if (!bytes) return ncclSuccess;
    if (!kl_cuda_region_find(m->reach.device, data, bytes, &region))
        return KL_FAIL(ncclInvalidArgument,
                       "%zu bytes at %p are no memory of device %d any more: memory of a message has to stay until its "
                       "stream has come to its end",
                       bytes, data, m->reach.device);
    drop_stale(m, net, connection, &region);
    struct entry *e = find(m, &region);
    if (!e) KL_TRY(add(m, net, connection, &region, &e));
    e->used = ++m->messages;
    m->current = e;
    return ncclSuccess;
}

void *kl_net_gpu_memory_mr(const struct kl_net_gpu_memory *m, const void *data)
{
    const struct entry *e = m->current;
    const char *at = data;

    return e && at >= e->region.base && at < e->region.base + e->region.bytes ? e->mr : NULL;
}

/* ---- flushes ---- */

ncclResult_t kl_net_gpu_memory_flush(struct kl_net_gpu_memory *m, const struct kl_net *net, void *connection,
                                     void *data, size_t bytes, void **request)
{
    const struct kl_net_recv part = {.data = data, .bytes = bytes, .mr = kl_net_gpu_memory_mr(m, data)};

    *request = NULL;
    if (!part.mr || m->reach.flush == KL_NET_FLUSH_NONE) return ncclSuccess;
    if (m->reach.flush == KL_NET_FLUSH_BY_CUDA) return kl_cuda_flush(m->reach.device);
    return net->iflush(connection, 1, &part, request);
}
