/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/peer_direct.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "device/host/bulk_copy.h"

#include <string.h>

enum { PATIENCE_MS = 10000 }; /* with which allocations are mapped */

static const char *function(const struct kl_mapped_op *op)
{
    return kl_func_info[op->work.share->func].name;
}

/* ---- what a function lends ---- */

/* Do others read what a rank sends? */
static bool lends_send(const struct kl_channel_work *s, int rank)
{
    return s->func != KL_FUNC_BROADCAST || rank == s->root;
}

/* Do others write what it receives? */
static bool lends_recv(const struct kl_channel_work *s, int rank)
{
    return s->func == KL_FUNC_ALL_REDUCE || s->func == KL_FUNC_BROADCAST ||
           (s->func == KL_FUNC_REDUCE && rank == s->root);
}

/* ---- turns: what all post ---- */

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

/* Of an all-to-all in place others must not read this rank's parts while it overwrites them: they are staged. */
static bool overwrites_own(const struct kl_mapped_op *op)
{
    const struct kl_channel_work *s = op->work.share;
    const uint64_t from = address(s->send), to = address(s->recv);

    return s->func == KL_FUNC_ALL_TO_ALL && from < to + kl_mapped_recv_bytes(&op->work) &&
           to < from + kl_mapped_send_bytes(&op->work);
}

static void post_card(struct kl_mapped_op *op)
{
    struct kl_mapped *m = op->mapped;
    const struct kl_channel_work *s = op->work.share;
    const int me = m->board.rank;
    struct kl_mapped_card *card = kl_shm_exchange_open(&m->board, sizeof *card);
    const void *const buffer[KL_PEER_BUFFER_BUFFERS] = {lends_send(s, me) ? s->send : NULL,
                                                        lends_recv(s, me) ? s->recv : NULL};

    _Static_assert(sizeof *card <= KL_SHM_EXCHANGE_INLINE, "a card travels in a line");
    const bool apart = !overwrites_own(op);
    kl_shm_exchange_copies(&m->board, card, kl_mapped_send_bytes(&op->work));
    *card = (struct kl_mapped_card){.readable = s->mark && apart};
    if (!m->broken && s->lends && apart) kl_peer_buffer_info(&m->lent, buffer, &card->lent);
    if (s->mark) card->far = (struct kl_read_far){kl_cma_self(s->mark), {address(s->send), address(s->recv)}};
}

/* Bytes of a post. */
static size_t posted_bytes(const struct kl_mapped_op *op)
{
    if (op->stage == KL_MAPPED_CARDS) return sizeof(struct kl_mapped_card);
    if (op->stage == KL_MAPPED_LEFT) return sizeof(struct kl_read_left);
    if (op->stage == KL_MAPPED_REPAIR) return op->mend.piece.bytes;
    return op->stage == KL_MAPPED_TICKETS ? sizeof(struct kl_peer_buffer_handles) : 1;
}

static void post(struct kl_mapped_op *op)
{
    struct kl_shm_exchange *b = &op->mapped->board;

    if (op->stage == KL_MAPPED_CARDS)
        post_card(op);
    else if (op->stage == KL_MAPPED_LEFT)
        memcpy(kl_shm_exchange_open(b, sizeof op->left), &op->left, sizeof op->left);
    else if (op->stage == KL_MAPPED_REPAIR)
        kl_repair_post(&op->mend, kl_shm_exchange_open(b, posted_bytes(op)));
    else if (op->stage == KL_MAPPED_TICKETS)
        kl_peer_buffer_handles(&op->mapped->lent, &op->mapped->card[b->rank],
                               kl_shm_exchange_open(b, sizeof(struct kl_peer_buffer_handles)));
    else
        *(uint8_t *)kl_shm_exchange_open(b, 1) = !op->failed;
    kl_shm_exchange_announce(b, posted_bytes(op), op->work.share->signature);
}

static bool try_post(struct kl_mapped_op *op)
{
    int blocker;

    if (op->posted) return true;
    if (!kl_shm_exchange_may_post(&op->mapped->board, posted_bytes(op), &blocker)) return false;
    post(op);
    return op->posted = true;
}

/* ---- turns: what all hear ---- */

