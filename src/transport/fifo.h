/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fifo.h - slots through which one rank hands data to another: the moving part of every transport on a host.
 *
 * The memory belongs to the receiver and may be mapped at different addresses on the two sides, so it holds offsets and
 * counters, never pointers of its own. A step counts slots since the connection was made; its line is step % nslots, its slot kl_fifo_place.
 *
 *      line 0           line 1         line 2                  from line 3
 *     +----------------+--------------+---------------------+  +----------------------------------+
 *     | head, receiver | sender left  | magic, nslots,      |  | ready, bytes, claim, payload     |  x nslots, a line each
 *     | left, has pool |              | slot_bytes, ...     |  +----------------------------------+
 *     +----------------+--------------+---------------------+  | lines with flags of ll_bytes     |  x nslots
 *      receiver writes  sender writes  constant after init     +----------------------------------+
 *                                                              | slot data of slot_bytes          |  x places
 *                                                              +----------------------------------+
 *                                                              | cells of cell_bytes              |  x kl_fifo_ncells
 *                                                              +----------------------------------+
 *                                                               sender writes (claim: both, see below)
 *
 * Invariant:    head <= steps published <= head + nslots.
 * Who owns a slot:  steps [head, published)           the receiver, read only
 *                   steps [published, head + nslots)  the sender, write only
 * Where a step's data are:
 *   in its line     up to KL_FIFO_INLINE bytes: one line transfer carries both the data and that they are there.
 *   in its slot     protocol Simple. Slots may have more places than there are steps under way, used in turn, as suits the caches
 *                   (kl_cache_cycle). What fits in a cell is in a cell instead, one of `cells` likewise, or of more if it needs less.
 *   in flagged lines  protocols LL and LL128 (lines.h): 64-byte lines, each with its own flag, so that the receiver
 *                   sees a line while the next ones are being written. The first KL_FIFO_INLINE bytes are in the step's line.
 *   in a pool       of the sender's, which many fifos share (pool.h): the payload is an offset. Only once the receiver
 *                   has said that it has mapped the pool: before, the sender might leave with data that nobody can reach.
 *   where they were ("direct"), if both ranks share an address space: the payload is the address of the sender's own
 *                   memory. The receiver claims such a step before it reads and the sender may revoke what is not
 *                   claimed, so that memory can be given back safely when an operation is aborted.
 *   where they were ("lent"), in memory that the receiver, another process, may map: the payload says how. The receiver claims the step,
 *                   which may take it long to copy, and gives it back copied, or declines it. The sender may revoke it all the while.
 * Leaving:       a side that is done for good says so. Everything it published before is still there; what is not there
 *               then will never come, so that nobody waits for a rank that has gone on.
 * Memory order: ready is stored with release after the payload, loaded with acquire before it: the payload is visible.
 *               head is stored with release after reading, loaded with acquire before a slot is reused. claim changes by
 *               compare-and-swap with acquire and release. left is stored with release last, loaded with acquire before
 *               a final look at ready or head.
 * Threads:      one thread at a time per side; each side holds its own handle and never the other's.
 * Trust:        the memory was attached over an authenticated connection, yet bytes and offsets are checked when a step is
 *               opened: a peer with other settings must not make this rank read beyond the end.
 * Source:       Lamport's single-producer ring, with the flag in the line of the data as NCCL's LL protocol has it.
 */
#ifndef KL_TRANSPORT_FIFO_H
#define KL_TRANSPORT_FIFO_H

#include "base/atomic.h"
#include "device/host/copy_out.h"
#include "include/nccl.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KL_FIFO_INLINE 104u /* bytes of payload in a line */

/** Bytes below which copying is cheaper than waiting for a reader that runs. */
#define KL_FIFO_LENDS_FROM 4096

#define KL_FIFO_CELL_TIMES 4  /* times as many cells there are for the smallest steps */
#define KL_FIFO_ODD_LINES  17 /* between slots */

