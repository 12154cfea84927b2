/* SPDX-License-Identifier: Apache-2.0 */
/** paths_make.h - shared declarations of the files that compute paths. */
#ifndef KL_TOPO_PATHS_MAKE_H
#define KL_TOPO_PATHS_MAKE_H

#include "topo/paths.h"

/** Do paths start and end at nodes of this type? */
static inline bool kl_path_base(enum kl_node_type type)
{
    return type == KL_NODE_GPU || type == KL_NODE_NVS || type == KL_NODE_CPU || type == KL_NODE_NET;
}

/** The bounds of the searches, from the paths as they are and whether ranks are elsewhere. */
void kl_path_set_bounds(struct kl_topo *t);

/** Make room for `n` more entries of the hop pool. */
ncclResult_t kl_path_reserve(struct kl_topo *t, uint32_t n);

/** Make the tables, and fill them with the shortest path between any two ends. On failure they are incomplete. */
ncclResult_t kl_path_find_shortest(struct kl_topo *t);

/** Reroute the shortest paths by the rules of P2P, PXN and GPUDirect. */
ncclResult_t kl_path_apply_rules(struct kl_topo *t);

#endif
