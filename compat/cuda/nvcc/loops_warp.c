/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: loops over the warps of a block, with the operations that lanes do together. */
#include "compat/cuda/nvcc/loops.h"

#include <stdlib.h>
#include <string.h>

/* A function of the lane that gives the value of an expression. */
static void put_values(struct loops *w, struct piece p, const char *type, struct text *out)
{
    text_print(out,
               "__kolo::values(%s, [&](int __kolo_lane) __attribute__((always_inline)) {"
               " __attribute__((unused)) const ::uint3 threadIdx = {(unsigned)(__kolo_warp + __kolo_lane), __kolo_y, "
               "__kolo_z}; __attribute__((unused)) const long __kolo_thread = __kolo_base + __kolo_lane;",
               w->gone ? "__kolo_live" : "0xffffffffu");
    loops_variables(w, p, NULL, out);
    text_print(out, " return %s(", type);
    loops_range(w, p, out);
    text_put(out, "); })");
}

/* The array of a variable that is kept in one holds the values already. */
static bool put_kept_values(struct loops *w, struct piece p, struct text *out)
{
    const struct body *b = w->b;
    size_t l = p.from + 1 == p.to ? body_local(b, p.from) : NO_LOCAL;

    if (l == NO_LOCAL || b->locals[l].place != PLACE_KEPT || b->locals[l].dimensions) return false;
    text_put(out, "__kolo::lanes_of(__kolo_of_");
    loops_name(w, p.from, out);
    text_put(out, loops_is_narrow(b, &b->locals[l]) ? ")" : ", __kolo_base)");
    return true;
}

static void put_operand(struct loops *w, struct piece p, const char *type, struct text *out)
{
    text_put(out, ", ");
    if (body_uniform(w->b, p.from, p.to, false, OF_WARP)) {
        text_print(out, "%s(", type);
        loops_range(w, p, out);
        text_put(out, ")");
    } else {
        put_values(w, p, type, out);
    }
}

/* `auto __kolo_of_x = __kolo::shfl_down(live, mask, values, other, width);`, or x itself where all lanes have the same. */
static char *make_exchange(struct loops *w, const struct leaf *l)
{
    const struct body *b = w->b;
    const struct tokens *k = b->k;
    struct exchange e = exchange_of(b, l);
    struct text out = {0};

    w->segment = body_segment(b, l->from);
    text_put(&out, e.alike ? "__attribute__((unused)) const auto " : "__attribute__((unused)) const auto __kolo_of_");
    loops_name(w, e.result, &out);
    text_print(&out, " = __kolo::warp%.*s%s(%s", (int)(k->at[e.operation].end - k->at[e.operation].start - 1),
               k->text + k->at[e.operation].start + 1, e.alike && token_is(k, e.operation, "__shfl_sync") ? "_one" : "",
               w->gone ? "__kolo_live" : "0xffffffffu");
    if (e.mask.from < e.mask.to) put_operand(w, e.mask, "(unsigned)", &out);
    if (e.value.from < e.value.to) {
        bool votes = token_among(k, e.operation, " __ballot_sync __any_sync __all_sync __uni_sync ");

        text_put(&out, ", ");
        if (votes || !put_kept_values(w, e.value, &out)) put_values(w, e.value, votes ? "(int)" : "", &out);
    }
    if (e.other.from < e.other.to) put_operand(w, e.other, "(unsigned)(int)", &out);
    if (e.width.from < e.width.to) put_operand(w, e.width, "(unsigned)(int)", &out);
    text_put(&out, ");");
    w->segment = NO_GROUP;
    return out.at;
}

char **loops_exchanges(struct loops *w)
{
    const struct body *b = w->b;
    char **text = must_have((b->leaf_count + 1) * sizeof *text);

    for (size_t i = 0; i < b->leaf_count; i++)
        if (b->leaves[i].kind == LEAF_EXCHANGE) text[i] = make_exchange(w, &b->leaves[i]);
    return text;
}

void loops_put_exchanges(struct loops *w, char **text)
{
    const struct body *b = w->b;

    for (size_t i = 0; i < b->leaf_count; i++) {
        if (!text[i]) continue;
        source_drop_range(w->s, b->leaves[i].from, b->leaves[i].to - 1);
        source_replace(w->s, b->leaves[i].to - 1, text[i]);
        free(text[i]);
    }
    free(text);
}

/* The number of the lane, so that compilers see neighbours. */
void loops_translate_lanes(struct loops *w)
{
    for (uint32_t i = w->b->open; i < w->b->close; i++) {
        uint32_t end = lane_end(w->b->k, i);

        if (!end) continue;
        source_drop_range(w->s, i + 1, end);
        source_replace(w->s, i, "((unsigned)__kolo_lane)");
        i = end - 1;
    }
}