/* Map what is fresh of a rank. False: not yet. What cannot be mapped all hear of in the next turn. */
static bool import(struct kl_mapped_op *op, int from)
{
    struct kl_mapped *m = op->mapped;
    struct kl_peer_buffer_handles tickets;

    if (from == m->board.rank || !m->card[from].fresh) return true;
    if (!op->deadline) op->deadline = kl_deadline_in_ms(PATIENCE_MS);
    memcpy(&tickets, kl_shm_exchange_data(&m->board, from, sizeof tickets), sizeof tickets);
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_peer_buffer_import(&m->lent, from, &m->card[from], &tickets, op->deadline);
    kl_error_quiet(quiet);
    op->failed |= rc && rc != ncclInProgress;
    return rc != ncclInProgress;
}

static void hear_card(struct kl_mapped_op *op, int from)
{
    struct kl_mapped *m = op->mapped;
    struct kl_mapped_card card;

    memcpy(&card, kl_shm_exchange_data(&m->board, from, sizeof card), sizeof card);
    m->card[from] = card.lent;
    m->far[from] = card.far;
    op->all &= card.lent.lends;
    op->fresh |= card.lent.fresh;
    op->readable &= card.readable;
}

static bool hear(struct kl_mapped_op *op, int from)
{
    struct kl_shm_exchange *b = &op->mapped->board;

    if (op->stage == KL_MAPPED_TICKETS) return import(op, from);
    if (op->stage == KL_MAPPED_CARDS)
        hear_card(op, from);
    else if (op->stage == KL_MAPPED_LEFT)
        memcpy(&op->mapped->left[from], kl_shm_exchange_data(b, from, sizeof op->left), sizeof op->left);
    else if (op->stage == KL_MAPPED_VERDICTS)
        op->all &= *(const uint8_t *)kl_shm_exchange_data(b, from, 1) != 0;
    return true;
}

/* ---- turns: what follows ---- */

static bool find_buffers(struct kl_mapped_op *op)
{
    struct kl_mapped *m = op->mapped;
    const struct kl_channel_work *s = op->work.share;

    for (int r = 0; r < m->board.nranks; r++) {
        m->send[r] =
            kl_peer_buffer_find(&m->lent, r, &m->card[r], KL_PEER_BUFFER_SEND, kl_mapped_send_bytes(&op->work));
        m->recv[r] =
            kl_peer_buffer_find(&m->lent, r, &m->card[r], KL_PEER_BUFFER_RECV, kl_mapped_recv_bytes(&op->work));
        if ((lends_send(s, r) && !m->send[r]) || (lends_recv(s, r) && !m->recv[r])) return false;
    }
    return true;
}

static bool reads(const struct kl_mapped_op *op)
{
    return op->agreed == KL_AGREED_KERNEL;
}

static void begin_work(struct kl_mapped_op *op, ncclResult_t *rc)
{
    op->stage = KL_MAPPED_WORK;
    if (!reads(op) && !find_buffers(op))
        *rc = KL_FAIL(ncclRemoteError, "%s: a rank has lent a buffer that is outside of its memory", function(op));
}

static void decline(struct kl_mapped_op *op)
{
    op->agreed = KL_AGREED_STAGED;
    op->stage = KL_MAPPED_END;
}

/* May this rank read the memory of all others? */
static bool may_read_all(const struct kl_mapped *m)
{
    for (int r = 0; r < m->board.nranks; r++)
        if (r != m->board.rank && !kl_cma_is_permitted(&m->far[r].owner)) return false;
    return true;
}

/* All have said what they can. */
static void after_cards(struct kl_mapped_op *op, ncclResult_t *rc)
{
    struct kl_mapped *m = op->mapped;

    op->agreed = op->all                                 ? KL_AGREED_DIRECT
                 : op->readable && op->work.share->reads ? KL_AGREED_KERNEL
                                                         : KL_AGREED_STAGED;
    if (op->agreed == KL_AGREED_STAGED) {
        decline(op);
    } else if (reads(op) && !m->proved) {
        op->failed = !may_read_all(m);
        op->stage = KL_MAPPED_VERDICTS;
        op->all = true;
    } else if (!reads(op) && op->fresh) {
        op->stage = KL_MAPPED_TICKETS;
    } else {
        begin_work(op, rc);
    }
}

