/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shm_exchange.h - memory that all ranks of a host map. Each rank posts data there and reads the posts of the others, so that an
 * all-to-all exchange takes one flag, for any number of ranks.
 *
 * Time is counted in *rounds*, which all ranks go through in the same order. In each round a rank writes the signature of its call;
 * ranks with data post them: small ones beside their flag, larger ones in an area.
 *
 *      written by each rank:
 *          done                                  all rounds below this number are complete for the rank
 *          notice[number % 2]                    by rank 0: the selection for later collectives (select/agreement.h)
 *          call[round % KL_SHM_EXCHANGE_POSTS]   the signature of its call
 *          packed[round % KL_SHM_EXCHANGE_POSTS] a flag and up to KL_SHM_EXCHANGE_PACKED bytes, for operations that pack posts
 *          line[how][by round]                   a flag and up to KL_SHM_EXCHANGE_INLINE bytes; `nlines` of them, in order or scattered
 *          place[]                               larger posts, in the smallest area with room (enum kl_shm_exchange_areas); the flag
 *                                                and the place's number are in `packed` or `line`
 *
 * Invariant:    a rank posts in round t only when all ranks have completed round t - KL_SHM_EXCHANGE_AHEAD; in a line, round
 *               t - nlines; in a place, the last round that used it (kl_shm_exchange_may_post).
 * Memory order: a flag is stored with release after its data and loaded with acquire before them; `done` is stored with release
 *               after the round's last read of other posts, and loaded with acquire before these are overwritten.
 * Trust:        the memory was attached over an authenticated connection. Signatures say that both sides make the same call, from
 *               which all sizes follow.
 * Threads:      one at a time per rank.
 */
#ifndef KL_COLL_SHM_SHM_EXCHANGE_H
#define KL_COLL_SHM_SHM_EXCHANGE_H

#include "base/prefetch.h"
#include "channel/arena.h"
#include "device/host/copy_out.h"
#include "include/nccl.h"

/*
 * Places and prefetching. A rank cycles through few places at first and through more the longer it posts, as the first write to a page
 * takes longer than a small operation; so a writer waits only when it comes to a place again, and the root of a broadcast runs ahead
 * of its readers. Where ranks share cores, each wrap-around costs a switch of each rank, so a cycle should be long, as long as the caches
 * hold it (kl_cache_cycle); a rank that posts alone, such as a root, has more places than where all ranks post. Its readers then find
 * many rounds, in order, which hardware prefetches. Caches exchange lines, so several packed posts, flags of large ones, or signatures
 * of ranks without data share a line. Where posts are read while the next ones are written (ranks with a core each; the root of a small
 * reduce), prefetching and neighbours in the line slow the writer: each post has a line of its own, and lines are scattered
 * (base/slot_permutation.h). A reader that keeps finding new posts pauses at times for the same reason (kl_shm_exchange_has_come).
 *
 * Comparison of calls. A post carries the signature of its call. A rank that reads the data of some ranks only compares with its
 * neighbour for the others, up to KL_SHM_EXCHANGE_LAG rounds later, so that readers need not keep step. Calls of another kind or size
 * may be posted elsewhere: a rank that waits for long reads the other rank's signature now and then.
 *
 * Reuse. A rank learns that others have completed a round from their own posts or from `done`: a post in round t implies that the rounds
 * before t are complete; where all ranks wait for all, a rank may post early, and it implies only the rounds before
 * t - kl_shm_exchange_early. A rank that has completed round t has compared all rounds before t - KL_SHM_EXCHANGE_LAG, so that their
 * signatures may be overwritten.
 */

