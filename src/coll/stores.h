/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stores.h - whether an operation writes its results past the caches, which saves reading what it overwrites, or through them.
 *
 * What fits in the caches that cores have for themselves is written through them, and what does not fit in the last level, past them. In between it depends
 * on how near the last level is, and on how much of it others use. The system does not tell: a virtual machine shows a whole cache that many more cores share.
 * So both are tried there (lately.h), by the time that the copying itself takes. Each rank decides for itself: the results are the same.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_STORES_H
#define KL_COLL_STORES_H

#include "base/clock.h"
#include "coll/lately.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_STORES_SIZES = 10 }; /* powers of 2, from what is more than the ranks' own caches hold */

/** Of operations that are alike. */
struct kl_stores {
    /* Bytes of the caches: the ranks' cores' own, what they may count on, and the last level. 0: not asked for yet */
    size_t own, share, last;
    struct kl_lately lately[KL_STORES_SIZES];
    bool past;               /* the operation under way writes past the caches */
    struct kl_lately *times; /* of that operation; NULL: it is clear how it stores */
    uint64_t ns;             /* that its copies have taken so far */
};

/** An operation begins in which `nranks` ranks of this host read and write so many bytes together. Does it write past the caches? */
bool kl_stores_begin(struct kl_stores *stores, int nranks, size_t all);

/** It is complete. One that fails need not end. */
void kl_stores_end(struct kl_stores *stores);

/** Before and after a copy of the operation's results. The first returns what the second takes. */
static inline uint64_t kl_stores_begin_copy(const struct kl_stores *stores)
{
    return stores->times ? kl_now_ns() : 0;
}

static inline void kl_stores_end_copy(struct kl_stores *stores, uint64_t began)
{
    if (stores->times) stores->ns += kl_now_ns() - began;
}

/** A whole copy of results, as the operation stores. Others may be told of it then. */
void kl_stores_copy(struct kl_stores *stores, void *to, const void *from, size_t bytes);

#endif
