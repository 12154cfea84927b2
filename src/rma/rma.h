/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rma.h - one-sided operations: a rank writes into windows of others and signals them; they do nothing for it but wait for signals.
 *
 *      same process    the runner of a put copies into the window, and counts in the target's table of signals
 *      same host       the same, where the window is memory that other processes can map
 *      else            over the net: a header, then the data, which the target's proxy receives in the window before it counts
 *
 * Which way a peer is written to is decided when it is first written to; once over the net, always: so what is put in one
 * order is signalled in this order. A table has a counter per signal and source. Counters only grow; who waits knows how many it
 * has waited for so far.
 *
 * Windows are made by all ranks together and numbered alike, and so is what this needs (comm/window.c exchanges the records).
 *
 * Threads: take and windows are the user's; progress may run in several threads, of different operations; the rest is the owner's.
 */
#ifndef KL_RMA_RMA_H
#define KL_RMA_RMA_H

#include "base/atomic.h"
#include "device/device.h"
#include "net/net.h"

enum { KL_RMA_SIGNALS = 16 };    /* of a context, of each source */
enum { KL_RMA_CONTEXTS = 64 };   /* at most */
enum { KL_RMA_OPS = 256 };       /* under way at a time */
enum { KL_RMA_WAITS = 16 };      /* signals that one operation waits for */
enum { KL_RMA_IN_HEADER = 256 }; /* bytes that travel with the header */

struct kl_rma;
struct kl_rma_window;

enum kl_rma_reach { KL_RMA_PROCESS, KL_RMA_HOST, KL_RMA_NET };

/** What a rank tells all others when the first window is made; then, where needed, how to reach it over the net. */
struct kl_rma_card {
    uint64_t signals; /* address */
    struct kl_range_ticket ticket;
};

/** Of a window. */
struct kl_rma_part {
    uint64_t address, bytes;
    uint32_t exported, reserved; /* the ticket is one */
    struct kl_range_ticket ticket;
};

struct kl_rma_config {
    int rank, nranks, contexts, device;
    const struct kl_device_kind *devices;
    struct kl_key secret;           /* for the net */
    const _Atomic uint64_t *issued; /* other operations of this rank; stored with release */
    uint64_t patience_ms;           /* until a peer is connected, or mapped */
    void (*fail)(void *ctx, int culprit, ncclResult_t rc, const char *text); /* any thread */
    void *ctx;
};

/** An operation that is under way. Of the pool; the fields below are the caller's to fill in. */
struct kl_rma_op {
    _Atomic bool taken;
    bool waits;   /* for signals; else it puts, */
    bool quietly; /* without a signal */
    int peer;
    struct kl_rma_window *window; /* of the target; NULL: only a signal */
    size_t offset, bytes;
    const char *data;
    uint32_t counter;    /* kl_rma_counter without the source */
    uint64_t timeout_ns; /* the owner's, as: */
    uint64_t stalled_since, left_since;
    int nwaits;
    struct {
        uint32_t counter;
        int peer;
        uint64_t until;
    } wait[KL_RMA_WAITS];

    /* progress */
    int stage; /* enum kl_rma_put_stage */
    size_t done;
    char *to;
    void *request[2];
    size_t wire_bytes;
    unsigned char wire[48 + KL_RMA_IN_HEADER];
};

/** With its table of signals. */
ncclResult_t kl_rma_create(const struct kl_rma_config *config, struct kl_rma **rma);

/** For the others. */
void kl_rma_describe(const struct kl_rma *rma, struct kl_rma_card *card);

/** Nothing is under way, or was cancelled. NULL is fine. */
void kl_rma_free(struct kl_rma *rma);

/** Another rank: its card, and how it is reached at best. */
void kl_rma_meet(struct kl_rma *rma, int peer, enum kl_rma_reach reach, const struct kl_rma_card *card);

/** Listen, for those that can only be reached over the net. `device`: of the net. Once. */
ncclResult_t kl_rma_listen(struct kl_rma *rma, const struct kl_net *net, int device, struct kl_net_handle *handle);
bool kl_rma_listens(const struct kl_rma *rma);
void kl_rma_meet_net(struct kl_rma *rma, int peer, const struct kl_net_handle *handle);

/** A window: this rank's part, which others may write to from now on. `handle`: how the program names it. */
ncclResult_t kl_rma_open(struct kl_rma *rma, void *ptr, size_t bytes, struct kl_rma_part *part,
                         struct kl_rma_window **window);
void kl_rma_name(struct kl_rma_window *window, uintptr_t handle);

/** The parts of all ranks, copied. */
ncclResult_t kl_rma_complete(struct kl_rma_window *window, const struct kl_rma_part *parts);

/** NULL: there is none. */
struct kl_rma_window *kl_rma_find(struct kl_rma *rma, uintptr_t handle);

/** Bytes of the part of `peer`. */
size_t kl_rma_bytes(const struct kl_rma_window *window, int peer);

/** Its memory is not written to any more. NULL is fine. */
void kl_rma_close(struct kl_rma *rma, struct kl_rma_window *window);

/** An operation of the pool, zeroed; NULL: all are under way. */
struct kl_rma_op *kl_rma_take(struct kl_rma *rma);
void kl_rma_give(struct kl_rma_op *op);

/** Give back one that shall not go on: its buffer is not touched any more. */
void kl_rma_drop(struct kl_rma *rma, struct kl_rma_op *op);

/** Which counter: of this context and signal. */
static inline uint32_t kl_rma_counter(int context, int signal)
{
    return (uint32_t)(context * KL_RMA_SIGNALS + signal);
}

/** Signals of `peer` that are waited for from now on: the `n` next ones. Returns what its counter will be. */
uint64_t kl_rma_expect(struct kl_rma *rma, int peer, uint32_t counter, int n);

/** Go on. *rc is set on failure, with DONE. */
enum kl_progress kl_rma_progress(struct kl_rma *rma, struct kl_rma_op *op, ncclResult_t *rc);

/** For a thread that waits: receive, if there is a net. MOVED: something did. */
enum kl_progress kl_rma_help(struct kl_rma *rma);

/** The rank that an operation waits for. -1: none. `missing`: signals that have not come. */
int kl_rma_blocked_on(const struct kl_rma *rma, const struct kl_rma_op *op, uint64_t *missing);

/** Of a rank that has left: may signals of its still be on their way? They come, or the connection ends, in no time. */
bool kl_rma_may_come(const struct kl_rma *rma, int peer);

/** After a failure: nobody's memory is touched any more. Any thread, while no operation is in progress. */
void kl_rma_cancel(struct kl_rma *rma);

#endif
