/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rma.h - one-sided operations: a rank writes into windows of others and signals them; the target only waits for
 * signals.
 *
 *      memory    the runner of a put copies into the window, and counts in the target's table of signals: where this
 *                process can map that memory, and for any memory of the same process
 *      net       a header, then the data in pieces, which the target's proxy receives in the window before it counts
 *      plugin    a put of the plugin for one-sided operations, which counts in the target's table behind the data
 *
 * The way to write to a peer is chosen at the first write; once over the net or the plugin, always: so puts and signals of one order
 * arrive in this order. A table has a counter per signal and source. Counters only grow; the waiter knows how many it
 * has consumed.
 *
 * All ranks make windows together and number them alike (comm/window.c exchanges the records).
 *
 * Life:    memory mapped from another rank stays mapped until this rank unmaps it, whatever becomes of the other.
 * Threads: take and windows are the user's; progress may run in several threads, of different operations; the rest is the owner's.
 */
#ifndef KL_RMA_RMA_H
#define KL_RMA_RMA_H

#include "base/atomic.h"
#include "device/device.h"
#include "net/rma.h"

enum { KL_RMA_SIGNALS = 16 };          /* of a context, of each source, where nobody asks for another number */
enum { KL_RMA_CONTEXTS = 64 };         /* at most */
enum { KL_RMA_WAITS = 16 };            /* signals that one operation waits for */
enum { KL_RMA_IN_HEADER = 256 };       /* bytes of data that travel with the header */
enum { KL_RMA_PIECE_BYTES = 1 << 20 }; /* of data, in one message of the net */

struct kl_rma;
struct kl_rma_window;

enum kl_rma_reach { KL_RMA_PROCESS, KL_RMA_HOST, KL_RMA_NET };

/** A rank's description of its table of signals, sent to all others. */
struct kl_rma_connect_info {
    struct kl_range_export_handle signals;
};

/** Of its part of a window. */
struct kl_rma_part {
    uint64_t address, bytes;
    uint32_t exported, reserved; /* is there a handle? */
    struct kl_range_export_handle handle;
};

struct kl_rma_config {
    int rank, nranks, device;
    int contexts, signals; /* signals of each context; the same on all ranks */
    const struct kl_device_kind *devices;
    struct kl_key secret;           /* for the net */
    const _Atomic uint64_t *issued; /* operations of this rank; stored with release */
    uint64_t timeout_ms;            /* until a peer is connected, or mapped */
    void (*fail)(void *ctx, int culprit, ncclResult_t rc, const char *text); /* any thread */
    void *ctx;
};

/** The header of a put over the net; the data follow, behind it in the same message if they are few. From an untrusted
 * peer. */
struct kl_rma_header {
    uint64_t offset, bytes;
    int32_t window; /* KL_RMA_NO_WINDOW: only a signal */
    uint32_t counter;
};
_Static_assert(sizeof(struct kl_rma_header) == 24, "wire format");
enum { KL_RMA_NO_WINDOW = -1 };

/** An operation in progress, of the pool. */
struct kl_rma_op {
    _Atomic bool taken;

    /* the caller's */
    struct kl_rma_op *next;
    struct kl_stream *stream;
    uint32_t stream_number; /* kl_stream_number */
    uint64_t timeout_ns, stalled_since, left_since;

    /* the operation */
    bool waits; /* for signals; else it puts */
    int peer;
    struct kl_rma_window *window; /* of the target; NULL: only a signal. By kl_rma_op_set_window */
    struct kl_rma_window *source; /* of `data`, for the plugin; NULL: none. By kl_rma_op_set_source */
    size_t offset, bytes;
    const char *data;
    uint32_t counter; /* kl_rma_counter */
    int nwaits;
    struct {
        uint32_t counter;
        int peer, count;
        uint64_t until; /* by kl_rma_op_reserve_signals */
    } wait[KL_RMA_WAITS];

    /* progress */
    int stage;        /* enum kl_rma_stage */
    uint64_t missing; /* signals that have not come, at the last look */
    size_t done;      /* bytes that were copied, or passed to the net */
    char *to;
    void *request[2];
    int piece[2];      /* over the plugin: staging pieces of the requests */
    bool signalled;    /* over the plugin: the last part was passed to it */
    bool failed;       /* the failure is held (state.h) */
    size_t wire_bytes; /* 0: the header was passed to the net */
    unsigned char wire[sizeof(struct kl_rma_header) + KL_RMA_IN_HEADER];
};

/** With its table of signals. */
ncclResult_t kl_rma_create(const struct kl_rma_config *config, struct kl_rma **rma);

/** For the others. */
void kl_rma_describe(const struct kl_rma *rma, struct kl_rma_connect_info *info);

