/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat over an ordinary block of memory: many ranks in one thread, progressed in a changing order, operation after operation on the
 * same memory, with every function, type and operator; and a thread per rank, which a thread sanitizer can watch.
 */
#include "coll/shm/test_shm_exchange_calls.h"

static void many_calls(int most_ranks)
{
    static struct world w;
    uint64_t seed = 1;

    for (int n = 2; n <= most_ranks; n += n < 9 ? 1 : 11) {
        size_t buffer = n < 9 ? 400000 : 40000;
        open_world(&w, n, buffer);
        for (int i = 0; i < (n < 9 ? 80 : 20); i++) {
            struct call c = draw_call(&seed, n, buffer);
            run_call(&w, &flat, &c, &seed);
        }
        close_world(&w);
    }
}

static void every_collective_is_right(void **state)
{
    (void)state;
    many_calls(MAX_RANKS);
}

static void every_collective_is_right_where_cores_are_shared(void **state)
{
    (void)state;
    oversubscribed = true;
    many_calls(6);
    oversubscribed = false;
}

static void each_type_and_operator(int nranks)
{
    static struct world w;
    uint64_t seed = 2;

    open_world(&w, nranks, 80000); /* 2,000 of the largest type, times ranks */
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int func = 0; func <= KL_FUNC_ALL_TO_ALL; func++) {
                struct call c = draw_call(&seed, nranks, 2000);
                c.func = func, c.type = (ncclDataType_t)type, c.op = (ncclRedOp_t)op;
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, nranks), ncclSuccess);
                c.in_place = c.in_place && func != KL_FUNC_ALL_TO_ALL;
                run_call(&w, &flat, &c, &seed);
            }
    close_world(&w);
}

static void every_type_and_operator(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++) each_type_and_operator(n);
}

/* ---- ranks by core ---- */

static void open_cores(struct world *w, int n, int cores, bool turns, size_t buffer)
{
    int32_t core[MAX_RANKS];

    for (int r = 0; r < n; r++) core[r] = turns ? r % cores : r / (n / cores) * (n / cores);
    oversubscribed = true;
    open_world(w, n, buffer);
    oversubscribed = false;
    for (int r = 0; r < n; r++) kl_shm_exchange_group(&w->shm[r], core);
}

/* Calls, most of them of more than a round for each piece. Returns the number that went core by core. */
static int calls_of_cores(int n, int cores, bool turns)
{
    enum { CALLS = 6, BYTES = 600000 };
    static struct world w;
    uint64_t seed = 3;
    int across = 0;

    open_cores(&w, n, cores, turns, BYTES);
    hierarchical = true;
    for (int i = 0; i < CALLS; i++) {
        struct call c = draw_call(&seed, n, BYTES);
        c.exact = true;
        if (c.op == ncclAvg && n & (n - 1)) c.op = ncclSum; /* a sixth has no exact representation */
        assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, n), ncclSuccess);
        if (draw(&seed, 4)) c.func = draw(&seed, 2) ? KL_FUNC_ALL_REDUCE : KL_FUNC_REDUCE_SCATTER;
        const size_t half = BYTES / 2 / c.redop.elem_bytes / (size_t)n;
        c.count = half + draw(&seed, half);
        run_call(&w, &flat, &c, &seed);
        across += w.op[0].hierarchical;
    }
    hierarchical = false;
    close_world(&w);
    return across;
}

static void hierarchical_results_equal_flat_results(void **state)
{
    static const struct {
        int n, cores;
    } cases[] = {{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int turns = 0; turns < 2; turns++) assert_true(calls_of_cores(cases[i].n, cases[i].cores, turns) > 1);
}

static void every_type_and_operator_hierarchically(void **state)
{
    static struct world w;
    uint64_t seed = 2;

    (void)state;
    open_cores(&w, 4, 2, true, 160000);
    hierarchical = true;
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int func = KL_FUNC_REDUCE_SCATTER; func <= KL_FUNC_ALL_REDUCE; func++) {
                struct call c = {.func = func, .type = (ncclDataType_t)type, .op = (ncclRedOp_t)op, .exact = true};
                c.in_place = draw(&seed, 2);
                c.seed = draw(&seed, UINT64_MAX);
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 4), ncclSuccess);
                c.count = (func == KL_FUNC_ALL_REDUCE ? 80000 : 10000) / c.redop.elem_bytes;
                run_call(&w, &flat, &c, &seed);
                assert_true(w.op[3].hierarchical);
            }
    hierarchical = false;
    close_world(&w);
}

