/* SPDX-License-Identifier: Apache-2.0 */
/**
 * attempt.h - the sender's side of making a connection: opens all its sockets concurrently, with retries.
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_SOCKET_ATTEMPT_H
#define KL_NET_SOCKET_ATTEMPT_H

#include "net/socket/config.h"
#include "net/socket/opening.h"
#include "os/socket.h"

struct kl_attempt;

struct kl_attempt_plan {
    const struct kl_net_end *me;
    union kl_address address;
    struct kl_retry retry;
    bool crypt;
    int lanes; /* in addition to the first socket */
};

ncclResult_t kl_attempt_create(const struct kl_attempt_plan *plan, struct kl_attempt **attempt);

/** Make progress. ncclSuccess: all are open, and both ends agree; ncclInProgress; or the failure. */
ncclResult_t kl_attempt_move(struct kl_attempt *a);

/** Socket `i`, open, to be read or taken (its `fd` is then -1). */
struct kl_opening *kl_attempt_opening(struct kl_attempt *a, int i);

/** Make an epoll instance watch the sockets. */
ncclResult_t kl_attempt_watch(struct kl_attempt *a, int epoll);

/** NULL is fine. */
void kl_attempt_free(struct kl_attempt *a);

#endif
