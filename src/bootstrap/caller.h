/* SPDX-License-Identifier: Apache-2.0 */
/**
 * caller.h - open an authenticated connection to a host (acceptor.h), on the event loop, without blocking.
 *
 * It connects and plays the caller's part of the handshake, at each address in turn until one answers: Unix addresses
 * of this place first (os/address.h). Of several others, one that sends no hello delays the rest by a second. While
 * none listens yet, or the connection is dropped before an answer (for lack of room, or by an earlier job at that
 * address), all are tried again, as `retry` says.
 *
 * Errors:   begin with `who_calls_whom`: no listener, no answer, another secret, another version, no such rank.
 * Threads:  start from any thread; the callback comes from the event loop, the only thread that may call cancel.
 */
#ifndef KL_BOOTSTRAP_CALLER_H
#define KL_BOOTSTRAP_CALLER_H

#include "bootstrap/handshake.h"
#include "event/loop.h"

#define KL_CALL_TEXT 256

struct kl_call {
    const union kl_address *addresses; /* of one host, KL_ADDRESSES at most */
    int naddresses;
    const struct kl_key *key;
    struct kl_hello hello; /* the caller's rank, and the host's */
    struct kl_retry retry;
    uint64_t deadline;
    uint64_t place; /* place whose Unix addresses can be reached */
    /* the interface through which link-local addresses are reached from here; 0: as given in the address */
    uint32_t scope;
    bool is_public; /* the key is public: a refused caller may have come from another host */
    bool quiet;     /* a failure is expected: it is logged at INFO */
    bool listening; /* the host has listened before: when every address refuses, its owner is gone */
    bool early;     /* the host may not have started: unknown rank or job is retried, until the deadline */
    const char *who_calls_whom;
};

struct kl_caller;

/**
 * End of a call; the caller object is freed. On success the connection is the callee's, or NULL when the answer was
 * KL_ELSEWHERE; its seals are to be copied. A failure: the sentence is the thread's last (kl_error_text).
 */
typedef void kl_caller_fn(void *ctx, ncclResult_t rc, const struct kl_connection *connection);

/**
 * Begin. Everything that `call` points to is copied. The callback may come before this returns, but after `*caller` is
 * set.
 */
ncclResult_t kl_caller_start(struct kl_loop *loop, const struct kl_call *call, kl_caller_fn *fn, void *ctx,
                             struct kl_caller **caller);

/** Cancel without a callback. On the event loop only. NULL is fine. */
void kl_caller_cancel(struct kl_caller *caller);

#endif