enum {
    KL_SHM_EXCHANGE_PACKED = 16,  /* bytes of data behind a flag */
    KL_SHM_EXCHANGE_INLINE = 112, /* the same, in a line */
    KL_SHM_EXCHANGE_PACKET = 256, /* in a packet */
    KL_SHM_EXCHANGE_POSTS = 1024, /* calls, and packed posts */
    KL_SHM_EXCHANGE_AHEAD = 512,  /* of these, before they are read */
    KL_SHM_EXCHANGE_LEAST_LINES = 128,
    KL_SHM_EXCHANGE_MOST_LINES = 512,
    KL_SHM_EXCHANGE_LEAST_CELLS = 128,
    KL_SHM_EXCHANGE_LEAST_SLOTS = 8,
    KL_SHM_EXCHANGE_MOST_SLOTS = 64,
    KL_SHM_EXCHANGE_RANKS = 64
};
enum { KL_SHM_EXCHANGE_SIZES = 3 }; /* a cell, two, four */
/* Where data of more than a line are. */
enum kl_shm_exchange_areas {
    KL_SHM_EXCHANGE_PACKETS, /* as many as lines; of operations in which ranks run ahead */
    KL_SHM_EXCHANGE_SOLO,    /* and so on, by size: of operations in which one rank alone posts data */
    KL_SHM_EXCHANGE_CELLS = KL_SHM_EXCHANGE_SOLO + KL_SHM_EXCHANGE_SIZES,  /* of the others, likewise */
    KL_SHM_EXCHANGE_SLOTS = KL_SHM_EXCHANGE_CELLS + KL_SHM_EXCHANGE_SIZES, /* of all */
    KL_SHM_EXCHANGE_AREAS
};
enum { KL_SHM_EXCHANGE_LAG = KL_SHM_EXCHANGE_POSTS - KL_SHM_EXCHANGE_AHEAD };
_Static_assert((int)KL_SHM_EXCHANGE_MOST_LINES <= (int)KL_SHM_EXCHANGE_AHEAD,
               "a rank that is a cycle behind has compared the overwritten posts");
enum {
    KL_SHM_EXCHANGE_HINTED = 4,         /* rounds ahead of which lines are prefetched, */
    KL_SHM_EXCHANGE_HINTED_OWN = 2048,  /* of posts of so many bytes, at most, to be written, */
    KL_SHM_EXCHANGE_HINTED_POST = 1024, /* or to be read */
};
/* Places of an area that a rank uses at first; twice as many each time it has used them so often: so first touching memory stays a small part of the time. */
enum { KL_SHM_EXCHANGE_FIRST_PLACES = 8, KL_SHM_EXCHANGE_USES_PER_PLACE = 16 };
/* Rounds, at most, of those to come, in which a rank has posted already; of more than a cell not more than half of its places. */
enum { KL_SHM_EXCHANGE_EARLY = 32 };
_Static_assert(2 * (int)KL_SHM_EXCHANGE_EARLY <= (int)KL_SHM_EXCHANGE_LEAST_CELLS &&
                   2 * (int)KL_SHM_EXCHANGE_EARLY <= (int)KL_SHM_EXCHANGE_LEAST_LINES,
               "not more than half");
enum {
    KL_SHM_EXCHANGE_ANNOUNCED = 4
}; /* small rounds after which `done` is stored: other ranks wait for none of the last ones */
_Static_assert((int)KL_SHM_EXCHANGE_ANNOUNCED < (int)KL_SHM_EXCHANGE_FIRST_PLACES,
               "a rank that posts in a slot waits for rounds that `done` covers");
/* At a post that is not there, before anything else is done; and so many times these, before the rank's call is looked at. */
enum { KL_SHM_EXCHANGE_LOOKS = 64, KL_SHM_EXCHANGE_MISSES = 512 };
/* Pauses before the second look, at most, and for each post that was there at once since the wait before. On x86 one takes 25 to 50 ns, elsewhere less: however
 * posts come, that much is all that it costs for each of them. */
enum { KL_SHM_EXCHANGE_PAUSES = 100, KL_SHM_EXCHANGE_PAUSES_PER_POST = 2 };

struct kl_shm_exchange_flag {
    _Atomic uint64_t ready; /* round + 1 once that round's data are here */
    uint64_t signature;     /* of the operation (signature.h) */
};

struct kl_shm_exchange_packed {
    alignas(32) struct kl_shm_exchange_flag flag;
    unsigned char data[KL_SHM_EXCHANGE_PACKED];
};

