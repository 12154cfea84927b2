/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/ring_op.h"

#include "base/error.h"

#include <string.h>

enum { LEND_FROM = 4096 }; /* bytes: below, copying is cheaper than waiting for the reader */

/* ---- loops ---- */

/* How many chunks of a loop lie behind one another in the buffers. */
static size_t chunks_per_loop(const struct kl_ring_op *op)
{
    return op->task.schedule->send == KL_LAYOUT_CHUNKS ? (size_t)op->ring->nranks : 1;
}

static void begin_loop(struct kl_ring_op *op)
{
    size_t chunks = chunks_per_loop(op), share = (op->task.end - op->first + chunks - 1) / chunks;

    op->chunk = share < op->most ? share : op->most;
    op->hop = 0;
}

void kl_ring_op_start(struct kl_ring_op *op, struct kl_ring *ring, const struct kl_ring_task *task)
{
    *op = (struct kl_ring_op){
        .ring = ring,
        .task = *task,
        .first = task->first,
        .most = ring->to_next.tx.slot_bytes / task->elem_bytes,
        .at = {.nranks = ring->nranks,
               .rank = ring->order[0],
               .index = ring->index,
               .root = task->root,
               .order = ring->order},
    };
    op->hops = task->schedule->hops(&op->at, 0);
    begin_loop(op);
}

/* ---- one hop ---- */

/** A hop with its addresses. */
struct move {
    bool recv, send;
    uint32_t actions;
    const char *own;
    char *result;
    size_t count, bytes;
};

static size_t offset_of(const struct kl_ring_op *op, enum kl_layout layout, int place)
{
    const struct kl_ring *ring = op->ring;

    if (layout == KL_LAYOUT_CHUNKS) return op->first + (size_t)place * op->chunk;
    if (layout == KL_LAYOUT_WHOLE) return op->first;
    return (size_t)ring->order[kl_wrap(place - ring->index, ring->nranks)] * op->task.count + op->first;
}

static size_t count_of(const struct kl_ring_op *op, enum kl_layout layout, int place)
{
    size_t offset = layout == KL_LAYOUT_CHUNKS ? offset_of(op, layout, place) : op->first;
    size_t left = op->task.end > offset ? op->task.end - offset : 0;

    return left < op->chunk ? left : op->chunk;
}

static struct move next_move(const struct kl_ring_op *op)
{
    const struct kl_ring_task *t = &op->task;
    struct kl_hop hop = t->schedule->hop(&op->at, 0, op->hop);
    size_t count = count_of(op, t->schedule->send, hop.own);

    return (struct move){
        .recv = hop.recv,
        .send = hop.send,
        .actions = hop.actions,
        .own = (const char *)t->send + offset_of(op, t->schedule->send, hop.own) * t->elem_bytes,
        .result = (char *)t->recv + offset_of(op, t->schedule->recv, hop.result) * t->elem_bytes,
        .count = count,
        .bytes = count * t->elem_bytes,
    };
}

/* Write the hop's value to `to`; `in` is what the predecessor sent. */
static void produce(const struct kl_redop *redop, const struct move *m, char *to, const void *in)
{
    if (m->actions & KL_HOP_REDUCE) {
        redop->combine(redop, to, in, m->own, m->count);
        if (m->actions & KL_HOP_FINISH && redop->last) redop->last(redop, to, m->count);
    } else if (m->recv) {
        memcpy(to, in, m->bytes);
    } else if (m->actions & KL_HOP_FIRST && redop->first) {
        redop->first(redop, to, m->own, m->count);
    } else if (to != m->own) {
        memcpy(to, m->own, m->bytes);
    }
}

/* The value lies in the user's memory and stays there until the successor has read it. */
static bool may_lend(const struct kl_ring_op *op, const struct move *m)
{
    bool whole = m->actions & KL_HOP_KEEP || (!m->recv && !(op->task.redop && op->task.redop->first));

    return whole && op->ring->to_next.tx.shares_memory && m->bytes >= LEND_FROM;
}

static void carry_out(struct kl_ring_op *op, const struct move *m, const void *in)
{
    struct kl_fifo_tx *tx = &op->ring->to_next.tx;
    bool keep = m->actions & KL_HOP_KEEP, send = m->send, lend = send && may_lend(op, m);

    if (keep) produce(op->task.redop, m, m->result, in);
    if (lend) {
        kl_fifo_publish_direct(tx, keep ? m->result : m->own, m->bytes, false);
    } else if (send) {
        char *slot = kl_fifo_reserve(tx, m->bytes);
        if (keep)
            memcpy(slot, m->result, m->bytes);
        else
            produce(op->task.redop, m, slot, in);
        kl_fifo_publish(tx, m->bytes, false);
    }
}

static ncclResult_t refuse(const struct kl_ring_op *op, const struct move *m, const void *in, size_t bytes)
{
    int prev = kl_ring_prev(op->ring);

    if (!in && bytes == m->bytes)
        return KL_FAIL(ncclRemoteError, "rank %d gave up in %s", prev, op->task.schedule->name);
    return KL_FAIL(
        ncclInvalidUsage,
        "%s: rank %d sent %zu bytes where rank %d expected %zu: the ranks call with different counts, types or "
        "operations",
        op->task.schedule->name, prev, bytes, op->ring->order[0], m->bytes);
}

/* Do the hop if its data and room are there. Neither is touched before both are. */
static bool try_move(struct kl_ring_op *op, const struct move *m, ncclResult_t *rc)
{
    struct kl_fifo_rx *rx = &op->ring->from_prev.rx;
    const void *in = NULL;

    if (m->recv && !kl_fifo_ready(rx)) return false;
    if (m->send && !kl_fifo_can_send(&op->ring->to_next.tx)) return false;
    if (m->recv) {
        size_t bytes;
        bool more;
        in = kl_fifo_open(rx, &bytes, &more);
        if (!in || bytes != m->bytes) {
            *rc = refuse(op, m, in, bytes);
            if (in) kl_fifo_release(rx); /* a lender waits for its end */
            return false;
        }
    }
    carry_out(op, m, in);
    if (in) kl_fifo_release(rx);
    return true;
}

enum kl_progress kl_ring_op_progress(struct kl_ring_op *op, ncclResult_t *rc)
{
    enum kl_progress step = KL_STALLED;

    while (op->first < op->task.end) {
        for (; op->hop < op->hops; op->hop++) {
            struct move m = next_move(op);
            if (!m.count) continue; /* the end of the last loop: the neighbours skip it too */
            if (!try_move(op, &m, rc)) return *rc ? KL_DONE : step;
            step = KL_MOVED;
        }
        op->first += op->chunk * chunks_per_loop(op);
        if (op->first < op->task.end) begin_loop(op);
    }
    return kl_fifo_drained(&op->ring->to_next.tx) ? KL_DONE : step;
}

int kl_ring_op_waits_in_vain(struct kl_ring_op *op)
{
    struct kl_ring *ring = op->ring;
    struct move m = op->first < op->task.end ? next_move(op) : (struct move){0};

    if (m.recv && kl_fifo_sender_gone(&ring->from_prev.rx)) return kl_ring_prev(ring);
    if (kl_fifo_receiver_gone(&ring->to_next.tx, m.send)) return kl_ring_next(ring);
    return -1;
}
