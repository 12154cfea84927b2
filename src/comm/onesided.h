/* SPDX-License-Identifier: Apache-2.0 */
/**
 * onesided.h - one-sided operations of a communicator, as work of streams.
 *
 * They keep the order of their stream, and none with the communicator's other operations.
 */
#ifndef KL_COMM_ONESIDED_H
#define KL_COMM_ONESIDED_H

#include "comm/comm.h"

struct kl_put {
    const char *function; /* for texts */
    int peer, context, signal;
    const void *data; /* NULL with `window` 0: only a signal */
    size_t bytes, offset;
    ncclWindow_t window;
};

/** Wrong arguments: ncclInvalidArgument. No window was made yet: ncclInvalidUsage. */
ncclResult_t kl_comm_put(ncclComm_t comm, const struct kl_put *put, struct kl_stream *stream);
ncclResult_t kl_comm_await_signals(ncclComm_t comm, const ncclWaitSignalDesc_t *wanted, int n,
                                   struct kl_stream *stream);

#endif
