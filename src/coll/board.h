/* SPDX-License-Identifier: Apache-2.0 */
/**
 * board.h - memory that all ranks of a host map, in which each posts what it has to say and all read it: an exchange of everybody
 * with everybody takes one flag, however many they are.
 *
 * Time is counted in *turns*, which all ranks go through alike, in order. In a turn every rank posts once. A post is a line, which
 * holds little data itself, and for more a cell, a tray, or a slot:
 *
 *      by rank, lines of 128 bytes:     written by
 *          done                         that rank: so many turns are behind it, or a few more
 *          post[turn % KL_BOARD_POSTS]  that rank
 *      by rank, cell_bytes each:
 *          cell[turn % KL_BOARD_CELLS]  that rank
 *      by rank, tray_bytes each:
 *          tray[turn % KL_BOARD_TRAYS]  that rank, where nobody else posts data
 *      by rank, slot_bytes each:
 *          slot[turn % nslots]          that rank
 *
 * So a rank that posts needs nobody's leave until it has gone once round: a broadcast's root runs ahead of those who read. There are so many slots
 * that what is written anew has left the caches of those who read it before (kl_cache_cycle).
 *
 * That all ranks make the same call shows in the signatures of their posts. Who takes data of some only compares with its neighbour for the
 * rest, up to KL_BOARD_LAG turns later: so readers need not keep step with each other.
 *
 * Invariant:    who posts in turn t knows that all ranks are done with turn t - KL_BOARD_AHEAD, for a cell t - KL_BOARD_CELLS, for a slot
 *               t - nslots, for a tray t - KL_BOARD_TRAYS.
 *               It knows so from their own posts (who posts in turn t is done with those before), or else from `done`.
 *               Who is done with turn t has compared all before t - KL_BOARD_LAG: their lines may be written anew.
 * Memory order: ready is stored with release after the data, loaded with acquire before them; done is stored with release after
 *               the turn's last look at others, loaded with acquire before what they looked at is overwritten.
 * Trust:        the memory was attached over an authenticated connection; the signature says that both sides make the same call,
 *               from which all sizes follow.
 * Threads:      one thread at a time per rank.
 */
#ifndef KL_COLL_BOARD_H
#define KL_COLL_BOARD_H

#include "channel/arena.h"
#include "include/nccl.h"

#define KL_BOARD_INLINE 112u /* bytes of data in a line */

enum {
    KL_BOARD_POSTS = 256,
    KL_BOARD_AHEAD = 128,
    KL_BOARD_CELLS = 128,
    KL_BOARD_TRAYS = 64,
    KL_BOARD_LEAST_SLOTS = 8,
    KL_BOARD_MOST_SLOTS = 64,
    KL_BOARD_RANKS = 64
};
enum { KL_BOARD_LAG = KL_BOARD_POSTS - KL_BOARD_AHEAD };
enum { KL_BOARD_TOLD = 4 }; /* small turns that `done` is told of at a time: others wait for none of the last ones */
_Static_assert((int)KL_BOARD_TOLD < (int)KL_BOARD_LEAST_SLOTS, "who posts in a slot waits for turns that were told");
enum { KL_BOARD_LOOKS = 32 };

struct kl_board_line {
    alignas(KL_LINE) _Atomic uint64_t ready; /* turn + 1 once that turn's data are here; done: turns */
    uint64_t signature;                      /* of the operation (signature.h) */
    unsigned char payload[KL_BOARD_INLINE];
};
_Static_assert(sizeof(struct kl_board_line) == KL_LINE, "one writer per line");

/** A rank's view. */
struct kl_board {
    struct kl_board_line *lines; /* where it begins */
    unsigned char *cells, *trays, *slots;
    struct kl_board_line *own,
        *neighbours;                  /* of the lines, this rank's and its neighbour's: done, and then the posts */
    const struct kl_arena_mark *mark; /* by rank: who has left */
    int nranks, rank;
    size_t cell_bytes, tray_bytes, slot_bytes;
    uint32_t nslots;    /* power of 2 */
    bool ahead;         /* of the operation that is under way one rank alone posts data: trays may be used */
    uint64_t turn;      /* the one to come */
    uint64_t compared;  /* turns in which the neighbour has made the same call */
    uint64_t all_known; /* turns that all others are done with, and */
    uint64_t known[KL_BOARD_RANKS]; /* each of them, as far as is known here */
};

/** Bytes of the memory that so many ranks need, at most KL_BOARD_RANKS. It is zero at first, and belongs to the caller. */
size_t kl_board_bytes(int nranks);

/** The view of `rank`, and the memory for it before its first turn. */
void kl_board_init(struct kl_board *board, int nranks, int rank);
void kl_board_attach(struct kl_board *board, void *memory, const struct kl_arena_mark *mark);

