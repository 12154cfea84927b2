/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/flat.h"

#include "base/error.h"
#include "base/prefetch.h"
#include "coll/pipeline/pipeline.h"
#include "device/host/bulk_copy.h"

#include <string.h>

/*
 * MERGE_BYTES      merged at a time, so that all of it stays in the nearest cache
 * BROADCAST_BYTES  of a piece: others read one while the root writes the next
 * WHOLE_BYTES      read of others, beside one's own share: above, slices pay for a second round, which none posts before it is there
 * OUT_BYTES        posted where several ranks post: less stays in the caches
 * GRAIN            bytes: slices are multiples of it
 * COMPARED_AT_ONCE rounds, whose calls are compared in one go
 */
enum {
    MERGE_BYTES = 4096,
    BROADCAST_BYTES = 16 << 10,
    WHOLE_BYTES = 128 << 10,
    OUT_BYTES = 1024,
    GRAIN = 64,
    COMPARED_AT_ONCE = KL_SHM_EXCHANGE_LAG / 2
};
_Static_assert((int)MERGE_BYTES <= (int)KL_SCRATCH_BYTES, "a piece");

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
    const size_t n = (size_t)op->shm->nranks, slice = ((all + n - 1) / n + grain - 1) / grain * grain;
    const size_t at = min_size((size_t)rank * slice, all);

    return (struct range){at, min_size(slice, all - at)};
}

/* What is merged for a rank: where that is in what all bring. All of it, its slice, or its part. */
static struct range due_to(const struct kl_flat_op *op, int rank)
{
    if (op->slices) return slice_of(op, rank);
    return (struct range){op->share->func == KL_FUNC_REDUCE_SCATTER ? (size_t)rank * op->piece : 0, op->piece};
}

/* The rank that has the place of `rank`, but in this group. */
static int counterpart(const struct kl_flat_op *op, int rank, int group)
{
    const struct kl_shm_exchange_groups *g = &op->shm->groups;

    return g->rank[group * g->size + g->place[rank]];
}

/* Elements that a rank posts across, for its counterparts in groups below `end`. */
static size_t posted_across(const struct kl_flat_op *op, int rank, int end)
{
    size_t count = 0;

    for (int i = 0; i < end; i++)
        if (i != op->shm->groups.group[rank]) count += due_to(op, counterpart(op, rank, i)).count;
    return count;
}

/* Bytes that a rank which brings some posts in this round. Across it is less, but goes to places as before, which have been touched. */
static size_t posted_by(const struct kl_flat_op *op, int rank)
{
    return op->stage == KL_FLAT_TELL ? slice_of(op, rank).count * op->share->elem_bytes : op->bytes;
}

static size_t posted_here(const struct kl_flat_op *op)
{
    return op->brings ? posted_by(op, op->shm->rank) : 0;
}

static bool reduces(const struct kl_flat_op *op)
{
    return op->share->redop && op->stage != KL_FLAT_TELL;
}

/* ---- begin ---- */

static bool is_root(const struct kl_flat_op *op)
{
    return op->share->root == op->shm->rank;
}

/* Ranks whose posts this rank takes in this round. */
static int count_sources(const struct kl_flat_op *op)
{
    const struct kl_shm_exchange *b = op->shm;

    if (op->share->func == KL_FUNC_BROADCAST) return is_root(op) ? 0 : 1;
    if (op->share->func == KL_FUNC_REDUCE) return is_root(op) ? b->nranks : 0;
    if (op->hierarchical && op->stage == KL_FLAT_BRING) return b->groups.size;
    if (op->stage == KL_FLAT_ACROSS) return b->groups.n;
    return reduces(op) ? b->nranks : b->nranks - 1;
}

static bool takes_slices(const struct kl_flat_op *op)
{
    const size_t others = (size_t)op->shm->nranks - 2;

    if (op->share->func != KL_FUNC_ALL_REDUCE) return false;
    return others * (op->share->end - op->share->first) * op->share->elem_bytes > WHOLE_BYTES;
}

/*
 * Whether a reduction takes this rank's part from where it was, if it is the same there, and is not overwritten before it is its turn. Then a root needs not post it; and of two
 * ranks none reads again what it has just posted, whose lines may not have come from the other's cache: there is nothing else to wait for.
 */
