/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/nvls_group.h"

#include "base/error.h"
#include "coll/pipeline/edges.h"
#include "coll/schedule/signature.h"
#include "os/fault_inject.h"

#include <stdlib.h>

enum {
    WANTED_CHUNK = 128 << 10, /* bytes */
    LEAST_SLICE = 16 << 10,   /* bytes: below, dividing among heads costs more than it gains */
    BLOCKS = 4                /* blocks, where possible, so that the steps of different heads overlap */
};

/* ---- members ---- */

static ncclResult_t list_ranks(const struct kl_connect *graph, bool node, struct kl_nvls_group *g)
{
    const struct kl_nodes *nodes = &graph->nodes;
    const int of = nodes->of_rank[graph->rank];

    g->n = node ? kl_nodes_size(nodes, of) : graph->ranks.nranks;
    g->own = node ? nodes->local_rank[graph->rank] : graph->rank;
    g->most = node ? nodes->max_local : g->n;
    g->heads = kl_inject_calloc((size_t)g->n, sizeof *g->heads);
    g->ranks = kl_inject_calloc((size_t)g->n, sizeof *g->ranks);
    if (!g->heads || !g->ranks) return KL_NOMEM("ranks of NVLS");
    for (int i = 0; i < g->n; i++) g->ranks[i] = node ? nodes->rank[nodes->first[of] + i] : i;
    return ncclSuccess;
}

/* Every channel begins with another head: little data have slices for the first few only. Where several nodes share
 * their memory, the first of them has the heads. */
static ncclResult_t find_heads(const struct kl_connect *graph, int channel, bool node, struct kl_nvls_group *g)
{
    const struct kl_nodes *nodes = &graph->nodes;
    const int of = node ? nodes->of_rank[graph->rank] : 0;

    for (int i = 0; i < graph->nheads; i++) {
        int h = (i + channel) % graph->nheads, rank = kl_connect_nvls_head(graph, h, of);
        if (rank < 0 || nodes->of_rank[rank] != of)
            return KL_FAIL(ncclInternalError, "rank %d is head %d of NVLS of a node that it is not in", rank, h);
        g->heads[g->nheads++] = node ? nodes->local_rank[rank] : rank;
    }
    return ncclSuccess;
}

/* ---- edges ---- */

/* The same in all groups, as slices are; and the part that a head sends on fits into a step. */
static uint64_t chunk_bytes(const struct kl_nvls_group *g, bool node, uint64_t step_bytes)
{
    uint64_t chunk = kl_nvls_chunk_bytes(g->most, WANTED_CHUNK);

    return node && step_bytes < chunk ? step_bytes : chunk;
}

static ncclResult_t make(const struct kl_connect *graph, int channel, bool node, uint64_t step_bytes,
                         struct kl_nvls_group *g)
{
    KL_TRY(list_ranks(graph, node, g));
    KL_TRY(find_heads(graph, channel, node, g));
    const struct kl_nvls_shape shape = {
        .nranks = (uint32_t)g->n, .steps = KL_NVLS_STEPS, .chunk_bytes = chunk_bytes(g, node, step_bytes)};
    return kl_nvls_init(&g->nvls, &shape, g->own);
}

ncclResult_t kl_nvls_group_link(const struct kl_connect *graph, struct kl_connections *cs, int channel, bool node,
                                struct kl_edges *edges)
{
    struct kl_nvls_group *g = kl_inject_calloc(1, sizeof *g);

    if (!g) return KL_NOMEM("NVLS");
    edges->own = g;
    KL_TRY(make(graph, channel, node, kl_connections_step_bytes(cs), g));
    return kl_connections_get_arena(cs, g->ranks, g->n, g->own, kl_nvls_bytes(&g->nvls.shape), &edges->arena);
}

void kl_nvls_group_unlink(struct kl_edges *edges)
{
    struct kl_nvls_group *g = edges->own;

    if (!g) return;
    kl_nvls_fini(&g->nvls);
    free(g->heads);
    free(g->ranks);
    free(g);
}

/* ---- operations ---- */

/* Bytes of a slice: a slot's, or less where that gives more blocks. */
static size_t slice_bytes(const struct kl_nvls_group *g, int nheads, size_t bytes)
{
    size_t slice = g->nvls.shape.chunk_bytes;

    while (slice > LEAST_SLICE && bytes < (size_t)nheads * slice * BLOCKS) slice /= 2;
    return slice;
}

static const struct kl_nvls_kind *kind_of(int func)
{
    if (func == KL_FUNC_ALL_GATHER) return &kl_nvls_allgather;
    return func == KL_FUNC_REDUCE_SCATTER ? &kl_nvls_reducescatter : &kl_nvls_allreduce;
}

void kl_nvls_group_start(struct kl_nvls_op *op, struct kl_edges *edges, struct kl_edges *tree,
                         const struct kl_channel_work *s)
{
    struct kl_nvls_group *g = edges->own;
    const int nheads = s->func == KL_FUNC_ALL_REDUCE ? g->nheads : 1;
    const struct kl_nvls_task task = {
        .kind = kind_of(s->func),
        .redop = s->redop,
        .send = s->send,
        .recv = s->recv,
        .count = s->count,
        .first = s->first,
        .end = s->end,
        .elem_bytes = s->elem_bytes,
        .most = slice_bytes(g, nheads, (s->end - s->first) * s->elem_bytes) / s->elem_bytes,
        .grain = LEAST_SLICE / s->elem_bytes,
        .heads = g->nheads ? g->heads : NULL,
        .nheads = g->nheads,
        .ranks = g->ranks,
        .tree = tree,
        .finish = g->network != NULL,
        .operation = kl_call_short(s->signature),
        .signature = s->signature,
    };

    if (tree) kl_edges_set_signature(tree, s->signature);
    kl_nvls_attach(&g->nvls, edges->arena->memory, edges->arena->mark);
    kl_nvls_op_start(op, &g->nvls, &task);
}
