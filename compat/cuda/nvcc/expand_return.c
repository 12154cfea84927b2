/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that return from within:
 *
 *     if (c) return a; rest                       if (c) { r = a; } else { rest }
 *     for (...) { if (c) return a; more } rest    for (...) { if (c) { r = a; } d = c; if (d) break; more } if (!d) { rest }
 *
 * A condition that is the same for all threads leaves `d` the same for all threads. */
#include "compat/cuda/nvcc/expander.h"

bool expand_returns(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (token_is(k, i, "return")) return true;
    return false;
}

/* The two statements of an if; the second is empty if there is none. */
struct branches {
    struct piece first, second;
};

static bool find_branches(const struct tokens *k, uint32_t i, uint32_t end, struct branches *b)
{
    uint32_t open = token_is(k, i + 1, "constexpr") ? i + 2 : i + 1, close = k->at[open].partner, then;

    if (!token_is(k, i, "if") || !token_is(k, open, "(") || close == NO_TOKEN) return false;
    then = statement_end(k, close + 1, end);
    b->first = (struct piece){close + 1, then};
    b->second = (struct piece){then < end ? then + 1 : end, end};
    return true;
}

static bool always_returns(const struct tokens *k, struct piece p)
{
    struct branches b;

    if (p.from >= p.to) return false;
    if (token_is(k, p.from, "return")) return true;
    if (find_branches(k, p.from, p.to, &b)) return always_returns(k, b.first) && always_returns(k, b.second);
    if (!token_is(k, p.from, "{")) return false;
    for (uint32_t i = p.from + 1, end; i < p.to - 1; i = end) {
        end = statement_end(k, i, p.to - 1);
        if (always_returns(k, (struct piece){i, end})) return true;
    }
    return false;
}

static bool may_return(const struct tokens *k, struct piece p)
{
    return expand_returns(k, p.from, p.to) && !always_returns(k, p);
}

void expand_find_returns(const struct expander *x, struct frame *fr)
{
    const struct tokens *k = x->k;
    uint32_t close = k->at[fr->f->body].partner;

    for (uint32_t i = fr->f->body + 1, end; i < close && !fr->notes; i++) {
        struct branches b;

        if (!token_among(k, i, " if for while do switch { ")) continue;
        end = statement_end(k, i, close);
        if (!expand_returns(k, i, end)) continue;
        if (find_branches(k, i, end, &b))
            fr->notes = may_return(k, b.first) || may_return(k, b.second);
        else
            fr->notes = !token_is(k, i, "{") || !always_returns(k, (struct piece){i, end});
    }
}

/* The statements behind one that may have returned. In loops a return has left the innermost one. */
static bool put_rest(struct expander *x, struct frame *fr, struct piece rest, bool guarded, struct text *out)
{
    bool good;

    if (guarded && fr->inside) text_print(out, " if (__kolo_d%u) break; ", fr->number);
    if (rest.from >= rest.to) return true;
    if (!guarded || fr->inside) return expand_sequence(x, fr, rest.from, rest.to, out);
    text_print(out, " if (!__kolo_d%u) { ", fr->number);
    good = expand_sequence(x, fr, rest.from, rest.to, out);
    text_put(out, " }");
    return good;
}

/* `if (c) return a;` in a loop: the condition once, so that the break is as much the same for all threads as it is. */
static bool put_way_out(struct expander *x, struct frame *fr, uint32_t i, struct piece then, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = i + 1, at = token_is(k, then.from, "{") ? then.from + 1 : then.from;
    struct text before = {0}, condition = {0};
    unsigned number = ++x->numbers;
    bool good = expand_expression(x, fr, open + 1, k->at[open].partner, true, &before, &condition);

    if (before.at) text_put(out, before.at);
    text_print(out, " const bool __kolo_c%u = (%s); if (__kolo_c%u) { ", number, condition.at ? condition.at : "",
               number);
    text_drop(&before);
    text_drop(&condition);
    good = good && expand_statement(x, fr, at, statement_end(k, at, then.to), out);
    text_print(out, " } __kolo_d%u = __kolo_c%u; if (__kolo_c%u) break; ", fr->number, number, number);
    return good;
}

static bool is_way_out(const struct tokens *k, uint32_t i, uint32_t end, const struct branches *b)
{
    uint32_t at = token_is(k, b->first.from, "{") ? b->first.from + 1 : b->first.from;

    return b->second.from == b->second.to && token_is(k, i + 1, "(") && !declares(k, i + 2, k->at[i + 1].partner) &&
           token_is(k, at, "return") && statement_end(k, at, end) + (at != b->first.from) == b->first.to;
}

/* One of the branches always returns: the rest belongs to the other one. */
static bool put_either(struct expander *x, struct frame *fr, uint32_t i, const struct branches *b, struct piece rest,
                       struct text *out)
{
    const struct tokens *k = x->k;
    bool first_leaves = always_returns(k, b->first), good;
    struct piece other = first_leaves ? b->second : b->first;
    uint32_t then;

    if (!expand_if_head(x, fr, i, out, &then)) return false;
    if (first_leaves) {
        if (!expand_inner(x, fr, b->first.from, b->first.to, out)) return false;
        if (other.from == other.to && rest.from == rest.to) return true;
        text_put(out, " else");
    }
    text_put(out, " { ");
    good = (other.from == other.to || expand_inner(x, fr, other.from, other.to, out)) &&
           (always_returns(k, other) || put_rest(x, fr, rest, expand_returns(k, other.from, other.to), out));
    text_put(out, " }");
    if (!good || first_leaves) return good;
    text_put(out, " else ");
    return expand_inner(x, fr, b->second.from, b->second.to, out);
}

bool expand_returning(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, uint32_t to, struct text *out)
{
    const struct tokens *k = x->k;
    struct piece rest = {end, to};
    struct branches b;
    bool good;

    if (token_is(k, i, "return")) { /* nothing comes behind it */
        if (!expand_statement(x, fr, i, end, out)) return false;
        if (fr->notes) text_print(out, " __kolo_d%u = 1;", fr->number);
        if (fr->inside) text_put(out, " break;");
        return true;
    }
    if (find_branches(k, i, end, &b)) {
        if (fr->inside && is_way_out(k, i, end, &b))
            return put_way_out(x, fr, i, b.first, out) && put_rest(x, fr, rest, false, out);
        if (!fr->inside && (always_returns(k, b.first) || always_returns(k, b.second)))
            return put_either(x, fr, i, &b, rest, out);
        return expand_statement(x, fr, i, end, out) && put_rest(x, fr, rest, !fr->inside, out);
    }
    if (token_is(k, i, "{"))
        return expand_statement(x, fr, i, end, out) &&
               (always_returns(k, (struct piece){i, end}) || put_rest(x, fr, rest, !fr->inside, out));
    if (!token_among(k, i, " for while do "))
        return expand_refuse(x, i, "a return in a statement of a shape that is not known");
    fr->inside++;
    good = expand_statement(x, fr, i, end, out);
    fr->inside--;
    return good && put_rest(x, fr, rest, true, out);
}
