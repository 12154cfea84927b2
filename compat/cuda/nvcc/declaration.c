/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translation.h"

static bool opens(const struct tokens *t, uint32_t i)
{
    return token_among(t, i, " ( [ { ") && t->at[i].partner != NO_TOKEN;
}

/* ---- variables, which have no template arguments ---- */

bool is_declared_by_type(const struct tokens *t, uint32_t i)
{
    uint32_t before = i - 1;

    if (!token_is_name(t, i) || !i || !token_among(t, i + 1, " = ; , [ ( { : ) ")) return false;
    while (before && token_among(t, before, " * & && const __restrict__ __restrict ")) before--;
    if (before + 1 < i && token_is_name(t, before) && before && !token_among(t, before - 1, " ; { } ( , const < > ") &&
        !token_is_name(t, before - 1))
        return false; /* a product */
    return (token_is_name(t, before) &&
            !token_among(t, before, " return else case goto new delete sizeof do typename ")) ||
           token_is(t, before, ">");
}

/* The parenthesis of the parameters of the function whose code the token is in, NO_TOKEN: it is in none. */
static uint32_t function_of(const struct tokens *t, uint32_t i)
{
    uint32_t found = NO_TOKEN;

    for (uint32_t brace = t->at[i].around; brace != NO_TOKEN; brace = t->at[brace].around) {
        uint32_t last = brace - 1;

        if (!token_is(t, brace, "{") || !brace) continue;
        while (token_among(t, last, " const noexcept override final mutable ")) last--;
        if (token_is(t, last, ")") && t->at[last].partner != NO_TOKEN &&
            !token_is(t, t->at[last].partner - 1, "__attribute__")) /* of a namespace */
            found = t->at[last].partner;
    }
    return found;
}

/* Does the function around declare the name before token `i` as a variable? */
static bool is_variable_before(const struct tokens *t, uint32_t i)
{
    const uint32_t name = i - 1, from = function_of(t, i);

    if (token_among(t, name - 1, " . -> :: ")) return false;
    for (uint32_t n = from; from != NO_TOKEN && n < name; n++)
        if (token_same(t, n, name) &&
            (is_declared_by_type(t, n) || (token_is(t, n - 1, ",") && token_among(t, n + 1, " = ; , [ { "))))
            return true;
    return false;
}

uint32_t arguments_end(const struct tokens *t, uint32_t i, uint32_t end)
{
    uint32_t close = token_is(t, i, "<") && i && token_is_name(t, i - 1) ? angle_end(t, i) : NO_TOKEN, next = close + 1;

    if (close == NO_TOKEN || close >= end) return NO_TOKEN;
    if (next < end && token_is(t, next, ">") && token_touches(t, close)) return NO_TOKEN;                /* a >> b */
    if (next < end && t->at[next].kind != TOKEN_NAME && t->at[next].kind != TOKEN_SIGN) return NO_TOKEN; /* a > 1 */
    if (token_among(t, next, " ! ~ ") || is_variable_before(t, i)) return NO_TOKEN;
    return close;
}

/* ---- lists ---- */

/* Past a bracketed group, or past template arguments behind a name. */
static uint32_t step(const struct tokens *t, uint32_t i, uint32_t end)
{
    uint32_t close;

    if (opens(t, i)) return t->at[i].partner + 1;
    close = arguments_end(t, i, end);
    return close == NO_TOKEN ? i + 1 : close + 1;
}

bool next_piece(const struct tokens *t, uint32_t *at, uint32_t end, struct piece *piece)
{
    uint32_t i = *at;

    if (i >= end) return false;
    while (i < end && !token_is(t, i, ",")) i = step(t, i, end);
    if (i > end) i = end;
    *piece = (struct piece){*at, i};
    *at = i + 1;
    return true;
}

uint32_t find_outside(const struct tokens *t, uint32_t from, uint32_t to, const char *words)
{
    for (uint32_t i = from; i < to; i = opens(t, i) ? t->at[i].partner + 1 : i + 1)
        if (token_among(t, i, words)) return i;
    return NO_TOKEN;
}

uint32_t skip_template_headers(const struct tokens *t, uint32_t from, uint32_t to, uint32_t *header)
{
    *header = NO_TOKEN;
    while (from < to && token_is(t, from, "template") && token_is(t, from + 1, "<")) {
        uint32_t close = angle_end(t, from + 1);

        if (close == NO_TOKEN || close >= to) return from;
        *header = from + 1;
        from = close + 1;
    }
    return from;
}

/* Words with parentheses that are no function. */
static const char attributes[] =
    " __attribute__ __attribute __launch_bounds__ __align__ alignas __maxnreg__ __cluster_dims__ __block_size__ "
    "decltype noexcept requires __declspec explicit throw ";

uint32_t parameters_of(const struct tokens *t, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i = step(t, i, to)) {
        if (token_is(t, i, "=")) return NO_TOKEN;
        if (token_among(t, i, attributes) && token_is(t, i + 1, "(")) {
            if (!opens(t, i + 1)) return NO_TOKEN;
            i = t->at[i + 1].partner;
        } else if (token_is(t, i, "operator")) {
            while (i + 1 < to && !token_is(t, i + 1, "(")) i++;
            if (token_is(t, i + 1, "(") && token_is(t, i + 2, ")") && token_is(t, i + 3, "(")) i += 2;
        } else if (token_is(t, i, "(")) {
            if (token_among(t, i + 1, " * & && ^ ")) return NO_TOKEN;
            return i;
        }
    }
    return NO_TOKEN;
}

uint32_t declared_name(const struct tokens *t, struct piece p)
{
    uint32_t end = find_outside(t, p.from, p.to, " = { [ "), group;

    if (end == NO_TOKEN) end = p.to;
    group = find_outside(t, p.from, end, " ( ");
    if (group != NO_TOKEN && token_among(t, group + 1, " * & ") && t->at[group].partner != NO_TOKEN)
        end = t->at[group].partner;
    while (end > p.from && token_is(t, end - 1, "]") && t->at[end - 1].partner != NO_TOKEN)
        end = t->at[end - 1].partner;
    return end > p.from && token_is_name(t, end - 1) ? end - 1 : NO_TOKEN;
}
