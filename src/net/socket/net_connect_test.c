/* SPDX-License-Identifier: Apache-2.0 */
/* Making connections over sockets, failures of that, and sleeping meanwhile. */
#include "net/socket/test_pairs.h"

#include "tests/hang.h"

#include <poll.h>

static void one_listener_serves_many(void **state)
{
    enum { N = 24 };
    struct pair first;
    void *send[N] = {NULL}, *recv[N] = {NULL};
    unsigned char from[N], to[N];
    void *request[2 * N];
    int made = 0;

    (void)state;
    pair_listen(&first);
    while (made < 2 * N) { /* accepted in the reverse order */
        made = 0;
        for (int i = 0; i < N; i++) {
            struct kl_net_end s = end_of(10 + i / 3, 1, (uint32_t)(i % 3)),
                              r = end_of(1, 10 + i / 3, (uint32_t)(i % 3));
            int k = N - 1 - i;
            struct kl_net_end rk = end_of(1, 10 + k / 3, (uint32_t)(k % 3));
            static bool connected[N];

            (void)r;
            if (!connected[i]) {
                ncclResult_t rc = net->connect(0, &s, &first.handle, &send[i]);
                assert_true(!rc || rc == ncclInProgress);
                connected[i] = !rc;
            }
            if (!recv[k]) {
                ncclResult_t rc = net->accept(first.listener, &rk, &recv[k]);
                assert_true(!rc || rc == ncclInProgress);
            }
            made += connected[i];
        }
        for (int i = 0; i < N; i++) made += recv[i] != NULL;
    }
    for (int i = 0; i < N; i++) {
        from[i] = (unsigned char)(i + 1);
        request[i] = post_send(send[i], &from[i], 1, 0);
        request[N + i] = post_recv(recv[i], &to[i], 1, 0);
    }
    assert_int_equal(finish(request, 2 * N, NULL), ncclSuccess);
    assert_memory_equal(from, to, N);
    for (int i = 0; i < N; i++) {
        net->close_send(send[i]);
        net->close_recv(recv[i]);
    }
    net->close_listen(first.listener);
}

