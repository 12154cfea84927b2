/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shm.c - ranks of one host: a fifo in a memory segment that both processes map; slots of messages in the sender's pool.
 *
 * The same stands for NVLink between hosts of one domain: memory of another process that a rank maps.
 */
#include "base/error.h"
#include "device/host/bulk_copy.h"
#include "event/fdmap.h"
#include "transport/pool.h"
#include "transport/shm/region.h"
#include "transport/transport.h"

enum { POOL_SLOTS = 64 };

static enum kl_refusal shm_refuses(const struct kl_pair_facts *facts)
{
    if (facts->a->host != facts->b->host) return KL_REFUSAL_OTHER_HOST;
    if (facts->ruled && facts->why.shm != KL_SHM_ALLOWED) return KL_REFUSAL_SHM;
    return facts->a->memory == facts->b->memory ? KL_REFUSAL_NONE : KL_REFUSAL_OTHER_MEMORY;
}

/* ---- receiver ---- */

static ncclResult_t place(struct kl_connector *c, size_t bytes, size_t *offset)
{
    *offset = 0;
    return c->messages ? kl_shm_slab_take(&c->common->home, bytes, &c->shm.region, offset)
                       : kl_shm_region_create(bytes, &c->shm.region);
}

static ncclResult_t shm_setup(struct kl_connector *c, const struct kl_fifo_shape *shape, struct kl_connect_info *info)
{
    size_t bytes = kl_fifo_size(shape), offset;

    KL_TRY(place(c, bytes, &offset));
    struct kl_fifo *fifo = (void *)((unsigned char *)kl_shm_region_base(c->shm.region) + offset);
    kl_fifo_init(fifo, shape);
    info->handle = *kl_shm_region_export_handle(c->shm.region);
    info->bytes = kl_shm_region_bytes(c->shm.region);
    info->offset = offset;
    return kl_fifo_attach_rx(&c->rx, fifo, bytes, false);
}

/* A sender that has left meanwhile has closed its pool, and put no data into it. */
static ncclResult_t map_pool(struct kl_connector *c, uint64_t deadline, const struct kl_connect_reply *reply)
{
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_fdmap_get(&reply->pool, reply->pool_bytes, deadline, &c->shm.request, &c->shm.pool_map);

    kl_error_quiet(quiet);
    if (rc) return rc == ncclRemoteError ? ncclSuccess : rc;
    kl_fifo_use_pool(&c->rx, kl_fdmap_base(c->shm.pool_map), kl_fdmap_bytes(c->shm.pool_map));
    return ncclSuccess;
}

static ncclResult_t shm_settle(struct kl_connector *c, uint64_t deadline, const struct kl_connect_reply *reply)
{
    if (!c->shm.settled) kl_shm_region_settle(c->shm.region);
    c->shm.settled = true;
    return reply->pool_bytes ? map_pool(c, deadline, reply) : ncclSuccess;
}

/* ---- sender ---- */

static ncclResult_t need_pool(struct kl_common *common)
{
    if (!common->pool)
        KL_TRY(kl_pool_create(POOL_SLOTS, KL_POOL_SLOT_BYTES, kl_cache_cycle(common->cache_ranks), &common->pool));
    if (common->pool_offered) return ncclSuccess;
    KL_TRY(kl_fdshare_offer(kl_pool_segment(common->pool)->fd, &common->pool_export_handle));
    common->pool_offered = true;
    return ncclSuccess;
}

static ncclResult_t use_pool(struct kl_connector *c, struct kl_connect_reply *reply)
{
    if (!c->messages) return ncclSuccess;
    KL_TRY(need_pool(c->common));
    c->tx.pool = c->common->pool;
    reply->pool = c->common->pool_export_handle;
    reply->pool_bytes = kl_pool_segment(c->common->pool)->bytes;
    return ncclSuccess;
}

static ncclResult_t attach(struct kl_connector *c, const struct kl_connect_info *info)
{
    size_t bytes = kl_fdmap_bytes(c->shm.map);

    if (info->offset % KL_LINE || info->offset >= bytes)
        return KL_FAIL(ncclInternalError, "rank %d describes a fifo that lies outside of its memory", c->peer);
    return kl_fifo_attach_tx(&c->tx, (void *)((unsigned char *)kl_fdmap_base(c->shm.map) + info->offset),
                             bytes - info->offset, false);
}

static ncclResult_t shm_connect(struct kl_connector *c, const struct kl_connect_info *info, uint64_t deadline,
                                struct kl_connect_reply *reply)
{
    KL_TRY(kl_fdmap_get(&info->handle, info->bytes, deadline, &c->shm.request, &c->shm.map));
    KL_TRY(attach(c, info));
    return use_pool(c, reply);
}

/* ---- both ---- */

static void shm_free(struct kl_connector *c)
{
    if (c->tx.pool) kl_pool_forget(c->tx.pool, &c->tx);
    kl_fdshare_request_free(c->shm.request);
    if (c->shm.map) kl_fdmap_put(c->shm.map);
    if (c->shm.pool_map) kl_fdmap_put(c->shm.pool_map);
    if (c->shm.region) kl_shm_region_release(c->shm.region, c->shm.settled);
}

const struct kl_transport kl_transport_shm = {
    .name = "SHM",
    .via = "SHM/direct/direct",
    .refuses = shm_refuses,
    .setup = shm_setup,
    .connect = shm_connect,
    .settle = shm_settle,
    .free = shm_free,
};

/* Never refuses: kl_transport_p2p has checked. */
const struct kl_transport kl_transport_p2p_hosts = {
    .name = "P2P",
    .via = "P2P/MNNVL",
    .setup = shm_setup,
    .connect = shm_connect,
    .settle = shm_settle,
    .free = shm_free,
};
