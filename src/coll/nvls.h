/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls.h - memory that all ranks of a host map. A rank that adds up contributions and publishes results in it is called
 * a *head*: the ranks do the work of a switch for GPUs (NVLS). One memory per channel; the protocol is in nvls.c.
 *
 *     other ranks                      head                         other ranks
 *     contribution[rank][slot]  --->   adds up      result[slot]  --->   take it
 *
 * Each head counts *steps*; all ranks take part in every step. Step t uses slot t % steps. A reduce-scatter has empty
 * results, an all-gather no contributions. A line holds small data itself.
 *
 * Sizes:   grow with the square of nranks; pages are allocated when touched.
 * Trust:   sizes in lines are compared with the expected ones before any data are touched.
 * Threads: one thread at a time per rank.
 * Source:  the graph specification, 14.6; the runtime specification, 3.12.
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
