/* SPDX-License-Identifier: Apache-2.0 */
/**
 * test_pipeline_ranks.h - for tests of the pipeline: ranks in one process, over real fifos; every row that the pipeline runs, and
 * every way; calls.
 */
#ifndef KL_COLL_PIPELINE_TEST_PIPELINE_RANKS_H
#define KL_COLL_PIPELINE_TEST_PIPELINE_RANKS_H

#include "coll/algorithms/algorithms.h"
#include "coll/schedule/partition.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"
#include "coll/schedule/ordered.h"
#include "coll/schedule/signature.h"
#include "graph/tree.h"
#include "tests/kolo_test.h"
#include "transport/test_join.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_RANKS = 9,
    MAX_COUNT = 3000,
    SLOTS = 4,
    CELL_BYTES = 256,
    CHAIN_BYTES = 384,
    SMALL_SLOT = 1024,
    LARGE_SLOT = 8192,
    MAX_CONNECTORS = 256
};

struct rank {
    struct kl_edges edges;
    struct kl_pipeline op;
    struct kl_channel_work share; /* of its op */
    int32_t *send, *recv;
    unsigned char *scratch;
    bool done;
};

struct world {
    int n;
    const struct kl_algorithm *algorithm;
    const struct kl_transport *transport;
    struct kl_fifo_shape shape;
    struct rank rank[MAX_RANKS];
    struct kl_connector connector[MAX_CONNECTORS];
    int nconnectors;
    struct kl_redop redop;
    struct kl_grid grid;
    uint64_t seed;
};

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* ---- connecting ---- */

static struct kl_connector *new_connector(struct world *w, int peer, bool sends)
{
    assert_true(w->nconnectors < MAX_CONNECTORS);
    struct kl_connector *c = &w->connector[w->nconnectors++];
    *c = (struct kl_connector){.transport = w->transport, .peer = peer, .sends = sends};
    return c;
}

/* Edge `out` of rank `from` is edge `in` of rank `to`. */
static void join(struct world *w, int from, int out, int to, int in)
{
    struct kl_connector *tx = new_connector(w, to, true), *rx = new_connector(w, from, false);
    struct kl_edges *a = &w->rank[from].edges, *b = &w->rank[to].edges;
    struct kl_connect_info info = {.version = KL_CONNECT_INFO_VERSION};
    struct kl_connect_reply reply = {.pool_bytes = 0};

    assert_int_equal(w->transport->setup(rx, &w->shape, &info), ncclSuccess);
    assert_int_equal(test_connect(tx, &info, &reply), ncclSuccess);
    assert_int_equal(test_settle(rx, &reply), ncclSuccess);
    a->send[out] = tx;
    b->recv[in] = rx;
    if (out >= a->nsend) a->nsend = out + 1;
    if (in >= b->nrecv) b->nrecv = in + 1;
}

static void shuffle(int *values, int n, uint64_t *seed)
{
    for (int i = 0; i < n; i++) values[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int other = (int)draw(seed, (uint64_t)i + 1), kept = values[i];
        values[i] = values[other];
        values[other] = kept;
    }
}

/* In random order. */
static void join_ring(struct world *w)
{
    int ring[MAX_RANKS] = {0}, n = w->n, zero = 0;

    shuffle(ring, n, &w->seed);
    while (ring[zero]) zero++;
    for (int i = 0; i < n; i++) {
        struct kl_edges *l = &w->rank[ring[i]].edges;
        l->order = calloc((size_t)n, sizeof *l->order);
        for (int k = 0; k < n; k++) l->order[k] = ring[(i + k) % n];
        l->position =
            (struct kl_position){.nranks = n, .rank = ring[i], .order = l->order, .index = kl_wrap(i - zero, n)};
        join(w, ring[i], 0, ring[(i + 1) % n], 0);
    }
}

/* Any tree with up to three children per node. */
static void join_tree(struct world *w)
{
    int name[MAX_RANKS];

    shuffle(name, w->n, &w->seed);
    for (int r = 0; r < w->n; r++) w->rank[r].edges.position = (struct kl_position){.nranks = w->n, .rank = r};
    for (int i = 1; i < w->n; i++) {
        int parent;
        do parent = name[draw(&w->seed, (uint64_t)i)];
        while (w->rank[parent].edges.position.ndown == KL_TREE_UP);
        int child = w->rank[parent].edges.position.ndown++;
        w->rank[name[i]].edges.position.up = 1;
        join(w, name[i], KL_TREE_UP, parent, child);
        join(w, parent, child, name[i], KL_TREE_UP);
    }
}

static void join_pat(struct world *w, int direction)
{
    for (int r = 0; r < w->n; r++)
        w->rank[r].edges.position = (struct kl_position){.nranks = w->n, .rank = r, .steps = SLOTS};
    for (int r = 0; r < w->n; r++)
        for (int k = 0; 1 << k < w->n; k++) join(w, r, k, kl_wrap(r - direction * (1 << k), w->n), k);
}