struct kl_shm_exchange_line {
    alignas(KL_LINE) struct kl_shm_exchange_flag flag;
    unsigned char data[KL_SHM_EXCHANGE_INLINE];
};
_Static_assert(KL_LINE % sizeof(struct kl_shm_exchange_packed) == 0, "none lies in two lines");
_Static_assert(sizeof(struct kl_shm_exchange_line) == KL_LINE, "none lies in two lines");

/* A call: above so many bits of its signature, in which calls that differ in one field differ but for numbers that do by a multiple of 256,
 * the lowest bits of round + 1. As one is written in every round, they tell rounds apart. */
enum { KL_SHM_EXCHANGE_CALL_BITS = 48 };
_Static_assert(KL_SHM_EXCHANGE_POSTS < 1 << (64 - KL_SHM_EXCHANGE_CALL_BITS),
               "a flag of the cycle before differs from this round's");

/* Written by one rank, read by all. */
struct kl_shm_exchange_posts {
    alignas(KL_LINE) _Atomic uint64_t done;
    alignas(KL_LINE) _Atomic uint64_t notice[2]; /* by number: kl_shm_exchange_give_notice */
    _Atomic uint32_t heard;
    alignas(KL_LINE) _Atomic uint64_t call[KL_SHM_EXCHANGE_POSTS];
    alignas(KL_LINE) struct kl_shm_exchange_packed packed[KL_SHM_EXCHANGE_POSTS];
    struct kl_shm_exchange_line line[2][KL_SHM_EXCHANGE_MOST_LINES]; /* in order, and scattered */
};

struct kl_shm_exchange_area {
    unsigned char *at; /* by rank, `places` each */
    size_t bytes;      /* of a place, multiple of KL_LINE */
    uint32_t places;   /* power of 2 */

    /* of this rank's posts: */
    uint32_t used;   /* places in use so far, power of 2 */
    uint64_t uses;   /* posts so far */
    uint64_t opened; /* 1 + the round of the last one */
};

/** Ranks by core, where all cores have as many; if not, one group of all. Groups are numbered in the order of their lowest ranks. */
struct kl_shm_exchange_groups {
    int n, size;
    uint8_t group[KL_SHM_EXCHANGE_RANKS], place[KL_SHM_EXCHANGE_RANKS]; /* by rank: which, and where in it, ascending */
    uint8_t rank[KL_SHM_EXCHANGE_RANKS];                                /* by group, `size` each */
};

/** A rank's view. */
struct kl_shm_exchange {
    struct kl_shm_exchange_posts *posts; /* by rank: where it begins */
    struct kl_shm_exchange_area area[KL_SHM_EXCHANGE_AREAS];
    struct kl_shm_exchange_posts *own, *neighbours; /* this rank's, and its neighbour's */
    const struct kl_arena_mark *mark;               /* by rank: has it left? */
    int nranks, rank;
    struct kl_shm_exchange_groups groups;
    struct kl_copy_out out; /* of this rank's posts; */
    bool nontemporal;       /* the last one used non-temporal stores, at least in part; */
    size_t copied;          /* bytes, since a line was timed, */
    _Atomic uint32_t timed; /* of which there have been so many */
    size_t cell_bytes, slot_bytes;
    uint32_t nlines;     /* power of 2 */
    bool oversubscribed; /* ranks share cores */
    bool solo;           /* of the operation that is under way one rank alone posts data; */
    bool rooted;         /* in it ranks run ahead of others; */
    bool packs;          /* packed posts go to `packed`; */
    bool scatters;       /* lines are scattered; */
    size_t packed_from;  /* of posts of so many bytes the flags are in `packed` */
    unsigned hits;       /* posts of others that were there at the first look, since one was not, if ranks run ahead */
    unsigned misses;     /* times that KL_SHM_EXCHANGE_LOOKS at a post found none */
    uint64_t round;      /* the one to come */
    uint64_t compared;   /* rounds in which the neighbour has made the same call */
    uint64_t taken;      /* rounds up to the last one in which this rank took data of others */
    uint64_t all_known;  /* rounds that all others are done with, and */
    uint64_t known[KL_SHM_EXCHANGE_RANKS];         /* each of them, as far as is known here */
    uint64_t posted;                               /* rounds before which this rank has posted, if these are more */
    uint16_t order[2][KL_SHM_EXCHANGE_MOST_LINES]; /* in which lines are used: as they lie, and scattered */
};

