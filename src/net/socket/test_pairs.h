/* SPDX-License-Identifier: Apache-2.0 */
/** test_pairs.h - for the tests of this folder: connections with both ends in one thread, under several settings. */
#ifndef KL_NET_SOCKET_TEST_PAIRS_H
#define KL_NET_SOCKET_TEST_PAIRS_H

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/net.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct kl_net *net = &kl_net_socket; /* under test */

struct pair {
    void *listener, *send, *recv;
    struct kl_net_handle handle;
    struct kl_net_end sender, receiver;
};

/* ---- settings: each runs in a process of its own, because a process reads them once ---- */

struct setting {
    const char *name, *interface, *family, *sockets, *threads, *crypt;
};

static inline int run_under(const struct setting *s, int (*tests)(void))
{
    int status = -1;

    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        printf("---- %s\n", s->name);
        setenv("NCCL_SOCKET_IFNAME", s->interface, 1);
        setenv("NCCL_SOCKET_FAMILY", s->family, 1);
        setenv("NCCL_NSOCKS_PERTHREAD", s->sockets, 1);
        setenv("NCCL_SOCKET_NTHREADS", s->threads, 1);
        setenv("KOLO_NET_CRYPT", s->crypt, 1);
        setenv("NCCL_SOCKET_RETRY_CNT", "2", 1);
        setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
        kl_error_quiet(1);
        if (net->init()) {
            printf("skipped: %s\n", kl_error_text());
            fflush(stdout);
            _exit(KOLO_TEST_SKIP);
        }
        exit(tests());
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == KOLO_TEST_SKIP) return 0;
    return !WIFEXITED(status) || WEXITSTATUS(status);
}

/* Run under a setting of each kind; returns how many have failed. */
static inline int run_under_all(int (*tests)(void))
{
    static const struct setting settings[] = {
        {"one socket", "=lo", "AF_INET", "1", "0", "0"},
        {"one socket, encrypted", "=lo", "AF_INET", "1", "0", "1"},
        {"four sockets, no thread", "=lo", "AF_INET", "4", "0", "0"},
        {"two threads, three sockets each", "=lo", "AF_INET", "3", "2", "0"},
        {"one thread, two sockets, encrypted", "=lo", "AF_INET", "2", "1", "1"},
        {"IPv6", "", "AF_INET6", "2", "0", "0"},
    };
    int failed = 0;

    FOR_EACH_CASE(s, settings) failed += run_under(s, tests);
    return failed;
}

/* ---- leaks ---- */

static inline int note_fds(void **state)
{
    static int fds;

    fds = count_fds();
    *state = &fds;
    return 0;
}

static inline int expect_no_more_fds(void **state)
{
    int now = count_fds();

    if (now != *(int *)*state) fprintf(stderr, "%d descriptors before, %d after\n", *(int *)*state, now);
    return now != *(int *)*state;
}

/* ---- pairs ---- */

static inline struct kl_net_end end_of(int rank, int peer, uint32_t id)
{
    struct kl_net_end e = {.rank = rank, .peer = peer, .id = id, .deadline = kl_deadline_in_ms(kolo_test_hang_ms())};

    memset(e.secret.bytes, 42, sizeof e.secret.bytes);
    return e;
}

static inline void pair_listen(struct pair *p)
{
    *p = (struct pair){.sender = end_of(0, 1, 7), .receiver = end_of(1, 0, 7)};
    assert_int_equal(net->listen(0, &p->receiver, &p->handle, &p->listener), ncclSuccess);
}

/* One step of the ends that are not connected yet. */
static inline void pair_step(struct pair *p, ncclResult_t *sent, ncclResult_t *received)
{
    if (*sent == ncclInProgress) *sent = net->connect(0, &p->sender, &p->handle, &p->send);
    if (*received == ncclInProgress) *received = net->accept(p->listener, &p->receiver, &p->recv);
}

static inline void pair_join(struct pair *p)
{
    ncclResult_t s = ncclInProgress, r = ncclInProgress;

    while (s == ncclInProgress || r == ncclInProgress) pair_step(p, &s, &r);
    if (s || r) fail_msg("%s", kl_error_text());
}

static inline void pair_open(struct pair *p)
{
    pair_listen(p);
    pair_join(p);
}

static inline void pair_close(struct pair *p)
{
    net->close_send(p->send);
    net->close_recv(p->recv);
    net->close_listen(p->listener);
}

/* ---- messages ---- */

/* One thread fills and compares: ThreadSanitizer has nothing to see in each byte. */
__attribute__((no_sanitize_thread)) static inline void fill(unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 7);
}

__attribute__((no_sanitize_thread)) static inline bool filled(const unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)((i * 2654435761u + seed * 40503u) >> 7)) return false;
    return true;
}

static inline void *post_send(void *send, const void *data, size_t bytes, int tag)
{
    void *request = NULL;

    assert_int_equal(net->isend(send, data, bytes, tag, NULL, &request), ncclSuccess);
    assert_non_null(request);
    return request;
}

static inline void *post_recv(void *recv, void *data, size_t bytes, int tag)
{
    const struct kl_net_recv one = {.data = data, .bytes = bytes, .tag = tag};
    void *request = NULL;

    assert_int_equal(net->irecv(recv, 1, &one, &request), ncclSuccess);
    assert_non_null(request);
    return request;
}

/* Test requests (NULL: none, or done) until all are done or one fails. */
static inline ncclResult_t finish(void **requests, int n, size_t *sizes)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    for (int left = n; left;) {
        left = 0;
        for (int i = 0; i < n; i++) {
            bool done = false;

            if (!requests[i]) continue;
            ncclResult_t rc = net->test(requests[i], &done, sizes ? &sizes[i] : NULL);
            if (rc) return rc;
            if (done) requests[i] = NULL;
            left += !done;
        }
        if (kl_deadline_passed(deadline)) fail_msg("%d of %d requests are not done", left, n);
    }
    return ncclSuccess;
}

/* Test one until it fails or is done. */
static inline ncclResult_t outcome_of(void *request)
{
    return finish(&request, 1, NULL);
}

/* The same, while progress is made on `other`, of the other end, whose result is ignored. */
static inline ncclResult_t outcome_beside(void *request, void *other)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclResult_t rc = ncclSuccess;

    for (bool done = false, over = false; !rc && !done; rc = net->test(request, &done, NULL)) {
        if (!over && net->test(other, &over, NULL)) over = true;
        if (kl_deadline_passed(deadline)) fail_msg("a request is not done");
    }
    return rc;
}

static inline void expect_in_error(const char *text)
{
    if (!strstr(kl_error_text(), text)) fail_msg("\"%s\" is not in \"%s\"", text, kl_error_text());
}

#endif