#define KL_FIFO_TIMED (256u << 10) /* bytes between two looks at head that are timed */

#define KL_FIFO_MORE 0x80000000u /* in kl_fifo_line.bytes: the same message goes on in the next step */

/** Where the payload is if it is neither in the line nor in the slot of the step. */
enum kl_fifo_claim {
    KL_CLAIM_NONE,
    KL_CLAIM_LINES,    /* in the flagged lines of the step: the receiver must look for them */
    KL_CLAIM_POOL,     /* in the sender's pool */
    KL_CLAIM_PLACED,   /* where the receiver wanted them (kl_fifo_want) */
    KL_CLAIM_OFFERED,  /* in the sender's own memory, and not read yet; */
    KL_CLAIM_READING,  /* being read, or read; */
    KL_CLAIM_LENT,     /* in memory of the sender's that the receiver may map, and not read yet; */
    KL_CLAIM_COPYING,  /* being copied from there, by another process, for as long as that takes; */
    KL_CLAIM_DECLINED, /* it could not be mapped, and was not read */
    KL_CLAIM_REVOKED   /* not to be read any more */
};

struct kl_fifo_line {
    alignas(KL_LINE) _Atomic uint64_t ready; /* step + 1 once that step's data is here */
    uint64_t signature;                      /* of the operation that the step is of */
    uint32_t bytes;                          /* and KL_FIFO_MORE */
    _Atomic uint32_t claim;                  /* enum kl_fifo_claim */
    unsigned char payload[KL_FIFO_INLINE]; /* the data or their beginning, their address, or their offset in the pool */
};

struct kl_fifo {
    alignas(KL_LINE) _Atomic uint64_t head; /* steps consumed, written by the receiver, as the next */
    _Atomic uint32_t receiver_left;
    _Atomic uint32_t has_pool;                     /* the receiver has mapped the sender's pool */
    alignas(KL_LINE) _Atomic uint32_t sender_left; /* written by the sender */
    _Atomic uint32_t asleep;                       /* the receiver is a proxy that sleeps; who clears it rings */
    alignas(KL_LINE) uint32_t magic;               /* constant after kl_fifo_init, as all below */
    struct kl_fifo_shape {
        uint32_t nslots;     /* power of two */
        uint32_t ll_bytes;   /* of the flagged lines of a step, multiple of KL_LINE; 0: it has none */
        uint64_t slot_bytes; /* multiple of KL_LINE, as: */
        uint32_t cell_bytes; /* less than slot_bytes; 0: there are no cells */
        uint32_t
            cells; /* for steps of cell_bytes, power of two, at least nslots; 0: none. Smaller steps have more: kl_fifo_cells_for */
        uint32_t places; /* of slots, likewise; 0, before kl_fifo_init: nslots */
        uint32_t zero;   /* no padding: shapes are sent */
    } shape;
    struct kl_fifo_line lines[];
};
_Static_assert(sizeof(struct kl_fifo_line) == KL_LINE, "a step's flag and payload share one line");
_Static_assert(sizeof(struct kl_fifo) == 3 * KL_LINE, "shared layout: both processes must agree");

struct kl_pool;

/** The sender's private view. */
struct kl_fifo_tx {
    struct kl_fifo *fifo;
    uint64_t step;      /* next to publish */
    uint64_t head_seen; /* lags behind the true head; that is safe, the fifo only looks fuller */
    uint64_t direct;    /* steps below this may still carry addresses that the receiver has not finished with */
    struct kl_fifo_shape shape;
    size_t lends_from;    /* bytes: so much is read where it is; SIZE_MAX: nothing */
    bool lends_all;       /* the other end is this side's way into a network: nothing is over before it has left */
    uint64_t signature;   /* of the operation whose steps are published now */
    struct kl_pool *pool; /* NULL: none */
    bool pool_mapped; /* by the receiver: so it stays, and its line, which the receiver writes, need not be looked at */
    size_t sent;      /* bytes, since a look at head was timed, for: */
    struct kl_copy_out out; /* what is copied into steps */
};

