/* SPDX-License-Identifier: Apache-2.0 */
/**
 * onesided.h - one-sided operations of a communicator, as work of streams.
 *
 * They keep the order of their stream, but none with the communicator's other operations. In a group they are launched
 * at its end: if they were called before its first collective or message, before these, which are one launch; else
 * after them.
 */
#ifndef KL_COMM_ONESIDED_H
#define KL_COMM_ONESIDED_H

#include "comm/comm.h"

struct kl_put {
    const char *function; /* for error texts */
    int peer, context, signal;
    const void *data; /* NULL with `window` 0: only a signal */
    size_t bytes, offset;
    ncclWindow_t window;
};

/** Wrong arguments: ncclInvalidArgument. No window was made yet, or the stream captures: ncclInvalidUsage. */
ncclResult_t kl_comm_put(ncclComm_t comm, const struct kl_put *put, struct kl_stream *stream);
ncclResult_t kl_comm_await_signals(ncclComm_t comm, const ncclWaitSignalDesc_t *wanted, int n,
                                   struct kl_stream *stream);

/* ---- operations of the open group ---- */

static inline bool kl_comm_has_onesided(const struct ncclComm *comm)
{
    return comm->onesided[KL_ONESIDED_BEFORE].first || comm->onesided[KL_ONESIDED_AFTER].first;
}

/** Does the stream of each still exist, and not capture? Then order it behind the default stream's work. */
ncclResult_t kl_comm_check_onesided(ncclComm_t comm);

void kl_comm_launch_onesided(ncclComm_t comm, enum kl_onesided_turn turn);
void kl_comm_drop_onesided(ncclComm_t comm);

#endif
