/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of other ranks: messages are matched with receives, and data move. */
#include "tagged/state.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static void post(struct kl_tagged *m, int peer, const struct kl_tagged_head *head, const void *data, size_t bytes)
{
    if (m->peer[peer].left) return;
    ncclResult_t rc = kl_tagged_post(m, peer, head, data, bytes);
    if (rc && rc != ncclInProgress) kl_tagged_trouble(m, peer, rc);
}

/* The sender's request is over. */
static void tell_taken(struct kl_tagged *m, int peer, uint64_t request)
{
    const struct kl_tagged_head head = {.kind = KL_TAGGED_TAKEN, .to = request};
    struct kl_tagged_request *own = peer == m->config.rank ? kl_tagged_find(m, request) : NULL;

    if (own && !own->over) kl_tagged_end(m, own, ncclSuccess);
    if (peer != m->config.rank) post(m, peer, &head, NULL, 0);
}

/* A small message leaves this rank's memory: its sender may send as much again. */
static void repay(struct kl_tagged *m, int peer, size_t bytes)
{
    struct kl_tagged_peer *p = &m->peer[peer];

    if (peer == m->config.rank) return;
    p->debt += bytes + KL_TAGGED_MESSAGE_WEIGHT;
    if (p->debt < KL_TAGGED_REPAY) return;
    const struct kl_tagged_head head = {.kind = KL_TAGGED_REPAID, .bytes = p->debt};
    p->debt = 0;
    post(m, peer, &head, NULL, 0);
}

/* ---- a receive meets a message ---- */

/* False: the message is too long. */
static bool accept(struct kl_tagged *m, struct kl_tagged_request *r, int source, int tag, size_t bytes)
{
    r->status = (struct kl_tagged_status){.source = source, .tag = tag, .bytes = bytes};
    r->since = kl_now_ns();
    if (bytes <= r->room) return true;
    kl_tagged_end_with(m, r, ncclInvalidUsage,
                       "rank %d: the message of rank %d with tag %d has %zu bytes, the buffer of the receive %zu",
                       m->config.rank, source, tag, bytes, r->room);
    return false;
}

void kl_tagged_fill(struct kl_tagged *m, struct kl_tagged_request *r, int source, int tag, const void *data,
                    size_t bytes)
{
    if (!accept(m, r, source, tag, bytes)) return;
    if (bytes) memcpy(r->data, data, bytes);
    r->moved = bytes;
    kl_tagged_end(m, r, ncclSuccess);
}

static void ask_more(struct kl_tagged *m, struct kl_tagged_request *r)
{
    while (r->asked < r->status.bytes && r->asked < r->moved + (size_t)KL_TAGGED_PIECES * KL_TAGGED_PIECE_BYTES) {
        size_t left = r->status.bytes - r->asked, piece = left < KL_TAGGED_PIECE_BYTES ? left : KL_TAGGED_PIECE_BYTES;
        const struct kl_tagged_head head = {
            .kind = KL_TAGGED_ASK, .bytes = piece, .offset = r->asked, .from = r->id, .to = r->offer};
        r->asked += piece;
        post(m, r->status.source, &head, NULL, 0);
    }
}

/* The lock is released meanwhile: nothing ends a request that copies. */
static bool read_all(struct kl_tagged *m, struct kl_tagged_request *r, const struct kl_tagged_message *a)
{
    struct kl_cma_cache seen = m->peer[a->source].seen;
    size_t done = 0;
    bool read = true;

    r->copies = true;
    kl_tagged_unlock(m);
    while (read && done < a->bytes) {
        size_t left = a->bytes - done, piece = left < KL_CMA_PIECE ? left : KL_CMA_PIECE;
        read = kl_cma_read(&a->place.process, &seen, r->data + done, a->place.at + done, piece);
        done += piece;
    }
    kl_tagged_lock(m);
    m->peer[a->source].seen = seen;
    r->copies = false;
    return read;
}

