/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/mapped.h"

#include "base/clock.h"
#include "base/error.h"
#include "coll/mover.h"
#include "device/host/past_cache.h"

#include <string.h>

enum {
    BLOCK = 4096, /* bytes reduced at a time, so that they stay in the nearest cache; two of them are the scratch */
    PIECE = 256 << 10,  /* bytes between two looks at whether somebody has failed, and at others' work */
    GRAIN = 64,         /* bytes: slices are multiples of it */
    LOOKS = 32,         /* at a line before others are asked what there is to do */
    PATIENCE_MS = 10000 /* with which allocations are mapped */
};
_Static_assert(2 * BLOCK <= KL_SCRATCH_BYTES, "two blocks");

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- what the functions have in common ---- */

static size_t part_bytes(const struct kl_share *s)
{
    return s->count * s->elem_bytes;
}

static size_t send_bytes(const struct kl_mapped_op *op)
{
    return kl_func_bytes(KL_FUNC_BROADCAST, part_bytes(&op->share), 1) *
           (kl_func_info[op->share.func].send_parts ? (size_t)op->mapped->board.nranks : 1);
}

static size_t recv_bytes(const struct kl_mapped_op *op)
{
    return part_bytes(&op->share) * (kl_func_info[op->share.func].recv_parts ? (size_t)op->mapped->board.nranks : 1);
}

/* Do others read what a rank sends? */
static bool lends_send(const struct kl_share *s, int rank)
{
    return s->func != KL_FUNC_BROADCAST || rank == s->root;
}

/* Do others write what it receives? */
static bool lends_recv(const struct kl_share *s, int rank)
{
    return s->func == KL_FUNC_ALL_REDUCE || s->func == KL_FUNC_BROADCAST ||
           (s->func == KL_FUNC_REDUCE && rank == s->root);
}

/* Is every rank's work a slice of what one or all send? */
static bool is_sliced(const struct kl_share *s)
{
    return s->func == KL_FUNC_ALL_REDUCE || s->func == KL_FUNC_BROADCAST || s->func == KL_FUNC_REDUCE;
}

/* ---- turns: what all post ---- */

static void post_card(struct kl_mapped_op *op)
{
    struct kl_mapped *m = op->mapped;
    const struct kl_share *s = &op->share;
    const int me = m->board.rank;
    struct kl_lent_card *card = kl_board_data(&m->board, me, sizeof *card);
    const void *const buffer[KL_LENT_BUFFERS] = {lends_send(s, me) ? s->send : NULL,
                                                 lends_recv(s, me) ? s->recv : NULL};

    _Static_assert(sizeof *card <= KL_BOARD_INLINE, "a card travels in a line");
    *card = (struct kl_lent_card){0};
    if (!m->broken && s->lends) kl_lent_card(&m->lent, buffer, card);
}

static void post(struct kl_mapped_op *op)
{
    struct kl_board *b = &op->mapped->board;

    if (op->stage == KL_MAPPED_CARDS)
        post_card(op);
    else if (op->stage == KL_MAPPED_TICKETS)
        kl_lent_tickets(&op->mapped->lent, &op->mapped->card[b->rank],
                        kl_board_data(b, b->rank, sizeof(struct kl_lent_tickets)));
    else
        *(uint8_t *)kl_board_data(b, b->rank, 1) = !op->failed;
    kl_board_announce(b, op->share.signature);
}

static bool try_post(struct kl_mapped_op *op)
{
    size_t bytes = op->stage == KL_MAPPED_TICKETS ? sizeof(struct kl_lent_tickets) : sizeof(struct kl_lent_card);
    int blocker;

    if (op->posted) return true;
    if (!kl_board_may_post(&op->mapped->board, bytes, &blocker)) return false;
    post(op);
    return op->posted = true;
}

/* ---- turns: what all hear ---- */

static bool has_come(struct kl_board *b, int rank)
{
    for (int i = 0; i < LOOKS; i++)
        if (kl_board_ready(b, rank)) return true;
    return false;
}

static ncclResult_t check(const struct kl_mapped_op *op, int from)
{
    if (kl_board_post(&op->mapped->board, from)->signature == op->share.signature) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent what belongs to another call than that of rank %d: the ranks call with different "
                   "counts, types or operations",
                   kl_func_info[op->share.func].name, from, op->mapped->board.rank);
}

