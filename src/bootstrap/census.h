/* SPDX-License-Identifier: Apache-2.0 */
/**
 * census.h - where is everybody? A question of one rank to all, and their answers, over the connections that there are.
 *
 *      question   passed on to all connected ranks, once: everybody hears it over the shortest way that works
 *      answers    back along that way, gathered for a moment at each rank
 *
 * The event loop answers, whatever the rank's own threads do. Who does not answer is stopped, or cut off. A rank that said goodbye
 * to one that answers is known to have left, with its last words. Of questions asked at a time one counts: the later one that was
 * asked knowing of the other, else that with the smaller number, else that of the lower rank. Who asked the other one is told, and
 * waits for what comes of it: thus a thousand ranks that get impatient at once cost one question and not a thousand.
 *
 * Threads: under the bootstrap's lock, but for the two that are created and freed.
 */
#ifndef KL_BOOTSTRAP_CENSUS_H
#define KL_BOOTSTRAP_CENSUS_H

#include "bootstrap/state.h"

/** A question without content: any answer shows that the rank is alive. Ranks also connect with their partners to pass it on. */
enum { KL_CENSUS_PRESENCE = 0 };

ncclResult_t kl_census_create(struct kl_bootstrap *b);

/** First of all when leaving: nothing more is passed on. */
void kl_census_stop(struct kl_bootstrap *b);
void kl_census_free(struct kl_bootstrap *b);

/**
 * How many ranks are known so far, of the own question; -1 if another rank's counts. With it, by rank: enum kl_answered, and which
 * rank it waits for in an exchange (-1: none). Takes the lock.
 */
int kl_census_presence(struct kl_bootstrap *b, unsigned char *state, int32_t *waits_for);

/** For links: a frame of a census has come; without lock. */
void kl_census_hear(struct kl_contact *peer, const struct kl_frame *frame);

#endif
