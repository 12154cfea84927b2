/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/connections.h"

#include "channel/test_ranks.h"
#include "tests/holdings.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct test_ranks ranks;

/* ---- random graphs ---- */

enum { MOST_EDGES = 400 };

/* A directed edge and its two ends. */
struct line {
    int from, to, channel;
    struct kl_connector *tx, *rx;
};

struct graph {
    struct line line[MOST_EDGES];
    int n;
};

static bool has_line(const struct graph *g, const struct line *l)
{
    for (int i = 0; i < g->n; i++)
        if (g->line[i].from == l->from && g->line[i].to == l->to && g->line[i].channel == l->channel) return true;
    return false;
}

static void add_line(struct graph *g, int from, int to, int channel)
{
    struct line l = {.from = from, .to = to, .channel = channel};

    if (from != to && g->n < MOST_EDGES && !has_line(g, &l)) g->line[g->n++] = l;
}

/* Rings in random order, trees, distances as in PAT, and single edges; on several channels. */
static void draw_graph(struct graph *g, int n, uint64_t *seed)
{
    int channels = 1 + (int)test_draw(seed, 4), kinds = 1 + (int)test_draw(seed, 15);

    g->n = 0;
    for (int c = 0; c < channels; c++) {
        int order[TEST_RANKS] = {0};
        for (int i = 0; i < n; i++) order[i] = i;
        for (int i = n - 1; i > 0; i--) {
            int k = (int)test_draw(seed, (uint64_t)i + 1), kept = order[i];
            order[i] = order[k];
            order[k] = kept;
        }
        for (int i = 0; i < n; i++) {
            if (kinds & 1) add_line(g, order[i], order[(i + 1) % n], c);
            if (kinds & 2 && i)
                add_line(g, order[i], order[(i - 1) / 2], c), add_line(g, order[(i - 1) / 2], order[i], c);
            for (int d = 1; kinds & 4 && d < n; d *= 2) add_line(g, i, (i + d) % n, c);
            if (kinds & 8) add_line(g, (int)test_draw(seed, (uint64_t)n), (int)test_draw(seed, (uint64_t)n), c);
        }
    }
}

static void shuffle_lines(struct graph *g, uint64_t *seed)
{
    for (int i = g->n - 1; i > 0; i--) {
        int k = (int)test_draw(seed, (uint64_t)i + 1);
        struct line kept = g->line[i];
        g->line[i] = g->line[k];
        g->line[k] = kept;
    }
}

/* Every rank asks for its ends, in its own order. */
static void ask_for_all(struct graph *g, uint64_t *seed)
{
    shuffle_lines(g, seed);
    for (int i = 0; i < g->n; i++) {
        struct line *l = &g->line[i];
        struct kl_edge in = {.peer = l->from, .channel = (uint8_t)l->channel};
        l->rx = test_get(&ranks, l->to, &in);
    }
    for (int i = g->n; i-- > 0;) {
        struct line *l = &g->line[i];
        struct kl_edge out = {.peer = l->to, .channel = (uint8_t)l->channel, .sends = true};
        l->tx = test_get(&ranks, l->from, &out);
        assert_ptr_equal(l->tx, test_get(&ranks, l->from, &out)); /* the same, asked for again */
    }
    for (int r = 0; r < ranks.n; r++) kl_connections_start(ranks.rank[r].connections);
}

/* The number of peers that a rank is connecting to just now. */
static int busy_peers(const struct graph *g, int rank)
{
    bool busy[TEST_RANKS] = {false};
    int n = 0;

    for (int i = 0; i < g->n; i++) {
        const struct line *l = &g->line[i];
        if (l->from == rank && l->tx->transport && !l->tx->ready) busy[l->to] = true;
        if (l->to == rank && l->rx->transport && !l->rx->ready) busy[l->from] = true;
    }
    for (int i = 0; i < TEST_RANKS; i++) n += busy[i];
    return n;
}

