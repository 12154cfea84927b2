/* SPDX-License-Identifier: Apache-2.0 */
/** algorithms.h - the table of algorithms. */
#ifndef KL_COLL_ALGORITHMS_ALGORITHMS_H
#define KL_COLL_ALGORITHMS_ALGORITHMS_H

#include "coll/pipeline/algorithm.h"
#include "coll/shm/shm_exchange.h"

/** One row for each algorithm, in any order but that the first that serves is taken. */
#define KL_ALGORITHM_TABLE(ROW)                                                                                        \
    ROW(ring_chain)                                                                                                    \
    ROW(ring)                                                                                                          \
    ROW(tree)                                                                                                          \
    ROW(nvls)                                                                                                          \
    ROW(nvls_tree)                                                                                                     \
    ROW(nvls_network)                                                                                                  \
    ROW(pat_gather)                                                                                                    \
    ROW(pat_scatter)                                                                                                   \
    ROW(chain)                                                                                                         \
    ROW(direct)                                                                                                        \
    ROW(oneshot)                                                                                                       \
    ROW(flat)                                                                                                          \
    ROW(ordered)                                                                                                       \
    ROW(ordered_ring)                                                                                                  \
    ROW(peer_direct)

#define KL_ALGORITHM_DECLARED(name) extern const struct kl_algorithm kl_algorithm_##name;
KL_ALGORITHM_TABLE(KL_ALGORITHM_DECLARED)
#undef KL_ALGORITHM_DECLARED

#define KL_ALGORITHM_COUNTED(name) KL_ALGORITHM_ROW_##name,
enum { KL_ALGORITHM_TABLE(KL_ALGORITHM_COUNTED) KL_ALGORITHMS };
#undef KL_ALGORITHM_COUNTED

/** All of them; ends with NULL. */
extern const struct kl_algorithm *const kl_algorithms[];

/** The row for a function, algorithm and protocol; `memory`: the ranks that can map the same memory. -1: there is
 * none. */
int kl_algorithm_find(int func, int algo, int proto, enum kl_peer_connect memory);

/** Is it a schedule over edges from rank to rank, so that GPUs can follow its rows (coll/gpu/rows.h)? */
bool kl_algorithm_has_rows(int algorithm);

/** The shared-memory exchange of ranks that have used Mapped; it carries notices as well. */
struct kl_shm_exchange *kl_peer_direct_exchange(struct kl_edges *edges);

#endif
