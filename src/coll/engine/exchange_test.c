/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of messages between ranks in one thread, over real connections that are made meanwhile. */
#include "coll/engine/exchange.h"

#include "channel/test_ranks.h"
#include "coll/schedule/func.h"

enum { MOST_TASKS = 4096 };

static struct test_ranks ranks;

/* A rank's actions in a launch. */
static struct party {
    struct kl_exchange exchange;
    struct kl_task task[MOST_TASKS];
    int ntasks;
    bool done;
} party[TEST_RANKS];

/* ---- parties ---- */

static struct kl_zcopy_config zcopy = {.maps = true, .reads = true};
static struct kl_select table;

static void make_parties(int n)
{
    for (int r = 0; r < n; r++) {
        struct kl_p2p_round rounds[TEST_RANKS];
        for (int i = 0; i < n; i++) rounds[i] = (struct kl_p2p_round){.send = (r + i) % n, .recv = (r + n - i) % n};
        assert_int_equal(kl_exchange_init(&party[r].exchange, r, n, ranks.rank[r].connections, rounds, &zcopy, &table),
                         ncclSuccess);
        assert_int_equal(kl_exchange_reserve(&party[r].exchange, MOST_TASKS), ncclSuccess);
        party[r].ntasks = 0;
    }
}

static void free_parties(void)
{
    for (int r = 0; r < ranks.n; r++) kl_exchange_fini(&party[r].exchange);
}

static void begin_job(int n, const struct kl_transport *(*transport)(int, int))
{
    test_ranks_join(&ranks, n);
    ranks.transport = transport;
    test_connections_create(&ranks, 128);
    make_parties(n);
}

static void end_job(void)
{
    free_parties();
    test_connections_free(&ranks);
    test_ranks_leave(&ranks);
}

/* ---- a launch ---- */

static void ask(int rank, int func, int peer, void *data, size_t bytes)
{
    struct party *p = &party[rank];

    assert_true(p->ntasks < MOST_TASKS);
    p->task[p->ntasks++] =
        (struct kl_task){.func = func, .type = ncclInt8, .peer = peer, .count = bytes, .send = data, .recv = data};
}

static void pass(int from, int to, void *out, void *in, size_t bytes)
{
    ask(from, KL_FUNC_SEND, to, out, bytes);
    ask(to, KL_FUNC_RECV, from, in, bytes);
}

static void add_all(int rank)
{
    struct party *p = &party[rank];

    for (int i = 0; i < p->ntasks; i++) assert_int_equal(kl_exchange_add(&p->exchange, &p->task[i], 1), ncclSuccess);
    p->done = false;
}

/* Nothing of the launch is left, and nothing points to its tasks. */
static void expect_nothing_under_way(int rank)
{
    const struct kl_exchange *x = &party[rank].exchange;

    assert_true(!x->n && !x->added && !x->hot && !x->unready && !x->begun);
    for (int peer = 0; peer < ranks.n; peer++) assert_true(!x->to[peer].last && !x->from[peer].last);
}

static void end_launch(int rank)
{
    kl_exchange_reset(&party[rank].exchange);
    expect_nothing_under_way(rank);
    party[rank].ntasks = 0;
}

/* A poll of a rank; its result. */
static ncclResult_t poll(int rank, bool *moved)
{
    ncclResult_t rc = ncclSuccess;
    enum kl_progress got = kl_exchange_progress(&party[rank].exchange, &rc);

    *moved |= got != KL_STALLED;
    party[rank].done = got == KL_DONE;
    return rc;
}

/* Run all ranks to the end of their launch. */
static void launch(void)
{
    struct test_waiting waiting = {0};
    int left = ranks.n;

    for (int r = 0; r < ranks.n; r++) add_all(r);
    while (left) {
        bool moved = false;
        left = 0;
        for (int r = 0; r < ranks.n; r++) {
            if (!party[r].done) assert_int_equal(poll(r, &moved), ncclSuccess);
            left += !party[r].done;
        }
        test_wait(&waiting, moved, "a launch");
    }
    for (int r = 0; r < ranks.n; r++) end_launch(r);
}

/* ---- data ---- */

static void fill(unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(seed * 31 + i * 7 + i / 253);
}

static void expect_filled(const unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(seed * 31 + i * 7 + i / 253))
            fail_msg("byte %zu of message %u with %zu bytes is wrong", i, seed, bytes);
}