/** Bytes of the memory that so many ranks need, at most KL_SHM_EXCHANGE_RANKS. It is zero at first, and belongs to the caller. */
size_t kl_shm_exchange_bytes(int nranks);

/** The view of `rank`, and the memory for it before its first round. `oversubscribed`, on all ranks or none: they share cores. */
void kl_shm_exchange_init(struct kl_shm_exchange *shm, int nranks, int rank, bool oversubscribed);
void kl_shm_exchange_attach(struct kl_shm_exchange *shm, void *memory, const struct kl_arena_mark *mark);

/** By rank, those that share a core have the same number, below nranks. NULL: it is not known, or nobody does. */
void kl_shm_exchange_group(struct kl_shm_exchange *shm, const int32_t *core);

/** The operation that is under way: does one rank alone post data, is it rooted, so that ranks run ahead of others? Either set of lines has one order, whatever operations use it. */
static inline void kl_shm_exchange_begin(struct kl_shm_exchange *b, bool solo, bool rooted)
{
    b->solo = solo;
    b->rooted = rooted;
    b->packs = solo && b->oversubscribed;
    b->packed_from = !b->oversubscribed || !rooted ? SIZE_MAX
                     : solo                        ? KL_SHM_EXCHANGE_INLINE + 1
                                                   : KL_SHM_EXCHANGE_PACKET + 1;
    b->scatters = !b->oversubscribed || (rooted && !solo);
}

/** `bytes` are about to be moved: times now and then the store to a line of a coming post, which other ranks have read. Overwrites that line. */
__attribute__((noinline)) void kl_shm_exchange_copies(struct kl_shm_exchange *shm, void *line, size_t bytes);

/** Is everybody done with all rounds before this one? If not, *blocker is a rank that is not. */
bool kl_shm_exchange_all_done(struct kl_shm_exchange *shm, int *blocker);

/** A rank's neighbour: if each rank compares with its own, all calls are compared. */
static inline int kl_shm_exchange_neighbour(const struct kl_shm_exchange *b)
{
    return (b->rank ? b->rank : b->nranks) - 1;
}

enum kl_comparison { KL_SAME, KL_OTHER, KL_NOT_YET };

/** Compare with the neighbour, in all rounds up to this one that are not yet. OTHER: in round `compared`. NOT_YET: it has not posted them. */
enum kl_comparison kl_shm_exchange_compare(struct kl_shm_exchange *shm);

/**
 * Is the neighbour at this round or the one before? If not, this rank is ahead, and need not compare. A rank that has read nothing for some rounds looks only once in
 * so many, as all calls of a line are there then: the neighbour writes it in each round, and would be held up. False also if it was not looked at.
 */
bool kl_shm_exchange_neighbour_is_near(const struct kl_shm_exchange *shm);

/** May this rank post `bytes` in this round? If not, *blocker is a rank that has not read enough. */
bool kl_shm_exchange_may_post(struct kl_shm_exchange *shm, size_t bytes, int *blocker);

/** The signature word of this call in this round. */
static inline uint64_t kl_shm_exchange_call_of(const struct kl_shm_exchange *b, uint64_t signature)
{
    const uint64_t kept = ((uint64_t)1 << KL_SHM_EXCHANGE_CALL_BITS) - 1;

    return (b->round + 1) << KL_SHM_EXCHANGE_CALL_BITS | (signature & kept);
}

/** Are these calls of one round? */
static inline bool kl_shm_exchange_same_round(uint64_t a, uint64_t b)
{
    return (a ^ b) >> KL_SHM_EXCHANGE_CALL_BITS == 0;
}

/** Is a post of so many bytes packed with others in a line? */
static inline bool kl_shm_exchange_is_packed(const struct kl_shm_exchange *b, size_t bytes)
{
    return b->packs && bytes <= KL_SHM_EXCHANGE_PACKED;
}

