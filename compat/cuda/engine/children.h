/* SPDX-License-Identifier: Apache-2.0 */
/** children.h - grids that kernels launch, in the order of their launches. A list belongs to one thread, or is used under a lock. */
#ifndef KL_ENGINE_CHILDREN_H
#define KL_ENGINE_CHILDREN_H

#include "compat/cuda/engine/engine.h"

/** A launch with its arguments. */
struct kl_child {
    struct kl_child *next;
    struct kl_engine_launch launch;
    _Alignas(64) char arguments[];
};

struct kl_children {
    struct kl_child *first, *last;
};

void kl_children_add(struct kl_children *list, struct kl_child *child);

/** The first one, which the caller frees; NULL: there is none. */
struct kl_child *kl_children_take(struct kl_children *list);

/** Move all of `more` before the entries of `list`. */
void kl_children_put_first(struct kl_children *list, struct kl_children *more);
void kl_children_drop(struct kl_children *list);

#endif
