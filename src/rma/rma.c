/* SPDX-License-Identifier: Apache-2.0 */
/** rma.c - life, and operations. */
#include "rma/rma.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/host/idle.h"
#include "rma/state.h"

#include <stdio.h>
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
    void *signals;

    r->out = calloc((size_t)r->config.nranks, sizeof *r->out);
    r->expected = calloc(1, table_bytes(r));
    if (!r->out || !r->expected) return KL_NOMEM("one-sided operations");
    KL_TRY(d->alloc(r->config.device, KL_MEMORY_SHAREABLE, table_bytes(r), &signals));
    memset(signals, 0, table_bytes(r));
    r->signals = signals;
    return d->export_range(signals, table_bytes(r), &r->handle);
}

ncclResult_t kl_rma_create(const struct kl_rma_config *config, struct kl_rma **rma)
{
    struct kl_rma *r = calloc(1, sizeof *r);

    if (!r) return KL_NOMEM("one-sided operations");
    r->config = *config;
    r->counters = (uint32_t)(config->contexts * config->signals);
    ncclResult_t rc = make_tables(r);
    if (rc)
        kl_rma_free(r);
    else
        *rma = r;
    return rc;
}

static void free_net(struct kl_rma *r)
{
    struct kl_proxy *proxy = kl_load_relaxed(&r->proxy);

    if (proxy) kl_proxy_remove(proxy, &r->duty);
    for (int i = 0; r->net && i < r->config.nranks; i++) {
        r->net->close_send(r->out[i].connection);
        if (r->in) r->net->close_recv(r->in[i].connection);
    }
    if (r->listener) r->net->close_listen(r->listener);
    kl_proxy_unref(proxy);
    free(r->in);
}

static void free_blocks(struct kl_rma *r)
{
    for (struct kl_rma_block *b; (b = r->block.next);) {
        r->block.next = b->next;
        free(b);
    }
}

void kl_rma_free(struct kl_rma *r)
{
    if (!r) return;
    const struct kl_device_kind *d = r->config.devices;

    free_net(r);
    kl_rma_free_windows(r);
    kl_rma_far_free(r);
    for (int i = 0; r->out && i < r->config.nranks; i++) d->unimport(r->out[i].import);
    if (r->signals) {
        (void)d->unexport(&r->handle);
        (void)d->free((void *)r->signals);
    }
    free_blocks(r);
    free(r->out);
    free(r->expected);
    kl_key_wipe(&r->config.secret);
    free(r);
}

void kl_rma_describe(const struct kl_rma *r, struct kl_rma_connect_info *info)
{
    *info = (struct kl_rma_connect_info){.signals = r->handle};
}

void kl_rma_add_peer(struct kl_rma *r, int peer, enum kl_rma_reach reach, const struct kl_rma_connect_info *info)
{
    struct kl_rma_out *out = &r->out[peer];

    if (out->met) return;
    out->met = true;
    out->reach = reach;
    out->info = *info;
}

ncclResult_t kl_rma_listen(struct kl_rma *r, const struct kl_net *net, int device, struct kl_net_handle *address)
{
    const struct kl_net_end me = {.secret = r->config.secret, .rank = r->config.rank, .peer = -1};
    struct kl_proxy *proxy;

    r->net = net;
    r->device = device;
    r->in = calloc((size_t)r->config.nranks, sizeof *r->in);
    if (!r->in) return KL_NOMEM("one-sided operations");
    KL_TRY(net->listen(device, &me, address, &r->listener));
    for (int i = 0; i < r->config.nranks; i++) {
        r->in[i].comes = r->out[i].reach != KL_RMA_PROCESS;
        r->unconnected += r->in[i].comes;
    }
    KL_TRY(kl_proxy_ref(&proxy));
    r->duty = (struct kl_proxy_task){.progress = kl_rma_receive, .rest = kl_rma_rest};
    kl_store_release(&r->proxy, proxy); /* pairs with kl_rma_receive_some, among others */
    kl_proxy_add(proxy, &r->duty);
    return ncclSuccess;
}

bool kl_rma_listens(const struct kl_rma *r)
{
    return kl_load_relaxed(&r->proxy) != NULL;
}

void kl_rma_add_net_peer(struct kl_rma *r, int peer, const struct kl_net_handle *address)
{
    r->out[peer].address = *address;
}

void kl_rma_cancel(struct kl_rma *r)
{
    struct kl_proxy *proxy = kl_load_acquire(&r->proxy);

    if (!proxy) return;
    kl_proxy_lock(proxy);
    r->cancelled = true;
    if (kl_rma_far_is_used(r)) kl_net_rma_cancel(r->far.end);
    for (int i = 0; i < r->config.nranks; i++) {
        if (r->out[i].connected) r->net->cancel(r->out[i].connection);
        if (r->in[i].connection) r->net->cancel(r->in[i].connection);
    }
    kl_proxy_unlock(proxy);
}

