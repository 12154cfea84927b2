/* SPDX-License-Identifier: Apache-2.0 */
/**
 * process_table.h - what the ranks of a bootstrap that live in one process have together: a table of the cards of all
 * ranks, and what they gather.
 *
 * The lowest of these ranks *speaks*: records that they gather are handed to it, it exchanges them with the other speakers, and all of
 * them read the one table that comes of it. So with P processes of T ranks each, P of them talk, in log2 P steps, and there are
 * P tables instead of P * T. Until all have joined each rank has a table of its own, of which only what it writes, some of its
 * partners, takes memory.
 *
 * Threads: one per member.
 */
#ifndef KL_BOOTSTRAP_PROCESS_TABLE_H
#define KL_BOOTSTRAP_PROCESS_TABLE_H

#include "bootstrap/state.h"

/** b->placement and b->speakers are known: find the others, and gather all cards, of which b->cards becomes the process's table. */
ncclResult_t kl_process_table_gather(struct kl_bootstrap *b);

/** All cards are known: find the others, and have one table of them. */
ncclResult_t kl_process_table_share(struct kl_bootstrap *b);

/** Who waits for this rank there hears that it has left. Harmless if it never entered. */
void kl_process_table_leave(struct kl_bootstrap *b);

#endif
