/* SPDX-License-Identifier: Apache-2.0 */
/**
 * transport_ends.h - for transport_test: one end of a connection, in a thread or process of its own, and its steps.
 *
 * The two ends talk over a socket pair, as ranks do through the bootstrap. Through a network each end has a fifo of its
 * own, and moves it (`progress`): a waiting end pumps. The contents of the fifo are invalid once they have been sent,
 * so a sender drains before it leaves, as operations do.
 */
#ifndef KOLO_TRANSPORT_ENDS_H
#define KOLO_TRANSPORT_ENDS_H

#include "base/clock.h"
#include "base/error.h"
#include "transport/ll.h"
#include "transport/test_join.h"
#include "transport/transport.h"

#include "tests/hang.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLOTS = 8, SLOT_BYTES = 16384, EXIT_FINE = 0, EXIT_CANNOT = 77 };

static const struct kl_fifo_shape shape = {.nslots = SLOTS, .ll_bytes = KL_LL_LINES_BYTES, .slot_bytes = SLOT_BYTES};

/* ---- the two ends ---- */

/* An assertion for threads and children, where cmocka's do not work. */
#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s (last error: %s)\n", __FILE__, __LINE__, doing, #condition,                 \
                    kl_error_text());                                                                                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static _Thread_local char doing[160];

struct end {
    bool sends;
    int sock; /* to the other end */
    struct kl_peer me, it;
    const struct kl_transport *transport;
    uint32_t index;
    bool messages;
    uint32_t number; /* of the connector */
    struct kl_common *common;
    struct kl_connector c;
};

static bool is_net(const struct end *e)
{
    return e->transport == &kl_transport_net;
}

static void tell(const struct end *e, const void *data, size_t bytes)
{
    must(send(e->sock, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

/* A receive with a time limit ends when the process was stopped and goes on. */
static void hear(const struct end *e, void *data, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t n = recv(e->sock, (char *)data + got, bytes - got, 0);
        must(n > 0 || (n < 0 && errno == EINTR));
        if (n > 0) got += (size_t)n;
    }
}

/* Both have come here. */
static void meet(const struct end *e)
{
    char mine = 'm', its = 0;

    tell(e, &mine, 1);
    hear(e, &its, 1);
    must(its == 'm');
}

static void reset(struct end *e)
{
    e->c = (struct kl_connector){.transport = e->transport,
                                 .peer = e->sends,
                                 .sends = e->sends,
                                 .messages = e->messages || is_net(e), /* else zero-copy memory has to fit into slots */
                                 .shape = &shape,
                                 .number = e->number,
                                 .route = {.planned = -1},
                                 .common = e->common};
    if (!is_net(e) || e->common->net.net) return;
    e->common->net = (struct kl_net_context){.net = &kl_net_socket, .rank = !e->sends};
    memset(e->common->net.secret.bytes, 42, sizeof e->common->net.secret.bytes);
}

/* The steps of transport.h, as the connections of a communicator do them. */
static void set_up(struct end *e)
{
    struct kl_connect_info info = {.transport = e->index, .version = KL_CONNECT_INFO_VERSION};

    reset(e);
    if (e->sends) return;
    must(e->transport->setup(&e->c, &shape, &info) == ncclSuccess);
    tell(e, &info, sizeof info);
}

static struct kl_connect_info receive_info(struct end *e)
{
    struct kl_connect_info info;

    hear(e, &info, sizeof info);
    must(info.transport == e->index && info.version == KL_CONNECT_INFO_VERSION);
    return info;
}

/* An end that moves its own data waits for no reply. */
static void settle_with(struct end *e, const struct kl_connect_info *info)
{
    struct kl_connect_reply reply = {.pool_bytes = 0};
    bool replies = !e->transport->progress;

    if (e->sends) {
        must(test_connect(&e->c, info, &reply) == ncclSuccess);
        if (replies) tell(e, &reply, sizeof reply);
    } else {
        if (replies) hear(e, &reply, sizeof reply);
        must(test_settle(&e->c, &reply) == ncclSuccess);
    }
    e->c.ready = true;
}

static void settle(struct end *e)
{
    struct kl_connect_info info = e->sends ? receive_info(e) : (struct kl_connect_info){.version = 0};

    settle_with(e, &info);
    meet(e);
}

static void join(struct end *e)
{
    set_up(e);
    settle(e);
}

/* Silently: the other end may still be at work. */
static void let_go(struct end *e)
{
    kl_connector_free(&e->c);
    must(!e->c.transport);
    kl_connector_free(&e->c); /* again: nothing happens */
    kl_common_fini(e->common);
}

/* Move this end's data. */
static ncclResult_t try_to_pump(struct end *e)
{
    ncclResult_t rc = ncclSuccess;

    if (!e->transport->progress) return rc;
    must((e->transport->progress(&e->c, &rc) == KL_DONE) == (rc != ncclSuccess));
    return rc;
}

static void pump(struct end *e)
{
    must(try_to_pump(e) == ncclSuccess);
}

/* Until nothing that was sent depends on this end any more. */
static void drain(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    while (e->sends && e->c.ready && !kl_fifo_drained(&e->c.tx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
        sched_yield();
    }
}

static void part(struct end *e)
{
    drain(e);
    meet(e);
    let_go(e);
}

/* ---- steps ---- */

static unsigned char pattern(uint64_t step, size_t i)
{
    return (unsigned char)(step * 131 + i * 7 + i / 253);
}

static void fill(unsigned char *data, size_t bytes, uint64_t step)
{
    for (size_t i = 0; i < bytes; i++) data[i] = pattern(step, i);
}

static void expect_filled(const unsigned char *data, size_t bytes, uint64_t step)
{
    must(data != NULL);
    for (size_t i = 0; i < bytes; i++) must(data[i] == pattern(step, i));
}

static void wait_for_room(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    while (!kl_fifo_can_send(&e->c.tx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
        sched_yield();
    }
}

static void wait_for_step(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    while (!kl_fifo_ready(&e->c.rx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
        sched_yield();
    }
}

static void put(struct end *e, uint64_t step, size_t bytes)
{
    wait_for_room(e);
    fill(kl_fifo_reserve(&e->c.tx, bytes), bytes, step);
    kl_fifo_publish(&e->c.tx, bytes, step % 2);
    pump(e);
}

static void take(struct end *e, uint64_t step, size_t bytes)
{
    size_t got;
    bool more;

    wait_for_step(e);
    const unsigned char *data = kl_fifo_open(&e->c.rx, &got, &more);
    must(got == bytes && more == (step % 2));
    expect_filled(data, bytes, step);
    kl_fifo_release(&e->c.rx);
}

#endif
