/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both halves of a link over a mock network: it delays, refuses, finishes requests out of order, fails at any call, and loses
 * unsent data. It copies data when a request ends, so earlier changes show, and reports calls after a cancel.
 */
#include "transport/net/link.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "transport/ll.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_REQUESTS = 32, MOST_ON_WIRE = 64, SLOT = 8192, DIRECT = 3 * SLOT, POLLS_MOST = 200000 };

/* ---- the network ---- */

struct request {
    bool used, done, sends;
    void *data;
    size_t bytes, came;
    uint64_t number; /* of the message */
    int due;         /* calls until it may be done */
};

static struct {
    struct request request[MOST_REQUESTS];
    struct {
        unsigned char *data;
        size_t bytes;
        bool whole;
    } wire[MOST_ON_WIRE]; /* by number % MOST_ON_WIRE */
    uint64_t sent, received;
    unsigned seed;
    int slowness; /* calls that a request may take */
    int calls, fails_at;
    bool failed[2], cancelled[2]; /* receiver, sender */
    bool closed;                  /* by the sender: data on the wire still arrive */
    bool left;                    /* the receiver */
    size_t forget;                /* bytes that the next receive of data does not get */
} net;

static unsigned any(unsigned below)
{
    net.seed = net.seed * 1103515245u + 12345u;
    return (net.seed >> 16) % below;
}

static void net_reset(unsigned seed, int slowness)
{
    for (int i = 0; i < MOST_ON_WIRE; i++) free(net.wire[i].data);
    memset(&net, 0, sizeof net);
    net.seed = seed;
    net.slowness = slowness;
}

/* Every call counts; one of them fails, and all after it. */
static ncclResult_t call(bool sends)
{
    assert_false(net.cancelled[sends]);
    for (int i = 0; i < MOST_REQUESTS; i++) net.request[i].due -= net.request[i].due > 0;
    if (++net.calls == net.fails_at) net.failed[sends] = true;
    if (!net.failed[sends]) return ncclSuccess;
    return KL_FAIL(ncclRemoteError, "rank 3 has lost its connection");
}

static struct request *take_request(bool sends, void *data, size_t bytes)
{
    for (int i = 0; i < MOST_REQUESTS; i++) {
        struct request *r = &net.request[i];
        if (r->used) continue;
        *r = (struct request){.used = true, .sends = sends, .data = data, .bytes = bytes};
        r->number = sends ? net.sent++ : net.received++;
        r->due = net.slowness ? (int)any((unsigned)net.slowness) : 0;
        return r;
    }
    return NULL;
}

static ncclResult_t fake_isend(void *send, const void *data, size_t bytes, int tag, void *mr, void **request)
{
    (void)send, (void)tag, (void)mr;
    *request = NULL;
    ncclResult_t rc = call(true);
    if (rc || (net.slowness && !any(3)) || net.sent >= net.received + MOST_ON_WIRE / 2) return rc;
    *request = take_request(true, (void *)(uintptr_t)data, bytes);
    return rc;
}

static ncclResult_t fake_irecv(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    (void)recv;
    assert_int_equal(n, 1);
    *request = NULL;
    ncclResult_t rc = call(false);
    if (rc || (net.slowness && !any(3))) return rc;
    *request = take_request(false, recvs->data, recvs->bytes);
    return rc;
}

static void finish_send(struct request *r)
{
    int at = (int)(r->number % MOST_ON_WIRE);

    assert_false(net.wire[at].whole);
    net.wire[at].data = malloc(r->bytes + 1);
    memcpy(net.wire[at].data, r->data, r->bytes);
    net.wire[at].bytes = r->bytes;
    net.wire[at].whole = r->done = true;
}

