/* SPDX-License-Identifier: Apache-2.0 */
/** doubt.h - how long to wait for the reason why a peer's memory is unreachable. */
#ifndef KL_CHANNEL_DOUBT_H
#define KL_CHANNEL_DOUBT_H

/**
 * The peer has withdrawn its offer, or is gone: report the reason. A rank holds back a suspicion for a second
 * (kl_bootstrap_suspect), and then its notice takes a step per connection to get here; the rest is for busy hosts.
 */
enum { KL_DOUBT_MS = 3000 };

#endif
