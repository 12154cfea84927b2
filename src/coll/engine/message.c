/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/message.h"

#include "base/error.h"
#include "coll/schedule/signature.h"
#include "device/host/bulk_copy.h"
#include "transport/pool.h"

#include <string.h>

enum { MOST_DIRECT = 1 << 20 };         /* bytes: a direct step is read in one go, which delays an abort */
enum { RECEIVED_PER_POLL = 128 << 10 }; /* bytes per poll; then sends have their turn, because others wait for them */
enum { SMALL = 4096 };                  /* bytes for which memcpy is as fast */
enum { SLOTS = 2 };                     /* of the fifo: messages that fit use no pool, and may be done at once */

static size_t at_most(size_t bytes, size_t most)
{
    return bytes < most ? bytes : most;
}

/* The next step, of at most so many bytes: none behind it gets too small for a receiver that needs places for all. */
static size_t step_of(const struct kl_fifo_tx *tx, size_t left, size_t most)
{
    const size_t bytes = at_most(left, most), rest = left - bytes;

    return tx->zcopy_all && rest && rest < KL_FIFO_STEP_LEAST && bytes >= 2 * KL_FIFO_STEP_LEAST
               ? bytes - KL_FIFO_STEP_LEAST
               : bytes;
}

/* Through a slot of the pool; 0 if none is free. */
static size_t send_pooled(struct kl_fifo_tx *tx, const char *from, size_t left)
{
    size_t bytes = step_of(tx, left, kl_pool_slot_bytes(tx->pool));
    uint64_t offset;
    void *slot = kl_pool_take(tx->pool, tx, bytes, &offset);

    if (!slot) return 0;
    kl_copy_out(&tx->out, slot, from, bytes);
    kl_fifo_publish_pooled(tx, offset, bytes, bytes < left);
    return bytes;
}

static size_t send_copied(struct kl_fifo_tx *tx, const char *from, size_t left)
{
    size_t bytes = step_of(tx, left, tx->shape.slot_bytes);

    if (bytes) kl_copy_out(&tx->out, kl_fifo_reserve(tx, bytes), from, bytes);
    kl_fifo_publish(tx, bytes, bytes < left);
    return bytes;
}

static size_t send_direct(struct kl_fifo_tx *tx, const char *from, size_t left)
{
    size_t bytes = step_of(tx, left, MOST_DIRECT);

    kl_fifo_publish_direct(tx, from, bytes, bytes < left);
    return bytes;
}

/* Does the next step go through the pool? */
static bool is_pooled(const struct kl_message *m, struct kl_fifo_tx *tx)
{
    size_t left = m->bytes - m->moved;

    if (m->of_gpu || left >= tx->zcopy_from) return false;
    return left > SLOTS * tx->shape.slot_bytes && kl_fifo_pool_usable(tx);
}

/* Steps that may wait for the receiver. */
static uint32_t most_ahead(const struct kl_message *m, struct kl_fifo_tx *tx)
{
    return is_pooled(m, tx) && tx->shape.nslots > KL_POOL_DEPTH ? KL_POOL_DEPTH : tx->shape.nslots;
}

/* To another process; 0 if not possible: a rank that sends for this one (PXN) forwards bytes, and cannot follow an
 * offer. */
static size_t send_offered(struct kl_message *m, struct kl_connector *c, struct kl_zcopy_offers *offers)
{
    const size_t left = m->bytes - m->moved, bytes = at_most(left, KL_ZCOPY_MOST);

    if (c->tx.zcopy_all || m->declined || (m->moved && !m->accepted)) return 0;
    if (!kl_zcopy_offer_make(offers, c->peer, &c->tx, m->data + m->moved, bytes, bytes < left)) return 0;
    return m->offered = bytes;
}

static size_t send_step(struct kl_message *m, struct kl_connector *c, struct kl_zcopy_offers *offers)
{
    struct kl_fifo_tx *tx = &c->tx;
    const char *from = m->data + m->moved;
    size_t left = m->bytes - m->moved, bytes = 0;

    if (m->of_gpu || left >= tx->zcopy_from) return send_direct(tx, from, left);
    if (is_pooled(m, tx)) bytes = send_offered(m, c, offers);
    if (!bytes && is_pooled(m, tx)) bytes = send_pooled(tx, from, left);
    return bytes ? bytes : send_copied(tx, from, left);
}

