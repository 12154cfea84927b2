/* SPDX-License-Identifier: Apache-2.0 */
/**
 * agreement.h - how the ranks of a host agree on the way a collective is done.
 *
 * The table (select.h) is the same at all ranks, and so is everything here. A collective whose row says `kernel`, or whose buffers may all be exported, begins with
 * an exchange in which all ranks say where theirs are (peer_direct.h): buffers that all can map are used directly, whatever the row says. Whether that is asked for at all, and
 * a new time of a line, from which the table is made anew, ranks hear from their leader, rank 0, before the collective whose number is `next`:
 *
 *     leader  kl_agreement_say   the notice that holds from that collective on
 *     all     kl_agreement_on_notice
 *
 * With a table that is fixed nobody says anything.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_SELECT_AGREEMENT_H
#define KL_COLL_SELECT_AGREEMENT_H

#include "base/atomic.h"
#include "coll/select/line_watch.h"
#include "coll/select/select.h"

/* Collectives from one word of the leader to the next: as many as move KL_AGREEMENT_BYTES, within these. */
enum { KL_AGREEMENT_LEAST = 4, KL_AGREEMENT_MOST = 1024, KL_AGREEMENT_BYTES = 64 << 20 };

enum kl_agreed {
    KL_AGREED_STAGED,  /* the collective is done another way, */
    KL_AGREED_REFUSED, /* and so are all others for which the kernel would copy, as it does not, */
    KL_AGREED_DIRECT,  /* or is complete, in the ranks' own buffers, */
    KL_AGREED_KERNEL,  /* or by the kernel's copies, */
    KL_AGREED_REPAIRED /* which it refused in the middle: the rest was staged, and so are collectives from now on */
};

/** A leader's notice. */
struct kl_agreement_notice {
    uint32_t line_ns; /* the table is for */
    bool asks;        /* whether buffers are exported is asked */
};

struct kl_agreement {
    struct kl_select select;
    bool over;       /* it is agreed that the collective under way is done another way */
    bool unreadable; /* the kernel has refused */
    bool asks;
    uint64_t next;              /* collective before which ranks hear their leader; UINT64_MAX: before none */
    uint32_t heard;             /* notices so far */
    uint32_t direct, staged;    /* collectives since then that were asked for: done directly, or not */
    struct kl_line_watch watch; /* the leader's */
    _Atomic bool frozen;        /* the leader's notices change nothing; set by the thread of the calls */
};

void kl_agreement_init(struct kl_agreement *agreement, const struct kl_select_facts *facts);

static inline const struct kl_select_row *kl_agreement_row(const struct kl_agreement *a, int func, size_t bytes)
{
    return kl_select_row(&a->select, func, bytes, KL_BUFFERS_ORDINARY);
}

/** Does the kernel copy, if not all buffers are exported? */
static inline bool kl_agreement_reads(const struct kl_agreement *a, int func, size_t bytes)
{
    return !a->unreadable && kl_agreement_row(a, func, bytes)->copy == KL_COPY_KERNEL;
}

/** Does a collective begin with an exchange? The same at all ranks. */
static inline bool kl_agreement_due(const struct kl_agreement *a, int func, size_t bytes)
{
    return !a->over && (a->asks || kl_agreement_reads(a, func, bytes));
}

/** The exchange before the collective of that number has ended so. */
void kl_agreement_made(struct kl_agreement *agreement, enum kl_agreed agreed, uint64_t number);

/** The collective is complete, or has failed. */
static inline void kl_agreement_ended(struct kl_agreement *a)
{
    a->over = false;
}

/** By the leader: the notice for the collective that begins. `exported`: its buffers are. line_ns, number: see kl_line_watch. */
struct kl_agreement_notice kl_agreement_say(struct kl_agreement *agreement, bool exported, uint32_t line_ns,
                                            uint32_t number, uint64_t now);

/** From now on the leader's notices change nothing: replays of a graph have the same bits. Any thread. */
static inline void kl_agreement_freeze(struct kl_agreement *a)
{
    kl_store_relaxed(&a->frozen, true);
}

/** From the collective of that number, and so many bytes, on. True: the table was replaced. */
bool kl_agreement_on_notice(struct kl_agreement *agreement, struct kl_agreement_notice notice, uint64_t number,
                            size_t bytes);

#endif
