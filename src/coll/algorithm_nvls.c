/* SPDX-License-Identifier: Apache-2.0 */
/**
 * algorithm_nvls.c - the algorithm NVLS, where all ranks can map the same memory: no edges, but memory for each channel.
 */
#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/nvls_op.h"

#include <stdlib.h>

enum {
    WANTED_CHUNK = 128 << 10, /* bytes */
    LEAST_SLICE = 16 << 10,   /* bytes: below, dividing among heads costs more than it brings */
    BLOCKS = 4                /* so many, if it can be, for the steps of different heads to overlap */
};

/** What a rank keeps for a channel. */
struct nvls_links {
    struct kl_nvls nvls;
    int nheads;
    int *heads;     /* nranks: ranks that add up in an all-reduce */
    int32_t *ranks; /* nranks: all */
};

/* The first rank that says it is this head: one of each number, also where several nodes share their memory. */
static int head_rank(const struct kl_connect *graph, int channel, int head)
{
    int r = 0;

    while (r < graph->ranks.nranks && kl_connect_nvls(graph, channel, r).head != head) r++;
    return r;
}

/* Every channel begins with another head: little data has slices for the first few only. */
static void find_heads(const struct kl_connect *graph, int channel, struct nvls_links *l)
{
    for (int i = 0; i < graph->nheads; i++) {
        int r = head_rank(graph, channel, (i + channel) % graph->nheads);
        if (r < graph->ranks.nranks) l->heads[l->nheads++] = r;
    }
}

static ncclResult_t make(const struct kl_connect *graph, int channel, struct nvls_links *l)
{
    const int n = graph->ranks.nranks;
    const struct kl_nvls_shape shape = {
        .nranks = (uint32_t)n, .steps = KL_NVLS_STEPS, .chunk_bytes = kl_nvls_chunk_bytes(n, WANTED_CHUNK)};

    l->heads = calloc((size_t)n, sizeof *l->heads);
    l->ranks = calloc((size_t)n, sizeof *l->ranks);
    if (!l->heads || !l->ranks) return KL_NOMEM("heads of NVLS");
    for (int r = 0; r < n; r++) l->ranks[r] = r;
    find_heads(graph, channel, l);
    return kl_nvls_init(&l->nvls, &shape, graph->rank);
}

static ncclResult_t link_nvls(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_links *links)
{
    struct nvls_links *l = calloc(1, sizeof *l);

    if (!l) return KL_NOMEM("NVLS");
    links->own = l;
    KL_TRY(make(graph, channel, l));
    return kl_connections_share(cs, l->ranks, graph->ranks.nranks, graph->rank, kl_nvls_bytes(&l->nvls.shape),
                                &links->arena);
}

static void unlink_nvls(struct kl_links *links)
{
    struct nvls_links *l = links->own;

    if (!l) return;
    kl_nvls_fini(&l->nvls);
    free(l->heads);
    free(l->ranks);
    free(l);
}

/* Bytes of a slice: a slot's, or less where that gives more blocks. */
static size_t slice_bytes(const struct nvls_links *l, int nheads, size_t bytes)
{
    size_t slice = l->nvls.shape.chunk_bytes;

    while (slice > LEAST_SLICE && bytes < (size_t)nheads * slice * BLOCKS) slice /= 2;
    return slice;
}

static const struct kl_nvls_kind *kind_of(int func)
{
    if (func == KL_FUNC_ALL_GATHER) return &kl_nvls_allgather;
    return func == KL_FUNC_REDUCE_SCATTER ? &kl_nvls_reducescatter : &kl_nvls_allreduce;
}

static void start(const struct kl_algorithm *a, void *op, struct kl_links *links, const struct kl_share *s)
{
    struct nvls_links *l = links->own;
    const bool parts = s->func != KL_FUNC_ALL_REDUCE;
    struct kl_nvls_task task = {
        .kind = kind_of(s->func),
        .redop = s->redop,
        .send = s->send,
        .recv = s->recv,
        .count = s->count,
        .first = s->first,
        .end = s->end,
        .elem_bytes = s->elem_bytes,
        .most = slice_bytes(l, parts ? 1 : l->nheads, (s->end - s->first) * s->elem_bytes) / s->elem_bytes,
        .grain = LEAST_SLICE / s->elem_bytes,
        .heads = l->nheads ? l->heads : NULL,
        .nheads = l->nheads,
        .operation = (uint32_t)s->func << 16 | (uint32_t)s->elem_bytes,
    };

    (void)a;
    kl_nvls_attach(&l->nvls, links->arena->memory, links->arena->mark);
    kl_nvls_op_start(op, &l->nvls, &task);
}

static enum kl_progress progress(void *op, ncclResult_t *rc)
{
    return kl_nvls_op_progress(op, rc);
}

static int blocked_on(void *op, bool gone)
{
    return gone ? kl_nvls_op_waits_in_vain(op) : kl_nvls_op_blocked_on(op);
}

const struct kl_algorithm kl_algorithm_nvls = {
    .algo = KL_ALGO_NVLS,
    .funcs = 1u << KL_FUNC_ALL_REDUCE | 1u << KL_FUNC_ALL_GATHER | 1u << KL_FUNC_REDUCE_SCATTER,
    .protos = 1u << KL_PROTO_SIMPLE,
    .one_memory = true,
    .op_bytes = sizeof(struct kl_nvls_op),
    .link = link_nvls,
    .unlink = unlink_nvls,
    .start = start,
    .progress = progress,
    .blocked_on = blocked_on,
};
