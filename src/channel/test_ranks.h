/* SPDX-License-Identifier: Apache-2.0 */
/**
 * test_ranks.h - for tests: the connections of several ranks in one thread, over real bootstraps and real transports.
 *
 * Messages between them arrive by the event loop, so that a round in which nothing moves proves nothing: waiting ends
 * by a deadline that only a hang reaches.
 */
#ifndef KL_CHANNEL_TEST_RANKS_H
#define KL_CHANNEL_TEST_RANKS_H

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "channel/connections.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"
#include "transport/ll.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_RANKS = 48 };

struct test_rank {
    struct test_ranks *all;
    struct kl_bootstrap_config config;
    struct kl_bootstrap *bootstrap;
    struct kl_connections *connections;
    ncclResult_t rc;
    pthread_t thread;
    int told;            /* connectors that were reported ready */
    _Atomic bool failed; /* its relaying fails with this */
    char text[KL_ERROR_TEXT];
};

struct test_ranks {
    int n;
    struct test_rank rank[TEST_RANKS];
    const struct kl_transport *(*transport)(int a, int b); /* NULL from it: the pair cannot be joined */
    uint64_t timeout_ms;                                   /* for a peer that has answered; 0: kolo_test_hang_ms() */
    bool hasty;                                            /* rank 0's waits time out at once */
    uint64_t seed;
    int relay;       /* 1 + the rank with the proxy that sends for rank 0; 0: none */
    bool relay_here; /* rank 0 treats the relay as part of its own process */
};

static inline uint64_t test_draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* ---- joining ---- */

static void *test_join(void *arg)
{
    struct test_rank *r = arg;

    r->rc = kl_bootstrap_join(&r->config, &r->bootstrap);
    return NULL;
}

__attribute__((unused)) static void test_ranks_join(struct test_ranks *t, int n)
{
    ncclUniqueId id;

    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
    t->n = n;
    for (int r = 0; r < n; r++) {
        t->rank[r] = (struct test_rank){
            .all = t, .config = {.id = id, .rank = r, .nranks = n, .timeout_ms = kolo_test_hang_ms()}};
        assert_int_equal(pthread_create(&t->rank[r].thread, NULL, test_join, &t->rank[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(t->rank[r].thread, NULL);
    for (int r = 0; r < n; r++) assert_int_equal(t->rank[r].rc, ncclSuccess);
}

__attribute__((unused)) static void test_ranks_leave(struct test_ranks *t)
{
    for (int r = 0; r < t->n; r++) {
        kl_bootstrap_leave(t->rank[r].bootstrap);
        t->rank[r].bootstrap = NULL;
    }
}

/* ---- connections ---- */

static ncclResult_t test_choose(void *ctx, const struct kl_edge *edge, struct kl_connector *connector, uint32_t *index)
{
    struct test_rank *me = ctx;
    const struct kl_transport *t = me->all->transport(me->config.rank, edge->peer);

    if (!t) return KL_FAIL(ncclSystemError, "no way from rank %d to rank %d", me->config.rank, edge->peer);
    connector->transport = t;
    connector->route.relayed = me->all->relay && !me->config.rank && edge->sends;
    connector->route.proxy = me->all->relay - 1;
    connector->route.proxy_here = me->all->relay_here;
    for (*index = 0; kl_transports[*index] != t;) ++*index;
    return ncclSuccess;
}

static void test_tell(void *ctx, const struct kl_edge *edge, const struct kl_connector *connector)
{
    struct test_rank *me = ctx;

    assert_int_equal(edge->peer, connector->peer);
    assert_true(connector->ready && edge->sends == connector->sends);
    me->told++;
}

static void test_fail(void *ctx, int culprit, ncclResult_t rc, const char *text)
{
    struct test_rank *me = ctx;

    (void)culprit, (void)rc;
    snprintf(me->text, sizeof me->text, "%s", text);
    kl_store_release(&me->failed, true);
}

__attribute__((unused)) static const struct kl_transport *test_all_p2p(int a, int b)
{
    (void)a, (void)b;
    return &kl_transport_p2p;
}

__attribute__((unused)) static const struct kl_transport *test_all_shm(int a, int b)
{
    (void)a, (void)b;
    return &kl_transport_shm;
}

__attribute__((unused)) static const struct kl_transport *test_all_net(int a, int b)
{
    (void)a, (void)b;
    return &kl_transport_net;
}

/** Some pairs this way, some that way. */
__attribute__((unused)) static const struct kl_transport *test_mixed(int a, int b)
{
    return (a + b) % 3 ? &kl_transport_p2p : &kl_transport_shm;
}

__attribute__((unused)) static void test_connections_create(struct test_ranks *t, int round_peers)
{
    const int32_t sender = 0;

    for (int r = 0; r < t->n; r++) {
        struct kl_connections_config config = {
            .bootstrap = t->rank[r].bootstrap,
            .rank = r,
            .nranks = t->n,
            .shape = {[KL_EDGE_COLL] = {.nslots = 4, .ll_bytes = KL_LL_LINES_BYTES, .slot_bytes = 1024},
                      [KL_EDGE_MESSAGES] = {.nslots = 4, .slot_bytes = 1024}},
            .round_peers = round_peers,
            .timeout_ms = t->hasty && !r  ? 1
                          : t->timeout_ms ? t->timeout_ms
                                          : kolo_test_hang_ms(),
            .net = &kl_net_socket,
            .choose = test_choose,
            .tell = test_tell,
            .fail = test_fail,
            .senders = &sender,
            .nsenders = r && t->relay == r + 1,
            .ctx = &t->rank[r],
        };
        t->rank[r].told = 0;
        memset(config.net_key.bytes, 42, sizeof config.net_key.bytes);
        assert_int_equal(kl_net_socket.init(), ncclSuccess);
        assert_int_equal(kl_connections_create(&config, &t->rank[r].connections), ncclSuccess);
    }
}

__attribute__((unused)) static void test_connections_free(struct test_ranks *t)
{
    for (int r = 0; r < t->n; r++) {
        kl_connections_free(t->rank[r].connections, false);
        t->rank[r].connections = NULL;
    }
}

/** Ask for one end of an edge. */
__attribute__((unused)) static struct kl_connector *test_get(struct test_ranks *t, int rank, const struct kl_edge *edge)
{
    struct kl_connector *c = NULL;

    assert_int_equal(kl_connections_get(t->rank[rank].connections, edge, &c), ncclSuccess);
    return c;
}

/* ---- waiting ---- */

struct test_waiting {
    uint64_t deadline;
};

/** Data moved (or it is the first look): restart the deadline. Else wait a little; fails when it hangs. */
__attribute__((unused)) static void test_wait(struct test_waiting *p, bool moved, const char *what)
{
    if (moved || !p->deadline) p->deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    if (kl_deadline_passed(p->deadline)) fail_msg("%s: nothing moves any more", what);
    if (!moved) sched_yield();
}

#endif
