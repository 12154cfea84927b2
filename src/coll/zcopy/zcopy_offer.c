/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/zcopy_offer.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/fault_inject.h"
#include "transport/pool.h"

#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 10000 }; /* with which an allocation is mapped */
enum { FEW = 2 };             /* messages of a launch: a ring. More are an all-to-all */

/* Bytes of a send that may be done before its receive is posted. */
enum { STAGED_AHEAD = KL_POOL_DEPTH * KL_POOL_SLOT_BYTES };

enum { NO_BLOCK = KL_LENT_BLOCKS }; /* the data are in no allocation that can be mapped */

/* As it travels, in the line of a step. */
struct loan {
    uint64_t at; /* in the allocation; or its address */
    uint32_t epoch, block;
    union {
        struct kl_range_export_handle ticket;
        struct kl_cma_process owner;
    };
    uint64_t note; /* what the sender has found (kl_loans_hear); 0: nothing */
};
_Static_assert(sizeof(struct loan) == 104 && sizeof(struct loan) <= KL_FIFO_INLINE, "a loan travels in a line");

/* ---- life ---- */

void kl_loans_fini(struct kl_loans *l)
{
    if (l->lent) kl_lent_fini(l->lent);
    free(l->lent);
    free(l->peers);
    l->lent = NULL;
    l->peers = NULL;
}

