/* SPDX-License-Identifier: Apache-2.0 */
/** doubt.h - how long to wait for the reason why a peer's memory is out of reach. */
#ifndef KL_CHANNEL_DOUBT_H
#define KL_CHANNEL_DOUBT_H

/**
 * The peer has taken back what it offered, or is gone: the news is why. A rank holds back what it only suspects for a
 * second (kl_bootstrap_suspect), and then its word takes a step per connection to get here; the rest is for busy hosts.
 */
enum { KL_DOUBT_MS = 3000 };

#endif
