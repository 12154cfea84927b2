/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/nvls_op.h"

#include "base/error.h"
#include "coll/shm/nvls_tree.h"

#include <string.h>

const struct kl_nvls_kind kl_nvls_allreduce = {.name = "all-reduce", .reduces = true, .multicasts = true};
const struct kl_nvls_kind kl_nvls_allgather = {.name = "all-gather", .multicasts = true};
const struct kl_nvls_kind kl_nvls_reducescatter = {.name = "reduce-scatter", .reduces = true};

/* ---- blocks and slices: the same for all ranks ---- */

static bool has_parts(const struct kl_nvls_kind *kind)
{
    return kind != &kl_nvls_allreduce;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int head_rank(const struct kl_nvls_op *op, int head)
{
    return op->task.heads ? op->task.heads[head] : head;
}

/* Elements of the channel's share in a block: a slice per head, or a piece of every part. */
static size_t block_size(const struct kl_nvls_op *op)
{
    return has_parts(op->task.kind) ? op->most : op->most * (size_t)op->nheads;
}

/** The part that a head adds up or publishes in one step. */
struct slice {
    int rank; /* the head */
    uint64_t step;
    size_t count, bytes; /* 0: not even a step */
    const char *own;     /* in the send buffer; of a part, where there are parts, unless nothing is reduced */
    char *result;        /* in the receive buffer; of a part unless nothing is published */
};

static struct slice slice_at(const struct kl_nvls_op *op, size_t block, int head)
{
    const struct kl_nvls_task *t = &op->task;
    const size_t begin = t->first + block * block_size(op), left = t->end - begin;
    size_t size = op->most, at = begin, parts = 0;
    struct slice s = {.rank = head_rank(op, head)};

    if (has_parts(t->kind)) {
        parts = (size_t)s.rank * t->count;
    } else {
        size = min_size(size, round_up((left + (size_t)op->nheads - 1) / (size_t)op->nheads, t->grain));
        at += (size_t)head * size;
    }
    s.step = op->nvls->step[s.rank] + block;
    s.count = at < t->end ? min_size(size, t->end - at) : 0;
    s.bytes = s.count * t->elem_bytes;
    s.own = (const char *)t->send + (at + (t->kind->reduces ? parts : 0)) * t->elem_bytes;
    s.result = (char *)t->recv + (at + (t->kind->multicasts ? parts : 0)) * t->elem_bytes;
    return s;
}

/* ---- walking through blocks and heads ---- */

static bool at_end(const struct kl_nvls_op *op, const struct kl_nvls_place *p)
{
    return p->block == op->blocks;
}

static struct slice slice_of(const struct kl_nvls_op *op, const struct kl_nvls_place *p)
{
    int first = op->nvls->rank + 1; /* any start that differs between ranks */

    return slice_at(op, p->block, (first + p->head) % op->nheads);
}

static void advance(const struct kl_nvls_op *op, struct kl_nvls_place *p)
{
    if (++p->head < op->nheads) return;
    p->head = 0;
    p->block++;
}

static struct kl_nvls_head head_of(const struct kl_nvls_op *op, const struct slice *s)
{
    return kl_nvls_head(op->nvls, s->rank);
}

/* Is there a slice of another head? */
static bool concerns(const struct kl_nvls_op *op, const struct slice *s)
{
    return s->count && s->rank != op->nvls->rank;
}

/* ---- begin and end ---- */

static int number_of_head(const struct kl_nvls_op *op, int rank)
{
    for (int i = 0; i < op->nheads; i++)
        if (head_rank(op, i) == rank) return i;
    return -1;
}

/* Heads of an all-gather learn the others' progress only through `taken`, which no other kind of operation updates. */
static void publish_taken(const struct kl_nvls_op *op)
{
    const struct kl_nvls *nvls = op->nvls;

    for (int head = 0; head < (int)nvls->shape.nranks; head++) {
        struct kl_nvls_head h = kl_nvls_head(nvls, head);
        kl_nvls_take(&h, nvls->rank, nvls->step[head]);
    }
}

void kl_nvls_op_start(struct kl_nvls_op *op, struct kl_nvls *nvls, const struct kl_nvls_task *task)
{
    const bool all = has_parts(task->kind) || !task->heads;
    const size_t fits = nvls->shape.chunk_bytes / task->elem_bytes;

    *op = (struct kl_nvls_op){.nvls = nvls, .task = *task};
    op->nheads = all ? (int)nvls->shape.nranks : task->nheads;
    if (all) op->task.heads = NULL;
    op->own = number_of_head(op, nvls->rank);
    op->most = task->most ? min_size(task->most, fits) : fits;
    op->task.grain = task->grain ? min_size(task->grain, op->most) : 1;
    op->blocks = (task->end - task->first + block_size(op) - 1) / block_size(op);
    if (op->own < 0) op->risen = op->headed = op->blocks;
    if (!task->kind->reduces) op->scatter.block = op->blocks;
    if (!task->kind->multicasts) op->gather.block = op->blocks;
    if (op->blocks && !task->kind->reduces) publish_taken(op);
}

/* Count the steps of this operation, at the end. */
static void count_steps(struct kl_nvls_op *op)
{
    for (int head = 0; op->blocks && head < op->nheads; head++) {
        struct slice last = slice_at(op, op->blocks - 1, head);
        op->nvls->step[last.rank] += op->blocks - (last.count == 0);
    }
    op->blocks = 0;
    op->scatter = op->gather = (struct kl_nvls_place){0};
    op->risen = op->headed = 0;
}

/* ---- the others' state ---- */

static int name_of(const struct kl_nvls_op *op, int rank)
{
    return op->task.ranks ? op->task.ranks[rank] : rank;
}

static ncclResult_t check(const struct kl_nvls_op *op, const struct kl_nvls_line *line, int from, size_t bytes)
{
    if (line->operation != op->task.operation)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: rank %d came with another call: the ranks call with different counts, types or operations",
                       op->task.kind->name, name_of(op, from));
    if (line->bytes != bytes)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: rank %d came with %u bytes of a slice of %zu: do the ranks have the same settings?",
                       op->task.kind->name, name_of(op, from), line->bytes, bytes);
    return ncclSuccess;
}

