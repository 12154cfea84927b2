/* SPDX-License-Identifier: Apache-2.0 */
/** call.h - open an authenticated connection to somebody's door. */
#ifndef KL_BOOTSTRAP_CALL_H
#define KL_BOOTSTRAP_CALL_H

#include "bootstrap/handshake.h"

struct kl_call {
    const union kl_address *addresses; /* of one door */
    int naddresses;
    const struct kl_key *key;
    struct kl_hello hello; /* our rank, and whom we want */
    struct kl_retry retry;
    uint32_t scope; /* the interface through which link-local addresses are reached from here; 0: as they say */
    bool listening; /* the door has been opened: when every address refuses us, its owner is gone */
};

/**
 * Connect and play the caller's part of the handshake, at each address in turn until one answers. With several, one that
 * stays silent holds up the others for a second. While the door does not exist yet, or drops us before it has answered
 * (it had no room, or belonged to an earlier job at that address), all are tried again, as `retry` says.
 * Success: the socket is the caller's, or -1 when the answer was KL_ELSEWHERE. Everything else is a failure whose sentence
 * begins with `who_calls_whom`: no answer, another secret, another version, nobody of that rank there.
 */
ncclResult_t kl_call(const struct kl_call *call, const struct kl_wait *wait, const char *who_calls_whom, int *fd);

#endif
