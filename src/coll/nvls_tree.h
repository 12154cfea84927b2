/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls_tree.h - NVLS between nodes: a tree joins heads of the same number; sums go up, and results come down.
 *
 *     its node                          head                              its parent
 *     contributions  --->  adds up, with the sums of its children  --->   ...
 *     results        <---  publishes, and tells its children       <---   ...
 *
 * A slice is one step on each edge; edges are numbered as in trees (schedule.h). The root turns slices round.
 * Slices go up while others come down, as many as the memory of the node has slots (nvls.h).
 *
 * Errors:  ncclInvalidUsage when another head made another call (signature.h), or has another size.
 * Threads: one at a time. Never waits or allocates.
 */
#ifndef KL_COLL_NVLS_TREE_H
#define KL_COLL_NVLS_TREE_H

#include "coll/links.h"

/** The data of one step. */
struct kl_nvls_chunk {
    const struct kl_redop *redop;
    size_t count, bytes;
    uint64_t signature; /* of the operation */
    const char *name;   /* of the collective, for errors */
};

/** Have the sums of all children arrived, and is there room for the result? */
bool kl_nvls_tree_may_rise(const struct kl_links *tree);

/** Place for a sum that goes up. There is a parent, and room. */
void *kl_nvls_tree_target(const struct kl_links *tree, size_t bytes);

/** Add the children's data to `sum`. False: there is an error in *rc, or a child has revoked its data and reports the
 * reason elsewhere. */
bool kl_nvls_tree_add(const struct kl_links *tree, const struct kl_nvls_chunk *chunk, void *sum, ncclResult_t *rc);

/** Send the contents of the target up. */
void kl_nvls_tree_rise(const struct kl_links *tree, size_t bytes);

/** Have the parent's result and room at the children arrived? There is a parent. */
bool kl_nvls_tree_may_fall(const struct kl_links *tree);

/** Take it. False as above. */
bool kl_nvls_tree_take(const struct kl_links *tree, const struct kl_nvls_chunk *chunk, void *to, ncclResult_t *rc);

/** Send the children a result, which stays in place until kl_links_drained. */
void kl_nvls_tree_tell(const struct kl_links *tree, const void *result, size_t bytes);

/** A head that a slice waits for, on its way up or down; with `gone`, only one that has left. -1: none. */
int kl_nvls_tree_blocked_on(const struct kl_links *tree, bool rises, bool falls, bool gone);

#endif