/* Map what is fresh of a rank. False: not yet. What cannot be mapped all hear of in the next turn. */
static bool import(struct kl_mapped_op *op, int from)
{
    struct kl_mapped *m = op->mapped;
    struct kl_lent_tickets tickets;

    if (from == m->board.rank || !m->card[from].fresh) return true;
    if (!op->deadline) op->deadline = kl_deadline_in_ms(PATIENCE_MS);
    memcpy(&tickets, kl_board_data(&m->board, from, sizeof tickets), sizeof tickets);
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_lent_import(&m->lent, from, &m->card[from], &tickets, op->deadline);
    kl_error_quiet(quiet);
    op->failed |= rc && rc != ncclInProgress;
    return rc != ncclInProgress;
}

static void hear_card(struct kl_mapped_op *op, int from)
{
    struct kl_lent_card *card = &op->mapped->card[from];

    memcpy(card, kl_board_data(&op->mapped->board, from, sizeof *card), sizeof *card);
    op->all &= card->lends;
    op->fresh |= card->fresh;
}

static bool hear(struct kl_mapped_op *op, int from)
{
    struct kl_board *b = &op->mapped->board;

    if (op->stage == KL_MAPPED_TICKETS) return import(op, from);
    if (op->stage == KL_MAPPED_CARDS)
        hear_card(op, from);
    else
        op->all &= *(const uint8_t *)kl_board_data(b, from, 1) != 0;
    return true;
}

/* ---- turns: what follows ---- */

static bool find_buffers(struct kl_mapped_op *op)
{
    struct kl_mapped *m = op->mapped;
    const struct kl_share *s = &op->share;

    for (int r = 0; r < m->board.nranks; r++) {
        m->send[r] = kl_lent_find(&m->lent, r, &m->card[r], KL_LENT_SEND, send_bytes(op));
        m->recv[r] = kl_lent_find(&m->lent, r, &m->card[r], KL_LENT_RECV, recv_bytes(op));
        if ((lends_send(s, r) && !m->send[r]) || (lends_recv(s, r) && !m->recv[r])) return false;
    }
    return true;
}

static void begin_work(struct kl_mapped_op *op, ncclResult_t *rc)
{
    const size_t all = (size_t)op->mapped->board.nranks * (send_bytes(op) + recv_bytes(op));

    op->stage = KL_MAPPED_WORK;
    op->past = all > op->mapped->cache_bytes;
    if (!find_buffers(op))
        *rc = KL_FAIL(ncclRemoteError, "%s: a rank has lent a buffer that is outside of its memory",
                      kl_func_info[op->share.func].name);
}

/* All ranks see the same posts, and so go on alike. */
static void next_stage(struct kl_mapped_op *op, ncclResult_t *rc)
{
    switch (op->stage) {
    case KL_MAPPED_CARDS:
        op->declined = !op->all;
        if (op->declined)
            op->stage = KL_MAPPED_END;
        else if (op->fresh)
            op->stage = KL_MAPPED_TICKETS;
        else
            begin_work(op, rc);
        return;
    case KL_MAPPED_TICKETS:
        op->stage = KL_MAPPED_VERDICTS;
        return;
    default:
        op->mapped->broken = op->declined = !op->all;
        if (op->all) kl_lent_told(&op->mapped->lent);
        if (op->all)
            begin_work(op, rc);
        else
            op->stage = KL_MAPPED_END;
    }
}

/* False: not yet, or *rc says why not. */
static bool turn(struct kl_mapped_op *op, ncclResult_t *rc)
{
    struct kl_board *b = &op->mapped->board;

    if (!try_post(op)) return false;
    for (; op->arrived < b->nranks; op->arrived++) {
        if (!has_come(b, op->arrived)) return false;
        *rc = check(op, op->arrived);
        if (*rc || !hear(op, op->arrived)) return false;
    }
    b->compared = b->turn + 1;
    kl_board_next_turn(b);
    op->posted = false;
    op->arrived = 0;
    next_stage(op, rc);
    return !*rc;
}

/* ---- work ---- */

/* `ahead`: bytes that are read next, as many; or NULL. */
static void put(const struct kl_mapped_op *op, char *to, const char *from, size_t bytes, const char *ahead)
{
    if (op->past)
        kl_copy_past_cache(to, from, bytes, ahead);
    else
        memcpy(to, from, bytes);
}