/* ---- scatter ---- */

/* Results this far back have been taken: this contribution's result will overwrite their slot. */
static bool taken_long_ago(const struct kl_nvls_op *op)
{
    const struct kl_nvls_place *s = &op->scatter, *g = &op->gather;
    size_t back = g->block + op->nvls->shape.steps;

    return s->block < back || (s->block == back && s->head < g->head);
}

static bool may_scatter(const struct kl_nvls_op *op, const struct slice *s)
{
    struct kl_nvls_head h = head_of(op, s);

    return taken_long_ago(op) && kl_nvls_may_contribute(&h, s->step);
}

static void contribute(const struct kl_nvls_op *op, const struct slice *s)
{
    const struct kl_redop *redop = op->task.redop;
    struct kl_nvls_head h = head_of(op, s);
    void *to = kl_nvls_contributed(&h, op->nvls->rank, s->step, s->bytes);

    if (redop->first)
        redop->first(redop, to, s->own, s->count);
    else
        memcpy(to, s->own, s->bytes);
    kl_nvls_announce(kl_nvls_contribution(&h, op->nvls->rank, s->step), s->step, s->bytes, op->task.operation);
}

static bool scatter_some(struct kl_nvls_op *op)
{
    bool moved = false;

    for (; !at_end(op, &op->scatter); advance(op, &op->scatter)) {
        struct slice s = slice_of(op, &op->scatter);
        if (!concerns(op, &s)) continue;
        if (!may_scatter(op, &s)) break;
        contribute(op, &s);
        moved = true;
    }
    return moved;
}

