/* SPDX-License-Identifier: Apache-2.0 */
/** flat.c - the algorithm Flat, where all ranks can map the same memory: no edges, but one board for all channels. */
#include "coll/algorithms/algorithms.h"

#include "base/error.h"
#include "coll/shm/flat.h"
#include "coll/pipeline/edges.h"
#include "os/fault_inject.h"

#include <stdlib.h>

_Static_assert((int)KL_SHM_EXCHANGE_RANKS == (int)KL_FLAT_RANKS, "a board has room for all that the model allows");

struct members {
    struct kl_shm_exchange board;
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
    kl_shm_exchange_init(&m->board, n, graph->rank, graph->crowded);
    kl_shm_exchange_group(&m->board, graph->core);
    return kl_edges_get_arena(links, graph, cs, m->ranks, kl_shm_exchange_bytes(n));
}

static void unlink_board(struct kl_edges *links)
{
    free(links->own);
    links->own = NULL;
}

static struct kl_shm_exchange *board_of(const struct kl_edges *links)
{
    struct members *m = links->own;

    if (!m->board.posts) kl_shm_exchange_attach(&m->board, links->arena->memory, links->arena->mark);
    return &m->board;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_edges *links, const struct kl_channel_work *share)
{
    (void)a;
    kl_flat_start(op, board_of(links), share);
}

static bool at_once(void *op, struct kl_edges *links, const struct kl_channel_work *share, ncclResult_t *rc)
{
    return kl_flat_try_now(op, board_of(links), share, rc);
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
    .link = link_board,
    .unlink = unlink_board,
    .start = start,
    .at_once = at_once,
    .progress = progress,
    .prepost = prepost,
    .blocked_on = blocked_on,
};