/* ---- many ---- */

struct parcel {
    unsigned char *out, *in;
    size_t bytes;
    int from, to;
};

static size_t draw_bytes(void)
{
    static const size_t most[] = {1, 105, 1100, 5000, 5000, 70000};

    return test_draw(&ranks.seed, most[test_draw(&ranks.seed, 6)]);
}

/* Every rank with every rank, itself included, in random order: receives may be issued before or after the sends. */
static void exchange_at_random(struct parcel *parcels, int n)
{
    for (int i = 0; i < n; i++) {
        struct parcel *p = &parcels[i];
        *p = (struct parcel){.bytes = draw_bytes(),
                             .from = (int)test_draw(&ranks.seed, (uint64_t)ranks.n),
                             .to = (int)test_draw(&ranks.seed, (uint64_t)ranks.n)};
        p->out = malloc(p->bytes + 1);
        p->in = calloc(1, p->bytes + 1);
        fill(p->out, p->bytes, (unsigned)i);
    }
    for (int i = 0; i < n; i += 50) { /* sends of fifty, then their receives, or the other way round */
        bool sends_first = test_draw(&ranks.seed, 2);
        for (int half = 0; half < 2; half++)
            for (int k = i; k < i + 50 && k < n; k++) {
                struct parcel *p = &parcels[k];
                if ((half == 0) == sends_first)
                    ask(p->from, KL_FUNC_SEND, p->to, p->out, p->bytes);
                else
                    ask(p->to, KL_FUNC_RECV, p->from, p->in, p->bytes);
            }
    }
    launch();
    for (int i = 0; i < n; i++) {
        expect_filled(parcels[i].in, parcels[i].bytes, (unsigned)i);
        free(parcels[i].out);
        free(parcels[i].in);
    }
}

static void thousands_of_messages_arrive_each_where_it_belongs(void **state)
{
    enum { PARCELS = 4000 };
    static const struct kl_transport *(*const transports[])(int, int) = {test_all_p2p, test_all_shm, test_mixed};
    struct parcel *parcels = calloc(PARCELS, sizeof *parcels);

    (void)state;
    FOR_EACH_CASE(t, transports)
    {
        begin_job(7, *t);
        for (int i = 0; i < 3; i++) exchange_at_random(parcels, i ? PARCELS : 60);
        end_job();
    }
    free(parcels);
}

/* More connectors than are polled at a time; and most of them idle while a few work hard. */
static void busy_messages_are_not_held_up_by_idle_ones(void **state)
{
    enum { RANKS = 40, ROUNDS = 30, BYTES = 3000 };
    static unsigned char out[RANKS][BYTES], in[RANKS][2][BYTES], late[RANKS][BYTES];
    struct test_waiting waiting = {0};
    bool moved = false;
    size_t most_hot = 0;

    (void)state;
    begin_job(RANKS, test_mixed);
    for (int r = 1; r < RANKS; r++) { /* connect */
        fill(out[r], BYTES, (unsigned)r);
        pass(r, 0, out[r], in[r][0], BYTES);
        pass(0, r, out[r], in[r][1], BYTES);
    }
    launch();
    for (int r = 1; r < RANKS;
         r++) { /* rank 0 waits for all; only ranks 5 and 23 have much data, the others come late */
        int messages = r == 5 || r == 23 ? ROUNDS : 1;
        for (int i = 0; i < messages; i++) pass(r, 0, out[r], late[r], BYTES);
    }
    add_all(0), add_all(5), add_all(23);
    for (int left = 2; left;) {
        moved = false;
        assert_int_equal(poll(0, &moved), ncclSuccess);
        left = 0;
        for (int r = 5; r <= 23; r += 18) {
            if (!party[r].done) assert_int_equal(poll(r, &moved), ncclSuccess);
            left += !party[r].done;
        }
        test_wait(&waiting, moved, "the busy ones");
    }
    for (int i = 0; i < 5000; i++) assert_int_equal(poll(0, &moved), ncclSuccess);
    most_hot = party[0].exchange.hot;
    assert_in_range(most_hot, 0, 32); /* messages that do not move are not polled each time */
    assert_int_equal(party[0].exchange.n, RANKS - 1 - 2);
    int waited_for = kl_exchange_blocked_on(&party[0].exchange, false);
    assert_true(waited_for > 0 && waited_for != 5 && waited_for != 23);
    for (int r = 1; r < RANKS; r++)
        if (r != 5 && r != 23) add_all(r);
    waiting = (struct test_waiting){0};
    while (!party[0].done) {
        moved = false;
        for (int r = 0; r < RANKS; r++)
            if (!party[r].done) assert_int_equal(poll(r, &moved), ncclSuccess);
        test_wait(&waiting, moved, "the late ones");
    }
    for (int r = 1; r < RANKS; r++) expect_filled(late[r], BYTES, (unsigned)r);
    for (int r = 0; r < RANKS; r++) end_launch(r);
    end_job();
}