static ncclResult_t finish_receive(struct request *r)
{
    int at = (int)(r->number % MOST_ON_WIRE);

    if (!net.wire[at].whole && net.closed) return KL_FAIL(ncclRemoteError, "rank 3 has lost its connection");
    if (!net.wire[at].whole) return ncclSuccess;
    if (net.wire[at].bytes > r->bytes)
        return KL_FAIL(ncclInvalidUsage, "%zu bytes, and %zu were posted", net.wire[at].bytes, r->bytes);
    r->came = net.wire[at].bytes;
    if (r->bytes != KL_WIRE_MOST && net.forget) r->came -= net.forget;
    memcpy(r->data, net.wire[at].data, r->came);
    free(net.wire[at].data);
    net.wire[at].data = NULL;
    net.wire[at].whole = false;
    r->done = true;
    return ncclSuccess;
}

/* Requests end in an order of their own. */
static ncclResult_t finish_some(bool sends, const struct request *asked)
{
    for (int i = 0; i < MOST_REQUESTS; i++) {
        struct request *r = &net.request[i];
        if (!r->used || r->done || r->sends != sends || r->due) continue;
        ncclResult_t rc = ncclSuccess;
        if (sends)
            finish_send(r);
        else
            rc = finish_receive(r);
        if (rc && r == asked) return rc;
    }
    return ncclSuccess;
}

static ncclResult_t fake_test(void *request, bool *done, size_t *sizes)
{
    struct request *r = request;

    assert_true(r->used);
    *done = r->done;
    ncclResult_t rc = r->done ? ncclSuccess : call(r->sends);
    if (!rc && !r->done) rc = finish_some(r->sends, r);
    *done = r->done;
    if (rc || !r->done) return rc;
    if (sizes) *sizes = r->sends ? r->bytes : r->came;
    r->used = false;
    return ncclSuccess;
}

static void fake_cancel(void *connection)
{
    bool sends = connection == &net.failed[1];

    assert_false(net.cancelled[sends]);
    net.cancelled[sends] = true;
}

static void fake_close(void *connection)
{
    assert_non_null(connection);
}

static bool fake_wants_goodbye(void *send)
{
    assert_non_null(send);
    return !net.left;
}

static const struct kl_net fake = {.name = "Fake",
                                   .isend = fake_isend,
                                   .irecv = fake_irecv,
                                   .test = fake_test,
                                   .cancel = fake_cancel,
                                   .wants_goodbye = fake_wants_goodbye,
                                   .close_send = fake_close,
                                   .close_recv = fake_close};

/* Put a message on the wire as a hostile peer would. */
static void forge(const void *data, size_t bytes)
{
    struct request r = {.data = (void *)(uintptr_t)data, .bytes = bytes, .number = net.sent++};

    finish_send(&r);
}

/* ---- the link and its users ---- */

enum kind { COPIED, LENT_OUT, LINES, KINDS };

struct message {
    enum kind kind;
    size_t bytes;
    bool wanted;
};

struct pair {
    struct kl_net_link *link[2]; /* receiver, sender */
    struct kl_fifo_tx tx;
    struct kl_fifo_rx rx;
    const struct message *message;
    int n, sent, received, prepared; /* messages; prepared: with a place for them */
    size_t left, got;                /* of the message: sent; received */
    unsigned char *from, *to, *scratch;
    size_t room; /* of each */
};

static unsigned char pattern(int message, size_t i)
{
    return (unsigned char)(message * 37 + i * 11 + i / 251 + 1);
}

static void open_pair(struct pair *p, uint32_t nslots, size_t slot, const struct message *messages, int n)
{
    struct kl_fifo_shape shape = {.nslots = nslots, .ll_bytes = KL_LL_LINES_BYTES, .slot_bytes = slot};

    *p = (struct pair){.message = messages, .n = n, .room = 1 << 18};
    p->from = malloc(p->room * (size_t)(n + 1));
    p->to = malloc(p->room);
    p->scratch = malloc(KL_LL_BYTES);
    for (int sends = 0; sends < 2; sends++) {
        assert_int_equal(kl_net_link_create(&fake, &shape, sends, &p->link[sends]), ncclSuccess);
        p->link[sends]->connection = &net.failed[sends];
        p->link[sends]->connected = true;
    }
    assert_int_equal(kl_fifo_attach_tx(&p->tx, p->link[1]->fifo, p->link[1]->mapped, true), ncclSuccess);
    assert_int_equal(kl_fifo_attach_rx(&p->rx, p->link[0]->fifo, p->link[0]->mapped, false), ncclSuccess);
    p->tx.zcopy_all = true;
    p->rx.places = p->link[0]->long_steps = true;
}