static bool keeps_own(const struct kl_flat_op *op)
{
    const struct kl_channel_work *s = op->share;
    const struct kl_shm_exchange *b = op->shm;

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
    const struct kl_channel_work *s = op->share;
    const size_t slot = op->shm->slot_bytes, all = s->end - s->first;
    const size_t bytes = s->func == KL_FUNC_BROADCAST ? min_size(BROADCAST_BYTES, slot) : slot;

    return all * s->elem_bytes * op->parts <= bytes ? all : bytes / s->elem_bytes / op->parts;
}

/* Then not all wait for all: ranks run ahead of others. */
static bool is_rooted(const struct kl_channel_work *share)
{
    return kl_func_info[share->func].rooted;
}

/* Where cores have several ranks each, the data of these ranks are merged first: then one partial result comes from another core, not one of each rank there. */
static bool is_hierarchical(const struct kl_flat_op *op)
{
    return op->share->hierarchical && op->shm->groups.n > 1 &&
           (op->slices || op->share->func == KL_FUNC_REDUCE_SCATTER);
}

/* Field by field, as in fill_share (exec.c). */
static inline void start(struct kl_flat_op *op, struct kl_shm_exchange *shm, const struct kl_channel_work *share)
{
    kl_shm_exchange_begin(shm, share->func == KL_FUNC_BROADCAST, is_rooted(share));
    op->shm = shm;
    op->share = share;
    op->parts = kl_func_info[share->func].send_parts ? (size_t)shm->nranks : 1;
    op->most = most_of(op);
    op->first = share->first;
    op->keeps = keeps_own(op);
    op->brings = brings_data(op);
    op->slices = takes_slices(op);
    op->hierarchical = is_hierarchical(op);
    op->stage = KL_FLAT_BRING;
    op->posted = !shm->rooted && shm->round < shm->posted;
    op->sources = count_sources(op);
    op->arrived = 0;
    begin_piece(op);
}