/* One dimension, or two where the number of ranks is not prime. */
static void join_lines(struct world *w)
{
    int nodes = 1 + (int)draw(&w->seed, (uint64_t)w->n);

    while (w->n % nodes) nodes--;
    w->grid = kl_grid_of(w->n, nodes, w->n / nodes);
    for (int r = 0; r < w->n; r++)
        w->rank[r].edges.position = (struct kl_position){.nranks = w->n, .rank = r, .index = r, .grid = &w->grid};
    for (int d = 0; d < w->grid.dimensions; d++)
        for (int r = 0; r < w->n; r++)
            for (int place = 0, first = kl_grid_peers(&w->grid, d); place < w->grid.side[d]; place++) {
                int own = kl_grid_place(&w->grid, d, r);
                if (place == own) continue;
                join(w, r, first + place - (place > own), kl_grid_index(&w->grid, d, r, place),
                     first + own - (own > place));
            }
}

static void join_all(struct world *w)
{
    for (int r = 0; r < w->n; r++) w->rank[r].edges.position = (struct kl_position){.nranks = w->n, .rank = r};
    for (int r = 0; r < w->n; r++)
        for (int peer = 0; peer < w->n; peer++)
            if (peer != r) join(w, r, kl_ordered_edge(r, peer), peer, kl_ordered_edge(peer, r));
}

static void join_in_order(struct world *w)
{
    for (int r = 0; r < w->n; r++) w->rank[r].edges.position = (struct kl_position){.nranks = w->n, .rank = r};
    for (int r = 0; r < w->n; r++) join(w, r, 0, kl_wrap(r + 1, w->n), 0);
}

static bool is_ring(const struct kl_algorithm *a)
{
    return a == &kl_algorithm_ring || a == &kl_algorithm_ring_chain;
}

static void join_ranks(struct world *w)
{
    w->nconnectors = 0;
    for (int r = 0; r < w->n; r++) w->rank[r].edges = (struct kl_edges){.nrecv = 0};
    if (is_ring(w->algorithm)) join_ring(w);
    if (w->algorithm == &kl_algorithm_tree) join_tree(w);
    if (w->algorithm == &kl_algorithm_pat_gather) join_pat(w, 1);
    if (w->algorithm == &kl_algorithm_pat_scatter) join_pat(w, -1);
    if (w->algorithm == &kl_algorithm_oneshot) join_lines(w);
    if (w->algorithm == &kl_algorithm_ordered) join_all(w);
    if (w->algorithm == &kl_algorithm_ordered_ring) join_in_order(w);
}

static void part(struct world *w)
{
    for (int i = 0; i < w->nconnectors; i++) kl_connector_free(&w->connector[i]);
    for (int r = 0; r < w->n; r++) kl_edges_fini(&w->rank[r].edges);
}

static struct world *make_world(void)
{
    struct world *w = calloc(1, sizeof *w);

    for (int r = 0; r < MAX_RANKS; r++) {
        w->rank[r].send = malloc(sizeof(int32_t) * MAX_COUNT * MAX_RANKS);
        w->rank[r].recv = malloc(sizeof(int32_t) * MAX_COUNT * MAX_RANKS);
        w->rank[r].scratch = aligned_alloc(64, (KL_SCRATCH_BYTES + 63) / 64 * 64);
    }
    w->seed = 1;
    return w;
}

static void free_world(struct world *w)
{
    for (int r = 0; r < MAX_RANKS; r++) {
        free(w->rank[r].send);
        free(w->rank[r].recv);
        free(w->rank[r].scratch);
    }
    free(w);
}

/* ---- ways: an algorithm's row, and a transport ---- */

struct way {
    const struct kl_algorithm *algorithm;
    int proto;
    const struct kl_transport *transport;
    uint64_t slot_bytes; /* large slots: chunks are read in place, where memory is shared */
    bool nontemporal;    /* stores */
};

static const struct kl_algorithm *const rows[] = {
    &kl_algorithm_ring,        &kl_algorithm_ring_chain, &kl_algorithm_tree,    &kl_algorithm_pat_gather,
    &kl_algorithm_pat_scatter, &kl_algorithm_oneshot,    &kl_algorithm_ordered, &kl_algorithm_ordered_ring};
static const struct {
    const struct kl_transport *transport;
    uint64_t slot_bytes;
    bool nontemporal;
} links[] = {{&kl_transport_p2p, SMALL_SLOT, false},
             {&kl_transport_p2p, LARGE_SLOT, false},
             {&kl_transport_shm, SMALL_SLOT, false},
             {&kl_transport_shm, LARGE_SLOT, true}};

