/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fifo.h - slots through which one rank hands data to another: the moving part of every transport on a host.
 *
 * The memory belongs to the receiver and may be mapped at different addresses on the two sides, so it holds offsets and
 * counters, never pointers of its own. A step counts slots since the connection was made; its slot is step % nslots.
 *
 *      line 0           line 1         line 2                    from line 3
 *     +----------------+--------------+-----------------------+  +---------------------------------+
 *     | head, receiver | sender left  | magic, nslots,        |  | ready, bytes, claim, payload    |  x nslots, a line each
 *     | left           |              | slot_bytes            |  +---------------------------------+
 *     +----------------+--------------+-----------------------+  | slot data of slot_bytes         |  x nslots
 *      receiver writes  sender writes  constant after init       +---------------------------------+
 *                                                                 sender writes (claim: both, see below)
 *
 * Invariant:    head <= steps published <= head + nslots.
 * Who owns a slot:  steps [head, published)           the receiver, read only
 *                   steps [published, head + nslots)  the sender, write only
 * Small data (up to KL_FIFO_INLINE bytes) travels in the line that says it is ready: one line transfer carries both.
 * Direct data: where both ranks share an address space, a step may carry the address of the sender's own memory instead
 *               of a copy. The receiver claims such a step before it reads and the sender may revoke what is not claimed,
 *               so that memory can be given back safely when an operation is aborted.
 * Leaving:       a side that is done for good says so. Everything it published before is still there; what is not there
 *               then will never come, so that nobody waits for a rank that has gone on.
 * Memory order: ready is stored with release after the payload, loaded with acquire before it: the payload is visible.
 *               head is stored with release after reading, loaded with acquire before a slot is reused. claim changes by
 *               compare-and-swap with acquire and release. left is stored with release last, loaded with acquire before
 *               a final look at ready or head.
 * Threads:      one thread at a time per side; each side holds its own handle and never the other's.
 * Trust:        the memory was attached over an authenticated connection, yet bytes is checked against slot_bytes when a
 *               step is opened: a peer with other settings must not make this rank read beyond the end.
 * Source:       Lamport's single-producer ring, with the flag in the line of the data as NCCL's LL protocol has it.
 */
#ifndef KL_TRANSPORT_FIFO_H
#define KL_TRANSPORT_FIFO_H

#include "base/atomic.h"
#include "include/nccl.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KL_FIFO_INLINE 104u /* bytes of payload in a line */

enum kl_fifo_claim { KL_CLAIM_NONE, KL_CLAIM_OFFERED, KL_CLAIM_READING, KL_CLAIM_REVOKED };

struct kl_fifo_line {
    alignas(KL_LINE) _Atomic uint64_t ready; /* step + 1 once that step's data is here */
    uint64_t bytes;
    _Atomic uint32_t claim;                /* enum kl_fifo_claim; NONE unless the payload is an address */
    uint32_t more;                         /* 1: the same message goes on in the next step */
    unsigned char payload[KL_FIFO_INLINE]; /* the data, or its address (direct), or nothing (in the slot) */
};

struct kl_fifo {
    alignas(KL_LINE) _Atomic uint64_t head; /* steps consumed, written by the receiver, as the next */
    _Atomic uint32_t receiver_left;
    alignas(KL_LINE) _Atomic uint32_t sender_left; /* written by the sender */
    alignas(KL_LINE) uint32_t magic;               /* constant after kl_fifo_init, as all below */
    uint32_t nslots;
    uint64_t slot_bytes;
    struct kl_fifo_line lines[];
};
_Static_assert(sizeof(struct kl_fifo_line) == KL_LINE, "a step's flag and payload share one line");
_Static_assert(sizeof(struct kl_fifo) == 3 * KL_LINE, "shared layout: both processes must agree");

/** The sender's private view. */
struct kl_fifo_tx {
    struct kl_fifo *fifo;
    uint64_t step;      /* next to publish */
    uint64_t head_seen; /* lags behind the true head; that is safe, the fifo only looks fuller */
    uint64_t direct;    /* steps below this may still carry addresses that the receiver has not finished with */
    uint64_t slot_bytes;
    uint32_t nslots;
    bool shares_memory; /* direct data is allowed */
};

/** The receiver's private view. */
struct kl_fifo_rx {
    struct kl_fifo *fifo;
    uint64_t step; /* next to consume */
    uint64_t slot_bytes;
    uint32_t nslots;
    bool shares_memory; /* addresses are accepted */
};

/** Bytes of memory for a fifo. */
size_t kl_fifo_size(uint32_t nslots, uint64_t slot_bytes);

/** Prepare zeroed memory aligned to KL_LINE, of kl_fifo_size bytes. Before anybody attaches. */
void kl_fifo_init(struct kl_fifo *fifo, uint32_t nslots, uint64_t slot_bytes);

/** The two views. `size` is what is really mapped; a fifo that does not fit into it is ncclInternalError. */
ncclResult_t kl_fifo_attach_tx(struct kl_fifo_tx *tx, struct kl_fifo *fifo, size_t size, bool shares_memory);
ncclResult_t kl_fifo_attach_rx(struct kl_fifo_rx *rx, struct kl_fifo *fifo, size_t size, bool shares_memory);

