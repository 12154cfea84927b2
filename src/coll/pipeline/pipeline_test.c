/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row that the pipeline runs, over real fifos: many ranks in one thread, progressed in a changing order, or a thread
 * for each; every protocol; slots, also with non-temporal stores, lines and zero-copy steps; in place or not.
 */
#include "coll/pipeline/pipeline.h"

#include "coll/pipeline/test_pipeline_ranks.h"

#include <pthread.h>
#include <sched.h>

static int32_t sum(int n, size_t i)
{
    return (int32_t)((i % 977 + 1) * (size_t)(n * (n + 1) / 2));
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
    struct kl_partition partition = {.nchannels = c->channels, .lo = c->count};
    struct kl_channel_work share[MAX_RANKS];

    if (c->channels == 2)
        partition = (struct kl_partition){.nchannels = 2, .lo = c->count / 3, .hi = c->count - c->count / 3};
    fill(w, c);
    for (int r = 0; r < w->n; r++) share[r] = share_of(w, r, c);
    for (int k = 0; k < partition.nchannels; k++) {
        for (int r = 0; r < w->n; r++) {
            kl_partition_range(&partition, k, &share[r].first, &share[r].end);
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

/* All calls without a barrier: a rank that runs ahead fills the fifos. */
static void *run_rank(void *arg)
{
    struct runner *me = arg;
    struct world *w = me->w;

    for (int i = 0; i < me->ncalls && !me->rc; i++) {
        struct kl_channel_work share = share_of(w, me->rank, &me->calls[i]);
        enum kl_progress got = KL_STALLED;
        start(w, me->rank, &share);
        while (got != KL_DONE) {
            got = w->algorithm->progress(&w->rank[me->rank].op, &me->rc);
            if (got == KL_STALLED) sched_yield();
        }
    }
    return NULL;
}

/* One of the served functions, another one each round. */
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

/* ---- arithmetic that differs between ranks ---- */

/* Each contribution is scaled once, by the rank that makes it: also a leaf's, and one that is read in place. */
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
        struct kl_channel_work share = share_of(w, r, &c);
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

/* Rooted functions go in chunks of chain_bytes, if these are less than a slot; others in chunks of a slot. */
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
                                KL_PROTO_SIMPLE, &kl_transport_shm, SMALL_SLOT, false};
        struct call c = {.func = k->func,
                         .proto = KL_PROTO_SIMPLE,
                         .root = k->root,
                         .count = 750,
                         .chain_bytes = k->chain_bytes,
                         .channels = 1};
        uint64_t steps = 0;

        set_out(w, &way, 2);
        do_call(w, &way, &c);
        for (int i = 0; i < w->rank[0].edges.nsend; i++)
            if (w->rank[0].edges.send[i]) steps += w->rank[0].edges.send[i]->tx.step;
        assert_int_equal(steps, k->steps);
        part(w);
    }
    free_world(w);
}
int main(void)
{
    const struct CMUnitTest one_thread[] = {
        cmocka_unit_test(every_row_gives_the_right_result_by_every_way),
        cmocka_unit_test(means_are_scaled_once),
        cmocka_unit_test(chains_have_small_chunks),
    };
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(threads_give_the_right_result_by_every_way),
    };
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(one_thread, NULL, NULL);

    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