/* All have said whether they could. */
static void after_verdicts(struct kl_mapped_op *op, ncclResult_t *rc)
{
    struct kl_mapped *m = op->mapped;
    const bool by_kernel = reads(op);

    if (by_kernel)
        m->proved = op->all;
    else
        m->broken = !op->all;
    if (!op->all) {
        decline(op);
        if (by_kernel) op->agreed = KL_AGREED_REFUSED;
        return;
    }
    if (!by_kernel) kl_peer_buffers_announced(&m->lent);
    begin_work(op, rc);
}

/* All have said what is left; mostly nothing, and all are done with others' memory. */
static void after_left(struct kl_mapped_op *op)
{
    struct kl_mapped *m = op->mapped;
    bool lost = false;

    for (int r = 0; r < m->board.nranks; r++) lost |= m->left[r].lost;
    op->stage = lost ? KL_MAPPED_REPAIR : KL_MAPPED_END;
    if (!lost) return;
    op->agreed = KL_AGREED_REPAIRED;
    kl_repair_start(&op->mend, &op->reading, m->left, m->board.slot_bytes);
    if (!op->mend.piece.bytes) op->stage = KL_MAPPED_END;
}

/* A piece is there. */
static void take_piece(struct kl_mapped_op *op)
{
    const struct kl_shm_exchange *b = &op->mapped->board;
    const void *posts[KL_SHM_EXCHANGE_RANKS];

    for (int r = 0; r < b->nranks; r++) posts[r] = kl_shm_exchange_data(b, r, op->mend.piece.bytes);
    kl_repair_take(&op->mend, posts);
}

/* All ranks see the same posts, and so go on alike. */
static void next_stage(struct kl_mapped_op *op, ncclResult_t *rc)
{
    if (op->stage == KL_MAPPED_CARDS)
        after_cards(op, rc);
    else if (op->stage == KL_MAPPED_TICKETS)
        op->stage = KL_MAPPED_VERDICTS;
    else if (op->stage == KL_MAPPED_VERDICTS)
        after_verdicts(op, rc);
    else if (op->stage == KL_MAPPED_LEFT)
        after_left(op);
    else if (kl_repair_next(&op->mend), !op->mend.piece.bytes)
        op->stage = KL_MAPPED_END;
}

/* False: not yet, or *rc says why not. */
static bool turn(struct kl_mapped_op *op, ncclResult_t *rc)
{
    struct kl_shm_exchange *b = &op->mapped->board;

    if (!try_post(op)) return false;
    for (; op->arrived < b->nranks; op->arrived++) {
        const enum kl_comparison got =
            kl_shm_exchange_has_come(b, op->arrived, posted_bytes(op), op->work.share->signature);
        if (got == KL_OTHER) *rc = kl_shm_exchange_refuse(b, op->arrived, function(op));
        if (got != KL_SAME || !hear(op, op->arrived)) return false;
    }
    if (op->stage == KL_MAPPED_REPAIR) take_piece(op);
    b->compared = b->turn + 1;
    kl_shm_exchange_next_round(b);
    op->posted = false;
    op->arrived = 0;
    next_stage(op, rc);
    return !*rc;
}

/* ---- work ---- */

static void note_lost(struct kl_mapped_op *op)
{
    const struct kl_read_work *w = &op->reading;

    KL_INFO(KL_COLL, "%s: rank %d cannot reach the memory of rank %d any more, and goes on without", function(op),
            w->rank, w->lost);
    op->left = (struct kl_read_left){.lost = true, .taken = w->taken, .moved = w->moved, .reduced = w->reduced};
}

/* By the kernel's copies. True: there is no more, or not this way. */
static bool read_some(struct kl_mapped_op *op)
{
    const enum kl_read_progress got = kl_read_work(&op->reading);

    if (got == KL_READ_LOST) note_lost(op);
    return got != KL_READ_MORE;
}

static bool map_some(struct kl_mapped_op *op)
{
    const bool done = kl_mapped_work(&op->work);

    if (op->work.share->nt) kl_nontemporal_fence();
    return done;
}

