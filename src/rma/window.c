/* SPDX-License-Identifier: Apache-2.0 */
/** window.c - windows: memory of all ranks, each of which may write into the others'. */
#include "base/error.h"
#include "rma/state.h"

#include <stdlib.h>

static void lock(struct kl_rma *r)
{
    struct kl_proxy *proxy = kl_load_relaxed(&r->proxy); /* stored by this thread */

    if (proxy) kl_proxy_lock(proxy);
}

static void unlock(struct kl_rma *r)
{
    struct kl_proxy *proxy = kl_load_relaxed(&r->proxy);

    if (proxy) kl_proxy_unlock(proxy);
}

static void unexport(struct kl_rma_window *w)
{
    if (w->exported) (void)w->devices->unexport(&w->handle);
    w->exported = false;
}

static void free_window(struct kl_rma_window *w)
{
    for (int i = 0; w->far && i < w->nranks; i++) w->devices->unimport(w->far[i].import);
    unexport(w);
    if (w->enrolled) kl_net_rma_withdraw(w->enrolled, w->mr);
    free(w->far);
    free(w);
}

void kl_rma_free_windows(struct kl_rma *r)
{
    struct kl_rma_window *next;

    for (struct kl_rma_window *w = kl_load_relaxed(&r->window); w; w = next) {
        next = w->next;
        free_window(w);
    }
}

/* Free closed windows that no operation puts into any more. */
static void sweep(struct kl_rma *r)
{
    struct kl_rma_window *kept = NULL, *gone = NULL, **end = &kept, *next;

    lock(r);
    for (struct kl_rma_window *w = kl_load_relaxed(&r->window); w; w = next) {
        next = w->next;
        if (w->own || kl_load_acquire(&w->users)) { /* pairs with kl_rma_op_free */
            *end = w;
            end = &w->next;
        } else {
            w->next = gone;
            gone = w;
        }
    }
    *end = NULL;
    kl_store_release(&r->window, kept);
    unlock(r);
    for (; gone; gone = next) {
        next = gone->next;
        free_window(gone);
    }
}

ncclResult_t kl_rma_open(struct kl_rma *r, int number, void *ptr, size_t bytes, struct kl_rma_part *part,
                         struct kl_rma_window **window)
{
    const struct kl_device_kind *d = r->config.devices;
    struct kl_rma_window *w = calloc(1, sizeof *w);
    struct kl_memory memory;

    sweep(r);
    if (!w) return KL_NOMEM("a window");
    *w = (struct kl_rma_window){.number = number, .devices = d, .nranks = r->config.nranks, .own = ptr, .bytes = bytes};
    d->lookup(ptr, &memory);
    ncclResult_t rc = ncclSuccess;
    if (memory.kind == KL_MEMORY_SHAREABLE) rc = d->export_range(ptr, bytes, &w->handle);
    if (rc) {
        free(w);
        return rc;
    }
    w->exported = memory.kind == KL_MEMORY_SHAREABLE;
    *part =
        (struct kl_rma_part){.address = (uintptr_t)ptr, .bytes = bytes, .exported = w->exported, .handle = w->handle};
    w->next = kl_load_relaxed(&r->window);
    kl_store_release(&r->window, w); /* pairs with find_window of incoming.c */
    *window = w;
    return ncclSuccess;
}

void kl_rma_name(struct kl_rma_window *w, uintptr_t name)
{
    w->name = name;
}

ncclResult_t kl_rma_complete(struct kl_rma_window *w, const struct kl_rma_part *parts)
{
    w->far = calloc((size_t)w->nranks, sizeof *w->far);
    if (!w->far) return KL_NOMEM("a window");
    for (int i = 0; i < w->nranks; i++) w->far[i].part = parts[i];
    return ncclSuccess;
}

struct kl_rma_window *kl_rma_find(struct kl_rma *r, uintptr_t name)
{
    struct kl_rma_window *w = r ? kl_load_relaxed(&r->window) : NULL;

    while (w && (w->name != name || !w->own)) w = w->next;
    return w;
}

size_t kl_rma_bytes(const struct kl_rma_window *w, int peer)
{
    return w->far[peer].part.bytes;
}

/* A rank that is still sending into it is cut off: it has not waited for this rank. -1: none is. */
static int cut_off(struct kl_rma *r, const struct kl_rma_window *w)
{
    int culprit = -1;

    for (int i = 0; kl_load_relaxed(&r->proxy) && i < r->config.nranks; i++) {
        struct kl_rma_in *in = &r->in[i];
        if (!in->data || in->window != w || kl_load_relaxed(&in->ended)) continue;
        r->net->cancel(in->connection);
        kl_store_release(&in->ended, true);
        culprit = i;
    }
    return culprit;
}

void kl_rma_close(struct kl_rma *r, struct kl_rma_window *w)
{
    if (!w) return;
    lock(r);
    int culprit = cut_off(r, w);
    w->own = NULL;
    unlock(r);
    unexport(w);
    if (culprit >= 0)
        r->config.fail(r->config.ctx, culprit, ncclInvalidUsage,
                       "data were on their way into a window that was deregistered");
    sweep(r);
}
