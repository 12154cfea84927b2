/* SPDX-License-Identifier: Apache-2.0 */
/** rma.c - life, windows, operations. */
#include "rma/rma.h"

#include "base/clock.h"
#include "base/error.h"
#include "rma/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static size_t table_bytes(const struct kl_rma *r)
{
    return (size_t)r->counters * (size_t)r->config.nranks * sizeof *r->signals;
}

static ncclResult_t make_tables(struct kl_rma *r)
{
    const struct kl_device_kind *d = r->config.devices;
    size_t n = (size_t)r->config.nranks;
    void *signals;

    r->out = calloc(n, sizeof *r->out);
    r->expected = calloc(1, table_bytes(r));
    if (!r->out || !r->expected) return KL_NOMEM("one-sided operations");
    KL_TRY(d->alloc(r->config.device, KL_MEMORY_SHAREABLE, table_bytes(r), &signals));
    memset(signals, 0, table_bytes(r));
    r->signals = signals;
    return d->export_range(signals, table_bytes(r), &r->ticket);
}

ncclResult_t kl_rma_create(const struct kl_rma_config *config, struct kl_rma **rma)
{
    struct kl_rma *r = calloc(1, sizeof *r);

    if (!r) return KL_NOMEM("one-sided operations");
    r->config = *config;
    r->counters = (uint32_t)(config->contexts * KL_RMA_SIGNALS);
    ncclResult_t rc = make_tables(r);
    if (rc) {
        kl_rma_free(r);
        return rc;
    }
    *rma = r;
    return ncclSuccess;
}

static void free_window(struct kl_rma_window *w)
{
    for (int i = 0; w->far && i < w->nranks; i++) w->devices->unimport(w->far[i].import);
    if (w->exported) (void)w->devices->unexport(&w->ticket);
    free(w->far);
    free(w);
}

static void free_net(struct kl_rma *r)
{
    if (r->proxy) kl_proxy_remove(r->proxy, &r->duty);
    for (int i = 0; r->net && i < r->config.nranks; i++) {
        r->net->close_send(r->out[i].connection);
        if (r->in) r->net->close_recv(r->in[i].connection);
    }
    if (r->listener) r->net->close_listen(r->listener);
    kl_proxy_drop(r->proxy);
    free(r->in);
}

void kl_rma_free(struct kl_rma *r)
{
    if (!r) return;
    const struct kl_device_kind *d = r->config.devices;
    struct kl_rma_window *next;

    free_net(r);
    for (struct kl_rma_window *w = kl_load_relaxed(&r->window); w; w = next) {
        next = w->next;
        free_window(w);
    }
    for (int i = 0; r->out && i < r->config.nranks; i++) d->unimport(r->out[i].import);
    if (r->signals) {
        (void)d->unexport(&r->ticket);
        (void)d->free((void *)r->signals);
    }
    free(r->out);
    free(r->expected);
    kl_key_wipe(&r->config.secret);
    free(r);
}

void kl_rma_describe(const struct kl_rma *r, struct kl_rma_card *card)
{
    *card = (struct kl_rma_card){.signals = (uintptr_t)r->signals, .ticket = r->ticket};
}

void kl_rma_meet(struct kl_rma *r, int peer, enum kl_rma_reach reach, const struct kl_rma_card *card)
{
    struct kl_rma_out *out = &r->out[peer];

    out->reach = reach;
    out->card = *card;
    if (reach == KL_RMA_PROCESS) out->signals = (_Atomic uint64_t *)(uintptr_t)card->signals;
}

ncclResult_t kl_rma_listen(struct kl_rma *r, const struct kl_net *net, int device, struct kl_net_handle *handle)
{
    const struct kl_net_end me = {.secret = r->config.secret, .rank = r->config.rank, .peer = -1};

    r->net = net;
    r->device = device;
    r->in = calloc((size_t)r->config.nranks, sizeof *r->in);
    if (!r->in) return KL_NOMEM("one-sided operations");
    KL_TRY(net->listen(device, &me, handle, &r->listener));
    for (int i = 0; i < r->config.nranks; i++) {
        r->in[i].comes = r->out[i].reach != KL_RMA_PROCESS;
        r->unconnected += r->in[i].comes;
    }
    KL_TRY(kl_proxy_hold(&r->proxy));
    r->duty = (struct kl_duty){.progress = kl_rma_receive, .rest = kl_rma_rest};
    kl_proxy_add(r->proxy, &r->duty);
    kl_proxy_wake(r->proxy);
    return ncclSuccess;
}

void kl_rma_meet_net(struct kl_rma *r, int peer, const struct kl_net_handle *handle)
{
    r->out[peer].handle = *handle;
}

static void lock(struct kl_rma *r)
{
    if (r->proxy) kl_proxy_lock(r->proxy);
}

static void unlock(struct kl_rma *r)
{
    if (r->proxy) kl_proxy_unlock(r->proxy);
}