/* And nothing else: by core ranks merge in another order. */
static void the_share_says_whether_it_is_hierarchical(void **state)
{
    static struct world w;
    uint64_t seed = 4;

    (void)state;
    open_cores(&w, 4, 2, true, 160000);
    for (int on = 0; on < 2; on++) {
        struct call c = {.func = KL_FUNC_REDUCE_SCATTER, .type = ncclInt32, .count = 2000, .seed = seed};
        hierarchical = on;
        assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 4), ncclSuccess);
        run_call(&w, &flat, &c, &seed);
        for (int r = 0; r < 4; r++) assert_int_equal(w.op[r].hierarchical, on);
    }
    hierarchical = false;
    close_world(&w);
}

/* ---- a rank that follows later ---- */

static enum kl_progress begin_broadcast(struct world *w, int rank, struct call *c, bool more)
{
    struct kl_channel_work s = share_of(c, rank, w->send[rank], w->recv[rank]);

    s.more = more;
    start_flat(w, rank, &s);
    return kl_flat_progress(&w->op[rank], &(ncclResult_t){ncclSuccess});
}

/* Rank 3 of four takes the root's post before rank 2 comes, which makes `first` and then the same calls. Returns rank
 * 3's last result. */
static ncclResult_t read_before_neighbour(struct call *c, struct call *first)
{
    static struct world w;
    ncclResult_t rc = ncclSuccess;

    open_world(&w, 4, 1000);
    for (int i = 0; i < KL_SHM_EXCHANGE_LAG; i++) assert_int_equal(begin_broadcast(&w, 0, c, true), KL_DONE);
    for (int i = 1; i < KL_SHM_EXCHANGE_LAG; i++) assert_int_equal(begin_broadcast(&w, 3, c, true), KL_DONE);
    assert_int_equal(begin_broadcast(&w, 3, c, false), KL_MOVED);
    assert_int_equal(go_on(&w, 3), KL_STALLED); /* the last one waits */
    assert_int_equal(kl_flat_blocked_on(&w.op[3], false), 2);
    begin_broadcast(&w, 2, first, true);
    for (int i = 1; i < KL_SHM_EXCHANGE_LAG; i++) begin_broadcast(&w, 2, c, true);
    assert_int_equal(kl_flat_progress(&w.op[3], &rc), KL_DONE);
    close_world(&w);
    return rc;
}

static void readers_compare_calls_later(void **state)
{
    struct call c = {.func = KL_FUNC_BROADCAST, .type = ncclInt8, .count = 8, .seed = 7}, other = c;

    (void)state;
    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 3), ncclSuccess);
    other = c;
    other.root = 2; /* itself */
    other.seed = 8;
    assert_int_equal(read_before_neighbour(&c, &c), ncclSuccess);
    kl_error_quiet(1);
    assert_int_equal(read_before_neighbour(&c, &other), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "rank 2 sent data of another call"));
    kl_error_quiet(0);
}

/* Of two ranks. */
static struct call broadcast_of(int root)
{
    struct call c = {.func = KL_FUNC_BROADCAST, .type = ncclInt8, .count = 8, .root = root, .seed = 7 + (unsigned)root};

    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 2), ncclSuccess);
    return c;
}

/* A rank that takes no data does not look at lines that its neighbour may be writing, but compares calls when the
 * neighbour is near, once in 8 rounds. */
