/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row that the mover carries out, over real fifos: many ranks in one thread, progressed in a changing order, or a
 * thread for each; every protocol; slots, lines and lent memory; in place or not; and all that can go wrong.
 */
#include "coll/mover.h"

#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/cut.h"
#include "coll/links.h"
#include "coll/ordered.h"
#include "coll/signature.h"
#include "graph/tree.h"
#include "tests/kolo_test.h"
#include "transport/test_join.h"

#include <pthread.h>
#include <sched.h>
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
    struct kl_links links;
    struct kl_mover op;
    struct kl_share share; /* that it carries out */
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
    struct kl_links *a = &w->rank[from].links, *b = &w->rank[to].links;
    struct kl_card card = {.version = KL_CARD_VERSION};
    struct kl_card_reply reply = {.pool_bytes = 0};

    assert_int_equal(w->transport->setup(rx, &w->shape, &card), ncclSuccess);
    assert_int_equal(test_connect(tx, &card, &reply), ncclSuccess);
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
        struct kl_links *l = &w->rank[ring[i]].links;
        l->order = calloc((size_t)n, sizeof *l->order);
        for (int k = 0; k < n; k++) l->order[k] = ring[(i + k) % n];
        l->position =
            (struct kl_position){.nranks = n, .rank = ring[i], .order = l->order, .index = kl_wrap(i - zero, n)};
        join(w, ring[i], 0, ring[(i + 1) % n], 0);
    }
}

/* Any tree whose nodes have up to three children. */
static void join_tree(struct world *w)
{
    int name[MAX_RANKS];

    shuffle(name, w->n, &w->seed);
    for (int r = 0; r < w->n; r++) w->rank[r].links.position = (struct kl_position){.nranks = w->n, .rank = r};
    for (int i = 1; i < w->n; i++) {
        int parent;
        do parent = name[draw(&w->seed, (uint64_t)i)];
        while (w->rank[parent].links.position.ndown == KL_TREE_UP);
        int child = w->rank[parent].links.position.ndown++;
        w->rank[name[i]].links.position.up = 1;
        join(w, name[i], KL_TREE_UP, parent, child);
        join(w, parent, child, name[i], KL_TREE_UP);
    }
}

static void join_pat(struct world *w, int direction)
{
    for (int r = 0; r < w->n; r++)
        w->rank[r].links.position = (struct kl_position){.nranks = w->n, .rank = r, .steps = SLOTS};
    for (int r = 0; r < w->n; r++)
        for (int k = 0; 1 << k < w->n; k++) join(w, r, k, kl_wrap(r - direction * (1 << k), w->n), k);
}

/* One dimension, or two where the ranks are no prime number. */
static void join_lines(struct world *w)
{
    int nodes = 1 + (int)draw(&w->seed, (uint64_t)w->n);

    while (w->n % nodes) nodes--;
    w->grid = kl_grid_of(w->n, nodes, w->n / nodes);
    for (int r = 0; r < w->n; r++)
        w->rank[r].links.position = (struct kl_position){.nranks = w->n, .rank = r, .index = r, .grid = &w->grid};
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
    for (int r = 0; r < w->n; r++) w->rank[r].links.position = (struct kl_position){.nranks = w->n, .rank = r};
    for (int r = 0; r < w->n; r++)
        for (int peer = 0; peer < w->n; peer++)
            if (peer != r) join(w, r, kl_ordered_edge(r, peer), peer, kl_ordered_edge(peer, r));
}

static void join_in_order(struct world *w)
{
    for (int r = 0; r < w->n; r++) w->rank[r].links.position = (struct kl_position){.nranks = w->n, .rank = r};
    for (int r = 0; r < w->n; r++) join(w, r, 0, kl_wrap(r + 1, w->n), 0);
}

static bool is_ring(const struct kl_algorithm *a)
{
    return a == &kl_algorithm_ring || a == &kl_algorithm_ring_chain;
}