void kl_rma_cancel(struct kl_rma *r)
{
    lock(r);
    r->cancelled = true;
    for (int i = 0; r->net && i < r->config.nranks; i++) {
        if (r->out[i].connected) r->net->cancel(r->out[i].connection);
        if (r->in[i].connection) r->net->cancel(r->in[i].connection);
    }
    unlock(r);
}

/* The connection is lost to the others too: after a failure nobody goes on. */
void kl_rma_drop(struct kl_rma *r, struct kl_rma_op *op)
{
    struct kl_rma_out *out = op->waits ? NULL : &r->out[op->peer];

    while (out && kl_swap_acquire(&out->busy, true)) kl_cpu_pause(); /* a copy of one piece at most */
    if (out && out->sender == op) r->net->cancel(out->connection);
    if (out) kl_store_release(&out->busy, false);
    kl_rma_give(op);
}

bool kl_rma_listens(const struct kl_rma *r)
{
    return r->listener;
}

/* ---- windows ---- */

ncclResult_t kl_rma_open(struct kl_rma *r, void *ptr, size_t bytes, struct kl_rma_part *part,
                         struct kl_rma_window **window)
{
    const struct kl_device_kind *d = r->config.devices;
    struct kl_rma_window *w = calloc(1, sizeof *w);
    struct kl_memory memory;

    if (!w) return KL_NOMEM("a window");
    d->lookup(ptr, &memory);
    *w = (struct kl_rma_window){
        .number = r->windows++, .devices = d, .nranks = r->config.nranks, .own = ptr, .bytes = bytes};
    ncclResult_t rc = ncclSuccess;
    if (memory.kind == KL_MEMORY_SHAREABLE) rc = d->export_range(ptr, bytes, &w->ticket);
    if (rc) {
        free(w);
        return rc;
    }
    w->exported = memory.kind == KL_MEMORY_SHAREABLE;
    *part =
        (struct kl_rma_part){.address = (uintptr_t)ptr, .bytes = bytes, .exported = w->exported, .ticket = w->ticket};
    w->next = kl_load_relaxed(&r->window);
    kl_store_release(&r->window, w); /* pairs with find_window of incoming.c */
    *window = w;
    return ncclSuccess;
}

void kl_rma_name(struct kl_rma_window *w, uintptr_t handle)
{
    w->handle = handle;
}

ncclResult_t kl_rma_complete(struct kl_rma_window *w, const struct kl_rma_part *parts)
{
    w->far = calloc((size_t)w->nranks, sizeof *w->far);
    if (!w->far) return KL_NOMEM("a window");
    for (int i = 0; i < w->nranks; i++) w->far[i].part = parts[i];
    return ncclSuccess;
}

struct kl_rma_window *kl_rma_find(struct kl_rma *r, uintptr_t handle)
{
    struct kl_rma_window *w = r ? kl_load_relaxed(&r->window) : NULL;

    while (w && (w->handle != handle || !w->own)) w = w->next;
    return w;
}

size_t kl_rma_bytes(const struct kl_rma_window *w, int peer)
{
    return w->far[peer].part.bytes;
}

/* Who is in the middle of receiving in it is cut off: its sender has not waited for this rank. */
static void drop_incoming(struct kl_rma *r, const struct kl_rma_window *w)
{
    for (int i = 0; r->in && i < r->config.nranks; i++) {
        struct kl_rma_in *in = &r->in[i];
        if (in->stage != KL_RMA_DATA || in->window != w) continue;
        r->net->cancel(in->connection);
        kl_store_release(&in->ended, true);
        r->config.fail(r->config.ctx, i, ncclInvalidUsage,
                       "data were on their way into a window that was deregistered");
    }
}

void kl_rma_close(struct kl_rma *r, struct kl_rma_window *w)
{
    if (!w) return;
    lock(r);
    drop_incoming(r, w);
    w->own = NULL;
    unlock(r);
}

/* ---- operations ---- */

struct kl_rma_op *kl_rma_take(struct kl_rma *r)
{
    for (int i = 0; i < KL_RMA_OPS; i++) {
        struct kl_rma_op *op = &r->op[r->next_op++ % KL_RMA_OPS];
        if (kl_load_acquire(&op->taken)) continue; /* pairs with kl_rma_give */
        memset(op, 0, offsetof(struct kl_rma_op, wire));
        kl_store_relaxed(&op->taken, true);
        return op;
    }
    return NULL;
}

void kl_rma_give(struct kl_rma_op *op)
{
    kl_store_release(&op->taken, false);
}

uint64_t kl_rma_expect(struct kl_rma *r, int peer, uint32_t counter, int n)
{
    return r->expected[(size_t)counter * (size_t)r->config.nranks + (size_t)peer] += (uint64_t)n;
}

/* ---- waiting ---- */

static uint64_t missing(const struct kl_rma *r, const struct kl_rma_op *op, int i)
{
    size_t at = (size_t)op->wait[i].counter * (size_t)r->config.nranks + (size_t)op->wait[i].peer;
    uint64_t now = kl_load_acquire(&r->signals[at]); /* pairs with kl_rma_signal */

    return now >= op->wait[i].until ? 0 : op->wait[i].until - now;
}