/** Where posts of more than KL_SHM_EXCHANGE_INLINE bytes are. */
static inline const struct kl_shm_exchange_area *kl_shm_exchange_area_of(const struct kl_shm_exchange *b, size_t bytes)
{
    if (b->rooted && bytes <= KL_SHM_EXCHANGE_PACKET) return &b->area[KL_SHM_EXCHANGE_PACKETS];
    const struct kl_shm_exchange_area *area = &b->area[b->solo ? KL_SHM_EXCHANGE_SOLO : KL_SHM_EXCHANGE_CELLS];
    for (int i = 0; i < KL_SHM_EXCHANGE_SIZES; i++, area++)
        if (bytes <= area->bytes) return area;
    return &b->area[KL_SHM_EXCHANGE_SLOTS];
}

static inline struct kl_shm_exchange_line *kl_shm_exchange_line_of(const struct kl_shm_exchange *b,
                                                                   struct kl_shm_exchange_posts *posts, uint64_t round)
{
    return &posts->line[b->scatters][b->order[b->scatters][round & (b->nlines - 1)]];
}

/** The flag of a rank's post of `bytes` in a round. */
static inline struct kl_shm_exchange_flag *kl_shm_exchange_flag_of(const struct kl_shm_exchange *b, int rank,
                                                                   uint64_t round, size_t bytes)
{
    struct kl_shm_exchange_posts *posts = &b->posts[rank];

    if (kl_shm_exchange_is_packed(b, bytes) || bytes >= b->packed_from)
        return &posts->packed[round % KL_SHM_EXCHANGE_POSTS].flag;
    return &kl_shm_exchange_line_of(b, posts, round)->flag;
}

/** In an area: a rank's place of that number. */
static inline void *kl_shm_exchange_place(const struct kl_shm_exchange_area *area, int rank, uint64_t number)
{
    return area->at + ((size_t)rank * area->places + (number & (area->places - 1))) * area->bytes;
}

/** Behind the flag of a post in an area: the number of its place. */
static inline uint32_t *kl_shm_exchange_number(struct kl_shm_exchange_flag *flag)
{
    return (uint32_t *)(void *)(flag + 1);
}

/** Where the `bytes` of a rank's post of this round are, which is there, or opened. */
static inline void *kl_shm_exchange_data(const struct kl_shm_exchange *b, int rank, size_t bytes)
{
    struct kl_shm_exchange_flag *flag = kl_shm_exchange_flag_of(b, rank, b->round, bytes);

    if (bytes <= KL_SHM_EXCHANGE_INLINE) return flag + 1;
    return kl_shm_exchange_place(kl_shm_exchange_area_of(b, bytes), rank, *kl_shm_exchange_number(flag));
}

static inline struct kl_shm_exchange_flag *kl_shm_exchange_flag(const struct kl_shm_exchange *b, int rank, size_t bytes)
{
    return kl_shm_exchange_flag_of(b, rank, b->round, bytes);
}

/* ---- hints ---- */

/** The lines of this rank's post of so many bytes, some rounds ahead: to be written, for which no post waits then. Not the lines that non-temporal stores write. */
static inline void kl_shm_exchange_prefetch_own(const struct kl_shm_exchange *b, size_t bytes)
{
    const uint64_t round = b->round + KL_SHM_EXCHANGE_HINTED;
    struct kl_shm_exchange_flag *flag = kl_shm_exchange_flag_of(b, b->rank, round, bytes);

    kl_prefetch_to_write(flag, sizeof *flag + (bytes <= KL_SHM_EXCHANGE_INLINE ? bytes : 0));
    if (bytes <= KL_SHM_EXCHANGE_INLINE || bytes > KL_SHM_EXCHANGE_HINTED_OWN || b->nontemporal) return;
    const struct kl_shm_exchange_area *area = kl_shm_exchange_area_of(b, bytes);
    const uint64_t number = (area->uses + KL_SHM_EXCHANGE_HINTED - 1) & (area->used - 1);
    kl_prefetch_to_write(kl_shm_exchange_place(area, b->rank, number), bytes);
}