/* Connecting and accepting ends can sleep, too. */
static void making_wakes(void **state)
{
    ncclResult_t s = ncclInProgress, r = ncclInProgress;
    struct pair p;

    (void)state;
    pair_listen(&p);
    for (;;) {
        struct pollfd fds[2] = {{.fd = -1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

        pair_step(&p, &s, &r);
        if (!s && !r) break;
        if (s) assert_int_equal(net->sleep_on(p.send, &fds[0].fd), ncclSuccess);
        if (r) assert_int_equal(net->sleep_on_listener(p.listener, &fds[1].fd), ncclSuccess);
        assert_true(poll(fds, 2, (int)kolo_test_hang_ms()) > 0);
    }
    pair_close(&p);
}

/* An arrival is not missed by a thread that sleeps for another one. */
static void an_arrival_wakes_once(void **state)
{
    const struct kl_net_end other = {.peer = 9, .deadline = KL_NO_DEADLINE};
    ncclResult_t s = ncclInProgress;
    struct pair p;
    void *recv;

    (void)state;
    pair_listen(&p);
    for (;;) {
        struct pollfd fds[2] = {{.fd = -1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

        if (s) s = net->connect(0, &p.sender, &p.handle, &p.send);
        assert_int_equal(net->accept(p.listener, &other, &recv), ncclInProgress);
        if (s) assert_int_equal(net->sleep_on(p.send, &fds[0].fd), ncclSuccess);
        assert_int_equal(net->sleep_on_listener(p.listener, &fds[1].fd), ncclSuccess);
        if (fds[1].fd < 0) break;
        assert_true(poll(fds, 2, (int)kolo_test_hang_ms()) > 0);
    }
    int fd = -1;
    assert_int_equal(net->sleep_on_listener(p.listener, &fd), ncclSuccess);
    assert_true(fd >= 0);
    assert_int_equal(net->accept(p.listener, &p.receiver, &p.recv), ncclSuccess);
    while (s == ncclInProgress) s = net->connect(0, &p.sender, &p.handle, &p.send);
    assert_int_equal(s, ncclSuccess);
    pair_close(&p);
}

static void silence_has_a_deadline(void **state)
{
    struct pair p;
    ncclResult_t rc;

    (void)state;
    pair_listen(&p);
    p.sender.deadline = kl_deadline_in_ms(20);
    do rc = net->connect(0, &p.sender, &p.handle, &p.send);
    while (rc == ncclInProgress);
    assert_int_equal(rc, ncclRemoteError);
    assert_null(p.send);
    expect_in_error("rank 0 cannot connect with rank 1 at ");
    expect_in_error("no answer within");

    p.receiver.deadline = kl_deadline_in_ms(20);
    p.receiver.peer = 5;
    do rc = net->accept(p.listener, &p.receiver, &p.recv);
    while (rc == ncclInProgress);
    assert_int_equal(rc, ncclRemoteError);
    expect_in_error("a connection of rank 5");
    pair_close(&p);
}

static void nobody_there(void **state)
{
    struct pair p;
    ncclResult_t rc;

    (void)state;
    pair_listen(&p);
    net->close_listen(p.listener);
    p.listener = NULL;
    do rc = net->connect(0, &p.sender, &p.handle, &p.send);
    while (rc == ncclInProgress);
    assert_int_equal(rc, ncclRemoteError);
    expect_in_error("Connection refused");
    pair_close(&p);
}

static void a_connect_request_can_be_given_up(void **state)
{
    struct pair p;
    void *recv;

    (void)state;
    pair_listen(&p);
    for (int i = 0; i < 3; i++) { /* at every stage of the handshake */
        for (int k = 0; k <= i; k++) {
            assert_int_equal(net->connect(0, &p.sender, &p.handle, &p.send), ncclInProgress);
            if (k) (void)net->accept(p.listener, &(struct kl_net_end){.peer = 9, .deadline = KL_NO_DEADLINE}, &recv);
        }
        net->cancel(p.send);
        net->close_send(p.send);
        p.send = NULL;
    }
    pair_join(&p); /* and the next attempt succeeds */
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 0)), ncclSuccess);
    pair_close(&p);
}

static void handles_that_are_none(void **state)
{
    struct pair p;

    (void)state;
    pair_listen(&p);
    for (int i = 0; i < 4; i++) {
        struct kl_net_handle bad = p.handle;
        if (i == 0) memset(&bad, 0, sizeof bad);
        if (i == 1) bad.bytes[0] ^= 1;
        if (i == 2) bad.bytes[8] ^= 1;   /* version */
        if (i == 3) bad.bytes[10] = 200; /* family */
        assert_int_equal(net->connect(0, &p.sender, &bad, &p.send), ncclInvalidArgument);
        assert_null(p.send);
    }
    assert_int_equal(net->connect(99, &p.sender, &p.handle, &p.send), ncclInvalidArgument);
    pair_close(&p);
}

static void another_secret_is_refused(void **state)
{
    ncclResult_t s = ncclInProgress, r = ncclInProgress;
    struct pair p;

    (void)state;
    pair_listen(&p);
    p.sender.secret.bytes[31] ^= 1;
    while (s == ncclInProgress) pair_step(&p, &s, &r);
    assert_int_equal(s, ncclRemoteError);
    expect_in_error("another secret");
    assert_int_equal(r, ncclInProgress);
    p.sender.secret.bytes[31] ^= 1;
    pair_join(&p);
    pair_close(&p);
}

static void another_rank_is_refused(void **state)
{
    ncclResult_t s = ncclInProgress, r = ncclInProgress;
    struct pair p;

    (void)state;
    pair_listen(&p);
    p.sender.peer = 4;
    while (s == ncclInProgress) pair_step(&p, &s, &r);
    assert_int_equal(s, ncclRemoteError);
    expect_in_error("another rank is there");
    pair_close(&p);
}

static int connecting(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)
    const struct CMUnitTest tests[] = {
        T(one_listener_serves_many),
        T(making_wakes),
        T(an_arrival_wakes_once),
        T(silence_has_a_deadline),
        T(nobody_there),
        T(a_connect_request_can_be_given_up),
        T(handles_that_are_none),
        T(another_secret_is_refused),
        T(another_rank_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_under_all(connecting);
}