static void join_ranks(struct world *w)
{
    w->nconnectors = 0;
    for (int r = 0; r < w->n; r++) w->rank[r].links = (struct kl_links){.nrecv = 0};
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
    for (int r = 0; r < w->n; r++) kl_links_fini(&w->rank[r].links);
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

/* ---- ways: which row, over what ---- */

struct way {
    const struct kl_algorithm *algorithm;
    int proto;
    const struct kl_transport *transport;
    uint64_t slot_bytes; /* in large ones chunks are lent, where memory is shared */
};

static const struct kl_algorithm *const rows[] = {
    &kl_algorithm_ring,        &kl_algorithm_ring_chain, &kl_algorithm_tree,    &kl_algorithm_pat_gather,
    &kl_algorithm_pat_scatter, &kl_algorithm_oneshot,    &kl_algorithm_ordered, &kl_algorithm_ordered_ring};
static const struct {
    const struct kl_transport *transport;
    uint64_t slot_bytes;
} links[] = {{&kl_transport_p2p, SMALL_SLOT}, {&kl_transport_p2p, LARGE_SLOT}, {&kl_transport_shm, SMALL_SLOT}};

static void for_each_way(void (*visit)(const struct way *way, void *ctx), void *ctx)
{
    FOR_EACH_CASE(row, rows)
    FOR_EACH_CASE(link, links)
    for (int proto = 0; proto < KL_PROTOS; proto++) {
        struct way way = {*row, proto, link->transport, link->slot_bytes};
        if ((*row)->protos >> proto & 1) visit(&way, ctx);
    }
}

static void set_out(struct world *w, const struct way *way, int n)
{
    w->n = n;
    w->algorithm = way->algorithm;
    w->transport = way->transport;
    w->shape = (struct kl_fifo_shape){.nslots = SLOTS, .ll_bytes = KL_LINES_LL_BYTES, .slot_bytes = way->slot_bytes};
    if (way->slot_bytes > CELL_BYTES) w->shape.cell_bytes = CELL_BYTES, w->shape.cells = SLOTS;
    join_ranks(w);
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
    ncclRedOp_t op; /* only in the signature, as is: */
    uint64_t number;
    size_t chain_bytes;
    bool in_place;
    int channels; /* one after the other, over the same links */
};

static int32_t input(int rank, size_t i)
{
    return (int32_t)((i % 977 + 1) * (size_t)(rank + 1));
}

static int32_t sum(int n, size_t i)
{
    return (int32_t)((i % 977 + 1) * (size_t)(n * (n + 1) / 2));
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

static struct kl_share share_of(struct world *w, int r, const struct call *c)
{
    struct rank *rank = &w->rank[r];
    size_t own = (size_t)r * c->count;
    const struct kl_call call = kl_call_of(c->func, ncclInt32, c->op, c->root, c->count, 1 + c->number);
    struct kl_share s = {.func = c->func,
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
                         .wide = c->proto == KL_PROTO_LL128 && kl_lines_wide_works(),
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

static void start(struct world *w, int r, const struct kl_share *share)
{
    w->rank[r].share = *share;
    w->algorithm->start(w->algorithm, &w->rank[r].op, &w->rank[r].links, &w->rank[r].share);
    w->rank[r].done = false;
}

/* In a changing order, until all are done or one has failed. */
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
                assert_non_null(failed); /* else it should have worked */
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

static int32_t wanted(const struct world *w, const struct call *c, int r, size_t i)
{
    switch (c->func) {
    case KL_FUNC_ALL_GATHER:
        return input((int)(i / c->count), i % c->count);
    case KL_FUNC_BROADCAST:
        return input(c->root, i);
    case KL_FUNC_REDUCE_SCATTER:
        return sum(w->n, (size_t)r * c->count + i);
    default:
        return sum(w->n, i);
    }
}

static void check(struct world *w, const struct way *way, const struct call *c)
{
    for (int r = 0; r < w->n; r++) {
        const int32_t *got = w->rank[r].recv;
        if (c->func == KL_FUNC_REDUCE && r != c->root) continue;
        if (c->in_place && c->func == KL_FUNC_REDUCE_SCATTER) got = w->rank[r].send + (size_t)r * c->count;
        for (size_t i = 0; i < c->count * parts_of(kl_func_info[c->func].recv_parts, w->n); i++)
            if (got[i] != wanted(w, c, r, i))
                fail_msg("%s: %s of %zu, root %d: rank %d, element %zu is %d, not %d", label_of(way, w->n),
                         kl_func_info[c->func].name, c->count, c->root, r, i, got[i], wanted(w, c, r, i));
    }
}

/* The call in shares of several channels, here one after the other. */
static void do_call(struct world *w, const struct way *way, const struct call *c)
{
    struct kl_cut cut = {.nchannels = c->channels, .lo = c->count};
    struct kl_share share[MAX_RANKS];

    if (c->channels == 2) cut = (struct kl_cut){.nchannels = 2, .lo = c->count / 3, .hi = c->count - c->count / 3};
    fill(w, c);
    for (int r = 0; r < w->n; r++) share[r] = share_of(w, r, c);
    for (int k = 0; k < cut.nchannels; k++) {
        for (int r = 0; r < w->n; r++) {
            kl_cut_range(&cut, k, &share[r].first, &share[r].end);
            start(w, r, &share[r]);
        }
        if (run(w, NULL) != ncclSuccess) fail_msg("%s: it hangs", label_of(way, w->n));
    }
    check(w, way, c);
}

static unsigned long calls;

static void do_all_calls(struct world *w, const struct way *way)
{
    static const size_t counts[] = {1, 2, 9, 26, 27, 127, 256, 257, 1000, MAX_COUNT};

    for (int func = 0; func < KL_FUNCS; func++) {
        if (!(way->algorithm->funcs >> func & 1)) continue;
        FOR_EACH_CASE(count, counts)
        for (int in_place = 0; in_place < 2; in_place++) {
            struct call c = {.func = func,
                             .proto = way->proto,
                             .root = (int)(*count % (size_t)w->n),
                             .count = *count,
                             .chain_bytes = *count % 3 ? CHAIN_BYTES : 0,
                             .in_place = in_place,
                             .channels = 1 + (int)(*count % 2)};
            do_call(w, way, &c);
            calls++;
        }
    }
}

static void do_for_all_numbers_of_ranks(const struct way *way, void *ctx)
{
    struct world *w = ctx;

    for (int n = 2; n <= MAX_RANKS; n++) {
        set_out(w, way, n);
        do_all_calls(w, way);
        part(w);
    }
}

static void every_row_gives_the_right_result_by_every_way(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(do_for_all_numbers_of_ranks, w);
    print_message("%lu operations\n", calls);
    free_world(w);
}

/* ---- a thread for each rank ---- */

struct runner {
    struct world *w;
    int rank;
    const struct call *calls;
    int ncalls;
    ncclResult_t rc;
};

/* All calls without looking at the others: who is ahead fills the fifos. */
static void *run_rank(void *arg)
{
    struct runner *me = arg;
    struct world *w = me->w;

    for (int i = 0; i < me->ncalls && !me->rc; i++) {
        struct kl_share share = share_of(w, me->rank, &me->calls[i]);
        enum kl_progress got = KL_STALLED;
        start(w, me->rank, &share);
        while (got != KL_DONE) {
            got = w->algorithm->progress(&w->rank[me->rank].op, &me->rc);
            if (got == KL_STALLED) sched_yield();
        }
    }
    return NULL;
}

/* One of those that it serves, another one each round. */
static int func_of(const struct kl_algorithm *a, int round)
{
    uint32_t funcs = a->funcs;

    for (round %= __builtin_popcount(funcs); round--;) funcs &= funcs - 1;
    return __builtin_ctz(funcs);
}

static void run_threads(const struct way *way, void *ctx)
{
    enum { CALLS = 5 };
    struct world *w = ctx;
    pthread_t thread[MAX_RANKS];
    struct runner runner[MAX_RANKS];
    struct call list[CALLS];

    set_out(w, way, 4);
    for (int round = 0; round < 5; round++) {
        const int func = func_of(way->algorithm, round);
        for (int i = 0; i < CALLS; i++)
            list[i] = (struct call){.func = func,
                                    .proto = way->proto,
                                    .root = round % w->n,
                                    .count = i % 2 ? MAX_COUNT - (size_t)i : 20 + (size_t)round,
                                    .channels = 1};
        list[CALLS - 1].count = MAX_COUNT;
        fill(w, &list[CALLS - 1]);
        for (int r = 0; r < w->n; r++) {
            runner[r] = (struct runner){.w = w, .rank = r, .calls = list, .ncalls = CALLS};
            assert_int_equal(pthread_create(&thread[r], NULL, run_rank, &runner[r]), 0);
        }
        for (int r = 0; r < w->n; r++) pthread_join(thread[r], NULL);
        for (int r = 0; r < w->n; r++) assert_int_equal(runner[r].rc, ncclSuccess);
        check(w, way, &list[CALLS - 1]);
    }
    part(w);
}

static void threads_give_the_right_result_by_every_way(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(run_threads, w);
    free_world(w);
}

/* ---- arithmetic that is not the same at all ranks ---- */

/* Each contribution is scaled by the rank that makes it, and once: also a leaf's, and what is lent. */
static void mean_is_right(const struct way *way, void *ctx)
{
    struct world *w = ctx;
    struct call c = {.func = __builtin_ctz(way->algorithm->funcs & ~(1u << KL_FUNC_BROADCAST)),
                     .proto = way->proto,
                     .count = MAX_COUNT,
                     .channels = 1};

    if (!kl_func_info[c.func].reduces) return;
    set_out(w, way, 5);
    assert_int_equal(kl_redop_init(&w->redop, ncclFloat32, ncclAvg, 5), ncclSuccess);
    for (int r = 0; r < 5; r++) {
        struct kl_share share = share_of(w, r, &c);
        float *own = (float *)(void *)w->rank[r].send;
        for (size_t i = 0; i < MAX_COUNT * 5; i++) own[i] = (float)(5 * (i % 50) * (size_t)(r + 1));
        start(w, r, &share);
    }
    assert_int_equal(run(w, NULL), ncclSuccess);
    for (size_t i = 0; i < MAX_COUNT; i++) {
        size_t at = kl_func_info[c.func].send_parts ? c.root * MAX_COUNT + i : i;
        float got = ((float *)(void *)w->rank[c.root].recv)[i], want = (float)(15 * (at % 50));
        if (got < want * 0.99999f || got > want * 1.00001f)
            fail_msg("%s: element %zu is %g, not %g", label_of(way, 5), i, (double)got, (double)want);
    }
    part(w);
}

static void means_are_scaled_once(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(mean_is_right, w);
    free_world(w);
}

/* ---- what goes wrong ---- */

static void revoke_all(struct world *w)
{
    for (int i = 0; i < w->nconnectors; i++) kl_connector_revoke(&w->connector[i]);
}

/* One rank calls with another size. Somebody fails, in words; nobody waits for ever, not even who lends memory. */
static void another_count_fails(const struct way *way, void *ctx)
{
    static const size_t pairs[][2] = {{100, 60}, {60, 100}, {MAX_COUNT, 50}, {50, MAX_COUNT}, {MAX_COUNT, 2998}};
    struct world *w = ctx;

    for (int func = 0; func < KL_FUNCS; func++) {
        if (!(way->algorithm->funcs >> func & 1)) continue;
        FOR_EACH_CASE(pair, pairs)
        {
            struct call right = {.func = func, .proto = way->proto, .count = (*pair)[0], .channels = 1}, wrong = right;
            int failed = -1, odd = 1;
            wrong.count = (*pair)[1];
            set_out(w, way, 4);
            fill(w, &right);
            for (int r = 0; r < 4; r++) {
                struct kl_share share = share_of(w, r, r == odd ? &wrong : &right);
                start(w, r, &share);
            }
            ncclResult_t rc = run(w, &failed);
            if (rc != ncclInvalidUsage)
                fail_msg("%s: %s with %zu and %zu elements: %d", label_of(way, 4), kl_func_info[func].name, (*pair)[0],
                         (*pair)[1], rc);
            assert_non_null(strstr(kl_error_text(), "different counts"));
            revoke_all(w);
            part(w);
        }
    }
}

static void different_counts_are_an_error_and_not_a_hang(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(another_count_fails, w);
    free_world(w);
}

/* The bytes are as many, but not what is called for: whoever receives them sees it before it touches them. */
static void another_call_fails(const struct way *way, void *ctx)
{
    static const size_t counts[] = {1, 100, MAX_COUNT};
    struct world *w = ctx;

    for (int func = 0; func < KL_FUNCS; func++)
        for (int what = 0; what < 2; what++) FOR_EACH_CASE(count, counts)
            {
                struct call right = {.func = func, .proto = way->proto, .count = *count, .channels = 1}, wrong = right;
                int failed = -1;
                if (!(way->algorithm->funcs >> func & 1)) continue;
                if (what)
                    wrong.number = 7;
                else
                    wrong.op = ncclMax;
                set_out(w, way, 4);
                fill(w, &right);
                for (int r = 0; r < 4; r++) {
                    struct kl_share share = share_of(w, r, r == 1 ? &wrong : &right);
                    start(w, r, &share);
                }
                ncclResult_t rc = run(w, &failed);
                if (rc != ncclInvalidUsage)
                    fail_msg("%s: %s of %zu: %d", label_of(way, 4), kl_func_info[func].name, *count, rc);
                assert_non_null(strstr(kl_error_text(), "another call"));
                revoke_all(w);
                part(w);
            }
}

static void another_call_is_an_error_before_data_are_touched(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(another_call_fails, w);
    free_world(w);
}

/* The tuner chooses by size: ranks that disagree about it may meet with different protocols. */
static void different_protocols_are_an_error_and_not_a_hang(void **state)
{
    static const size_t counts[] = {27, 256, 1000, MAX_COUNT};
    struct world *w = make_world();

    (void)state;
    FOR_EACH_CASE(link, links)
    FOR_EACH_CASE(count, counts)
    for (int odd_proto = 0; odd_proto < KL_PROTOS; odd_proto++)
        for (int proto = 0; proto < KL_PROTOS; proto++) {
            struct way way = {&kl_algorithm_ring, proto, link->transport, link->slot_bytes};
            struct call right = {.func = KL_FUNC_BROADCAST, .proto = proto, .count = *count, .channels = 1};
            struct call other = right;
            int failed = -1;
            if ((proto == KL_PROTO_SIMPLE) == (odd_proto == KL_PROTO_SIMPLE)) continue;
            other.proto = odd_proto;
            set_out(w, &way, 3);
            fill(w, &right);
            for (int r = 0; r < 3; r++) {
                struct kl_share share = share_of(w, r, r ? &right : &other);
                start(w, r, &share);
            }
            ncclResult_t rc = run(w, &failed);
            if (rc != ncclInvalidUsage)
                fail_msg("%s: %zu elements by protocols %d and %d: %d", label_of(&way, 3), *count, proto, odd_proto,
                         rc);
            assert_non_null(strstr(kl_error_text(), "same settings"));
            revoke_all(w);
            part(w);
        }
    free_world(w);
}

/* Rooted functions go in chunks of chain_bytes, if these are less than a slot; others in those of a slot. */
static void chains_have_small_chunks(void **state)
{
    static const struct {
        int func, root;
        size_t chain_bytes;
        uint64_t steps; /* that rank 0 sends, of 3,000 bytes */
    } cases[] = {
        {KL_FUNC_BROADCAST, 0, CHAIN_BYTES, 8}, {KL_FUNC_BROADCAST, 0, 0, 3}, {KL_FUNC_BROADCAST, 0, 2 * SMALL_SLOT, 3},
        {KL_FUNC_REDUCE, 1, CHAIN_BYTES, 8},    {KL_FUNC_REDUCE, 1, 0, 3},    {KL_FUNC_ALL_GATHER, 0, CHAIN_BYTES, 3},
    };
    struct world *w = make_world();

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        const struct way way = {k->func == KL_FUNC_REDUCE ? &kl_algorithm_ring_chain : &kl_algorithm_ring,
                                KL_PROTO_SIMPLE, &kl_transport_shm, SMALL_SLOT};
        struct call c = {.func = k->func,
                         .proto = KL_PROTO_SIMPLE,
                         .root = k->root,
                         .count = 750,
                         .chain_bytes = k->chain_bytes,
                         .channels = 1};
        uint64_t steps = 0;

        set_out(w, &way, 2);
        do_call(w, &way, &c);
        for (int i = 0; i < w->rank[0].links.nsend; i++)
            if (w->rank[0].links.send[i]) steps += w->rank[0].links.send[i]->tx.step;
        assert_int_equal(steps, k->steps);
        part(w);
    }
    free_world(w);
}

/* Nobody reads what was taken back; who would have read it waits to hear why. */
static void revoked_memory_is_not_read(void **state)
{
    static const struct way way = {&kl_algorithm_ring, KL_PROTO_SIMPLE, &kl_transport_p2p, LARGE_SLOT};
    struct call c = {.func = KL_FUNC_BROADCAST, .proto = KL_PROTO_SIMPLE, .count = MAX_COUNT, .channels = 1};
    struct world *w = make_world();
    ncclResult_t rc = ncclSuccess;

    (void)state;
    set_out(w, &way, 2);
    fill(w, &c);
    for (int r = 0; r < 2; r++) {
        struct kl_share share = share_of(w, r, &c);
        start(w, r, &share);
    }
    assert_int_equal(w->algorithm->progress(&w->rank[0].op, &rc), KL_MOVED); /* lent: done when it has been read */
    assert_int_equal(w->algorithm->progress(&w->rank[0].op, &rc), KL_STALLED);
    assert_int_equal(rc, ncclSuccess);
    revoke_all(w);
    for (int i = 0; i < 3; i++) assert_int_equal(w->algorithm->progress(&w->rank[1].op, &rc), KL_STALLED);
    assert_int_equal(rc, ncclSuccess);
    assert_int_equal(w->algorithm->blocked_on(&w->rank[1].op, false), 0);
    assert_int_equal(w->rank[1].recv[0], -1);
    part(w);
    free_world(w);
}

/* Progress all but one until nothing moves. */
static void run_without(struct world *w, int lazy)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < w->n; r++) {
            ncclResult_t rc = ncclSuccess;
            if (r == lazy || w->rank[r].done) continue;
            enum kl_progress got = w->algorithm->progress(&w->rank[r].op, &rc);
            assert_int_equal(rc, ncclSuccess);
            w->rank[r].done = got == KL_DONE;
            moved |= got != KL_STALLED;
        }
    }
}

