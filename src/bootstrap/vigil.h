/* SPDX-License-Identifier: Apache-2.0 */
/**
 * vigil.h - detection of dead connections that the OS does not report in time.
 *
 * TCP keepalive covers idle connections to other hosts (os/socket.h), but unacknowledged data is retransmitted for a
 * quarter of an hour. Within a host there are no probes: connections end with the process, unless the host has lost
 * their address. So every 5 seconds the event loop checks both: a peer that acknowledges no data for 20 seconds is
 * lost, and a rank without its address for as long fails. The kernel of a stopped peer still acknowledges.
 *
 * Threads: begin under the bootstrap's lock; the rest on the event loop.
 */
#ifndef KL_BOOTSTRAP_VIGIL_H
#define KL_BOOTSTRAP_VIGIL_H

#include "bootstrap/state.h"

/** Begin to watch the connection with `peer`. */
void kl_vigil_begin(struct kl_contact *peer);

/** Callback of the bootstrap's `vigil` timer. */
void kl_vigil_on_clock(void *bootstrap, uint32_t events);

#endif