static void close_pair(struct pair *p)
{
    for (int sends = 0; sends < 2; sends++) kl_net_link_free(p->link[sends], sends);
    free(p->from);
    free(p->to);
    free(p->scratch);
}

/* The next step of the message that is being sent. */
static void send_step(struct pair *p)
{
    const struct message *m = &p->message[p->sent];
    unsigned char *data = p->from + p->room * (size_t)p->sent; /* each its own: zero-copy ones stay as they are */
    size_t at = p->left, left = m->bytes - at, most = m->kind == LENT_OUT ? DIRECT : p->tx.shape.slot_bytes;
    size_t bytes = left < most ? left : most;

    if (!at)
        for (size_t i = 0; i < m->bytes; i++) data[i] = pattern(p->sent, i);
    if (m->kind == LINES) {
        bytes = left;
        kl_ll_publish(&p->tx, data, bytes, false);
    } else if (m->kind == LENT_OUT) {
        kl_fifo_publish_direct(&p->tx, data + at, bytes, bytes < left);
    } else {
        if (bytes) memcpy(kl_fifo_reserve(&p->tx, bytes), data + at, bytes);
        kl_fifo_publish(&p->tx, bytes, bytes < left);
    }
    p->left = at + bytes;
    if (p->left < m->bytes) return;
    p->left = 0;
    p->sent++;
}

static const unsigned char *look(struct pair *p, const struct message *m, size_t *bytes, bool *more)
{
    *more = false;
    if (m->kind == LINES) return kl_ll_ready(&p->rx) ? kl_ll_open(&p->rx, p->scratch, bytes) : NULL;
    return kl_fifo_ready(&p->rx) ? kl_fifo_open(&p->rx, bytes, more) : NULL;
}

/* Receive one step of the message; memory outside of it stays untouched. */
static bool receive_step(struct pair *p)
{
    const struct message *m = &p->message[p->received];
    size_t bytes;
    bool more;
    const unsigned char *in = look(p, m, &bytes, &more);

    if (!in) return false;
    assert_true(bytes <= m->bytes - p->got);
    assert_int_equal(more, bytes < m->bytes - p->got);
    if (in != p->to + p->got) memcpy(p->to + p->got, in, bytes);
    kl_fifo_release(&p->rx);
    p->got += bytes;
    if (more) return true;
    for (size_t i = 0; i < m->bytes; i++)
        if (p->to[i] != pattern(p->received, i))
            fail_msg("message %d of %zu bytes: byte %zu", p->received, m->bytes, i);
    assert_int_equal(p->to[m->bytes], 0xee);
    p->received++;
    p->got = 0;
    return true;
}

static void want(struct pair *p)
{
    const struct message *m = &p->message[p->received];

    if (p->prepared == p->received) {
        memset(p->to, 0xee, p->room);
        p->prepared++;
    }
    if (m->wanted || m->kind == LENT_OUT) kl_fifo_want(&p->rx, p->to + p->got, m->bytes - p->got);
}

/* One round of both ends: the results of their links. */
static void go_on(struct pair *p, ncclResult_t rc[2])
{
    if (!rc[1] && p->sent < p->n && kl_fifo_can_send(&p->tx)) send_step(p);
    if (!rc[1]) kl_net_outgoing_progress(p->link[1], &rc[1]);
    if (p->received < p->n) want(p);
    if (!rc[0]) kl_net_incoming_progress(p->link[0], &p->rx, &rc[0]);
    while (p->received < p->n && receive_step(p))
        if (p->received < p->n) want(p);
}

static bool is_over(struct pair *p)
{
    return p->received == p->n && p->sent == p->n && kl_fifo_drained(&p->tx);
}