/** Those of another rank's, whose post of this round is there, that are likely to be there as well: to be read. Packed ones come with their neighbours. */
static inline void kl_shm_exchange_prefetch_post(const struct kl_shm_exchange *b, int rank, size_t bytes)
{
    const uint64_t round = b->round + KL_SHM_EXCHANGE_HINTED;
    const struct kl_shm_exchange_flag *flag = kl_shm_exchange_flag_of(b, rank, round, bytes);

    if (kl_shm_exchange_is_packed(b, bytes) || bytes > KL_SHM_EXCHANGE_HINTED_POST) return;
    kl_prefetch_to_read(flag, sizeof *flag + (bytes <= KL_SHM_EXCHANGE_INLINE ? bytes : 0));
    if (bytes <= KL_SHM_EXCHANGE_INLINE) return;
    const uint32_t number = *kl_shm_exchange_number(kl_shm_exchange_flag(b, rank, bytes));
    kl_prefetch_to_read(kl_shm_exchange_place(kl_shm_exchange_area_of(b, bytes), rank, number + KL_SHM_EXCHANGE_HINTED),
                        bytes);
}

/* ---- posting and reading ---- */

static inline uint32_t kl_shm_exchange_next_place(struct kl_shm_exchange_area *area)
{
    if (area->used < area->places && area->uses == (uint64_t)KL_SHM_EXCHANGE_USES_PER_PLACE * area->used)
        area->used *= 2;
    return (uint32_t)area->uses++ & (area->used - 1);
}

/** Where this rank writes its post of this round, which it may post (kl_shm_exchange_may_post); the same if asked again. */
static inline void *kl_shm_exchange_open(struct kl_shm_exchange *b, size_t bytes)
{
    if (bytes > KL_SHM_EXCHANGE_INLINE) {
        struct kl_shm_exchange_area *area = &b->area[kl_shm_exchange_area_of(b, bytes) - b->area];
        if (area->opened != b->round + 1)
            *kl_shm_exchange_number(kl_shm_exchange_flag(b, b->rank, bytes)) = kl_shm_exchange_next_place(area);
        area->opened = b->round + 1;
    }
    return kl_shm_exchange_data(b, b->rank, bytes);
}

/** Tell all which call this rank makes in this round, in which it posts nothing. */
static inline void kl_shm_exchange_call(const struct kl_shm_exchange *b, uint64_t signature)
{
    kl_store_release(&b->own->call[b->round % KL_SHM_EXCHANGE_POSTS],
                     kl_shm_exchange_call_of(b, signature)); /* pairs with kl_shm_exchange_compare */
}

/** The same, and that the `bytes` of its data are there. */
static inline void kl_shm_exchange_announce(const struct kl_shm_exchange *b, size_t bytes, uint64_t signature)
{
    struct kl_shm_exchange_flag *flag = kl_shm_exchange_flag(b, b->rank, bytes);

    flag->signature = signature;
    kl_store_release(&flag->ready, b->round + 1); /* pairs with kl_shm_exchange_is_there */
    kl_shm_exchange_call(b, signature);
    kl_shm_exchange_prefetch_own(b, bytes);
}

/** In how many rounds to come a rank may post so many bytes already. */
static inline uint64_t kl_shm_exchange_early(const struct kl_shm_exchange *b, size_t bytes)
{
    if (bytes <= b->cell_bytes) return KL_SHM_EXCHANGE_EARLY;
    const uint32_t half = kl_shm_exchange_area_of(b, bytes)->places / 2;
    return half < KL_SHM_EXCHANGE_EARLY ? half : KL_SHM_EXCHANGE_EARLY;
}

/** A rank's post of this round is there: so it is done with those before, but for such as it may have posted in early. */
static inline void kl_shm_exchange_note_post(struct kl_shm_exchange *b, int rank, size_t bytes)
{
    const uint64_t early = kl_shm_exchange_early(b, bytes);

    if (b->rooted)
        b->known[rank] = b->round;
    else if (b->round > b->known[rank] + early)
        b->known[rank] = b->round - early;
}

/** Is a rank's post of so many bytes in this round there? */
static inline bool kl_shm_exchange_is_there(struct kl_shm_exchange *b, int rank, size_t bytes)
{
    if (kl_load_acquire(&kl_shm_exchange_flag(b, rank, bytes)->ready) != b->round + 1)
        return false; /* pairs with kl_shm_exchange_announce */
    kl_shm_exchange_note_post(b, rank, bytes);
    return true;
}