/** The receiver's private view. */
struct kl_fifo_rx {
    struct kl_fifo *fifo;
    uint64_t step; /* next to consume */
    struct kl_fifo_shape shape;
    uint32_t lines_seen; /* flagged lines of this step that were there at the last look */
    bool shares_memory;  /* addresses are accepted */
    bool places;         /* the sending side, a transport of this process, puts data where they are wanted */
    void *want;          /* where those of step want_step go, and what follows of its message; NULL: nobody said */
    size_t want_bytes;
    uint64_t want_step;
    const unsigned char *pool; /* the sender's, of pool_bytes; NULL: none */
    size_t pool_bytes;
};

/** Bytes of memory for a fifo. */
size_t kl_fifo_size(const struct kl_fifo_shape *shape);

/** What a peer says of cells and places may be. */
bool kl_fifo_places_are_sound(const struct kl_fifo_shape *shape);

/** Prepare zeroed memory aligned to KL_LINE, of kl_fifo_size bytes. Before anybody attaches. */
void kl_fifo_init(struct kl_fifo *fifo, const struct kl_fifo_shape *shape);

/** The two views. `size` is what is really mapped; a fifo that does not fit into it is ncclInternalError. */
ncclResult_t kl_fifo_attach_tx(struct kl_fifo_tx *tx, struct kl_fifo *fifo, size_t size, bool shares_memory);
ncclResult_t kl_fifo_attach_rx(struct kl_fifo_rx *rx, struct kl_fifo *fifo, size_t size, bool shares_memory);

/* ---- where things are ---- */

static inline struct kl_fifo_line *kl_fifo_line(struct kl_fifo *fifo, uint64_t step, const struct kl_fifo_shape *shape)
{
    return &fifo->lines[step & (shape->nslots - 1)];
}

/** The flagged lines of a step: ll_bytes. */
static inline void *kl_fifo_lines(struct kl_fifo *fifo, uint64_t step, const struct kl_fifo_shape *shape)
{
    return (unsigned char *)&fifo->lines[shape->nslots] + (step & (shape->nslots - 1)) * shape->ll_bytes;
}

/** From slot to slot. Sizes are powers of two: without the odd lines between, all slots would meet in the same sets of a cache. */
static inline size_t kl_fifo_stride(const struct kl_fifo_shape *shape)
{
    return shape->slot_bytes + (size_t)KL_FIFO_ODD_LINES * KL_LINE;
}

/** All cells. */
static inline uint32_t kl_fifo_ncells(const struct kl_fifo_shape *shape)
{
    return shape->cells * KL_FIFO_CELL_TIMES;
}

/**
 * Cells that steps of so many bytes, at most cell_bytes, have in turn. Always a multiple of nslots: so steps that wait for the receiver together
 * never have the same one.
 */
static inline uint32_t kl_fifo_cells_for(size_t bytes, const struct kl_fifo_shape *shape)
{
    uint32_t times = 1;

    while (times < KL_FIFO_CELL_TIMES && 2 * times * bytes <= shape->cell_bytes) times *= 2;
    return times * shape->cells;
}

enum { KL_FIFO_STEPS_PER_PLACE = 16 }; /* before more places are used */

/** From cell to cell. */
static inline size_t kl_fifo_cell_stride(const struct kl_fifo_shape *shape)
{
    return shape->cell_bytes + (size_t)KL_LINE;
}

static inline unsigned char *kl_fifo_slots(struct kl_fifo *fifo, const struct kl_fifo_shape *shape)
{
    return (unsigned char *)&fifo->lines[shape->nslots] + (size_t)shape->nslots * shape->ll_bytes;
}

/**
 * The number of a step's place, of up to `most`, power of two, at least nslots: nslots of them are used in turn at first, more after many steps, so that
 * first touching memory stays a small part of the time. Both ends derive it from the step. Steps under way together never have the same place.
 */
