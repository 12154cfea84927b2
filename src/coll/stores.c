/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/stores.h"

#include "device/host/bulk_copy.h"

enum { KEPT = 2 }; /* times what cores have for themselves: below, much of it stays there */

static void ask(struct kl_stores *s, int nranks)
{
    s->last = kl_cache_bytes();
    s->own = kl_cache_own_bytes(nranks);
    s->share = kl_cache_share_bytes(nranks);
}

static int size_of(const struct kl_stores *s, size_t all)
{
    int size = 0;

    while (size < KL_STORES_SIZES - 1 && all >> size >= 2 * KEPT * s->own) size++;
    return size;
}

/*
 * Where much of what is moved stays in the cores' own caches, it takes some operations until these are as one way leaves them: each way is tried by as many
 * as if they moved so little.
 */
enum { TRIED_AS = 512 << 10 };

static struct kl_lately *times_of(struct kl_stores *s, int nranks, size_t all)
{
    const bool large = all > s->share;
    const struct kl_lately_use use = {.bytes = large ? all / (size_t)nranks : TRIED_AS, .guess = large};

    return kl_lately_of(s->lately, KL_STORES_SIZES, size_of(s, all), use);
}

bool kl_stores_begin(struct kl_stores *s, int nranks, size_t all)
{
    if (!s->last) ask(s, nranks);
    const bool clear = all < KEPT * s->own || all > s->last;
    s->ns = 0;
    s->times = clear ? NULL : times_of(s, nranks, all);
    return s->past = clear ? all > s->last : kl_lately_way(s->times);
}

void kl_stores_copy(struct kl_stores *s, void *to, const void *from, size_t bytes)
{
    const uint64_t began = kl_stores_begin_copy(s);

    if (s->past) {
        kl_copy_nontemporal(to, from, bytes, NULL);
        kl_nontemporal_fence();
    } else {
        kl_copy_bulk(to, from, bytes);
    }
    kl_stores_end_copy(s, began);
}

/* Nothing was copied where the kernel did it: that is no use of either way. */
void kl_stores_end(struct kl_stores *s)
{
    struct kl_lately *l = s->times;

    s->times = NULL;
    if (!l || !s->ns) return;
    kl_lately_took(l, s->ns);
    if (kl_lately_is_compared(l)) kl_lately_decide(l, l->ns);
}