/** No operation is in progress, or all were cancelled. NULL is fine. */
void kl_rma_free(struct kl_rma *rma);

/** A rank, this one included: its connect info, and the best way to reach it. The first call for a rank holds. */
void kl_rma_add_peer(struct kl_rma *rma, int peer, enum kl_rma_reach reach, const struct kl_rma_connect_info *info);

/** Listen, for peers that are reachable over the net only. `device`: of the net. Once. */
ncclResult_t kl_rma_listen(struct kl_rma *rma, const struct kl_net *net, int device, struct kl_net_handle *address);
bool kl_rma_listens(const struct kl_rma *rma);
void kl_rma_add_net_peer(struct kl_rma *rma, int peer, const struct kl_net_handle *address);

/* ---- the plugin, for ranks of other hosts ---- */

/** This rank's offer, and all ranks' connection; both at most once. Then `use` or `leave`, all ranks alike. */
void kl_rma_far_offer(struct kl_rma *rma, int device, struct kl_net_rma_offer *offer);
ncclResult_t kl_rma_far_connect(struct kl_rma *rma, const struct kl_net_rma_offer *offers, struct kl_net_rma_wait wait);
void kl_rma_far_use(struct kl_rma *rma);
void kl_rma_far_leave(struct kl_rma *rma);

/** All ranks register a window with it, if it is used. */
ncclResult_t kl_rma_far_enroll(struct kl_rma *rma, struct kl_rma_window *window, struct kl_net_rma_wait wait);

/* ---- windows ---- */

/** Window `number`: this rank's part, which others may write from now on. */
ncclResult_t kl_rma_open(struct kl_rma *rma, int number, void *ptr, size_t bytes, struct kl_rma_part *part,
                         struct kl_rma_window **window);

/** The parts of all ranks, copied, and the program's handle of the window. */
ncclResult_t kl_rma_complete(struct kl_rma_window *window, const struct kl_rma_part *parts);
void kl_rma_name(struct kl_rma_window *window, uintptr_t name);

/** NULL: there is none. */
struct kl_rma_window *kl_rma_find(struct kl_rma *rma, uintptr_t name);

/** Bytes of the part of `peer`. */
size_t kl_rma_bytes(const struct kl_rma_window *window, int peer);

/** Nothing more is received into it over the net, or mapped; a rank that has mapped it can still write. NULL is
 * fine. */
void kl_rma_close(struct kl_rma *rma, struct kl_rma_window *window);

/* ---- operations ---- */

/** An operation of the pool, zeroed. NULL: out of memory. */
struct kl_rma_op *kl_rma_op_alloc(struct kl_rma *rma);
void kl_rma_op_free(struct kl_rma_op *op);

/** Withdraw an operation: its buffer is not touched any more. No thread may progress it. */
void kl_rma_op_withdraw(struct kl_rma *rma, struct kl_rma_op *op);

/** The operation puts into this window, which stays until the operation is given back. */
void kl_rma_op_set_window(struct kl_rma_op *op, struct kl_rma_window *window);

/** The counter of this context and signal, where each context has `signals`. */
static inline uint32_t kl_rma_counter(int signals, int context, int signal)
{
    return (uint32_t)(context * signals + signal);
}

/** The operation's data may lie in a window, which then stays until the operation is given back. After `data` and `bytes` are set. */
void kl_rma_op_set_source(struct kl_rma *rma, struct kl_rma_op *op);

/** The operation waits for the next signals from here on. Called in the order in which operations are launched. */
void kl_rma_op_reserve_signals(struct kl_rma *rma, struct kl_rma_op *op);

/** Continue. *rc is set on failure, with DONE. */
enum kl_progress kl_rma_progress(struct kl_rma *rma, struct kl_rma_op *op, ncclResult_t *rc);

/** For a waiting thread: receive, if there is a net. MOVED: some data arrived. */
enum kl_progress kl_rma_receive_some(struct kl_rma *rma);

/** For a thread that is about to sleep (device/host/idle.h): true if a descriptor becomes ready when a stalled
 * operation may go on. */
bool kl_rma_sleep_on(struct kl_rma *rma, struct kl_rma_op *op);

/** The rank that an operation waits for, another one if there is one. -1: none. `missing`: signals of it that have not come. */
int kl_rma_blocked_on(const struct kl_rma *rma, const struct kl_rma_op *op, uint64_t *missing);

/** Of a rank that has left: may signals of its still be on their way? They come, or the connection ends, in no time. */
bool kl_rma_may_arrive(const struct kl_rma *rma, int peer);

/** After a failure: memory of other ranks is not touched any more. Any thread, while no operation is in progress. */
void kl_rma_cancel(struct kl_rma *rma);

#endif