static const struct message all_kinds[] = {
    {COPIED, 0, 0},
    {COPIED, 1, 0},
    {COPIED, 104, 1},
    {COPIED, 105, 0},
    {COPIED, 106, 1},
    {COPIED, SLOT, 0},
    {COPIED, SLOT, 1},
    {COPIED, 5 * SLOT + 7, 1},
    {LENT_OUT, 4096, 1},
    {LENT_OUT, DIRECT, 1},
    {LENT_OUT, DIRECT + 1, 1},
    {LENT_OUT, 4 * DIRECT + 5000, 1},
    {LENT_OUT, 50, 1},
    {LINES, 0, 0},
    {LINES, 104, 0},
    {LINES, 105, 0},
    {LINES, 161, 0},
    {LINES, 7272, 0},
    {COPIED, 3, 0},
    {LINES, 7271, 0},
    {COPIED, 2 * SLOT, 0},
    {LENT_OUT, DIRECT, 1},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
    {COPIED, 12, 0},
};
enum { ALL = sizeof all_kinds / sizeof all_kinds[0] };

/* ---- arrivals ---- */

static void run_all(uint32_t nslots, size_t slot, unsigned seed, int slowness)
{
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
    struct pair p;

    net_reset(seed, slowness);
    open_pair(&p, nslots, slot, all_kinds, ALL);
    for (int i = 0; !is_over(&p); i++) {
        if (i == POLLS_MOST)
            fail_msg("%u slots, seed %u: %d of %d sent, %d received", nslots, seed, p.sent, p.n, p.received);
        go_on(&p, rc);
        assert_int_equal(rc[0], ncclSuccess);
        assert_int_equal(rc[1], ncclSuccess);
    }
    for (int i = 0; i < MOST_REQUESTS; i++) assert_true(!net.request[i].used || !net.request[i].sends);
    close_pair(&p);
}

static void messages_of_all_kinds_arrive(void **state)
{
    (void)state;
    for (uint32_t nslots = 1; nslots <= 32; nslots *= 2) {
        run_all(nslots, SLOT, 1, 0);
        run_all(nslots, 512, 1, 0); /* smaller than flagged lines */
        for (unsigned seed = 1; seed < 20; seed++) run_all(nslots, seed % 2 ? SLOT : 1024, seed, 1 + (int)seed % 7 * 4);
    }
}

/* More small steps than the link has in flight are there at the first look. */
static void a_burst_arrives(void **state)
{
    static const struct message small = {COPIED, 12, 0};
    struct message messages[24];
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
    struct pair p;

    (void)state;
    for (int i = 0; i < 24; i++) messages[i] = small;
    net_reset(1, 0);
    open_pair(&p, 32, SLOT, messages, 24);
    while (p.sent < p.n) send_step(&p);
    while (!kl_fifo_drained(&p.tx)) assert_int_equal(kl_net_outgoing_progress(p.link[1], &rc[1]), KL_MOVED);
    for (int i = 0; i < 10; i++) go_on(&p, rc);
    assert_int_equal(p.received, 24);
    close_pair(&p);
}

/* A wanted address only holds for its message, not for the next. */
static void a_want_ends_with_its_message(void **state)
{
    static const struct message messages[] = {{COPIED, 4000, 1}, {COPIED, 4000, 0}};
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
    struct pair p;

    (void)state;
    net_reset(1, 0);
    open_pair(&p, 8, SLOT, messages, 2);
    p.n = 1;
    while (p.received < 1) go_on(&p, rc);
    memset(p.to, 0xee, p.room);
    while (p.sent < 2) send_step(&p);
    for (int i = 0; i < 10; i++) {
        kl_net_outgoing_progress(p.link[1], &rc[1]);
        kl_net_incoming_progress(p.link[0], &p.rx, &rc[0]);
    }
    assert_true(kl_fifo_ready(&p.rx));
    for (size_t i = 0; i < p.room; i++) assert_int_equal(p.to[i], 0xee);
    close_pair(&p);
}

