/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: loops over the threads of a block, or over the lanes of a warp. */
#include "compat/cuda/nvcc/loops.h"

#include <stdlib.h>
#include <string.h>

/* Nothing but declarations of computed variables. */
bool loops_is_idle(const struct body *b, const struct region *r)
{
    for (size_t i = r->first; i <= r->last; i++)
        if (b->leaves[i].kind != LEAF_DECLARATION) return false;
    for (size_t l = 0; l < b->local_count; l++)
        if (loops_is_home(r, &b->locals[l]) && b->locals[l].place != PLACE_FRAME && !b->locals[l].computable)
            return false;
    return true;
}

const struct stride *loops_stride_of(const struct body *b, const struct region *r)
{
    for (size_t s = 0; s < b->stride_count; s++)
        if (b->strides[s].leaf == r->first) return &b->strides[s];
    return NULL;
}

/* Before the word for: the counter of thread 0. */
void loops_counter(struct loops *w, size_t number, struct text *out)
{
    const struct body *b = w->b;
    const struct stride *s = &b->strides[number];
    bool *need = must_have((b->local_count + 1) * sizeof *need);

    text_put(out, "{ ");
    loops_range(w, b->locals[s->counter].type, out);
    text_print(out, "__kolo_first%zu; {%s", number,
               s->group == NO_GROUP ? " __attribute__((unused)) const ::uint3 threadIdx = {0, 0, 0};"
                                      " __attribute__((unused)) const int __kolo_lane = 0;"
                                    : "");
    for (size_t l = b->local_count; l-- > 0;) {
        if (!b->locals[l].computable || b->locals[l].place == PLACE_FRAME) continue;
        need[l] = loops_is_used(b, l, s->initial);
        for (size_t other = l + 1; other < b->local_count && !need[l]; other++)
            need[l] = need[other] && loops_is_used(b, l, b->locals[other].initial);
    }
    for (size_t l = 0; l < b->local_count; l++) {
        if (!need[l]) continue;
        text_put(out, " ");
        loops_range(w, b->locals[l].type, out);
        loops_range(w, b->locals[l].declarator, out);
        text_put(out, ";");
    }
    text_print(out, " __kolo_first%zu = ", number);
    loops_range(w, s->initial, out);
    text_print(out, "; } for (; __kolo_first%zu < ", number);
    loops_range(w, s->bound, out);
    text_print(out, "; __kolo_first%zu += ", number);
    loops_range(w, s->step, out);
    text_put(out, ")");
    free(need);
}

/* Atomics on shared memory, which become ordinary statements. */
const char loops_in_block[] = " atomicAdd atomicSub atomicMin atomicMax atomicAnd atomicOr atomicXor atomicExch ";

static bool has_atomics(const struct tokens *k, struct piece p)
{
    for (uint32_t i = p.from; i < p.to; i++)
        if (token_among(k, i, loops_in_block)) return true;
    return false;
}

/* Threads are independent, but for their atomics: several at once would lose some that hit the same place. */
static void put_head(struct loops *w, struct piece all, const struct region *r, bool narrowed, struct text *out)
{
    static const char index[] = "__attribute__((unused)) const ::uint3 threadIdx = ";
    char *marker = source_marker(w->s, all.from);
    const char *simd = has_atomics(w->b->k, all) ? "" : "#pragma omp simd\n",
               *first = narrowed ? "__kolo_range.first" : "0";

    if (w->segment != NO_GROUP) {
        text_put(out, " {");
        loops_rows(w, all, r, out);
        text_print(out,
                   "\n%s%s\nfor (int __kolo_lane = (int)%s; __kolo_lane < (int)%s; ++__kolo_lane) {"
                   " %s{(unsigned)(__kolo_warp + __kolo_lane), __kolo_y, __kolo_z};"
                   " __attribute__((unused)) const long __kolo_thread = __kolo_base + __kolo_lane;",
                   simd, marker, first, narrowed ? "__kolo_range.end" : "32", index);
    } else {
        text_put(
            out,
            " for (unsigned __kolo_z = 0; __kolo_z < blockDim.z; ++__kolo_z) for (unsigned __kolo_y = 0; __kolo_y < "
            "blockDim.y; ++__kolo_y) {"
            " const long __kolo_row = (__kolo_z * blockDim.y + __kolo_y) * blockDim.x;");
        loops_rows(w, all, r, out);
        text_print(out,
                   "\n%s%s\nfor (int __kolo_x = (int)%s; __kolo_x < (int)%s; ++__kolo_x) {"
                   " %s{(unsigned)__kolo_x, __kolo_y, __kolo_z};"
                   " __attribute__((unused)) const long __kolo_thread = __kolo_row + __kolo_x;%s",
                   simd, marker, first, narrowed ? "__kolo_range.end" : "blockDim.x", index,
                   w->b->segment_count ? " __attribute__((unused)) const int __kolo_lane = __kolo_x % 32;" : "");
    }
    free(marker);
    if (w->gone) text_put(out, " if (__kolo_gone.at[__kolo_thread]) continue;");
}