static void connect_all(const struct graph *g, int round_peers, const char *label)
{
    struct test_waiting waiting = {0};
    int left = ranks.n;

    while (left) {
        bool moved = false;
        left = ranks.n;
        for (int i = 0; i < ranks.n; i++) {
            int r = (i + (int)test_draw(&ranks.seed, (uint64_t)ranks.n)) % ranks.n;
            ncclResult_t rc = ncclSuccess;
            enum kl_progress got = kl_connections_progress(ranks.rank[r].connections, &rc);
            assert_int_equal(rc, ncclSuccess);
            moved |= got == KL_MOVED;
            assert_in_range(busy_peers(g, r), 0, round_peers);
        }
        for (int r = 0; r < ranks.n; r++) {
            ncclResult_t rc = ncclSuccess;
            left -= kl_connections_progress(ranks.rank[r].connections, &rc) == KL_DONE;
            assert_int_equal(rc, ncclSuccess);
        }
        test_wait(&waiting, moved, label);
    }
}

/* A step through every edge, with its number. */
static void expect_connected(const struct graph *g)
{
    for (int i = 0; i < g->n; i++) {
        const struct line *l = &g->line[i];
        assert_true(l->tx->ready && l->rx->ready);
        *(int *)kl_fifo_reserve(&l->tx->tx, sizeof i) = i;
        kl_fifo_publish(&l->tx->tx, sizeof i, false);
    }
    for (int i = 0; i < g->n; i++) {
        struct kl_fifo_rx *rx = &g->line[i].rx->rx;
        size_t bytes;
        bool more;
        assert_true(kl_fifo_ready(rx));
        const int *data = kl_fifo_open(rx, &bytes, &more);
        assert_true(data && bytes == sizeof i && *data == i);
        kl_fifo_release(rx);
    }
}

static unsigned long edges;

static void connect_random_graph(int round_peers)
{
    static struct graph g;
    size_t ends = 0;
    char label[64];

    draw_graph(&g, ranks.n, &ranks.seed);
    snprintf(label, sizeof label, "%d ranks, %d edges, %d peers at a time", ranks.n, g.n, round_peers);
    test_connections_create(&ranks, round_peers);
    ask_for_all(&g, &ranks.seed);
    connect_all(&g, round_peers, label);
    expect_connected(&g);
    for (int r = 0; r < ranks.n; r++) {
        ends += kl_connections_count(ranks.rank[r].connections);
        assert_int_equal(ranks.rank[r].told, kl_connections_count(ranks.rank[r].connections));
        assert_int_equal(kl_connections_blocked_on(ranks.rank[r].connections), -1);
    }
    assert_int_equal(ends, 2 * g.n);
    edges += (unsigned long)g.n;
    test_connections_free(&ranks);
}

static void all_ends_meet_whatever_the_graph_and_the_rounds(void **state)
{
    static const int sizes[] = {2, 3, 4, 5, 8, 13};
    static const int rounds[] = {1, 2, 3, 128};

    (void)state;
    FOR_EACH_CASE(n, sizes)
    {
        test_ranks_join(&ranks, *n);
        ranks.transport = test_mixed;
        ranks.seed = (uint64_t)*n;
        for (int i = 0; i < 12; i++) FOR_EACH_CASE(peers, rounds) connect_random_graph(*peers);
        test_ranks_leave(&ranks);
    }
    print_message("%lu edges\n", edges);
}

/* One graph after another, with edges that exist already. */
static void connections_stay_while_more_are_requested(void **state)
{
    static struct graph g;

    (void)state;
    test_ranks_join(&ranks, 6);
    ranks.transport = test_mixed;
    test_connections_create(&ranks, 1);
    for (int i = 0; i < 5; i++) {
        draw_graph(&g, 6, &ranks.seed);
        ask_for_all(&g, &ranks.seed);
        connect_all(&g, 1, "another graph");
        expect_connected(&g);
    }
    test_connections_free(&ranks);
    test_ranks_leave(&ranks);
}

