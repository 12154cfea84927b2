/* SPDX-License-Identifier: Apache-2.0 */
/**
 * caller.h - open an authenticated connection to somebody's door without anybody waiting for it: the event loop does it.
 *
 * It does what kl_call does (call.h): all addresses in turn, in rounds, until one answers.
 *
 * Threads:  start from any thread; the callback comes from the event loop, where alone cancel may be called.
 */
#ifndef KL_BOOTSTRAP_CALLER_H
#define KL_BOOTSTRAP_CALLER_H

#include "bootstrap/call.h"
#include "bootstrap/record.h"
#include "event/loop.h"

struct kl_caller;

/**
 * How it ended; the caller is gone. Success: the socket is yours, or -1 when the answer was KL_ELSEWHERE. A failure: its
 * sentence is the thread's last (kl_error_text). It was logged only if the call was not a quiet one.
 */
typedef void kl_caller_fn(void *ctx, ncclResult_t rc, int fd);

/** Begin. What `call` and `who_calls_whom` point to is copied. The callback may come before this returns. */
ncclResult_t kl_caller_start(struct kl_loop *loop, const struct kl_call *call, uint64_t deadline,
                             const char *who_calls_whom, kl_caller_fn *fn, void *ctx, struct kl_caller **caller);

/** Give up without a callback. On the event loop only. NULL is fine. */
void kl_caller_cancel(struct kl_caller *caller);

#endif
