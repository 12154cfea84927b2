/* SPDX-License-Identifier: Apache-2.0 */
/** state.h - shared by the files of this folder. */
#ifndef KL_RMA_STATE_H
#define KL_RMA_STATE_H

#include "base/error.h"
#include "proxy/proxy.h"
#include "rma/rma.h"

#include <stdbool.h>

enum { KL_RMA_CONNECTION = 0x524d41 }; /* the number of the connection between two ranks */
enum { KL_RMA_OPS = 256 };             /* of a block */
enum { KL_RMA_FAR_PIECES = 8 };        /* staging pieces for the plugin */

/** The part of a rank in a window. Under that rank's `busy`. */
struct kl_rma_remote_part {
    struct kl_rma_part part;
    struct kl_import *import; /* once it was begun */
    void *memory;             /* NULL: not mapped yet */
};

struct kl_rma_window {
    int number;
    uintptr_t name;
    const struct kl_device_kind *devices;
    int nranks;
    char *own; /* NULL: closed. Under the proxy's lock where there is one */
    size_t bytes;
    bool exported;
    struct kl_range_export_handle handle;
    struct kl_rma_remote_part *far; /* by rank */
    struct kl_net_rma *enrolled;    /* the plugin's end that knows it as `mr`; NULL: none */
    void *mr;
    _Atomic uint32_t users; /* operations that put into it */
    struct kl_rma_window *next;
};

/** Pending writes of this rank to another one. */
struct kl_rma_out {
    _Atomic bool busy; /* a thread is using the following fields */
    bool met;
    enum kl_rma_reach reach;
    struct kl_rma_connect_info info;
    struct kl_import *import;  /* of its signals */
    _Atomic uint64_t *signals; /* NULL: not mapped yet */
    struct kl_net_handle address;
    void *connection;
    bool connected;
    uint64_t deadline;              /* of connecting, or of mapping; 0: not begun */
    const struct kl_rma_op *sender; /* the operation whose messages the connection carries */
};

/** How far a put is: over memory, over the plugin, or over the net. */
enum kl_rma_stage { KL_RMA_ROUTE, KL_RMA_MAP, KL_RMA_COPY, KL_RMA_FAR, KL_RMA_CONNECT, KL_RMA_SEND };

/** Data from another rank over the net. The proxy's. */
struct kl_rma_in {
    void *connection;   /* NULL: not here yet */
    bool comes;         /* it may: the rank is in another process */
    _Atomic bool ended; /* nothing more comes */
    bool data;          /* the header is here, and data are on their way */
    void *request;
    struct kl_rma_header header;
    struct kl_rma_window *window;
    size_t got; /* bytes of the data */
    unsigned char wire[sizeof(struct kl_rma_header) + KL_RMA_IN_HEADER];
};

/** The plugin for one-sided operations. */
struct kl_rma_far {
    struct kl_net_rma *end; /* NULL: none */
    _Atomic bool used;      /* by all ranks: stored with release, when the other fields are there */
    char *staging;
    void *staging_mr, *signals_mr;
    _Atomic bool taken[KL_RMA_FAR_PIECES];
};

/**
 * A failure of the net or the plugin. It may be the consequence of one elsewhere, of which the bootstrap tells soon: a rank that died, or
 * one that has ended its communicator for another reason. If nothing has come after a while, this one counts.
 */
struct kl_rma_held {
    _Atomic bool taken;     /* by the first failure, whose thread writes the rest */
    _Atomic uint64_t since; /* ns; 0: there is none yet. Stored last, with release */
    bool reported;          /* the duty's */
    ncclResult_t rc;
    int culprit;
    char text[KL_ERROR_TEXT];
};

struct kl_rma_block {
    struct kl_rma_block *next;
    unsigned at; /* where a free one is looked for first */
    struct kl_rma_op op[KL_RMA_OPS];
};

struct kl_rma {
    struct kl_proxy_task duty; /* first */
    struct kl_rma_config config;
    _Atomic uint64_t *signals; /* [counter][source]; shareable memory */
    struct kl_range_export_handle handle;
    uint64_t *expected; /* alike; the user's */
    uint32_t counters;
    _Atomic(struct kl_rma_window *) window; /* the last one */
    struct kl_rma_out *out;

    /* once it listens: `proxy` is stored last, with release; a thread reads the other fields only after it has read
     * it */
    _Atomic(struct kl_proxy *) proxy;
    const struct kl_net *net;
    int device;
    void *listener;
    struct kl_rma_in *in;
    int unconnected; /* of those that may come */
    bool look_again; /* a connection may be pending, whatever the descriptor says */
    bool cancelled;

    struct kl_rma_held held;
    struct kl_rma_far far;
    struct kl_rma_block block; /* the first one */
};

static inline void kl_rma_signal(_Atomic uint64_t *signals, const struct kl_rma *rma, uint32_t counter, int source)
{
    /* Pairs with kl_rma_progress of the waiter: earlier puts are visible. */
    kl_fetch_add_seq_cst(&signals[(size_t)counter * (size_t)rma->config.nranks + (size_t)source], 1);
}

static inline bool kl_rma_far_is_used(const struct kl_rma *rma)
{
    return kl_load_acquire(&rma->far.used); /* pairs with kl_rma_far_use */
}

/** far.c: put through the plugin, under the peer's `busy`; progress of all puts; the end. */
enum kl_progress kl_rma_far_send(struct kl_rma *rma, struct kl_rma_op *op, ncclResult_t *rc);
ncclResult_t kl_rma_far_progress(struct kl_rma *rma);
void kl_rma_far_free(struct kl_rma *rma);

/** rma.c: hold the thread's last failure, of `culprit`, with `about` before its text. The first one counts; the duty reports it. */
void kl_rma_hold(struct kl_rma *rma, int culprit, ncclResult_t rc, const char *about);

/** incoming.c: the duty's functions. */
enum kl_progress kl_rma_receive(struct kl_proxy_task *duty);
void kl_rma_rest(struct kl_proxy_task *duty, struct kl_proxy_sleep *rest);

/** window.c. */
void kl_rma_free_windows(struct kl_rma *rma);

/** outgoing.c: put over the net. Under the peer's `busy`. */
enum kl_progress kl_rma_send(struct kl_rma *rma, struct kl_rma_op *op, ncclResult_t *rc);

#endif
