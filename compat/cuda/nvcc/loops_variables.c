/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of threads, in regions and between them. */
#include "compat/cuda/nvcc/loops.h"

#include <stdlib.h>
#include <string.h>

void loops_range(struct loops *w, struct piece p, struct text *out)
{
    source_render_range(w->s, p.from, p.to, out);
    text_put(out, " ");
}

void loops_name(const struct loops *w, uint32_t i, struct text *out)
{
    const struct tokens *k = w->b->k;

    text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
}

bool loops_is_used(const struct body *b, size_t l, struct piece p)
{
    for (uint32_t i = p.from; i < p.to; i++)
        if (i != b->locals[l].name && body_local(b, i) == l) return true;
    return false;
}

bool loops_is_changed_in(const struct body *b, size_t l, struct piece p)
{
    for (uint32_t i = p.from; b->locals[l].changed && i < p.to; i++)
        if (body_local(b, i) == l && (is_changed(b->k, i) || b->locals[l].escapes)) return true;
    return false;
}

struct piece loops_tokens_of(const struct body *b, const struct region *r)
{
    return (struct piece){b->leaves[r->first].from, b->leaves[r->last].to};
}

bool loops_is_home(const struct region *r, const struct local *v)
{
    return v->leaf != NO_LOCAL && r->first <= v->leaf && v->leaf <= r->last;
}

/* Is the variable loops_needed within one segment only? Then its array has room for one warp. */
bool loops_is_narrow(const struct body *b, const struct local *v)
{
    size_t segment = body_segment(b, v->name);

    if (segment == NO_GROUP) return false;
    for (uint32_t i = b->segments[segment].to; i < v->scope_end; i++)
        if (body_local(b, i) == (size_t)(v - b->locals)) return false;
    return true;
}

static const char *index_of(const struct body *b, const struct local *v)
{
    return loops_is_narrow(b, v) ? "__kolo_lane" : "__kolo_thread";
}

/* The array of a variable: `__kolo::kept<float *[4]> __kolo_of_x(threads);` */
void loops_array(struct loops *w, const struct local *v, struct text *out)
{
    uint32_t end = v->name + 1;

    text_put(out, loops_is_narrow(w->b, v) ? " __kolo::narrow<" : " __kolo::kept<");
    loops_range(w, v->type, out);
    loops_range(w, (struct piece){v->declarator.from, v->name}, out);
    while (token_is(w->b->k, end, "[")) end = w->b->k->at[end].partner + 1;
    loops_range(w, (struct piece){v->name + 1, end}, out);
    text_put(out, "> __kolo_of_");
    loops_name(w, v->name, out);
    text_put(out, loops_is_narrow(w->b, v) ? ";" : "(__kolo_threads);");
}

/* An array without initial values lies among those that are kept, from the beginning. */
bool loops_lies_apart(const struct loops *w, const struct local *v)
{
    const struct leaf *l = &w->b->leaves[v->leaf];

    return v->place == PLACE_KEPT && v->dimensions && v->initial.from == v->initial.to && v->type.from == l->from &&
           v->declarator.to == l->to - 1 && v->declarator.from == v->type.to;
}

void loops_kept(struct loops *w, const struct local *v, struct text *out)
{
    if (v->dimensions) {
        text_put(out, " __attribute__((unused)) auto &");
    } else {
        text_put(out, " __attribute__((unused)) ");
        if (v->deduced) /* the result of an exchange */
            text_put(out, "const auto ");
        else
            loops_range(w, v->type, out);
        loops_range(w, (struct piece){v->declarator.from, v->name}, out);
    }
    loops_name(w, v->name, out);
    text_put(out, " = __kolo_of_");
    loops_name(w, v->name, out);
    text_print(out, ".at[%s];", index_of(w->b, v));
}

void loops_put_back(const struct loops *w, const struct local *v, struct text *out)
{
    text_put(out, " __kolo::keep(__kolo_of_");
    loops_name(w, v->name, out);
    text_print(out, ".at[%s], ", index_of(w->b, v));
    loops_name(w, v->name, out);
    text_put(out, ");");
}

/* The same in a warp: a segment computes it before its regions. */
static bool is_of_segment(const struct body *b, const struct local *v, size_t segment)
{
    return segment != NO_GROUP && v->alike && body_headable(b, (size_t)(v - b->locals), segment);
}

/* Which computed variables the tokens need that were declared elsewhere: those that they name, and those that these name. */
bool *loops_needed(const struct body *b, struct piece all, const struct region *r, size_t segment)
{
    bool *need = must_have((b->local_count + 1) * sizeof *need);

    for (size_t l = b->local_count; l-- > 0;) { /* variables name earlier ones */
        const struct local *v = &b->locals[l];

        if (v->place == PLACE_FRAME || !v->computable || (r && loops_is_home(r, v)) || is_of_segment(b, v, segment))
            continue;
        need[l] = loops_is_used(b, l, all);
        for (size_t other = l + 1; other < b->local_count && !need[l]; other++)
            need[l] = need[other] && loops_is_used(b, l, b->locals[other].initial);
    }
    return need;
}

