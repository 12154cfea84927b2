/* SPDX-License-Identifier: Apache-2.0 */
/**
 * profile.h - events of a profiler for the steps of a network link: proxy operations, and their steps (os/profiler.h).
 *
 * A collective, or a message, on a link is a proxy operation, which has the next steps of the fifo: as many as are announced,
 * or, if their number is not known, all up to the one behind which no more follow. Steps of the link may be ahead of the
 * operations: those that have arrived before their operation began get their events when it begins.
 *
 *     send     SendGPUWait, SendPeerWait while the net has not taken it, SendWait, stop when it was sent
 *     receive  RecvWait, RecvFlushWait with its bytes, RecvGPUWait, stop when it is in the fifo
 *
 * Threads: as of the link.
 */
#ifndef KL_TRANSPORT_NET_PROFILE_H
#define KL_TRANSPORT_NET_PROFILE_H

#include "os/profiler.h"
#include "transport/net/link.h"

/** `steps` of an operation whose number of steps is not known. */
enum { KL_NET_PROFILE_STEPS_UNKNOWN = -1 };

/**
 * An operation begins with step `first`. `descr`: of a proxy operation. Without memory, or where too many operations have not
 * ended, it has no events.
 */
void kl_net_profile_begin(struct kl_net_link *link, const struct kl_profiler *profiler,
                          const struct kl_profile_descr *descr, uint64_t first);

/** The operation that began last is complete, and has had the steps before `end`. */
void kl_net_profile_end(struct kl_net_link *link, uint64_t end);

/** Before the net is handed the next step, which becomes the parent of its events; and behind. Only with link->profile. */
void kl_net_profile_hand_over(struct kl_net_link *link);
void kl_net_profile_handed_over(void);

/** Tell the progress of all steps. Only with link->profile. */
void kl_net_profile_update(struct kl_net_link *link);

/** Stop all open events. NULL is fine. */
void kl_net_profile_free(struct kl_net_profile *profile);

#endif
