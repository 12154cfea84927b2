/* SPDX-License-Identifier: Apache-2.0 */
/* Two connections, one each way, over one socket: messages, refusals, errors, ends, sleeping. */
#include "net/socket/test_pairs.h"

#include "tests/hang.h"

#include <poll.h>

/* Rank 0 connected (`there`), rank 1 sends back over the connection. */
struct both {
    struct pair there;
    struct kl_net_end sender, receiver; /* of the way back */
    void *send, *recv;
};

static void join_there(struct both *b)
{
    *b = (struct both){.sender = end_of(1, 0, 9), .receiver = end_of(0, 1, 9)};
    pair_listen(&b->there);
    b->there.sender.both_ways = true;
    pair_join(&b->there);
}

static ncclResult_t hear_back(struct both *b)
{
    ncclResult_t rc = ncclInProgress;

    while (rc == ncclInProgress) rc = net->recv_back(b->there.send, &b->receiver, &b->recv);
    return rc;
}

static void open_both(struct both *b)
{
    join_there(b);
    assert_int_equal(net->recv_back(b->there.send, &b->receiver, &b->recv), ncclInProgress);
    assert_int_equal(net->send_back(b->there.recv, &b->sender, &b->send), ncclSuccess);
    assert_non_null(b->send);
    assert_int_equal(hear_back(b), ncclSuccess);
}

static void close_both(struct both *b)
{
    pair_close(&b->there);
    net->close_send(b->send);
    net->close_recv(b->recv);
}

/* ---- messages ---- */

static void both_ways_at_once(void **state)
{
    enum { N = 8, MOST = 3 << 20, STEP = 97001 };
    unsigned char *from = malloc(2 * (size_t)MOST), *to = malloc(2 * (size_t)MOST);
    struct both b;

    (void)state;
    open_both(&b);
    for (unsigned round = 0; round < 12; round++) {
        void *request[4 * N];

        fill(from, 2 * (size_t)MOST, round);
        memset(to, 0, 2 * (size_t)MOST);
        for (size_t i = 0; i < N; i++) {
            size_t bytes = round % 3 == 2 ? i : i * STEP / (1 + round), at = i * STEP;
            request[4 * i] = post_send(b.there.send, from + at, bytes, 0);
            request[4 * i + 1] = post_send(b.send, from + MOST + at, bytes, 0);
            request[4 * i + 2] = post_recv(b.there.recv, to + at, bytes, 0);
            request[4 * i + 3] = post_recv(b.recv, to + MOST + at, bytes, 0);
        }
        assert_int_equal(finish(request, 4 * N, NULL), ncclSuccess);
        for (size_t i = 0; i < N; i++) {
            size_t bytes = round % 3 == 2 ? i : i * STEP / (1 + round), at = i * STEP;
            assert_memory_equal(to + at, from + at, bytes);
            assert_memory_equal(to + MOST + at, from + MOST + at, bytes);
        }
    }
    close_both(&b);
    free(from);
    free(to);
}

/* More than the kernel's buffers take, each way, before any receive. */
static void nobody_waits_for_the_other_way(void **state)
{
    enum { BYTES = 48 << 20 };
    unsigned char *from = malloc(BYTES), *to = calloc(2, BYTES);
    struct both b;

    (void)state;
    open_both(&b);
    fill(from, BYTES, 1);
    void *request[4] = {post_send(b.there.send, from, BYTES, 0), post_send(b.send, from, BYTES, 0)};
    for (int i = 0; i < 100; i++) {
        bool done;
        assert_int_equal(net->test(request[i % 2], &done, NULL), ncclSuccess);
        assert_false(done);
    }
    request[2] = post_recv(b.there.recv, to, BYTES, 0);
    request[3] = post_recv(b.recv, to + BYTES, BYTES, 0);
    assert_int_equal(finish(request, 4, NULL), ncclSuccess);
    assert_memory_equal(to, from, BYTES);
    assert_memory_equal(to + BYTES, from, BYTES);
    close_both(&b);
    free(from);
    free(to);
}

