/* SPDX-License-Identifier: Apache-2.0 */
/** test_conformance.h - the behaviour of every net, as tests. `net` (socket/test_pairs.h) is the one under test. */
#ifndef KL_NET_TEST_CONFORMANCE_H
#define KL_NET_TEST_CONFORMANCE_H

#include "net/socket/test_pairs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

/* ---- messages ---- */

static const size_t sizes[] = {0,
                               1,
                               7,
                               8,
                               39,
                               40,
                               4015,
                               4016,
                               4017,
                               4055,
                               4056,
                               4057,
                               4096,
                               32767,
                               32768,
                               32769,
                               65536,
                               65553,
                               98304,
                               99991,
                               131071,
                               131072,
                               131073,
                               (1 << 20) - 1,
                               (1 << 20) + 3,
                               (5 << 20) + 17};

static void every_size_arrives(void **state)
{
    enum { MOST = (5 << 20) + 17 };
    unsigned char *from = malloc(MOST), *to = malloc(MOST + 1);
    struct pair p;

    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i / 2], came[2] = {0};
        void *both[2];

        fill(from, bytes, i);
        memset(to, 0, bytes + 1);
        if (i % 2) both[0] = post_recv(p.recv, to, bytes, 3);
        both[1] = post_send(p.send, from, bytes, 3);
        if (!(i % 2)) both[0] = post_recv(p.recv, to, bytes, 3);
        assert_int_equal(finish(both, 2, came), ncclSuccess);
        assert_int_equal(came[0], bytes);
        assert_int_equal(came[1], bytes);
        assert_true(filled(to, bytes, i));
        assert_int_equal(to[bytes], 0);
    }
    pair_close(&p);
    free(from);
    free(to);
}

static void many_are_outstanding(void **state)
{
    enum { N = KL_NET_REQUESTS, ROUNDS = 4, MOST = 300000 };
    unsigned char *from = malloc((size_t)N * MOST), *to = malloc((size_t)N * MOST);
    void *request[2 * N];
    struct pair p;

    (void)state;
    pair_open(&p);
    for (int round = 0; round < ROUNDS; round++) {
        size_t came[2 * N];
        void *more;

        for (int i = 0; i < N; i++) {
            size_t bytes = (size_t)i * 9371 * (size_t)round % MOST;
            fill(from + (size_t)i * MOST, bytes, (unsigned)(round * N + i));
            request[i] = post_send(p.send, from + (size_t)i * MOST, bytes, 0);
            request[N + i] = post_recv(p.recv, to + (size_t)i * MOST, MOST, 0);
        }
        assert_int_equal(net->isend(p.send, from, 1, 0, NULL, &more), ncclSuccess);
        assert_null(more);
        assert_int_equal(net->irecv(p.recv, 1, &(struct kl_net_recv){.data = to, .bytes = 1}, &more), ncclSuccess);
        assert_null(more);
        assert_int_equal(finish(request, 2 * N, came), ncclSuccess);
        for (int i = 0; i < N; i++) {
            assert_int_equal(came[N + i], (size_t)i * 9371 * (size_t)round % MOST);
            assert_true(filled(to + (size_t)i * MOST, came[N + i], (unsigned)(round * N + i)));
        }
    }
    pair_close(&p);
    free(from);
    free(to);
}

/* ---- two threads ---- */

enum { STREAM = 200, STREAM_MOST = 1 << 20 };

static size_t stream_bytes(unsigned i)
{
    return i % 7 == 0 ? (i * 7919u * 131u) % STREAM_MOST : (i * 7919u) % 3000;
}

static void *send_stream(void *arg)
{
    struct pair *p = arg;
    unsigned char *data = malloc(STREAM_MOST);

    for (unsigned i = 0; i < STREAM; i++) {
        void *request = NULL;
        bool done = false;
        fill(data, stream_bytes(i), i);
        while (!request)
            if (net->isend(p->send, data, stream_bytes(i), 1, NULL, &request)) abort();
        while (!done)
            if (net->test(request, &done, NULL)) abort();
    }
    free(data);
    return NULL;
}

