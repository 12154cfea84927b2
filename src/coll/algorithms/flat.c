/* SPDX-License-Identifier: Apache-2.0 */
/** flat.c - the algorithm Flat, where all ranks can map the same memory: no edges, but one shared-memory exchange for all channels. */
#include "coll/algorithms/algorithms.h"

#include "base/error.h"
#include "coll/shm/flat.h"
#include "coll/pipeline/edges.h"
#include "os/fault_inject.h"

#include <stdlib.h>

_Static_assert((int)KL_SHM_EXCHANGE_RANKS == (int)KL_FLAT_RANKS, "an exchange has room for all that the model allows");

struct members {
    struct kl_shm_exchange shm;
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
    kl_shm_exchange_init(&m->shm, n, graph->rank, graph->oversubscribed);
    kl_shm_exchange_group(&m->shm, graph->core);
    return kl_edges_get_arena(edges, graph, cs, m->ranks, kl_shm_exchange_bytes(n));
}

static void unlink_shm(struct kl_edges *edges)
{
    free(edges->own);
    edges->own = NULL;
}

static struct kl_shm_exchange *shm_of(const struct kl_edges *edges)
{
    struct members *m = edges->own;

    if (!m->shm.posts) kl_shm_exchange_attach(&m->shm, edges->arena->memory, edges->arena->mark);
    return &m->shm;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_edges *edges, const struct kl_channel_work *share)
{
    (void)a;
    kl_flat_start(op, shm_of(edges), share);
}

static bool at_once(void *op, struct kl_edges *edges, const struct kl_channel_work *share, ncclResult_t *rc)
{
    return kl_flat_try_now(op, shm_of(edges), share, rc);
}

static bool prepost(void *op, const struct kl_channel_work *share, unsigned later)
{
    return kl_flat_prepost(op, share, later);
}

static enum kl_progress progress(void *op, ncclResult_t *rc)
{
    return kl_flat_progress(op, rc);
}

static int blocked_on(void *op, bool gone)
{
    return kl_flat_blocked_on(op, gone);
}

const struct kl_algorithm kl_algorithm_flat = {
    .algo = KL_ALGO_FLAT,
    .funcs = ((1u << KL_FUNCS) - 1) | 1u << KL_FUNC_ALL_TO_ALL,
    .protos = 1u << KL_PROTO_SIMPLE,
    .memory = KL_REACH_ALL,
    .one_channel = true,
    .op_bytes = sizeof(struct kl_flat_op),
    .link = link_shm,
    .unlink = unlink_shm,
    .start = start,
    .at_once = at_once,
    .progress = progress,
    .prepost = prepost,
    .blocked_on = blocked_on,
};