int kl_rma_blocked_on(const struct kl_rma *r, const struct kl_rma_op *op, uint64_t *count)
{
    *count = 0;
    if (!op->waits) return op->peer;
    for (int i = 0; i < op->nwaits; i++)
        if ((*count = missing(r, op, i))) return op->wait[i].peer;
    return -1;
}

static enum kl_progress wait_for_signals(const struct kl_rma *r, struct kl_rma_op *op)
{
    while (op->nwaits && !missing(r, op, op->nwaits - 1)) op->nwaits--;
    return op->nwaits ? KL_STALLED : KL_DONE;
}

/* ---- putting ---- */

enum { PIECE = 512 << 10 }; /* bytes copied before others get a turn */

static bool is_mappable(const struct kl_rma_op *op)
{
    return !op->window || op->window->far[op->peer].part.exported;
}

static ncclResult_t choose_way(struct kl_rma *r, struct kl_rma_op *op, struct kl_rma_out *out)
{
    if (out->reach == KL_RMA_HOST && !is_mappable(op)) out->reach = KL_RMA_NET;
    op->stage = out->reach == KL_RMA_NET ? KL_RMA_CONNECT : KL_RMA_MAP;
    if (op->stage == KL_RMA_CONNECT && !r->net)
        return KL_FAIL(ncclInternalError, "there is no network to write to rank %d", op->peer);
    return ncclSuccess;
}

static ncclResult_t import(struct kl_rma *r, struct kl_rma_out *out, const struct kl_range_ticket *ticket,
                           struct kl_import **import, void **memory)
{
    if (!out->deadline) out->deadline = kl_deadline_in_ms(r->config.patience_ms);
    ncclResult_t rc = r->config.devices->import(ticket, out->deadline, import, memory);
    if (!rc) out->deadline = 0;
    return rc;
}

/* ncclInProgress: not yet. */
static ncclResult_t map(struct kl_rma *r, struct kl_rma_op *op, struct kl_rma_out *out)
{
    void *signals = NULL;

    if (!out->signals) {
        ncclResult_t rc = import(r, out, &out->card.ticket, &out->import, &signals);
        if (rc) return rc;
        out->signals = signals;
    }
    if (!op->window) return ncclSuccess;
    struct kl_rma_far *far = &op->window->far[op->peer];
    if (!far->memory && out->reach == KL_RMA_PROCESS) far->memory = (void *)(uintptr_t)far->part.address;
    if (!far->memory) {
        ncclResult_t rc = import(r, out, &far->part.ticket, &far->import, &far->memory);
        if (rc) return rc;
    }
    op->to = (char *)far->memory + op->offset;
    return ncclSuccess;
}

static enum kl_progress copy(const struct kl_rma *r, struct kl_rma_op *op, const struct kl_rma_out *out)
{
    size_t left = op->bytes - op->done, n = left < PIECE ? left : PIECE;

    if (n) memmove(op->to + op->done, op->data + op->done, n); /* into the own window it may overlap */
    op->done += n;
    if (op->done < op->bytes) return KL_MOVED;
    if (!op->quietly) kl_rma_signal(out->signals, r, op->counter, r->config.rank);
    return KL_DONE;
}

static enum kl_progress put(struct kl_rma *r, struct kl_rma_op *op, struct kl_rma_out *out, ncclResult_t *rc)
{
    if (op->stage == KL_RMA_ROUTE) *rc = choose_way(r, op, out);
    if (!*rc && op->stage == KL_RMA_MAP) {
        *rc = map(r, op, out);
        if (!*rc) op->stage = KL_RMA_COPY;
    }
    if (!*rc && op->stage == KL_RMA_COPY) return copy(r, op, out);
    if (!*rc && op->stage >= KL_RMA_CONNECT) return kl_rma_send(r, op, rc);
    if (*rc != ncclInProgress) return KL_DONE;
    *rc = ncclSuccess;
    return KL_STALLED;
}

enum kl_progress kl_rma_progress(struct kl_rma *r, struct kl_rma_op *op, ncclResult_t *rc)
{
    if (op->waits) return wait_for_signals(r, op);
    struct kl_rma_out *out = &r->out[op->peer];
    if (kl_swap_acquire(&out->busy, true)) return KL_STALLED;
    enum kl_progress got = put(r, op, out, rc);
    kl_store_release(&out->busy, false); /* pairs with the swap */
    return got;
}

bool kl_rma_may_come(const struct kl_rma *r, int peer)
{
    return r->in && r->in[peer].comes && !kl_load_acquire(&r->in[peer].ended); /* pairs with lose */
}

enum kl_progress kl_rma_help(struct kl_rma *r)
{
    if (!r->proxy) return KL_STALLED;
    return kl_proxy_help(r->proxy) == KL_MOVED ? KL_MOVED : KL_STALLED;
}
