/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel whose barriers stand where all threads of a block come alike runs once for a block, not once for each thread: the code between two
 * barriers is a loop over the threads. Variables that are needed behind a barrier are computed again or kept in arrays. */
#include "compat/cuda/nvcc/body.h"

#include "compat/cuda/nvcc/expand.h"
#include "compat/cuda/nvcc/translate.h"

#include <stdlib.h>
#include <string.h>

/* Text before a region and behind it; and in place of the declarators of its first statement, if some of them belong to the frame. */
struct around {
    struct text before, after, declarators;
};

struct loops {
    struct body *b;
    struct source *s;
    bool gone;      /* threads that return early are noted */
    size_t segment; /* that is being written, NO_GROUP: none */
};

/* ---- variables ---- */

static void put_range(struct loops *w, struct piece p, struct text *out)
{
    source_render_range(w->s, p.from, p.to, out);
    text_put(out, " ");
}

static void put_name(const struct loops *w, uint32_t i, struct text *out)
{
    const struct tokens *k = w->b->k;

    text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
}

static bool is_used(const struct body *b, size_t l, struct piece p)
{
    for (uint32_t i = p.from; i < p.to; i++)
        if (i != b->locals[l].name && body_local(b, i) == l) return true;
    return false;
}

static bool is_changed_in(const struct body *b, size_t l, struct piece p)
{
    for (uint32_t i = p.from; b->locals[l].changed && i < p.to; i++)
        if (body_local(b, i) == l && (is_changed(b->k, i) || b->locals[l].escapes)) return true;
    return false;
}

static struct piece tokens_of_region(const struct body *b, const struct region *r)
{
    return (struct piece){b->leaves[r->first].from, b->leaves[r->last].to};
}

static bool is_home(const struct region *r, const struct local *v)
{
    return v->leaf != NO_LOCAL && r->first <= v->leaf && v->leaf <= r->last;
}

/* Is the variable needed within one segment only? Then its array has room for one warp. */
static bool is_narrow(const struct body *b, const struct local *v)
{
    size_t segment = body_segment(b, v->name);

    if (segment == NO_GROUP) return false;
    for (uint32_t i = b->segments[segment].to; i < v->scope_end; i++)
        if (body_local(b, i) == (size_t)(v - b->locals)) return false;
    return true;
}

static const char *index_of(const struct body *b, const struct local *v)
{
    return is_narrow(b, v) ? "__kolo_lane" : "__kolo_thread";
}

/* The array of a variable: `__kolo::kept<float *[4]> __kolo_of_x(threads);` */
static void put_array(struct loops *w, const struct local *v, struct text *out)
{
    uint32_t end = v->name + 1;

    text_put(out, is_narrow(w->b, v) ? " __kolo::lanes<" : " __kolo::kept<");
    put_range(w, v->type, out);
    put_range(w, (struct piece){v->declarator.from, v->name}, out);
    while (token_is(w->b->k, end, "[")) end = w->b->k->at[end].partner + 1;
    put_range(w, (struct piece){v->name + 1, end}, out);
    text_put(out, "> __kolo_of_");
    put_name(w, v->name, out);
    text_put(out, is_narrow(w->b, v) ? ";" : "(__kolo_threads);");
}

/* An array without initial values lies among those that are kept, from the beginning. */
static bool lies_apart(const struct loops *w, const struct local *v)
{
    const struct leaf *l = &w->b->leaves[v->leaf];

    return v->place == PLACE_KEPT && v->dimensions && v->initial.from == v->initial.to && v->type.from == l->from &&
           v->declarator.to == l->to - 1 && v->declarator.from == v->type.to;
}

static void put_kept(struct loops *w, const struct local *v, struct text *out)
{
    if (v->dimensions) {
        text_put(out, " __attribute__((unused)) auto &");
    } else {
        text_put(out, " __attribute__((unused)) ");
        if (v->deduced) /* the result of an exchange */
            text_put(out, "const auto ");
        else
            put_range(w, v->type, out);
        put_range(w, (struct piece){v->declarator.from, v->name}, out);
    }
    put_name(w, v->name, out);
    text_put(out, " = __kolo_of_");
    put_name(w, v->name, out);
    text_print(out, ".at[%s];", index_of(w->b, v));
}