/* Larger than a slot: it waits for a wanted address. Larger than wanted: the reader sees the size, and gets no data. */
static void a_step_larger_than_a_slot_waits(void **state)
{
    static const struct message messages[] = {{LENT_OUT, DIRECT, 1}};
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
    struct pair p;
    size_t bytes;
    bool more;

    (void)state;
    for (int fits = 0; fits < 2; fits++) {
        net_reset(1, 0);
        open_pair(&p, 8, SLOT, messages, 1);
        send_step(&p);
        for (int i = 0; i < 10; i++) {
            kl_net_outgoing_progress(p.link[1], &rc[1]);
            assert_int_equal(kl_net_incoming_progress(p.link[0], &p.rx, &rc[0]) == KL_DONE, false);
        }
        assert_false(kl_fifo_ready(&p.rx));
        memset(p.to, 0xee, p.room);
        kl_fifo_want(&p.rx, p.to, fits ? DIRECT : DIRECT - 1);
        for (int i = 0; i < 10; i++) {
            kl_net_outgoing_progress(p.link[1], &rc[1]);
            kl_net_incoming_progress(p.link[0], &p.rx, &rc[0]);
        }
        assert_int_equal(rc[0], ncclSuccess);
        assert_true(kl_fifo_ready(&p.rx));
        assert_ptr_equal(kl_fifo_open(&p.rx, &bytes, &more), p.to);
        assert_int_equal(bytes, DIRECT);
        assert_int_equal(p.to[0], fits ? pattern(0, 0) : 0xee);
        close_pair(&p);
    }
}

/* ---- failures ---- */

/* Nothing is called and nothing is touched any more. */
static void expect_still(struct pair *p)
{
    int calls = net.calls;

    for (int sends = 0; sends < 2; sends++) {
        kl_net_link_cancel(p->link[sends]);
        kl_net_link_cancel(p->link[sends]);
    }
    memset(p->to, 0xee, p->room);
    for (int i = 0; i < 5; i++) {
        ncclResult_t rc = ncclSuccess;
        assert_int_equal(kl_net_outgoing_progress(p->link[1], &rc), KL_STALLED);
        assert_int_equal(kl_net_incoming_progress(p->link[0], &p->rx, &rc), KL_STALLED);
        assert_int_equal(rc, ncclSuccess);
    }
    assert_int_equal(net.calls, calls);
    for (size_t i = 0; i < p->room; i++) assert_int_equal(p->to[i], 0xee);
}

static void it_is_cancelled_at_any_point(void **state)
{
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
    struct pair p;

    (void)state;
    for (int at = 0;; at++) {
        net_reset((unsigned)at, 4);
        open_pair(&p, 4, SLOT, all_kinds, ALL);
        for (int i = 0; i < at && !is_over(&p); i++) go_on(&p, rc);
        bool over = is_over(&p);
        expect_still(&p);
        close_pair(&p);
        if (over) break;
    }
}

/*
 * Every call of the network fails once. The sender's half reports it. The receiver's half reports it in the middle of a step;
 * between two it marks that the sender has left. Received data are right in any case.
 */
static void any_call_may_fail(void **state)
{
    int marked = 0, failed = 0, sender = 0;

    (void)state;
    kl_error_quiet(1);
    for (int at = 1;; at++) {
        ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
        struct pair p;
        net_reset(7, 3);
        net.fails_at = at;
        open_pair(&p, 8, SLOT, all_kinds, ALL);
        for (int i = 0; i < 3000 && !is_over(&p) && !rc[0] && !rc[1] && !p.link[0]->loss; i++) go_on(&p, rc);
        bool over = is_over(&p);
        assert_true(over || rc[0] || rc[1] || p.link[0]->loss);
        assert_true(!rc[0] || rc[0] == ncclRemoteError);
        assert_true(!rc[1] || rc[1] == ncclRemoteError);
        if (p.link[0]->loss) {
            assert_non_null(strstr(p.link[0]->loss, "rank 3"));
            assert_true(kl_fifo_sender_gone(&p.rx) || kl_fifo_ready(&p.rx));
        }
        marked += p.link[0]->loss != NULL;
        failed += rc[0] != ncclSuccess;
        sender += rc[1] != ncclSuccess;
        expect_still(&p);
        close_pair(&p);
        if (over) break;
    }
    kl_error_quiet(0);
    assert_true(marked > 10 && failed > 10 && sender > 10);
}

