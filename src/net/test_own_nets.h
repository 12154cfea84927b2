/* SPDX-License-Identifier: Apache-2.0 */
/** test_own_nets.h - for tests of Kolo's own nets: the behaviour of net.h that plugins do not have. */
#ifndef KL_NET_TEST_OWN_NETS_H
#define KL_NET_TEST_OWN_NETS_H

#include "net/test_conformance.h"

#include <poll.h>

static void tags_find_their_receives(void **state)
{
    static const int order[] = {5, 2, 7, 0, 2, 5};
    unsigned char to[8][64];
    struct kl_net_recv recvs[8];
    size_t came[8];
    struct pair p;
    void *send, *recv, *all;
    bool done;

    (void)state;
    pair_open(&p);
    for (int i = 0; i < 8; i++) recvs[i] = (struct kl_net_recv){.data = to[i], .bytes = 64, .tag = i};
    assert_int_equal(net->irecv(p.recv, 8, recvs, &recv), ncclSuccess);
    for (int i = 0; i < 8; i++) { /* in another order than posted, 10 to 17 bytes */
        unsigned char data[64];
        int tag = i * 3 % 8;
        fill(data, 64, (unsigned)tag);
        send = post_send(p.send, data, (size_t)(10 + tag), tag);
        assert_int_equal(outcome_of(send), ncclSuccess);
    }
    do assert_int_equal(net->test(recv, &done, came), ncclSuccess);
    while (!done);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(came[i], 10 + i);
        assert_true(filled(to[i], came[i], i));
    }

    /* Equal tags match in the order of posting; a message without a posted receive waits, and those behind it. */
    unsigned char byte[6], got[6] = {0};
    void *want[6];
    for (int i = 0; i < 6; i++) {
        byte[i] = (unsigned char)('a' + i);
        assert_int_equal(outcome_of(post_send(p.send, &byte[i], 1, order[i])), ncclSuccess);
    }
    want[0] = post_recv(p.recv, &got[0], 1, 2); /* b */
    want[1] = post_recv(p.recv, &got[1], 1, 2); /* e */
    want[2] = post_recv(p.recv, &got[2], 1, 0); /* d */
    assert_int_equal(net->test(want[0], &done, NULL), ncclSuccess);
    assert_false(done);
    want[3] = post_recv(p.recv, &got[3], 1, 5); /* a */
    want[4] = post_recv(p.recv, &got[4], 1, 7); /* c */
    want[5] = post_recv(p.recv, &got[5], 1, 5); /* f */
    assert_int_equal(finish(want, 6, NULL), ncclSuccess);
    assert_memory_equal(got, "bedacf", 6);

    assert_int_equal(net->irecv(p.recv, 9, recvs, &all), ncclInvalidArgument);
    assert_int_equal(net->irecv(p.recv, 0, recvs, &all), ncclInvalidArgument);
    pair_close(&p);
}

/* Sleep until one of both ends may progress. */
static void sleep_on_both(const struct pair *p, void **request)
{
    struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
    bool done;

    assert_int_equal(net->sleep_on(p->send, &fds[0].fd), ncclSuccess);
    assert_int_equal(net->sleep_on(p->recv, &fds[1].fd), ncclSuccess);
    for (int i = 0; i < 2; i++) {
        if (!request[i]) continue;
        assert_int_equal(net->test(request[i], &done, NULL), ncclSuccess);
        if (done) request[i] = NULL;
        if (done) return;
    }
    assert_true(poll(fds, 2, (int)kolo_test_hang_ms()) > 0); /* otherwise a wake-up was lost */
}

static void sleepers_are_woken(void **state)
{
    enum { MOST = 8 << 20 };
    unsigned char *from = malloc(MOST), *to = malloc(MOST);
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned round = 0; round < 20; round++) {
        size_t bytes = round % 2 ? MOST - round : 8;
        fill(from, bytes, round);
        void *request[2] = {post_send(p.send, from, bytes, 0), post_recv(p.recv, to, MOST, 0)};
        while (request[0] || request[1]) sleep_on_both(&p, request);
        assert_true(filled(to, bytes, round));
    }
    pair_close(&p);
    free(from);
    free(to);
}