static void no_descriptor_more(void **state)
{
    struct both b;

    (void)state;
    join_there(&b);
    int before = count_fds();
    assert_int_equal(net->send_back(b.there.recv, &b.sender, &b.send), ncclSuccess);
    assert_int_equal(hear_back(&b), ncclSuccess);
    assert_int_equal(count_fds(), before);
    close_both(&b);
}

/* ---- one-way connections ---- */

static void not_unless_the_sender_says_so(void **state)
{
    struct both b = {.sender = end_of(1, 0, 9), .receiver = end_of(0, 1, 9)};

    (void)state;
    pair_open(&b.there);
    assert_int_equal(net->send_back(b.there.recv, &b.sender, &b.send), ncclSuccess);
    assert_null(b.send);
    assert_int_equal(net->recv_back(b.there.send, &b.receiver, &b.recv), ncclInProgress);
    close_both(&b);
}

static void not_twice(void **state)
{
    struct both b;
    void *more;

    (void)state;
    open_both(&b);
    assert_int_equal(net->send_back(b.there.recv, &b.sender, &more), ncclSuccess);
    assert_null(more);
    net->close_send(b.send);
    b.send = NULL;
    assert_int_equal(net->send_back(b.there.recv, &b.sender, &more), ncclSuccess);
    assert_null(more);
    close_both(&b);
}

static void another_connection_is_refused(void **state)
{
    struct both b;

    (void)state;
    join_there(&b);
    assert_int_equal(net->send_back(b.there.recv, &b.sender, &b.send), ncclSuccess);
    b.receiver.id++;
    assert_int_equal(hear_back(&b), ncclRemoteError);
    expect_in_error("brought something that rank 1 has not sent");
    close_both(&b);
}

/* ---- errors and ends ---- */

/* A refusal is sent through the opposite, behind the opposite's messages. */
static void sizes_that_differ(void **state)
{
    unsigned char data[100] = {0}, to[100];

    (void)state;
    for (int back = 0; back < 2; back++) {
        struct both b;

        open_both(&b);
        void *across[2] = {post_send(back ? b.there.send : b.send, data, 100, 0),
                           post_recv(back ? b.there.recv : b.recv, to, 100, 0)};
        assert_int_equal(finish(across, 2, NULL), ncclSuccess);
        void *send = post_send(back ? b.send : b.there.send, data, 100, 0);
        void *recv = post_recv(back ? b.recv : b.there.recv, to, 60, 0);
        assert_int_equal(outcome_of(send), ncclSuccess); /* it is on its way */
        assert_int_equal(outcome_of(recv), ncclInvalidUsage);
        expect_in_error("which has posted 60");
        kl_error_adopt("");
        void *more = post_recv(back ? b.there.recv : b.recv, to, 100, 0); /* the sender's opposite reads the refusal */
        assert_int_equal(outcome_of(more), ncclInvalidUsage);
        expect_in_error("has sent 100 bytes (tag 0)");
        expect_in_error("which has posted 60");
        void *request;
        assert_int_equal(net->isend(back ? b.send : b.there.send, data, 1, 0, NULL, &request), ncclInvalidUsage);
        close_both(&b);
    }
}

static void a_sender_that_closes_is_heard(void **state)
{
    unsigned char to[2];

    (void)state;
    for (int back = 0; back < 2; back++) {
        struct both b;

        open_both(&b);
        void **send = back ? &b.send : &b.there.send, *recv = back ? b.recv : b.there.recv;
        void *first = post_recv(recv, &to[0], 1, 0), *second = post_recv(recv, &to[1], 1, 0);
        assert_int_equal(outcome_of(post_send(*send, "x", 1, 0)), ncclSuccess);
        net->close_send(*send);
        *send = NULL;
        assert_int_equal(outcome_of(second), ncclRemoteError);
        expect_in_error("the other side closed it");
        assert_int_equal(outcome_of(first), ncclSuccess);
        assert_int_equal(to[0], 'x');
        close_both(&b);
    }
}

/* After the end of one direction, messages of the other still arrive. */
static void the_other_way_goes_on(void **state)
{
    unsigned char to = 0;
    struct both b;

    (void)state;
    open_both(&b);
    net->close_recv(b.there.recv);
    net->close_send(b.there.send);
    b.there.recv = b.there.send = NULL;
    void *request[2] = {post_recv(b.recv, &to, 1, 0), post_send(b.send, "y", 1, 0)};
    assert_int_equal(finish(request, 2, NULL), ncclSuccess);
    assert_int_equal(to, 'y');
    close_both(&b);
}