/* ---- the head's part ---- */

/* Has a rank delivered the data that the head needs: its contribution, or the count of taken results? */
static bool has_arrived(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s, int rank)
{
    if (rank == op->nvls->rank) return true;
    if (op->task.kind->reduces) return kl_nvls_ready(kl_nvls_contribution(h, rank, s->step), s->step);
    return kl_nvls_may_publish(h, rank, s->step);
}

static bool all_arrived(struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s)
{
    while (op->arrived < (int)op->nvls->shape.nranks && has_arrived(op, h, s, op->arrived)) op->arrived++;
    return op->arrived == (int)op->nvls->shape.nranks;
}

static ncclResult_t check_all(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s)
{
    for (int r = 0; op->task.kind->reduces && r < (int)op->nvls->shape.nranks; r++)
        if (r != op->nvls->rank) KL_TRY(check(op, kl_nvls_contribution(h, r, s->step), r, s->bytes));
    return ncclSuccess;
}

/* Partial results are merged in one pass; their sum so far is the first. */
struct addends {
    const void *partial[8];
    size_t n;
};

static void merge(const struct kl_redop *redop, struct addends *a, char *dst, size_t count)
{
    kl_redop_merge_all(redop, dst, a->partial, a->n, count);
    a->partial[0] = dst;
    a->n = 1;
}

/* dst = own and all contributions, elements `at` to `at + count` of the slice. */
static void add_piece(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s, char *dst,
                      size_t at, size_t count)
{
    const struct kl_redop *redop = op->task.redop;
    const size_t skip = at * op->task.elem_bytes;
    struct addends a = {.partial = {s->own + skip}, .n = 1};

    if (redop->first) {
        redop->first(redop, dst, s->own + skip, count);
        a.partial[0] = dst;
    }
    for (int r = 0; r < (int)op->nvls->shape.nranks; r++) {
        if (r == op->nvls->rank) continue;
        a.partial[a.n++] = (const char *)kl_nvls_contributed(h, r, s->step, s->bytes) + skip;
        if (a.n == sizeof a.partial / sizeof *a.partial) merge(redop, &a, dst, count);
    }
    merge(redop, &a, dst, count);
    if (redop->last && !op->task.tree) redop->last(redop, dst, count);
}

/* In pieces that stay in the nearest cache from the first addend to the last. */
static void add_up(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s, char *dst)
{
    const size_t piece = 4096 / op->task.elem_bytes;

    for (size_t at = 0; at < s->count; at += piece)
        add_piece(op, h, s, dst + at * op->task.elem_bytes, at, min_size(piece, s->count - at));
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (to != from) memcpy(to, from, bytes);
}

/* Is this head's sum the result? */
static bool is_top(const struct kl_nvls_op *op)
{
    return !op->task.tree || !op->task.tree->position.up;
}

static struct kl_nvls_chunk chunk_of(const struct kl_nvls_op *op, const struct slice *s)
{
    return (struct kl_nvls_chunk){.redop = op->task.redop,
                                  .count = s->count,
                                  .bytes = s->bytes,
                                  .signature = op->task.signature,
                                  .name = op->task.kind->name};
}

/* dst = all contributions, of this node and of the nodes below it. */
static bool sum_up(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s, char *dst,
                   ncclResult_t *rc)
{
    const struct kl_redop *redop = op->task.redop;
    struct kl_nvls_chunk chunk = chunk_of(op, s);

    add_up(op, h, s, dst);
    if (!op->task.tree) return true;
    if (!kl_nvls_tree_add(op->task.tree, &chunk, dst, rc)) return false;
    if (redop->last && is_top(op)) redop->last(redop, dst, s->count);
    return true;
}