static void for_each_way(void (*visit)(const struct way *way, void *ctx), void *ctx)
{
    FOR_EACH_CASE(row, rows)
    FOR_EACH_CASE(link, links)
    for (int proto = 0; proto < KL_PROTOS; proto++) {
        struct way way = {*row, proto, link->transport, link->slot_bytes, link->nontemporal};
        if ((*row)->protos >> proto & 1) visit(&way, ctx);
    }
}

static void set_out(struct world *w, const struct way *way, int n)
{
    w->n = n;
    w->algorithm = way->algorithm;
    w->transport = way->transport;
    w->shape = (struct kl_fifo_shape){.nslots = SLOTS, .ll_bytes = KL_LL_LINES_BYTES, .slot_bytes = way->slot_bytes};
    if (way->slot_bytes > CELL_BYTES) w->shape.cell_bytes = CELL_BYTES, w->shape.cells = SLOTS;
    join_ranks(w);
    for (int i = 0; i < w->nconnectors; i++) w->connector[i].tx.out.nontemporal = way->nontemporal;
    assert_int_equal(kl_redop_init(&w->redop, ncclInt32, ncclSum, n), ncclSuccess);
}

static const char *label_of(const struct way *way, int n)
{
    static char label[128];

    snprintf(label, sizeof label, "algorithm %d, protocol %d, %s, slots of %llu, %d ranks", (int)way->algorithm->algo,
             way->proto, way->transport->name, (unsigned long long)way->slot_bytes, n);
    return label;
}

/* ---- operations ---- */

struct call {
    int func, proto, root;
    size_t count;
    ncclRedOp_t op; /* only part of the signature, as the next field: */
    uint64_t number;
    size_t chain_bytes;
    bool in_place;
    int channels; /* one after the other, over the same edges */
};

static int32_t input(int rank, size_t i)
{
    return (int32_t)((i % 977 + 1) * (size_t)(rank + 1));
}

static size_t parts_of(bool has_parts, int n)
{
    return has_parts ? (size_t)n : 1;
}

static void fill(struct world *w, const struct call *c)
{
    const struct kl_func_info *f = &kl_func_info[c->func];

    for (int r = 0; r < w->n; r++) {
        for (size_t i = 0; i < c->count * parts_of(f->send_parts, w->n); i++) w->rank[r].send[i] = input(r, i);
        memset(w->rank[r].recv, -1, c->count * parts_of(f->recv_parts, w->n) * sizeof(int32_t));
    }
}

static struct kl_channel_work share_of(struct world *w, int r, const struct call *c)
{
    struct rank *rank = &w->rank[r];
    size_t own = (size_t)r * c->count;
    const struct kl_call call = kl_call_of(c->func, ncclInt32, c->op, c->root, c->count, 1 + c->number);
    struct kl_channel_work s = {.func = c->func,
                                .proto = c->proto,
                                .root = c->root,
                                .signature = kl_call_signature(&call),
                                .redop = kl_func_info[c->func].reduces ? &w->redop : NULL,
                                .send = rank->send,
                                .recv = rank->recv,
                                .count = c->count,
                                .end = c->count,
                                .elem_bytes = sizeof(int32_t),
                                .chain_bytes = c->chain_bytes,
                                .wide = c->proto == KL_PROTO_LL128 && kl_ll_wide_works(),
                                .scratch = rank->scratch};

    if (!c->in_place) return s;
    if (kl_func_info[c->func].send_parts) {
        s.recv = rank->send + own;
    } else {
        int32_t *place = rank->recv + (kl_func_info[c->func].recv_parts ? own : 0);
        memcpy(place, rank->send, c->count * sizeof(int32_t));
        s.send = place;
    }
    return s;
}

static void start(struct world *w, int r, const struct kl_channel_work *share)
{
    w->rank[r].share = *share;
    w->algorithm->start(w->algorithm, &w->rank[r].op, &w->rank[r].edges, &w->rank[r].share);
    w->rank[r].done = false;
}

/* Progress all in a changing order, until all are done or one has failed. */
static ncclResult_t run(struct world *w, int *failed)
{
    int left = w->n;

    while (left) {
        int begin = (int)draw(&w->seed, (uint64_t)w->n), stride = 1 + (int)draw(&w->seed, 2);
        bool moved = false;
        if (w->n % 2 == 0) stride = 1;
        for (int i = 0; i < w->n; i++) {
            int r = (begin + i * stride) % w->n;
            ncclResult_t rc = ncclSuccess;
            if (w->rank[r].done) continue;
            enum kl_progress got = w->algorithm->progress(&w->rank[r].op, &rc);
            if (rc) {
                assert_non_null(failed); /* else it has to work */
                *failed = r;
                return rc;
            }
            moved |= got != KL_STALLED;
            if (got == KL_DONE) w->rank[r].done = true, left--;
        }
        if (!moved) return ncclInProgress; /* it hangs */
    }
    return ncclSuccess;
}

#endif