static inline uint32_t kl_fifo_place(uint64_t step, uint32_t most, const struct kl_fifo_shape *shape)
{
    const uint64_t grown = step / KL_FIFO_STEPS_PER_PLACE;
    uint32_t places = shape->nslots;

    if (grown >= most) return (uint32_t)step & (most - 1);
    while (2 * (uint64_t)places <= grown) places *= 2;
    return (uint32_t)step & (places - 1);
}

/** The slot, or the cell, of a step that has so many bytes. */
static inline void *kl_fifo_slot(struct kl_fifo *fifo, uint64_t step, size_t bytes, const struct kl_fifo_shape *shape)
{
    unsigned char *slots = kl_fifo_slots(fifo, shape);

    if (bytes > shape->cell_bytes) return slots + kl_fifo_place(step, shape->places, shape) * kl_fifo_stride(shape);
    return slots + shape->places * kl_fifo_stride(shape) +
           kl_fifo_place(step, kl_fifo_cells_for(bytes, shape), shape) * kl_fifo_cell_stride(shape);
}

/* ---- sender ---- */

/** Look at head, and how long it takes to come from the receiver's core. Seldom: what calls it is on the path of operations. */
__attribute__((noinline)) void kl_fifo_look_timed(struct kl_fifo_tx *tx);

static inline void kl_fifo_look(struct kl_fifo_tx *tx)
{
    if (tx->sent >= KL_FIFO_TIMED)
        kl_fifo_look_timed(tx);
    else
        tx->head_seen = kl_load_acquire(&tx->fifo->head); /* pairs with kl_fifo_release */
}

/** Are fewer than `most` steps waiting for the receiver? */
static inline bool kl_fifo_waiting_below(struct kl_fifo_tx *tx, uint32_t most)
{
    if (tx->step - tx->head_seen < most && tx->sent < KL_FIFO_TIMED) return true;
    kl_fifo_look(tx);
    return tx->step - tx->head_seen < most;
}

/** Has the receiver finished with this step? */
static inline bool kl_fifo_is_behind(struct kl_fifo_tx *tx, uint64_t step)
{
    if (tx->head_seen > step) return true;
    kl_fifo_look(tx);
    return tx->head_seen > step;
}

/** Is there room for one more step? */
static inline bool kl_fifo_can_send(struct kl_fifo_tx *tx)
{
    return kl_fifo_waiting_below(tx, tx->shape.nslots);
}

/** Where to write the next step's `bytes` (at most slot_bytes). Only after kl_fifo_can_send. */
static inline void *kl_fifo_reserve(struct kl_fifo_tx *tx, size_t bytes)
{
    if (bytes <= KL_FIFO_INLINE) return kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload;
    return kl_fifo_slot(tx->fifo, tx->step, bytes, &tx->shape);
}

/** Hand over the next step, whose payload is where `claim` says. */
static inline void kl_fifo_publish_as(struct kl_fifo_tx *tx, enum kl_fifo_claim claim, size_t bytes, bool more)
{
    struct kl_fifo_line *line = kl_fifo_line(tx->fifo, tx->step, &tx->shape);

    tx->sent += bytes;
    line->bytes = (uint32_t)bytes | (more ? KL_FIFO_MORE : 0);
    line->signature = tx->signature;
    kl_store_relaxed(&line->claim, (uint32_t)claim);
    kl_store_release(&line->ready, ++tx->step); /* pairs with kl_fifo_ready */
}

/** Hand over what was written where kl_fifo_reserve said, with the same `bytes`; `more` of the message follows. */
static inline void kl_fifo_publish(struct kl_fifo_tx *tx, size_t bytes, bool more)
{
    kl_fifo_publish_as(tx, KL_CLAIM_NONE, bytes, more);
}

/** Can the receiver read from the pool? */
static inline bool kl_fifo_pool_usable(struct kl_fifo_tx *tx)
{
    if (tx->pool && !tx->pool_mapped)
        tx->pool_mapped = kl_load_acquire(&tx->fifo->has_pool); /* pairs with kl_fifo_use_pool */
    return tx->pool_mapped;
}

