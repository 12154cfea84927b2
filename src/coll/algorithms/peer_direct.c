/* SPDX-License-Identifier: Apache-2.0 */
/** peer_direct.c - the algorithm Mapped, which is tried before others where all ranks can map the same memory: a shared-memory exchange, and no edges. */
#include "coll/algorithms/algorithms.h"

#include "base/error.h"
#include "coll/pipeline/edges.h"
#include "coll/zcopy/peer_direct.h"
#include "os/fault_inject.h"

#include <stdlib.h>

struct members {
    struct kl_peer_direct peer_direct;
    int32_t ranks[KL_SHM_EXCHANGE_RANKS];
};

static ncclResult_t link_shm(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                             struct kl_edges *edges)
{
    const int n = graph->ranks.nranks;
    struct members *m = kl_inject_calloc(1, sizeof *m);

    (void)channel;
    if (!m) return KL_NOMEM("a shared-memory exchange");
    edges->own = m;
    kl_shm_exchange_init(&m->peer_direct.shm, n, graph->rank, graph->oversubscribed);
    KL_TRY(kl_peer_buffers_init(&m->peer_direct.buffers, &kl_host_devices, n, graph->rank));
    m->peer_direct.scratch = kl_inject_aligned_alloc(KL_LINE, kl_cma_scratch_bytes(n));
    if (!m->peer_direct.scratch) return KL_NOMEM("scratch for kernel copies");
    return kl_edges_get_arena(edges, graph, cs, m->ranks, kl_shm_exchange_bytes(n));
}

static void unlink_shm(struct kl_edges *edges)
{
    struct members *m = edges->own;

    if (m) kl_peer_buffers_fini(&m->peer_direct.buffers);
    if (m) free(m->peer_direct.scratch);
    free(m);
    edges->own = NULL;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_edges *edges, const struct kl_channel_work *share)
{
    struct members *m = edges->own;

    (void)a;
    kl_shm_exchange_attach(&m->peer_direct.shm, edges->arena->memory, edges->arena->mark);
    m->peer_direct.mark = edges->arena->mark;
    kl_peer_direct_start(op, &m->peer_direct, share);
}

static enum kl_progress progress(void *op, ncclResult_t *rc)
{
    return kl_peer_direct_progress(op, rc);
}

static int blocked_on(void *op, bool gone)
{
    return kl_peer_direct_blocked_on(op, gone);
}

static enum kl_agreed agreed(const void *op)
{
    return ((const struct kl_peer_direct_op *)op)->agreed;
}

struct kl_shm_exchange *kl_peer_direct_exchange(struct kl_edges *edges)
{
    struct members *m = edges->own;

    kl_shm_exchange_attach(&m->peer_direct.shm, edges->arena->memory, edges->arena->mark);
    return &m->peer_direct.shm;
}

const struct kl_algorithm kl_algorithm_peer_direct = {
    .algo = KL_ALGO_PEER_DIRECT,
    .funcs = ((1u << KL_FUNCS) - 1) | 1u << KL_FUNC_ALL_TO_ALL,
    .protos = 1u << KL_PROTO_SIMPLE,
    .memory = KL_REACH_ALL,
    .one_channel = true,
    .op_bytes = sizeof(struct kl_peer_direct_op),
    .link = link_shm,
    .unlink = unlink_shm,
    .start = start,
    .progress = progress,
    .blocked_on = blocked_on,
    .agreed = agreed,
};