/* ---- messages ---- */

static void progress(int rank, ncclResult_t want)
{
    ncclResult_t rc = ncclSuccess;

    (void)kl_connections_progress(ranks.rank[rank].connections, &rc);
    assert_int_equal(rc, want);
}

static void wait_until_ready(struct kl_connector *a, int a_rank, struct kl_connector *b, int b_rank)
{
    struct test_waiting waiting = {0};

    while (!a->ready || !b->ready) {
        progress(a_rank, ncclSuccess);
        progress(b_rank, ncclSuccess);
        test_wait(&waiting, false, "the ends of a message's edge");
    }
}

/* The first end waits; it asks for nothing else meanwhile, and the other one comes at any time. */
static void one_end_may_be_asked_for_long_before_the_other(void **state)
{
    static const struct kl_transport *(*const transports[])(int, int) = {test_all_p2p, test_all_shm, test_all_net};

    (void)state;
    test_ranks_join(&ranks, 8);
    for (int way = 0; way < 6; way++) {
        bool sends = way & 1;
        ranks.transport = transports[way / 2];
        ranks.hasty = !sends; /* the timeout is for a peer that has answered */
        test_connections_create(&ranks, 1);
        for (int far = 1; far < 8; far++) {
            struct kl_edge mine = {.peer = far, .use = KL_EDGE_MESSAGES, .sends = sends};
            struct kl_edge its = {.peer = 0, .use = KL_EDGE_MESSAGES, .sends = !sends};
            struct kl_connector *a = test_get(&ranks, 0, &mine);
            uint64_t deadline = kl_deadline_in_ms(3);
            for (int i = 0; i < 300 || !kl_deadline_passed(deadline); i++)
                progress(0, ncclSuccess), progress(far, ncclSuccess);
            assert_false(a->ready);
            assert_int_equal(kl_connections_blocked_on(ranks.rank[0].connections), far);
            wait_until_ready(a, 0, test_get(&ranks, far, &its), far);
        }
        test_connections_free(&ranks);
    }
    ranks.hasty = false;
    test_ranks_leave(&ranks);
}

/* Both directions of a pair, on the same channel as a collective's: six connectors, none confused with another. */
static void edges_of_a_pair_are_kept_apart(void **state)
{
    struct kl_connector *c[2][2][2];

    (void)state;
    test_ranks_join(&ranks, 2);
    ranks.transport = test_all_shm;
    test_connections_create(&ranks, 1);
    for (int r = 0; r < 2; r++)
        for (int use = 0; use < 2; use++)
            for (int sends = 0; sends < 2; sends++) {
                struct kl_edge e = {.peer = 1 - r, .use = (uint8_t)use, .sends = sends};
                c[r][use][sends] = test_get(&ranks, r, &e);
            }
    for (int r = 0; r < 2; r++) kl_connections_start(ranks.rank[r].connections);
    for (int use = 0; use < 2; use++)
        for (int r = 0; r < 2; r++) wait_until_ready(c[r][use][1], r, c[1 - r][use][0], 1 - r);
    for (int i = 0; i < 8; i++) {
        struct kl_fifo_tx *tx = &c[i & 1][i >> 1 & 1][1]->tx;
        if (i >= 4) break;
        *(int *)kl_fifo_reserve(tx, sizeof i) = i;
        kl_fifo_publish(tx, sizeof i, false);
    }
    for (int i = 0; i < 4; i++) {
        struct kl_fifo_rx *rx = &c[1 - (i & 1)][i >> 1 & 1][0]->rx;
        size_t bytes;
        bool more;
        assert_true(kl_fifo_ready(rx));
        assert_int_equal(*(const int *)kl_fifo_open(rx, &bytes, &more), i);
        kl_fifo_release(rx);
        assert_false(kl_fifo_ready(rx));
    }
    test_connections_free(&ranks);
    test_ranks_leave(&ranks);
}