/** Hand over `bytes` at `offset` of the sender's pool. Only if kl_fifo_pool_usable. */
static inline void kl_fifo_publish_pooled(struct kl_fifo_tx *tx, uint64_t offset, size_t bytes, bool more)
{
    *(uint64_t *)(void *)kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload = offset;
    kl_fifo_publish_as(tx, KL_CLAIM_POOL, bytes, more);
}

/** Hand over the address of `bytes` of own memory, which must stay as it is until kl_fifo_drained. */
static inline void kl_fifo_publish_direct(struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more)
{
    *(const void **)(void *)kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload = data;
    kl_fifo_publish_as(tx, KL_CLAIM_OFFERED, bytes, more);
    tx->direct = tx->step;
}

/** Where to say how the next step's data are found. Only after kl_fifo_can_send. */
static inline void *kl_fifo_next_payload(struct kl_fifo_tx *tx)
{
    return kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload;
}

/** Hand over `bytes` of own memory that the payload tells of, which must stay as they are until kl_fifo_drained. */
static inline void kl_fifo_publish_lent(struct kl_fifo_tx *tx, size_t bytes, bool more)
{
    kl_fifo_publish_as(tx, KL_CLAIM_LENT, bytes, more);
    tx->direct = tx->step;
}

/** The last step was lent, and kl_fifo_drained: was it declined? */
static inline bool kl_fifo_declined(const struct kl_fifo_tx *tx)
{
    return kl_load_relaxed(&kl_fifo_line(tx->fifo, tx->step - 1, &tx->shape)->claim) == KL_CLAIM_DECLINED;
}

/** Hand over `bytes` that lie where the receiver wanted them, at `data`. */
static inline void kl_fifo_publish_placed(struct kl_fifo_tx *tx, void *data, size_t bytes, bool more)
{
    *(void **)(void *)kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload = data;
    kl_fifo_publish_as(tx, KL_CLAIM_PLACED, bytes, more);
}

/** Has the receiver finished with all addresses it was given? */
static inline bool kl_fifo_drained(struct kl_fifo_tx *tx)
{
    uint64_t lent = tx->lends_all ? tx->step : tx->direct;

    if (tx->head_seen >= lent) return true;
    kl_fifo_look(tx);
    return tx->head_seen >= lent;
}

/** Has the receiver gone while `most` steps wait for it, after which no more are sent? 0: without reading what was lent. */
bool kl_fifo_receiver_gone(struct kl_fifo_tx *tx, uint32_t most);

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
    return kl_load_acquire(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->ready) ==
           rx->step + 1; /* pairs with publish */
}

/** Has the sender gone without sending the step that kl_fifo_ready waits for? */
bool kl_fifo_sender_gone(const struct kl_fifo_rx *rx);

/** The sender's pool is mapped here: `bytes` at `pool`. */
static inline void kl_fifo_use_pool(struct kl_fifo_rx *rx, const void *pool, size_t bytes)
{
    rx->pool = pool;
    rx->pool_bytes = bytes;
    kl_store_release(&rx->fifo->has_pool, 1); /* pairs with kl_fifo_pool_usable */
}

/** The data of the message that begins with the next step, of up to `bytes`, may be put to `to` at once. If `places`. */
static inline void kl_fifo_want(struct kl_fifo_rx *rx, void *to, size_t bytes)
{
    rx->want = to;
    rx->want_bytes = bytes;
    rx->want_step = rx->step;
}

/** Say that nothing more will be received. */
static inline void kl_fifo_leave_rx(struct kl_fifo_rx *rx)
{
    kl_store_release(&rx->fifo->receiver_left, 1); /* pairs with kl_fifo_receiver_gone */
}

