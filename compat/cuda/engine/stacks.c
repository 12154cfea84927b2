/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/stacks.h"

#include "src/base/atomic.h"

#include <stdint.h>
#include <sys/mman.h>

/* A protected page splits a mapping in two, and a process has some 65000 mappings: later stacks have no guard, and their
 * mappings merge with their neighbours. */
enum { GUARD = 4096 * 4, LINE = 64, COLOURS = 31, GUARDED = 12000 };

static _Atomic unsigned guarded;

/* Stacks with their tops at one offset in a page would share few cache sets: each begins an odd number of lines lower. */
static size_t colour(unsigned which)
{
    return (size_t)LINE * (1 + 2 * (which % COLOURS));
}

static struct kl_stack *make(struct kl_stacks *stacks)
{
    size_t bytes = GUARD + stacks->bytes + 4096;
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct kl_stack *s;

    if (map == MAP_FAILED) return NULL;
    if (kl_load_relaxed(&guarded) < GUARDED && mprotect(map, GUARD, PROT_NONE) == 0)
        (void)kl_fetch_add_relaxed(&guarded, 1);
    s = (struct kl_stack *)(map + bytes - LINE - sizeof *s - (sizeof *s % LINE ? LINE - sizeof *s % LINE : 0));
    s->map = map;
    s->map_bytes = bytes;
    s->low = map + GUARD;
    s->bytes = (size_t)((char *)s - (map + GUARD)) / LINE * LINE;
    s->bytes -= colour(stacks->made++);
    return s;
}

struct kl_stack *kl_stacks_take(struct kl_stacks *stacks)
{
    struct kl_stack *s = stacks->free;

    if (!s) return make(stacks);
    stacks->free = s->next;
    return s;
}

void kl_stacks_give(struct kl_stacks *stacks, struct kl_stack *stack)
{
    stack->next = stacks->free;
    stacks->free = stack;
}

void kl_stacks_resize(struct kl_stacks *stacks, size_t bytes)
{
    if (stacks->bytes == bytes) return;
    for (struct kl_stack *s = stacks->free, *next; s; s = next) {
        next = s->next;
        (void)munmap(s->map, s->map_bytes); /* the count of guards never falls: sizes change rarely */
    }
    *stacks = (struct kl_stacks){.bytes = bytes};
}

bool kl_stack_overflowed(const struct kl_stack *stack, const void *address)
{
    uintptr_t at = (uintptr_t)address, low = (uintptr_t)stack->map;

    return at >= low && at < low + GUARD;
}
