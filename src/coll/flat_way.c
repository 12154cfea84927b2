/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/flat_way.h"

#include "base/clock.h"

/*
 * LEAST    bytes posted by a rank: below, one more turn costs more than it saves, and posts before their turn save more
 * WEIGHT   of bytes: so that this is found out before all that Flat does is compared with the kernel's copies (negotiation.h)
 * WARMING  one in so many uses
 */
enum { LEAST = 32 << 10, WEIGHT = 2, WARMING = 8 };

static size_t posted_bytes(const struct kl_flat_op *op)
{
    return (op->share->end - op->share->first) * op->share->elem_bytes * op->parts;
}

bool kl_flat_may_go_by_core(const struct kl_flat_op *op)
{
    if (op->board->groups.n == 1 || !(op->slices || op->share->func == KL_FUNC_REDUCE_SCATTER)) return false;
    return posted_bytes(op) >= LEAST;
}

static int size_of(size_t bytes)
{
    int size = 0;

    for (; size < KL_BOARD_COMPARED - 1 && bytes >= 2 * (size_t)LEAST; bytes /= 2) size++;
    return size;
}

/* Before both ways are compared for the first time, each is used now and then: one takes a turn more, and then the other uses places that nobody has touched. */
static bool is_warming(const struct kl_lately *l)
{
    return !l->compared && l->uses < l->warm && l->uses % WARMING == WARMING - 1;
}

void kl_flat_choose_way(struct kl_flat_op *op)
{
    const size_t bytes = posted_bytes(op);
    const struct kl_lately_use use = {.bytes = WEIGHT * bytes, .crowded = true};
    struct kl_lately *l = kl_lately_of(op->board->ways[op->slices], KL_BOARD_COMPARED, size_of(bytes), use);

    op->way = l;
    op->decides = kl_lately_is_compared(l);
    op->by_core = !op->decides && (kl_lately_way(l) == 1 || is_warming(l));
    op->began = kl_lately_is_timed(l) ? kl_now_ns() : 0;
    if (op->decides) kl_board_tell(op->board, l->ns);
}

/* It went straight: posts of all ranks are here, and with them what these have found. */
void kl_flat_decide_way(struct kl_flat_op *op)
{
    uint64_t ns[2];

    kl_board_slowest(op->board, ns);
    kl_lately_decide(op->way, ns);
    op->board->comparisons++;
    op->decides = false;
}

void kl_flat_took_way(struct kl_flat_op *op)
{
    kl_lately_took(op->way, op->began ? kl_now_ns() - op->began : 0);
}
