/* SPDX-License-Identifier: Apache-2.0 */
/** algorithm_mapped.c - the algorithm Mapped, which is tried before others where all ranks can map the same memory: a board, and no edges. */
#include "coll/algorithms.h"

#include "base/error.h"
#include "coll/links.h"
#include "coll/mapped.h"
#include "os/chaos.h"

#include <stdlib.h>

struct members {
    struct kl_mapped mapped;
    int32_t ranks[KL_BOARD_RANKS];
};

static ncclResult_t link_board(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                               struct kl_links *links)
{
    const int n = graph->ranks.nranks;
    struct members *m = kl_chaos_calloc(1, sizeof *m);

    (void)channel;
    if (!m) return KL_NOMEM("a board");
    links->own = m;
    kl_board_init(&m->mapped.board, n, graph->rank, graph->crowded);
    KL_TRY(kl_lent_init(&m->mapped.lent, kl_devices(), n, graph->rank));
    m->mapped.scratch = kl_chaos_aligned_alloc(KL_LINE, kl_read_scratch_bytes(n));
    if (!m->mapped.scratch) return KL_NOMEM("scratch for kernel copies");
    return kl_links_share_all(links, graph, cs, m->ranks, kl_board_bytes(n));
}

static void unlink_board(struct kl_links *links)
{
    struct members *m = links->own;

    if (m) kl_lent_fini(&m->mapped.lent);
    if (m) free(m->mapped.scratch);
    free(m);
    links->own = NULL;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_links *links, const struct kl_share *share)
{
    struct members *m = links->own;

    (void)a;
    kl_board_attach(&m->mapped.board, links->arena->memory, links->arena->mark);
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

static struct kl_negotiation_outcome outcome(const void *op)
{
    return ((const struct kl_mapped_op *)op)->outcome;
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
    .outcome = outcome,
};
