/* SPDX-License-Identifier: Apache-2.0 */
/** failure.h - the one failure of a bootstrap: decide, forward and report it. */
#ifndef KL_BOOTSTRAP_FAILURE_H
#define KL_BOOTSTRAP_FAILURE_H

#include "bootstrap/state.h"

/**
 * The first one is recorded, wakes all waiting threads, and is sent to the other ranks and to the owner. Without lock.
 */
void kl_failure_hear(struct kl_bootstrap *b, const struct kl_notice *why);

/** Send the failure that has happened to a peer that is UP, or will be. Under lock. */
void kl_failure_tell(struct kl_contact *peer);

/**
 * An exchange with `peer` ended with `rc`: a failure other than misuse or abort is reported to all ranks. Returns `rc`.
 * Without lock.
 */
ncclResult_t kl_failure_settle(struct kl_bootstrap *b, int peer, ncclResult_t rc);

/**
 * kl_bootstrap_suspect, for a call that timed out: leaves time for a rank that waits for the same peer to find the
 * cause (silence.h).
 */
void kl_failure_suspect_late(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text);

/** Withdraw a pending suspicion of this rank. Under lock. */
void kl_failure_trust(struct kl_bootstrap *b, int rank);

/** Callback of the suspicion's timer. */
void kl_failure_on_clock(void *ctx, uint32_t events);

#endif
