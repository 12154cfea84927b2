/* SPDX-License-Identifier: Apache-2.0 */
/* On devices a cast from a real number to an integer saturates, and gives 0 for what is no number; on CPUs it does what the processor
 * does. In device code `(int)x` becomes __kolo::cast<int>(x). Where the end of what is cast is not plain the cast stays as it is. */
#include "compat/cuda/nvcc/translate.h"

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

/* Template arguments behind a name, of names and numbers only: anything else may be two comparisons. */
static uint32_t skip_arguments(const struct tokens *k, uint32_t i)
{
    uint32_t end = token_is(k, i, "<") ? angle_end(k, i) : NO_TOKEN;

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

    bool behind_cast = open && token_is(k, open - 1, ")") && t->source.edits[open - 1].instead;

    if (close == NO_TOKEN || !is_integer(k, open + 1, close) || !(behind_cast || begins_expression(k, open))) return;
    end = operand_end(k, close + 1);
    if (end == NO_TOKEN || end == close + 1) return;
    source_replace(&t->source, open, "__kolo::cast<");
    source_replace(&t->source, close, ">(");
    source_after(&t->source, end - 1, ")");
}

void translate_static_cast(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t end = token_is(k, i + 1, "<") ? angle_end(k, i + 1) : NO_TOKEN;

    if (end != NO_TOKEN && is_integer(k, i + 2, end)) source_replace(&t->source, i, "__kolo::cast");
}