static void put_back(const struct loops *w, const struct local *v, struct text *out)
{
    text_put(out, " __kolo::keep(__kolo_of_");
    put_name(w, v->name, out);
    text_print(out, ".at[%s], ", index_of(w->b, v));
    put_name(w, v->name, out);
    text_put(out, ");");
}

/* The same in a warp: a segment computes it before its regions. */
static bool is_of_segment(const struct body *b, const struct local *v, size_t segment)
{
    return segment != NO_GROUP && v->alike && body_headable(b, (size_t)(v - b->locals), segment);
}

/* Which computed variables the tokens need that were declared elsewhere: those that they name, and those that these name. */
static bool *needed(const struct body *b, struct piece all, const struct region *r, size_t segment)
{
    bool *need = must_have((b->local_count + 1) * sizeof *need);

    for (size_t l = b->local_count; l-- > 0;) { /* variables name earlier ones */
        const struct local *v = &b->locals[l];

        if (v->place == PLACE_FRAME || !v->computable || (r && is_home(r, v)) || is_of_segment(b, v, segment)) continue;
        need[l] = is_used(b, l, all);
        for (size_t other = l + 1; other < b->local_count && !need[l]; other++)
            need[l] = need[other] && is_used(b, l, b->locals[other].initial);
    }
    return need;
}

/* The declarators of a leaf that belong to the frame, or the others, as a list. */
static void put_declarators(struct loops *w, size_t leaf, bool frame, struct text *out)
{
    const struct body *b = w->b;
    const char *between = " ";

    for (size_t l = 0; l < b->local_count; l++) {
        if (b->locals[l].leaf != leaf || (b->locals[l].place == PLACE_FRAME) != frame) continue;
        text_put(out, between);
        put_range(w, b->locals[l].declarator, out);
        between = ", ";
    }
}

static struct piece type_of(const struct body *b, size_t leaf)
{
    size_t l = 0;

    while (b->locals[l].leaf != leaf) l++;
    return b->locals[l].type;
}

/* ---- which threads ---- */

/* The variable or index that is the thread's x, with nothing else in [from, to); *type is its type. */
static bool is_x(struct loops *w, uint32_t from, uint32_t to, struct text *type)
{
    const struct body *b = w->b;
    size_t l;

    if (w->segment != NO_GROUP && lane_end(b->k, from) == to) {
        text_put(type, "unsigned");
        return true;
    }
    if (w->segment == NO_GROUP && token_is(b->k, from, "threadIdx") && token_is(b->k, from + 1, ".") &&
        token_is(b->k, from + 2, "x") && from + 3 == to) {
        text_put(type, "unsigned");
        return true;
    }
    l = from + 1 == to ? body_local(b, from) : NO_LOCAL;
    if (l == NO_LOCAL || !b->locals[l].computable || b->locals[l].deduced ||
        token_is(b->k, b->locals[l].declarator.from, "*"))
        return false;
    for (uint32_t i = b->locals[l].type.from; i < b->locals[l].type.to; i++)
        if (!token_among(b->k, i, " const unsigned int long size_t uint ")) return false;
    source_render_range(w->s, b->locals[l].type.from, b->locals[l].type.to, type);
    struct text none = {0};
    bool is = b->locals[l].initial.from != b->locals[l].initial.to &&
              token_is(b->k, b->locals[l].initial.from, "threadIdx") &&
              is_x(w, b->locals[l].initial.from, b->locals[l].initial.to, &none);

    text_drop(&none);
    return is;
}

/* The same for all threads, and no part of memory: sums, products and shifts. */
static bool is_bound(const struct body *b, uint32_t from, uint32_t to)
{
    const struct tokens *k = b->k;

    if (!body_uniform(b, from, to, false, OF_BLOCK)) return false;
    for (uint32_t i = from; i < to; i++) {
        size_t l = body_local(b, i);

        if (l != NO_LOCAL && b->locals[l].place != PLACE_FRAME) return false;
        if (token_among(k, i, " [ -> & ")) return false;
        if (token_is(k, i, "*") && k->at[i - 1].kind == TOKEN_SIGN) return false;
    }
    for (uint32_t i = from; i < to; i = token_is(k, i, "(") ? k->at[i].partner + 1 : i + 1) {
        if (token_among(k, i, " < > ") && token_touches(k, i) && token_is(k, i + 1, token_is(k, i, "<") ? "<" : ">")) {
            i++;
            continue;
        }
        if (k->at[i].kind == TOKEN_SIGN && !token_among(k, i, " + - * / % ( . :: ")) return false;
    }
    return true;
}

