/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fifo.h"

#include "base/error.h"
#include "os/yield.h"

enum { FIFO_MAGIC = 0x6f6c6f6b, MOST_SLOTS = 1 << 16, MOST_LL_BYTES = 1 << 20 };
#define MOST_SLOT_BYTES ((uint64_t)1 << 30)

static uint32_t places_of(const struct kl_fifo_shape *s)
{
    return s->places ? s->places : s->nslots;
}

size_t kl_fifo_size(const struct kl_fifo_shape *s)
{
    return sizeof(struct kl_fifo) + s->nslots * (sizeof(struct kl_fifo_line) + s->ll_bytes) +
           places_of(s) * kl_fifo_stride(s) + kl_fifo_ncells(s) * kl_fifo_cell_stride(s);
}

void kl_fifo_init(struct kl_fifo *fifo, const struct kl_fifo_shape *shape)
{
    fifo->shape = *shape;
    fifo->shape.places = places_of(shape);
    fifo->magic = FIFO_MAGIC;
}

/* The number of places to use in turn, for nslots pending steps. */
static bool is_a_cycle(const struct kl_fifo_shape *s, uint32_t n)
{
    return n >= s->nslots && !(n & (n - 1)) && n <= MOST_SLOTS;
}

bool kl_fifo_places_are_sound(const struct kl_fifo_shape *s)
{
    if (!is_a_cycle(s, places_of(s))) return false;
    if (!s->cell_bytes) return !s->cells;
    return s->cell_bytes % KL_LINE == 0 && s->cell_bytes < s->slot_bytes && is_a_cycle(s, s->cells);
}

static bool is_sound(const struct kl_fifo_shape *s, size_t size)
{
    return s->nslots && !(s->nslots & (s->nslots - 1)) && s->nslots <= MOST_SLOTS && s->slot_bytes &&
           s->slot_bytes % KL_LINE == 0 && s->slot_bytes <= MOST_SLOT_BYTES && s->ll_bytes % KL_LINE == 0 &&
           s->ll_bytes <= MOST_LL_BYTES && s->places && kl_fifo_places_are_sound(s) && kl_fifo_size(s) <= size;
}

/* The shape is read once and then checked: the shared copy may change under us if the peer misbehaves. */
static ncclResult_t read_shape(const struct kl_fifo *fifo, size_t size, struct kl_fifo_shape *shape)
{
    if (size < sizeof *fifo || fifo->magic != FIFO_MAGIC)
        return KL_FAIL(ncclInternalError,
                       "the memory shared with a peer holds no fifo: do all ranks run the same library?");
    *shape = (struct kl_fifo_shape){.nslots = kl_read_once(&fifo->shape.nslots),
                                    .ll_bytes = kl_read_once(&fifo->shape.ll_bytes),
                                    .slot_bytes = kl_read_once(&fifo->shape.slot_bytes),
                                    .cell_bytes = kl_read_once(&fifo->shape.cell_bytes),
                                    .cells = kl_read_once(&fifo->shape.cells),
                                    .places = kl_read_once(&fifo->shape.places)};
    if (!is_sound(shape, size))
        return KL_FAIL(ncclInternalError,
                       "a peer's fifo of %u slots of %llu bytes does not fit into the %zu bytes mapped", shape->nslots,
                       (unsigned long long)shape->slot_bytes, size);
    return ncclSuccess;
}

ncclResult_t kl_fifo_attach_tx(struct kl_fifo_tx *tx, struct kl_fifo *fifo, size_t size, bool shares_memory)
{
    struct kl_fifo_shape shape;

    KL_TRY(read_shape(fifo, size, &shape));
    *tx =
        (struct kl_fifo_tx){.fifo = fifo, .shape = shape, .lends_from = shares_memory ? KL_FIFO_LENDS_FROM : SIZE_MAX};
    return ncclSuccess;
}

