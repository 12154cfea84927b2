/* SPDX-License-Identifier: Apache-2.0 */
/**
 * negotiation.h - when the ranks of a host agree, before a large collective, whether it is done in their own buffers (peer_direct.h).
 *
 * That is so where all can map them: they ask each other for this, and where it is of no use more and more seldom (first_try.h). Or where the kernel
 * copies, if that has been faster lately than what was chosen: for each function and size both are measured in turn (lately.h). In this all
 * must be of one mind: when they negotiate, the first rank says what is done now, and the times that all of them tell decide what is done from then on.
 *
 *     kl_negotiation_due     does the collective begin with a negotiation? The same at all ranks
 *     kl_negotiation_word    what a rank says there
 *     kl_negotiation_gather  what all say, together
 *     kl_negotiation_held    what has come of it
 *     kl_negotiation_ended   the collective is complete, whichever way
 *
 * Invariant: everything here but times follows from the collectives and from what was said in negotiations, which all ranks hear.
 * Threads:   one at a time.
 */
#ifndef KL_COLL_NEGOTIATION_H
#define KL_COLL_NEGOTIATION_H

#include "coll/first_try.h"
#include "coll/schedule/func.h"
#include "coll/lately.h"
#include "coll/zcopy/zcopy_config.h"

enum { KL_NEGOTIATION_SIZES = 16, KL_NEGOTIATION_LEAST = 32 << 10 }; /* powers of 2, from so many bytes */

enum kl_negotiation_end {
    KL_NEGOTIATED_DECLINED, /* the collective is done another way, */
    KL_NEGOTIATED_MAPPED,   /* or is complete, in mapped buffers, */
    KL_NEGOTIATED_READ,     /* or by the kernel's copies, */
    KL_NEGOTIATED_REPAIRED /* which it refused in the middle: the rest was staged, and so are collectives from now on */
};

/** What a rank says; or what the first one says, and the longest times that anybody does. */
struct kl_negotiation_word {
    bool reads;     /* the kernel copies, if buffers cannot be mapped, */
    bool settled;   /* and so it will stay for all collectives */
    uint64_t ns[2]; /* that both ways have taken, if they have just been compared */
};

/** What has come of a negotiation. */
struct kl_negotiation_outcome {
    enum kl_negotiation_end end;
    struct kl_negotiation_word word;
};

struct kl_negotiation {
    int nranks, rank;
    struct kl_lending lending; /* of this rank */
    bool over;                 /* the collective under way was negotiated, and is done another way */
    bool settled;              /* the first rank has said so */
    bool unreadable;           /* some rank cannot read others' memory, or does not want to */
    struct kl_first_try maps;
    struct kl_lately reads[KL_FUNCS + 1][KL_NEGOTIATION_SIZES]; /* staged or read, by function and size */
    struct kl_lately *times;                                    /* of the collective under way; NULL: none is */
    uint64_t began;                                             /* ns, kl_now_ns; 0: it is not timed */
};

/** A collective of so many bytes (kl_func_bytes) begins. Again and again while it has not begun to run. */
bool kl_negotiation_due(struct kl_negotiation *negotiation, int func, size_t bytes);

/** Is it certain that the collective which comes `later` behind the one under way, 1: next, begins with none, and that data are staged? */
bool kl_negotiation_stages(const struct kl_negotiation *negotiation, int func, size_t bytes, uint32_t later);

/** What this rank says of the collective under way. */
struct kl_negotiation_word kl_negotiation_word(const struct kl_negotiation *negotiation);

/** Add what `rank` says to the words of all, which are zeros at first. */
void kl_negotiation_gather(struct kl_negotiation_word *all, int rank, const struct kl_negotiation_word *word);

void kl_negotiation_held(struct kl_negotiation *negotiation, struct kl_negotiation_outcome outcome);

/** The collective under way is complete. Not for one that was done in mapped buffers, which kl_negotiation_held has ended. */
void kl_negotiation_ended(struct kl_negotiation *negotiation);

/** It has failed. */
void kl_negotiation_reset(struct kl_negotiation *negotiation);

#endif