/* ---- the pool ---- */

static struct kl_rma_op *take_of(struct kl_rma_block *b)
{
    for (int i = 0; i < KL_RMA_OPS; i++) {
        struct kl_rma_op *op = &b->op[b->at++ % KL_RMA_OPS];
        if (kl_load_acquire(&op->taken)) continue; /* pairs with kl_rma_op_free */
        memset(op, 0, offsetof(struct kl_rma_op, wire));
        kl_store_relaxed(&op->taken, true);
        return op;
    }
    return NULL;
}

/* A thread may queue many for one rank before it queues the one that another rank needs to go on: this does not
 * wait. */
struct kl_rma_op *kl_rma_op_alloc(struct kl_rma *r)
{
    struct kl_rma_block *b = &r->block;
    struct kl_rma_op *op;

    while (!(op = take_of(b)) && b->next) b = b->next;
    if (op) return op;
    b->next = calloc(1, sizeof *b->next);
    return b->next ? take_of(b->next) : NULL;
}

void kl_rma_op_set_window(struct kl_rma_op *op, struct kl_rma_window *window)
{
    kl_fetch_add_relaxed(&window->users, 1);
    op->window = window;
}

void kl_rma_op_free(struct kl_rma_op *op)
{
    if (op->window) kl_fetch_sub_acq_rel(&op->window->users, 1); /* the last access to it; pairs with kl_rma_close */
    if (op->source) kl_fetch_sub_acq_rel(&op->source->users, 1);
    kl_store_release(&op->taken, false);
}

/* The connection is lost to other operations too: after a failure none continues. */
void kl_rma_op_withdraw(struct kl_rma *r, struct kl_rma_op *op)
{
    struct kl_rma_out *out = op->waits ? NULL : &r->out[op->peer];

    while (out && kl_swap_acquire(&out->busy, true)) kl_cpu_pause(); /* a copy of one piece at most */
    if (out && out->sender == op && op->stage == KL_RMA_FAR)
        kl_net_rma_cancel(r->far.end);
    else if (out && out->sender == op)
        r->net->cancel(out->connection);
    if (out) kl_store_release(&out->busy, false);
    kl_rma_op_free(op);
}

/* ---- waiting ---- */

static size_t place_of(const struct kl_rma *r, uint32_t counter, int source)
{
    return (size_t)counter * (size_t)r->config.nranks + (size_t)source;
}

void kl_rma_op_reserve_signals(struct kl_rma *r, struct kl_rma_op *op)
{
    for (int i = 0; i < op->nwaits; i++)
        op->wait[i].until = r->expected[place_of(r, op->wait[i].counter, op->wait[i].peer)] +=
            (uint64_t)op->wait[i].count;
}

static uint64_t missing(const struct kl_rma *r, const struct kl_rma_op *op, int i)
{
    /* Pairs with kl_rma_signal. */
    uint64_t now = kl_load_acquire(&r->signals[place_of(r, op->wait[i].counter, op->wait[i].peer)]);

    return now >= op->wait[i].until ? 0 : op->wait[i].until - now;
}

int kl_rma_blocked_on(const struct kl_rma *r, const struct kl_rma_op *op, uint64_t *count)
{
    int self = -1;

    *count = 0;
    if (!op->waits) return op->peer;
    for (int i = 0; i < op->nwaits; i++) {
        uint64_t n = missing(r, op, i);
        if (!n) continue;
        *count = n;
        if (op->wait[i].peer != r->config.rank) return op->wait[i].peer;
        self = op->wait[i].peer;
    }
    return self;
}

static enum kl_progress wait_for_signals(const struct kl_rma *r, struct kl_rma_op *op)
{
    uint64_t all = 0, before = op->missing;

    while (op->nwaits && !missing(r, op, op->nwaits - 1)) op->nwaits--;
    if (!op->nwaits) return KL_DONE;
    for (int i = 0; i < op->nwaits; i++) all += missing(r, op, i);
    op->missing = all;
    return all == before ? KL_STALLED : KL_MOVED;
}

/* ---- putting ---- */

enum { COPY_BYTES = 512 << 10 }; /* a piece, before others get a turn */

static bool is_mappable(const struct kl_rma_op *op, const struct kl_rma_out *out)
{
    return out->reach == KL_RMA_PROCESS || !op->window || op->window->far[op->peer].part.exported;
}

