/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lately.h - which of two ways has been faster lately, where that depends on the machine and on what else runs there.
 *
 * Both are measured one after the other, at first and again and again: some uses of the first way, and as many of the second. At first the faster one is
 * taken. Later the other one has to be clearly faster to take its place, in two comparisons, one right after the other; or a little, in several in a
 * row. The first ones are short and soon repeated, so that what chance said does not last; later ones are longer, and come more seldom. Whoever does the same
 * at many sizes has one of these for each: until both ways are compared, what was found at a size nearby counts. Ranks that do the same count the same
 * uses, so that they try the other way together.
 *
 * The first way may leave some of its work behind, as what is staged does: ranks run ahead of others. The second way must not: it ends when all ranks have come
 * to it. So one use of it comes before those of the first way, of which then nothing is left behind, and does not count; and the one after them, which waits
 * for what they have left, and may find cold caches, counts as theirs. Of ranks that agree, the slowest counts. And before the first comparison, some uses go the
 * first way even if the second one is guessed: pages are touched for the first time then, which is in nobody's time.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_LATELY_H
#define KL_COLL_LATELY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Uses before a comparison, at least; and before the first one, at most: as many as move KL_LATELY_WARM_BYTES. */
enum { KL_LATELY_WARM = 8, KL_LATELY_MOST_WARM = 256, KL_LATELY_WARM_BYTES = 8 << 20 };

/* Uses after a comparison in which other ranks may still say what they found. */
enum { KL_LATELY_HEARS = KL_LATELY_WARM };

/* Blocks from one comparison to the next, a cycle: of the first one, and of those after several, each twice as many as before. */
enum { KL_LATELY_SOON = 16, KL_LATELY_SELDOM = 64 };

/* What it was when the last comparison was decided. */
struct kl_lately_before {
    uint32_t uses, warm, ahead;
    int better;
    bool compared, doubted;
};

/** Of the uses of one way in a comparison. */
struct kl_lately_trial {
    uint32_t uses;
    uint64_t first;       /* ns, of the first one; */
    uint64_t least;       /* of the shortest; */
    uint64_t ns, stalled; /* of those that count, and of those that have stalled; */
    uint32_t stalls;      /* so many */
};

struct kl_lately {
    uint32_t block;                  /* uses of either way, 3 or more, that are compared; 0: not begun */
    uint32_t most;                   /* of a block, some time */
    uint32_t uses;                   /* of the cycle; */
    uint32_t warm;                   /* so many come before its comparison; before the first one */
    uint32_t touch;                  /* the last so many go the first way, which touches what is staged in */
    uint32_t again;                  /* blocks of it */
    int better;                      /* way: 0 or 1 */
    int guess;                       /* and what it was at first */
    bool compared;                   /* at least once */
    bool doubted;                    /* by the last comparison, which is repeated */
    bool crowded;                    /* kl_lately_use */
    uint32_t ahead;                  /* comparisons in a row in which the other way was a little faster, at least */
    struct kl_lately_trial trial[2]; /* of a comparison under way, by way; and of one that is over, */
    uint64_t ns[2];                  /* of as many uses */
    uint32_t number;                 /* of comparisons that were decided; since the last one, */
    uint32_t since;                  /* uses, up to KL_LATELY_HEARS; */
    uint64_t slowest[2];             /* ns: by which it was decided */
    struct kl_lately_before before;
};

/** What a use is like. */
struct kl_lately_use {
    size_t bytes; /* that it moves, about; the more, the fewer uses tell */
    int guess;    /* which way is better, */
    bool sure;    /* by far */
    /* More ranks than cores: some uses wait for time slices of other ranks. Else only for those of other programs, which do not count. */
    bool crowded;
};

/**
 * That of a size, out of those of `nsizes` powers of 2; all zeros: none has been used. One that is new begins with a guess which way is better; or with what
 * has been better at the nearest size up to 4 times as large or as small, where the guess was the same, or was another and wrong. Uses that move megabytes
 * are much alike, and a trial of them costs as many: what was found up to 16 times as large or as small counts for the whole first cycle, and so does a guess
 * that is sure.
 */
struct kl_lately *kl_lately_of(struct kl_lately *of, int nsizes, int size, struct kl_lately_use use);

/** The way of the use that is next, or under way: 0 or 1. */
int kl_lately_way(const struct kl_lately *lately);

/** Will the use that comes `later` uses after the one under way, or after the last one, go this way, whatever is found until then? False: that is not known. */
bool kl_lately_stays(const struct kl_lately *lately, int way, uint32_t later);

/** Is this use the first one after a comparison? */
bool kl_lately_is_compared(const struct kl_lately *lately);

/** During that use, or before: which way is better from now on, as these were the times of both. A rank's own (`ns`), or those of the slowest. */
void kl_lately_decide(struct kl_lately *lately, const uint64_t ns[2]);

/** May other ranks still say what they found in the last comparison? */
static inline bool kl_lately_hears(const struct kl_lately *lately)
{
    return lately->number && lately->since < KL_LATELY_HEARS;
}

/** What another one that has compared as often found the last time, while this one hears: it is decided anew, by the slowest of all times. */
void kl_lately_hear(struct kl_lately *lately, const uint64_t ns[2]);

/** Does the time of that use count? Few do: who would have to look at the clock for it does not if not. */
bool kl_lately_is_timed(const struct kl_lately *lately);

/** The use under way is over, and took so long; anything if that does not count. */
void kl_lately_took(struct kl_lately *lately, uint64_t ns);

#endif