/* Is no buffer offered? Declined data go another way. */
static bool all_is_back(struct kl_message *m, struct kl_connector *c, struct kl_zcopy_offers *offers)
{
    if (!m->offered) return true;
    if (!kl_fifo_drained(&c->tx)) return false;
    m->accepted = !kl_fifo_declined(&c->tx);
    kl_zcopy_offer_ended(offers, c->peer, !m->accepted);
    m->declined |= !m->accepted;
    if (!m->accepted) {
        m->moved -= m->offered;
        m->ended = false;
    }
    m->offered = 0;
    return true;
}

enum kl_progress kl_message_send(struct kl_message *message, struct kl_connector *connector,
                                 struct kl_zcopy_offers *offers)
{
    struct kl_fifo_tx *tx = &connector->tx;
    enum kl_progress got = KL_STALLED;

    tx->signature = message->signature;
    while (all_is_back(message, connector, offers) && !message->ended) {
        if (!kl_fifo_waiting_below(tx, most_ahead(message, tx))) return got;
        message->moved += send_step(message, connector, offers);
        message->ended = message->moved == message->bytes;
        got = KL_MOVED;
    }
    return !message->offered && kl_fifo_drained(tx) ? KL_DONE : got;
}

bool kl_message_try_send(struct kl_connector *connector, const void *data, size_t bytes, uint64_t signature)
{
    struct kl_fifo_tx *tx = &connector->tx;
    const uint32_t steps = bytes > tx->shape.slot_bytes ? SLOTS : 1;
    size_t moved = 0;

    if (bytes > steps * tx->shape.slot_bytes || bytes >= tx->zcopy_from || tx->zcopy_all) return false;
    if (!kl_fifo_waiting_below(tx, tx->shape.nslots - steps + 1) || !kl_fifo_drained(tx)) return false;
    tx->signature = signature;
    do moved += send_copied(tx, (const char *)data + moved, bytes - moved);
    while (moved < bytes);
    return true;
}

static ncclResult_t refuse_call(const struct kl_message *m, int peer, uint64_t theirs)
{
    char text[KL_CALL_TEXT];

    return KL_FAIL(ncclInvalidUsage, "%s: the counts or types differ",
                   kl_message_differs(theirs, peer, m->signature, text));
}

static ncclResult_t refuse_place(const struct kl_message *m, int peer, size_t bytes)
{
    return KL_FAIL(ncclInternalError,
                   "recv: %zu bytes of rank %d came to host memory, where %zu go to memory of a GPU without the CPU",
                   bytes, peer, m->bytes);
}

static ncclResult_t refuse_form(const struct kl_message *m, int peer, size_t bytes, bool more)
{
    return KL_FAIL(ncclInvalidUsage,
                   "recv: rank %d sent %s%zu bytes where %zu are received, though the counts and types do not differ",
                   peer, more ? "more than " : "", m->moved + bytes, m->bytes);
}

void kl_message_set_target(const struct kl_message *m, struct kl_connector *connector)
{
    if (!m->ended && connector->rx.places) kl_fifo_want(&connector->rx, m->data + m->moved, m->bytes - m->moved);
}

/* Copy received data to their place. */
static void put(const struct kl_zcopy_offers *offers, char *to, const void *from, size_t bytes)
{
    if (bytes < SMALL)
        memcpy(to, from, bytes);
    else
        kl_copy_result(to, from, bytes, offers->nt);
}

/* ---- offers of other processes ---- */

/* Copy a piece of the step's `bytes`, then check for a revocation, and for other messages. False: it cannot be read. */
static bool copy_some(struct kl_message *m, struct kl_zcopy_offers *offers, const struct kl_zcopy_offer_data *from,
                      size_t bytes)
{
    const size_t some = at_most(bytes - m->offered, KL_CMA_PIECE);
    char *to = m->data + m->moved + m->offered;

    if (from->here)
        put(offers, to, from->here + m->offered, some);
    else if (!kl_cma_read(&from->owner, from->seen, to, from->there + m->offered, some))
        return false;
    m->offered += some;
    return true;
}

/* STALLED: it was revoked. */
static enum kl_progress decline(struct kl_message *m, struct kl_fifo_rx *rx, enum kl_fifo_claim from)
{
    if (!kl_fifo_claim(rx, from, KL_CLAIM_DECLINED)) return KL_STALLED;
    kl_fifo_release(rx);
    m->offered = 0;
    return KL_MOVED;
}

/* STALLED: it has not arrived, or was revoked. */
static enum kl_progress copy_offered(struct kl_message *m, struct kl_connector *c, struct kl_zcopy_offers *offers)
{
    struct kl_fifo_rx *rx = &c->rx;
    struct kl_zcopy_offer_data from;
    bool more;
    const size_t bytes = kl_fifo_bytes(rx, &more);
    const enum kl_zcopy_offer_state got = kl_zcopy_offer_find(offers, c->peer, rx, bytes, &from);

