/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fifo.h - slots through which one rank hands data to another: the moving part of every transport on a host.
 *
 * The memory belongs to the receiver and may be mapped at different addresses on the two sides, so it holds offsets and
 * counters, never pointers of its own. A step counts slots since the connection was made.
 *
 * Invariant: head <= steps published <= head + nslots.
 * Ownership: steps [head, published)           the receiver, read only
 *            steps [published, head + nslots)  the sender, write only
 * Leaving:   a side that is done for good sets its flag. Steps that it published before can still be read; no further step
 *            will come, so the other side stops waiting.
 * Threads:   one thread at a time per side; each side holds its own handle and never the other's.
 * Trust:     the memory was attached over an authenticated connection, yet bytes and offsets are checked when a step is
 *            opened: a peer with other settings must not make this rank read beyond the end.
 * Source:    Lamport's single-producer ring, with the flag in the line of the data as in NCCL's LL protocol.
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
#define KL_FIFO_ZCOPY_FROM 4096

/**
 * Bytes of a step of a message over a network, at least, if the message has four times as many: its receiver may have to keep
 * each step out of lines and slots, because the data go to memory that CPUs do not reach.
 */
#define KL_FIFO_STEP_LEAST 1024

#define KL_FIFO_CELL_TIMES         4  /* factor of the number of cells for the smallest steps */
#define KL_FIFO_SLOT_PADDING_LINES 17 /* between slots */

#define KL_FIFO_TIMED (256u << 10) /* bytes between two timed reads of head */

#define KL_FIFO_MORE 0x80000000u /* in kl_fifo_line.bytes: the same message goes on in the next step */

/**
 * The place of a step's data, if it is neither its line nor its slot:
 *
 *   line            up to KL_FIFO_INLINE bytes: one line transfer carries the data and their flag.
 *   slot            protocol Simple. There may be more places than slots, used in turn, to suit the caches (kl_cache_cycle).
 *                   Small steps use a cell instead, one of `cells`; the smallest steps have more cells.
 *   flagged lines   protocols LL and LL128 (lines.h): 64-byte lines, each with its own flag, so that the receiver sees a
 *                   line while the next ones are being written. The first KL_FIFO_INLINE bytes are in the step's line.
 *   pool            of the sender, shared by many fifos (pool.h): the payload is an offset. Used only after the receiver has
 *                   mapped the pool: before, the sender might leave with data that cannot be reached.
 *   offered         both ranks share an address space: the payload is the address of the sender's own memory. The receiver
 *                   claims the step before it reads. The sender may revoke an unclaimed step, so that memory can be given back
 *                   safely when an operation is aborted.
 *   zcopy           memory of the sender that another process may map: the payload says how. The receiver claims the step,
 *                   and returns it copied, which may take long, or declines it. The sender may revoke it at any time.
 */
enum kl_fifo_claim {
    KL_CLAIM_NONE,
    KL_CLAIM_LL,       /* in the flagged lines of the step: the receiver must look for them */
    KL_CLAIM_POOL,     /* in the sender's pool */
    KL_CLAIM_PLACED,   /* where the receiver wanted them (kl_fifo_want) */
    KL_CLAIM_OFFERED,  /* in the sender's own memory, not read yet */
    KL_CLAIM_READING,  /* offered, and being read, or read */
    KL_CLAIM_ZCOPY,    /* in memory of the sender that the receiver may map, not read yet */
    KL_CLAIM_COPYING,  /* zcopy, and being copied by another process */
    KL_CLAIM_DECLINED, /* zcopy, could not be mapped, was not read */
    KL_CLAIM_REVOKED   /* must not be read any more */
};

struct kl_fifo_line {
    alignas(KL_LINE) _Atomic uint64_t ready; /* step + 1 once that step's data is here */
    uint64_t signature;                      /* of the step's operation */
    uint32_t bytes;                          /* and KL_FIFO_MORE */
    _Atomic uint32_t claim;                  /* enum kl_fifo_claim */
    unsigned char payload[KL_FIFO_INLINE]; /* the data or their beginning, their address, or their offset in the pool */
};

/**
 * Shared memory:
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
 *                                                               sender writes (claim: both)
 *
 * Memory order: ready is stored with release after the payload, loaded with acquire before it: the payload is visible.
 *               head is stored with release after reading, loaded with acquire before a slot is reused. claim changes by
 *               compare-and-swap with acquire and release. left is stored with release last, loaded with acquire before
 *               a final look at ready or head.
 */