/* Element `first` of all inputs reduced, `count` of them. */
static void reduce(const struct kl_mapped_op *op, char *to, size_t first, size_t count)
{
    const struct kl_redop *redop = op->share.redop;
    const int n = op->mapped->board.nranks;
    const void *partial[KL_BOARD_RANKS];
    char *other = (char *)op->share.scratch + BLOCK;

    for (int r = 0; r < n; r++) partial[r] = op->mapped->send[r] + first * redop->elem_bytes;
    if (!redop->first) {
        kl_redop_merge_all(redop, to, partial, (size_t)n, count);
    } else {
        redop->first(redop, to, partial[0], count);
        for (int r = 1; r < n; r++) {
            redop->first(redop, other, partial[r], count);
            redop->merge(redop, to, to, other, count);
        }
    }
    if (redop->last) redop->last(redop, to, count);
}

struct slice {
    size_t at, end; /* bytes */
};

/* A rank's share of what is sliced. */
static struct slice slice_of(const struct kl_mapped_op *op)
{
    const size_t all = part_bytes(&op->share), n = (size_t)op->mapped->board.nranks;
    const size_t each = ((all + n - 1) / n + GRAIN - 1) / GRAIN * GRAIN;

    return (struct slice){min_size(each * (size_t)op->mapped->board.rank, all),
                          min_size(each * ((size_t)op->mapped->board.rank + 1), all)};
}

/* The input that is fetched beside the `i`-th output; NULL: there is none left. */
static const char *input(const struct kl_mapped_op *op, int i)
{
    if (op->share.redop) return op->mapped->send[i];
    return i ? NULL : op->mapped->send[op->share.root];
}

/* To whoever receives it. While stores pass by the caches the next inputs come, one beside each output. */
static void put_to_all(const struct kl_mapped_op *op, size_t at, const char *from, size_t bytes)
{
    const struct kl_board *b = &op->mapped->board;
    const bool more = at + 2 * bytes <= part_bytes(&op->share);

    for (int r = 0, i = 0; r < b->nranks; r++) {
        char *to = op->mapped->recv[(b->rank + r) % b->nranks];
        if (!to || to + at == from) continue;
        const char *next = more ? input(op, i++) : NULL;
        put(op, to + at, from, bytes, next ? next + at + bytes : NULL);
    }
}

static void work_on_slice(const struct kl_mapped_op *op, size_t at, size_t end)
{
    const struct kl_share *s = &op->share;

    for (size_t some; at < end; at += some) {
        some = min_size(end - at, BLOCK);
        const char *from = s->redop ? s->scratch : op->mapped->send[s->root] + at;
        if (s->redop) reduce(op, s->scratch, at / s->elem_bytes, some / s->elem_bytes);
        put_to_all(op, at, from, some);
    }
}

/* True: there is no more. */
static bool slice_some(struct kl_mapped_op *op)
{
    const struct slice own = slice_of(op);
    const size_t at = own.at + op->moved, end = min_size(own.end, at + PIECE);

    work_on_slice(op, at, end);
    op->moved += end - at;
    return end == own.end;
}

/* Is the part reduced where it belongs? Not if stores pass by the caches, or if it lies among the inputs. */
static bool reduces_in_place(const struct kl_mapped_op *op)
{
    const size_t own = (size_t)op->mapped->board.rank * part_bytes(&op->share);

    return !op->past && op->share.recv != (const char *)op->share.send + own;
}

/* Two inputs are reduced in one pass: nothing has to stay in a cache. */
static size_t scatter_bytes(const struct kl_mapped_op *op)
{
    const bool one_pass = op->mapped->board.nranks == 2 && !op->share.redop->first;

    return one_pass && reduces_in_place(op) ? PIECE : BLOCK;
}

static void scatter_block(const struct kl_mapped_op *op, size_t at, size_t bytes)
{
    const struct kl_share *s = &op->share;
    const size_t own = (size_t)op->mapped->board.rank * part_bytes(s) + at;
    const bool more = own + 2 * bytes <= send_bytes(op);
    char *to = (char *)s->recv + at;

    reduce(op, reduces_in_place(op) ? to : s->scratch, own / s->elem_bytes, bytes / s->elem_bytes);
    if (!reduces_in_place(op)) put(op, to, s->scratch, bytes, more ? (const char *)s->send + own + bytes : NULL);
}

static bool scatter_some(struct kl_mapped_op *op)
{
    const size_t all = part_bytes(&op->share), end = min_size(all, op->moved + PIECE), most = scatter_bytes(op);

    for (size_t some; op->moved < end; op->moved += some) {
        some = min_size(end - op->moved, most);
        scatter_block(op, op->moved, some);
    }
    return end == all;
}

