/* SPDX-License-Identifier: Apache-2.0 */
/** algorithms.h - the table of algorithms. */
#ifndef KL_COLL_ALGORITHMS_ALGORITHMS_H
#define KL_COLL_ALGORITHMS_ALGORITHMS_H

#include "coll/pipeline/algorithm.h"
#include "coll/shm/shm_exchange.h"

extern const struct kl_algorithm kl_algorithm_ring, kl_algorithm_ring_chain, kl_algorithm_tree, kl_algorithm_nvls,
    kl_algorithm_nvls_tree, kl_algorithm_nvls_network, kl_algorithm_pat_gather, kl_algorithm_pat_scatter,
    kl_algorithm_chain, kl_algorithm_direct, kl_algorithm_oneshot, kl_algorithm_flat, kl_algorithm_ordered,
    kl_algorithm_ordered_ring, kl_algorithm_mapped;

/** All of them; ends with NULL. */
extern const struct kl_algorithm *const kl_algorithms[];

enum { KL_ALGORITHMS_MAX = 15 }; /* upper bound, without the NULL */

/** The row for a function, algorithm and protocol; `memory`: the ranks that can map the same memory. -1: there is
 * none. */
int kl_algorithm_find(int func, int algo, int proto, enum kl_peer_connect memory);

/** The board of ranks that have used Mapped, which carries notices as well. */
struct kl_shm_exchange *kl_mapped_board(struct kl_edges *links);

#endif
