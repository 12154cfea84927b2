/* SPDX-License-Identifier: Apache-2.0 */
/**
 * test_shm_exchange_calls.h - for tests of algorithms over a shared-memory exchange: ranks in one thread, calls chosen by a seed, and their expected results.
 */
#ifndef KL_COLL_SHM_TEST_SHM_EXCHANGE_CALLS_H
#define KL_COLL_SHM_TEST_SHM_EXCHANGE_CALLS_H

#include "base/error.h"
#include "base/hash.h"
#include "coll/shm/flat.h"
#include "coll/pipeline/pipeline.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MAX_RANKS = KL_SHM_EXCHANGE_RANKS, GUARD = 64 };

static inline uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* ---- ranks ---- */

struct world {
    int n;
    void *memory; /* of the exchange */
    struct kl_arena_mark *mark;
    struct kl_shm_exchange shm[MAX_RANKS];
    struct kl_flat_op op[MAX_RANKS];
    struct kl_channel_work share[MAX_RANKS]; /* that the ranks carry out */
    char *send[MAX_RANKS], *recv[MAX_RANKS], *want;
};

static bool oversubscribed; /* exchanges of worlds that are opened: ranks share cores */
static bool hierarchical;   /* calls go by core where they can */
static char scratch[MAX_RANKS][KL_SCRATCH_BYTES];

static inline void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(KL_LINE, (bytes + KL_LINE - 1) / KL_LINE * KL_LINE);

    assert_non_null(memory);
    return memset(memory, 0, bytes);
}

static inline void open_world(struct world *w, int n, size_t buffer)
{
    *w = (struct world){
        .n = n, .memory = zeroed(kl_shm_exchange_bytes(n)), .mark = zeroed((size_t)n * sizeof(struct kl_arena_mark))};
    for (int r = 0; r < n; r++) {
        kl_shm_exchange_init(&w->shm[r], n, r, oversubscribed);
        kl_shm_exchange_attach(&w->shm[r], w->memory, w->mark);
        w->send[r] = zeroed(buffer + GUARD);
        w->recv[r] = zeroed(buffer + GUARD);
    }
    w->want = zeroed(buffer + GUARD);
}

static inline void close_world(struct world *w)
{
    for (int r = 0; r < w->n; r++) free(w->send[r]), free(w->recv[r]);
    free(w->want);
    free(w->memory);
    free(w->mark);
}

/* ---- a call: chosen by a seed, so that all ranks agree on it ---- */

struct call {
    int func, root;
    ncclDataType_t type;
    ncclRedOp_t op;
    struct kl_redop redop;
    size_t count;
    bool in_place;
    bool exact; /* numbers whose order does not matter when they are merged */
    uint64_t seed, number;
};

static inline size_t draw_count(uint64_t *seed, size_t most)
{
    const size_t likely[] = {8, 200, most, most}, limit = likely[draw(seed, 4)];

    return 1 + draw(seed, limit < most ? limit : most);
}

static inline struct call draw_call(uint64_t *seed, int n, size_t buffer)
{
    struct call c = {.func = (int)draw(seed, KL_FUNC_ALL_TO_ALL + 1),
                     .root = (int)draw(seed, (uint64_t)n),
                     .type = (ncclDataType_t)draw(seed, ncclNumTypes),
                     .op = (ncclRedOp_t)draw(seed, ncclNumOps),
                     .in_place = draw(seed, 2)};
    size_t parts = kl_func_bytes(c.func, 1, n);

    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, n), ncclSuccess);
    c.count = draw_count(seed, buffer / c.redop.elem_bytes / parts - 1);
    c.in_place = c.in_place && c.func != KL_FUNC_ALL_TO_ALL;
    c.seed = *seed;
    return c;
}

static inline size_t part_bytes(const struct call *c)
{
    return c->count * c->redop.elem_bytes;
}

static inline size_t send_bytes(const struct call *c, int n)
{
    return part_bytes(c) * (kl_func_info[c->func].send_parts ? (size_t)n : 1);
}

/* Bytes that this rank must get. */
static inline size_t result_bytes(const struct call *c, int n, int rank)
{
    if (c->func == KL_FUNC_REDUCE && rank != c->root) return 0;
    return part_bytes(c) * (kl_func_info[c->func].recv_parts ? (size_t)n : 1);
}

/* The bits of 1 and of 2; integers are filled with any bits, as they wrap. */
static const uint64_t exact_bits[ncclNumTypes][2] = {
    [ncclFloat16] = {0x3c00, 0x4000},         [ncclBfloat16] = {0x3f80, 0x4000},
    [ncclFloat32] = {0x3f800000, 0x40000000}, [ncclFloat64] = {0x3ffull << 52, 1ull << 62},
    [ncclFloat8e4m3] = {0x38, 0x40},          [ncclFloat8e5m2] = {0x3c, 0x40},
};