static void work_some(struct kl_mapped_op *op, ncclResult_t *rc)
{
    struct kl_mapped *m = op->mapped;

    if (!kl_arena_touch(m->mark, m->board.rank, m->board.nranks)) {
        *rc = KL_FAIL(ncclRemoteError, "%s: a rank has failed, and takes back its buffers", function(op));
        return;
    }
    const bool done = reads(op) ? read_some(op) : map_some(op);
    kl_arena_untouch(m->mark, m->board.rank);
    if (!done) return;
    op->stage = reads(op) ? KL_MAPPED_LEFT : KL_MAPPED_END;
}

/* ---- an operation ---- */

void kl_mapped_start(struct kl_mapped_op *op, struct kl_mapped *mapped, const struct kl_channel_work *share)
{
    *op = (struct kl_mapped_op){.mapped = mapped, .all = true, .readable = true};
    op->work = (struct kl_mapped_work){.share = share,
                                       .rank = mapped->board.rank,
                                       .nranks = mapped->board.nranks,
                                       .send = mapped->send,
                                       .recv = mapped->recv};
    op->reading = (struct kl_read_work){.share = share,
                                        .rank = mapped->board.rank,
                                        .nranks = mapped->board.nranks,
                                        .far = mapped->far,
                                        .seen = mapped->seen,
                                        .scratch = mapped->scratch};
    mapped->lent.processes = share->processes;
}

/* Mapped buffers are in use until all have come to the end. */
static bool is_mapped(const struct kl_mapped_op *op)
{
    return op->agreed == KL_AGREED_DIRECT;
}

/* The last turn is nothing but a mark that this rank has come to: others still read what it lends. */
static enum kl_progress end(struct kl_mapped_op *op)
{
    struct kl_shm_exchange *b = &op->mapped->board;
    int blocker;

    if (!is_mapped(op)) return KL_DONE;
    if (!op->posted) {
        if (!kl_shm_exchange_may_post(b, 0, &blocker)) return KL_STALLED;
        kl_shm_exchange_call(b, op->work.share->signature);
        b->compared = b->turn + 1;
        kl_shm_exchange_next_round(b);
        op->posted = true;
    }
    return kl_shm_exchange_all_done(b, &blocker) ? KL_DONE : KL_STALLED;
}

enum kl_progress kl_mapped_progress(struct kl_mapped_op *op, ncclResult_t *rc)
{
    const enum kl_mapped_stage before = op->stage;
    const int arrived = op->arrived;
    const bool posted = op->posted;

    while (op->stage < KL_MAPPED_END) {
        if (op->stage == KL_MAPPED_WORK) {
            work_some(op, rc);
            if (*rc) return KL_DONE;
            if (op->stage == KL_MAPPED_WORK) return KL_MOVED;
        } else if (!turn(op, rc)) {
            if (*rc) return KL_DONE;
            return op->stage != before || op->arrived != arrived || op->posted != posted ? KL_MOVED : KL_STALLED;
        }
    }
    enum kl_progress got = end(op);
    return got == KL_STALLED && op->stage != before ? KL_MOVED : got;
}

/* ---- diagnosis ---- */

static int blocker(struct kl_mapped_op *op)
{
    struct kl_shm_exchange *b = &op->mapped->board;
    int rank = -1;

    if (op->stage == KL_MAPPED_WORK) return -1;
    if (op->stage == KL_MAPPED_END) return !is_mapped(op) || kl_shm_exchange_all_done(b, &rank) ? -1 : rank;
    if (!op->posted) return kl_shm_exchange_may_post(b, posted_bytes(op), &rank) ? -1 : rank;
    if (op->arrived == b->nranks) return -1;
    return kl_shm_exchange_is_there(b, op->arrived, posted_bytes(op)) ? -1 : op->arrived;
}

int kl_mapped_blocked_on(struct kl_mapped_op *op, bool gone)
{
    int rank = blocker(op);

    if (!gone || rank < 0) return rank;
    /* What a rank did before it left is visible when its mark is. */
    return kl_arena_left(op->mapped->mark, rank) && blocker(op) == rank ? rank : -1;
}
