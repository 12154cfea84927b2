/* SPDX-License-Identifier: Apache-2.0 */
/** peer_direct.c - the algorithm Mapped, which is tried before others where all ranks can map the same memory: a board, and no edges. */
#include "coll/algorithms/algorithms.h"

#include "base/error.h"
#include "coll/pipeline/edges.h"
#include "coll/zcopy/peer_direct.h"
#include "os/fault_inject.h"

#include <stdlib.h>

struct members {
    struct kl_mapped mapped;
    int32_t ranks[KL_SHM_EXCHANGE_RANKS];
};

static ncclResult_t link_board(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                               struct kl_edges *links)
{
    const int n = graph->ranks.nranks;
    struct members *m = kl_inject_calloc(1, sizeof *m);

    (void)channel;
    if (!m) return KL_NOMEM("a board");
    links->own = m;
    kl_shm_exchange_init(&m->mapped.board, n, graph->rank, graph->crowded);
    KL_TRY(kl_peer_buffers_init(&m->mapped.lent, &kl_host_devices, n, graph->rank));
    m->mapped.scratch = kl_inject_aligned_alloc(KL_LINE, kl_read_scratch_bytes(n));
    if (!m->mapped.scratch) return KL_NOMEM("scratch for kernel copies");
    return kl_edges_get_arena(links, graph, cs, m->ranks, kl_shm_exchange_bytes(n));
}

static void unlink_board(struct kl_edges *links)
{
    struct members *m = links->own;

    if (m) kl_peer_buffers_fini(&m->mapped.lent);
    if (m) free(m->mapped.scratch);
    free(m);
    links->own = NULL;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_edges *links, const struct kl_channel_work *share)
{
    struct members *m = links->own;

    (void)a;
    kl_shm_exchange_attach(&m->mapped.board, links->arena->memory, links->arena->mark);
    m->mapped.mark = links->arena->mark;
    kl_mapped_start(op, &m->mapped, share);
}

static enum kl_progress progress(void *op, ncclResult_t *rc)
{
    return kl_mapped_progress(op, rc);
}

static int blocked_on(void *op, bool gone)
{
    return kl_mapped_blocked_on(op, gone);
}

static enum kl_agreed agreed(const void *op)
{
    return ((const struct kl_mapped_op *)op)->agreed;
}

struct kl_shm_exchange *kl_mapped_board(struct kl_edges *links)
{
    struct members *m = links->own;

    kl_shm_exchange_attach(&m->mapped.board, links->arena->memory, links->arena->mark);
    return &m->mapped.board;
}

const struct kl_algorithm kl_algorithm_mapped = {
    .algo = KL_ALGO_MAPPED,
    .funcs = ((1u << KL_FUNCS) - 1) | 1u << KL_FUNC_ALL_TO_ALL,
    .protos = 1u << KL_PROTO_SIMPLE,
    .memory = KL_REACH_ALL,
    .one_channel = true,
    .op_bytes = sizeof(struct kl_mapped_op),
    .link = link_board,
    .unlink = unlink_board,
    .start = start,
    .progress = progress,
    .blocked_on = blocked_on,
    .agreed = agreed,
};