/* ---- rows ---- */

/* `int i = blockIdx.x * blockDim.x + threadIdx.x`: the sum is one of unsigned numbers, of which compilers must expect that they wrap around
 * between two threads, so that a[i] is no row of neighbours. As a sum of a number and the counter of the loop it is. */
bool loops_is_row(const struct body *b, const struct local *v)
{
    const struct tokens *k = b->k;
    bool places = false, natural = true;

    if (!v->computable || v->place == PLACE_FRAME || v->declarator.from != v->name || v->type.from == v->type.to)
        return false;
    for (uint32_t i = v->type.from; i < v->type.to; i++)
        if (!token_among(k, i, " const int long size_t ")) return false;
    for (uint32_t i = v->initial.from; i < v->initial.to; i++)
        places |= token_among(k, i, " threadIdx blockIdx blockDim gridDim ");
    return places && v->initial.to > v->initial.from + 3 && body_count_x(b, v->initial, 0, &natural) == 1;
}

/* The type of a row, without const. */
static void put_type(struct loops *w, const struct local *v, struct text *out)
{
    for (uint32_t i = v->type.from; i < v->type.to; i++)
        if (!token_is(w->b->k, i, "const")) loops_range(w, (struct piece){i, i + 1}, out);
}

/* The value of thread 0, or of lane 0. */
static void put_row(struct loops *w, size_t l, struct text *out)
{
    const struct body *b = w->b;
    const struct local *v = &b->locals[l];
    bool *need = loops_needed(b, v->initial, NULL, w->segment);

    text_put(out, " __attribute__((unused)) ");
    put_type(w, v, out);
    text_put(out, "__kolo_row_of_");
    loops_name(w, v->name, out);
    text_put(out, "; {");
    if (w->segment == NO_GROUP)
        text_put(out, " __attribute__((unused)) const ::uint3 threadIdx = {0, __kolo_y, __kolo_z};"
                      " __attribute__((unused)) const int __kolo_lane = 0;");
    for (size_t other = 0; other < b->local_count; other++)
        if (need[other]) loops_computed(w, other, false, out);
    text_put(out, " __kolo_row_of_");
    loops_name(w, v->name, out);
    text_put(out, " = ");
    loops_range(w, v->initial, out);
    text_put(out, "; }");
    free(need);
}

void loops_rows(struct loops *w, struct piece all, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    bool *need = loops_needed(b, all, r, w->segment);

    for (size_t l = 0; l < b->local_count; l++)
        if ((need[l] || loops_is_home(r, &b->locals[l])) && loops_is_row(b, &b->locals[l])) put_row(w, l, out);
    free(need);
}

/* The sum that is a thread's own value of a row. */
static void put_sum(const struct loops *w, const struct local *v, size_t segment, struct text *out)
{
    text_put(out, "__kolo_row_of_");
    loops_name(w, v->name, out);
    text_put(out, segment == NO_GROUP ? " + __kolo_x" : " + __kolo_lane");
}

void loops_computed(struct loops *w, size_t l, bool in_row, struct text *out)
{
    const struct local *v = &w->b->locals[l];

    text_put(out, " __attribute__((unused)) ");
    loops_range(w, v->type, out);
    if (in_row && loops_is_row(w->b, v)) {
        loops_range(w, (struct piece){v->declarator.from, v->initial.from}, out);
        put_sum(w, v, w->segment, out);
    } else {
        loops_range(w, v->declarator, out);
    }
    text_put(out, ";");
}

void loops_put_rows(struct loops *w)
{
    const struct body *b = w->b;

    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];
        struct text sum = {0};

        if (v->leaf == NO_LOCAL || b->leaves[v->leaf].mixed || b->leaves[v->leaf].frame || !loops_is_row(b, v))
            continue;
        text_put(&sum, " ");
        put_sum(w, v, body_segment(b, v->name), &sum);
        source_drop_range(w->s, v->initial.from, v->initial.to);
        source_after(w->s, v->initial.from - 1, sum.at);
        text_drop(&sum);
    }
}

/* The declarators of a leaf that belong to the frame, or the others, as a list. */
void loops_declarators(struct loops *w, size_t leaf, bool frame, struct text *out)
{
    const struct body *b = w->b;
    const char *between = " ";

    for (size_t l = 0; l < b->local_count; l++) {
        if (b->locals[l].leaf != leaf || (b->locals[l].place == PLACE_FRAME) != frame) continue;
        text_put(out, between);
        loops_range(w, b->locals[l].declarator, out);
        between = ", ";
    }
}

struct piece loops_type_of(const struct body *b, size_t leaf)
{
    size_t l = 0;

    while (b->locals[l].leaf != leaf) l++;
    return b->locals[l].type;
}