/* In a kernel that is one segment a warp that returns goes to its end. */
void loops_translate_exits(struct loops *w)
{
    const struct body *b = w->b;

    for (size_t i = 0; i < b->leaf_count; i++) {
        const struct leaf *l = &b->leaves[i];
        size_t segment = body_segment(b, l->from);
        char *text;

        if (l->kind != LEAF_EXIT || segment == NO_GROUP) continue;
        text = must_print("goto __kolo_over%zu", segment);
        for (uint32_t t = l->condition.to; t < l->to; t++)
            if (token_is(b->k, t, "return")) source_replace(w->s, t, text);
        free(text);
    }
}

/* Of threads that differ, it is lane 0's. */
static void put_segment_variables(struct loops *w, size_t segment, struct text *out)
{
    const struct body *b = w->b;
    const struct segment *g = &b->segments[segment];
    bool *need = must_have((b->local_count + 1) * sizeof *need);

    for (size_t l = b->local_count; l-- > 0;) {
        if (!body_headable(b, l, segment)) continue;
        for (uint32_t i = g->from; i < g->to && !need[l]; i++) need[l] = body_local(b, i) == l;
        for (size_t other = l + 1; other < b->local_count && !need[l]; other++)
            need[l] = need[other] && loops_is_used(b, l, b->locals[other].initial);
    }
    for (size_t l = 0; l < b->local_count; l++) {
        if (!need[l]) continue;
        text_put(out, " __attribute__((unused)) ");
        loops_range(w, b->locals[l].type, out);
        loops_range(w, b->locals[l].declarator, out);
        text_put(out, ";");
    }
    free(need);
}

struct around loops_segment(struct loops *w, size_t s)
{
    const struct body *b = w->b;
    const struct segment *g = &b->segments[s];
    struct text before = {0}, after = {0};
    bool returns = false;

    for (size_t l = 0; l < b->local_count; l++)
        if (b->locals[l].place == PLACE_KEPT && b->locals[l].leaf != NO_LOCAL && g->from <= b->locals[l].name &&
            b->locals[l].name < g->to && b->leaves[b->locals[l].leaf].kind != LEAF_EXCHANGE &&
            !loops_is_narrow(b, &b->locals[l]))
            loops_array(w, &b->locals[l], &before);
    for (size_t r = 0; r < b->region_count; r++) returns |= b->regions[r].segment == s && b->regions[r].returns;
    text_print(&before,
               " for (unsigned __kolo_z = 0; __kolo_z < blockDim.z; ++__kolo_z) for (unsigned __kolo_y = 0; __kolo_y < "
               "blockDim.y; ++__kolo_y) for (int __kolo_warp = 0; __kolo_warp < (int)blockDim.x; __kolo_warp += 32) {"
               " const long __kolo_base = (long)(__kolo_z * blockDim.y + __kolo_y) * blockDim.x + __kolo_warp;"
               " __attribute__((unused)) const ::uint3 threadIdx = {(unsigned)__kolo_warp, __kolo_y, __kolo_z};"
               " __attribute__((unused)) const int __kolo_lane = 0;"
               " __attribute__((unused)) const long __kolo_thread = __kolo_base;%s",
               w->gone ? " unsigned __kolo_live = __kolo_gone.living(__kolo_base); if (!__kolo_live) continue;" : "");
    put_segment_variables(w, s, &before);
    text_put(&before, " {");
    text_print(&after, " } __kolo_over%zu: __attribute__((unused)); }%s", s,
               returns && w->gone ? " if (__kolo_gone.all()) return;" : "");
    return (struct around){.before = before, .after = after};
}

void loops_put_segments(struct loops *w, struct around *around)
{
    for (size_t s = 0; s < w->b->segment_count; s++) {
        const struct segment *g = &w->b->segments[s];

        source_enclose(w->s, g->from, around[s].before.at, g->to - 1, around[s].after.at);
        text_drop(&around[s].before);
        text_drop(&around[s].after);
    }
    free(around);
}

/* Blocks of whole warps only; others have the function with fibres. */
void loops_choice(struct loops *w)
{
    const struct leaf *l = &w->b->leaves[w->b->choice];
    uint32_t comma = l->from + 3, close = w->b->k->at[l->from + 1].partner;
    struct text text = {0};

    if (w->b->segment_count) {
        text_put(&text, " if (blockDim.x % 32) { ");
        source_render_range(w->s, comma + 1, close, &text);
        text_put(&text, "; return; }");
    }
    source_drop_range(w->s, l->from, l->to);
    if (text.at) source_after(w->s, w->b->open, text.at);
    text_drop(&text);
}
