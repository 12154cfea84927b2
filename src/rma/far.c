/* SPDX-License-Identifier: Apache-2.0 */
/**
 * far.c - puts through the plugin for one-sided operations (net/rma.h). Data that lie in a window of this rank go from where they are; others
 * through staging pieces, which are registered once.
 */
#include "base/error.h"
#include "rma/state.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = KL_RMA_FAR_PIECES, PIECE_BYTES = KL_RMA_PIECE_BYTES / 4, NO_PIECE = -1 };
static const size_t most_at_once = (size_t)1 << 30; /* of a registered source, in one request */

/* ---- together ---- */

void kl_rma_far_offer(struct kl_rma *r, int device, struct kl_net_rma_offer *offer)
{
    r->far.end = kl_net_rma_offer(device, r->config.rank, offer);
}

static ncclResult_t enroll_own(struct kl_rma *r, struct kl_net_rma_wait wait)
{
    struct kl_rma_far *f = &r->far;
    const size_t table = (size_t)r->counters * (size_t)r->config.nranks * sizeof *r->signals;

    f->staging = aligned_alloc(4096, (size_t)PIECES * PIECE_BYTES);
    if (!f->staging) return KL_NOMEM("one-sided operations");
    KL_TRY(kl_net_rma_enroll(f->end, (void *)r->signals, table, true, wait, &f->signals_mr));
    return kl_net_rma_enroll(f->end, f->staging, (size_t)PIECES * PIECE_BYTES, false, wait, &f->staging_mr);
}

ncclResult_t kl_rma_far_connect(struct kl_rma *r, const struct kl_net_rma_offer *offers, struct kl_net_rma_wait wait)
{
    KL_TRY(kl_net_rma_connect(r->far.end, offers, r->config.nranks, wait));
    return enroll_own(r, wait);
}

void kl_rma_far_leave(struct kl_rma *r)
{
    struct kl_net_rma *end = r->far.end;

    r->far.end = NULL;
    kl_store_release(&r->far.used, false);
    kl_net_rma_close(end);
}

void kl_rma_far_use(struct kl_rma *r)
{
    kl_store_release(&r->far.used, true); /* pairs with kl_rma_far_is_used */
}

ncclResult_t kl_rma_far_enroll(struct kl_rma *r, struct kl_rma_window *w, struct kl_net_rma_wait wait)
{
    if (!kl_rma_far_is_used(r)) return ncclSuccess;
    KL_TRY(kl_net_rma_enroll(r->far.end, w->own, w->bytes, false, wait, &w->mr));
    w->enrolled = r->far.end;
    return ncclSuccess;
}

void kl_rma_far_free(struct kl_rma *r)
{
    kl_net_rma_close(r->far.end);
    free(r->far.staging);
}

/* ---- a put ---- */

/* The program's buffer, if it lies in a window. It stays until the operation is given back. */
void kl_rma_op_set_source(struct kl_rma *r, struct kl_rma_op *op)
{
    const uintptr_t at = (uintptr_t)op->data;
    struct kl_rma_window *w = kl_rma_far_is_used(r) && op->bytes ? kl_load_relaxed(&r->window) : NULL;

    for (; w; w = w->next) {
        const uintptr_t own = (uintptr_t)w->own;
        if (!own || !w->enrolled || at < own || at - own > w->bytes || op->bytes > w->bytes - (at - own)) continue;
        kl_fetch_add_relaxed(&w->users, 1);
        op->source = w;
        return;
    }
}

static int take_piece(struct kl_rma_far *f)
{
    for (int i = 0; i < PIECES; i++)
        if (!kl_swap_acquire(&f->taken[i], true)) return i;
    return NO_PIECE;
}

static void give_piece(struct kl_rma_far *f, int piece)
{
    if (piece != NO_PIECE) kl_store_release(&f->taken[piece], false); /* pairs with take_piece */
}

static struct kl_net_rma_put next_put(struct kl_rma *r, const struct kl_rma_op *op, size_t n, int piece)
{
    const bool last = op->done + n == op->bytes;
    struct kl_net_rma_put p = {.peer = op->peer, .bytes = n, .from_mr = r->far.staging_mr, .to_mr = r->far.staging_mr};

    if (op->source) {
        p.from_mr = op->source->mr;
        p.from = (uint64_t)(op->data - op->source->own) + op->done;
    } else if (n) {
        p.from = (uint64_t)piece * PIECE_BYTES;
    }
    if (n) {
        p.to_mr = op->window->mr;
        p.to = op->offset + op->done;
    }
    if (last) {
        p.counter_mr = r->far.signals_mr;
        p.counter =
            ((uint64_t)op->counter * (uint64_t)r->config.nranks + (uint64_t)r->config.rank) * sizeof *r->signals;
    }
    return p;
}

/* The last part, with its signal, waits until the parts before it are done: they are not in order otherwise. */
static ncclResult_t post(struct kl_rma *r, struct kl_rma_op *op, int slot, bool *moved)
{
    const size_t left = op->bytes - op->done, most = op->source ? most_at_once : PIECE_BYTES,
                 n = left < most ? left : most;
    int piece = NO_PIECE;

    if (op->signalled || (n == left && op->request[1 - slot])) return ncclSuccess;
    if (!op->source && n) {
        piece = take_piece(&r->far);
        if (piece == NO_PIECE) return ncclSuccess;
        memcpy(r->far.staging + (size_t)piece * PIECE_BYTES, op->data + op->done, n);
    }
    const struct kl_net_rma_put p = next_put(r, op, n, piece);
    const ncclResult_t rc = kl_net_rma_put(r->far.end, &p, &op->request[slot]);
    if (rc || !op->request[slot]) {
        give_piece(&r->far, piece);
        return rc;
    }
    op->piece[slot] = piece;
    op->done += n;
    op->signalled = n == left;
    *moved = true;
    return ncclSuccess;
}

static ncclResult_t test_and_post(struct kl_rma *r, struct kl_rma_op *op, bool *moved)
{
    for (int i = 0; i < 2; i++) {
        bool done = false;
        if (op->request[i]) KL_TRY(kl_net_rma_test(r->far.end, op->request[i], op->peer, &done));
        if (done) {
            give_piece(&r->far, op->piece[i]);
            op->request[i] = NULL;
            *moved = true;
        }
        if (!op->request[i]) KL_TRY(post(r, op, i, moved));
    }
    return ncclSuccess;
}

enum kl_progress kl_rma_far_send(struct kl_rma *r, struct kl_rma_op *op, ncclResult_t *rc)
{
    struct kl_rma_out *out = &r->out[op->peer];
    bool moved = false;

    if (out->sender && out->sender != op) return KL_STALLED;
    out->sender = op;
    *rc = kl_net_rma_progress(r->far.end);
    if (!*rc) *rc = test_and_post(r, op, &moved);
    if (*rc) return KL_DONE;
    if (!op->signalled || op->request[0] || op->request[1]) return moved ? KL_MOVED : KL_STALLED;
    out->sender = NULL;
    return KL_DONE;
}

/* ---- the proxy's part ---- */

ncclResult_t kl_rma_far_progress(struct kl_rma *r)
{
    return kl_rma_far_is_used(r) ? kl_net_rma_progress(r->far.end) : ncclSuccess;
}