/* Ranks begin with different ones, and end with themselves. */
static bool gather_some(struct kl_mapped_op *op)
{
    const struct kl_share *s = &op->share;
    const struct kl_board *b = &op->mapped->board;
    const int from = (b->rank + 1 + op->taken) % b->nranks;
    const size_t part = part_bytes(s), some = min_size(part - op->moved, PIECE);
    const size_t skip = kl_func_info[s->func].send_parts ? (size_t)b->rank * part : 0;

    char *to = (char *)s->recv + (size_t)from * part + op->moved;
    const char *lies = op->mapped->send[from] + skip + op->moved;

    if (to != lies) put(op, to, lies, some, NULL);
    op->moved += some;
    if (op->moved < part) return false;
    op->moved = 0;
    return ++op->taken == b->nranks;
}

static bool work(struct kl_mapped_op *op)
{
    if (is_sliced(&op->share)) return slice_some(op);
    return op->share.redop ? scatter_some(op) : gather_some(op);
}

static void work_some(struct kl_mapped_op *op, ncclResult_t *rc)
{
    struct kl_mapped *m = op->mapped;

    if (!kl_arena_touch(m->mark, m->board.rank, m->board.nranks)) {
        *rc = KL_FAIL(ncclRemoteError, "%s: a rank has failed, and takes back its buffers",
                      kl_func_info[op->share.func].name);
        return;
    }
    bool done = work(op);
    if (op->past) kl_past_cache_fence();
    kl_arena_let_go(m->mark, m->board.rank);
    if (!done) return;
    op->stage = KL_MAPPED_END;
}

/* ---- an operation ---- */

void kl_mapped_start(struct kl_mapped_op *op, struct kl_mapped *mapped, const struct kl_share *share)
{
    *op = (struct kl_mapped_op){.mapped = mapped, .share = *share, .all = true};
    mapped->lent.processes = share->processes;
}

/* The last turn is nothing but a mark that this rank has come to: others still read what it lends. */
static enum kl_progress end(struct kl_mapped_op *op)
{
    struct kl_board *b = &op->mapped->board;
    int blocker;

    if (op->declined) return KL_DONE;
    if (!op->posted) {
        if (!kl_board_may_post(b, 0, &blocker)) return KL_STALLED;
        kl_board_announce(b, op->share.signature);
        b->compared = b->turn + 1;
        kl_board_next_turn(b);
        op->posted = true;
    }
    return kl_board_all_done(b, &blocker) ? KL_DONE : KL_STALLED;
}

enum kl_progress kl_mapped_progress(struct kl_mapped_op *op, ncclResult_t *rc)
{
    const enum kl_mapped_stage before = op->stage;
    const int arrived = op->arrived;
    const bool posted = op->posted;

    while (op->stage < KL_MAPPED_WORK)
        if (!turn(op, rc)) {
            if (*rc) return KL_DONE;
            return op->stage != before || op->arrived != arrived || op->posted != posted ? KL_MOVED : KL_STALLED;
        }
    if (op->stage == KL_MAPPED_WORK) {
        work_some(op, rc);
        if (*rc) return KL_DONE;
        if (op->stage == KL_MAPPED_WORK) return KL_MOVED;
    }
    enum kl_progress got = end(op);
    return got == KL_STALLED && op->stage != before ? KL_MOVED : got;
}

/* ---- diagnosis ---- */

static int blocker(struct kl_mapped_op *op)
{
    struct kl_board *b = &op->mapped->board;
    int rank = -1;

    if (op->stage == KL_MAPPED_WORK) return -1;
    if (op->stage == KL_MAPPED_END) return op->declined || kl_board_all_done(b, &rank) ? -1 : rank;
    if (!op->posted) return kl_board_may_post(b, sizeof(struct kl_lent_tickets), &rank) ? -1 : rank;
    return op->arrived < b->nranks && !kl_board_ready(b, op->arrived) ? op->arrived : -1;
}

int kl_mapped_blocked_on(struct kl_mapped_op *op, bool gone)
{
    int rank = blocker(op);

    if (!gone || rank < 0) return rank;
    /* What a rank did before it left is visible when its mark is. */
    return kl_arena_left(op->mapped->mark, rank) && blocker(op) == rank ? rank : -1;
}
