/* SPDX-License-Identifier: Apache-2.0 */
/* PXN: rank 0 sends to rank 2 through the proxy of rank 1, over real bootstraps, memory and sockets. */
#include "channel/test_ranks.h"
#include "coll/engine/message.h"
#include "tests/holdings.h"
#include "transport/net/relay.h"

enum { SENDER, RELAY, RECEIVER, RANKS };

static struct test_ranks ranks;

static struct {
    struct kl_connector *out, *in;
} pair;

static const struct kl_edge out_edge = {.peer = RECEIVER, .use = KL_EDGE_COLL, .sends = true},
                            in_edge = {.peer = SENDER, .use = KL_EDGE_COLL};
static const struct kl_edge send_edge = {.peer = RECEIVER, .channel = 1, .use = KL_EDGE_MESSAGES, .sends = true},
                            recv_edge = {.peer = SENDER, .channel = 1, .use = KL_EDGE_MESSAGES};

/* ---- the jobs ---- */

static void create(bool here)
{
    ranks.transport = test_all_net;
    ranks.relay = RELAY + 1;
    ranks.relay_here = here;
    test_ranks_join(&ranks, RANKS);
    test_connections_create(&ranks, 64);
}

static void end_rank(int rank, bool failed)
{
    kl_connections_free(ranks.rank[rank].connections, failed);
    ranks.rank[rank].connections = NULL;
}

static void destroy(void)
{
    for (int r = 0; r < RANKS; r++) end_rank(r, false);
    test_ranks_leave(&ranks);
}

static void progress(int rank)
{
    ncclResult_t rc = ncclSuccess;

    (void)kl_connections_progress(ranks.rank[rank].connections, &rc);
    assert_int_equal(rc, ncclSuccess);
}

/* The relay's rank does nothing meanwhile. */
static void connect_pair(const struct kl_edge *from, const struct kl_edge *to)
{
    struct test_waiting waiting = {0};

    pair.out = test_get(&ranks, SENDER, from);
    pair.in = test_get(&ranks, RECEIVER, to);
    kl_connections_start(ranks.rank[SENDER].connections);
    kl_connections_start(ranks.rank[RECEIVER].connections);
    while (!pair.out->ready || !pair.in->ready) {
        progress(SENDER);
        progress(RECEIVER);
        test_wait(&waiting, false, "a connection through a relay");
    }
    assert_true(pair.out->route.relayed && !pair.out->net.link);
}

/* ---- steps ---- */

static bool move(struct kl_connector *c)
{
    ncclResult_t rc = ncclSuccess;
    enum kl_progress got = c->transport->progress(c, &rc);

    assert_int_equal(rc, ncclSuccess);
    return got == KL_MOVED;
}

static size_t bytes_of(uint64_t step)
{
    return step * 37 % 1025;
}

static bool put(uint64_t step)
{
    size_t bytes = bytes_of(step);

    if (!kl_fifo_can_send(&pair.out->tx)) return false;
    memset(kl_fifo_reserve(&pair.out->tx, bytes), (int)(step + 1), bytes);
    kl_fifo_publish(&pair.out->tx, bytes, false);
    return true;
}

static bool take(uint64_t step)
{
    size_t bytes;
    bool more;

    if (!kl_fifo_ready(&pair.in->rx)) return false;
    const unsigned char *data = kl_fifo_open(&pair.in->rx, &bytes, &more);
    assert_non_null(data);
    assert_int_equal(bytes, bytes_of(step));
    for (size_t i = 0; i < bytes; i++) assert_int_equal(data[i], (unsigned char)(step + 1));
    kl_fifo_release(&pair.in->rx);
    return true;
}

static void send_steps(uint64_t from, uint64_t end)
{
    struct test_waiting waiting = {0};
    uint64_t sent = from, taken = from;

    while (taken < end) {
        bool moved = sent < end && put(sent);
        sent += moved;
        moved |= move(pair.out);
        moved |= move(pair.in);
        if (take(taken)) taken++, moved = true;
        test_wait(&waiting, moved, "steps through a relay");
    }
    while (!kl_fifo_drained(&pair.out->tx)) {
        move(pair.out);
        test_wait(&waiting, false, "the end of the steps");
    }
}

static void steps_arrive_by_wakeup_and_by_help(void **state)
{
    (void)state;
    for (int here = 0; here < 2; here++) {
        create(here);
        connect_pair(&out_edge, &in_edge);
        send_steps(0, 2000);
        destroy();
    }
}

/* ---- messages ---- */

static void send_message(size_t bytes)
{
    char *from = malloc(bytes + 1), *to = calloc(1, bytes + 1);
    struct kl_message out = {.data = from, .bytes = bytes}, in = {.data = to, .bytes = bytes};
    struct test_waiting waiting = {0};
    struct kl_zcopy_offers offers = {0};
    bool sent = false, received = false;
    ncclResult_t rc = ncclSuccess;

    for (size_t i = 0; i < bytes; i++) from[i] = (char)(i * 7 + i / 253);
    while (!sent || !received) {
        bool moved = move(pair.out);
        kl_message_set_target(&in, pair.in);
        moved |= move(pair.in);
        if (!sent) sent = kl_message_send(&out, pair.out, &offers) == KL_DONE;
        if (!received) received = kl_message_recv(&in, pair.in, &offers, &rc) == KL_DONE;
        assert_int_equal(rc, ncclSuccess);
        test_wait(&waiting, moved, "a message through a relay");
    }
    assert_memory_equal(from, to, bytes);
    free(from);
    free(to);
}