/** The signature of the next step's operation, after kl_fifo_ready: whoever reads its data has compared it. */
static inline uint64_t kl_fifo_signature(const struct kl_fifo_rx *rx)
{
    return kl_fifo_line(rx->fifo, rx->step, &rx->shape)->signature;
}

/**
 * Did the sender take the next step back, after kl_fifo_ready? It has failed then, and tells everybody why by other ways: the
 * receiver waits to hear of it, as if the step was not there.
 */
static inline bool kl_fifo_revoked(const struct kl_fifo_rx *rx)
{
    return kl_load_relaxed(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->claim) == KL_CLAIM_REVOKED;
}

/** Where the next step says how its data are found, after kl_fifo_ready. */
static inline const void *kl_fifo_payload(const struct kl_fifo_rx *rx)
{
    return kl_fifo_line(rx->fifo, rx->step, &rx->shape)->payload;
}

/** Its bytes, of a message that goes on after them with `more`. */
static inline size_t kl_fifo_bytes(const struct kl_fifo_rx *rx, bool *more)
{
    uint32_t said = kl_read_once(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->bytes);

    *more = said & KL_FIFO_MORE;
    return said & ~KL_FIFO_MORE;
}

/** Is the next step lent, and was not revoked yet? After kl_fifo_ready. */
static inline bool kl_fifo_is_lent(const struct kl_fifo_rx *rx)
{
    uint32_t claim = kl_load_relaxed(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->claim);

    return claim == KL_CLAIM_LENT || claim == KL_CLAIM_COPYING;
}

/** Go from one claim to another, of a step that is lent. False: it was revoked. */
static inline bool kl_fifo_claim(const struct kl_fifo_rx *rx, enum kl_fifo_claim from, enum kl_fifo_claim to)
{
    uint32_t claim = (uint32_t)from;

    return kl_cas_acq_rel(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->claim, &claim, (uint32_t)to);
}

/** The next step's data, after kl_fifo_ready; read it and kl_fifo_release it without waiting in between. NULL when the
 * sender revoked it, claims more bytes than a slot holds, or sent flagged lines. */
const void *kl_fifo_open_other(struct kl_fifo_rx *rx, struct kl_fifo_line *line, size_t *bytes);

static inline const void *kl_fifo_open(struct kl_fifo_rx *rx, size_t *bytes, bool *more)
{
    struct kl_fifo_line *line = kl_fifo_line(rx->fifo, rx->step, &rx->shape);

    *bytes = kl_fifo_bytes(rx, more);
    if (*bytes <= KL_FIFO_INLINE && kl_load_relaxed(&line->claim) == KL_CLAIM_NONE) return line->payload;
    return kl_fifo_open_other(rx, line, bytes);
}

/**
 * The data of the step that comes `later` than the next one, if it is there and has just these `bytes` of a message of this signature, in its line or its slot, with
 * `more` of the message behind it; else NULL, as if it was not opened.
 */
static inline const void *kl_fifo_open_whole(struct kl_fifo_rx *rx, uint64_t later, size_t bytes, bool more,
                                             uint64_t signature)
{
    const uint64_t step = rx->step + later;
    struct kl_fifo_line *line = kl_fifo_line(rx->fifo, step, &rx->shape);

    if (kl_load_acquire(&line->ready) != step + 1) return NULL; /* pairs with publish */
    if (line->signature != signature || kl_load_relaxed(&line->claim) != KL_CLAIM_NONE) return NULL;
    if (kl_read_once(&line->bytes) != (bytes | (more ? KL_FIFO_MORE : 0))) return NULL;
    if (bytes <= KL_FIFO_INLINE) return line->payload;
    return bytes <= rx->shape.slot_bytes ? kl_fifo_slot(rx->fifo, step, bytes, &rx->shape) : NULL;
}

/** Give the opened step's slot back to the sender. */
static inline void kl_fifo_release(struct kl_fifo_rx *rx)
{
    kl_store_release(&rx->fifo->head, ++rx->step); /* pairs with kl_fifo_can_send and kl_fifo_drained */
}

#endif
