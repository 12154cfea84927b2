/* SPDX-License-Identifier: Apache-2.0 */
/**
 * zcopy_offer.h - large messages between processes of a host that are not staged: the receiver copies them from where they lie. That is memory which it
 * can map (ncclMemAlloc), or any other, from which the kernel copies (os/cma.h).
 *
 * A step of the sender's fifo carries the loan: where the data are (peer_buffer.h), and how to map that, or else whose they are. The sender waits until
 * the receiver has given the step back, copied or declined. Declined data are sent another way; after KL_LOAN_REFUSALS in a row, so are all later ones to this receiver.
 *
 * Mapped memory is always lent. The table says whether the kernel copies other memory (select/select.h), by the bytes that a launch sends. Neither results nor other ranks
 * depend on that: each rank replaces its rows for itself, when the time of a line has changed.
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

#include "coll/select/line_watch.h"
#include "coll/select/select.h"
#include "coll/zcopy/peer_buffer.h"
#include "coll/zcopy/zcopy_config.h"
#include "os/cma.h"
#include "transport/fifo.h"

/* Bytes of a step that is lent: at least, to be read; at least, to be mapped; at most. */
enum { KL_LOAN_LEAST = 16 << 10, KL_LOAN_MAPPED_LEAST = 64 << 10, KL_LOAN_MOST = 1 << 30 };

/* A receiver that has declined so often, in a row, is not asked any more. */
enum { KL_LOAN_REFUSALS = 4 };

enum kl_loan_kind { KL_LOAN_MAPPED, KL_LOAN_READ, KL_LOAN_KINDS };

/** Of one peer. */
struct kl_loan_peer {
    uint8_t refusals[KL_LOAN_KINDS]; /* in a row */
    enum kl_loan_kind kind;          /* of the last loan */
    struct kl_cma_cache seen;        /* of its memory */
};

/** What a rank knows of loans. Stays where it is once something was lent. */
struct kl_loans {
    struct kl_lending lending;
    int nranks, rank;
    struct kl_lent *lent;       /* NULL: nothing has been lent yet; owned, as: */
    struct kl_loan_peer *peers; /* by rank */

    struct kl_select *select; /* NULL: data that cannot be mapped are staged */
    struct kl_line_watch watch;
    uint32_t launches; /* that the table was asked for */
    bool reads;        /* in this launch the kernel copies, */
    bool nt;           /* and this rank's own copies go past the caches */
};

void kl_loans_fini(struct kl_loans *loans);

/** A launch begins that sends `messages` of at most `bytes` to other ranks, and receives so many bytes from others. */
void kl_loans_begin(struct kl_loans *loans, size_t bytes, size_t messages, size_t received);

/** Lend the next step's data to `peer`. False: they can't be, are too few, or the peer has declined before. */
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