static void cancel_ends_all(void **state)
{
    unsigned char to[2];

    (void)state;
    for (int which = 0; which < 4; which++) {
        struct both b;

        open_both(&b);
        void *recv[2] = {post_recv(b.there.recv, &to[0], 1, 0), post_recv(b.recv, &to[1], 1, 0)};
        void *all[4] = {b.there.send, b.there.recv, b.send, b.recv}, *request;
        net->cancel(all[which]);
        assert_int_not_equal(outcome_of(recv[0]), ncclSuccess);
        assert_int_not_equal(outcome_of(recv[1]), ncclSuccess);
        assert_int_not_equal(net->isend(all[which < 2 ? 0 : 2], to, 1, 0, NULL, &request), ncclSuccess);
        close_both(&b);
    }
}

static void closed_in_every_order(void **state)
{
    (void)state;
    for (int first = 0; first < 4; first++) {
        struct both b;

        open_both(&b);
        void **all[4] = {&b.there.send, &b.there.recv, &b.send, &b.recv};
        for (int i = 0; i < 3; i++) {
            int k = (first + i) % 4;
            (k % 2 ? net->close_recv : net->close_send)(*all[k]);
            *all[k] = NULL;
        }
        close_both(&b);
    }
}

/* ---- sleeping ---- */

static bool wakes(void *connection, int ms)
{
    struct pollfd p = {.events = POLLIN};

    assert_int_equal(net->sleep_on(connection, &p.fd), ncclSuccess);
    return poll(&p, 1, ms) == 1;
}

static void a_message_wakes_its_receiver_only(void **state)
{
    unsigned char to[2];
    struct both b;
    bool done;

    (void)state;
    open_both(&b);
    void *there = post_recv(b.there.recv, &to[0], 1, 0), *back = post_recv(b.recv, &to[1], 1, 0);
    assert_false(wakes(b.recv, 0));
    assert_false(wakes(b.there.recv, 0));
    assert_int_equal(outcome_of(post_send(b.send, "z", 1, 0)), ncclSuccess);
    assert_true(wakes(b.recv, (int)kolo_test_hang_ms()));
    assert_false(wakes(b.there.recv, 0));
    assert_false(wakes(b.there.send, 0)); /* the message is not for it */
    assert_int_equal(outcome_of(back), ncclSuccess);
    assert_int_equal(net->test(there, &done, NULL), ncclSuccess);
    assert_false(done);
    close_both(&b);
}

static int one_socket(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)
    const struct CMUnitTest tests[] = {
        T(both_ways_at_once),
        T(nobody_waits_for_the_other_way),
        T(no_descriptor_more),
        T(not_unless_the_sender_says_so),
        T(not_twice),
        T(another_connection_is_refused),
        T(sizes_that_differ),
        T(a_sender_that_closes_is_heard),
        T(the_other_way_goes_on),
        T(cancel_ends_all),
        T(closed_in_every_order),
        T(a_message_wakes_its_receiver_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* With several sockets, each direction has its own connection. */
static void several_go_one_way(void **state)
{
    struct both b;

    (void)state;
    join_there(&b);
    assert_int_equal(net->send_back(b.there.recv, &b.sender, &b.send), ncclSuccess);
    assert_null(b.send);
    assert_int_equal(net->recv_back(b.there.send, &b.receiver, &b.recv), ncclInProgress);
    close_both(&b);
}

static int several_sockets(void)
{
    const struct CMUnitTest tests[] = {T(several_go_one_way)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    static const struct setting one = {"one socket", "=lo", "AF_INET", "1", "0", "0"},
                                encrypted = {"one socket, encrypted", "=lo", "AF_INET", "1", "0", "1"},
                                several = {"three sockets", "=lo", "AF_INET", "3", "0", "0"};

    return run_under(&one, one_socket) + run_under(&encrypted, one_socket) + run_under(&several, several_sockets);
}