/* ---- sender ---- */

static inline struct kl_fifo_line *kl_fifo_line(struct kl_fifo *fifo, uint64_t step, uint32_t nslots)
{
    return &fifo->lines[step % nslots];
}

static inline void *kl_fifo_slot(struct kl_fifo *fifo, uint64_t step, uint32_t nslots, uint64_t slot_bytes)
{
    return (unsigned char *)&fifo->lines[nslots] + (step % nslots) * slot_bytes;
}

/** Is there room for one more step? */
static inline bool kl_fifo_can_send(struct kl_fifo_tx *tx)
{
    if (tx->step - tx->head_seen < tx->nslots) return true;
    tx->head_seen = kl_load_acquire(&tx->fifo->head); /* pairs with kl_fifo_release */
    return tx->step - tx->head_seen < tx->nslots;
}

/** Where to write the next step's `bytes` (at most slot_bytes). Only after kl_fifo_can_send. */
static inline void *kl_fifo_reserve(struct kl_fifo_tx *tx, size_t bytes)
{
    if (bytes <= KL_FIFO_INLINE) return kl_fifo_line(tx->fifo, tx->step, tx->nslots)->payload;
    return kl_fifo_slot(tx->fifo, tx->step, tx->nslots, tx->slot_bytes);
}

/** Hand over what was written where kl_fifo_reserve said, with the same `bytes`; `more` of the message follows. */
static inline void kl_fifo_publish(struct kl_fifo_tx *tx, size_t bytes, bool more)
{
    struct kl_fifo_line *line = kl_fifo_line(tx->fifo, tx->step, tx->nslots);

    line->bytes = bytes;
    line->more = more;
    kl_store_relaxed(&line->claim, KL_CLAIM_NONE);
    kl_store_release(&line->ready, ++tx->step); /* pairs with kl_fifo_ready */
}

/** Hand over the address of `bytes` of own memory, which must stay as it is until kl_fifo_drained. */
static inline void kl_fifo_publish_direct(struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more)
{
    struct kl_fifo_line *line = kl_fifo_line(tx->fifo, tx->step, tx->nslots);

    line->bytes = bytes;
    line->more = more;
    *(const void **)(void *)line->payload = data;
    kl_store_relaxed(&line->claim, KL_CLAIM_OFFERED);
    kl_store_release(&line->ready, ++tx->step); /* pairs with kl_fifo_ready */
    tx->direct = tx->step;
}

/** Has the receiver finished with all addresses it was given? */
static inline bool kl_fifo_drained(struct kl_fifo_tx *tx)
{
    if (tx->head_seen >= tx->direct) return true;
    tx->head_seen = kl_load_acquire(&tx->fifo->head); /* pairs with kl_fifo_release */
    return tx->head_seen >= tx->direct;
}

/** Has the receiver gone without making room for the step that kl_fifo_can_send refuses, or reading what was lent? */
bool kl_fifo_receiver_gone(struct kl_fifo_tx *tx, bool wants_room);

/** Say that nothing more will be sent. */
static inline void kl_fifo_leave_tx(struct kl_fifo_tx *tx)
{
    kl_store_release(&tx->fifo->sender_left, 1); /* pairs with kl_fifo_sender_gone */
}

/** Take back the addresses that the receiver has not begun to read, and wait (microseconds) while it reads one. */
void kl_fifo_revoke(struct kl_fifo_tx *tx);

/* ---- receiver ---- */

/** Is the next step here? */
static inline bool kl_fifo_ready(const struct kl_fifo_rx *rx)
{
    return kl_load_acquire(&kl_fifo_line(rx->fifo, rx->step, rx->nslots)->ready) ==
           rx->step + 1; /* pairs with publish */
}

/** Has the sender gone without sending the step that kl_fifo_ready waits for? */
bool kl_fifo_sender_gone(const struct kl_fifo_rx *rx);

/** Say that nothing more will be received. */
static inline void kl_fifo_leave_rx(struct kl_fifo_rx *rx)
{
    kl_store_release(&rx->fifo->receiver_left, 1); /* pairs with kl_fifo_receiver_gone */
}

/** The next step's data, after kl_fifo_ready; read it and kl_fifo_release it without waiting in between. NULL when the
 * sender revoked it, or claims more bytes than a slot holds. */
const void *kl_fifo_open_other(struct kl_fifo_rx *rx, struct kl_fifo_line *line, size_t *bytes);

static inline const void *kl_fifo_open(struct kl_fifo_rx *rx, size_t *bytes, bool *more)
{
    struct kl_fifo_line *line = kl_fifo_line(rx->fifo, rx->step, rx->nslots);

    *bytes = line->bytes;
    *more = line->more;
    if (*bytes <= KL_FIFO_INLINE && kl_load_relaxed(&line->claim) == KL_CLAIM_NONE) return line->payload;
    return kl_fifo_open_other(rx, line, bytes);
}

/** Give the opened step's slot back to the sender. */
static inline void kl_fifo_release(struct kl_fifo_rx *rx)
{
    kl_store_release(&rx->fifo->head, ++rx->step); /* pairs with kl_fifo_can_send and kl_fifo_drained */
}

#endif