/* From whoever waits, one leads to the next, and at last to the one that does nothing. */
static int end_of_the_queue(struct world *w, int r)
{
    for (int i = 0; i <= w->n && !w->rank[r].done; i++) {
        int next = w->algorithm->blocked_on(&w->rank[r].op, false);
        if (next < 0) break;
        r = next;
    }
    return r;
}

static void leave(struct world *w, int r)
{
    for (int i = 0; i < KL_EDGES_MAX; i++) {
        if (w->rank[r].links.send[i]) kl_connector_leave(w->rank[r].links.send[i]);
        if (w->rank[r].links.recv[i]) kl_connector_leave(w->rank[r].links.recv[i]);
    }
}

static void who_does_nothing_is_found(const struct way *way, void *ctx)
{
    struct world *w = ctx;

    for (int func = 0; func < KL_FUNCS; func++)
        for (int n = 2; n <= 6; n++) {
            struct call c = {.func = func, .proto = way->proto, .root = n - 1, .count = MAX_COUNT, .channels = 1};
            int lazy = n / 2, gone = -1, waiting = 0;
            if (!(way->algorithm->funcs >> func & 1)) continue;
            set_out(w, way, n);
            fill(w, &c);
            for (int r = 0; r < n; r++) {
                struct kl_share share = share_of(w, r, &c);
                start(w, r, &share);
            }
            run_without(w, lazy);
            for (int r = 0; r < n; r++) {
                if (r == lazy || w->rank[r].done) continue;
                waiting++;
                expect_case(label_of(way, n), w->algorithm->blocked_on(&w->rank[r].op, true) == -1);
                if (is_ring(way->algorithm)) expect_case(label_of(way, n), end_of_the_queue(w, r) == lazy);
            }
            leave(w, lazy);
            for (int r = 0; r < n && gone < 0; r++)
                if (r != lazy && !w->rank[r].done) gone = w->algorithm->blocked_on(&w->rank[r].op, true);
            expect_case(label_of(way, n), waiting == 0 || gone == lazy);
            revoke_all(w);
            part(w);
        }
}

static void who_is_waited_for_is_known_and_who_has_left(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(who_does_nothing_is_found, w);
    free_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_gives_the_right_result_by_every_way),
        cmocka_unit_test(threads_give_the_right_result_by_every_way),
        cmocka_unit_test(means_are_scaled_once),
        cmocka_unit_test(different_counts_are_an_error_and_not_a_hang),
        cmocka_unit_test(another_call_is_an_error_before_data_are_touched),
        cmocka_unit_test(different_protocols_are_an_error_and_not_a_hang),
        cmocka_unit_test(chains_have_small_chunks),
        cmocka_unit_test(revoked_memory_is_not_read),
        cmocka_unit_test(who_is_waited_for_is_known_and_who_has_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
