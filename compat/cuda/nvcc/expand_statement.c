/* SPDX-License-Identifier: Apache-2.0 */
/* Statements, with their calls before them. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 200000 };

/* Write the call at `i` before the statement, and its result in place of it; *close becomes its last token. */
static bool put_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t *close, struct text *before,
                     struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = i + 1;
    char *word;
    bool good;

    if (expand_is_tile_call(x, i)) {
        *close = k->at[i + 3].partner;
        return expand_tile_call(x, fr, i, before, out);
    }
    if (expand_method(x, i) != NO_TOKEN) return expand_method_call(x, fr, i, close, before, out);
    if (token_is(k, open, "<")) open = angle_end(k, open) + 1;
    *close = k->at[open].partner;
    if (expand_is_tile_reduction(x, i)) return expand_tile_reduction(x, fr, i, before, out);
    if (!is_warp_operation(k, i)) return expand_function_call(x, fr, i, open, before, out);
    word = source_word(&x->source, i);
    if (token_is(k, i, "__syncwarp")) {
        text_put(out, "__syncwarp(");
        good = expand_arguments(x, fr, open, before, out);
        text_put(out, ")");
    } else {
        good = expand_operation(x, fr, word, "", open, before, out);
    }
    free(word);
    return good;
}

/* ---- statements ---- */

/* Past `cg::` in front of an operation on a tile. */
static uint32_t behind_namespaces(const struct expander *x, uint32_t i)
{
    uint32_t at = i;

    while (token_is_name(x->k, at) && token_is(x->k, at + 1, "::")) at += 2;
    return expand_is_tile_reduction(x, at) ? at : i;
}

static bool expression(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, bool flat, struct text *before,
                       struct text *out)
{
    const struct tokens *k = x->k;
    bool sure = true; /* all threads that execute the statement come here */

    x->words += to - from;
    if (x->words > WORDS) return expand_refuse(x, from, "functions that are too long to stand in the kernel");
    for (uint32_t i = from; i < to; i++) {
        uint32_t close, first = i;
        const char *by;

        if (token_among(k, i, " && || ? { ")) sure = false;
        if (token_is(k, i, "this") && token_is(k, i + 1, "->") && fr->object) { /* of a method */
            text_put(out, fr->object);
            i++;
            continue;
        }
        i = behind_namespaces(x, i); /* without cg:: */
        if (expand_is_call(x, i)) {
            if (!sure) return expand_refuse(x, i, "in a part of an expression that not all threads may evaluate");
            if (i && token_is(k, i - 1, "::") && !expand_is_tile_reduction(x, i))
                return expand_refuse(x, i, "a name of a namespace");
            if (!put_call(x, fr, i, &close, before, out)) return false;
            if (!flat) expand_lines(x, fr, first, close, out);
            i = close;
            expand_gap(x, fr, i, flat, out);
            continue;
        }
        if (expand_is_tile(x, i)) return expand_refuse(x, i, "a tile that is used otherwise");
        by = expand_renamed(x, fr, i);
        if (by)
            text_put(out, by);
        else
            expand_word(x, i, out);
        expand_gap(x, fr, i, flat, out);
    }
    return true;
}

static bool inner(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    bool good;

    text_put(out, "{ ");
    good = expand_sequence(x, fr, from, to, out);
    text_put(out, " }");
    return good;
}

static bool put_declaration(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    uint32_t type = type_end(x->k, from, to), at = type;
    struct piece p;
    bool first = true;

    while (next_piece(x->k, &at, to - 1, &p)) {
        struct text before = {0}, rest = {0};
        bool good = expand_expression(x, fr, from, type, !first, &before, &rest) &&
                    expand_expression(x, fr, p.from, p.to, false, &before, &rest);

        if (!good) {
            text_drop(&before);
            text_drop(&rest);
            return false;
        }
        if (before.at) text_put(out, before.at);
        text_put(out, rest.at);
        text_put(out, ";");
        expand_gap(x, fr, p.to, false, out); /* of the comma, or the semicolon */
        text_drop(&before);
        text_drop(&rest);
        first = false;
    }
    return true;
}

/* Is there nothing but the end of a statement? */
static bool is_empty(const char *text)
{
    return text[strspn(text, " \t\n;")] == 0;
}

static bool put_simple(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    const struct tokens *k = x->k;
    struct text before = {0}, rest = {0};
    bool good, result = fr->caller && token_is(k, from, "return");

    if (result && from + 2 == to) return true; /* return; */
    if (result) text_print(&rest, "__kolo_r%u = ", fr->number);
    if (result && !fr->returns) return expand_refuse(x, from, "a function whose type is not clear");
    good = expand_expression(x, fr, from + result, to, false, &before, &rest);
    if (before.at) text_put(out, before.at);
    for (const char *c = rest.at; c && is_empty(rest.at) && *c; c++)
        if (*c == ';') rest.at[c - rest.at] = ' ';
    if (rest.at) text_put(out, rest.at);
    text_drop(&before);
    text_drop(&rest);
    return good;
}

