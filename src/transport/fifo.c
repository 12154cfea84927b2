/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fifo.h"

#include "base/error.h"

#include <sched.h>

enum { FIFO_MAGIC = 0x6f6c6f6b, MOST_SLOTS = 1 << 16 };
#define MOST_SLOT_BYTES ((uint64_t)1 << 32)

size_t kl_fifo_size(uint32_t nslots, uint64_t slot_bytes)
{
    return sizeof(struct kl_fifo) + nslots * (sizeof(struct kl_fifo_line) + (size_t)slot_bytes);
}

void kl_fifo_init(struct kl_fifo *fifo, uint32_t nslots, uint64_t slot_bytes)
{
    fifo->nslots = nslots;
    fifo->slot_bytes = slot_bytes;
    fifo->magic = FIFO_MAGIC;
}

static ncclResult_t check(const struct kl_fifo *fifo, size_t size)
{
    if (size < sizeof *fifo || fifo->magic != FIFO_MAGIC)
        return KL_FAIL(ncclInternalError,
                       "the memory shared with a peer holds no fifo: do all ranks run the same library?");
    if (!fifo->nslots || fifo->nslots > MOST_SLOTS || !fifo->slot_bytes || fifo->slot_bytes % KL_LINE ||
        fifo->slot_bytes > MOST_SLOT_BYTES || kl_fifo_size(fifo->nslots, fifo->slot_bytes) > size)
        return KL_FAIL(ncclInternalError,
                       "a peer's fifo of %u slots of %llu bytes does not fit into the %zu bytes mapped", fifo->nslots,
                       (unsigned long long)fifo->slot_bytes, size);
    return ncclSuccess;
}

/* The geometry is copied once checked: the shared copy may change under us if the peer misbehaves. */
ncclResult_t kl_fifo_attach_tx(struct kl_fifo_tx *tx, struct kl_fifo *fifo, size_t size, bool shares_memory)
{
    KL_TRY(check(fifo, size));
    *tx = (struct kl_fifo_tx){
        .fifo = fifo,
        .nslots = fifo->nslots,
        .slot_bytes = fifo->slot_bytes,
        .shares_memory = shares_memory,
    };
    return ncclSuccess;
}

ncclResult_t kl_fifo_attach_rx(struct kl_fifo_rx *rx, struct kl_fifo *fifo, size_t size, bool shares_memory)
{
    KL_TRY(check(fifo, size));
    *rx = (struct kl_fifo_rx){
        .fifo = fifo,
        .nslots = fifo->nslots,
        .slot_bytes = fifo->slot_bytes,
        .shares_memory = shares_memory,
    };
    return ncclSuccess;
}

bool kl_fifo_receiver_gone(struct kl_fifo_tx *tx, bool wants_room)
{
    if (!kl_load_acquire(&tx->fifo->receiver_left)) return false; /* pairs with kl_fifo_leave_rx: head is final */
    return wants_room ? !kl_fifo_can_send(tx) : !kl_fifo_drained(tx);
}

bool kl_fifo_sender_gone(const struct kl_fifo_rx *rx)
{
    return kl_load_acquire(&rx->fifo->sender_left) && !kl_fifo_ready(rx); /* pairs with kl_fifo_leave_tx */
}

/* Until the receiver is past `step`, or has left it unclaimed. Reading one step takes microseconds and never waits. */
static void revoke_step(struct kl_fifo_tx *tx, uint64_t step)
{
    struct kl_fifo_line *line = kl_fifo_line(tx->fifo, step, tx->nslots);
    uint32_t claim = KL_CLAIM_OFFERED;

    if (kl_cas_acq_rel(&line->claim, &claim, KL_CLAIM_REVOKED) || claim != KL_CLAIM_READING) return;
    while (kl_load_acquire(&tx->fifo->head) <= step) sched_yield(); /* pairs with kl_fifo_release */
}

void kl_fifo_revoke(struct kl_fifo_tx *tx)
{
    uint64_t head = tx->fifo ? kl_load_acquire(&tx->fifo->head) : 0; /* pairs with kl_fifo_release */

    for (uint64_t step = head; step < tx->direct; step++) revoke_step(tx, step);
}

const void *kl_fifo_open_other(struct kl_fifo_rx *rx, struct kl_fifo_line *line, size_t *bytes)
{
    uint32_t claim = KL_CLAIM_OFFERED;

    if (kl_load_relaxed(&line->claim) == KL_CLAIM_NONE)
        return *bytes <= rx->slot_bytes ? kl_fifo_slot(rx->fifo, rx->step, rx->nslots, rx->slot_bytes) : NULL;
    if (!rx->shares_memory || !kl_cas_acq_rel(&line->claim, &claim, KL_CLAIM_READING)) return NULL;
    return *(const void **)(void *)line->payload;
}
