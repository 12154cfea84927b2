/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stacks.h - the stacks that threads of kernels run on: mapped on demand, with an inaccessible page below, and kept for reuse.
 *
 * Threads: a pool belongs to one worker, and so to one OS thread at a time.
 */
#ifndef KL_ENGINE_STACKS_H
#define KL_ENGINE_STACKS_H

#include <stdbool.h>
#include <stddef.h>

/** A stack. It lies at its own upper end; `low` and `bytes` are the usable rest. */
struct kl_stack {
    struct kl_stack *next;
    void *map;
    size_t map_bytes;
    void *low;
    size_t bytes;
};

struct kl_stacks {
    struct kl_stack *free;
    size_t bytes;  /**< of each one of the pool */
    unsigned made; /**< since the size was last changed */
};

/** A stack of at least `stacks->bytes`, NULL if there is no memory. */
struct kl_stack *kl_stacks_take(struct kl_stacks *stacks);
void kl_stacks_give(struct kl_stacks *stacks, struct kl_stack *stack);

/** From now on stacks have `bytes`; those in the pool go. All must have been given back. */
void kl_stacks_resize(struct kl_stacks *stacks, size_t bytes);

/** Does `address` lie in the page below the stack? */
bool kl_stack_overflowed(const struct kl_stack *stack, const void *address);

#endif
