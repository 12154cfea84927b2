/* SPDX-License-Identifier: Apache-2.0 */
/**
 * submit.h - queue work that a program gives to a stream directly: functions, copies, marks.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_HOST_SUBMIT_H
#define KL_DEVICE_HOST_SUBMIT_H

#include "device/host/stream.h"

/** Queue a copy of `work`; on a stream that runs inside the call it has run when this returns. */
ncclResult_t kl_submit(struct kl_stream *stream, const struct kl_work *work);

/** The same for `fn(arg)`: function.h. */
ncclResult_t kl_submit_function(struct kl_stream *stream, kl_function fn, void *arg);

#endif