static void a_root_ahead_compares_when_its_neighbour_is_near(void **state)
{
    static struct world w;
    struct call c = broadcast_of(0), other = broadcast_of(1); /* the root takes no data */
    struct kl_channel_work s;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_world(&w, 2, 1000);
    for (int i = 0; i < 14; i++) assert_int_equal(begin_broadcast(&w, 0, &c, false), KL_DONE);
    for (int i = 0; i < 7; i++) assert_int_equal(begin_broadcast(&w, 1, &c, true), KL_DONE);
    assert_int_equal(begin_broadcast(&w, 0, &c, false), KL_DONE);
    assert_int_equal(w.shm[0].compared, 0);
    for (int i = 7; i < 14; i++) assert_int_equal(begin_broadcast(&w, 1, &c, true), KL_DONE);
    kl_error_quiet(1);
    begin_broadcast(&w, 1, &other, true); /* the fifteenth */
    s = share_of(&c, 0, w.send[0], w.recv[0]);
    start_flat(&w, 0, &s);
    assert_int_equal(kl_flat_progress(&w.op[0], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    kl_error_quiet(0);
    close_world(&w);
}

/* A rank that has not run ahead detects it at once. */
static void the_later_one_of_two_roots_sees_the_other(void **state)
{
    static struct world w;
    struct call c = broadcast_of(0), other = broadcast_of(1);
    struct kl_channel_work s;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_world(&w, 2, 1000);
    assert_int_equal(begin_broadcast(&w, 1, &other, false), KL_DONE);
    s = share_of(&c, 0, w.send[0], w.recv[0]);
    start_flat(&w, 0, &s);
    kl_error_quiet(1);
    assert_int_equal(kl_flat_progress(&w.op[0], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    kl_error_quiet(0);
    close_world(&w);
}

/* ---- errors ---- */

static void another_call_is_refused_before_data_are_touched(void **state)
{
    static struct world w;
    struct call c = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 8, .seed = 9};
    ncclResult_t rc = ncclSuccess;

    (void)state;
    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 2), ncclSuccess);
    open_world(&w, 2, 1000);
    memset(w.recv[0], 0x5a, 64);
    for (int r = 0; r < 2; r++) {
        struct kl_channel_work s = share_of(&c, r, w.send[r], w.recv[r]);
        s.signature += (uint64_t)r;
        start_flat(&w, r, &s);
    }
    assert_int_equal(go_on(&w, 0), KL_MOVED);
    assert_int_equal(kl_flat_blocked_on(&w.op[0], false), 1);
    kl_error_quiet(1);
    assert_int_equal(kl_flat_progress(&w.op[1], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "rank 0 sent data of another call than rank 1"));
    rc = ncclSuccess;
    assert_int_equal(kl_flat_progress(&w.op[0], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    kl_error_quiet(0);
    assert_int_equal(w.recv[0][0], 0x5a);
    close_world(&w);
}

struct size_case {
    const char *text;
    int func;
    size_t posted, expected;
};

static void refuse_another_size(const struct size_case *k)
{
    static struct world w;
    struct call c = {.func = k->func, .type = ncclInt8, .root = k->func == KL_FUNC_BROADCAST ? 1 : 0};
    ncclResult_t rc = ncclSuccess;

    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 2), ncclSuccess);
    open_world(&w, 2, 4000);
    memset(w.recv[0], 0x5a, 2000);
    for (int r = 0; r < 2; r++) {
        c.count = c.seed = r ? k->posted : k->expected;
        struct kl_channel_work s = share_of(&c, r, w.send[r], w.recv[r]);
        start_flat(&w, r, &s);
    }
    (void)kl_flat_progress(&w.op[1], &rc);
    for (int i = 0; i < 2 * KL_SHM_EXCHANGE_MISSES && !rc; i++) (void)kl_flat_progress(&w.op[0], &rc);
    expect_case(k->text, rc == ncclInvalidUsage && w.recv[0][0] == 0x5a);
    close_world(&w);
}

/* A post at another place than the reader's, as may be where cores are shared, is found all the same, after a while,
 * and is not taken for data that do not come. */
static void another_size_is_refused(void **state)
{
    static const struct size_case cases[] = {
        {"more than is brief", KL_FUNC_BROADCAST, 64, 8},
        {"brief", KL_FUNC_BROADCAST, 8, 64},
        {"as much as a cell takes", KL_FUNC_BROADCAST, 1000, 64},
        {"no cell", KL_FUNC_REDUCE, 64, 1000},
        {"more of all contributions", KL_FUNC_ALL_GATHER, 1000, 64},
    };

    (void)state;
    kl_error_quiet(1);
    for (int shared = 0; shared < 2; shared++) {
        oversubscribed = shared;
        FOR_EACH_CASE(k, cases) refuse_another_size(k);
    }
    oversubscribed = false;
    kl_error_quiet(0);
}

/* No rank takes the posts of ranks that name another root, but a neighbour sees the difference. */
static void one_of_ranks_that_name_different_roots_finds_out(void **state)
{
    static const struct roots_case {
        const char *text;
        int func, n, root[3];
    } cases[] = {
        {"one of three", KL_FUNC_BROADCAST, 3, {0, 1, 0}},
        {"each itself, of two", KL_FUNC_BROADCAST, 2, {0, 1}},
        {"each itself, of three", KL_FUNC_BROADCAST, 3, {0, 1, 2}},
        {"each the other", KL_FUNC_REDUCE, 2, {1, 0}},
        {"one of three, reducing", KL_FUNC_REDUCE, 3, {0, 1, 0}},
    };

    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(k, cases)
    {
        static struct world w;
        struct call c = {.func = k->func, .type = ncclFloat32, .count = 8};
        int refused = 0;

        assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, k->n), ncclSuccess);
        open_world(&w, k->n, 1000);
        for (int r = 0; r < k->n; r++) {
            c.root = k->root[r];
            c.seed = (uint64_t)c.root;
            struct kl_channel_work s = share_of(&c, r, w.send[r], w.recv[r]);
            start_flat(&w, r, &s);
        }
        for (int r = 0, turns = 0; turns < 2 * k->n; turns++, r = (r + 1) % k->n) {
            ncclResult_t rc = ncclSuccess;
            if (kl_flat_progress(&w.op[r], &rc) == KL_DONE) refused += rc == ncclInvalidUsage;
        }
        expect_case(k->text, refused > 0);
        close_world(&w);
    }
    kl_error_quiet(0);
}

