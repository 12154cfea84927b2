/* SPDX-License-Identifier: Apache-2.0 */
/**
 * census.h - status query of one rank to all, over existing connections.
 *
 *      query      flooded over all connections: every rank gets it by the shortest working route
 *      answers    return by the same route, collected for a moment at each rank
 *
 * The event loop answers, independently of the rank's own threads: a rank without an answer is stopped, or cut off. A
 * rank that said goodbye to one that answers is known to have left, with its final status. Of simultaneous queries one
 * prevails: a later one that was sent knowing of the other, else the smaller number, else the lower rank. The other
 * ranks are told, and wait for its outcome: so a thousand simultaneous timeouts cost one query.
 *
 * Threads: under the bootstrap's lock, except create and free.
 */
#ifndef KL_BOOTSTRAP_CENSUS_H
#define KL_BOOTSTRAP_CENSUS_H

#include "bootstrap/state.h"

/** An empty query: any answer shows that the rank is alive. Ranks also connect with their partners to forward it. */
enum { KL_CENSUS_PRESENCE = 0 };

ncclResult_t kl_census_create(struct kl_bootstrap *b);

/** First step of leaving: nothing is forwarded any more. */
void kl_census_stop(struct kl_bootstrap *b);
void kl_census_free(struct kl_bootstrap *b);

/**
 * How many ranks have answered the own query so far; -1 if another rank's query is used. Fills in by rank: enum
 * kl_answered, and the rank it waits for in an exchange (-1: none). Takes the lock.
 */
int kl_census_presence(struct kl_bootstrap *b, unsigned char *state, int32_t *waits_for);

/** Called by links for each frame of a query; without lock. */
void kl_census_hear(struct kl_contact *peer, const struct kl_frame *frame);

#endif
