/* SPDX-License-Identifier: Apache-2.0 */
/** test_jobs.h - for the tests of this folder: jobs whose ranks are threads, and a check for leaked descriptors. */
#ifndef KL_BOOTSTRAP_TEST_JOBS_H
#define KL_BOOTSTRAP_TEST_JOBS_H

#include "base/atomic.h"
#include "base/error.h"
#include "base/clock.h"
#include "bootstrap/dialer.h"
#include "bootstrap/id.h"
#include "bootstrap/state.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 17 };

struct rank {
    struct kl_bootstrap_config config;
    void (*run)(struct rank *me, struct kl_bootstrap *b);
    uint64_t after_join_timeout_ms; /* unless 0 */
    pthread_t thread;
    ncclResult_t joined;
    char text[KL_ERROR_TEXT]; /* of a failure to join */

    /* arguments of on_failure: */
    _Atomic int failures;
    int culprit;
    ncclResult_t code;
    char failure[KL_ERROR_TEXT];
    sem_t failed;
};

static inline void note_failure(void *ctx, int culprit, ncclResult_t code, const char *text)
{
    struct rank *me = ctx;

    me->culprit = culprit;
    me->code = code;
    snprintf(me->failure, sizeof me->failure, "%s", text);
    kl_fetch_add_acq_rel(&me->failures, 1);
    sem_post(&me->failed);
}

/** An assertion for threads other than the test's, where those of cmocka do not work. */
#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, kl_error_text());          \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Wait for the single call of on_failure. */
static inline void await_failure(struct rank *me)
{
    while (sem_wait(&me->failed)) continue;
    must(kl_load_acquire(&me->failures) == 1);
}

static inline void *rank_main(void *arg)
{
    struct rank *me = arg;
    struct kl_bootstrap *b = NULL;

    kl_error_quiet(1);
    me->joined = kl_bootstrap_join(&me->config, &b);
    if (me->joined) snprintf(me->text, sizeof me->text, "%s", kl_error_text());
    if (b && me->after_join_timeout_ms) b->timeout_ms = me->after_join_timeout_ms;
    if (b && me->run) me->run(me, b);
    kl_bootstrap_leave(b);
    return NULL;
}

static inline void setup_ranks(struct rank *ranks, int n, const ncclUniqueId *id,
                               void (*run)(struct rank *, struct kl_bootstrap *))
{
    for (int r = 0; r < n; r++) {
        struct rank *me = &ranks[r];
        *me = (struct rank){.run = run};
        me->config = (struct kl_bootstrap_config){.id = *id,
                                                  .rank = r,
                                                  .nranks = n,
                                                  .timeout_ms = kolo_test_hang_ms(),
                                                  .on_failure = note_failure,
                                                  .ctx = me};
        sem_init(&me->failed, 0, 0);
    }
}

/* With an id of its own, whose rendezvous stays until it is used or has failed. */
static inline void setup_job(struct rank *ranks, int n, void (*run)(struct rank *, struct kl_bootstrap *))
{
    ncclUniqueId id;

    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
    setup_ranks(ranks, n, &id, run);
}

static inline void run_ranks(struct rank *ranks, int n)
{
    for (int r = 0; r < n; r++) assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    for (int r = 0; r < n; r++) pthread_join(ranks[r].thread, NULL);
}

static inline void expect_joined(const struct rank *ranks, int n)
{
    for (int r = 0; r < n; r++)
        if (ranks[r].joined) fail_msg("rank %d of %d: %s", r, n, ranks[r].text);
}

static inline void run_job(int n, void (*run)(struct rank *, struct kl_bootstrap *))
{
    struct rank ranks[MAX_RANKS];

    setup_job(ranks, n, run);
    run_ranks(ranks, n);
    expect_joined(ranks, n);
}

/* ---- calls ---- */

static inline int dial(const union kl_address *address)
{
    int fd = -1;

    must(!kl_socket_connect_begin(address, &fd));
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    must(poll(&p, 1, (int)kolo_test_hang_ms()) == 1);
    must(!kl_socket_connect_finish(fd));
    return fd;
}

/* The caller's part of a handshake on a connected socket. KL_IO_DONE: an answer came. */
static inline enum kl_io shake_hands(struct kl_connection *connection, const struct kl_key *key,
                                     const struct kl_hello *hello, enum kl_handshake_outcome *outcome)
{
    const struct kl_io_wait wait = {.deadline = KL_NO_DEADLINE};
    unsigned char proof[KL_PROOF_BYTES], answer[KL_ANSWER_BYTES];
    struct kl_handshake h = {.key = *key};
    int fd = connection->fd;
    enum kl_io io;

    kl_hello_encode(hello, h.caller);
    if ((io = kl_socket_send(fd, h.caller, sizeof h.caller, &wait))) return io;
    if ((io = kl_socket_recv(fd, h.host, sizeof h.host, &wait))) return io;
    kl_handshake_prove(&h, proof);
    if ((io = kl_socket_send(fd, proof, sizeof proof, &wait))) return io;
    if ((io = kl_socket_recv(fd, answer, sizeof answer, &wait))) return io;
    if (!kl_handshake_answered(&h, answer, outcome)) *outcome = KL_REFUSED;
    kl_handshake_seals(&h, KL_CALLER, &connection->out, &connection->in);
    return KL_IO_DONE;
}

/* Send bytes, sealed as one piece. */
static inline void say_sealed(struct kl_connection *connection, const void *bytes, size_t n)
{
    const struct kl_io_wait wait = {.deadline = KL_NO_DEADLINE};
    unsigned char sealed[1024];

    must(n + KL_SEAL_BYTES <= sizeof sealed);
    kl_seal_close(&connection->out, bytes, n, sealed);
    must(!kl_socket_send(connection->fd, sealed, n + KL_SEAL_BYTES, &wait));
}