static void nothing_to_do_wakes_nobody(void **state)
{
    struct pair p;
    struct pollfd fd = {.events = POLLIN};
    unsigned char byte;

    (void)state;
    pair_open(&p);
    void *recv = post_recv(p.recv, &byte, 1, 0);
    assert_int_equal(net->sleep_on(p.recv, &fd.fd), ncclSuccess);
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 0)), ncclSuccess);
    assert_int_equal(poll(&fd, 1, (int)kolo_test_hang_ms()), 1);
    assert_int_equal(outcome_of(recv), ncclSuccess);
    assert_int_equal(net->sleep_on(p.recv, &fd.fd), ncclSuccess);
    assert_int_equal(poll(&fd, 1, 0), 0);
    pair_close(&p);
}

static void sizes_that_differ_are_named(void **state)
{
    unsigned char from[300] = {0}, to[300];
    struct pair p;
    void *request;

    (void)state;
    pair_open(&p);
    void *good = post_recv(p.recv, to, 20, 4), *bad = post_recv(p.recv, to, 100, 4),
         *third = post_recv(p.recv, to, 100, 4);
    assert_int_equal(outcome_of(post_send(p.send, from, 20, 4)), ncclSuccess);
    void *larger = post_send(p.send, from, 300, 4);
    assert_int_equal(outcome_beside(bad, larger), ncclInvalidUsage);
    expect_in_error("rank 0 at ");
    expect_in_error("has sent 300 bytes (tag 4) to rank 1, which has posted 100");
    assert_int_equal(outcome_of(good), ncclSuccess); /* it was finished before */
    assert_int_equal(outcome_of(third), ncclInvalidUsage);
    assert_int_equal(net->irecv(p.recv, 1, &(struct kl_net_recv){.data = to, .bytes = 1}, &request), ncclInvalidUsage);

    assert_int_equal(send_until_it_fails(p.send, from, 300), ncclInvalidUsage);
    expect_in_error("rank 0 has sent 300 bytes (tag 4) to rank 1 at ");
    expect_in_error("which has posted 100");
    kl_error_adopt("");
    assert_int_equal(net->isend(p.send, from, 300, 4, NULL, &request), ncclInvalidUsage);
    expect_in_error("which has posted 100");
    pair_close(&p);
}

/* Large messages are announced, so none of their data needs to move. */
static void large_sizes_that_differ_are_named(void **state)
{
    enum { BYTES = 8 << 20 };
    unsigned char *from = calloc(1, BYTES), *to = malloc(BYTES);
    struct pair p;

    (void)state;
    pair_open(&p);
    void *recv = post_recv(p.recv, to, BYTES - 1, 4);
    void *send = post_send(p.send, from, BYTES, 4);
    assert_int_equal(outcome_beside(recv, send), ncclInvalidUsage);
    assert_int_equal(send_until_it_fails(p.send, from, BYTES), ncclInvalidUsage);
    expect_in_error("has sent 8388608 bytes (tag 4) to rank 1");
    expect_in_error("which has posted 8388607");
    pair_close(&p);
    free(from);
    free(to);
}

static void a_tag_that_nobody_can_want(void **state)
{
    unsigned char to;
    void *recv = NULL;
    struct pair p;

    (void)state;
    pair_open(&p);
    for (int i = 0; i < KL_NET_REQUESTS; i++) recv = post_recv(p.recv, &to, 1, 1);
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 2)), ncclSuccess);
    assert_int_equal(outcome_of(recv), ncclInvalidUsage);
    expect_in_error("message with tag 2");
    pair_close(&p);
}

#define OWN_NETS_TESTS                                                                                                 \
    T(tags_find_their_receives), T(sleepers_are_woken), T(nothing_to_do_wakes_nobody), T(sizes_that_differ_are_named), \
        T(large_sizes_that_differ_are_named), T(a_tag_that_nobody_can_want)

#endif