/* `tid < n`: the threads of a row for which this holds, as an expression. */
static bool put_threads(struct loops *w, struct piece p, struct text *out)
{
    static const struct {
        const char *sign, *function;
    } signs[] = {{"<", "below"}, {"<=", "up_to"}, {">", "above"}, {">=", "from"}, {"==", "only"}};
    const struct tokens *k = w->b->k;
    uint32_t lane = w->segment == NO_GROUP ? 0 : lane_end(k, p.from), at = lane ? lane
                                                                           : token_is(k, p.from, "threadIdx")
                                                                               ? p.from + 3
                                                                               : p.from + 1;
    struct text type = {0};
    bool found = false;

    for (size_t i = 0; i < sizeof signs / sizeof signs[0] && !found && at + 1 < p.to; i++) {
        if (!token_is(k, at, signs[i].sign) || (token_touches(k, at) && token_among(k, at + 1, " < > <= >= ")))
            continue;
        found = is_x(w, p.from, at, &type) && is_bound(w->b, at + 1, p.to);
        if (!found) break;
        text_print(out, "__kolo::%s<%s>(%s, ", signs[i].function, type.at,
                   w->segment == NO_GROUP ? "blockDim.x" : "32u");
        put_range(w, (struct piece){at + 1, p.to}, out);
        text_put(out, ")");
    }
    text_drop(&type);
    return found;
}

/* The next of the pieces of a condition that `&&` separates. */
static bool next_part(const struct tokens *k, uint32_t *at, uint32_t end, struct piece *p)
{
    if (*at >= end) return false;
    *p = (struct piece){*at, find_outside(k, *at, end, " && ")};
    if (p->to == NO_TOKEN) p->to = end;
    *at = p->to + 1;
    return true;
}

/* A region that is `if (tid < n) ...` alone, behind declarations of computed variables: the loop is over these threads. */
static bool narrow(struct loops *w, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    const struct tokens *k = b->k;
    const struct leaf *l = &b->leaves[r->last];
    uint32_t at, close;
    struct piece p;

    for (size_t i = 0; i < b->local_count; i++)
        if (is_home(r, &b->locals[i]) && b->locals[i].place != PLACE_FRAME && !b->locals[i].computable) return false;
    for (size_t i = r->first; i < r->last; i++)
        if (b->leaves[i].kind != LEAF_DECLARATION) return false;
    if (!token_is(k, l->from, "if") || !token_is(k, l->from + 1, "(")) return false;
    close = k->at[l->from + 1].partner;
    if (close == NO_TOKEN || statement_end(k, close + 1, l->to) != l->to) return false; /* there is an else */
    if (find_outside(k, l->from + 2, close, " || ? , ; = ") != NO_TOKEN) return false;
    for (at = l->from + 2; next_part(k, &at, close, &p);) {
        if (!put_threads(w, p, out)) continue;
        if (p.from == l->from + 2 && p.to == close) {
            source_drop_range(w->s, p.from, p.to);
            source_before(w->s, p.from, "true");
        }
        return true;
    }
    return false;
}

/* ---- regions ---- */

/* Nothing but declarations of computed variables. */
static bool is_idle(const struct body *b, const struct region *r)
{
    for (size_t i = r->first; i <= r->last; i++)
        if (b->leaves[i].kind != LEAF_DECLARATION) return false;
    for (size_t l = 0; l < b->local_count; l++)
        if (is_home(r, &b->locals[l]) && b->locals[l].place != PLACE_FRAME && !b->locals[l].computable) return false;
    return true;
}