void kl_flat_start(struct kl_flat_op *op, struct kl_shm_exchange *shm, const struct kl_channel_work *share)
{
    start(op, shm, share);
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

enum { EVERYBODY = -1 };

/* Is it known that a rank, or everybody, reads on this rank's core? */
static bool reads_here(const struct kl_flat_op *op, int reader)
{
    const struct kl_shm_exchange_groups *g = &op->shm->groups;

    if (op->hierarchical && op->stage == KL_FLAT_BRING) return true;
    return reader != EVERYBODY && g->n > 1 && g->group[reader] == g->group[op->shm->rank];
}

/* Is this the one rank that posts data? */
static bool posts_alone(const struct kl_flat_op *op)
{
    return op->shm->solo || (op->shm->rooted && op->shm->nranks == 2);
}

/* Does a copy of so many bytes to a post use non-temporal stores? The answer is remembered (kl_shm_exchange_prefetch_own). */
static bool posts_nontemporal(const struct kl_flat_op *op, void *to, size_t bytes)
{
    struct kl_shm_exchange *b = op->shm;

    if (bytes < (posts_alone(op) ? KL_COPY_OUT_LEAST : OUT_BYTES)) return false;
    kl_shm_exchange_copies(b, (char *)to + bytes / 2, bytes);
    return b->nontemporal = kl_copy_out_is_nontemporal(&b->out, bytes);
}

/* What is only read on this core stays in its caches. */
static void copy_post(const struct kl_flat_op *op, int reader, void *to, const void *from, size_t bytes)
{
    if (!reads_here(op, reader) && posts_nontemporal(op, to, bytes))
        kl_copy_out(&op->shm->out, to, from, bytes);
    else
        kl_copy_prefetched(to, from, bytes);
}

/* What this rank brings: its own data, as a first contribution where they are reduced. */
static void bring(const struct kl_flat_op *op, int reader, void *to, const void *own, size_t count)
{
    const struct kl_redop *redop = op->share->redop;

    if (redop && redop->first) {
        kl_prefetch_to_write(to, count * redop->elem_bytes);
        redop->first(redop, to, own, count);
    } else {
        copy_post(op, reader, to, own, count * op->share->elem_bytes);
    }
}

/* A part for each rank. Its own it takes from where it was, unless it is merged with the others. */
static void bring_parts(const struct kl_flat_op *op, char *to)
{
    const struct kl_channel_work *s = op->share;
    const bool own = reduces(op) && !op->keeps;

    for (int r = 0; r < (int)op->parts; r++, to += op->piece * s->elem_bytes)
        if (own || r != op->shm->rank)
            bring(op, r, to, at(s->send, (size_t)r * s->count + op->first, s->elem_bytes), op->piece);
}

/* A slice, likewise. */
static void bring_slices(const struct kl_flat_op *op, char *to)
{
    const struct kl_channel_work *s = op->share;

    for (int r = 0; r < op->shm->nranks; r++) {
        const struct range slice = slice_of(op, r);
        bring(op, r, to + slice.at * s->elem_bytes, at(s->send, op->first + slice.at, s->elem_bytes), slice.count);
    }
}

static void post_data(const struct kl_flat_op *op, char *to)
{
    const struct kl_channel_work *s = op->share;

    if (op->stage == KL_FLAT_ACROSS) return; /* it is there: merge_core */
    if (op->stage == KL_FLAT_TELL) {
        struct range own = slice_of(op, op->shm->rank);
        copy_post(op, EVERYBODY, to, at(s->recv, op->first + own.at, s->elem_bytes), own.count * s->elem_bytes);
    } else if (op->parts > 1) {
        bring_parts(op, to);
    } else if (op->slices && op->shm->groups.n > 1) {
        bring_slices(op, to);
    } else {
        bring(op, s->func == KL_FUNC_REDUCE ? s->root : EVERYBODY, to, at(s->send, op->first, s->elem_bytes),
              op->piece);
    }
}

static inline bool try_post(struct kl_flat_op *op)
{
    struct kl_shm_exchange *b = op->shm;
    int blocker;

    if (op->posted) return true;
    const size_t bytes = posted_here(op);
    if (!kl_shm_exchange_may_post(b, bytes, &blocker)) return false;
    if (op->brings) {
        b->nontemporal = false;
        post_data(op, kl_shm_exchange_open(b, bytes));
        kl_shm_exchange_announce(b, bytes, op->share->signature);
    } else {
        kl_shm_exchange_call(b, op->share->signature);
    }
    return op->posted = true;
}

/* ---- sources ---- */

/* Where parts are gathered ranks begin with different ones; this one is not among them. */
static int source(const struct kl_flat_op *op, int i)
{
    const struct kl_shm_exchange_groups *g = &op->shm->groups;

    if (op->share->func == KL_FUNC_BROADCAST) return op->share->root;
    if (op->stage == KL_FLAT_ACROSS) return counterpart(op, op->shm->rank, i);
    if (op->stage == KL_FLAT_BRING && op->hierarchical) return g->rank[g->group[op->shm->rank] * g->size + i];
    if (reduces(op)) return i;
    const int from = op->shm->rank + 1 + i;
    return from < op->shm->nranks ? from : from - op->shm->nranks;
}

static const char *function(const struct kl_flat_op *op)
{
    return kl_func_info[op->share->func].name;
}

/* ---- merging ---- */

/* Partial results, in the order in which they are merged. */
struct pile {
    size_t n;
    const char *partial[KL_SHM_EXCHANGE_RANKS];
};

/* From `skip` elements of what a rank has posted on. */
static const char *posted_from(const struct kl_flat_op *op, int rank, size_t skip)
{
    return at(kl_shm_exchange_data(op->shm, rank, posted_by(op, rank)), skip, op->share->elem_bytes);
}

/* Of all ranks. `mine`: this rank's, or NULL for what it posted. */
static void pile_all(struct pile *p, const struct kl_flat_op *op, const char *mine, size_t skip)
{
    p->n = (size_t)op->shm->nranks;
    for (int r = 0; r < op->shm->nranks; r++) p->partial[r] = posted_from(op, r, skip);
    if (mine) p->partial[op->shm->rank] = mine;
}

/* Of the ranks of this one's core. */
static void pile_core(struct pile *p, const struct kl_flat_op *op, size_t skip)
{
    const struct kl_shm_exchange_groups *g = &op->shm->groups;
    const uint8_t *rank = &g->rank[g->group[op->shm->rank] * g->size];

    p->n = (size_t)g->size;
    for (int i = 0; i < g->size; i++) p->partial[i] = posted_from(op, rank[i], skip);
}

/* Of all cores: this one's is here. */
static void pile_across(struct pile *p, const struct kl_flat_op *op, const char *here)
{
    const struct kl_shm_exchange_groups *g = &op->shm->groups;
    const int rank = op->shm->rank, own = g->group[rank];

    p->n = 0;
    p->partial[p->n++] = here;
    for (int i = 0; i < g->n; i++) {
        const int from = counterpart(op, rank, i);
        if (i != own) p->partial[p->n++] = posted_from(op, from, posted_across(op, from, own));
    }
}

static void merge_piece(const struct kl_redop *redop, void *to, const struct pile *p, size_t count)
{
    kl_redop_merge_all(redop, to, (const void *const *)p->partial, p->n, count);
}

/* Elements of the next piece, of so many. */
static size_t next_piece(const struct kl_redop *redop, size_t count)
{
    return count * redop->elem_bytes <= MERGE_BYTES ? count : MERGE_BYTES / redop->elem_bytes;
}

/* `bytes` of each partial result are merged. */
static void skip(struct pile *p, size_t bytes)
{
    for (size_t i = 0; i < p->n; i++) p->partial[i] += bytes;
}

/* `last`: nothing is to be added any more. */
static void merge(const struct kl_redop *redop, char *to, struct pile *p, size_t count, bool last)
{
    for (;;) {
        const size_t some = next_piece(redop, count);
        merge_piece(redop, to, p, some);
        if (last && redop->last) redop->last(redop, to, some);
        if (!(count -= some)) return;
        to += some * redop->elem_bytes;
        skip(p, some * redop->elem_bytes);
    }
}

/* The same, with non-temporal stores. Nothing is there before kl_nontemporal_fence. */
static void merge_nontemporal(const struct kl_flat_op *op, char *to, struct pile *p, size_t count)
{
    const struct kl_redop *redop = op->share->redop;

    for (size_t some; count; count -= some, to += some * redop->elem_bytes) {
        some = next_piece(redop, count);
        merge_piece(redop, op->share->scratch, p, some);
        kl_copy_nontemporal(to, op->share->scratch, some * redop->elem_bytes, NULL);
        skip(p, some * redop->elem_bytes);
    }
}

/* This rank's partial result from an element on; NULL: what it posted. */
static const char *own_partial(const struct kl_flat_op *op, size_t element)
{
    return op->keeps ? at(op->share->send, element, op->share->elem_bytes) : NULL;
}

/* The place of this rank's result. */
static char *result(const struct kl_flat_op *op)
{
    const size_t slice = op->slices ? slice_of(op, op->shm->rank).at : 0;

    return at(op->share->recv, op->first + slice, op->share->elem_bytes);
}

static void merge_own(const struct kl_flat_op *op)
{
    const struct kl_channel_work *s = op->share;
    const struct range due = due_to(op, op->shm->rank);
    const bool scatters = s->func == KL_FUNC_REDUCE_SCATTER;
    struct pile p;

    if (!due.count) return;
    pile_all(&p, op, own_partial(op, op->first + (scatters ? (size_t)op->shm->rank * s->count : due.at)), due.at);
    merge(s->redop, result(op), &p, due.count, true);
}

/* Where this rank posts across, in the next round; NULL: not yet, *blocker has not read enough. */
static char *next_post(const struct kl_flat_op *op, int *blocker)
{
    struct kl_shm_exchange *b = op->shm;

    b->round++;
    char *post = kl_shm_exchange_may_post(b, op->bytes, blocker) ? kl_shm_exchange_open(b, op->bytes) : NULL;
    b->round--;
    return post;
}

/* What the ranks of this core have brought for `to`: here, or to `post` if that is another rank. Elements posted. */
static size_t merge_for(const struct kl_flat_op *op, int to, char *post, bool nontemporal)
{
    const struct kl_redop *redop = op->share->redop;
    const struct range due = due_to(op, to);
    const bool here = to == op->shm->rank;
    struct pile p;

    if (!due.count) return 0;
    pile_core(&p, op, due.at);
    if (nontemporal && !here)
        merge_nontemporal(op, post, &p, due.count);
    else
        merge(redop, here ? result(op) : post, &p, due.count, false);
    return here ? 0 : due.count;
}

/* For this rank here, for its counterparts in what it posts next. False: there is no room yet. */
static bool merge_core(const struct kl_flat_op *op)
{
    const struct kl_shm_exchange *b = op->shm;
    const size_t elem_bytes = op->share->elem_bytes, bytes = posted_across(op, b->rank, b->groups.n) * elem_bytes;
    int blocker;
    char *post = next_post(op, &blocker);

    if (!post) return false;
    const bool nontemporal = posts_nontemporal(op, post, bytes);
    if (!nontemporal) kl_prefetch_to_write(post, bytes);
    for (int i = 0; i < b->groups.n; i++)
        post += merge_for(op, counterpart(op, b->rank, i), post, nontemporal) * elem_bytes;
    if (nontemporal) kl_nontemporal_fence();
    return true;
}

static void merge_across(const struct kl_flat_op *op)
{
    const struct range due = due_to(op, op->shm->rank);
    struct pile p;

    if (!due.count) return;
    pile_across(&p, op, result(op));
    merge(op->share->redop, result(op), &p, due.count, true);
}

/* All sources are here. False: there is no room yet for what comes of them. */
static bool merge_sources(const struct kl_flat_op *op)
{
    if (op->stage == KL_FLAT_ACROSS)
        merge_across(op);
    else if (op->hierarchical)
        return merge_core(op);
    else
        merge_own(op);
    return true;
}

/* ---- taking ---- */

/* Where what a rank posts belongs in the receive buffer. */
static char *place_of(const struct kl_flat_op *op, int rank)
{
    const struct kl_channel_work *s = op->share;
    size_t element = op->first;

    if (kl_func_info[s->func].recv_parts) element += (size_t)rank * s->count;
    if (op->stage == KL_FLAT_TELL) element += slice_of(op, rank).at;
    return at(s->recv, element, s->elem_bytes);
}

static void take(const struct kl_flat_op *op, int from)
{
    const size_t bytes = posted_by(op, from);
    const char *posted = kl_shm_exchange_data(op->shm, from, bytes);

    if (op->share->func == KL_FUNC_ALL_TO_ALL) {
        size_t part = bytes / op->parts;
        memcpy(place_of(op, from), posted + (size_t)op->shm->rank * part, part);
    } else {
        memcpy(place_of(op, from), posted, bytes);
    }
}

/* This rank's own data, where they belong as well. */
static void keep_own(const struct kl_flat_op *op)
{
    const struct kl_channel_work *s = op->share;

    if (s->redop || !op->brings) return;
    size_t from = op->first + (kl_func_info[s->func].send_parts ? (size_t)op->shm->rank * s->count : 0);
    copy(place_of(op, op->shm->rank), at(s->send, from, s->elem_bytes), op->piece * s->elem_bytes);
}

/* BRING: the piece is over. */
static enum kl_flat_stage next_stage(const struct kl_flat_op *op)
{
    if (op->stage == KL_FLAT_BRING && op->hierarchical) return KL_FLAT_ACROSS;
    return op->stage != KL_FLAT_TELL && op->slices ? KL_FLAT_TELL : KL_FLAT_BRING;
}

/* Has this rank, with its sources, looked at all others? */
static bool looks_at_all(const struct kl_flat_op *op)
{
    return op->sources >= op->shm->nranks - 1;
}

/* A rank that takes data of some ranks compares with its neighbour for the rest: of ranks that name different roots, one notices. It waits for that if
 * no operation of the kind follows. A rank that takes no data does not wait, within the limits of the exchange: of two that name themselves roots the later
 * one notices, or both in their next operations. False: not yet, or *rc says why not. */
static bool agree(struct kl_flat_op *op, ncclResult_t *rc)
{
    struct kl_shm_exchange *b = op->shm;

    if (looks_at_all(op) && b->compared == b->round) return true;
    if (next_stage(op) != KL_FLAT_BRING) return true; /* compared in the rounds that follow */
    if (op->share->more && b->round - b->compared < COMPARED_AT_ONCE) return true;
    if (!op->sources && b->round - b->compared < KL_SHM_EXCHANGE_LAG && !kl_shm_exchange_neighbour_is_near(b))
        return true;
    enum kl_comparison got = kl_shm_exchange_compare(b);
    if (got == KL_OTHER) *rc = kl_shm_exchange_refuse(b, kl_shm_exchange_neighbour(b), function(op));
    if (got != KL_NOT_YET) return got == KL_SAME;
    return b->round - b->compared < KL_SHM_EXCHANGE_LAG && (!op->sources || op->share->more);
}

/* Is the post of a source here, and of the same call? */
static inline bool comes(const struct kl_flat_op *op, int from, ncclResult_t *rc)
{
    const enum kl_comparison got = kl_shm_exchange_has_come(op->shm, from, posted_by(op, from), op->share->signature);

    if (got == KL_OTHER) *rc = kl_shm_exchange_refuse(op->shm, from, function(op));
    return got == KL_SAME;
}

static inline bool collect(struct kl_flat_op *op, ncclResult_t *rc)
{
    const bool merges = reduces(op);

    for (; op->arrived < op->sources; op->arrived++) {
        const int from = source(op, op->arrived);
        if (from == op->shm->rank) continue; /* where all are merged */
        if (!comes(op, from, rc)) return false;
        if (!merges) take(op, from);
    }
    if (!agree(op, rc)) return false;
    if (merges) return !op->sources || merge_sources(op);
    keep_own(op);
    return true;
}

/* ---- rounds ---- */

static void leave_round(const struct kl_flat_op *op)
{
    if (op->sources) op->shm->taken = op->shm->round + 1;
    if (looks_at_all(op)) op->shm->compared = op->shm->round + 1;
    if (op->bytes <= op->shm->cell_bytes)
        kl_shm_exchange_next_small_round(op->shm);
    else
        kl_shm_exchange_next_round(op->shm);
}

static void end_round(struct kl_flat_op *op)
{
    leave_round(op);
    op->posted = false;
    op->arrived = 0;
    if (op->slices || op->hierarchical) {
        op->stage = next_stage(op);
        op->sources = count_sources(op);
    }
    if (op->stage != KL_FLAT_BRING) return;
    op->first += op->piece;
    if (op->first < op->share->end) begin_piece(op);
}

/* Is this round its only one, or the last? */
static bool ends_with_round(const struct kl_flat_op *op)
{
    return op->first + op->piece >= op->share->end && next_stage(op) == KL_FLAT_BRING;
}

/* Changes whenever something moves within a round. */
static size_t position(const struct kl_flat_op *op)
{
    return (size_t)(op->posted + op->arrived) + (size_t)op->shm->compared;
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
        end_round(op);
        got = KL_MOVED;
    }
    return KL_DONE;
}

