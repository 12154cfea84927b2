/* SPDX-License-Identifier: Apache-2.0 */
/** failure.h - the one failure of a bootstrap: deciding, spreading and reporting it. */
#ifndef KL_BOOTSTRAP_FAILURE_H
#define KL_BOOTSTRAP_FAILURE_H

#include "bootstrap/state.h"

/** The first one is recorded, wakes everybody here, and is told to the other ranks and to our owner. Without lock. */
void kl_failure_hear(struct kl_bootstrap *b, const struct kl_notice *why);

/** Send the failure that has happened to a peer that is UP, or will be. Under lock. */
void kl_failure_tell(struct kl_contact *peer);

/**
 * An exchange with `peer` came out as `rc`: a failure that is not the caller's mistake nor an abort concerns everybody, who
 * hear of it. Returns `rc`. Without lock.
 */
ncclResult_t kl_failure_settle(struct kl_bootstrap *b, int peer, ncclResult_t rc);

/** kl_bootstrap_suspect, of a call that nobody has answered in time: whoever waits for the peer as well finds out more (silence.h). */
void kl_failure_suspect_late(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text);

/** Nothing is suspected of this rank any more. Under lock. */
void kl_failure_trust(struct kl_bootstrap *b, int rank);

/** The callback of the suspicion's clock. */
void kl_failure_on_clock(void *ctx, uint32_t events);

#endif
