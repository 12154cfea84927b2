/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over sockets: messages of all sizes, order and tags, errors, deadlines, sleeping. */
#include "net/socket/test_pairs.h"

#include "net/socket/terms.h"
#include "os/socket.h"

#include "tests/hang.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

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

/* ---- sleeping ---- */

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

/* Send until `fd` becomes readable. One attempt may find the sockets full: the kernel frees read buffers at its own
 * pace. */
static void wake_by_sending(void **send, struct pollfd *fd)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    bool done;

    while (poll(fd, 1, 1) != 1) {
        if (kl_deadline_passed(deadline)) fail_msg("a wake-up is lost");
        if (!*send) continue;
        assert_int_equal(net->test(*send, &done, NULL), ncclSuccess);
        if (done) *send = NULL;
    }
}

/* A test between sleep_on and the sleep reads the head of a message whose data comes on other sockets. */
static void what_work_finds_is_waited_for(void **state)
{
    enum { BYTES = 32 << 20, ENOUGH = 100 }; /* more than the sockets hold; rounds that empty them */
    unsigned char *from = calloc(1, BYTES), *to = malloc(BYTES);
    struct pollfd fd = {.events = POLLIN};
    struct pair p;
    bool done;

    (void)state;
    pair_open(&p);
    void *recv = post_recv(p.recv, to, BYTES, 0);
    assert_int_equal(net->sleep_on(p.recv, &fd.fd), ncclSuccess);
    void *send = post_send(p.send, from, BYTES, 0);
    for (int i = 0; i < ENOUGH; i++) {
        assert_int_equal(net->test(recv, &done, NULL), ncclSuccess);
        if (done) break; /* threads of the sender moved the rest */
    }
    if (!done) {
        wake_by_sending(&send, &fd);
        while (send || recv) {
            if (send) assert_int_equal(net->test(send, &done, NULL), ncclSuccess);
            if (send && done) send = NULL;
            if (recv) assert_int_equal(net->test(recv, &done, NULL), ncclSuccess);
            if (recv && done) recv = NULL;
        }
    } else if (send) {
        assert_int_equal(outcome_of(send), ncclSuccess);
    }
    assert_memory_equal(from, to, BYTES);
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

/* ---- failures ---- */

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
    assert_int_equal(outcome_of(post_send(p.send, from, BYTES, 0)), ncclSuccess);
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

/* ---- devices ---- */

static void devices_describe_themselves(void **state)
{
    struct kl_net_properties q;
    struct pair p;
    void *mr;

    (void)state;
    assert_true(net->devices() >= 1);
    assert_int_equal(net->properties(0, &q), ncclSuccess);
    assert_true(q.speed_mbps > 0 && q.max_recvs == KL_NET_RECVS && q.memory == KL_NET_HOST && q.max_bytes >> 40);
    if (*getenv("NCCL_SOCKET_IFNAME")) assert_string_equal(q.name, getenv("NCCL_SOCKET_IFNAME") + 1);
    assert_int_equal(net->properties(net->devices(), &q), ncclInvalidArgument);
    assert_int_equal(net->properties(-1, &q), ncclInvalidArgument);
    pair_open(&p);
    assert_int_equal(net->reg_mr(p.send, &p, sizeof p, KL_NET_HOST, &mr), ncclSuccess);
    assert_int_equal(net->dereg_mr(p.send, mr), ncclSuccess);
    assert_int_equal(net->reg_mr(p.send, &p, sizeof p, KL_NET_CUDA, &mr), ncclInvalidArgument);
    assert_int_equal(net->iflush(p.recv, 0, NULL, &mr), ncclSuccess);
    assert_null(mr);
    pair_close(&p);
}

/* ---- another process ---- */

/* The sender, in a process of its own, which dies after it has begun to send. */
static void send_and_die(struct pair *p, const struct long_message *m)
{
    ncclResult_t rc = ncclInProgress;
    void *request;

    while (rc == ncclInProgress) rc = net->connect(0, &p->sender, &p->handle, &p->send);
    if (!rc) (void)net->isend(p->send, m->from, LONG, 0, NULL, &request);
    raise(SIGKILL);
}

static bool process_dies(struct long_message *m)
{
    struct pair p;
    int status;

    pair_listen(&p);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) send_and_die(&p, m);
    ncclResult_t rc = ncclInProgress;
    while (rc == ncclInProgress) rc = net->accept(p.listener, &p.receiver, &p.recv);
    assert_int_equal(rc, ncclSuccess);
    rc = outcome_of(post_recv(p.recv, m->to, LONG, 0));
    if (rc) expect_in_error("rank 1 has lost its connection with rank 0 at ");
    assert_true(!rc || rc == ncclRemoteError);
    waitpid(pid, &status, 0);
    pair_close(&p);
    return rc;
}

static void a_process_that_dies(void **state)
{
    (void)state;
    tried_until_in_the_middle(process_dies);
}

static int traffic(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)
    const struct CMUnitTest tests[] = {
        T(every_size_arrives),
        T(many_are_outstanding),
        T(tags_find_their_receives),
        T(threads_at_both_ends),
        T(sleepers_are_woken),
        T(what_work_finds_is_waited_for),
        T(nothing_to_do_wakes_nobody),
        T(sizes_that_differ_are_named),
        T(large_sizes_that_differ_are_named),
        T(a_tag_that_nobody_can_want),
        T(a_sender_that_closes),
        T(a_sender_that_closes_when_all_is_on_its_way),
        T(a_sender_that_closes_in_the_middle),
        T(a_receiver_that_closes),
        T(cancel_ends_both),
        T(closed_with_requests_outstanding),
        T(devices_describe_themselves),
        T(a_process_that_dies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_under_all(traffic);
}