/* The result is in its slot; the head is the first to take it. */
static void tell_all(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s)
{
    kl_nvls_announce(kl_nvls_result(h, s->step), s->step, s->bytes, op->task.operation);
    copy(s->result, op->task.kind->reduces ? kl_nvls_published(h, s->step, s->bytes) : s->own, s->bytes);
    if (op->task.tree) kl_nvls_tree_send_down(op->task.tree, s->result, s->bytes);
}

/* Others poll the line: write the data in it once. */
static bool publish_sum(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s,
                        ncclResult_t *rc)
{
    alignas(KL_LINE) char small[KL_NVLS_INLINE];
    char *published = kl_nvls_published(h, s->step, s->bytes);
    bool in_line = s->bytes <= sizeof small;

    if (!sum_up(op, h, s, in_line ? small : published, rc)) return false;
    if (in_line) memcpy(published, small, s->bytes);
    tell_all(op, h, s);
    return true;
}

static bool send_up(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s, ncclResult_t *rc)
{
    if (!sum_up(op, h, s, kl_nvls_tree_target(op->task.tree, s->bytes), rc)) return false;
    kl_nvls_tree_send_up(op->task.tree, s->bytes);
    return true;
}

/* The head's own part: others only need to know that their data have been read. */
static bool keep_sum(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s)
{
    add_up(op, h, s, s->result);
    kl_nvls_announce(kl_nvls_result(h, s->step), s->step, 0, op->task.operation);
    return true;
}

static bool publish_own(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s)
{
    memcpy(kl_nvls_published(h, s->step, s->bytes), s->own, s->bytes);
    tell_all(op, h, s);
    return true;
}

static bool lift(const struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s, ncclResult_t *rc)
{
    if (!op->task.kind->reduces) return publish_own(op, h, s);
    if (!op->task.kind->multicasts) return keep_sum(op, h, s);
    return is_top(op) ? publish_sum(op, h, s, rc) : send_up(op, h, s, rc);
}

static bool may_rise(struct kl_nvls_op *op, const struct kl_nvls_head *h, const struct slice *s)
{
    return all_arrived(op, h, s) && (!op->task.tree || kl_nvls_tree_can_send_up(op->task.tree));
}

static bool lift_some(struct kl_nvls_op *op, ncclResult_t *rc)
{
    bool moved = false;

    for (; op->risen < op->blocks; op->risen++, op->arrived = 0) {
        struct slice s = slice_at(op, op->risen, op->own);
        struct kl_nvls_head h = head_of(op, &s);
        if (!s.count) continue;
        if (!may_rise(op, &h, &s)) break;
        *rc = check_all(op, &h, &s);
        if (*rc || !lift(op, &h, &s, rc)) break;
        moved = true;
    }
    return moved;
}

/* Publish the slice from above in the tree. All contributed to it before it rose, so its slot is free. */
static bool lower(const struct kl_nvls_op *op, const struct slice *s, ncclResult_t *rc)
{
    const struct kl_redop *redop = op->task.redop;
    struct kl_nvls_head h = head_of(op, s);
    struct kl_nvls_chunk chunk = chunk_of(op, s);
    void *published = kl_nvls_published(&h, s->step, s->bytes);

    if (!kl_nvls_tree_can_send_down(op->task.tree)) return false;
    if (!kl_nvls_tree_take(op->task.tree, &chunk, published, rc)) return false;
    if (op->task.finish && redop->last) redop->last(redop, published, s->count);
    tell_all(op, &h, s);
    return true;
}

static bool lower_some(struct kl_nvls_op *op, ncclResult_t *rc)
{
    bool moved = false;

    if (is_top(op)) op->headed = op->risen;
    for (; op->headed < op->risen; op->headed++) {
        struct slice s = slice_at(op, op->headed, op->own);
        if (!s.count) continue;
        if (!lower(op, &s, rc)) break;
        moved = true;
    }
    return moved;
}

static bool head_some(struct kl_nvls_op *op, ncclResult_t *rc)
{
    bool moved = lift_some(op, rc);

    if (!*rc) moved |= lower_some(op, rc);
    return moved;
}