struct kl_fifo {
    alignas(KL_LINE) _Atomic uint64_t head; /* steps consumed, written by the receiver, as the next */
    _Atomic uint32_t receiver_left;
    _Atomic uint32_t has_pool;                     /* the receiver has mapped the sender's pool */
    alignas(KL_LINE) _Atomic uint32_t sender_left; /* written by the sender */
    _Atomic uint32_t asleep;                       /* the receiver is a sleeping proxy; the side that clears it rings */
    alignas(KL_LINE) uint32_t magic;               /* constant after kl_fifo_init, as all below */
    struct kl_fifo_shape {
        uint32_t nslots;     /* power of two */
        uint32_t ll_bytes;   /* of the flagged lines of a step, multiple of KL_LINE; 0: it has none */
        uint64_t slot_bytes; /* multiple of KL_LINE */
        uint32_t cell_bytes; /* multiple of KL_LINE, less than slot_bytes; 0: there are no cells */
        uint32_t
            cells; /* for steps of cell_bytes; power of two, at least nslots; 0: none. Smaller steps have more: kl_fifo_cells_for */
        uint32_t places; /* for slots; power of two, at least nslots; 0, before kl_fifo_init: nslots */
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
    size_t zcopy_from;      /* bytes from which data are read in place; SIZE_MAX: never */
    bool zcopy_all;         /* the other end is this side's network link: a step ends only when it was sent */
    uint64_t signature;     /* of the current operation */
    struct kl_pool *pool;   /* NULL: none */
    bool pool_mapped;       /* the receiver has mapped the pool: final, so its line is not read again */
    size_t sent;            /* bytes since the last timed read of head */
    struct kl_copy_out out; /* state of copies into steps */
};

/** The receiver's private view. */
struct kl_fifo_rx {
    struct kl_fifo *fifo;
    uint64_t step; /* next to consume */
    struct kl_fifo_shape shape;
    uint32_t ll_lines_seen; /* flagged lines of this step that had arrived at the last poll */
    bool shares_memory;     /* addresses are accepted */
    bool places;            /* the sending side, a transport of this process, can write to `want` */
    void *want;             /* destination of step want_step and the rest of its message; NULL: none */
    size_t want_bytes;
    uint64_t want_step;
    const unsigned char *pool; /* the sender's pool, pool_bytes long; NULL: none */
    size_t pool_bytes;
};

/** Bytes of memory for a fifo. */
size_t kl_fifo_size(const struct kl_fifo_shape *shape);

/** Are a peer's numbers of cells and places valid? */
bool kl_fifo_places_are_valid(const struct kl_fifo_shape *shape);

/** Prepare zeroed memory aligned to KL_LINE, of kl_fifo_size bytes. Before any attach. */
void kl_fifo_init(struct kl_fifo *fifo, const struct kl_fifo_shape *shape);

/** The two views. `size`: bytes that are mapped; a larger fifo is ncclInternalError. */
ncclResult_t kl_fifo_attach_tx(struct kl_fifo_tx *tx, struct kl_fifo *fifo, size_t size, bool shares_memory);
ncclResult_t kl_fifo_attach_rx(struct kl_fifo_rx *rx, struct kl_fifo *fifo, size_t size, bool shares_memory);

/* ---- addresses ---- */

static inline struct kl_fifo_line *kl_fifo_line(struct kl_fifo *fifo, uint64_t step, const struct kl_fifo_shape *shape)
{
    return &fifo->lines[step & (shape->nslots - 1)];
}

/** The flagged lines of a step: ll_bytes. */
static inline void *kl_fifo_ll_lines(struct kl_fifo *fifo, uint64_t step, const struct kl_fifo_shape *shape)
{
    return (unsigned char *)&fifo->lines[shape->nslots] + (step & (shape->nslots - 1)) * shape->ll_bytes;
}

/** Distance of slots. Sizes are powers of two: without an odd number of lines between, all slots would share cache sets. */
static inline size_t kl_fifo_stride(const struct kl_fifo_shape *shape)
{
    return shape->slot_bytes + (size_t)KL_FIFO_SLOT_PADDING_LINES * KL_LINE;
}

/** The number of all cells. */
static inline uint32_t kl_fifo_ncells(const struct kl_fifo_shape *shape)
{
    return shape->cells * KL_FIFO_CELL_TIMES;
}

/**
 * The number of cells for steps of `bytes`, at most cell_bytes. Always a multiple of nslots, so that pending steps never share
 * one.
 */
static inline uint32_t kl_fifo_cells_for(size_t bytes, const struct kl_fifo_shape *shape)
{
    uint32_t times = 1;

    while (times < KL_FIFO_CELL_TIMES && 2 * times * bytes <= shape->cell_bytes) times *= 2;
    return times * shape->cells;
}

enum { KL_FIFO_STEPS_PER_PLACE = 16 }; /* steps before another place is used */

/** Distance of cells. */
static inline size_t kl_fifo_cell_stride(const struct kl_fifo_shape *shape)
{
    return shape->cell_bytes + (size_t)KL_LINE;
}

static inline unsigned char *kl_fifo_slots(struct kl_fifo *fifo, const struct kl_fifo_shape *shape)
{
    return (unsigned char *)&fifo->lines[shape->nslots] + (size_t)shape->nslots * shape->ll_bytes;
}

/**
 * The index of a step's place below `most` (power of two, at least nslots). The first steps use nslots places in turn, later
 * ones more, so that first touches of memory stay a small part of the time. Both ends derive it from the step. Pending steps
 * never share a place.
 */
static inline uint32_t kl_fifo_place(uint64_t step, uint32_t most, const struct kl_fifo_shape *shape)
{
    const uint64_t grown = step / KL_FIFO_STEPS_PER_PLACE;
    uint32_t places = shape->nslots;

    if (grown >= most) return (uint32_t)step & (most - 1);
    while (2 * (uint64_t)places <= grown) places *= 2;
    return (uint32_t)step & (places - 1);
}

/** The slot, or the cell, of a step of `bytes`. */
static inline void *kl_fifo_slot(struct kl_fifo *fifo, uint64_t step, size_t bytes, const struct kl_fifo_shape *shape)
{
    unsigned char *slots = kl_fifo_slots(fifo, shape);

    if (bytes > shape->cell_bytes) return slots + kl_fifo_place(step, shape->places, shape) * kl_fifo_stride(shape);
    return slots + shape->places * kl_fifo_stride(shape) +
           kl_fifo_place(step, kl_fifo_cells_for(bytes, shape), shape) * kl_fifo_cell_stride(shape);
}

/* ---- sender ---- */

/** Read head, and time the transfer from the receiver's core. Rarely called: it is on the path of operations. */
__attribute__((noinline)) void kl_fifo_read_head_timed(struct kl_fifo_tx *tx);

static inline void kl_fifo_read_head(struct kl_fifo_tx *tx)
{
    if (tx->sent >= KL_FIFO_TIMED)
        kl_fifo_read_head_timed(tx);
    else
        tx->head_seen = kl_load_acquire(&tx->fifo->head); /* pairs with kl_fifo_release */
}

/** Are fewer than `most` steps waiting for the receiver? */
static inline bool kl_fifo_waiting_below(struct kl_fifo_tx *tx, uint32_t most)
{
    if (tx->step - tx->head_seen < most && tx->sent < KL_FIFO_TIMED) return true;
    kl_fifo_read_head(tx);
    return tx->step - tx->head_seen < most;
}

/** Has the receiver finished with this step? */
static inline bool kl_fifo_has_passed(struct kl_fifo_tx *tx, uint64_t step)
{
    if (tx->head_seen > step) return true;
    kl_fifo_read_head(tx);
    return tx->head_seen > step;
}

/** Is there room for one more step? */
static inline bool kl_fifo_can_send(struct kl_fifo_tx *tx)
{
    return kl_fifo_waiting_below(tx, tx->shape.nslots);
}

/** The address for the next step's `bytes` (at most slot_bytes). Only after kl_fifo_can_send. */
static inline void *kl_fifo_reserve(struct kl_fifo_tx *tx, size_t bytes)
{
    if (bytes <= KL_FIFO_INLINE) return kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload;
    return kl_fifo_slot(tx->fifo, tx->step, bytes, &tx->shape);
}

/** Hand over the next step; `claim`: the place of its payload. */
static inline void kl_fifo_publish_as(struct kl_fifo_tx *tx, enum kl_fifo_claim claim, size_t bytes, bool more)
{
    struct kl_fifo_line *line = kl_fifo_line(tx->fifo, tx->step, &tx->shape);

    tx->sent += bytes;
    line->bytes = (uint32_t)bytes | (more ? KL_FIFO_MORE : 0);
    line->signature = tx->signature;
    kl_store_relaxed(&line->claim, (uint32_t)claim);
    kl_store_release(&line->ready, ++tx->step); /* pairs with kl_fifo_ready */
}

/** Hand over the step that was written at kl_fifo_reserve's address, with the same `bytes`; `more` of the message follows. */
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

/** Hand over the address of `bytes` of own memory, which must not change until kl_fifo_drained. */
static inline void kl_fifo_publish_direct(struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more)
{
    *(const void **)(void *)kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload = data;
    kl_fifo_publish_as(tx, KL_CLAIM_OFFERED, bytes, more);
    tx->direct = tx->step;
}

/** The payload of the next step, to describe the place of its data. Only after kl_fifo_can_send. */
static inline void *kl_fifo_next_payload(struct kl_fifo_tx *tx)
{
    return kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload;
}

/** Hand over `bytes` of own memory that the payload describes; they must not change until kl_fifo_drained. */
static inline void kl_fifo_publish_zcopy(struct kl_fifo_tx *tx, size_t bytes, bool more)
{
    kl_fifo_publish_as(tx, KL_CLAIM_ZCOPY, bytes, more);
    tx->direct = tx->step;
}

/** The last step was zcopy, and kl_fifo_drained: was it declined? */
static inline bool kl_fifo_declined(const struct kl_fifo_tx *tx)
{
    return kl_load_relaxed(&kl_fifo_line(tx->fifo, tx->step - 1, &tx->shape)->claim) == KL_CLAIM_DECLINED;
}

/** Hand over `bytes` that are at the receiver's wanted address, `data`. */
static inline void kl_fifo_publish_placed(struct kl_fifo_tx *tx, void *data, size_t bytes, bool more)
{
    *(void **)(void *)kl_fifo_line(tx->fifo, tx->step, &tx->shape)->payload = data;
    kl_fifo_publish_as(tx, KL_CLAIM_PLACED, bytes, more);
}

/** Has the receiver finished with all addresses that it received? */
static inline bool kl_fifo_drained(struct kl_fifo_tx *tx)
{
    uint64_t last = tx->zcopy_all ? tx->step : tx->direct;

    if (tx->head_seen >= last) return true;
    kl_fifo_read_head(tx);
    return tx->head_seen >= last;
}

/** Has the receiver left with at least `most` steps pending, so that no more are sent? 0: without reading zero-copy steps. */
bool kl_fifo_receiver_gone(struct kl_fifo_tx *tx, uint32_t most);

/** No more steps will be sent. */
static inline void kl_fifo_leave_tx(struct kl_fifo_tx *tx)
{
    kl_store_release(&tx->fifo->sender_left, 1); /* pairs with kl_fifo_sender_gone */
}

/** Revoke the addresses that the receiver has not begun to read, and wait (microseconds) while it reads one. */
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

/** The message that begins with the next step may be written to `to` directly, up to `bytes`. Only if `places`. */
static inline void kl_fifo_want(struct kl_fifo_rx *rx, void *to, size_t bytes)
{
    rx->want = to;
    rx->want_bytes = bytes;
    rx->want_step = rx->step;
}

/** No more steps will be received. */
static inline void kl_fifo_leave_rx(struct kl_fifo_rx *rx)
{
    kl_store_release(&rx->fifo->receiver_left, 1); /* pairs with kl_fifo_receiver_gone */
}

/** The signature of the next step's operation, after kl_fifo_ready. Readers of its data must compare it first. */
static inline uint64_t kl_fifo_signature(const struct kl_fifo_rx *rx)
{
    return kl_fifo_line(rx->fifo, rx->step, &rx->shape)->signature;
}

/**
 * Did the sender revoke the next step, after kl_fifo_ready? Then it has failed, and the reason arrives by other ways: the
 * receiver goes on waiting, as if the step was not there.
 */
static inline bool kl_fifo_revoked(const struct kl_fifo_rx *rx)
{
    return kl_load_relaxed(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->claim) == KL_CLAIM_REVOKED;
}

/** The next step's payload, which describes the place of its data, after kl_fifo_ready. */
static inline const void *kl_fifo_payload(const struct kl_fifo_rx *rx)
{
    return kl_fifo_line(rx->fifo, rx->step, &rx->shape)->payload;
}

/** The next step's bytes; `more`: the message continues in the step after it. */
static inline size_t kl_fifo_bytes(const struct kl_fifo_rx *rx, bool *more)
{
    uint32_t said = kl_read_once(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->bytes);

    *more = said & KL_FIFO_MORE;
    return said & ~KL_FIFO_MORE;
}

/** Is the next step zcopy, and was not revoked yet? After kl_fifo_ready. */
static inline bool kl_fifo_is_zcopy(const struct kl_fifo_rx *rx)
{
    uint32_t claim = kl_load_relaxed(&kl_fifo_line(rx->fifo, rx->step, &rx->shape)->claim);

    return claim == KL_CLAIM_ZCOPY || claim == KL_CLAIM_COPYING;
}

/** Change the claim of a zcopy step. False: it was revoked. */
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
 * The data of the step `later` steps after the next one, if it was published with exactly these `bytes`, `more` and signature,
 * in its line or its slot; else NULL, without any effect.
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