/* The sender ends after so many messages of the net: those arrive, and the rest is a mark or a failure. */
static void a_sender_ends_anywhere(void **state)
{
    (void)state;
    kl_error_quiet(1);
    for (uint64_t n = 0; n < 12; n++) {
        static const struct message messages[] = {{COPIED, 10, 0}, {COPIED, 4000, 0}, {COPIED, 20, 0}, {LINES, 3000, 0},
                                                  {COPIED, 30, 0}, {COPIED, 5000, 1}, {COPIED, 40, 0}};
        ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
        struct pair p;
        net_reset(1, 0);
        open_pair(&p, 16, SLOT, messages, 7);
        while (p.sent < p.n) send_step(&p);
        while (!kl_fifo_drained(&p.tx)) kl_net_outgoing_progress(p.link[1], &rc[1]);
        assert_int_equal(net.sent, 10);
        for (uint64_t i = n; i < net.sent; i++) {
            free(net.wire[i].data);
            net.wire[i].data = NULL;
            net.wire[i].whole = false;
        }
        net.closed = true;
        rc[1] = ncclRemoteError; /* it does nothing any more */
        for (int i = 0; i < 50; i++) go_on(&p, rc);
        bool inside = n == 2 || n == 5 || n == 8; /* the first message of two was the last one */
        static const int arrived[] = {0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7};
        assert_int_equal(p.received, arrived[n]);
        assert_int_equal(rc[0], inside ? ncclRemoteError : ncclSuccess);
        assert_true(inside || (p.link[0]->loss && kl_fifo_sender_gone(&p.rx)));
        close_pair(&p);
    }
    kl_error_quiet(0);
}

/*
 * A sender that has sent all its steps says goodbye: the receiver then knows, with no call that failed, and asks for no more. With
 * steps left, or if the receiver has left, it says nothing.
 */
static void a_sender_leaves(void **state)
{
    static const struct message messages[] = {{COPIED, 10, 0}, {COPIED, 4000, 0}, {LINES, 3000, 0}};

    (void)state;
    for (int way = 0; way < 3; way++) {
        ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
        struct pair p;
        net_reset(1, 0);
        open_pair(&p, 16, SLOT, messages, 3);
        while (!is_over(&p)) go_on(&p, rc);
        uint64_t sent = net.sent;
        if (way == 1) kl_fifo_publish(&p.tx, 0, false);
        net.left = way == 2;
        kl_net_outgoing_leave(p.link[1]);
        kl_net_link_free(p.link[1], true);
        p.link[1] = NULL;
        rc[1] = ncclRemoteError; /* it does nothing any more */
        assert_int_equal(net.sent, sent + (way == 0));
        for (int i = 0; i < 5; i++) go_on(&p, rc);
        assert_int_equal(rc[0], ncclSuccess);
        assert_int_equal(p.link[0]->left, way == 0);
        assert_int_equal(kl_fifo_sender_gone(&p.rx), way == 0);
        assert_null(p.link[0]->loss);
        assert_int_equal(net.received, sent + 1);
        close_pair(&p);
    }
}