/* ---- order ---- */

static void messages_begin_in_the_order_of_their_rounds(void **state)
{
    enum { RANKS = 40 };
    static unsigned char out[RANKS], in[RANKS];
    struct kl_exchange *x = &party[3].exchange;
    bool moved = false;

    (void)state;
    begin_job(RANKS, test_all_p2p);
    for (int few = 0; few < 2; few++) { /* sorted by hand, or not */
        for (int r = few ? 20 : 0; r < RANKS; r++) {
            if (r == 3) continue;
            ask(3, KL_FUNC_SEND, r, &out[r], 1);
            ask(3, KL_FUNC_RECV, r, &in[r], 1);
        }
        add_all(3);
        assert_int_equal(poll(3, &moved), ncclSuccess); /* there is no peer to finish one with */
        assert_int_equal(x->n, party[3].ntasks);
        for (size_t i = 1; i < x->n; i++) assert_true(x->active[i - 1]->round <= x->active[i]->round);
        assert_int_equal(x->active[0]->round, few ? 4 : 1);
        assert_int_equal(kl_exchange_blocked_on(x, true), -1);
        end_launch(3);
    }
    end_job();
}

/* In whichever order they were asked for: a send from a buffer that also receives, which no program may do, sends the
 * earlier contents. */
static void arrived_messages_do_not_delay_sends(void **state)
{
    enum { BYTES = 10000 };
    static unsigned char other[BYTES], in[BYTES], both[BYTES];
    bool moved = false;

    (void)state;
    begin_job(2, test_all_shm);
    for (int order = 0; order < 3; order++) { /* the first time they connect */
        fill(other, BYTES, 1), fill(both, BYTES, 2);
        ask(1, KL_FUNC_SEND, 0, other, BYTES), ask(1, KL_FUNC_RECV, 0, in, BYTES);
        ask(0, order == 1 ? KL_FUNC_RECV : KL_FUNC_SEND, 1, order ? both : other, BYTES);
        ask(0, order == 1 ? KL_FUNC_SEND : KL_FUNC_RECV, 1, both, BYTES);
        if (!order) {
            launch();
            continue;
        }
        add_all(1);
        assert_int_equal(poll(1, &moved), ncclSuccess);
        add_all(0);
        struct test_waiting waiting = {0};
        while (!party[0].done || !party[1].done) {
            moved = false;
            for (int r = 0; r < 2; r++)
                if (!party[r].done) assert_int_equal(poll(r, &moved), ncclSuccess);
            test_wait(&waiting, moved, "both");
        }
        expect_filled(in, BYTES, 2);
        expect_filled(both, BYTES, 1);
        end_launch(0), end_launch(1);
    }
    end_job();
}

/* Of several messages on a connector each waits for the one before it; other connectors don't. */
static void messages_of_a_pair_keep_their_order(void **state)
{
    enum { MESSAGES = 500 };
    static unsigned char out[MESSAGES][2000], in[MESSAGES][2000];

    (void)state;
    for (int way = 0; way < 2; way++) {
        begin_job(3, way ? test_all_shm : test_all_p2p);
        memset(in, 0, sizeof in);
        for (int i = 0; i < MESSAGES; i++) {
            fill(out[i], sizeof out[i], (unsigned)i);
            pass(i % 2 ? 0 : 2, i % 2 ? 2 : 0, out[i], in[i], (size_t)(i * 37) % sizeof out[i]);
        }
        launch();
        for (int i = 0; i < MESSAGES; i++) expect_filled(in[i], (size_t)(i * 37) % sizeof out[i], (unsigned)i);
        end_job();
    }
}

/* ---- oneself ---- */