static void threads_at_both_ends(void **state)
{
    unsigned char *data = malloc(STREAM_MOST);
    pthread_t thread;
    struct pair p;

    (void)state;
    pair_open(&p);
    assert_int_equal(pthread_create(&thread, NULL, send_stream, &p), 0);
    for (unsigned i = 0; i < STREAM; i++) {
        assert_int_equal(outcome_of(post_recv(p.recv, data, STREAM_MOST, 1)), ncclSuccess);
        if (!filled(data, stream_bytes(i), i)) fail_msg("message %u is wrong", i);
    }
    pthread_join(thread, NULL);
    pair_close(&p);
    free(data);
}

/* A sender notices its receiver's end at one of its next messages. */
static ncclResult_t send_until_it_fails(void *send, const void *data, size_t bytes)
{
    ncclResult_t rc;
    void *request;

    do {
        rc = net->isend(send, data, bytes, 4, NULL, &request);
        if (!rc && request) rc = outcome_of(request);
    } while (!rc);
    return rc;
}

static void a_sender_that_closes(void **state)
{
    unsigned char to[2];
    struct pair p;
    void *request;

    (void)state;
    pair_open(&p);
    void *first = post_recv(p.recv, &to[0], 1, 0), *second = post_recv(p.recv, &to[1], 1, 0);
    assert_int_equal(outcome_of(post_send(p.send, "x", 1, 0)), ncclSuccess);
    net->close_send(p.send);
    p.send = NULL;
    assert_int_equal(outcome_of(second), ncclRemoteError);
    expect_in_error("rank 1 has lost its connection with rank 0 at ");
    expect_in_error("the other side closed it");
    assert_int_equal(outcome_of(first), ncclSuccess);
    assert_int_equal(to[0], 'x');
    kl_error_adopt("");
    assert_int_equal(net->irecv(p.recv, 1, &(struct kl_net_recv){.data = to, .bytes = 1}, &request), ncclRemoteError);
    expect_in_error("the other side closed it");
    pair_close(&p);
}

/* Of a message that is sent without the receiver's help as far as possible; `other` is a receive behind it. */
static ncclResult_t outcome_of_sending(void *send, void *other)
{
    enum { ALONE = 1000 };
    bool done = false;

    for (int i = 0; i < ALONE; i++) {
        ncclResult_t rc = net->test(send, &done, NULL);
        if (rc || done) return rc;
    }
    return outcome_beside(send, other);
}

/* The first socket has ended before the others were read. */
static void a_sender_that_closes_when_all_is_on_its_way(void **state)
{
    enum { BYTES = 200 << 10 };
    unsigned char *from = malloc(BYTES), *to = calloc(2, BYTES);
    struct pair p;

    (void)state;
    pair_open(&p);
    fill(from, BYTES, 1);
    void *first = post_recv(p.recv, to, BYTES, 0), *second = post_recv(p.recv, to + BYTES, BYTES, 0);
    assert_int_equal(outcome_of_sending(post_send(p.send, from, BYTES, 0), second), ncclSuccess);
    net->close_send(p.send);
    p.send = NULL;
    assert_int_equal(outcome_of(first), ncclSuccess);
    assert_true(filled(to, BYTES, 1));
    assert_int_equal(outcome_of(second), ncclRemoteError);
    expect_in_error("the other side closed it");
    pair_close(&p);
    free(from);
    free(to);
}

/* ---- interrupted transfers ---- Threads of the connection move data on their own: on a busy machine they may have
 * moved all of a message before the test interrupts the rest. Then the test is repeated. */

enum { LONG = 128 << 20, TRIES = 50 }; /* bytes: more than all of the kernel's buffers take */

struct long_message {
    unsigned char *from, *to;
};

