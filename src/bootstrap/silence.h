/* SPDX-License-Identifier: Apache-2.0 */
/**
 * silence.h - a wait has been too long: who is silent, and whom does everybody wait for in the end?
 *
 * All ranks are asked who is there (census.h), and the event loop of each answers, whatever its own threads do. Whoever does not answer
 * is stopped or cut off, and is named; not the neighbour, which waits as well. Where all answer, the rank at the end of the
 * chain of those that wait for each other is named. A child that is being derived asks the parent as well: who answers there only is
 * alive, but has not come.
 *
 * Of ranks that ask at a time one finds out, and tells all (kl_bootstrap_report).
 */
#ifndef KL_BOOTSTRAP_SILENCE_H
#define KL_BOOTSTRAP_SILENCE_H

#include "bootstrap/state.h"

/** How much longer a wait takes at most, once its deadline has passed. */
enum { KL_SILENCE_MS = 12000 };

/**
 * The calling thread's wait for `peer` (-1: it is not known which) has passed its deadline: failure `rc`, with its last sentence.
 * Two seconds, or less where all answer; KL_SILENCE_MS where another rank finds out and does not tell. Returns the failure of
 * the bootstrap, which all ranks hear of, or `rc` with the sentence that there was, where nothing better is found. Not on the event
 * loop; without lock.
 */
ncclResult_t kl_silence_explain(struct kl_bootstrap *b, int peer, ncclResult_t rc);

#endif