    if (got == KL_ZCOPY_NOT_YET) return KL_STALLED;
    if (got == KL_ZCOPY_LOST) return decline(m, rx, m->offered ? KL_CLAIM_COPYING : KL_CLAIM_ZCOPY);
    if (!m->offered && !kl_fifo_claim(rx, KL_CLAIM_ZCOPY, KL_CLAIM_COPYING)) return KL_STALLED;
    if (!copy_some(m, offers, &from, bytes)) return decline(m, rx, KL_CLAIM_COPYING);
    if (m->offered < bytes) return KL_MOVED;
    if (!kl_fifo_claim(rx, KL_CLAIM_COPYING, KL_CLAIM_NONE)) return KL_STALLED;
    kl_fifo_release(rx);
    m->offered = 0;
    m->moved += bytes;
    m->ended = !more;
    return KL_MOVED;
}

static enum kl_progress take_offered(struct kl_message *m, struct kl_connector *c, struct kl_zcopy_offers *offers,
                                     ncclResult_t *rc)
{
    const size_t left = m->bytes - m->moved;
    bool more;
    const size_t bytes = kl_fifo_bytes(&c->rx, &more);

    if (bytes && bytes <= left && more == (bytes < left)) return copy_offered(m, c, offers);
    *rc = refuse_form(m, c->peer, bytes, more);
    return KL_DONE;
}

/* ---- receiving ---- */

enum kl_progress kl_message_recv(struct kl_message *message, struct kl_connector *connector,
                                 struct kl_zcopy_offers *offers, ncclResult_t *rc)
{
    struct kl_fifo_rx *rx = &connector->rx;
    enum kl_progress got = KL_STALLED;
    size_t polled = 0;

    while (!message->ended) {
        size_t bytes;
        bool more;
        if (!kl_fifo_ready(rx)) return got;
        if (kl_fifo_signature(rx) != message->signature) {
            *rc = refuse_call(message, connector->peer, kl_fifo_signature(rx));
            return KL_DONE; /* nothing is claimed: the sender revokes it */
        }
        if (kl_fifo_is_zcopy(rx)) {
            enum kl_progress taken = take_offered(message, connector, offers, rc);
            if (*rc || taken == KL_STALLED) return *rc ? KL_DONE : got;
            if (!message->ended) return KL_MOVED; /* a poll copies one piece */
            got = KL_MOVED;
            continue;
        }
        const void *in = kl_fifo_open(rx, &bytes, &more);
        if (!in && kl_fifo_revoked(rx)) return got;
        size_t left = message->bytes - message->moved;
        if (!in || bytes > left || more != (bytes < left)) {
            *rc = refuse_form(message, connector->peer, bytes, more);
            if (in) kl_fifo_release(rx); /* the sender waits for its end */
            return KL_DONE;
        }
        if (message->of_gpu && in != message->data + message->moved) {
            *rc = refuse_place(message, connector->peer, bytes);
            return KL_DONE;
        }
        if (bytes && in != message->data + message->moved) put(offers, message->data + message->moved, in, bytes);
        kl_fifo_release(rx);
        message->moved += bytes;
        message->ended = !more;
        got = KL_MOVED;
        polled += bytes;
        if (polled >= RECEIVED_PER_POLL && !message->ended) return KL_MOVED;
    }
    return KL_DONE;
}

/* A step of so many bytes. */
static void take_step(struct kl_fifo_rx *rx, void *to, const void *from, size_t bytes)
{
    if (bytes) memcpy(to, from, bytes);
    kl_fifo_release(rx);
}

bool kl_message_try_recv(struct kl_connector *connector, void *data, size_t bytes, uint64_t signature)
{
    struct kl_fifo_rx *rx = &connector->rx;
    const size_t most = rx->shape.slot_bytes, first = at_most(bytes, most), second = bytes - first;
    const void *in, *then = NULL;

    if (second > most || !(in = kl_fifo_open_whole(rx, 0, first, second, signature))) return false;
    if (second && !(then = kl_fifo_open_whole(rx, 1, second, false, signature))) return false;
    take_step(rx, data, in, first);
    if (second) take_step(rx, (char *)data + first, then, second);
    return true;
}

bool kl_message_waits_for_departed(const struct kl_message *message, struct kl_connector *connector)
{
    struct kl_fifo_tx *tx = &connector->tx;

    if (connector->sends)
        return kl_fifo_receiver_gone(tx, message->ended || message->offered ? 0 : most_ahead(message, tx));
    return !message->ended && kl_fifo_sender_gone(&connector->rx);
}