/** Is everybody done with all turns before this one? If not, *blocker is a rank that is not. */
bool kl_board_all_done(struct kl_board *board, int *blocker);

/** A rank's neighbour: what all ranks compare with theirs is compared everywhere. */
static inline int kl_board_neighbour(const struct kl_board *b)
{
    return (b->rank ? b->rank : b->nranks) - 1;
}

enum kl_comparison { KL_SAME, KL_OTHER, KL_NOT_YET };

/** Compare with the neighbour, in all turns up to this one that are not yet. OTHER: in turn `compared`. NOT_YET: it has not posted them. */
enum kl_comparison kl_board_compare(struct kl_board *board);

/** Is the neighbour at this turn or the one before? If not, this rank is ahead, and a look at the lines that the neighbour writes now would hold it up. */
bool kl_board_neighbour_is_near(const struct kl_board *board);

/** May this rank post `bytes` in this turn? If not, *blocker is a rank that has not read enough. */
bool kl_board_may_post(struct kl_board *board, size_t bytes, int *blocker);

static inline struct kl_board_line *kl_board_done(const struct kl_board *b, int rank)
{
    return &b->lines[(size_t)rank * (KL_BOARD_POSTS + 1)];
}

static inline struct kl_board_line *kl_board_post_of(const struct kl_board *b, int rank, uint64_t turn)
{
    return kl_board_done(b, rank) + 1 + turn % KL_BOARD_POSTS;
}

static inline struct kl_board_line *kl_board_post(const struct kl_board *b, int rank)
{
    return kl_board_post_of(b, rank, b->turn);
}

/** Where the `bytes` of a rank's post of this turn are. */
static inline void *kl_board_data(const struct kl_board *b, int rank, size_t bytes)
{
    if (bytes <= KL_BOARD_INLINE) return kl_board_post(b, rank)->payload;
    if (bytes <= b->cell_bytes)
        return b->cells + ((size_t)rank * KL_BOARD_CELLS + b->turn % KL_BOARD_CELLS) * b->cell_bytes;
    if (b->ahead && bytes <= b->tray_bytes)
        return b->trays + ((size_t)rank * KL_BOARD_TRAYS + b->turn % KL_BOARD_TRAYS) * b->tray_bytes;
    return b->slots + ((size_t)rank * b->nslots + (b->turn & (b->nslots - 1))) * b->slot_bytes;
}

/** Tell all that this rank's data of this turn are there. */
static inline void kl_board_announce(const struct kl_board *b, uint64_t signature)
{
    struct kl_board_line *line = &b->own[1 + b->turn % KL_BOARD_POSTS];

    line->signature = signature;
    kl_store_release(&line->ready, b->turn + 1); /* pairs with kl_board_ready */
}

/** Are a rank's data of this turn there? */
static inline bool kl_board_ready(struct kl_board *b, int rank)
{
    if (kl_load_acquire(&kl_board_post(b, rank)->ready) != b->turn + 1) return false; /* pairs with kl_board_announce */
    b->known[rank] = b->turn;
    return true;
}

/** The same, after some looks at it: others need not be asked at once what there is to do. */
static inline bool kl_board_has_come(struct kl_board *b, int rank)
{
    for (int i = 0; i < KL_BOARD_LOOKS; i++)
        if (kl_board_ready(b, rank)) return true;
    return false;
}

/** A rank's post, or one that it made before, is of another call than this rank's: fails with ncclInvalidUsage. */
ncclResult_t kl_board_refuse(const struct kl_board *board, int from, const char *function);

/** Is a rank's post of this turn of that call? */
static inline bool kl_board_is_of(const struct kl_board *b, int from, uint64_t signature)
{
    return kl_board_post(b, from)->signature == signature;
}

/** Else as kl_board_refuse. */
static inline ncclResult_t kl_board_check(const struct kl_board *b, int from, uint64_t signature, const char *function)
{
    return kl_board_is_of(b, from, signature) ? ncclSuccess : kl_board_refuse(b, from, function);
}

/** This rank is done with the turn, and all may know. */
static inline void kl_board_next_turn(struct kl_board *b)
{
    b->turn++;
    kl_store_release(&b->own->ready, b->turn); /* pairs with kl_board_may_post */
}

/** The same after a turn of posts in lines or cells, which are many: all hear of a few turns at a time, and may look the less often. */
static inline void kl_board_next_small_turn(struct kl_board *b)
{
    b->turn++;
    if (b->turn % KL_BOARD_TOLD == 0) kl_store_release(&b->own->ready, b->turn); /* pairs with kl_board_may_post */
}

#endif