ncclResult_t kl_fifo_attach_rx(struct kl_fifo_rx *rx, struct kl_fifo *fifo, size_t size, bool shares_memory)
{
    struct kl_fifo_shape shape;

    KL_TRY(read_shape(fifo, size, &shape));
    *rx = (struct kl_fifo_rx){.fifo = fifo, .shape = shape, .shares_memory = shares_memory};
    return ncclSuccess;
}

/* One that has changed comes from the receiver's cache. */
void kl_fifo_look_timed(struct kl_fifo_tx *tx)
{
    const uint64_t began = kl_copy_out_time(), head = kl_load_acquire(&tx->fifo->head); /* pairs with kl_fifo_release */

    if (head == tx->head_seen) return;
    kl_copy_out_timed(&tx->out, began);
    tx->head_seen = head;
    tx->sent = 0;
}

bool kl_fifo_receiver_gone(struct kl_fifo_tx *tx, uint32_t most)
{
    if (!kl_load_acquire(&tx->fifo->receiver_left)) return false; /* pairs with kl_fifo_leave_rx: head is final */
    return most ? !kl_fifo_waiting_below(tx, most) : !kl_fifo_drained(tx);
}

bool kl_fifo_sender_gone(const struct kl_fifo_rx *rx)
{
    return kl_load_acquire(&rx->fifo->sender_left) && !kl_fifo_ready(rx); /* pairs with kl_fifo_leave_tx */
}

/* Wait until the receiver is past `step`, or has left it unclaimed: reading a step takes microseconds and never blocks. A copy
 * by another process is not waited for: the memory stays mapped there, and the copier finds the step revoked. */
static void revoke_step(struct kl_fifo_tx *tx, uint64_t step)
{
    struct kl_fifo_line *line = kl_fifo_line(tx->fifo, step, &tx->shape);
    uint32_t claim = kl_load_relaxed(&line->claim);

    while (claim == KL_CLAIM_OFFERED || claim == KL_CLAIM_LENT || claim == KL_CLAIM_COPYING)
        if (kl_cas_acq_rel(&line->claim, &claim, KL_CLAIM_REVOKED)) return;
    if (claim != KL_CLAIM_READING) return;
    while (kl_load_acquire(&tx->fifo->head) <= step) kl_yield(); /* pairs with kl_fifo_release */
}

void kl_fifo_revoke(struct kl_fifo_tx *tx)
{
    uint64_t head = kl_load_acquire(&tx->fifo->head); /* pairs with kl_fifo_release */

    for (uint64_t step = head; step < tx->direct; step++) revoke_step(tx, step);
}

static const void *open_pooled(const struct kl_fifo_rx *rx, const struct kl_fifo_line *line, size_t bytes)
{
    uint64_t offset = kl_read_once((const uint64_t *)(const void *)line->payload);

    return offset <= rx->pool_bytes && bytes <= rx->pool_bytes - offset ? rx->pool + offset : NULL;
}

const void *kl_fifo_open_other(struct kl_fifo_rx *rx, struct kl_fifo_line *line, size_t *bytes)
{
    uint32_t claim = kl_load_relaxed(&line->claim);

    if (claim == KL_CLAIM_NONE)
        return *bytes <= rx->shape.slot_bytes ? kl_fifo_slot(rx->fifo, rx->step, *bytes, &rx->shape) : NULL;
    if (claim == KL_CLAIM_POOL) return open_pooled(rx, line, *bytes);
    if (claim == KL_CLAIM_PLACED) return rx->places ? *(const void **)(void *)line->payload : NULL;
    if (claim == KL_CLAIM_LINES) return NULL; /* the ranks chose different protocols */
    if (claim >= KL_CLAIM_LENT) return NULL;  /* kl_fifo_is_lent */
    claim = KL_CLAIM_OFFERED;
    if (!rx->shares_memory || !kl_cas_acq_rel(&line->claim, &claim, KL_CLAIM_READING)) return NULL;
    return *(const void **)(void *)line->payload;
}
