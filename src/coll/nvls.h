/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls.h - memory that all ranks of a host map, and through which a rank adds up all contributions and publishes data
 * to all others at once: the operations of a switch for GPUs (NVLS), done by the ranks themselves.
 *
 * A rank that adds up or publishes is called a *head*. Each head has a sequence of *steps*, counted since the memory,
 * which belongs to one channel, was made. All ranks take part in every step, so that all count alike. Step t uses slot
 * t % steps:
 *
 *     other ranks                      head                         other ranks
 *     contribution[rank][slot]  --->   adds up      result[slot]  --->   take it
 *
 * An all-reduce does both halves. A reduce-scatter has empty results, which only signal that the contributions have
 * been read; an all-gather has no contributions, and ranks count the results they took in taken[rank].
 *
 *      per head, lines of 128 bytes:    written by
 *          taken[rank]                  that rank
 *          contribution[rank][slot]     that rank
 *          result[slot]                 the head
 *      per head, chunk_bytes each:
 *          contribution[rank][slot]     that rank
 *          result[slot]                 the head
 *
 * A line signals that a step's data are there and holds them itself when they are small, so that little data cost one
 * line transfer.
 *
 * Invariant:    a rank contributes to step t only once it has taken result t - steps, and seen that it was published.
 *               a head publishes step t only once all have taken result t - steps: they contributed to t, or counted it in taken.
 * Who owns a slot:  a contribution: its rank until ready, then the head until it publishes; a result: the head until
 *               ready, then each rank until it has contributed to the slot's next step, or counted it in taken.
 * Memory order: ready is stored with release after the data, loaded with acquire before them; taken is stored with
 *               release after reading, loaded with acquire before a result is overwritten. A contribution is overwritten after
 *               an acquire of the result that the head stored with release after reading it.
 * Sizes:        grow with the square of nranks; pages are allocated when touched.
 * Trust:        the memory was attached over an authenticated connection, yet sizes in lines are compared with what the
 *               operation expects before any data is touched.
 * Threads:      one thread at a time per rank.
 * Source:       the graph specification, 14.6; the runtime specification, 3.12.
 */
#ifndef KL_COLL_NVLS_H
#define KL_COLL_NVLS_H

#include "channel/arena.h"
#include "include/nccl.h"

#define KL_NVLS_INLINE 112u /* bytes of data in a line */

enum { KL_NVLS_STEPS = 4 }; /* default number of slots: two in flight on either side of a head */

struct kl_nvls_line {
    alignas(KL_LINE) _Atomic uint64_t ready; /* step + 1 once that step's data are here; taken: steps */
    uint32_t bytes;
    uint32_t operation; /* this rank's call, as in struct kl_nvls_task */
    unsigned char payload[KL_NVLS_INLINE];
};
_Static_assert(sizeof(struct kl_nvls_line) == KL_LINE, "one writer per line");

struct kl_nvls_shape {
    uint32_t nranks, steps;
    uint64_t chunk_bytes; /* of a slot; multiple of KL_LINE */
};

/** A rank's view of a channel's memory. */
struct kl_nvls {
    struct kl_nvls_line *lines;       /* begin of the memory */
    const struct kl_arena_mark *mark; /* by rank: the marks of ranks that have left */
    struct kl_nvls_shape shape;
    int rank;       /* among those that share the memory */
    uint64_t *step; /* by head: the next step */
};

/** Bytes of a slot for so many ranks: `wanted` (NCCL_NVLS_CHUNKSIZE), limited so that a rank's share stays in its
 * cache. */
uint64_t kl_nvls_chunk_bytes(int nranks, uint64_t wanted);

/** Bytes of the memory; 0 for an impossible shape. It is zero at first, aligned to KL_LINE, and belongs to the caller. */
size_t kl_nvls_bytes(const struct kl_nvls_shape *shape);

/** The view of `rank`; kl_nvls_attach gives it the memory, before its first operation. */
ncclResult_t kl_nvls_init(struct kl_nvls *nvls, const struct kl_nvls_shape *shape, int rank);
void kl_nvls_attach(struct kl_nvls *nvls, void *memory, const struct kl_arena_mark *mark);

/** Free the view. Works on zeroed memory. */
void kl_nvls_fini(struct kl_nvls *nvls);

/* ---- a head's steps ---- */

/** Slots and lines of a head, seen by one rank. */
struct kl_nvls_head {
    struct kl_nvls_line *taken, *contributions, *results;
    unsigned char *contributed, *published; /* data of the slots */
    uint32_t steps;
    uint64_t chunk_bytes;
};

struct kl_nvls_head kl_nvls_head(const struct kl_nvls *nvls, int head);

static inline struct kl_nvls_line *kl_nvls_contribution(const struct kl_nvls_head *h, int rank, uint64_t step)
{
    return &h->contributions[(size_t)rank * h->steps + step % h->steps];
}

static inline struct kl_nvls_line *kl_nvls_result(const struct kl_nvls_head *h, uint64_t step)
{
    return &h->results[step % h->steps];
}

/** Address of the `bytes` of a contribution or a result. */
static inline void *kl_nvls_contributed(const struct kl_nvls_head *h, int rank, uint64_t step, size_t bytes)
{
    if (bytes <= KL_NVLS_INLINE) return kl_nvls_contribution(h, rank, step)->payload;
    return h->contributed + ((size_t)rank * h->steps + step % h->steps) * h->chunk_bytes;
}

static inline void *kl_nvls_published(const struct kl_nvls_head *h, uint64_t step, size_t bytes)
{
    if (bytes <= KL_NVLS_INLINE) return kl_nvls_result(h, step)->payload;
    return h->published + step % h->steps * h->chunk_bytes;
}

/** Is the step of the line ready? */
static inline bool kl_nvls_ready(const struct kl_nvls_line *line, uint64_t step)
{
    return kl_load_acquire(&line->ready) == step + 1; /* pairs with kl_nvls_announce */
}

/** Publish the step, after writing the data. */
static inline void kl_nvls_announce(struct kl_nvls_line *line, uint64_t step, size_t bytes, uint32_t operation)
{
    line->bytes = (uint32_t)bytes;
    line->operation = operation;
    kl_store_release(&line->ready, step + 1); /* pairs with kl_nvls_ready, kl_nvls_may_contribute */
}

/** Has the head read the slot's earlier contribution? The caller knows itself which results it has taken. */
static inline bool kl_nvls_may_contribute(const struct kl_nvls_head *h, uint64_t step)
{
    if (step < h->steps) return true;
    return kl_load_acquire(&kl_nvls_result(h, step)->ready) + h->steps > step; /* pairs with kl_nvls_announce */
}

/** Has this rank taken the slot's earlier result? Heads ask in operations without contributions. */
static inline bool kl_nvls_may_publish(const struct kl_nvls_head *h, int rank, uint64_t step)
{
    if (step < h->steps) return true;
    return kl_load_acquire(&h->taken[rank].ready) + h->steps > step; /* pairs with kl_nvls_take */
}

/** Publish that this rank has taken all results before `step`. */
static inline void kl_nvls_take(const struct kl_nvls_head *h, int rank, uint64_t step)
{
    kl_store_release(&h->taken[rank].ready, step); /* pairs with kl_nvls_may_publish */
}

#endif