static const struct stride *stride_of(const struct body *b, const struct region *r)
{
    for (size_t s = 0; s < b->stride_count; s++)
        if (b->strides[s].leaf == r->first) return &b->strides[s];
    return NULL;
}

/* Before the word for: the counter of thread 0. */
static void put_counter(struct loops *w, size_t number, struct text *out)
{
    const struct body *b = w->b;
    const struct stride *s = &b->strides[number];
    bool *need = must_have((b->local_count + 1) * sizeof *need);

    text_put(out, "{ ");
    put_range(w, b->locals[s->counter].type, out);
    text_print(out, "__kolo_first%zu; {%s", number,
               s->group == NO_GROUP ? " __attribute__((unused)) const ::uint3 threadIdx = {0, 0, 0};"
                                      " __attribute__((unused)) const int __kolo_lane = 0;"
                                    : "");
    for (size_t l = b->local_count; l-- > 0;) {
        if (!b->locals[l].computable || b->locals[l].place == PLACE_FRAME) continue;
        need[l] = is_used(b, l, s->initial);
        for (size_t other = l + 1; other < b->local_count && !need[l]; other++)
            need[l] = need[other] && is_used(b, l, b->locals[other].initial);
    }
    for (size_t l = 0; l < b->local_count; l++) {
        if (!need[l]) continue;
        text_put(out, " ");
        put_range(w, b->locals[l].type, out);
        put_range(w, b->locals[l].declarator, out);
        text_put(out, ";");
    }
    text_print(out, " __kolo_first%zu = ", number);
    put_range(w, s->initial, out);
    text_print(out, "; } for (; __kolo_first%zu < ", number);
    put_range(w, s->bound, out);
    text_print(out, "; __kolo_first%zu += ", number);
    put_range(w, s->step, out);
    text_put(out, ")");
    free(need);
}

/* Atomics on shared memory, which become ordinary statements. */
static const char in_block[] = " atomicAdd atomicSub atomicMin atomicMax atomicAnd atomicOr atomicXor atomicExch ";

static bool has_atomics(const struct tokens *k, struct piece p)
{
    for (uint32_t i = p.from; i < p.to; i++)
        if (token_among(k, i, in_block)) return true;
    return false;
}

/* Threads are independent, but for their atomics: several at once would lose some that hit the same place. */
static void put_head(struct loops *w, struct piece all, bool narrowed, struct text *out)
{
    static const char index[] = "__attribute__((unused)) const ::uint3 threadIdx = ";
    char *marker = source_marker(w->s, all.from);
    const char *simd = has_atomics(w->b->k, all) ? "" : "#pragma omp simd\n",
               *first = narrowed ? "__kolo_range.first" : "0";

    if (w->segment != NO_GROUP)
        text_print(out,
                   " {\n%s%s\nfor (int __kolo_lane = (int)%s; __kolo_lane < (int)%s; ++__kolo_lane) {"
                   " %s{(unsigned)(__kolo_warp + __kolo_lane), __kolo_y, __kolo_z};"
                   " __attribute__((unused)) const long __kolo_thread = __kolo_base + __kolo_lane;",
                   simd, marker, first, narrowed ? "__kolo_range.end" : "32", index);
    else
        text_print(
            out,
            " for (unsigned __kolo_z = 0; __kolo_z < blockDim.z; ++__kolo_z) for (unsigned __kolo_y = 0; __kolo_y < "
            "blockDim.y; ++__kolo_y) {"
            " const long __kolo_row = (__kolo_z * blockDim.y + __kolo_y) * blockDim.x;\n%s%s\n"
            "for (int __kolo_x = (int)%s; __kolo_x < (int)%s; ++__kolo_x) {"
            " %s{(unsigned)__kolo_x, __kolo_y, __kolo_z};"
            " __attribute__((unused)) const long __kolo_thread = __kolo_row + __kolo_x;%s",
            simd, marker, first, narrowed ? "__kolo_range.end" : "blockDim.x", index,
            w->b->segment_count ? " __attribute__((unused)) const int __kolo_lane = __kolo_x % 32;" : "");
    free(marker);
    if (w->gone) text_put(out, " if (__kolo_gone.at[__kolo_thread]) continue;");
}