static void a_departed_rank_is_named(void **state)
{
    static struct world w;
    struct call c = {.func = KL_FUNC_ALL_GATHER, .type = ncclFloat32, .count = 8, .seed = 9};

    (void)state;
    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 3), ncclSuccess);
    open_world(&w, 3, 1000);
    struct kl_channel_work s = share_of(&c, 0, w.send[0], w.recv[0]);
    start_flat(&w, 0, &s);
    assert_int_equal(go_on(&w, 0), KL_MOVED);
    kl_store_release(&w.mark[1].left, 1);
    assert_int_equal(kl_flat_blocked_on(&w.op[0], true), 1);
    close_world(&w);
}

/* ---- a thread per rank ---- */

static void threads_of_two_cores_agree(void **state)
{
    static struct world w;

    (void)state;
    open_cores(&w, THREADS, 2, true, THREADS_BYTES);
    run_threads(&w, &flat);
    close_world(&w);
}

static void threads_agree(void **state)
{
    static struct world w;

    (void)state;
    open_world(&w, THREADS, THREADS_BYTES);
    run_threads(&w, &flat);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest one_thread[] = {
        cmocka_unit_test(every_collective_is_right),
        cmocka_unit_test(every_collective_is_right_where_cores_are_shared),
        cmocka_unit_test(every_type_and_operator),
        cmocka_unit_test(readers_compare_calls_later),
        cmocka_unit_test(a_root_ahead_compares_when_its_neighbour_is_near),
        cmocka_unit_test(the_later_one_of_two_roots_sees_the_other),
        cmocka_unit_test(another_call_is_refused_before_data_are_touched),
        cmocka_unit_test(another_size_is_refused),
        cmocka_unit_test(one_of_ranks_that_name_different_roots_finds_out),
        cmocka_unit_test(a_departed_rank_is_named),
        cmocka_unit_test(hierarchical_results_equal_flat_results),
        cmocka_unit_test(every_type_and_operator_hierarchically),
        cmocka_unit_test(the_share_says_whether_it_is_hierarchical),
    };
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(threads_of_two_cores_agree),
    };
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(one_thread, NULL, NULL);

    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