struct awaited_call {
    sem_t done;
    ncclResult_t rc;
    struct kl_connection connection;
    char text[KL_ERROR_TEXT];
};

static inline void note_call(void *ctx, ncclResult_t rc, const struct kl_connection *connection)
{
    struct awaited_call *a = ctx;

    a->rc = rc;
    if (connection) a->connection = *connection;
    snprintf(a->text, sizeof a->text, "%s", kl_error_text());
    sem_post(&a->done);
}

/* Call, and wait for the end of the call. */
static inline ncclResult_t call_and_wait(struct kl_call *call, struct kl_connection *connection)
{
    struct awaited_call a = {.connection = {.fd = -1}};
    struct kl_dialer *caller;
    struct kl_loop *loop;

    if (!call->deadline) call->deadline = KL_NO_DEADLINE;
    call->quiet = true;
    call->error_prefix = "a test";
    sem_init(&a.done, 0, 0);
    must(!kl_loop_ref(&loop));
    must(!kl_dialer_start(loop, call, note_call, &a, &caller));
    while (sem_wait(&a.done)) continue;
    kl_loop_unref(loop);
    sem_destroy(&a.done);
    if (a.rc) kl_error_adopt(a.text);
    *connection = a.connection;
    return a.rc;
}

/* ---- leaks ---- */

/* Fails when they stay open: a test that failed may have leaked some for good. */
static inline int await_fds(int most)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    while (count_fds() > most && !kl_deadline_passed(deadline)) sched_yield();
    return count_fds() > most;
}

static int fds_before;

static inline int note_fds(void **state)
{
    (void)state;
    fds_before = count_fds();
    return 0;
}

/* Objects that the event loop frees by itself, such as a rendezvous, may take a moment longer. */
static inline int expect_no_more_fds(void **state)
{
    (void)state;
    return await_fds(fds_before);
}

/** A test that must leave no more descriptors open than before. */
#define leak_test(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)

/* ---- bodies of jobs ---- */

static inline void gather_and_check(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, all[MAX_RANKS];

    for (int round = 0; round < 3; round++) {
        all[me->config.rank] = 100 * round + me->config.rank;
        must(kl_bootstrap_allgather(b, all, sizeof all[0]) == ncclSuccess);
        for (int r = 0; r < n; r++) must(all[r] == 100 * round + r);
        must(kl_bootstrap_barrier(b) == ncclSuccess);
    }
    must(kl_bootstrap_allgather(b, NULL, 0) == ncclSuccess);
}

/* All ranks send to all, first tag 2, then tag 1, and receive in the other order. Many connection attempts cross. */
static inline void talk_to_all(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, rank = me->config.rank, got;

    for (uint32_t tag = 2; tag; tag--)
        for (int r = 0; r < n; r++) {
            int value = 1000 * (int)tag + 10 * rank + r;
            must(kl_bootstrap_send(b, r, tag, &value, sizeof value) == ncclSuccess);
        }
    for (uint32_t tag = 1; tag <= 2; tag++)
        for (int r = 0; r < n; r++) {
            must(kl_bootstrap_recv(b, r, tag, &got, sizeof got) == ncclSuccess);
            must(got == 1000 * (int)tag + 10 * r + rank);
        }
    must(kl_bootstrap_barrier(b) == ncclSuccess);
}

/* ---- bare connections ---- */

static inline union kl_address free_address(const char *text)
{
    union kl_address address;
    int fd;

    assert_int_equal(kl_address_parse(text, &address), ncclSuccess);
    assert_int_equal(kl_socket_listen(&address, &fd), ncclSuccess);
    kl_socket_close(fd);
    return address;
}

/* Call the root behind an id, as some rank. */
static inline ncclResult_t knock(const ncclUniqueId *bytes, int rank, struct kl_connection *root)
{
    struct kl_id id;

    assert_true(kl_id_unpack(bytes, &id));
    struct kl_key key = kl_key_derive(&id.secret, "kolo root", NULL, 0);
    struct kl_call call = {.addresses = id.address, .naddresses = id.naddresses, .key = &key};
    call.hello =
        (struct kl_hello){KL_PROTOCOL, KL_CONNECTION_ROOT, KL_CALLER, (uint32_t)rank, KL_NO_RANK, kl_id_name(&id)};
    return call_and_wait(&call, root);
}

/* Announce a rank that listens on `address`, and return the connection to the root. */
static inline int announce_somebody(const ncclUniqueId *id, int rank, int nranks, const union kl_address *address)
{
    struct kl_announce a = {.nranks = nranks, .library = NCCL_VERSION_CODE, .timeout_ms = kolo_test_hang_ms()};
    struct kl_frame_head head = {.type = KL_FRAME_ANNOUNCE, .length = KL_ANNOUNCE_WIRE};
    unsigned char wire[KL_ANNOUNCE_WIRE], sealed[KL_FRAME_SEALED_HEAD];
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    struct kl_connection root;

    assert_int_equal(knock(id, rank, &root), ncclSuccess);
    a.record = (struct kl_address_record){
        .rank = rank, .pid = 77, .host = "elsewhere", .naddresses = 1, .address = {*address}};
    kl_announce_encode(&a, wire);
    kl_frame_seal_head(&root.out, &head, sealed);
    assert_int_equal(kl_socket_send(root.fd, sealed, sizeof sealed, &wait), KL_IO_DONE);
    say_sealed(&root, wire, sizeof wire);
    return root.fd;
}

#endif