static void put_variables(struct loops *w, struct piece all, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    const struct stride *stride = r ? stride_of(b, r) : NULL;
    bool *need = needed(b, all, r, w->segment);

    if (stride) {
        text_put(out, " __attribute__((unused)) const ");
        put_range(w, b->locals[stride->counter].type, out);
        put_name(w, b->locals[stride->counter].name, out);
        text_print(out, " = __kolo_first%zu + %s;", (size_t)(stride - b->strides),
                   stride->group == NO_GROUP ? "__kolo_x" : "__kolo_lane");
    }
    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];
        bool home = r && is_home(r, v);

        if (need[l]) {
            text_put(out, " __attribute__((unused)) ");
            put_range(w, v->type, out);
            put_range(w, v->declarator, out);
            text_put(out, ";");
        } else if (v->place == PLACE_RENEWED && !home && is_used(b, l, all)) {
            text_put(out, " ");
            put_range(w, v->type, out);
            put_range(w, (struct piece){v->declarator.from, v->name + 1}, out);
            text_put(out, ";");
        } else if (v->place == PLACE_KEPT && (home ? lies_apart(w, v) : is_used(b, l, all))) {
            put_kept(w, v, out);
        }
    }
    free(need);
}

static void put_results(struct loops *w, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    struct piece all = tokens_of_region(b, r);

    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];
        bool home = is_home(r, v);

        if (home && v->place != PLACE_FRAME && (v->computable || !is_used(b, l, all))) {
            text_put(out, " (void)");
            put_name(w, v->name, out);
            text_put(out, ";");
        }
        if (v->place != PLACE_KEPT) continue;
        if (home ? lies_apart(w, v) || (v->initial.from == v->initial.to && !is_used(b, l, all))
                 : v->dimensions || !is_changed_in(b, l, all))
            continue;
        put_back(w, v, out);
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
static struct around make_region(struct loops *w, size_t number)
{
    const struct body *b = w->b;
    const struct region *r = &b->regions[number];
    const struct stride *stride = stride_of(b, r);
    struct piece all = tokens_of_region(b, r);
    struct text before = {0}, range = {0}, after = {0}, declarators = {0};
    bool narrowed;

