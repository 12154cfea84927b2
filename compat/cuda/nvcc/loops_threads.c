/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a row for which a condition holds, as the bounds of a loop. */
#include "compat/cuda/nvcc/loops.h"

#include <string.h>

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
        loops_range(w, (struct piece){at + 1, p.to}, out);
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
bool loops_narrow(struct loops *w, const struct region *r, struct text *out)
{
    const struct body *b = w->b;
    const struct tokens *k = b->k;
    const struct leaf *l = &b->leaves[r->last];
    uint32_t at, close;
    struct piece p;

    for (size_t i = 0; i < b->local_count; i++)
        if (loops_is_home(r, &b->locals[i]) && b->locals[i].place != PLACE_FRAME && !b->locals[i].computable)
            return false;
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
