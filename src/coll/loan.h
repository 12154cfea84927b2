/* SPDX-License-Identifier: Apache-2.0 */
/**
 * loan.h - large messages between processes of a host that are not staged: the receiver copies them from where they lie, if that is memory
 * which it can map (ncclMemAlloc).
 *
 * A step of the sender's fifo carries the loan: where the data are (lent.h), and how to map that. The sender waits until the receiver has given
 * the step back, copied or declined; what was declined is sent another way. Receivers that decline are asked ever more seldom (first_try.h).
 *
 * Aborts:  a sender takes back what it has lent without waiting: a receiver that copies at that moment finds out when it is done, and counts the data
 *          as not received. What it has mapped stays mapped, so it reads nothing else meanwhile.
 * Threads: one at a time per rank.
 */
#ifndef KL_COLL_LOAN_H
#define KL_COLL_LOAN_H

#include "coll/first_try.h"
#include "coll/lent.h"
#include "transport/fifo.h"

enum { KL_LOAN_LEAST = 64 << 10, KL_LOAN_MOST = 1 << 30 }; /* bytes of a step that is lent */

/** What a rank knows of loans. */
struct kl_loans {
    bool on; /* this rank may lend */
    int nranks, rank;
    struct kl_lent *lent;       /* NULL: nothing has been lent yet; owned, as: */
    struct kl_first_try *tries; /* by peer */
};

void kl_loans_fini(struct kl_loans *loans);

/** Lend the next step's data to `peer`. False: it can't be, or the peer has declined lately. */
bool kl_loan_offer(struct kl_loans *loans, int peer, struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more);

/** What the peer did with it. */
void kl_loan_ended(struct kl_loans *loans, int peer, bool declined);

enum kl_loan { KL_LOAN_HERE, KL_LOAN_NOT_YET, KL_LOAN_LOST };

/** Where the `bytes` of the next step are, which a peer lends. LOST: they cannot be mapped. Never waits. */
enum kl_loan kl_loan_find(struct kl_loans *loans, int peer, const struct kl_fifo_rx *rx, size_t bytes,
                          const char **data);

#endif
