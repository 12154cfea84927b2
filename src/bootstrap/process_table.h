/* SPDX-License-Identifier: Apache-2.0 */
/**
 * process_table.h - data that the ranks of a bootstrap in one process share: a table of all ranks' address records, and
 * the results of gathers.
 *
 * The lowest of these ranks is the leader: it collects the members' records, exchanges them with the other leaders, and
 * all members read the one resulting table. So with P processes of T ranks each, P ranks exchange in log2 P steps, and
 * there are P tables instead of P * T. Until all have joined each rank has a table of its own, of which only the few
 * entries written take memory.
 *
 * Threads: one per member.
 */
#ifndef KL_BOOTSTRAP_PROCESS_TABLE_H
#define KL_BOOTSTRAP_PROCESS_TABLE_H

#include "bootstrap/state.h"

/**
 * b->placement and b->leaders are known: find the other members, and gather all address records into the process's
 * table, which becomes b->address_records.
 */
ncclResult_t kl_process_table_gather(struct kl_bootstrap *b);

/** All address records are known: find the other members, and share one table of them. */
ncclResult_t kl_process_table_share(struct kl_bootstrap *b);

/** Members that wait for this rank are told that it has left. Harmless if it never entered. */
void kl_process_table_leave(struct kl_bootstrap *b);

#endif