/** Has a rank whose post of that call does not come said that it makes another one in this round? */
bool kl_shm_exchange_calls_other(struct kl_shm_exchange *shm, int rank, uint64_t signature);

/* A reader that keeps up with a writer that runs ahead takes each line from it while it is written. So it pauses now and then, for a small part of the time:
 * the number of pauses that its hits allow, which are used up then. */
static inline unsigned kl_shm_exchange_pauses(struct kl_shm_exchange *b)
{
    const unsigned hits = b->hits;

    b->hits = 0;
    if (!b->rooted || b->oversubscribed) return 0;
    return hits < KL_SHM_EXCHANGE_PAUSES / KL_SHM_EXCHANGE_PAUSES_PER_POST ? hits * KL_SHM_EXCHANGE_PAUSES_PER_POST
                                                                           : KL_SHM_EXCHANGE_PAUSES;
}

static inline void kl_shm_exchange_fall_behind(struct kl_shm_exchange *b)
{
    for (unsigned n = kl_shm_exchange_pauses(b); n; n--) kl_cpu_pause();
}

/* Prefetch the next posts if they are likely to be there: where all wait for all, if this rank itself has posted so far. */
static inline void kl_shm_exchange_came_at_once(struct kl_shm_exchange *b, int rank, size_t bytes)
{
    if (b->rooted)
        b->hits++;
    else if (b->oversubscribed || b->round + KL_SHM_EXCHANGE_HINTED >= b->posted)
        return;
    kl_shm_exchange_prefetch_post(b, rank, bytes);
}

/** Is a rank's post of so many bytes in this round there, and of that call? Looks at it several times before it returns NOT_YET. */
static inline enum kl_comparison kl_shm_exchange_has_come(struct kl_shm_exchange *b, int rank, size_t bytes,
                                                          uint64_t signature)
{
    struct kl_shm_exchange_flag *flag = kl_shm_exchange_flag(b, rank, bytes);
    const uint64_t round = b->round;

    for (int i = 0; i < KL_SHM_EXCHANGE_LOOKS; i++) {
        if (kl_load_acquire(&flag->ready) != round + 1) { /* pairs with kl_shm_exchange_announce */
            if (!i) kl_shm_exchange_fall_behind(b);
            continue;
        }
        kl_shm_exchange_note_post(b, rank, bytes);
        if (!i) kl_shm_exchange_came_at_once(b, rank, bytes);
        return flag->signature == signature ? KL_SAME : KL_OTHER;
    }
    return kl_shm_exchange_calls_other(b, rank, signature) ? KL_OTHER : KL_NOT_YET;
}

/* ---- notices ---- */

/** By rank 0: give notice `number`, counted from 1. False: not yet, as rank *blocker has not heard notice `number` - 2, whose place it takes. */
bool kl_shm_exchange_give_notice(struct kl_shm_exchange *shm, uint32_t number, uint32_t word, int *blocker);

/** The word of notice `number`. False: rank 0 has not given it yet. */
bool kl_shm_exchange_receive_notice(struct kl_shm_exchange *shm, uint32_t number, uint32_t *word);

/** A rank makes another call than this one, now or in a round before: fails with ncclInvalidUsage. */
ncclResult_t kl_shm_exchange_refuse(const struct kl_shm_exchange *shm, int from, const char *function);

/** This rank is done with the round, and all may know. */
static inline void kl_shm_exchange_next_round(struct kl_shm_exchange *b)
{
    b->round++;
    kl_store_release(&b->own->done, b->round); /* pairs with kl_shm_exchange_may_post */
}

/** The same after a round of posts in lines or cells, which are many: all hear of a few rounds at a time, and may look the less often. */
static inline void kl_shm_exchange_next_small_round(struct kl_shm_exchange *b)
{
    b->round++;
    if (b->round % KL_SHM_EXCHANGE_ANNOUNCED == 0)
        kl_store_release(&b->own->done, b->round); /* pairs with kl_shm_exchange_may_post */
}

#endif
