/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbouring leaves that one loop over the warps of a block, or over its threads, contains. */
#include "compat/cuda/nvcc/body.h"

#include <stdlib.h>
#include <string.h>

size_t body_segment(const struct body *b, uint32_t token)
{
    for (size_t s = 0; s < b->segment_count; s++)
        if (b->segments[s].from <= token && token < b->segments[s].to) return s;
    return NO_GROUP;
}

/* May the leaf, which is in no group, be executed by one warp after the other, as the groups beside it? */
static bool joins(const struct leaf *l)
{
    return !l->frame && !l->mixed && l->kind != LEAF_BARRIER && l->kind != LEAF_FRAME && l->kind != LEAF_HANDLE &&
           l->kind != LEAF_CHOICE;
}

static void add_segment(struct body *b, struct segment s, bool groups)
{
    if (!groups) return;
    b->segments = must_grow(b->segments, (b->segment_count + 1) * sizeof *b->segments);
    b->segments[b->segment_count++] = s;
}

void body_find_segments(struct body *b)
{
    struct segment run = {0, 0};
    uint32_t sequence = UINT32_MAX;
    bool groups = false;

    for (size_t i = 0; i < b->leaf_count; i++) {
        const struct leaf *l = &b->leaves[i];
        const struct group *g = l->group == NO_GROUP ? NULL : &b->groups[l->group];
        struct segment next = g ? (struct segment){g->from, g->to} : (struct segment){l->from, l->to};
        uint32_t of = g ? g->sequence : l->sequence;

        if (i && g && b->leaves[i - 1].group == l->group) continue;
        if (of != sequence || next.from != run.to || !(g || joins(l))) {
            add_segment(b, run, groups);
            run = (struct segment){next.from, next.from};
            groups = false;
        }
        if (g || joins(l)) run.to = next.to;
        sequence = of;
        groups |= g != NULL;
    }
    add_segment(b, run, groups);
}

/* ---- regions ---- */

bool body_may_point(const struct body *b, const struct local *v)
{
    for (uint32_t i = v->type.from; i < v->type.to; i++)
        if (!is_type_word(b->k, i) && !token_among(b->k, i, " const ")) return true;
    return token_is(b->k, v->declarator.from, "*");
}

/* `lane`, `threadIdx.x`, or a variable that is one of these and nothing else, at `i`: past it, else 0. */
static uint32_t one_thread(const struct body *b, uint32_t i)
{
    const struct tokens *k = b->k;
    uint32_t lane = lane_end(k, i);
    size_t l = body_local(b, i);

    if (lane) return lane;
    if (token_is(k, i, "threadIdx") && token_is(k, i + 1, ".") && token_is(k, i + 2, "x")) return i + 3;
    if (l == NO_LOCAL || b->locals[l].changed || b->locals[l].initial.from == b->locals[l].initial.to) return 0;
    return token_is(k, b->locals[l].initial.from, "threadIdx") && token_is(k, b->locals[l].initial.from + 2, "x")
               ? i + 1
               : 0;
}

/* `if (lane == 0) ...`, for a single thread: a loop of its own has no turns for the others. */
static bool is_of_one(const struct body *b, const struct leaf *l)
{
    const struct tokens *k = b->k;
    uint32_t end, close = k->at[l->from + 1].partner;

    if (l->kind != LEAF_CODE || !token_is(k, l->from, "if") || !token_is(k, l->from + 1, "(") || close == NO_TOKEN)
        return false;
    end = one_thread(b, l->from + 2);
    if (!end || !token_is(k, end, "==") || statement_end(k, close + 1, l->to) != l->to) return false;
    for (uint32_t i = l->from; i < l->to; i++)
        if (token_is(k, i, "return") || (i < close && token_among(k, i, " && || "))) return false;
    return true;
}

/* May the region's variables be kept beyond leaf `end`? */
static bool may_part(const struct body *b, size_t first, size_t end)
{
    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];

        if (v->leaf == NO_LOCAL || v->leaf < first || v->leaf >= end || v->place == PLACE_FRAME) continue;
        if (v->reference || v->deduced || v->escapes || v->dimensions || body_may_point(b, v)) return false;
    }
    return true;
}

/* Does the region that begins with leaf `first` end before leaf i, which could be part of it? */
static bool parts(const struct body *b, size_t first, size_t i)
{
    return (is_of_one(b, &b->leaves[i]) || is_of_one(b, &b->leaves[i - 1])) && may_part(b, first, i);
}

void body_find_regions(struct body *b)
{
    for (size_t i = 0; i < b->leaf_count; i++) {
        const struct leaf *l = &b->leaves[i], *before = i ? l - 1 : NULL;

        if (l->frame) continue;
        size_t segment = body_segment(b, l->from);
        if (!before || before->frame || before->sequence != l->sequence || before->to != l->from || l->mixed ||
            b->regions[b->region_count - 1].segment != segment || parts(b, b->regions[b->region_count - 1].first, i)) {
            b->regions = must_grow(b->regions, (b->region_count + 1) * sizeof *b->regions);
            b->regions[b->region_count++] = (struct region){.first = i, .segment = segment};
        }
        b->regions[b->region_count - 1].last = i;
        for (uint32_t t = l->from; t < l->to; t++)
            if (token_is(b->k, t, "return")) b->regions[b->region_count - 1].returns = true;
    }
}