/* 0, 1 and, of few ranks, 2: sums, products and means of these have no rounding. */
static inline void fill_exactly(const struct call *c, int n, uint64_t seed, char *send)
{
    const size_t elem = c->redop.elem_bytes, count = send_bytes(c, n) / elem;

    for (size_t i = 0; i < count; i++) {
        const uint64_t value = draw(&seed, n > 4 ? 2 : 3);
        uint64_t bits = value ? exact_bits[c->type][value - 1] : 0;
        memcpy(send + i * elem, &bits, elem); /* the low bytes */
    }
}

/* Any bits: types take them as they are, and sums of them round and saturate. */
static inline void fill(const struct call *c, int n, int rank, char *send)
{
    uint64_t seed = c->seed + (uint64_t)rank * 1000003;
    size_t bytes = send_bytes(c, n);

    if (c->exact && exact_bits[c->type][0]) return fill_exactly(c, n, seed, send);
    for (size_t i = 0; i < bytes; i += sizeof seed) {
        uint64_t bits = draw(&seed, UINT64_MAX);
        memcpy(send + i, &bits, bytes - i < sizeof bits ? bytes - i : sizeof bits);
    }
}

static inline struct kl_channel_work share_of(const struct call *c, int rank, char *send, char *recv)
{
    struct kl_channel_work s = {.func = c->func,
                                .root = c->root,
                                .signature = c->seed,
                                .redop = kl_func_info[c->func].reduces ? &c->redop : NULL,
                                .send = send,
                                .recv = recv,
                                .count = c->count,
                                .end = c->count,
                                .elem_bytes = c->redop.elem_bytes,
                                .hierarchical = hierarchical,
                                .scratch = scratch[rank]};

    if (!c->in_place) return s;
    if (c->func == KL_FUNC_REDUCE_SCATTER) {
        s.recv = send + (size_t)rank * part_bytes(c);
    } else {
        char *at = recv + (c->func == KL_FUNC_ALL_GATHER ? (size_t)rank * part_bytes(c) : 0);
        memcpy(at, send, part_bytes(c));
        s.send = at;
    }
    return s;
}

/* ---- what must come out ---- */

/* What all bring from `skip` bytes on, merged in the order of ranks. */
static inline void merge_all(const struct call *c, const struct world *w, size_t skip, char *out)
{
    char *next = malloc(part_bytes(c));

    assert_non_null(next);
    for (int r = 0; r < w->n; r++) {
        char *to = r ? next : out;
        if (c->redop.first)
            c->redop.first(&c->redop, to, w->send[r] + skip, c->count);
        else
            memcpy(to, w->send[r] + skip, part_bytes(c));
        if (r) c->redop.merge(&c->redop, out, out, next, c->count);
    }
    if (c->redop.last) c->redop.last(&c->redop, out, c->count);
    free(next);
}

static inline void make_want(const struct call *c, struct world *w, int rank)
{
    const size_t part = part_bytes(c);

    if (c->func == KL_FUNC_BROADCAST)
        memcpy(w->want, w->send[c->root], part);
    else if (c->func == KL_FUNC_ALL_GATHER)
        for (int r = 0; r < w->n; r++) memcpy(w->want + (size_t)r * part, w->send[r], part);
    else if (c->func == KL_FUNC_ALL_TO_ALL)
        for (int r = 0; r < w->n; r++) memcpy(w->want + (size_t)r * part, w->send[r] + (size_t)rank * part, part);
    else
        merge_all(c, w, c->func == KL_FUNC_REDUCE_SCATTER ? (size_t)rank * part : 0, w->want);
}

/* ---- many ranks in one thread ---- */

static inline void start_all(struct world *w, const struct call *c, struct kl_channel_work *shares)
{
    for (int r = 0; r < w->n; r++) {
        fill(c, w->n, r, w->send[r]);
        memset(w->recv[r], 0x5a, result_bytes(c, w->n, r) + GUARD);
        shares[r] = share_of(c, r, w->send[r], w->recv[r]);
    }
}

/* How an operation of a rank begins and goes on. */
struct engine {
    void (*start)(struct world *w, int rank, const struct kl_channel_work *share);
    enum kl_progress (*progress)(struct world *w, int rank, ncclResult_t *rc);
};

/* Until all are done, in random order: a rank may begin when others are far behind, or done. */
static inline void run_all(struct world *w, const struct engine *engine, const struct kl_channel_work *shares,
                           uint64_t *seed)
{
    enum { FRESH, BEGUN, DONE } state[MAX_RANKS] = {FRESH};
    int left = w->n, idle = 0;

    while (left) {
        int r = (int)draw(seed, (uint64_t)w->n);
        ncclResult_t rc = ncclSuccess;
        if (state[r] == DONE) continue;
        if (state[r] == FRESH) engine->start(w, r, &shares[r]);
        state[r] = BEGUN;
        enum kl_progress p = engine->progress(w, r, &rc);
        if (rc) fail_msg("%s", kl_error_text());
        if (p == KL_DONE) state[r] = DONE, left--;
        idle = p == KL_STALLED ? idle + 1 : 0;
        assert_true(idle < 4000 + 200 * w->n); /* else it hangs */
    }
}

