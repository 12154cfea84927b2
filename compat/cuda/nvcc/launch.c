/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translation.h"

static const char no_callees[] = " return if while for switch case else do sizeof throw co_return co_await ";

/* Where the postfix expression begins that ends with token `last`; NO_TOKEN: it is of no shape that can be called. */
static uint32_t callee_start(const struct tokens *k, uint32_t last)
{
    uint32_t i = last;

    for (;;) {
        if (i == NO_TOKEN) return NO_TOKEN;
        if (token_is(k, i, ">")) {
            i = angle_begin(k, i);
            if (i == NO_TOKEN || !i || !token_is_name(k, --i)) return NO_TOKEN;
        }
        if (token_among(k, i, " ) ] ")) {
            bool round = token_is(k, i, ")");

            i = k->at[i].partner;
            if (i == NO_TOKEN) return NO_TOKEN;
            if (i &&
                (token_among(k, i - 1, " ) ] > ") || (token_is_name(k, i - 1) && !token_among(k, i - 1, no_callees)))) {
                i--;
                continue;
            }
            return round ? i : NO_TOKEN;
        }
        if (!token_is_name(k, i) || token_among(k, i, no_callees)) return NO_TOKEN;
        if (i && token_is(k, i - 1, "template")) i--;
        if (i && token_is(k, i - 1, "::")) {
            if (i >= 2 &&
                (token_is(k, i - 2, ">") || (token_is_name(k, i - 2) && !token_among(k, i - 2, no_callees)))) {
                i -= 2;
                continue;
            }
            return i - 1;
        }
        if (i >= 2 && token_among(k, i - 1, " . -> ")) {
            i -= 2;
            continue;
        }
        return i;
    }
}

static bool closes(const struct tokens *k, uint32_t i)
{
    return token_is(k, i, ">") && token_touches(k, i) && token_is(k, i + 1, ">") && token_touches(k, i + 1) &&
           token_is(k, i + 2, ">") && token_is(k, i + 3, "(");
}

/* The first of the three `>` that end the configuration. */
static uint32_t configuration_end(const struct tokens *k, uint32_t i)
{
    for (; i < k->count && !token_among(k, i, " ; ) ] } "); i++) {
        if (closes(k, i)) return i;
        if (token_among(k, i, " ( [ { ")) {
            if (k->at[i].partner == NO_TOKEN) return NO_TOKEN;
            i = k->at[i].partner;
        }
    }
    return NO_TOKEN;
}

uint32_t translate_launch(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t start = i ? callee_start(k, i - 1) : NO_TOKEN, end = configuration_end(k, i + 3), close;

    if (start == NO_TOKEN) {
        source_error(&t->source, i,
                     "the operand before <<<...>>> must be a kernel's name, or an expression in parentheses");
        return i + 2;
    }
    if (source_has_moved(&t->source, start)) {
        source_error(&t->source, i, "a launch has no result that could be launched again");
        return i + 2;
    }
    if (end == NO_TOKEN) {
        source_error(&t->source, i, "no >>> followed by ( ends the configuration of this launch");
        return i + 2;
    }
    close = k->at[end + 3].partner;
    if (close == NO_TOKEN) {
        source_error(&t->source, end + 3, "the arguments of this launch have no end");
        return end + 3;
    }
    if (end == i + 3) {
        source_error(&t->source, i,
                     "a launch needs at least the extents of its grid and its blocks: <<<grid, block>>>");
        return end + 3;
    }
    source_drop_range(&t->source, i, i + 3);
    source_drop_range(&t->source, end, end + 3);
    source_move(&t->source, start, "(__kolo::push(", i + 3, end, ") ? (void)0 : ");
    source_after(&t->source, close, ")");
    return i + 2; /* configuration and arguments are walked over as anything else */
}