    w->segment = r->segment;
    if (b->leaves[r->first].mixed) { /* the frame's variables come first */
        text_put(&before, " ");
        put_range(w, type_of(b, r->first), &before);
        put_declarators(w, r->first, true, &before);
        text_put(&before, ";");
        put_declarators(w, r->first, false, &declarators);
    }
    for (size_t l = 0; l < b->local_count; l++)
        if (b->locals[l].place == PLACE_KEPT && is_home(r, &b->locals[l]) &&
            (r->segment == NO_GROUP || is_narrow(b, &b->locals[l])))
            put_array(w, &b->locals[l], &before);
    put_results(w, r, &after);
    text_put(&before, " {");
    if (stride) {
        text_print(&range, "__kolo::rest<%s>(%s, __kolo_first%zu, ", stride->natural ? "true" : "false",
                   stride->group == NO_GROUP ? "blockDim.x" : "32u", (size_t)(stride - b->strides));
        put_range(w, stride->bound, &range);
        text_put(&range, ")");
    }
    narrowed = stride || narrow(w, r, &range);
    if (narrowed) text_print(&before, " const __kolo::range __kolo_range = %s;", range.at);
    put_head(w, all, narrowed, &before);
    put_variables(w, all, r, &before);
    text_put(&before, " {");
    for (size_t l = 0; l < b->local_count; l++)
        if (is_home(r, &b->locals[l]) && lies_apart(w, &b->locals[l]))
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

/* ---- warps ---- */

/* A function of the lane that gives the value of an expression. */
static void put_values(struct loops *w, struct piece p, const char *type, struct text *out)
{
    text_print(out,
               "__kolo::values(%s, [&](int __kolo_lane) __attribute__((always_inline)) {"
               " __attribute__((unused)) const ::uint3 threadIdx = {(unsigned)(__kolo_warp + __kolo_lane), __kolo_y, "
               "__kolo_z}; __attribute__((unused)) const long __kolo_thread = __kolo_base + __kolo_lane;",
               w->gone ? "__kolo_live" : "0xffffffffu");
    put_variables(w, p, NULL, out);
    text_print(out, " return %s(", type);
    put_range(w, p, out);
    text_put(out, "); })");
}

static void put_operand(struct loops *w, struct piece p, const char *type, struct text *out)
{
    text_put(out, ", ");
    if (body_uniform(w->b, p.from, p.to, false, OF_WARP)) {
        text_print(out, "%s(", type);
        put_range(w, p, out);
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
    put_name(w, e.result, &out);
    text_print(&out, " = __kolo::warp%.*s%s(%s", (int)(k->at[e.operation].end - k->at[e.operation].start - 1),
               k->text + k->at[e.operation].start + 1, e.alike && token_is(k, e.operation, "__shfl_sync") ? "_one" : "",
               w->gone ? "__kolo_live" : "0xffffffffu");
    if (e.mask.from < e.mask.to) put_operand(w, e.mask, "(unsigned)", &out);
    if (e.value.from < e.value.to) {
        text_put(&out, ", ");
        put_values(w, e.value,
                   token_among(k, e.operation, " __ballot_sync __any_sync __all_sync __uni_sync ") ? "(int)" : "",
                   &out);
    }
    if (e.other.from < e.other.to) put_operand(w, e.other, "(unsigned)(int)", &out);
    if (e.width.from < e.width.to) put_operand(w, e.width, "(unsigned)(int)", &out);
    text_put(&out, ");");
    w->segment = NO_GROUP;
    return out.at;
}

static char **make_exchanges(struct loops *w)
{
    const struct body *b = w->b;
    char **text = must_have((b->leaf_count + 1) * sizeof *text);

    for (size_t i = 0; i < b->leaf_count; i++)
        if (b->leaves[i].kind == LEAF_EXCHANGE) text[i] = make_exchange(w, &b->leaves[i]);
    return text;
}

static void put_exchanges(struct loops *w, char **text)
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
static void translate_lanes(struct loops *w)
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
static void translate_exits(struct loops *w)
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
            need[l] = need[other] && is_used(b, l, b->locals[other].initial);
    }
    for (size_t l = 0; l < b->local_count; l++) {
        if (!need[l]) continue;
        text_put(out, " __attribute__((unused)) ");
        put_range(w, b->locals[l].type, out);
        put_range(w, b->locals[l].declarator, out);
        text_put(out, ";");
    }
    free(need);
}

static struct around make_segment(struct loops *w, size_t s)
{
    const struct body *b = w->b;
    const struct segment *g = &b->segments[s];
    struct text before = {0}, after = {0};
    bool returns = false;

    for (size_t l = 0; l < b->local_count; l++)
        if (b->locals[l].place == PLACE_KEPT && b->locals[l].leaf != NO_LOCAL && g->from <= b->locals[l].name &&
            b->locals[l].name < g->to && b->leaves[b->locals[l].leaf].kind != LEAF_EXCHANGE &&
            !is_narrow(b, &b->locals[l]))
            put_array(w, &b->locals[l], &before);
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

static void put_segments(struct loops *w, struct around *around)
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
static void put_choice(struct loops *w)
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

/* ---- the frame ---- */

/* Shared memory belongs to the threads of a block, which one core runs one after the other. */
static void translate_atomics(struct loops *w)
{
    const struct body *b = w->b;
    const struct tokens *k = b->k;

    for (uint32_t i = b->open; i < b->close; i++) {
        uint32_t name = i + 3, close;
        char *word;

        if (!token_among(k, i, in_block) || !token_is(k, i + 1, "(") || !token_is(k, i + 2, "&") || !b->shared ||
            !token_among(k, name, b->shared))
            continue;
        close = k->at[i + 1].partner;
        for (uint32_t n = i + 1; n < close && close != NO_TOKEN; n++)
            if (token_is(k, n, "->")) close = NO_TOKEN;
        if (close == NO_TOKEN || token_is(k, i - 1, "::") || body_local(b, name) != NO_LOCAL) continue;
        word = must_print("__kolo::in_block::%.*s", (int)(k->at[i].end - k->at[i].start), k->text + k->at[i].start);
        source_replace(w->s, i, word);
        free(word);
    }
}

/* Without barriers a handle of the block has no use. */
static void mark_used(struct loops *w, struct leaf handle)
{
    struct text text = {0};

    text_put(&text, " (void)");
    put_name(w, find_outside(w->b->k, handle.from, handle.to, " = ") - 1, &text);
    text_put(&text, ";");
    source_after(w->s, handle.to - 1, text.at);
    text_drop(&text);
}

/* A launch takes the addresses of parameters, after which compilers expect any write to memory to change them: copies do not. */
static void copy_parameters(struct loops *w)
{
    const struct body *b = w->b;
    struct text first = {0}, second = {0};

    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];