/* ---- refusals ---- */

static const struct kl_transport *none(int a, int b)
{
    (void)a, (void)b;
    return NULL;
}

static const struct kl_transport *contradiction(int a, int b)
{
    return a < b ? &kl_transport_p2p : &kl_transport_shm;
}

/* Progress a rank until it fails. */
static ncclResult_t wait_for_failure(int rank)
{
    struct test_waiting waiting = {0};
    ncclResult_t rc = ncclSuccess;

    for (;;) {
        enum kl_progress got = kl_connections_progress(ranks.rank[rank].connections, &rc);
        if (rc) {
            assert_int_equal(got, KL_DONE);
            return rc;
        }
        test_wait(&waiting, false, "a failure");
    }
}

static void expect_words(const char *words)
{
    if (!strstr(kl_error_text(), words)) fail_msg("\"%s\" does not say \"%s\"", kl_error_text(), words);
}

static void a_pair_that_nothing_joins_is_an_error(void **state)
{
    struct kl_edge coll = {.peer = 1, .sends = true}, message = {.peer = 1, .use = KL_EDGE_MESSAGES};
    struct kl_connector *c;

    (void)state;
    test_ranks_join(&ranks, 2);
    ranks.transport = none;
    test_connections_create(&ranks, 1);
    assert_int_equal(kl_connections_get(ranks.rank[0].connections, &message, &c), ncclSystemError);
    expect_words("no way from rank 0 to rank 1");
    (void)test_get(&ranks, 0, &coll);
    kl_connections_start(ranks.rank[0].connections);
    assert_int_equal(wait_for_failure(0), ncclSystemError);
    kl_connections_revoke(ranks.rank[0].connections);
    kl_connections_leave(ranks.rank[0].connections);
    test_connections_free(&ranks);
    test_ranks_leave(&ranks);
}

static void ranks_that_choose_differently_are_told(void **state)
{
    struct kl_edge out = {.peer = 1, .sends = true}, in = {.peer = 0};

    (void)state;
    test_ranks_join(&ranks, 2);
    ranks.transport = contradiction;
    test_connections_create(&ranks, 1);
    (void)test_get(&ranks, 0, &out);
    (void)test_get(&ranks, 1, &in);
    for (int r = 0; r < 2; r++) kl_connections_start(ranks.rank[r].connections);
    progress(1, ncclSuccess);
    assert_int_equal(wait_for_failure(0), ncclInternalError);
    expect_words("rank 1 chose transport 1 for the connection from rank 0, which chose P2P");
    test_connections_free(&ranks);
    test_ranks_leave(&ranks);
}

/* An invalid connect info: of another version, or with the address of memory that does not exist. */
static void invalid_connect_info_is_refused(void **state)
{
    static const struct {
        const char *words;
        struct kl_connect_info info;
    } cases[] = {
        {"chose transport", {.transport = 1, .version = KL_CONNECT_INFO_VERSION + 1}},
        {"chose transport", {.transport = 77, .version = KL_CONNECT_INFO_VERSION}},
        {"offered a descriptor is gone", {.transport = 1, .version = KL_CONNECT_INFO_VERSION, .bytes = 4096}},
    };
    const uint32_t tag = 0x4b000000 | KL_EDGE_MESSAGES << 8;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_edge out = {.peer = 1, .use = KL_EDGE_MESSAGES, .sends = true};
        test_ranks_join(&ranks, 2);
        ranks.transport = test_all_shm;
        test_connections_create(&ranks, 1);
        (void)test_get(&ranks, 0, &out);
        assert_int_equal(kl_bootstrap_post(ranks.rank[1].bootstrap, 0, tag, &c->info, sizeof c->info), ncclSuccess);
        assert_int_not_equal(wait_for_failure(0), ncclSuccess);
        expect_words(c->words);
        test_connections_free(&ranks);
        test_ranks_leave(&ranks);
    }
}