void loops_variables(struct loops *w, struct piece all, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    const struct stride *stride = r ? loops_stride_of(b, r) : NULL;
    bool *need = loops_needed(b, all, r, w->segment);

    if (stride) {
        text_put(out, " __attribute__((unused)) const ");
        loops_range(w, b->locals[stride->counter].type, out);
        loops_name(w, b->locals[stride->counter].name, out);
        text_print(out, " = __kolo_first%zu + %s;", (size_t)(stride - b->strides),
                   stride->group == NO_GROUP ? "__kolo_x" : "__kolo_lane");
    }
    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];
        bool home = r && loops_is_home(r, v);

        if (need[l]) {
            loops_computed(w, l, r != NULL, out);
        } else if (v->place == PLACE_RENEWED && !home && loops_is_used(b, l, all)) {
            text_put(out, " ");
            loops_range(w, v->type, out);
            loops_range(w, (struct piece){v->declarator.from, v->name + 1}, out);
            text_put(out, ";");
        } else if (v->place == PLACE_KEPT && (home ? loops_lies_apart(w, v) : loops_is_used(b, l, all))) {
            loops_kept(w, v, out);
        }
    }
    free(need);
}

static void put_results(struct loops *w, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    struct piece all = loops_tokens_of(b, r);

    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];
        bool home = loops_is_home(r, v);

        if (home && v->place != PLACE_FRAME && (v->computable || !loops_is_used(b, l, all))) {
            text_put(out, " (void)");
            loops_name(w, v->name, out);
            text_put(out, ";");
        }
        if (v->place != PLACE_KEPT) continue;
        if (home ? loops_lies_apart(w, v) || (v->initial.from == v->initial.to && !loops_is_used(b, l, all))
                 : v->dimensions || !loops_is_changed_in(b, l, all))
            continue;
        loops_put_back(w, v, out);
    }
}

static void translate_returns(struct loops *w, size_t number, struct piece all)
{
    char *text = must_print("do { %sgoto __kolo_next%zu; } while (0)",
                            w->gone ? "__kolo_gone.note(__kolo_thread); " : "", number);

    for (uint32_t i = all.from; i < all.to; i++)
        if (token_is(w->b->k, i, "return")) source_replace(w->s, i, text);
    free(text);
}

/* The text around a region: all of it is made before any is put into the source, where it would be part of other texts. */
struct around loops_region(struct loops *w, size_t number)
{
    const struct body *b = w->b;
    const struct region *r = &b->regions[number];
    const struct stride *stride = loops_stride_of(b, r);
    struct piece all = loops_tokens_of(b, r);
    struct text before = {0}, range = {0}, after = {0}, declarators = {0};
    bool narrowed;

    w->segment = r->segment;
    if (b->leaves[r->first].mixed) { /* the frame's variables come first */
        text_put(&before, " ");
        loops_range(w, loops_type_of(b, r->first), &before);
        loops_declarators(w, r->first, true, &before);
        text_put(&before, ";");
        loops_declarators(w, r->first, false, &declarators);
    }
    for (size_t l = 0; l < b->local_count; l++)
        if (b->locals[l].place == PLACE_KEPT && loops_is_home(r, &b->locals[l]) &&
            (r->segment == NO_GROUP || loops_is_narrow(b, &b->locals[l])))
            loops_array(w, &b->locals[l], &before);
    put_results(w, r, &after);
    text_put(&before, " {");
    if (stride) {
        text_print(&range, "__kolo::rest<%s>(%s, __kolo_first%zu, ", stride->natural ? "true" : "false",
                   stride->group == NO_GROUP ? "blockDim.x" : "32u", (size_t)(stride - b->strides));
        loops_range(w, stride->bound, &range);
        text_put(&range, ")");
    }
    narrowed = stride || loops_narrow(w, r, &range);
    if (narrowed) text_print(&before, " const __kolo::range __kolo_range = %s;", range.at);
    put_head(w, all, r, narrowed, &before);
    loops_variables(w, all, r, &before);
    text_put(&before, " {");
    for (size_t l = 0; l < b->local_count; l++)
        if (loops_is_home(r, &b->locals[l]) && loops_lies_apart(w, &b->locals[l]))
            source_drop_range(w->s, b->leaves[b->locals[l].leaf].from, b->leaves[b->locals[l].leaf].to);
    if (r->returns) translate_returns(w, number, all);
    text_put(&after, " }");
    if (r->returns) text_print(&after, " __kolo_next%zu:;", number);
    text_put(&after, " } } }");
    if (r->returns && w->gone && r->segment == NO_GROUP) text_put(&after, " if (__kolo_gone.all()) return;");
    if (r->returns && w->gone && r->segment != NO_GROUP)
        text_print(&after, " __kolo_live = __kolo_gone.living(__kolo_base); if (!__kolo_live) goto __kolo_over%zu;",
                   r->segment);
    text_drop(&range);
    w->segment = NO_GROUP;
    return (struct around){before, after, declarators};
}