static void lies_are_refused(void **state)
{
    static const struct {
        const char *what;
        struct kl_wire wire;
        size_t bytes; /* of the message */
        bool slots_only;
    } lies[] = {
        {"nothing", {0}, 0, false},
        {"half a head", {0}, 8, false},
        {"less data than announced", {.bytes = 50}, 16 + 49, false},
        {"more data than announced", {.bytes = 50}, 16 + 51, false},
        {"data of a step in two", {.bytes = 105}, 17, false},
        {"more than a slot, where there are only slots", {.bytes = SLOT + 1}, 16, true},
        {"much more, in a message that goes on", {.bytes = 0x7fffffff | KL_FIFO_MORE}, 16, true},
        {"an unknown kind", {.bytes = 500, .kind = KL_WIRE_KINDS}, 16, false},
        {"lines that fit into the first", {.bytes = 50, .kind = KL_WIRE_LINES}, 16 + 50, false},
        {"more than lines hold", {.bytes = KL_LL_BYTES + 1, .kind = KL_WIRE_LINES}, 16, false},
        {"lines that go on", {.bytes = KL_FIFO_MORE | 500, .kind = KL_WIRE_LINES}, 16, false},
        {"a goodbye with data", {.bytes = 50, .kind = KL_WIRE_GOODBYE}, 16 + 50, false},
        {"a goodbye in two", {.bytes = 500, .kind = KL_WIRE_GOODBYE}, 16, false},
        {"as much as there can be, in lines", {.bytes = 0x7fffffff, .kind = KL_WIRE_LINES}, 16, false},
    };
    static const struct message messages[] = {{COPIED, 500, 0}};

    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(lie, lies)
    {
        unsigned char message[256] = {0};
        ncclResult_t rc = ncclSuccess;
        struct pair p;
        net_reset(1, 0);
        open_pair(&p, 8, SLOT, messages, 1);
        p.link[0]->long_steps = !lie->slots_only;
        memcpy(message, &lie->wire, sizeof lie->wire);
        forge(message, lie->bytes);
        for (int i = 0; i < 5 && !rc; i++) kl_net_incoming_progress(p.link[0], &p.rx, &rc);
        expect_case(lie->what, rc == ncclRemoteError && !kl_fifo_ready(&p.rx));
        close_pair(&p);
    }
    kl_error_quiet(0);
}

static void data_that_are_cut_short_are_refused(void **state)
{
    static const struct message messages[] = {{COPIED, 500, 0}};
    ncclResult_t rc[2] = {ncclSuccess, ncclSuccess};
    struct pair p;

    (void)state;
    kl_error_quiet(1);
    net_reset(1, 0);
    open_pair(&p, 8, SLOT, messages, 1);
    net.forget = 1;
    for (int i = 0; i < 10 && !rc[0]; i++) go_on(&p, rc);
    assert_int_equal(rc[0], ncclRemoteError);
    assert_non_null(strstr(kl_error_text(), "499 bytes where 500"));
    close_pair(&p);
    kl_error_quiet(0);
}

static void half_made_links_are_freed(void **state)
{
    struct kl_fifo_shape shape = {.nslots = 8, .slot_bytes = SLOT}, wrong = {.nslots = 3, .slot_bytes = SLOT};
    struct kl_net_link *link = NULL;

    (void)state;
    for (int sends = 0; sends < 2; sends++) {
        net_reset(1, 0);
        assert_int_equal(kl_net_link_create(&fake, &shape, sends, &link), ncclSuccess);
        kl_net_link_cancel(link);
        kl_net_link_free(link, sends);
        assert_int_equal(kl_net_link_create(&fake, &shape, sends, &link), ncclSuccess);
        link->connection = &net.failed[sends]; /* an attempt */
        kl_net_link_cancel(link);
        assert_false(net.cancelled[sends]);
        kl_net_link_free(link, sends);
        kl_error_quiet(1);
        assert_int_equal(kl_net_link_create(&fake, &wrong, sends, &link), ncclInternalError);
        kl_error_quiet(0);
    }
    kl_net_link_cancel(NULL);
    kl_net_link_free(NULL, true);
}

static int clean_up(void **state)
{
    (void)state;
    net_reset(0, 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_kinds_arrive),
        cmocka_unit_test(a_burst_arrives),
        cmocka_unit_test(a_want_ends_with_its_message),
        cmocka_unit_test(a_step_larger_than_a_slot_waits),
        cmocka_unit_test(it_is_cancelled_at_any_point),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(a_sender_ends_anywhere),
        cmocka_unit_test(a_sender_leaves),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(data_that_are_cut_short_are_refused),
        cmocka_unit_test(half_made_links_are_freed),
    };

    return cmocka_run_group_tests(tests, NULL, clean_up);
}