static void take_own(struct kl_tagged *m, struct kl_tagged_request *r, const struct kl_tagged_message *a)
{
    const struct kl_tagged_request *s = kl_tagged_find(m, a->offer);

    if (s && !s->over) memcpy(r->data, s->data, a->bytes);
    kl_tagged_end(m, r, ncclSuccess);
    tell_taken(m, a->source, a->offer);
}

static void take_offer(struct kl_tagged *m, struct kl_tagged_request *r, const struct kl_tagged_message *a)
{
    bool readable = m->config.reads && a->place.readable && a->bytes && m->config.is_near(m->config.ctx, a->source);

    r->offer = a->offer;
    if (!a->bytes || (readable && read_all(m, r, a))) {
        r->moved = a->bytes;
        tell_taken(m, a->source, a->offer);
        kl_tagged_end(m, r, m->failed ? ncclInternalError : ncclSuccess);
    } else if (m->failed) {
        kl_tagged_end(m, r, ncclInternalError);
    } else {
        ask_more(m, r);
    }
}

void kl_tagged_deliver(struct kl_tagged *m, struct kl_tagged_request *r, const struct kl_tagged_message *a)
{
    if (a->offer && a->source != m->config.rank && m->peer[a->source].left) {
        kl_tagged_has_left(m, r, a->source);
    } else if (!a->offer) {
        kl_tagged_fill(m, r, a->source, a->tag, a->data, a->bytes);
        repay(m, a->source, a->bytes);
    } else if (!accept(m, r, a->source, a->tag, a->bytes)) {
        tell_taken(m, a->source, a->offer);
    } else if (a->source == m->config.rank) {
        take_own(m, r, a);
    } else {
        take_offer(m, r, a);
    }
}

/* ---- kinds of packets; false: the packet is invalid ---- */

static bool keep(struct kl_tagged *m, const struct kl_tagged_message *a, const void *data, size_t bytes)
{
    struct kl_tagged_message *kept = malloc(sizeof *kept + bytes);

    if (!kept) {
        kl_tagged_trouble(m, m->config.rank, KL_NOMEM("a message"));
        return true;
    }
    *kept = *a;
    if (bytes) memcpy(kept->data, data, bytes);
    kl_tagged_queue_message(m, kept);
    return true;
}

static bool on_eager(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    const struct kl_tagged_message a = {.source = from, .tag = h->tag, .bytes = bytes};

    if (h->tag < 0 || h->bytes != bytes || bytes > KL_TAGGED_EAGER_BYTES) return false;
    struct kl_tagged_request *r = kl_tagged_take_receive(m, from, h->tag);
    if (!r) return keep(m, &a, data, bytes);
    kl_tagged_fill(m, r, from, h->tag, data, bytes);
    repay(m, from, bytes);
    return true;
}

static bool on_offer(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    struct kl_tagged_message a = {.source = from, .tag = h->tag, .bytes = h->bytes, .offer = h->from};

    if (h->tag < 0 || !h->from || bytes != sizeof a.place || h->bytes > PTRDIFF_MAX) return false;
    memcpy(&a.place, data, sizeof a.place);
    struct kl_tagged_request *r = kl_tagged_take_receive(m, from, h->tag);
    if (!r) return keep(m, &a, NULL, 0);
    kl_tagged_deliver(m, r, &a);
    return true;
}

/* This rank's send, to that rank. */
static struct kl_tagged_request *send_to(struct kl_tagged *m, int peer, uint64_t id)
{
    struct kl_tagged_request *s = kl_tagged_find(m, id);

    return s && s->sends && !s->over && s->peer == peer ? s : NULL;
}

static bool on_ask(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    struct kl_tagged_request *s = send_to(m, from, h->to);

    (void)data;
    if (bytes) return false;
    if (!s || h->offset > s->room || h->bytes > s->room - h->offset || h->bytes > KL_TAGGED_PIECE_BYTES) return false;
    const struct kl_tagged_head piece = {
        .kind = KL_TAGGED_PIECE, .bytes = h->bytes, .offset = h->offset, .to = h->from};
    s->since = kl_now_ns();
    post(m, from, &piece, s->data + h->offset, h->bytes);
    if (h->offset + h->bytes == s->room) kl_tagged_end(m, s, ncclSuccess); /* the last piece: it was copied */
    return true;
}