        if (!v->parameter || find_outside(b->k, v->declarator.from, v->declarator.to, " ... ") != NO_TOKEN) continue;
        text_put(&first, " auto __kolo_copy_of_");
        put_name(w, v->name, &first);
        text_put(&first, " = ");
        put_name(w, v->name, &first);
        text_put(&first, ";");
        text_put(&second, " __attribute__((unused)) auto ");
        put_name(w, v->name, &second);
        text_put(&second, " = __kolo_copy_of_");
        put_name(w, v->name, &second);
        text_put(&second, ";");
    }
    if (first.at) {
        source_after(w->s, b->open, first.at);
        source_after(w->s, b->open, " {");
        source_after(w->s, b->open, second.at);
        source_before(w->s, b->close, " }");
    }
    text_drop(&first);
    text_drop(&second);
}

/* Inside of a segment, or around it: the braces nest. */
static void enclose_bare(struct loops *w, struct piece bare, bool inside)
{
    size_t segment = body_segment(w->b, bare.from);
    bool within = segment != NO_GROUP &&
                  (w->b->segments[segment].from < bare.from || bare.to < w->b->segments[segment].to) &&
                  bare.to <= w->b->segments[segment].to;

    if (within == inside) source_enclose(w->s, bare.from, "{ ", bare.to - 1, " }");
}

static void translate_frame(struct loops *w)
{
    const struct body *b = w->b;
    struct around *around = must_have((b->region_count + 1) * sizeof *around);
    struct text *counters = must_have((b->stride_count + 1) * sizeof *counters);
    struct around *segments = must_have((b->segment_count + 1) * sizeof *segments);
    char **exchanges;

    if (b->segment_count) translate_lanes(w);
    translate_exits(w);
    for (size_t g = 0; g < b->segment_count; g++) segments[g] = make_segment(w, g);
    exchanges = make_exchanges(w);
    for (size_t i = 0; i < b->leaf_count; i++) {
        if (b->leaves[i].kind == LEAF_BARRIER) source_drop_range(w->s, b->leaves[i].from, b->leaves[i].to - 1);
        if (b->leaves[i].kind == LEAF_HANDLE) mark_used(w, b->leaves[i]);
    }
    for (size_t r = 0; r < b->region_count; r++)
        if (!is_idle(b, &b->regions[r]) || b->leaves[b->regions[r].first].mixed) around[r] = make_region(w, r);
    for (size_t s = 0; s < b->stride_count; s++) put_counter(w, s, &counters[s]);
    for (size_t r = 0; r < b->region_count; r++) {
        struct piece all = tokens_of_region(b, &b->regions[r]);

        if (around[r].declarators.at) {
            const struct leaf *l = &b->leaves[b->regions[r].first];

            source_drop_range(w->s, type_of(b, b->regions[r].first).to, l->to - 1);
            source_before(w->s, l->to - 1, around[r].declarators.at);
        }
        if (around[r].before.at)
            source_enclose(w->s, all.from, around[r].before.at, all.to - 1, around[r].after.at);
        else
            source_drop_range(w->s, all.from, all.to);
        text_drop(&around[r].before);
        text_drop(&around[r].after);
        text_drop(&around[r].declarators);
    }
    free(around);
    for (size_t s = 0; s < b->stride_count; s++) { /* the header is another one; behind the region its brace closes */
        uint32_t from = b->strides[s].from, close = b->k->at[from + 1].partner;

        source_drop_range(w->s, from, close + 1);
        source_enclose(w->s, from, counters[s].at, b->leaves[b->strides[s].leaf].to - 1, " }");
        text_drop(&counters[s]);
    }
    free(counters);
    put_exchanges(w, exchanges);
    for (size_t i = 0; i < b->bare_count; i++) enclose_bare(w, b->bare[i], true);
    put_segments(w, segments);
    for (size_t i = 0; i < b->bare_count; i++) enclose_bare(w, b->bare[i], false);
    if (b->choice != NO_LOCAL) put_choice(w);
    source_after(w->s, b->open,
                 " __koloWholeBlock(); __attribute__((unused)) const ::dim3 blockDim = ::blockDim, gridDim = ::gridDim;"
                 " __attribute__((unused)) const ::uint3 blockIdx = ::blockIdx;"
                 " __attribute__((unused)) const unsigned __kolo_threads = blockDim.x * blockDim.y * blockDim.z;");
    if (w->gone) source_after(w->s, b->open, " __kolo::gone_threads __kolo_gone(__kolo_threads);");
    copy_parameters(w);
}