static void tried_until_in_the_middle(bool (*in_the_middle)(struct long_message *))
{
    struct long_message m = {.from = calloc(1, LONG), .to = malloc(LONG)};
    bool met = false;

    for (int i = 0; i < TRIES && !met; i++) met = in_the_middle(&m);
    assert_true(met);
    free(m.from);
    free(m.to);
}

static bool sender_closes(struct long_message *m)
{
    struct pair p;
    bool done = false, sent = false;

    pair_open(&p);
    void *send = post_send(p.send, m->from, LONG, 0), *recv = post_recv(p.recv, m->to, LONG, 0);
    assert_int_equal(net->test(send, &sent, NULL), ncclSuccess);
    assert_int_equal(net->test(recv, &done, NULL), ncclSuccess);
    net->close_send(p.send);
    p.send = NULL;
    ncclResult_t rc = done ? ncclSuccess : outcome_of(recv);
    if (rc) expect_in_error("lost its connection with rank 0");
    assert_true(!rc || rc == ncclRemoteError);
    pair_close(&p);
    return rc;
}

static void a_sender_that_closes_in_the_middle(void **state)
{
    (void)state;
    tried_until_in_the_middle(sender_closes);
}

static void a_receiver_that_closes(void **state)
{
    enum { BYTES = 32 << 20 };
    unsigned char *from = calloc(1, BYTES);
    struct pair p;
    void *request;

    (void)state;
    pair_open(&p);
    (void)post_send(p.send, from, BYTES, 4);
    net->close_recv(p.recv);
    p.recv = NULL;
    assert_int_equal(send_until_it_fails(p.send, from, BYTES), ncclRemoteError);
    expect_in_error("rank 0 has lost its connection with rank 1 at ");
    kl_error_adopt("");
    assert_int_equal(net->isend(p.send, from, 1, 0, NULL, &request), ncclRemoteError);
    expect_in_error("rank 0 has lost its connection with rank 1 at ");
    pair_close(&p);
    free(from);
}

/* `receiver`: the receiver cancels, otherwise the sender. */
static bool cancelled_by(struct long_message *m, bool receiver)
{
    unsigned char *own = receiver ? m->to : m->from;
    struct pair p;
    bool done = false;

    pair_open(&p);
    void *send = post_send(p.send, m->from, LONG, 0), *recv = post_recv(p.recv, m->to, LONG, 0);
    assert_int_equal(net->test(recv, &done, NULL), ncclSuccess);
    net->cancel(receiver ? p.recv : p.send);
    /* a thread that still accessed the buffer would be a data race */
    for (size_t i = 0; i < LONG; i += 65536) own[i] = 1;
    ncclResult_t received = done ? ncclSuccess : outcome_of(recv), sent = outcome_of(send);
    ncclResult_t mine = receiver ? received : sent, theirs = receiver ? sent : received;
    assert_true(!mine || mine == ncclInternalError);
    assert_true(!theirs || theirs == ncclRemoteError);
    pair_close(&p);
    return mine && theirs;
}

static bool sender_cancels(struct long_message *m)
{
    return cancelled_by(m, false);
}

static bool receiver_cancels(struct long_message *m)
{
    return cancelled_by(m, true);
}

static void cancel_ends_both(void **state)
{
    (void)state;
    tried_until_in_the_middle(sender_cancels);
    tried_until_in_the_middle(receiver_cancels);
}

static void closed_with_requests_outstanding(void **state)
{
    enum { BYTES = 4 << 20 };
    unsigned char *from = calloc(1, BYTES), *to = malloc(BYTES);
    struct pair p;

    (void)state;
    pair_open(&p);
    for (int i = 0; i < 8; i++) {
        post_send(p.send, from, BYTES, 0);
        post_recv(p.recv, to, BYTES, 0);
    }
    pair_close(&p);
    free(from);
    free(to);
}

/* ---- another process ---- */

/* The child's last act; *at, shared with the parent, is its time. */
static void die(_Atomic uint64_t *at)
{
    kl_store_release(at, kl_now_ns());
    raise(SIGKILL);
}