static bool on_piece(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    struct kl_tagged_request *r = kl_tagged_find(m, h->to);

    if (!r || r->over || r->sends || r->queued || r->copies || r->status.source != from) return false;
    if (h->bytes != bytes || h->offset != r->moved || bytes > r->asked - r->moved) return false;
    memcpy(r->data + r->moved, data, bytes);
    r->moved += bytes;
    r->since = kl_now_ns();
    if (r->moved == r->status.bytes)
        kl_tagged_end(m, r, ncclSuccess);
    else
        ask_more(m, r);
    return true;
}

static bool on_taken(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    struct kl_tagged_request *s = send_to(m, from, h->to);

    (void)data;
    if (bytes) return false;
    if (s) kl_tagged_end(m, s, ncclSuccess);
    return s;
}

static bool on_repaid(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    (void)data;
    if (bytes || h->bytes > m->peer[from].unpaid) return false;
    m->peer[from].unpaid -= h->bytes;
    return true;
}

static bool on_fifo(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    (void)h;
    return kl_tagged_on_fifo(m, from, data, bytes);
}

static bool on_fifo_reply(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    (void)data;
    return !bytes && h->bytes <= 1 && kl_tagged_on_fifo_reply(m, from, h->bytes);
}

/* The packets behind it are read after this one, as behind each. */
static bool on_call(struct kl_tagged *m, int from, const struct kl_tagged_head *h, const void *data, size_t bytes)
{
    (void)h;
    (void)data;
    kl_tagged_on_call(m, from);
    return !bytes;
}

static bool (*const kinds[KL_TAGGED_KINDS])(struct kl_tagged *m, int from, const struct kl_tagged_head *h,
                                            const void *data, size_t bytes) = {
    [KL_TAGGED_EAGER] = on_eager, [KL_TAGGED_OFFER] = on_offer,           [KL_TAGGED_ASK] = on_ask,
    [KL_TAGGED_PIECE] = on_piece, [KL_TAGGED_TAKEN] = on_taken,           [KL_TAGGED_REPAID] = on_repaid,
    [KL_TAGGED_FIFO] = on_fifo,   [KL_TAGGED_FIFO_REPLY] = on_fifo_reply, [KL_TAGGED_CALL] = on_call,
};

static bool understand(struct kl_tagged *m, int from, const unsigned char *data, size_t bytes)
{
    struct kl_tagged_head h;

    if (bytes < sizeof h) return false;
    memcpy(&h, data, sizeof h);
    if (h.kind >= KL_TAGGED_KINDS || !kinds[h.kind]) return false;
    return kinds[h.kind](m, from, &h, data + sizeof h, bytes - sizeof h);
}

void kl_tagged_handle(struct kl_tagged *m, int from, const void *data, size_t bytes)
{
    if (!m->failed && !understand(m, from, data, bytes))
        kl_tagged_trouble(m, from,
                          KL_FAIL(ncclRemoteError,
                                  "rank %d: rank %d has sent an invalid packet of %zu bytes for messages with tags",
                                  m->config.rank, from, bytes));
}

static bool is_call(const void *data, size_t bytes)
{
    uint32_t kind = 0;

    if (bytes >= sizeof kind) memcpy(&kind, data, sizeof kind);
    return kind == KL_TAGGED_CALL;
}

void kl_tagged_on_packet(struct kl_tagged *m, int from, const void *data, size_t bytes)
{
    kl_tagged_lock(m);
    (void)kl_tagged_read_from(m, from);
    m->peer[from].received += !is_call(data, bytes);
    kl_tagged_handle(m, from, data, bytes);
    (void)kl_tagged_read_from(m, from);
    kl_tagged_unlock(m);
}
