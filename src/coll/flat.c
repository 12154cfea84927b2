/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/flat.h"

#include "base/error.h"
#include "base/prefetch.h"

#include <string.h>

enum {
    MERGE_BYTES = 4096,         /* merged at a time, so that all of it stays in the nearest cache */
    BROADCAST_BYTES = 16 << 10, /* of a piece: others read one while the root writes the next */
    WHOLE_BYTES = 16 << 10,     /* read of others, beside one's own share: above, slices pay for a second turn */
    GRAIN = 64,                 /* bytes: slices are multiples of it */
    COMPARED_AT_ONCE = KL_BOARD_LAG / 2, /* turns, whose calls are compared in one go */
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- pieces ---- */

static void begin_piece(struct kl_flat_op *op)
{
    op->piece = min_size(op->most, op->share->end - op->first);
    op->bytes = op->parts * op->piece * op->share->elem_bytes;
}

struct range {
    size_t at, count; /* elements, from the beginning of the piece */
};

static struct range slice_of(const struct kl_flat_op *op, int rank)
{
    const size_t all = op->piece, grain = op->share->elem_bytes < GRAIN ? GRAIN / op->share->elem_bytes : 1;
    const size_t n = (size_t)op->board->nranks, slice = ((all + n - 1) / n + grain - 1) / grain * grain;
    const size_t at = min_size((size_t)rank * slice, all);

