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
    bool quiet;     /* a failure is expected: it is logged at INFO */
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

/** What somebody at an address has answered. */
struct kl_call_answer {
    enum kl_verdict verdict; /* 0: nothing yet */
    uint16_t version;
    union kl_address from;
};

/** Success for KL_WELCOME and KL_ELSEWHERE; otherwise a failure that says who refused us and why. */
ncclResult_t kl_call_judge(const struct kl_call_answer *answer, const char *who_calls_whom);

/** Is how an address failed (errno `err` where it is KL_IO_BROKEN) a reason to try all of them again? */
bool kl_call_worth_another(enum kl_io io, int err);

/** The number of an interface means something on its own host only: link-local addresses get ours. */
union kl_address kl_call_as_seen_from_here(const union kl_address *address, uint32_t scope);

#endif