static bool begin(struct kl_loans *l)
{
    struct kl_lent *lent = kl_inject_calloc(1, sizeof *lent);

    l->peers = kl_inject_calloc((size_t)l->nranks, sizeof *l->peers);
    if (!lent || !l->peers || kl_lent_init(lent, kl_devices(), l->nranks, l->rank)) {
        free(lent);
        free(l->peers);
        l->peers = NULL;
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

/* Bytes that are lent to be mapped. The fewer cores there are for the ranks, the longer the sender waits for the answer. */
static size_t mapped_least(const struct kl_loans *l)
{
    return l->nranks > 4 ? 2 * KL_LOAN_MAPPED_LEAST : KL_LOAN_MAPPED_LEAST;
}

/* Is the peer asked again, after all that it has declined? */
static bool is_due(struct kl_first_try *tries)
{
    if (kl_first_try_due(tries)) return true;
    kl_first_try_ended(tries, false);
    return false;
}

static bool offer_mapped(const struct kl_loans *l, const void *data, struct loan *loan)
{
    const void *const buffer[KL_LENT_BUFFERS] = {[KL_LENT_SEND] = data};
    struct kl_lent_card card;
    struct kl_lent_tickets tickets;

    kl_lent_card(l->lent, buffer, &card);
    if (!card.lends) return false;
    kl_lent_tickets(l->lent, &card, &tickets);
    *loan = (struct loan){.at = card.at[KL_LENT_SEND],
                          .epoch = card.epoch,
                          .block = card.block[KL_LENT_SEND],
                          .ticket = tickets.ticket[KL_LENT_SEND],
                          .note = l->note};
    return true;
}

static struct loan offer_read(const struct kl_loans *l, const void *data)
{
    return (struct loan){
        .at = (uint64_t)(uintptr_t)data, .block = NO_BLOCK, .owner = kl_cma_self(&l->lending.process), .note = l->note};
}

/* The loan of either kind that is possible; false: none is. */
static bool make(const struct kl_loans *l, struct kl_loan_peer *p, const void *data, size_t bytes, struct loan *loan)
{
    if (l->lending.maps && bytes >= mapped_least(l) && is_due(&p->tries[KL_LOAN_MAPPED]) &&
        offer_mapped(l, data, loan)) {
        p->kind = KL_LOAN_MAPPED;
        return true;
    }
    if (!l->reads || !is_due(&p->tries[KL_LOAN_READ])) return false;
    p->kind = KL_LOAN_READ;
    *loan = offer_read(l, data);
    return true;
}

bool kl_loan_offer(struct kl_loans *l, int peer, struct kl_fifo_tx *tx, const void *data, size_t bytes, bool more)
{
    if (bytes < KL_LOAN_LEAST || (!l->lending.maps && !l->reads) || !is_open(l)) return false;
    if (!make(l, &l->peers[peer], data, bytes, kl_fifo_next_payload(tx))) return false;
    kl_fifo_publish_zcopy(tx, bytes, more);
    return true;
}

void kl_loan_ended(struct kl_loans *l, int peer, bool declined)
{
    struct kl_loan_peer *p = &l->peers[peer];

    if (declined) kl_first_try_declined(&p->tries[p->kind]);
    kl_first_try_ended(&p->tries[p->kind], !declined);
}

/* ---- staged or read ---- */

static int log2_of(size_t n)
{
    return 63 - __builtin_clzll(n);
}

static struct kl_lately *times_of(struct kl_loans *l, size_t bytes, size_t messages)
{
    const int doubled = log2_of(bytes * messages) - log2_of(KL_LOAN_LEAST),
              size = doubled < KL_LOAN_SIZES ? doubled : KL_LOAN_SIZES - 1;
    const size_t least = (size_t)KL_LOAN_LEAST << size;
    const struct kl_lately_use use = {.bytes = bytes * messages,
                                      .guess = kl_lending_guess(l->nranks, least),
                                      .sure = kl_lending_is_sure(l->nranks, least),
                                      .crowded = l->lending.crowded};

    return kl_lately_of(l->lately[messages > FEW], KL_LOAN_SIZES, size, use);
}

/* ---- notes ---- */

/*
 * A note: 1, which of the sizes (5 bits), the lowest 6 bits of the number of comparisons, and the times of both ways (26 bits each), in units of 64 ns.
 */
enum { UNIT_BITS = 6, TIME_BITS = 26, NUMBER_BITS = 6 };
enum { NUMBER_AT = 2 * TIME_BITS, SIZE_AT = NUMBER_AT + NUMBER_BITS, VALID_AT = 63 };
_Static_assert(2 * KL_LOAN_SIZES <= 1 << (VALID_AT - SIZE_AT), "a size has its bits");

static uint64_t low_bits(uint64_t of, int n)
{
    return of & (((uint64_t)1 << n) - 1);
}

static uint64_t note_time(uint64_t ns)
{
    const uint64_t most = ((uint64_t)1 << TIME_BITS) - 1;

    return ns >> UNIT_BITS < most ? ns >> UNIT_BITS : most;
}

/* But for the times. */
static uint64_t note_head(const struct kl_loans *l)
{
    return (uint64_t)1 << VALID_AT | (uint64_t)(l->times - &l->lately[0][0]) << SIZE_AT |
           low_bits(l->times->number, NUMBER_BITS) << NUMBER_AT;
}

static void make_note(struct kl_loans *l)
{
    const uint64_t *ns = l->times->slowest;

    l->note = kl_lately_hears(l->times) ? note_head(l) | note_time(ns[0]) << TIME_BITS | note_time(ns[1]) : 0;
}

void kl_loans_hear(struct kl_loans *l, uint64_t note)
{
    const uint64_t ns[] = {low_bits(note >> TIME_BITS, TIME_BITS) << UNIT_BITS, low_bits(note, TIME_BITS) << UNIT_BITS};

    if (!note || !l->note || note >> NUMBER_AT != note_head(l) >> NUMBER_AT) return;
    kl_lately_hear(l->times, ns);
    make_note(l);
}

void kl_loans_begin(struct kl_loans *l, size_t bytes, size_t messages, size_t received)
{
    l->reads = false;
    l->times = NULL;
    l->note = 0;
    kl_stores_begin(&l->stores, l->nranks, (size_t)l->nranks * (messages * bytes + received));
    if (bytes < KL_LOAN_LEAST || (!received && bytes <= STAGED_AHEAD)) return;
    l->reads = l->lending.copies == KL_KERNEL_COPIES_ALWAYS;
    if (l->lending.copies != KL_KERNEL_COPIES_AUTO) return;
    l->times = times_of(l, bytes, messages);
    if (kl_lately_is_compared(l->times)) kl_lately_decide(l->times, l->times->ns);
    l->reads = kl_lately_way(l->times);
    make_note(l);
    l->began = kl_lately_is_timed(l->times) ? kl_now_ns() : 0;
}

void kl_loans_complete(struct kl_loans *l)
{
    kl_stores_end(&l->stores);
    if (l->times) kl_lately_took(l->times, l->began ? kl_now_ns() - l->began : 0);
    l->times = NULL;
    l->note = 0;
}

/* ---- the receiver ---- */

enum kl_loan kl_loan_find(struct kl_loans *l, int peer, const struct kl_fifo_rx *rx, size_t bytes,
                          struct kl_loan_data *data)
{
    struct loan loan;

    memcpy(&loan, kl_fifo_payload(rx), sizeof loan);
    kl_loans_hear(l, loan.note);
    if (!is_open(l)) return KL_LOAN_LOST;
    if (loan.block == NO_BLOCK) {
        *data = (struct kl_loan_data){.there = loan.at, .owner = loan.owner, .seen = &l->peers[peer].seen};
        return KL_LOAN_HERE;
    }
    if (loan.block >= KL_LENT_BLOCKS) return KL_LOAN_LOST;
    struct kl_lent_card card = kl_lent_card_of(KL_LENT_SEND, loan.at, loan.epoch, loan.block);
    struct kl_lent_tickets tickets = {.ticket[KL_LENT_SEND] = loan.ticket};
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_lent_import(l->lent, peer, &card, &tickets, kl_deadline_in_ms(PATIENCE_MS));

    kl_error_quiet(quiet);
    if (rc == ncclInProgress) return KL_LOAN_NOT_YET;
    data->here = rc ? NULL : kl_lent_find(l->lent, peer, &card, KL_LENT_SEND, bytes);
    return data->here ? KL_LOAN_HERE : KL_LOAN_LOST;
}