    return (struct range){at, min_size(slice, all - at)};
}

/* What a rank merges of the piece: all of it, or its slice. */
static struct range merged_by(const struct kl_flat_op *op, int rank)
{
    return op->slices ? slice_of(op, rank) : (struct range){0, op->piece};
}

/* Bytes that a rank which brings some posts in this turn. */
static size_t posted_by(const struct kl_flat_op *op, int rank)
{
    return op->second ? slice_of(op, rank).count * op->share->elem_bytes : op->bytes;
}

static size_t posted_here(const struct kl_flat_op *op)
{
    return op->brings ? posted_by(op, op->board->rank) : 0;
}

static bool reduces(const struct kl_flat_op *op)
{
    return op->share->redop && !op->second;
}

/* ---- begin ---- */

static bool is_root(const struct kl_flat_op *op)
{
    return op->share->root == op->board->rank;
}

/* Ranks whose posts this rank takes in this turn. */
static int count_sources(const struct kl_flat_op *op)
{
    const struct kl_board *b = op->board;

    if (op->share->func == KL_FUNC_BROADCAST) return is_root(op) ? 0 : 1;
    if (op->share->func == KL_FUNC_REDUCE) return is_root(op) ? b->nranks : 0;
    return reduces(op) ? b->nranks : b->nranks - 1;
}

static bool takes_slices(const struct kl_flat_op *op)
{
    const size_t others = (size_t)op->board->nranks - 2;

    if (op->share->func != KL_FUNC_ALL_REDUCE) return false;
    return others * (op->share->end - op->share->first) * op->share->elem_bytes > WHOLE_BYTES;
}

/*
 * Whether a reduction takes this rank's part from where it was, if it is the same there, and is not overwritten before it is its turn. Then a root needs not post it; and of two
 * ranks none reads again what it has just posted, whose lines may not have come from the other's cache: there is nothing else to wait for.
 */
static bool keeps_own(const struct kl_flat_op *op)
{
    const struct kl_share *s = op->share;
    const struct kl_board *b = op->board;

    if (!s->redop || s->redop->first) return false;
    return b->nranks == 2 || (s->func == KL_FUNC_REDUCE && is_root(op) && (s->send != s->recv || b->rank <= 1));
}

/* Has this rank data that others take? */
static bool brings_data(const struct kl_flat_op *op)
{
    if (op->share->func == KL_FUNC_BROADCAST) return is_root(op);
    return op->share->func != KL_FUNC_REDUCE || !is_root(op) || !op->keeps;
}

/* Elements of a piece. What fits is not divided, which takes as long as all the rest of a small operation's begin. */
static size_t most_of(const struct kl_flat_op *op)
{
    const struct kl_share *s = op->share;
    const size_t slot = op->board->slot_bytes, all = s->end - s->first;
    const size_t bytes = s->func == KL_FUNC_BROADCAST ? min_size(BROADCAST_BYTES, slot) : slot;

    return all * s->elem_bytes * op->parts <= bytes ? all : bytes / s->elem_bytes / op->parts;
}

/* Then not all wait for all: ranks run ahead of others. */
static bool is_rooted(const struct kl_share *share)
{
    return kl_func_info[share->func].rooted;
}

/* Field by field, as what a share says (exec.c). */
static inline void start(struct kl_flat_op *op, struct kl_board *board, const struct kl_share *share)
{
    board->solo = share->func == KL_FUNC_BROADCAST;
    board->packs = is_rooted(share);
    op->board = board;
    op->share = share;
    op->parts = kl_func_info[share->func].send_parts ? (size_t)board->nranks : 1;
    op->most = most_of(op);
    op->first = share->first;
    op->keeps = keeps_own(op);
    op->brings = brings_data(op);
    op->slices = takes_slices(op);
    op->second = false;
    op->posted = !board->packs && board->turn < board->posted;
    op->sources = count_sources(op);
    op->arrived = 0;
    begin_piece(op);
}

void kl_flat_start(struct kl_flat_op *op, struct kl_board *board, const struct kl_share *share)
{
    start(op, board, share);
}

/* ---- posting ---- */

static char *at(const void *buffer, size_t element, size_t elem_bytes)
{
    return (char *)(uintptr_t)buffer + element * elem_bytes;
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (to != from) memcpy(to, from, bytes);
}

/* What this rank brings: its own data, as a first contribution where they are reduced. */
static void bring(const struct kl_flat_op *op, void *to, const void *own, size_t count)
{
    const struct kl_redop *redop = op->share->redop;

    if (redop && redop->first) {
        kl_prefetch_to_write(to, count * redop->elem_bytes);
        redop->first(redop, to, own, count);
    } else {
        kl_copy_prefetched(to, own, count * op->share->elem_bytes);
    }
}

static void post_data(const struct kl_flat_op *op, char *to)
{
    const struct kl_share *s = op->share;
    const size_t n = op->piece;

    if (op->second) {
        struct range own = slice_of(op, op->board->rank);
        kl_copy_prefetched(to, at(s->recv, op->first + own.at, s->elem_bytes), own.count * s->elem_bytes);
        return;
    }
    bring(op, to, at(s->send, op->first, s->elem_bytes), n);
    for (size_t p = 1; p < op->parts; p++)
        bring(op, to + p * n * s->elem_bytes, at(s->send, p * s->count + op->first, s->elem_bytes), n);
}

static inline bool try_post(struct kl_flat_op *op)
{
    struct kl_board *b = op->board;
    int blocker;

    if (op->posted) return true;
    const size_t bytes = posted_here(op);
    if (!kl_board_may_post(b, bytes, &blocker)) return false;
    if (op->brings) {
        post_data(op, kl_board_data(b, b->rank, bytes));
        kl_board_announce(b, bytes, op->share->signature);
    } else {
        kl_board_call(b, op->share->signature);
    }
    return op->posted = true;
}

/* ---- sources ---- */

/* Where parts are gathered ranks begin with different ones; this one is not among them. */
static int source(const struct kl_flat_op *op, int i)
{
    if (op->share->func == KL_FUNC_BROADCAST) return op->share->root;
    if (reduces(op)) return i;
    const int from = op->board->rank + 1 + i;
    return from < op->board->nranks ? from : from - op->board->nranks;
}

static const char *function(const struct kl_flat_op *op)
{
    return kl_func_info[op->share->func].name;
}

/* ---- merging ---- */

/* Partial results of all ranks, in their order, from `skip` elements of what they posted on. */
static void list_partials(const struct kl_flat_op *op, size_t skip, const void *partials[KL_BOARD_RANKS])
{
    for (int r = 0; r < op->board->nranks; r++)
        partials[r] = at(kl_board_data(op->board, r, posted_by(op, r)), skip, op->share->elem_bytes);
}

/* `mine`: this rank's, or NULL for what it posted. */
static void merge(const struct kl_flat_op *op, char *to, const char *mine, size_t skip, size_t count)
{
    const struct kl_redop *redop = op->share->redop;
    const void *partials[KL_BOARD_RANKS];

    for (size_t some; count; count -= some, skip += some) {
        some = count * redop->elem_bytes <= MERGE_BYTES ? count : MERGE_BYTES / redop->elem_bytes;
        list_partials(op, skip, partials);
        if (mine) partials[op->board->rank] = mine;
        kl_redop_merge_all(redop, to, partials, (size_t)op->board->nranks, some);
        if (redop->last) redop->last(redop, to, some);
        to += some * redop->elem_bytes;
        if (mine) mine += some * redop->elem_bytes;
    }
}

/* This rank's partial result from an element on; NULL: what it posted. */
static const char *own_partial(const struct kl_flat_op *op, size_t element)
{
    return op->keeps ? at(op->share->send, element, op->share->elem_bytes) : NULL;
}

static void merge_own(const struct kl_flat_op *op)
{
    const struct kl_share *s = op->share;
    const size_t rank = (size_t)op->board->rank;
    const struct range own = merged_by(op, op->board->rank);
    const bool scatters = s->func == KL_FUNC_REDUCE_SCATTER;
    char *to = at(s->recv, op->first + own.at, s->elem_bytes);
    const char *mine = own_partial(op, op->first + own.at + (scatters ? rank * s->count : 0));

    merge(op, to, mine, scatters ? rank * op->piece : own.at, own.count);
}

/* ---- taking ---- */

/* Where what a rank posts belongs in the receive buffer. */
static char *place_of(const struct kl_flat_op *op, int rank)
{
    const struct kl_share *s = op->share;
    size_t element = op->first;

    if (kl_func_info[s->func].recv_parts) element += (size_t)rank * s->count;
    if (op->second) element += merged_by(op, rank).at;
    return at(s->recv, element, s->elem_bytes);
}

static void take(const struct kl_flat_op *op, int from)
{
    const size_t bytes = posted_by(op, from);
    const char *posted = kl_board_data(op->board, from, bytes);

    if (op->share->func == KL_FUNC_ALL_TO_ALL) {
        size_t part = bytes / op->parts;
        memcpy(place_of(op, from), posted + (size_t)op->board->rank * part, part);
    } else {
        memcpy(place_of(op, from), posted, bytes);
    }
}

/* This rank's own data, where they belong as well. */
static void keep_own(const struct kl_flat_op *op)
{
    const struct kl_share *s = op->share;

    if (s->redop || !op->brings) return;
    size_t from = op->first + (kl_func_info[s->func].send_parts ? (size_t)op->board->rank * s->count : 0);
    copy(place_of(op, op->board->rank), at(s->send, from, s->elem_bytes), op->piece * s->elem_bytes);
}

/* Has this rank, with its sources, looked at all others? */
static bool looks_at_all(const struct kl_flat_op *op)
{
    return op->sources >= op->board->nranks - 1;
}

/* Who takes data of some compares with its neighbour for the rest: of ranks that name different roots, one finds out. It waits for that if
 * nothing like it follows. Who takes nothing waits for none, within what the board allows: of two that name themselves roots the later one sees it, or
 * both in their next operation. False: not yet, or *rc says why not. */
static bool agree(struct kl_flat_op *op, ncclResult_t *rc)
{
    struct kl_board *b = op->board;

    if (looks_at_all(op) && b->compared == b->turn) return true;
    if (op->share->more && b->turn - b->compared < COMPARED_AT_ONCE) return true;
    if (!op->sources && b->turn - b->compared < KL_BOARD_LAG && !kl_board_neighbour_is_near(b)) return true;
    enum kl_comparison got = kl_board_compare(b);
    if (got == KL_OTHER) *rc = kl_board_refuse(b, kl_board_neighbour(b), function(op));
    if (got != KL_NOT_YET) return got == KL_SAME;
    return b->turn - b->compared < KL_BOARD_LAG && (!op->sources || op->share->more);
}

/* Is the post of a source here, and of the same call? */
static inline bool comes(const struct kl_flat_op *op, int from, ncclResult_t *rc)
{
    const enum kl_comparison got = kl_board_has_come(op->board, from, posted_by(op, from), op->share->signature);

    if (got == KL_OTHER) *rc = kl_board_refuse(op->board, from, function(op));
    return got == KL_SAME;
}

static inline bool collect(struct kl_flat_op *op, ncclResult_t *rc)
{
    const bool merges = reduces(op);

    for (; op->arrived < op->sources; op->arrived++) {
        const int from = source(op, op->arrived);
        if (from == op->board->rank) continue; /* where all are merged */
        if (!comes(op, from, rc)) return false;
        if (!merges) take(op, from);
    }
    if (!agree(op, rc)) return false;
    if (!merges)
        keep_own(op);
    else if (op->sources)
        merge_own(op);
    return true;
}

/* ---- turns ---- */

static void leave_turn(const struct kl_flat_op *op)
{
    if (looks_at_all(op)) op->board->compared = op->board->turn + 1;
    if (op->bytes <= op->board->cell_bytes)
        kl_board_next_small_turn(op->board);
    else
        kl_board_next_turn(op->board);
}

static void end_turn(struct kl_flat_op *op)
{
    leave_turn(op);
    op->posted = false;
    op->arrived = 0;
    if (op->slices) {
        op->second = !op->second;
        op->sources = count_sources(op);
    }
    if (op->second) return;
    op->first += op->piece;
    if (op->first < op->share->end) begin_piece(op);
}

/* Changes whenever something moves within a turn. */
static size_t position(const struct kl_flat_op *op)
{
    return (size_t)(op->posted + op->arrived) + (size_t)op->board->compared;
}

enum kl_progress kl_flat_progress(struct kl_flat_op *op, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    while (op->first < op->share->end) {
        size_t before = position(op);
        if (!try_post(op) || !collect(op, rc)) {
            if (*rc) return KL_DONE;
            return position(op) != before ? KL_MOVED : got;
        }
        end_turn(op);
        got = KL_MOVED;
    }
    return KL_DONE;
}

/* What is one turn, in which nothing has to be waited for, needs no more than that. */
bool kl_flat_at_once(struct kl_flat_op *op, struct kl_board *board, const struct kl_share *share, ncclResult_t *rc)
{
    start(op, board, share);
    if (op->first + op->piece < share->end || op->slices) return kl_flat_progress(op, rc) == KL_DONE;
    if (!try_post(op) || !collect(op, rc)) return *rc;
    leave_turn(op);
    return true;
}

/* ---- ahead ---- */

/* Is this turn its last one? */
static bool ends_with_turn(const struct kl_flat_op *op)
{
    return op->first + op->piece >= op->share->end && !op->slices;
}

bool kl_flat_post_ahead(const struct kl_flat_op *op, const struct kl_share *share, uint64_t later)
{
    struct kl_board *b = op->board;
    struct kl_flat_op next;

    if (!op->posted || !ends_with_turn(op) || is_rooted(op->share) || is_rooted(share)) return false;
    b->turn += later;
    start(&next, b, share);
    const bool posted = ends_with_turn(&next) && later <= kl_board_early(b, next.bytes) && try_post(&next);
    if (posted) b->posted = b->turn + 1;
    b->turn -= later;
    return posted;
}

/* ---- diagnosis ---- */

static int blocker(struct kl_flat_op *op)
{
    int rank = -1;

    if (op->first >= op->share->end) return -1;
    if (!op->posted) return kl_board_may_post(op->board, posted_here(op), &rank) ? -1 : rank;
    if (op->arrived == op->sources) return looks_at_all(op) ? -1 : kl_board_neighbour(op->board);
    rank = source(op, op->arrived);
    return kl_board_is_there(op->board, rank, posted_by(op, rank)) ? -1 : rank;
}

int kl_flat_blocked_on(struct kl_flat_op *op, bool gone)
{
    int rank = blocker(op);

    if (!gone || rank < 0) return rank;
    /* What a rank did before it left is visible when its mark is. */
    return kl_arena_left(op->board->mark, rank) && blocker(op) == rank ? rank : -1;
}