static ncclResult_t choose_way(struct kl_rma *r, struct kl_rma_op *op, struct kl_rma_out *out)
{
    if (!is_mappable(op, out)) out->reach = KL_RMA_NET;
    op->stage = out->reach != KL_RMA_NET ? KL_RMA_MAP : kl_rma_far_is_used(r) ? KL_RMA_FAR : KL_RMA_CONNECT;
    if (op->stage == KL_RMA_CONNECT && !kl_load_acquire(&r->proxy)) /* pairs with kl_rma_listen */
        return KL_FAIL(ncclInternalError, "there is no network to write to rank %d", op->peer);
    return ncclSuccess;
}

static ncclResult_t import(struct kl_rma *r, struct kl_rma_out *out, const struct kl_range_export_handle *handle,
                           struct kl_import **import, void **memory)
{
    if (!out->deadline) out->deadline = kl_deadline_in_ms(r->config.timeout_ms);
    ncclResult_t rc = r->config.devices->import(handle, out->deadline, import, memory);
    if (rc != ncclInProgress) out->deadline = 0;
    return rc;
}

/* ncclInProgress: not yet. Memory that cannot be exported is written directly, in the same process. */
static ncclResult_t map(struct kl_rma *r, struct kl_rma_op *op, struct kl_rma_out *out)
{
    void *signals = NULL;

    if (!out->signals) {
        ncclResult_t rc = import(r, out, &out->info.signals, &out->import, &signals);
        if (rc) return rc;
        out->signals = signals;
    }
    if (!op->window) return ncclSuccess;
    struct kl_rma_remote_part *far = &op->window->far[op->peer];
    if (!far->memory && !far->part.exported) far->memory = (void *)(uintptr_t)far->part.address;
    if (!far->memory) {
        ncclResult_t rc = import(r, out, &far->part.handle, &far->import, &far->memory);
        if (rc) return rc;
    }
    op->to = (char *)far->memory + op->offset;
    return ncclSuccess;
}

static enum kl_progress copy(const struct kl_rma *r, struct kl_rma_op *op, const struct kl_rma_out *out)
{
    size_t left = op->bytes - op->done, n = left < COPY_BYTES ? left : COPY_BYTES;

    if (n) memmove(op->to + op->done, op->data + op->done, n); /* into its own window it may overlap */
    op->done += n;
    if (op->done < op->bytes) return KL_MOVED;
    kl_rma_signal(out->signals, r, op->counter, r->config.rank);
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
    if (!*rc && op->stage == KL_RMA_FAR) return kl_rma_far_send(r, op, rc);
    if (!*rc && op->stage >= KL_RMA_CONNECT) return kl_rma_send(r, op, rc);
    if (*rc != ncclInProgress) return KL_DONE;
    *rc = ncclSuccess;
    return KL_STALLED;
}

/* It stays where it is until its communicator fails. */
static enum kl_progress hold(struct kl_rma *r, struct kl_rma_op *op, ncclResult_t *rc)
{
    kl_rma_hold(r, op->peer, *rc, "");
    op->failed = true;
    *rc = ncclSuccess;
    return KL_STALLED;
}

enum kl_progress kl_rma_progress(struct kl_rma *r, struct kl_rma_op *op, ncclResult_t *rc)
{
    if (op->waits) return wait_for_signals(r, op);
    struct kl_rma_out *out = &r->out[op->peer];
    if (op->failed || kl_swap_acquire(&out->busy, true)) return KL_STALLED;
    enum kl_progress got = put(r, op, out, rc);
    if (*rc && op->stage >= KL_RMA_FAR && kl_load_relaxed(&r->proxy)) got = hold(r, op, rc);
    kl_store_release(&out->busy, false); /* pairs with the swap */
    return got;
}

/* ---- waiting ---- */

bool kl_rma_sleep_on(struct kl_rma *r, struct kl_rma_op *op)
{
    struct kl_rma_out *out = op->waits ? NULL : &r->out[op->peer];
    int fd = -1;

    if (!out || op->stage != KL_RMA_SEND || kl_swap_acquire(&out->busy, true)) return false;
    bool known = out->sender == op && !r->net->sleep_on(out->connection, &fd) && fd >= 0;
    kl_store_release(&out->busy, false);
    return known && kl_idle_wait_fd(fd);
}

bool kl_rma_may_arrive(const struct kl_rma *r, int peer)
{
    if (!kl_load_acquire(&r->proxy)) return false;
    return r->in[peer].comes && !kl_load_acquire(&r->in[peer].ended); /* pairs with lose */
}

enum kl_progress kl_rma_receive_some(struct kl_rma *r)
{
    struct kl_proxy *proxy = kl_load_acquire(&r->proxy); /* pairs with kl_rma_listen */

    return proxy && kl_proxy_help(proxy) == KL_MOVED ? KL_MOVED : KL_STALLED;
}
