/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/loan.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/chaos.h"

#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 10000 }; /* with which an allocation is mapped */

/* As it travels, in the line of a step. */
struct loan {
    uint64_t at; /* in the allocation */
    uint32_t epoch, block;
    struct kl_range_ticket ticket;
};
_Static_assert(sizeof(struct loan) == 96 && sizeof(struct loan) <= KL_FIFO_INLINE, "a loan travels in a line");

/* ---- life ---- */

void kl_loans_fini(struct kl_loans *l)
{
    if (l->lent) kl_lent_fini(l->lent);
    free(l->lent);
    free(l->tries);
    l->lent = NULL;
    l->tries = NULL;
}

static bool begin(struct kl_loans *l)
{
    struct kl_lent *lent = kl_chaos_calloc(1, sizeof *lent);

    l->tries = kl_chaos_calloc((size_t)l->nranks, sizeof *l->tries);
    if (!lent || !l->tries || kl_lent_init(lent, kl_devices(), l->nranks, l->rank)) {
        free(lent);
        free(l->tries);
        l->tries = NULL;
        return false;
    }
    lent->processes = true;
    l->lent = lent;
    return true;
}

/* Made when first needed. What there is no memory for is not lent. */
static bool is_open(struct kl_loans *l)
{
    int quiet = kl_error_quiet(1);
    bool open = l->lent || begin(l);

    kl_error_quiet(quiet);
    return open;
}

/* ---- the sender ---- */

bool kl_loan_offer(struct kl_loans *l, int peer, struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more)
{
    const void *const buffer[KL_LENT_BUFFERS] = {[KL_LENT_SEND] = data};
    struct kl_lent_card card;
    struct kl_lent_tickets tickets;

    if (!l->on || !is_open(l)) return false;
    if (!kl_first_try_due(&l->tries[peer])) {
        kl_first_try_ended(&l->tries[peer], false);
        return false;
    }
    kl_lent_card(l->lent, buffer, &card);
    if (!card.lends) return false;
    kl_lent_tickets(l->lent, &card, &tickets);
    *(struct loan *)kl_fifo_next_payload(tx) = (struct loan){.at = card.at[KL_LENT_SEND],
                                                             .epoch = card.epoch,
                                                             .block = card.block[KL_LENT_SEND],
                                                             .ticket = tickets.ticket[KL_LENT_SEND]};
    kl_fifo_publish_lent(tx, bytes, more);
    return true;
}

void kl_loan_ended(struct kl_loans *l, int peer, bool declined)
{
    if (declined) kl_first_try_declined(&l->tries[peer]);
    kl_first_try_ended(&l->tries[peer], !declined);
}

/* ---- the receiver ---- */

enum kl_loan kl_loan_find(struct kl_loans *l, int peer, const struct kl_fifo_rx *rx, size_t bytes, const char **data)
{
    struct loan loan;

    if (!is_open(l)) return KL_LOAN_LOST;
    memcpy(&loan, kl_fifo_payload(rx), sizeof loan);
    if (loan.block >= KL_LENT_BLOCKS) return KL_LOAN_LOST;
    struct kl_lent_card card = kl_lent_card_of(KL_LENT_SEND, loan.at, loan.epoch, loan.block);
    struct kl_lent_tickets tickets = {.ticket[KL_LENT_SEND] = loan.ticket};
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_lent_import(l->lent, peer, &card, &tickets, kl_deadline_in_ms(PATIENCE_MS));

    kl_error_quiet(quiet);
    if (rc == ncclInProgress) return KL_LOAN_NOT_YET;
    *data = rc ? NULL : kl_lent_find(l->lent, peer, &card, KL_LENT_SEND, bytes);
    return *data ? KL_LOAN_HERE : KL_LOAN_LOST;
}