static void messages_to_oneself_meet_in_their_order(void **state)
{
    unsigned char out[6] = {1, 2, 3, 4, 5, 6}, in[6] = {0}, same = 9;

    (void)state;
    begin_job(2, test_all_p2p);
    for (int i = 0; i < 3; i++) ask(1, KL_FUNC_SEND, 1, &out[i], 1); /* sends first */
    for (int i = 0; i < 3; i++) ask(1, KL_FUNC_RECV, 1, &in[i], 1);
    for (int i = 3; i < 6; i++) ask(1, KL_FUNC_RECV, 1, &in[i], 1); /* receives first */
    for (int i = 3; i < 6; i++) ask(1, KL_FUNC_SEND, 1, &out[i], 1);
    ask(1, KL_FUNC_SEND, 1, &same, 1); /* in place */
    ask(1, KL_FUNC_RECV, 1, &same, 1);
    ask(1, KL_FUNC_SEND, 1, NULL, 0); /* nothing at all */
    ask(1, KL_FUNC_RECV, 1, NULL, 0);
    launch();
    assert_memory_equal(in, out, sizeof in);
    assert_int_equal(same, 9);
    end_job();
}

static void a_rank_alone_talks_to_itself(void **state)
{
    unsigned char out = 5, in = 0;

    (void)state;
    begin_job(1, test_all_p2p);
    pass(0, 0, &out, &in, 1);
    launch();
    assert_int_equal(in, 5);
    launch(); /* of nothing */
    end_job();
}

/* ---- failures ---- */

/* Sizes that differ end the launch of the rank that notices. After a reset nothing of it is left, and other launches
 * can go on. */
static void a_launch_that_fails_half_way_leaves_nothing_behind(void **state)
{
    static unsigned char out[70000], in[70000];
    struct test_waiting waiting = {0};
    ncclResult_t rc = ncclSuccess;

    (void)state;
    begin_job(4, test_mixed);
    for (int i = 0; i < 20; i++) pass(0, 1, out, in, 1000);
    ask(0, KL_FUNC_SEND, 1, out, 70000);
    ask(1, KL_FUNC_RECV, 0, in, 60000);
    for (int i = 0; i < 20; i++) pass(0, 1, out, in, 1000), pass(2, 1, out, in, 70000);
    ask(1, KL_FUNC_SEND, 1, out, 8); /* without its other half, which the caller would not let pass */
    for (int r = 0; r < 3; r++) add_all(r);
    while (!rc) {
        bool moved = false;
        for (int r = 0; r < 3 && !rc; r++)
            if (!party[r].done) rc = poll(r, &moved);
        test_wait(&waiting, moved, "an error");
    }
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "counts or types differ"));
    for (int r = 0; r < 3; r++) {
        kl_connections_revoke(ranks.rank[r].connections);
        end_launch(r);
    }
    fill(out, sizeof out, 3);
    pass(3, 2, out, in, sizeof in);
    launch();
    expect_filled(in, sizeof in, 3);
    end_job();
}

static const struct kl_transport *not_to_2(int a, int b)
{
    return a == 2 || b == 2 ? NULL : &kl_transport_p2p;
}

static void a_message_that_has_no_way_fails_when_it_is_added(void **state)
{
    unsigned char byte = 0;
    struct party *p = &party[0];

    (void)state;
    begin_job(3, not_to_2);
    ask(0, KL_FUNC_SEND, 1, &byte, 1);
    ask(0, KL_FUNC_SEND, 2, &byte, 1);
    assert_int_equal(kl_exchange_add(&p->exchange, &p->task[0], 1), ncclSuccess);
    assert_int_equal(kl_exchange_add(&p->exchange, &p->task[1], 1), ncclSystemError);
    end_launch(0);
    end_job();
}

static void departed_peers_are_found(void **state)
{
    static unsigned char out[1 << 20], in[10];
    bool moved = false;

    (void)state;
    for (int way = 0; way < 2; way++) {
        begin_job(3, way ? test_all_shm : test_all_p2p);
        pass(0, 1, out, in, 10), pass(1, 0, out, in, 10), pass(1, 2, out, in, 10);
        launch();
        ask(0, KL_FUNC_SEND, 1, out, sizeof out); /* read in place, or more than fits: rank 1 would have to take it */
        add_all(0);
        assert_int_equal(poll(0, &moved), ncclSuccess);
        assert_int_equal(kl_exchange_blocked_on(&party[0].exchange, false), 1);
        assert_int_equal(kl_exchange_blocked_on(&party[0].exchange, true), -1);
        ask(2, KL_FUNC_RECV, 1, in, 8);
        add_all(2);
        assert_int_equal(poll(2, &moved), ncclSuccess);
        kl_connections_leave(ranks.rank[1].connections);
        assert_int_equal(kl_exchange_blocked_on(&party[0].exchange, true), 1);
        assert_int_equal(kl_exchange_blocked_on(&party[2].exchange, true), 1);
        for (int r = 0; r < 3; r++) kl_connections_revoke(ranks.rank[r].connections);
        end_launch(0), end_launch(2);
        end_job();
    }
}

