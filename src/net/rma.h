/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rma.h - the plugin for one-sided operations, if the process has one: a rank writes into memory that another one has registered, and
 * adds to a counter there. All ranks of a communicator make their ends together, from offers that they have exchanged.
 *
 * Blocking:  offer, connect and enroll may, the last two until a deadline: every rank calls them, in the same order. The others do not.
 * Ownership: of an end the caller's, until close; while a call of the plugin has not returned, its thread keeps it. Memory stays registered until it is withdrawn, or the end is closed.
 * Threads:   put, test and progress: any, one at a time is let in. The rest: one at a time.
 * Errors:    one of the plugin, with its name, the call and the ranks.
 */
#ifndef KL_NET_RMA_H
#define KL_NET_RMA_H

#include "net/net.h"

struct kl_net_rma;

enum { KL_NET_RMA_NAME = 64 };

/** To all ranks. */
struct kl_net_rma_offer {
    char name[KL_NET_RMA_NAME]; /* "": this rank has none */
    int32_t version;
    struct kl_net_handle handle;
};

/** An end of `rank` on a device (any number), which listens. NULL: the process has no plugin that can be used, as the log says. */
struct kl_net_rma *kl_net_rma_offer(int device, int rank, struct kl_net_rma_offer *offer);

/** Have all of them the same plugin? If not, one line of level INFO names two that differ. */
bool kl_net_rma_agree(const struct kl_net_rma_offer *offers, int n);

/** Do not wait any longer: asked from time to time. */
typedef bool kl_net_rma_stop(void *ctx);

struct kl_net_rma_wait {
    uint64_t deadline;
    kl_net_rma_stop *stop;
    void *ctx;
};

ncclResult_t kl_net_rma_connect(struct kl_net_rma *end, const struct kl_net_rma_offer *offers, int n,
                                struct kl_net_rma_wait wait);

/** Register this rank's part of memory that all ranks register now. `counters`: it has the counters of puts. */
ncclResult_t kl_net_rma_enroll(struct kl_net_rma *end, void *data, size_t bytes, bool counters,
                               struct kl_net_rma_wait wait, void **mr);
void kl_net_rma_withdraw(struct kl_net_rma *end, void *mr);

/** Places are offsets in registered memory: of this rank, and of the same registration at `peer`. */
struct kl_net_rma_put {
    int peer;
    void *from_mr, *to_mr;
    uint64_t from, to;
    size_t bytes;
    void *counter_mr; /* NULL: data only; else 1 is added to the 64-bit counter behind the data */
    uint64_t counter;
};

/** A NULL request: not now. */
ncclResult_t kl_net_rma_put(struct kl_net_rma *end, const struct kl_net_rma_put *put, void **request);
ncclResult_t kl_net_rma_test(struct kl_net_rma *end, void *request, int peer, bool *done);

/** For puts of this rank and of others. */
ncclResult_t kl_net_rma_progress(struct kl_net_rma *end);

/** Puts are given up: their memory is not touched any more. */
void kl_net_rma_cancel(struct kl_net_rma *end);
void kl_net_rma_close(struct kl_net_rma *end);

extern const struct kl_param_set kl_net_rma_param_set;

#endif
