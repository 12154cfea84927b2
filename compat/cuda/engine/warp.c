/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes store their operands and wait; the last one computes the results of all. A result stays until its lane comes to its
 * next operation; it has been read by then. */
#include "compat/cuda/engine/worker.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

/* The lanes of a group, their operands, and the common result, computed at first use. */
struct group {
    struct kl_fibre *lane; /* lane 0 of the warp */
    uint32_t members;
};

static uint32_t with_value(const struct group *g, uint64_t value)
{
    uint32_t same = 0;

    for (uint32_t rest = g->members; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(rest);
        if (g->lane[i].value == value) same |= 1U << i;
    }
    return same;
}

static uint32_t combine(int operation, uint32_t a, uint32_t b)
{
    switch (operation) {
    case KOLO_WARP_ADD:
        return a + b;
    case KOLO_WARP_MIN:
        return a < b ? a : b;
    case KOLO_WARP_MAX:
        return a > b ? a : b;
    case KOLO_WARP_MIN_SIGNED:
        return (int32_t)a < (int32_t)b ? a : b;
    case KOLO_WARP_MAX_SIGNED:
        return (int32_t)a > (int32_t)b ? a : b;
    case KOLO_WARP_AND:
        return a & b;
    case KOLO_WARP_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static uint32_t reduction(const struct group *g, int operation)
{
    uint32_t rest = g->members, result = (uint32_t)g->lane[__builtin_ctz(rest)].value;

    for (rest &= rest - 1; rest; rest &= rest - 1)
        result = combine(operation, result, (uint32_t)g->lane[__builtin_ctz(rest)].value);
    return result;
}

static uint64_t result_of(const struct group *g, const struct kl_fibre *me)
{
    uint32_t same;

    switch (me->operation) {
    case KOLO_WARP_SYNC:
        return 0;
    case KOLO_WARP_BALLOT:
        return g->members & ~with_value(g, 0);
    case KOLO_WARP_SHUFFLE: /* a lane that takes no part has 0, as on GPUs: sums over part of a warp rely on it */
        return g->members >> me->lane_source & 1 ? g->lane[me->lane_source].value : 0;
    case KOLO_WARP_MATCH_ANY:
        return with_value(g, me->value);
    case KOLO_WARP_MATCH_ALL:
        same = with_value(g, me->value);
        return same == g->members ? same : 0;
    default:
        return reduction(g, me->operation);
    }
}

/* For an operation with the same result for all lanes of the group. */
static bool shared_result(int operation)
{
    return operation == KOLO_WARP_BALLOT || operation == KOLO_WARP_MATCH_ALL || operation >= KOLO_WARP_ADD;
}

static void give_results(const struct group *g)
{
    struct kl_fibre *first = &g->lane[__builtin_ctz(g->members)];
    uint64_t common = shared_result(first->operation) ? result_of(g, first) : 0;

    for (uint32_t rest = g->members; rest; rest &= rest - 1) {
        struct kl_fibre *me = &g->lane[__builtin_ctz(rest)];
        bool as_first = me->operation == first->operation && shared_result(first->operation);
        me->result = as_first ? common : result_of(g, me);
    }
}

/* Have all lanes of `mask` arrived? Their masks must be equal. */
static bool complete(const struct kl_fibre *lane, const struct kl_warp *warp, uint32_t arrived, uint32_t mask)
{
    uint32_t needed = mask & ~warp->gone;

    if (needed & ~arrived) return false;
    for (uint32_t rest = needed; rest; rest &= rest - 1)
        if (lane[__builtin_ctz(rest)].mask != mask) return false;
    return true;
}

static void release(struct kl_worker *w, struct kl_warp *warp, uint32_t members, uint32_t first_thread)
{
    warp->waiting &= ~members;
    for (; members; members &= members - 1) kl_block_ready(w, first_thread + (uint32_t)__builtin_ctz(members));
}

uint64_t __koloWarp(unsigned mask, int operation, uint64_t value, unsigned source, const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;
    uint32_t lane_here, first_thread, own;
    struct kl_warp *warp;
    struct kl_fibre *me;

    if (!w)
        return operation == KOLO_WARP_BALLOT                                          ? value != 0
               : operation == KOLO_WARP_MATCH_ANY || operation == KOLO_WARP_MATCH_ALL ? 1
                                                                                      : value;
    lane_here = w->current % KL_WARP_LANES;
    first_thread = w->current - lane_here;
    own = 1U << lane_here;
    warp = &w->warp[w->current / KL_WARP_LANES];
    me = &w->fibre[w->current];
    me->mask = mask |= own;
    me->operation = (uint8_t)operation;
    me->value = value;
    me->lane_source = (uint8_t)(source % KL_WARP_LANES);
    if (complete(&w->fibre[first_thread], warp, warp->waiting | own, mask)) {
        struct group g = {&w->fibre[first_thread], mask & ~warp->gone};

        give_results(&g);
        release(w, warp, g.members & ~own, first_thread);
        return me->result;
    }
    warp->waiting |= own;
    kl_block_wait(w, KL_WAIT_WARP, file, line);
    return me->result;
}

/* ---- active lanes ---- */

/* The lanes that ask at the same place as the first. */
static uint32_t asking_together(const struct kl_fibre *lane, uint32_t asking)
{
    const struct kl_fibre *first = &lane[__builtin_ctz(asking)];
    uint32_t group = 0;

    for (; asking; asking &= asking - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(asking);
        if (lane[i].file == first->file && lane[i].line == first->line) group |= 1U << i;
    }
    return group;
}

/* If no lane can run, answer the lanes that ask for the active ones: no others will come. */
void kl_warp_answer(struct kl_worker *w, uint32_t thread)
{
    struct kl_warp *warp = &w->warp[thread / KL_WARP_LANES];
    uint32_t first_thread = thread - thread % KL_WARP_LANES, group;
    struct kl_fibre *lane = &w->fibre[first_thread];

    if (!warp->asking || ~(warp->stopped | warp->gone)) return;
    group = asking_together(lane, warp->asking);
    warp->asking &= ~group;
    for (uint32_t rest = group; rest; rest &= rest - 1) {
        lane[__builtin_ctz(rest)].result = group;
        kl_block_ready(w, first_thread + (uint32_t)__builtin_ctz(rest));
    }
}

unsigned __koloActiveMask(const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;
    struct kl_fibre *me;
    struct kl_warp *warp;
    uint32_t own;

    if (!w) return 1;
    me = &w->fibre[w->current];
    warp = &w->warp[w->current / KL_WARP_LANES];
    own = 1U << w->current % KL_WARP_LANES;
    if (!~(warp->gone | own)) return own;
    warp->asking |= own;
    kl_block_wait(w, KL_WAIT_ACTIVE, file, line);
    return (unsigned)me->result;
}

void kl_warp_leave(struct kl_worker *w, uint32_t thread)
{
    struct kl_warp *warp = &w->warp[thread / KL_WARP_LANES];
    uint32_t first_thread = thread - thread % KL_WARP_LANES;

    kl_warp_answer(w, thread);

    for (uint32_t rest = warp->waiting; rest; rest &= rest - 1) {
        struct group g = {&w->fibre[first_thread], 0};
        uint32_t mask = g.lane[__builtin_ctz(rest)].mask;

        if (!complete(g.lane, warp, warp->waiting, mask)) continue;
        g.members = mask & ~warp->gone;
        give_results(&g);
        release(w, warp, g.members, first_thread);
        rest &= warp->waiting | (rest & -rest); /* those just released have gone from the list */
    }
}