static inline void check(struct world *w, const struct call *c, const struct kl_channel_work *shares)
{
    for (int r = 0; r < w->n; r++) fill(c, w->n, r, w->send[r]); /* some have been written over, in place */
    for (int r = 0; r < w->n; r++) {
        make_want(c, w, r);
        if (memcmp(shares[r].recv, w->want, result_bytes(c, w->n, r)))
            fail_msg("function %d of %zu %s %s over %d ranks, root %d%s: rank %d is wrong", c->func, c->count,
                     kl_type_name(c->type), kl_redop_name(c->op), w->n, c->root, c->in_place ? ", in place" : "", r);
        if (!c->in_place && w->recv[r][result_bytes(c, w->n, r)] != 0x5a)
            fail_msg("function %d of %zu elements: rank %d wrote behind its result", c->func, c->count, r);
    }
}

static inline void run_call(struct world *w, const struct engine *engine, const struct call *c, uint64_t *seed)
{
    static struct kl_channel_work shares[MAX_RANKS];

    start_all(w, c, shares);
    run_all(w, engine, shares, seed);
    for (int r = 0; r < w->n && c->in_place && c->func == KL_FUNC_REDUCE_SCATTER; r++)
        shares[r].recv = memcpy(w->recv[r], shares[r].recv, part_bytes(c));
    check(w, c, shares);
}

/* ---- Flat ---- */

static inline void start_flat(struct world *w, int rank, const struct kl_channel_work *share)
{
    w->share[rank] = *share;
    kl_flat_start(&w->op[rank], &w->shm[rank], &w->share[rank]);
}

static inline enum kl_progress progress_flat(struct world *w, int rank, ncclResult_t *rc)
{
    return kl_flat_progress(&w->op[rank], rc);
}

static const struct engine flat = {start_flat, progress_flat};

static inline enum kl_progress go_on(struct world *w, int rank)
{
    ncclResult_t rc = ncclSuccess;
    enum kl_progress p = kl_flat_progress(&w->op[rank], &rc);

    assert_int_equal(rc, ncclSuccess);
    return p;
}

/* ---- a thread per rank ---- */

enum { THREADS = 4, THREADS_CALLS = 300, THREADS_BYTES = 400000 };

struct thread {
    struct world *w;
    const struct engine *engine;
    int rank;
    uint64_t seen; /* of results that are the same everywhere */
    bool failed;
};

static inline bool is_everywhere(int func)
{
    return func == KL_FUNC_ALL_REDUCE || func == KL_FUNC_ALL_GATHER || func == KL_FUNC_BROADCAST;
}

static inline struct call draw_thread_call(uint64_t *seed)
{
    struct call c = draw_call(seed, THREADS, THREADS_BYTES);

    c.in_place = false;
    c.exact = true;
    return c;
}

static inline void *run_thread(void *arg)
{
    struct thread *t = arg;
    struct world *w = t->w;
    uint64_t seed = 5;

    for (int i = 0; i < THREADS_CALLS && !t->failed; i++) {
        struct call c = draw_thread_call(&seed);
        ncclResult_t rc = ncclSuccess;
        fill(&c, THREADS, t->rank, w->send[t->rank]);
        struct kl_channel_work s = share_of(&c, t->rank, w->send[t->rank], w->recv[t->rank]);
        t->engine->start(w, t->rank, &s);
        while (t->engine->progress(w, t->rank, &rc) != KL_DONE) sched_yield();
        t->failed = rc != ncclSuccess;
        if (is_everywhere(c.func)) t->seen = kl_hash_add(t->seen, w->recv[t->rank], result_bytes(&c, THREADS, t->rank));
    }
    return NULL;
}

/* In a world of THREADS ranks and THREADS_BYTES: all get the same, and the last call is right. */
static inline void run_threads(struct world *w, const struct engine *engine)
{
    struct thread thread[THREADS];
    pthread_t id[THREADS];
    uint64_t seed = 5;
    struct call last;

    for (int r = 0; r < THREADS; r++) {
        thread[r] = (struct thread){.w = w, .engine = engine, .rank = r};
        assert_int_equal(pthread_create(&id[r], NULL, run_thread, &thread[r]), 0);
    }
    for (int r = 0; r < THREADS; r++) assert_int_equal(pthread_join(id[r], NULL), 0);
    for (int i = 0; i < THREADS_CALLS; i++) last = draw_thread_call(&seed);
    for (int r = 0; r < THREADS; r++) {
        assert_false(thread[r].failed);
        assert_true(thread[r].seen == thread[0].seen);
        make_want(&last, w, r);
        assert_memory_equal(w->recv[r], w->want, result_bytes(&last, THREADS, r));
    }
}

#endif