static void messages_of_all_sizes_arrive(void **state)
{
    (void)state;
    create(true);
    connect_pair(&send_edge, &recv_edge);
    for (size_t bytes = 0; bytes < 10 << 20; bytes = bytes * 5 + 3) send_message(bytes);
    destroy();
}

/* ---- ends ---- */

/* The relay's rank may be gone; its relaying goes on until the sender leaves, and then nothing is left. */
static void a_relay_outlives_its_rank(void **state)
{
    int fds = count_fds(), segments = count_segments();

    (void)state;
    create(false);
    connect_pair(&out_edge, &in_edge);
    send_steps(0, 20);
    end_rank(RELAY, false);
    send_steps(20, 500);
    end_rank(SENDER, false);
    end_rank(RECEIVER, false);
    test_ranks_leave(&ranks);
    struct test_waiting waiting = {0};
    while (count_fds() > fds || count_segments() > segments) test_wait(&waiting, false, "the end of the relaying");
}

/* Data that the sender published before it left arrive. */
static void published_data_are_sent_after_the_sender_left(void **state)
{
    struct test_waiting waiting = {0};

    (void)state;
    create(false);
    connect_pair(&out_edge, &in_edge);
    for (uint64_t step = 0; step < 4; step++) assert_true(put(step));
    kl_connections_leave(ranks.rank[SENDER].connections);
    end_rank(SENDER, false);
    for (uint64_t step = 0; step < 4; step++)
        while (!take(step)) test_wait(&waiting, move(pair.in), "the last steps");
    while (!kl_fifo_sender_gone(&pair.in->rx)) test_wait(&waiting, move(pair.in), "the end of the connection");
    destroy();
}

/* The first step may be in flight before the loss is known here. */
static void send_until_failure(uint64_t step, int rank)
{
    struct test_waiting waiting = {0};

    while (!kl_load_acquire(&ranks.rank[rank].failed)) {
        step += put(step);
        move(pair.out);
        test_wait(&waiting, false, "a failure");
    }
}

static void a_receiver_that_is_lost_fails_the_relay_which_says_for_whom_it_sends(void **state)
{
    (void)state;
    create(false);
    connect_pair(&out_edge, &in_edge);
    send_steps(0, 3);
    kl_connections_revoke(ranks.rank[RECEIVER].connections);
    send_until_failure(3, RELAY);
    assert_non_null(strstr(ranks.rank[RELAY].text, "rank 1, which sends for rank 0 to rank 2: "));
    assert_non_null(strstr(ranks.rank[RELAY].text, "; channel 0, step "));
    destroy();
}

static void a_failed_rank_cancels_what_it_relays(void **state)
{
    struct test_waiting waiting = {0};
    ncclResult_t rc = ncclSuccess;

    (void)state;
    create(false);
    connect_pair(&out_edge, &in_edge);
    send_steps(0, 3);
    end_rank(RELAY, true);
    while (!rc && !kl_fifo_sender_gone(&pair.in->rx)) {
        (void)pair.in->transport->progress(pair.in, &rc);
        test_wait(&waiting, false, "the end of the connection");
    }
    destroy();
}

/* ---- nonsense ---- */

static void expect_refusal(const struct kl_relay_request *ask)
{
    create(false);
    kl_store_release(&ranks.rank[RELAY].failed, false);
    assert_int_equal(kl_bootstrap_post(ranks.rank[SENDER].bootstrap, RELAY, KL_TAG_RELAY_REQUEST, ask, sizeof *ask),
                     ncclSuccess);
    struct test_waiting waiting = {0};
    while (!kl_load_acquire(&ranks.rank[RELAY].failed)) test_wait(&waiting, false, "a refusal");
    assert_non_null(strstr(ranks.rank[RELAY].text, "rank 0 asks rank 1 for a relay that cannot be"));
    destroy();
}

static void what_cannot_be_is_refused(void **state)
{
    const struct kl_relay_request good = {.version = KL_RELAY_VERSION,
                                          .receiver = RECEIVER,
                                          .shape = {.nslots = 4, .ll_bytes = KL_LL_LINES_BYTES, .slot_bytes = 1024}};
    struct kl_relay_request bad[11];

    (void)state;
    for (int i = 0; i < 11; i++) bad[i] = good;
    bad[0].version = KL_RELAY_VERSION + 1;
    bad[1].receiver = RANKS;
    bad[2].receiver = -1;
    bad[3].device = 1000;
    bad[4].shape.nslots = 3;
    bad[5].shape.nslots = 0;
    bad[6].shape.slot_bytes = UINT64_MAX - 127;
    bad[7].shape.ll_bytes = 64;
    bad[8].handover = KL_RELAY_CONNECTIONS;
    bad[9].shape.cells = 4;
    bad[10].shape.places = 3;
    for (int i = 0; i < 11; i++) expect_refusal(&bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_arrive_by_wakeup_and_by_help),
        cmocka_unit_test(messages_of_all_sizes_arrive),
        cmocka_unit_test(a_relay_outlives_its_rank),
        cmocka_unit_test(published_data_are_sent_after_the_sender_left),
        cmocka_unit_test(a_receiver_that_is_lost_fails_the_relay_which_says_for_whom_it_sends),
        cmocka_unit_test(a_failed_rank_cancels_what_it_relays),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
