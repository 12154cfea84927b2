/* SPDX-License-Identifier: Apache-2.0 */
/**
 * silence.h - diagnosis of a timeout: find the rank that is silent, or that all others wait for.
 *
 * All ranks are queried (census.h); each one's event loop answers, independently of its own threads. A rank that does
 * not answer is stopped or cut off, and is blamed, not a neighbour that waits as well. If all answer, the rank at the
 * end of the chain of waits is blamed. A child that is being derived queries the parent as well: a rank that answers
 * only there is alive, but has not joined the child.
 *
 * Of simultaneous queries one prevails, and its rank tells all (kl_bootstrap_report).
 */
#ifndef KL_BOOTSTRAP_SILENCE_H
#define KL_BOOTSTRAP_SILENCE_H

#include "bootstrap/state.h"

/** Longest time that the diagnosis adds to a wait. */
enum { KL_SILENCE_MS = 12000 };

/**
 * The calling thread's wait for `peer` (-1: unknown) has passed its deadline: failure `rc`, with its last sentence.
 * Takes two seconds, or less if all answer; KL_SILENCE_MS if another rank investigates and does not report. Returns the
 * failure of the bootstrap, which all ranks are told, or `rc` with the existing sentence, if no better one is found.
 * Not on the event loop; without lock.
 */
ncclResult_t kl_silence_explain(struct kl_bootstrap *b, int peer, ncclResult_t rc);

#endif