/* A service that accepts calls and sends nothing, like a stopped process. */
static int silent_service(uint64_t name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "kolo-fd-%016llx", (unsigned long long)name);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

    assert_int_equal(bind(sock, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(sock, 8), 0);
    return sock;
}

/* A peer that has answered, and does not hand out its memory: no other rank is held up, and the wait for it times
 * out. */
static void a_stopped_peer_delays_no_other(void **state)
{
    struct kl_connect_info info = {.transport = 1, .version = KL_CONNECT_INFO_VERSION, .bytes = 1 << 20};
    struct kl_connect_reply reply = {.pool_bytes = 1 << 20};
    struct kl_edge out = {.peer = 1, .use = KL_EDGE_MESSAGES, .sends = true};
    struct kl_edge in = {.peer = 1, .use = KL_EDGE_MESSAGES};
    int before = count_fds(), sock;

    (void)state;
    info.handle.service = reply.pool.service = (uint64_t)getpid();
    for (int ends = 0; ends < 2; ends++) {
        sock = silent_service(info.handle.service);
        test_ranks_join(&ranks, 2);
        ranks.transport = test_all_shm;
        ranks.timeout_ms = ends ? 1 : 3600000;
        test_connections_create(&ranks, 1);
        struct kl_connector *tx = test_get(&ranks, 0, &out), *rx = test_get(&ranks, 0, &in);
        assert_int_equal(
            kl_bootstrap_post(ranks.rank[1].bootstrap, 0, 0x4b000000 | KL_EDGE_MESSAGES << 8, &info, sizeof info),
            ncclSuccess);
        assert_int_equal(
            kl_bootstrap_post(ranks.rank[1].bootstrap, 0, 0x4b010000 | KL_EDGE_MESSAGES << 8, &reply, sizeof reply),
            ncclSuccess);
        if (ends) {
            assert_int_equal(wait_for_failure(0), ncclRemoteError);
            expect_words("silent past the deadline");
        } else {
            while (!tx->shm.request || !rx->shm.request) progress(0, ncclSuccess); /* both have asked */
            for (int i = 0; i < 1000; i++) progress(0, ncclSuccess);               /* and go on asking */
            assert_true(!tx->ready && !rx->ready);
            assert_int_equal(kl_connections_blocked_on(ranks.rank[0].connections), 1);
        }
        test_connections_free(&ranks);
        test_ranks_leave(&ranks);
        close(sock);
    }
    ranks.timeout_ms = 0;
    while (count_fds() != before) sched_yield(); /* the event loop closes its descriptors a little later */
}

/* Of eight ranks, 0 and 3 have no connection of their own: a rank that leaves before it was needed is noticed all the
 * same. */
static void a_peer_that_left_before_it_was_needed_is_named(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++)
        for (int far = 1; far < 8; far += 2) {
            bool sends = way & 1;
            struct kl_edge e = {.peer = far, .use = KL_EDGE_MESSAGES, .sends = sends};
            struct kl_connector *c;
            char who[32];
            snprintf(who, sizeof who, "rank %d ", far);
            test_ranks_join(&ranks, 8);
            ranks.transport = way & 2 ? test_all_net : test_all_shm;
            test_connections_create(&ranks, 1);
            kl_connections_free(ranks.rank[far].connections, false);
            ranks.rank[far].connections = NULL;
            kl_bootstrap_leave(ranks.rank[far].bootstrap);
            ranks.rank[far].bootstrap = NULL;
            ncclResult_t rc = kl_connections_get(ranks.rank[0].connections, &e, &c); /* may know it already */
            assert_int_equal(rc ? rc : wait_for_failure(0), ncclRemoteError);
            expect_words(who);
            test_connections_free(&ranks);
            test_ranks_leave(&ranks);
        }
}

