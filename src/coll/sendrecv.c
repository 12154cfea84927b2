/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/sendrecv.h"

#include "base/error.h"

#include <string.h>

enum { LEND_FROM = 4096, MOST_LENT = 1 << 20 }; /* bytes; a lent step is read in one go, which an abort waits for */

static size_t at_most(size_t bytes, size_t most)
{
    return bytes < most ? bytes : most;
}

static size_t send_step(struct kl_message *m, struct kl_fifo_tx *tx)
{
    const char *from = m->data + m->moved;
    size_t left = m->bytes - m->moved;
    bool lend = tx->shares_memory && left >= LEND_FROM;
    size_t bytes = at_most(left, lend ? MOST_LENT : tx->slot_bytes);

    if (lend) {
        kl_fifo_publish_direct(tx, from, bytes, bytes < left);
        return bytes;
    }
    if (bytes) memcpy(kl_fifo_reserve(tx, bytes), from, bytes);
    kl_fifo_publish(tx, bytes, bytes < left);
    return bytes;
}

enum kl_progress kl_send_progress(struct kl_message *message, struct kl_connector *connector)
{
    struct kl_fifo_tx *tx = &connector->tx;
    enum kl_progress step = KL_STALLED;

    while (!message->ended) {
        if (!kl_fifo_can_send(tx)) return step;
        message->moved += send_step(message, tx);
        message->ended = message->moved == message->bytes;
        step = KL_MOVED;
    }
    return kl_fifo_drained(tx) ? KL_DONE : step;
}

static ncclResult_t refuse(const struct kl_message *m, int peer, const void *in, size_t bytes, bool more)
{
    if (!in) return KL_FAIL(ncclRemoteError, "rank %d gave up in send", peer);
    return KL_FAIL(ncclInvalidUsage,
                   "recv: rank %d sent %s%zu bytes where %zu are received: the counts or types differ", peer,
                   more ? "more than " : "", m->moved + bytes, m->bytes);
}

enum kl_progress kl_recv_progress(struct kl_message *message, struct kl_connector *connector, ncclResult_t *rc)
{
    struct kl_fifo_rx *rx = &connector->rx;
    enum kl_progress step = KL_STALLED;

    while (!message->ended) {
        size_t bytes;
        bool more;
        if (!kl_fifo_ready(rx)) return step;
        const void *in = kl_fifo_open(rx, &bytes, &more);
        size_t left = message->bytes - message->moved;
        if (!in || bytes > left || more != (bytes < left)) {
            *rc = refuse(message, connector->peer, in, bytes, more);
            if (in) kl_fifo_release(rx); /* a lender waits for its end */
            return KL_DONE;
        }
        if (bytes) memcpy(message->data + message->moved, in, bytes);
        kl_fifo_release(rx);
        message->moved += bytes;
        message->ended = !more;
        step = KL_MOVED;
    }
    return KL_DONE;
}

bool kl_message_waits_in_vain(const struct kl_message *message, struct kl_connector *connector)
{
    if (connector->sends) return kl_fifo_receiver_gone(&connector->tx, !message->ended);
    return !message->ended && kl_fifo_sender_gone(&connector->rx);
}
