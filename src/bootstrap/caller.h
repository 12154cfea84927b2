/* SPDX-License-Identifier: Apache-2.0 */
/**
 * caller.h - open an authenticated connection to somebody who listens. The event loop does it, and nobody waits for it.
 *
 * It connects and plays the caller's part of the handshake, at each address in turn until one answers: first at a door, if it can be
 * reached from here (os/address.h). Of several others, one that says no hello holds up the rest for a second. While nobody listens yet, or drops us before an answer (he had no
 * room, or belonged to an earlier job at that address), all are tried again, as `retry` says.
 *
 * Errors:   begin with `who_calls_whom`: nobody there, no answer, another secret, another version, nobody of that rank.
 * Threads:  start from any thread; the callback comes from the event loop, where alone cancel may be called.
 */
#ifndef KL_BOOTSTRAP_CALLER_H
#define KL_BOOTSTRAP_CALLER_H

#include "bootstrap/handshake.h"
#include "event/loop.h"

#define KL_CALL_TEXT 256

struct kl_call {
    const union kl_address *addresses; /* of one listener, KL_ADDRESSES at most */
    int naddresses;
    const struct kl_key *key;
    struct kl_hello hello; /* our rank, and whom we want */
    struct kl_retry retry;
    uint64_t deadline;
    uint64_t place; /* whose doors are reached from here */
    uint32_t scope; /* the interface through which link-local addresses are reached from here; 0: as they say */
    bool is_public; /* everybody knows the key: who is refused may have come from another host */
    bool quiet;     /* a failure is expected: it is logged at INFO */
    bool listening; /* it has listened: when every address refuses us, its owner is gone */
    bool early; /* whom we want may not be there yet: that nobody knows it is worth another round, until the deadline */
    const char *who_calls_whom;
};

struct kl_caller;

/**
 * How it ended; the caller is gone. Success: the connection is yours, or NULL when the answer was KL_ELSEWHERE; its seals are to be
 * copied. A failure: its sentence is the thread's last (kl_error_text).
 */
typedef void kl_caller_fn(void *ctx, ncclResult_t rc, const struct kl_connection *connection);

/** Begin. What `call` points to is copied. The callback may come before this returns, but after `*caller` is set. */
ncclResult_t kl_caller_start(struct kl_loop *loop, const struct kl_call *call, kl_caller_fn *fn, void *ctx,
                             struct kl_caller **caller);

/** Give up without a callback. On the event loop only. NULL is fine. */
void kl_caller_cancel(struct kl_caller *caller);

#endif