static bool is_tile_declaration(const struct expander *x, uint32_t from, uint32_t to)
{
    return find_outside(x->k, from, to, " tiled_partition ") != NO_TOKEN;
}

/* `cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);` */
static bool read_tile(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    uint32_t assigned = find_outside(x->k, from, to, " = "), word = find_outside(x->k, from, to, " tiled_partition ");

    if (assigned == NO_TOKEN || !token_is_name(x->k, assigned - 1) || word < assigned ||
        !token_is(x->k, word + 1, "<") || !token_is(x->k, word + 2, "32") || !token_is(x->k, word + 3, ">") ||
        !token_is(x->k, word + 4, "("))
        return expand_refuse(x, word, "a tile that is not a warp");
    expand_add_tile(x, assigned - 1);
    expand_lines(x, fr, from, to - 1, out);
    expand_gap(x, fr, to - 1, false, out);
    return true;
}

static bool if_head(struct expander *x, struct frame *fr, uint32_t i, struct text *out, uint32_t *then)
{
    const struct tokens *k = x->k;
    uint32_t open = token_is(k, i + 1, "constexpr") ? i + 2 : i + 1, close = k->at[open].partner;
    struct text before = {0}, head = {0};
    bool good;

    if (!token_is(k, open, "(") || close == NO_TOKEN)
        return expand_refuse(x, i, "a statement of a shape that is not known");
    *then = close + 1;
    good = expand_expression(x, fr, i, open + 1, false, &before, &head) &&
           expand_expression(x, fr, open + 1, close, false, &before, &head) &&
           expand_expression(x, fr, close, close + 1, false, &before, &head);
    if (before.at) text_put(out, before.at);
    if (head.at) text_put(out, head.at);
    text_drop(&before);
    text_drop(&head);
    return good;
}

static bool put_if(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    uint32_t first, then;

    if (!expand_if_head(x, fr, i, out, &first)) return false;
    then = statement_end(x->k, first, end);
    if (!expand_inner(x, fr, first, then, out)) return false;
    if (then == end) return true;
    text_put(out, " else");
    expand_gap(x, fr, then, false, out);
    text_put(out, " ");
    return expand_inner(x, fr, then + 1, end, out);
}

static bool put_loop(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = i + 1, close = token_is(k, open, "(") ? k->at[open].partner : NO_TOKEN;
    struct text none = {0};

    if (close == NO_TOKEN) return expand_refuse(x, i, "a statement of a shape that is not known");
    for (uint32_t n = open; n < close; n++)
        if (expand_is_call(x, n) && !expand_is_tile_call(x, n))
            return expand_refuse(x, n, "in the condition of a loop");
    if (!expand_expression(x, fr, i, close + 1, false, &none, out)) return false;
    if (none.at) {
        text_drop(&none);
        return expand_refuse(x, open, "in the condition of a loop");
    }
    return expand_inner(x, fr, close + 1, end, out);
}

static bool put_do(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    uint32_t then = statement_end(x->k, i + 1, end);
    struct text none = {0};

    if (expand_has_calls(x, then, end)) return expand_refuse(x, then, "in the condition of a loop");
    return expand_expression(x, fr, i, i + 1, false, &none, out) && expand_inner(x, fr, i + 1, then, out) &&
           expand_expression(x, fr, then, end, false, &none, out);
}

static bool statement(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    const struct tokens *k = x->k;
    bool calls = expand_has_calls(x, i, end) || (fr->caller && !token_is(k, i, "return") && expand_returns(k, i, end));

    if (token_is(k, i, "{")) {
        text_put(out, "{");
        expand_gap(x, fr, i, false, out);
        if (!expand_sequence(x, fr, i + 1, end - 1, out)) return false;
        text_put(out, "}");
        expand_gap(x, fr, end - 1, false, out);
        return true;
    }
    if (calls && token_is(k, i, "if")) return put_if(x, fr, i, end, out);
    if (calls && token_among(k, i, " for while ")) return put_loop(x, fr, i, end, out);
    if (calls && token_is(k, i, "do")) return put_do(x, fr, i, end, out);
    if (calls && (token_among(k, i, " switch case default ") || token_is(k, i + 1, ":")))
        return expand_refuse(x, i, "a statement of a shape that is not known");
    if (calls && is_tile_declaration(x, i, end)) return read_tile(x, fr, i, end, out);
    if (calls && declares(k, i, end)) return put_declaration(x, fr, i, end, out);
    return put_simple(x, fr, i, end, out);
}

static bool sequence(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    for (uint32_t i = from, end; i < to; i = end) {
        end = statement_end(x->k, i, to);
        if (fr->caller && expand_returns(x->k, i, end)) return expand_returning(x, fr, i, end, to, out);
        if (!expand_statement(x, fr, i, end, out)) return false;
    }
    return true;
}

const struct expand_statements expand_statements = {
    .expression = expression, .sequence = sequence, .statement = statement, .inner = inner, .if_head = if_head};
