/* SPDX-License-Identifier: Apache-2.0 */
/* A conversion from a real number to an integer saturates on devices; on CPUs it depends on the processor. In device code
 * `(int)x`, `int(x)` and `int i = x` become __kolo::cast<int>(x); so do casts to a template's parameter,
 * which may be an integer. If the end of the operand is not plain the cast stays. */
#include "compat/cuda/nvcc/translation.h"

#include <stdlib.h>
#include <string.h>

static const char integers[] =
    " int unsigned signed long short char int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t "
    "ssize_t ptrdiff_t uint ushort uchar ulong ";

/* Are all tokens of [from, to) words of one integer type? */
static bool is_integer(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (!token_among(k, i, integers)) return false;
    return from < to;
}

static bool is_any_type(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (!token_among(k, i, integers) && !token_among(k, i, " float double bool const * ")) return false;
    return from < to;
}

/* ---- parameters of templates ---- */

void note_type_parameters(struct translation *t, uint32_t from, uint32_t to, uint32_t depth)
{
    const struct tokens *k = &t->source.tokens;

    for (uint32_t i = from; i + 1 < to; i++) {
        if (!token_among(k, i, " typename class ") || !token_is_name(k, i + 1) || !token_among(k, i + 2, " , > = "))
            continue;
        t->type_parameters = must_grow(t->type_parameters, (t->type_parameter_count + 1) * sizeof *t->type_parameters);
        t->type_parameters[t->type_parameter_count++] = (struct type_parameter){i + 1, depth};
    }
}

void forget_type_parameters(struct translation *t)
{
    while (t->type_parameter_count && t->type_parameters[t->type_parameter_count - 1].depth > t->depth)
        t->type_parameter_count--;
}

static bool same_word(const struct tokens *k, uint32_t a, uint32_t b)
{
    uint32_t n = k->at[a].end - k->at[a].start;

    return k->at[b].end - k->at[b].start == n && !memcmp(k->text + k->at[a].start, k->text + k->at[b].start, n);
}

static bool is_type_parameter(const struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;

    for (size_t p = 0; p < t->type_parameter_count && token_is_name(k, i); p++)
        if (same_word(k, t->type_parameters[p].name, i)) return true;
    return false;
}

/* The cast to the type of [from, to); NULL: it does not saturate. */
static const char *cast_to(const struct translation *t, uint32_t from, uint32_t to)
{
    if (is_integer(&t->source.tokens, from, to)) return "__kolo::cast";
    return to == from + 1 && is_type_parameter(t, from) ? "__kolo::cast_to" : NULL;
}

/* ---- casts ---- */

/* Template arguments behind a name, of names and numbers only: anything else may be two comparisons. */
static uint32_t skip_arguments(const struct tokens *k, uint32_t i)
{
    uint32_t end = arguments_end(k, i, k->count);

    if (end == NO_TOKEN || !token_is(k, end + 1, "(")) return i;
    for (uint32_t n = i; n <= end; n++)
        if (!token_is_name(k, n) && k->at[n].kind != TOKEN_NUMBER && !token_among(k, n, " < > :: , * & ")) return i;
    return end + 1;
}

/* Past the operand of a cast that begins at `i`; NO_TOKEN: it is of a shape that this does not know. */
static uint32_t operand_end(const struct tokens *k, uint32_t i)
{
    while (token_among(k, i, " - + ! ~ * & ++ -- ") ||
           (token_is(k, i, "(") && k->at[i].partner != NO_TOKEN && is_any_type(k, i + 1, k->at[i].partner)))
        i = token_is(k, i, "(") ? k->at[i].partner + 1 : i + 1;
    if (token_is(k, i, "(")) {
        if (k->at[i].partner == NO_TOKEN) return NO_TOKEN;
        i = k->at[i].partner + 1;
    } else if (i < k->count && (k->at[i].kind == TOKEN_NUMBER || k->at[i].kind == TOKEN_CHARACTER)) {
        i++;
    } else {
        if (token_is(k, i, "::")) i++;
        if (!token_is_name(k, i) || token_among(k, i, " sizeof alignof new delete throw co_await typename asm "))
            return NO_TOKEN;
        for (i = skip_arguments(k, i + 1); token_is(k, i, "::") && token_is_name(k, i + 1);)
            i = skip_arguments(k, i + 2);
    }
    for (;;) {
        if (token_among(k, i, " ( [ ") && k->at[i].partner != NO_TOKEN)
            i = k->at[i].partner + 1;
        else if (token_among(k, i, " . -> ") && token_is_name(k, i + 1))
            i += 2;
        else if (token_among(k, i, " ++ -- "))
            i++;
        else
            return token_among(k, i, " { ") ? NO_TOKEN : i;
    }
}

/* A parenthesis behind these begins an expression. */
static bool begins_expression(const struct tokens *k, uint32_t open)
{
    if (!open || k->at[open - 1].kind != TOKEN_SIGN) return token_among(k, open - 1, " return case else ");
    return !token_among(k, open - 1, " ) ] } ");
}