/* An operation of one round that has to wait for nothing is done here. */
bool kl_flat_try_now(struct kl_flat_op *op, struct kl_shm_exchange *shm, const struct kl_channel_work *share,
                     ncclResult_t *rc)
{
    start(op, shm, share);
    if (!ends_with_round(op)) return kl_flat_progress(op, rc) == KL_DONE;
    if (!try_post(op) || !collect(op, rc)) return *rc;
    leave_round(op);
    return true;
}

/* ---- early posting ---- */

bool kl_flat_prepost(const struct kl_flat_op *op, const struct kl_channel_work *share, uint64_t later)
{
    struct kl_shm_exchange *b = op->shm;
    struct kl_flat_op next;

    if (!op->posted || !ends_with_round(op) || is_rooted(op->share) || is_rooted(share)) return false;
    b->round += later;
    start(&next, b, share);
    const bool posted = ends_with_round(&next) && later <= kl_shm_exchange_early(b, next.bytes) && try_post(&next);
    if (posted) b->posted = b->round + 1;
    b->round -= later;
    return posted;
}

/* ---- diagnosis ---- */

static int blocker(struct kl_flat_op *op)
{
    int rank = -1;

    if (op->first >= op->share->end) return -1;
    if (!op->posted) return kl_shm_exchange_may_post(op->shm, posted_here(op), &rank) ? -1 : rank;
    if (op->arrived == op->sources && op->hierarchical && op->stage == KL_FLAT_BRING)
        return next_post(op, &rank) ? -1 : rank;
    if (op->arrived == op->sources) return looks_at_all(op) ? -1 : kl_shm_exchange_neighbour(op->shm);
    rank = source(op, op->arrived);
    return kl_shm_exchange_is_there(op->shm, rank, posted_by(op, rank)) ? -1 : rank;
}

int kl_flat_blocked_on(struct kl_flat_op *op, bool gone)
{
    int rank = blocker(op);

    if (!gone || rank < 0) return rank;
    /* What a rank did before it left is visible when its mark is. */
    return kl_arena_left(op->shm->mark, rank) && blocker(op) == rank ? rank : -1;
}