/* ---- gather ---- */

static bool gather_some(struct kl_nvls_op *op, ncclResult_t *rc)
{
    bool moved = false;

    for (; !at_end(op, &op->gather); advance(op, &op->gather)) {
        struct slice s = slice_of(op, &op->gather);
        struct kl_nvls_head h = head_of(op, &s);
        if (!concerns(op, &s)) continue;
        if (!kl_nvls_ready(kl_nvls_result(&h, s.step), s.step)) break;
        *rc = check(op, kl_nvls_result(&h, s.step), s.rank, s.bytes);
        if (*rc) break;
        memcpy(s.result, kl_nvls_published(&h, s.step, s.bytes), s.bytes);
        if (!op->task.kind->reduces) kl_nvls_take(&h, op->nvls->rank, s.step + 1);
        moved = true;
    }
    return moved;
}

/* ---- all together ---- */

static bool complete(const struct kl_nvls_op *op)
{
    return at_end(op, &op->scatter) && op->headed == op->blocks && at_end(op, &op->gather);
}

enum kl_progress kl_nvls_op_progress(struct kl_nvls_op *op, ncclResult_t *rc)
{
    enum kl_progress step = KL_STALLED;
    bool moved;

    do {
        moved = scatter_some(op);
        moved |= head_some(op, rc);
        if (!*rc) moved |= gather_some(op, rc);
        if (*rc) return KL_DONE;
        if (moved) step = KL_MOVED;
    } while (moved);
    if (!complete(op)) return step;
    count_steps(op);
    return KL_DONE;
}

/* ---- diagnosis ---- */

/* Ranks that the three activities wait for, -1 for none. */
static void find_blockers(const struct kl_nvls_op *op, int blocker[3])
{
    blocker[0] = blocker[1] = blocker[2] = -1;
    if (op->risen < op->blocks) {
        struct slice s = slice_at(op, op->risen, op->own);
        struct kl_nvls_head h = head_of(op, &s);
        for (int r = op->arrived; s.count && blocker[0] < 0 && r < (int)op->nvls->shape.nranks; r++)
            if (!has_arrived(op, &h, &s, r)) blocker[0] = r;
    }
    if (!at_end(op, &op->gather)) {
        struct slice s = slice_of(op, &op->gather);
        struct kl_nvls_head h = head_of(op, &s);
        if (concerns(op, &s) && !kl_nvls_ready(kl_nvls_result(&h, s.step), s.step)) blocker[1] = s.rank;
    }
    if (!at_end(op, &op->scatter)) {
        struct slice s = slice_of(op, &op->scatter);
        struct kl_nvls_head h = head_of(op, &s);
        if (concerns(op, &s) && !kl_nvls_may_contribute(&h, s.step)) blocker[2] = s.rank;
    }
}

/* A head of another node. */
static int blocked_beyond(const struct kl_nvls_op *op, bool gone)
{
    if (!op->task.tree) return -1;
    return kl_nvls_tree_blocked_on(op->task.tree, op->risen < op->blocks, op->headed < op->risen, gone);
}

int kl_nvls_op_blocked_on(const struct kl_nvls_op *op)
{
    int blocker[3];

    find_blockers(op, blocker);
    for (int i = 0; i < 3; i++)
        if (blocker[i] >= 0) return name_of(op, blocker[i]);
    return blocked_beyond(op, false);
}

int kl_nvls_op_departed_rank(const struct kl_nvls_op *op)
{
    int before[3], after[3];

    find_blockers(op, before);
    for (int i = 0; i < 3; i++) {
        if (before[i] < 0 || !kl_arena_left(op->nvls->mark, before[i])) continue;
        find_blockers(op, after); /* all writes of a rank before it left are visible now */
        if (after[i] == before[i]) return name_of(op, after[i]);
    }
    return blocked_beyond(op, true);
}
