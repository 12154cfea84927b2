/* SPDX-License-Identifier: Apache-2.0 */
/**
 * vigil.h - connections that have died without a word, and that the system does not tell of.
 *
 * It probes connections on which nothing is under way (os/socket.h), but waits a quarter of an hour for the acknowledgement of what is;
 * and within a host it probes nothing, as connections end there with the process, unless the host has lost the address that they
 * are on. So every 5 seconds the event loop looks at both: what is not acknowledged for 20 seconds is lost, and who has had no address for
 * as long fails. A peer that stands still acknowledges all the same.
 *
 * Threads: begin under the bootstrap's lock; the rest on the event loop.
 */
#ifndef KL_BOOTSTRAP_VIGIL_H
#define KL_BOOTSTRAP_VIGIL_H

#include "bootstrap/state.h"

/** There is a connection with `peer` now. */
void kl_vigil_begin(struct kl_contact *peer);

/** The callback of the bootstrap's `vigil`. */
void kl_vigil_on_clock(void *bootstrap, uint32_t events);

#endif