static bool progress_both(void)
{
    bool all = true;

    for (int r = 0; r < 2; r++) {
        ncclResult_t rc = ncclSuccess;
        all &= kl_connections_progress(ranks.rank[r].connections, &rc) == KL_DONE;
        if (rc) fail_msg("rank %d: %s", r, kl_error_text());
    }
    return all;
}

/* The goodbye of a sender arrives before the connection that it made: its data arrive all the same. */
static void a_sender_may_leave_before_it_is_heard(void **state)
{
    const struct kl_edge in = {.peer = 1, .use = KL_EDGE_MESSAGES},
                         out = {.peer = 0, .use = KL_EDGE_MESSAGES, .sends = true};
    struct test_waiting waiting = {0};
    ncclResult_t rc = ncclSuccess;

    (void)state;
    test_ranks_join(&ranks, 2);
    ranks.transport = test_all_net;
    test_connections_create(&ranks, 1);
    struct kl_connector *rx = test_get(&ranks, 0, &in), *tx = test_get(&ranks, 1, &out);
    (void)kl_connections_progress(ranks.rank[0].connections, &rc);
    while (!tx->net.link && !rc) { /* it has the receiver's connect info, and needs nothing more of the bootstrap */
        (void)kl_connections_progress(ranks.rank[1].connections, &rc);
        test_wait(&waiting, false, "the connect info");
    }
    assert_int_equal(rc, ncclSuccess);
    kl_bootstrap_leave(ranks.rank[1].bootstrap);
    ranks.rank[1].bootstrap = NULL;
    while (!kl_bootstrap_has_left(ranks.rank[0].bootstrap, 1)) test_wait(&waiting, false, "the goodbye");
    while (!progress_both()) test_wait(&waiting, false, "the connection");
    assert_true(rx->ready && tx->ready);
    test_connections_free(&ranks);
    test_ranks_leave(&ranks);
}

/* ---- the end, anywhere ---- */

static void connections_end_in_any_state(void **state)
{
    static struct graph g;

    (void)state;
    ranks.seed = 99;
    for (int i = 0; i < 40; i++) {
        int n = 2 + i % 5, polls = (int)test_draw(&ranks.seed, 60), before = count_fds();
        test_ranks_join(&ranks, n);
        ranks.transport = i % 3 ? test_mixed : test_all_shm;
        test_connections_create(&ranks, 1 + i % 3);
        draw_graph(&g, n, &ranks.seed);
        ask_for_all(&g, &ranks.seed);
        for (int r = 0; r < n; r++) {
            struct kl_edge message = {.peer = (r + 1) % n, .use = KL_EDGE_MESSAGES, .sends = r % 2};
            (void)test_get(&ranks, r, &message);
        }
        for (int k = 0; k < polls * n; k++) progress((int)test_draw(&ranks.seed, (uint64_t)n), ncclSuccess);
        for (int r = 0; r < n; r++) {
            if (i % 2) kl_connections_revoke(ranks.rank[r].connections);
            if (i % 4) kl_connections_leave(ranks.rank[r].connections);
        }
        test_connections_free(&ranks);
        test_ranks_leave(&ranks);
        while (count_fds() != before) sched_yield(); /* the event loop closes its descriptors a little later */
    }
    kl_connections_free(NULL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_a_pair_are_kept_apart),
        cmocka_unit_test(one_end_may_be_asked_for_long_before_the_other),
        cmocka_unit_test(all_ends_meet_whatever_the_graph_and_the_rounds),
        cmocka_unit_test(connections_stay_while_more_are_requested),
        cmocka_unit_test(a_pair_that_nothing_joins_is_an_error),
        cmocka_unit_test(ranks_that_choose_differently_are_told),
        cmocka_unit_test(invalid_connect_info_is_refused),
        cmocka_unit_test(a_stopped_peer_delays_no_other),
        cmocka_unit_test(a_peer_that_left_before_it_was_needed_is_named),
        cmocka_unit_test(a_sender_may_leave_before_it_is_heard),
        cmocka_unit_test(connections_end_in_any_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
