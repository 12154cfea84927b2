/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/message.h"

#include "base/error.h"
#include "coll/signature.h"
#include "transport/pool.h"

#include <string.h>

enum { LEND_FROM = 4096, MOST_LENT = 1 << 20 }; /* bytes; a lent step is read in one go, which an abort waits for */

static size_t at_most(size_t bytes, size_t most)
{
    return bytes < most ? bytes : most;
}

/* Through a slot of the pool; 0 if none is free. */
static size_t send_pooled(struct kl_fifo_tx *tx, const char *from, size_t left)
{
    size_t bytes = at_most(left, kl_pool_slot_bytes(tx->pool));
    uint64_t offset;
    void *slot = kl_pool_take(tx->pool, tx, &offset);

    if (!slot) return 0;
    memcpy(slot, from, bytes);
    kl_fifo_publish_pooled(tx, offset, bytes, bytes < left);
    return bytes;
}

static size_t send_copied(struct kl_fifo_tx *tx, const char *from, size_t left)
{
    size_t bytes = at_most(left, tx->shape.slot_bytes);

    if (bytes) memcpy(kl_fifo_reserve(tx, bytes), from, bytes);
    kl_fifo_publish(tx, bytes, bytes < left);
    return bytes;
}

static size_t send_lent(struct kl_fifo_tx *tx, const char *from, size_t left)
{
    size_t bytes = at_most(left, MOST_LENT);

    kl_fifo_publish_direct(tx, from, bytes, bytes < left);
    return bytes;
}

/* Does the next step go through the pool? */
static bool is_pooled(const struct kl_message *m, const struct kl_fifo_tx *tx)
{
    size_t left = m->bytes - m->moved;

    if (tx->shares_memory && left >= LEND_FROM) return false;
    return left > tx->shape.slot_bytes && kl_fifo_pool_usable(tx);
}

/* Steps that may wait for the receiver. */
static uint32_t most_ahead(const struct kl_message *m, const struct kl_fifo_tx *tx)
{
    return is_pooled(m, tx) && tx->shape.nslots > KL_POOL_DEPTH ? KL_POOL_DEPTH : tx->shape.nslots;
}

static size_t send_step(struct kl_message *m, struct kl_fifo_tx *tx)
{
    const char *from = m->data + m->moved;
    size_t left = m->bytes - m->moved, bytes = 0;

    if (tx->shares_memory && left >= LEND_FROM) return send_lent(tx, from, left);
    if (is_pooled(m, tx)) bytes = send_pooled(tx, from, left);
    return bytes ? bytes : send_copied(tx, from, left);
}

enum kl_progress kl_message_send(struct kl_message *message, struct kl_connector *connector)
{
    struct kl_fifo_tx *tx = &connector->tx;
    enum kl_progress got = KL_STALLED;

    tx->signature = message->signature;
    while (!message->ended) {
        if (!kl_fifo_waiting_below(tx, most_ahead(message, tx))) return got;
        message->moved += send_step(message, tx);
        message->ended = message->moved == message->bytes;
        got = KL_MOVED;
    }
    return kl_fifo_drained(tx) ? KL_DONE : got;
}

static ncclResult_t refuse_call(const struct kl_message *m, int peer, uint64_t theirs)
{
    char text[KL_CALL_TEXT];

    return KL_FAIL(ncclInvalidUsage, "%s: the counts or types differ",
                   kl_message_differs(theirs, peer, m->signature, text));
}

static ncclResult_t refuse_form(const struct kl_message *m, int peer, size_t bytes, bool more)
{
    return KL_FAIL(ncclInvalidUsage,
                   "recv: rank %d sent %s%zu bytes where %zu are received, though the counts and types do not differ",
                   peer, more ? "more than " : "", m->moved + bytes, m->bytes);
}

void kl_message_want(const struct kl_message *m, struct kl_connector *connector)
{
    if (!m->ended && connector->rx.places) kl_fifo_want(&connector->rx, m->data + m->moved, m->bytes - m->moved);
}

enum kl_progress kl_message_recv(struct kl_message *message, struct kl_connector *connector, ncclResult_t *rc)
{
    struct kl_fifo_rx *rx = &connector->rx;
    enum kl_progress got = KL_STALLED;

    while (!message->ended) {
        size_t bytes;
        bool more;
        if (!kl_fifo_ready(rx)) return got;
        if (kl_fifo_signature(rx) != message->signature) {
            *rc = refuse_call(message, connector->peer, kl_fifo_signature(rx));
            return KL_DONE; /* nothing is claimed: a lender takes it back */
        }
        const void *in = kl_fifo_open(rx, &bytes, &more);
        if (!in && kl_fifo_revoked(rx)) return got;
        size_t left = message->bytes - message->moved;
        if (!in || bytes > left || more != (bytes < left)) {
            *rc = refuse_form(message, connector->peer, bytes, more);
            if (in) kl_fifo_release(rx); /* a lender waits for its end */
            return KL_DONE;
        }
        if (bytes && in != message->data + message->moved) memcpy(message->data + message->moved, in, bytes);
        kl_fifo_release(rx);
        message->moved += bytes;
        message->ended = !more;
        got = KL_MOVED;
    }
    return KL_DONE;
}

bool kl_message_waits_in_vain(const struct kl_message *message, struct kl_connector *connector)
{
    struct kl_fifo_tx *tx = &connector->tx;

    if (connector->sends) return kl_fifo_receiver_gone(tx, message->ended ? 0 : most_ahead(message, tx));
    return !message->ended && kl_fifo_sender_gone(&connector->rx);
}