void translate_cast(struct translation *t, uint32_t open)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t close = k->at[open].partner, end;
    char *text;
    const char *cast = close == NO_TOKEN ? NULL : cast_to(t, open + 1, close);
    bool behind_cast = open && token_is(k, open - 1, ")") && t->source.edits[open - 1].instead;

    if (!cast || !(behind_cast || begins_expression(k, open))) return;
    end = operand_end(k, close + 1);
    if (end == NO_TOKEN || end == close + 1) return;
    text = must_print("%s<", cast);
    source_replace(&t->source, open, text);
    free(text);
    source_replace(&t->source, close, ">(");
    source_after(&t->source, end - 1, ")");
}

/* Is there a call in the operand? Its result may be void, which no function takes. */
static bool may_be_void(const struct tokens *k, uint32_t open)
{
    return k->at[open].partner != NO_TOKEN && find_outside(k, open + 1, k->at[open].partner, " ( ") != NO_TOKEN;
}

void translate_static_cast(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t end = token_is(k, i + 1, "<") ? angle_end(k, i + 1) : NO_TOKEN;
    const char *cast = end == NO_TOKEN ? NULL : cast_to(t, i + 2, end);

    if (!cast) return;
    source_replace(&t->source, i, cast);
    if (is_integer(k, i + 2, end) || !token_is(k, end + 1, "(") || !may_be_void(k, end + 1)) return;
    source_after(&t->source, end + 1, "(");
    source_before(&t->source, k->at[end + 1].partner, ", __kolo::nothing())");
}

/* `int(x)`, not a declaration or the type of a function. */
static bool translate_functional_cast(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t open = i + 1, close = k->at[open].partner;
    const char *cast = cast_to(t, i, i + 1);
    char *text;

    if (!cast || close == NO_TOKEN || close == open + 1 || is_any_type(k, open + 1, close)) return false;
    if (!i || !(token_is(k, i - 1, "return") ||
                (k->at[i - 1].kind == TOKEN_SIGN && !token_among(k, i - 1, " ; { } ) ] < :: . -> ~ "))))
        return false;
    if (token_among(k, open + 1, " { * & ") || find_outside(k, open + 1, close, " , ... ") != NO_TOKEN) return false;
    if (token_is(k, i - 1, ">") && !token_among(k, close + 1, " ; ) , + - * / % & | ^ && || ? : ")) return false;
    text = must_print("%s<%.*s>", cast, (int)(k->at[i].end - k->at[i].start), k->text + k->at[i].start);
    source_replace(&t->source, i, text);
    free(text);
    return true;
}

/* A point, or the sign of an exponent; a hexadecimal digit like it does no harm. */
static bool has_fraction(const struct tokens *k, uint32_t i)
{
    for (size_t at = k->at[i].start; at < k->at[i].end; at++)
        if (k->text[at] == '.' || k->text[at] == 'e' || k->text[at] == 'E') return true;
    return false;
}

/* Are these only numbers without a fraction and places in the grid? They need no conversion. */
static bool is_whole(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        bool number = k->at[i].kind == TOKEN_NUMBER && !has_fraction(k, i),
             place = token_among(k, i, " threadIdx blockIdx blockDim gridDim ") && token_is(k, i + 1, ".");

        if (place)
            i += 2; /* .x */
        else if (!number && k->at[i].kind != TOKEN_CHARACTER && !token_among(k, i, " warpSize + - * / % ( ) & | ^ "))
            return false;
    }
    return true;
}

/* `int i = x, j = y` where a statement begins. */
static void translate_initialisers(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t name = i, at, end;
    struct text type = {0};
    struct piece p;

    while (token_among(k, name, integers)) {
        text_print(&type, "%s%.*s", type.at ? " " : "", (int)(k->at[name].end - k->at[name].start),
                   k->text + k->at[name].start);
        name++;
    }
    end = token_is_name(k, name) && token_is(k, name + 1, "=") ? find_outside(k, name, k->count, " ; ) ") : NO_TOKEN;
    for (at = name; end != NO_TOKEN && next_piece(k, &at, end, &p);) {
        char *cast;

        if (!token_is_name(k, p.from) || !token_is(k, p.from + 1, "=") || p.to < p.from + 3 ||
            token_is(k, p.from + 2, "{") || is_whole(k, p.from + 2, p.to))
            continue;
        cast = must_print("__kolo::cast<%s>(", type.at);
        source_before(&t->source, p.from + 2, cast);
        source_after(&t->source, p.to - 1, ")");
        free(cast);
    }
    text_drop(&type);
}

bool translate_type(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;

    if (token_is(k, i + 1, "(")) return translate_functional_cast(t, i);
    if (!token_among(k, i, integers) || !i) return false;
    if (token_among(k, i - 1, " ; { } ( ) : ") ||
        (token_is(k, i - 1, "const") && i > 1 && token_among(k, i - 2, " ; { } ( ) : ")))
        translate_initialisers(t, i);
    return true;
}
