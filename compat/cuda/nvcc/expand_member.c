/* SPDX-License-Identifier: Apache-2.0 */
/* Names in methods that are members of the object, or of the class. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

static void rename_member(const struct expander *x, struct frame *fr, uint32_t name, bool type, bool lasting)
{
    const struct tokens *k = x->k;
    const char *word = k->text + k->at[name].start;
    int bytes = (int)(k->at[name].end - k->at[name].start);

    if (expand_renamed(x, fr, name)) return; /* a parameter or a variable of the method */
    if (type || lasting || !fr->object)
        expand_rename(fr, name, must_print("%s%s::%.*s", type ? "typename " : "", fr->class, bytes, word));
    else
        expand_rename(fr, name, must_print("%s%.*s", fr->object, bytes, word));
}

/* `struct Room { ... };`, `enum { N = 4 };` from `i` on; past it. */
static uint32_t read_nested(const struct expander *x, struct frame *fr, uint32_t i, uint32_t brace, uint32_t close)
{
    const struct tokens *k = x->k;
    uint32_t end = k->at[brace].partner, word = i + 1 + token_is(k, i + 1, "class");

    if (word < brace && token_is_name(k, word)) rename_member(x, fr, word, true, true);
    for (uint32_t n = brace + 1; token_is(k, i, "enum") && n < end; n++)
        if (token_is_name(k, n) && token_among(k, n - 1, " { , ")) rename_member(x, fr, n, false, true);
    end = find_outside(k, end + 1, close, " ; ");
    return end == NO_TOKEN ? close : end + 1;
}

/* The brace of a function, past the initial values of a constructor. */
static uint32_t body_behind(const struct tokens *k, uint32_t parameters, uint32_t close)
{
    uint32_t i = k->at[parameters].partner + 1;

    if (find_outside(k, i, close, " ; { : ") != NO_TOKEN && token_is(k, find_outside(k, i, close, " ; { : "), ":"))
        for (i = find_outside(k, i, close, " : ") + 1; i < close && !token_is(k, i, "{");) {
            i = expand_behind_name(k, i);
            if (token_among(k, i, " ( { ") && k->at[i].partner != NO_TOKEN) i = k->at[i].partner + 1;
            if (!token_is(k, i, ",")) break;
            i++;
        }
    return find_outside(k, i, close, " ; { ");
}

static void read_variables(const struct expander *x, struct frame *fr, uint32_t i, uint32_t end, bool lasting)
{
    const struct tokens *k = x->k;
    uint32_t at = type_end(k, i, end);
    struct piece p;

    while (at > i && next_piece(k, &at, end, &p)) {
        while (token_among(k, p.from, " * & && const __restrict__ __restrict ")) p.from++;
        if (token_is_name(k, p.from)) rename_member(x, fr, p.from, false, lasting);
    }
}

/* The declaration at `i`; past it. */
static uint32_t read_member(const struct expander *x, struct frame *fr, uint32_t i, uint32_t close)
{
    static const char before_types[] =
        " static mutable inline __device__ __host__ __forceinline__ __inline__ explicit ";
    const struct tokens *k = x->k;
    uint32_t end, parameters, header, from = skip_template_headers(k, i, close, &header);
    bool lasting = false;

    for (; token_among(k, from, before_types); from++) lasting |= token_is(k, from, "static");
    end = find_outside(k, from, close, " ; { ");
    if (end == NO_TOKEN) return close;
    if (token_among(k, from, " struct class union enum ") && token_is(k, end, "{"))
        return read_nested(x, fr, from, end, close);
    parameters = token_among(k, from, " using typedef friend ") ? NO_TOKEN : parameters_of(k, from, end);
    if (parameters != NO_TOKEN && k->at[parameters].partner != NO_TOKEN) {
        if (token_is_name(k, parameters - 1) && !token_same(k, parameters - 1, fr->f->class) &&
            find_outside(k, from, parameters, " operator ~ ") == NO_TOKEN)
            rename_member(x, fr, parameters - 1, false, lasting);
        end = body_behind(k, parameters, close);
        if (end == NO_TOKEN) return close;
        return token_is(k, end, "{") ? k->at[end].partner + 1 : end + 1;
    }
    if (token_is(k, end, "{")) end = find_outside(k, end, close, " ; "); /* int n{4}; */
    if (end == NO_TOKEN) return close;
    if (token_is(k, from, "using"))
        rename_member(x, fr, from + 1, true, true);
    else if (token_is(k, from, "typedef"))
        rename_member(x, fr, end - 1, true, true);
    else
        read_variables(x, fr, from, end, lasting || find_outside(k, from, end, " constexpr ") != NO_TOKEN);
    return end + 1;
}

bool expand_members(struct expander *x, struct frame *fr)
{
    const struct tokens *k = x->k;
    uint32_t close = k->at[fr->f->class_open].partner;

    for (uint32_t i = fr->f->body; i < k->at[fr->f->body].partner; i++)
        if (token_is(k, i, "this") && !(token_is(k, i + 1, "->") && fr->object))
            return expand_refuse(x, i, "a method that needs its object as a whole");
    for (uint32_t i = fr->f->class_open + 1; i < close;) {
        if (token_among(k, i, " public private protected ") && token_is(k, i + 1, ":"))
            i += 2;
        else if (token_is(k, i, ";"))
            i++;
        else
            i = read_member(x, fr, i, close);
    }
    x->methods = true;
    return true;
}

/* ---- calls ---- */

bool expand_inherit(const struct expander *x, const struct frame *fr, struct frame *inner)
{
    const struct tokens *k = x->k;
    uint32_t header = inner->f->class_header, at = header + 1,
             end = header == NO_TOKEN ? NO_TOKEN : angle_end(k, header);
    struct piece p;

    if (!fr->class || fr->f->class_open != inner->f->class_open) return false;
    inner->object = fr->object ? must_print("%s", fr->object) : NULL;
    inner->class = must_print("%s", fr->class);
    while (end != NO_TOKEN && next_piece(k, &at, end, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = "), name = (assigned == NO_TOKEN ? p.to : assigned) - 1;
        const char *by = expand_renamed(x, fr, name);

        if (by) expand_rename(inner, name, must_print("%s", by));
    }
    return true;
}
