/* SPDX-License-Identifier: Apache-2.0 */
/**
 * zcopy_offer.h - large messages between processes of a host that are not staged: the receiver copies them from where they lie. That is memory which it
 * can map (ncclMemAlloc), or any other, from which the kernel copies (os/cma.h).
 *
 * A step of the sender's fifo carries the loan: where the data are (peer_buffer.h), and how to map that, or else whose they are. The sender waits until
 * the receiver has given the step back, copied or declined; what was declined is sent another way. Receivers that decline are asked ever more
 * seldom (first_try.h).
 *
 * Mapped memory is always lent. The kernel's copies cost a call of the system and the tables of the pages; staging costs a second copy, which
 * overlaps with the first. Which is faster depends on the memory of the machine and on who shares its CPUs, so both are tried
 * (lately.h), launch by launch. Ranks that wait for each other's messages all lose if one of them chooses the slower way. So each notes with what it sends
 * what it has found, and has heard of others: after as many launches as messages lie between two ranks, both decide by the slowest times of all. That
 * takes for granted that they send alike, and have so far; where they do not, each decides by its own.
 *
 * A launch that only sends, and so little that it can be complete before the receives are posted, has its data staged: NCCL's programs may not
 * count on that, but many do, and whether they hang must not depend on what was faster. One that receives as well may wait.
 *
 * Aborts:  a sender takes back what it has lent without waiting: a receiver that copies at that moment finds out when it is done, and counts the data
 *          as not received. What it has mapped stays mapped, so it reads nothing else meanwhile; what the kernel reads may be anything.
 * Threads: one at a time per rank.
 */
#ifndef KL_COLL_ZCOPY_ZCOPY_OFFER_H
#define KL_COLL_ZCOPY_ZCOPY_OFFER_H

#include "coll/first_try.h"
#include "coll/lately.h"
#include "coll/zcopy/zcopy_config.h"
#include "coll/zcopy/peer_buffer.h"
#include "coll/stores.h"
#include "os/cma.h"
#include "transport/fifo.h"

/* Bytes of a step that is lent: at least, to be read; at least, to be mapped; at most. */
enum { KL_LOAN_LEAST = 16 << 10, KL_LOAN_MAPPED_LEAST = 64 << 10, KL_LOAN_MOST = 1 << 30 };

enum kl_loan_kind { KL_LOAN_MAPPED, KL_LOAN_READ, KL_LOAN_KINDS };

/** Of one peer. */
struct kl_loan_peer {
    struct kl_first_try tries[KL_LOAN_KINDS];
    enum kl_loan_kind kind;   /* of the last loan */
    struct kl_cma_cache seen; /* of its memory */
};

enum { KL_LOAN_SIZES = 16 }; /* of what a rank sends: powers of 2, from KL_LOAN_LEAST */

/** What a rank knows of loans. Stays where it is once something was lent. */
struct kl_loans {
    struct kl_lending lending;
    int nranks, rank;
    struct kl_lent *lent;       /* NULL: nothing has been lent yet; owned, as: */
    struct kl_loan_peer *peers; /* by rank */

    bool reads;                                /* in this launch the kernel copies */
    struct kl_lately lately[2][KL_LOAN_SIZES]; /* staged or read: with few or many messages, by size */
    struct kl_lately *times;                   /* of this launch, or NULL */
    uint64_t began;                            /* ns, kl_now_ns; 0: the launch is not timed */
    uint64_t note;                             /* what this rank says of `times` with what it sends; 0: nothing */
    struct kl_stores stores;                   /* of what this rank copies itself */
};

void kl_loans_fini(struct kl_loans *loans);

/** A launch begins that sends `messages` of at most `bytes` to other ranks, and receives so many bytes from others. */
void kl_loans_begin(struct kl_loans *loans, size_t bytes, size_t messages, size_t received);

/** It is complete. */
void kl_loans_complete(struct kl_loans *loans);

/** A rank that sends in this launch has noted this. */
void kl_loans_hear(struct kl_loans *loans, uint64_t note);

/** Lend the next step's data to `peer`. False: they can't be, are too few, or the peer has declined lately. */
bool kl_loan_offer(struct kl_loans *loans, int peer, struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more);

/** What the peer did with it. */
void kl_loan_ended(struct kl_loans *loans, int peer, bool declined);

enum kl_loan { KL_LOAN_HERE, KL_LOAN_NOT_YET, KL_LOAN_LOST };

/** What a peer lends: mapped here, or in its memory. */
struct kl_loan_data {
    const char *here;            /* NULL: */
    uint64_t there;              /* at this address, */
    struct kl_cma_process owner; /* of that process */
    struct kl_cma_cache *seen;
};

/** Where the `bytes` of the next step are, which a peer lends. LOST: they cannot be reached. Never waits. */
enum kl_loan kl_loan_find(struct kl_loans *loans, int peer, const struct kl_fifo_rx *rx, size_t bytes,
                          struct kl_loan_data *data);

#endif