static bool notes_gone(const struct body *b)
{
    for (size_t r = 0; r < b->region_count; r++)
        if (b->regions[r].returns && (r + 1 < b->region_count || b->leaves[b->regions[r].last].sequence)) return true;
    return false;
}

static void report(struct translation *t, const struct body *b, uint32_t name, bool loops)
{
    const struct tokens *k = b->k;
    const char *why;
    char *place;

    if (!t->options->report || (!loops && !b->barriers && b->why && !strcmp(b->why, "no barrier"))) return;
    place = source_named_place(&t->source, name);
    why = t->refusals ? refusal_of(t->refusals, place) : NULL;
    free(place);
    place = source_place(&t->source, loops || why ? name : b->wrong);
    fprintf(t->options->report, "%s: note: kernel %.*s: ", place, (int)(k->at[name].end - k->at[name].start),
            k->text + k->at[name].start);
    if (loops)
        fprintf(t->options->report, "loops over threads between barriers\n");
    else if (why)
        fprintf(t->options->report, "a fibre for each thread: %s\n", why);
    else
        fprintf(t->options->report, "a fibre for each thread: %s (\"%.*s\")\n", b->why,
                (int)(k->at[b->wrong].end - k->at[b->wrong].start), k->text + k->at[b->wrong].start);
    free(place);
}

/* The kernel was expanded in vain: it is to stay as it is. */
static void note_refusal(struct translation *t, const struct body *b, uint32_t name)
{
    char *place = source_named_place(&t->source, name),
         *why = must_print("%s (\"%.*s\")", b->why, (int)(b->k->at[b->wrong].end - b->k->at[b->wrong].start),
                           b->k->text + b->k->at[b->wrong].start);

    refuse_kernel(t->refusals, place, why);
    free(place);
    free(why);
}

void translate_barriers(struct translation *t)
{
    struct body b = {.t = t, .k = &t->source.tokens, .open = t->kernel_body};
    struct loops w = {.b = &b, .s = &t->source, .segment = NO_GROUP};
    uint32_t header, from = skip_template_headers(b.k, t->statement, b.open, &header),
                     open = parameters_of(b.k, from, b.open);
    bool loops;

    if (t->options->fibres || open == NO_TOKEN || t->source.failed) return;
    if (!t->functions) t->functions = functions_find(t);
    b.functions = t->functions;
    loops = body_read(&b, header, open) && body_classify(&b);
    if (!loops && b.stride_count) { /* with strides as statements like others */
        body_drop(&b);
        b = (struct body){
            .t = t, .k = &t->source.tokens, .functions = t->functions, .open = t->kernel_body, .keeps_strides = true};
        loops = body_read(&b, header, open) && body_classify(&b);
    }
    report(t, &b, open - 1, loops);
    if (!loops && b.choice != NO_LOCAL && t->refusals) note_refusal(t, &b, open - 1);
    if (loops) {
        w.gone = notes_gone(&b);
        translate_atomics(&w);
        translate_frame(&w);
        t->options->loops++;
    }
    body_drop(&b);
}