/* In a process of its own: begin to send, or to receive, and die. */
static void send_and_die(struct pair *p, const struct long_message *m, _Atomic uint64_t *at)
{
    ncclResult_t rc = ncclInProgress;
    void *request;

    while (rc == ncclInProgress) rc = net->connect(0, &p->sender, &p->handle, &p->send);
    if (!rc) (void)net->isend(p->send, m->from, LONG, 0, NULL, &request);
    die(at);
}

static void receive_and_die(struct pair *p, const struct long_message *m, _Atomic uint64_t *at)
{
    const struct kl_net_recv one = {.data = m->to, .bytes = LONG};
    ncclResult_t rc = ncclInProgress;
    bool done = false;
    void *request;

    while (rc == ncclInProgress) rc = net->accept(p->listener, &p->receiver, &p->recv);
    if (!rc) rc = net->irecv(p->recv, 1, &one, &request);
    for (int i = 0; i < 100 && !rc && !done; i++) rc = net->test(request, &done, NULL);
    die(at);
}

/* The end in this process: the result of its message. */
static ncclResult_t outcome_of_receiver(struct pair *p, const struct long_message *m)
{
    ncclResult_t rc = ncclInProgress;

    while (rc == ncclInProgress) rc = net->accept(p->listener, &p->receiver, &p->recv);
    assert_int_equal(rc, ncclSuccess);
    return outcome_of(post_recv(p->recv, m->to, LONG, 0));
}

static ncclResult_t outcome_of_sender(struct pair *p, const struct long_message *m)
{
    ncclResult_t rc = ncclInProgress;

    while (rc == ncclInProgress) rc = net->connect(0, &p->sender, &p->handle, &p->send);
    assert_int_equal(rc, ncclSuccess);
    return outcome_of(post_send(p->send, m->from, LONG, 0));
}

/* How long the other end needs to notice is reported, and not asserted: outcome_of does not wait for a device's own limits where a test sets them high. */
static bool process_dies(struct long_message *m, bool sender)
{
    _Atomic uint64_t *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct pair p;
    int status;

    assert_true(at != MAP_FAILED);
    pair_listen(&p);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid && sender) send_and_die(&p, m, at);
    if (!pid) receive_and_die(&p, m, at);
    ncclResult_t rc = sender ? outcome_of_receiver(&p, m) : outcome_of_sender(&p, m);
    const uint64_t now = kl_now_ns();
    if (rc)
        expect_in_error(sender ? "rank 1 has lost its connection with rank 0 at "
                               : "rank 0 has lost its connection with rank 1 at ");
    if (rc)
        printf("the end of a %s's process is noticed after %.1f ms\n", sender ? "sender" : "receiver",
               (double)(now - kl_load_acquire(at)) / 1e6);
    assert_true(!rc || rc == ncclRemoteError);
    waitpid(pid, &status, 0);
    pair_close(&p);
    munmap(at, sizeof *at);
    return rc;
}

static bool sending_process_dies(struct long_message *m)
{
    return process_dies(m, true);
}

static bool receiving_process_dies(struct long_message *m)
{
    return process_dies(m, false);
}

static void a_process_that_dies(void **state)
{
    (void)state;
    tried_until_in_the_middle(sending_process_dies);
    tried_until_in_the_middle(receiving_process_dies);
}

/* Those of one process. */
#define CONFORMANCE_TESTS_ALONE                                                                                        \
    T(every_size_arrives), T(many_are_outstanding), T(threads_at_both_ends), T(a_sender_that_closes),                  \
        T(a_sender_that_closes_when_all_is_on_its_way), T(a_sender_that_closes_in_the_middle),                         \
        T(a_receiver_that_closes), T(cancel_ends_both), T(closed_with_requests_outstanding)
#define CONFORMANCE_TESTS CONFORMANCE_TESTS_ALONE, T(a_process_that_dies)

#endif