/* Rank 0 sends data that need no reader, and ends before rank 1 has read the reply with the address of its data. */
static void sent_messages_arrive_after_the_sender_ended(void **state)
{
    static const size_t sizes[] = {8, 4000, 5000, 100000, 3 << 16};
    static unsigned char out[3 << 16], in[3 << 16];

    (void)state;
    FOR_EACH_CASE(bytes, sizes)
    {
        struct test_waiting waiting = {0};
        bool moved = false;
        begin_job(2, test_all_shm);
        fill(out, *bytes, 7);
        memset(in, 0, sizeof in);
        pass(0, 1, out, in, *bytes);
        add_all(0), add_all(1);
        assert_int_equal(poll(1, &moved), ncclSuccess); /* offers its fifo, and is not polled from now on */
        do { /* until it is done, or has sent as much as fits and waits for a reader */
            moved = false;
            assert_int_equal(poll(0, &moved), ncclSuccess);
            test_wait(&waiting, moved, "the sender");
        } while (!party[0].done && (moved || !party[0].exchange.parcels[0].message.moved));
        while (!party[0].done) {
            moved = false;
            for (int r = 0; r < 2; r++)
                if (!party[r].done) assert_int_equal(poll(r, &moved), ncclSuccess);
            test_wait(&waiting, moved, "a large message");
        }
        end_launch(0);
        kl_connections_leave(ranks.rank[0].connections);
        kl_connections_free(ranks.rank[0].connections, false);
        kl_bootstrap_leave(ranks.rank[0].bootstrap);
        ranks.rank[0].connections = NULL;
        ranks.rank[0].bootstrap = NULL;
        waiting = (struct test_waiting){0};
        while (!party[1].done) {
            moved = false;
            ncclResult_t rc = poll(1, &moved);
            if (rc) fail_msg("%zu bytes: %s", *bytes, kl_error_text());
            test_wait(&waiting, moved, "the receiver");
        }
        expect_filled(in, *bytes, 7);
        end_launch(1);
        end_job();
    }
}

/* ---- waiting ranks ---- */

/* Rank 0 only sends in the first launch, and also receives in the second one. */
static void the_launch_decides_about_zcopy(void **state)
{
    enum { BYTES = KL_ZCOPY_LEAST };
    char *data = calloc(4, BYTES);

    (void)state;
    kl_select_make(&table,
                   &(struct kl_select_facts){.nranks = 2, .processes = true, .kernel = true, .kernel_always = true});
    begin_job(2, test_all_shm);
    for (int both = 0; both < 2; both++) {
        pass(0, 1, data, data + BYTES, BYTES);
        if (both) pass(1, 0, data + 2 * BYTES, data + 3 * BYTES, BYTES);
        pass(0, 0, data, data + BYTES, BYTES); /* with itself, which does not count */
        launch();
        assert_int_equal(party[0].exchange.offers.reads, both);
    }
    end_job();
    table = (struct kl_select){0};
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_of_messages_arrive_each_where_it_belongs),
        cmocka_unit_test(busy_messages_are_not_held_up_by_idle_ones),
        cmocka_unit_test(messages_begin_in_the_order_of_their_rounds),
        cmocka_unit_test(arrived_messages_do_not_delay_sends),
        cmocka_unit_test(messages_of_a_pair_keep_their_order),
        cmocka_unit_test(messages_to_oneself_meet_in_their_order),
        cmocka_unit_test(a_rank_alone_talks_to_itself),
        cmocka_unit_test(a_launch_that_fails_half_way_leaves_nothing_behind),
        cmocka_unit_test(a_message_that_has_no_way_fails_when_it_is_added),
        cmocka_unit_test(departed_peers_are_found),
        cmocka_unit_test(the_launch_decides_about_zcopy),
        cmocka_unit_test(sent_messages_arrive_after_the_sender_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
