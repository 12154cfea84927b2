/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/body.h"

#include <stdlib.h>
#include <string.h>

bool body_refuse(struct body *b, uint32_t token, const char *why)
{
    if (!b->why) {
        b->wrong = token;
        b->why = why;
    }
    return false;
}

size_t body_local(const struct body *b, uint32_t i)
{
    const struct tokens *k = b->k;

    if (b->named && b->open <= i && i < b->close) return b->named[i - b->open];
    if (!token_is_name(k, i) || token_among(k, i - 1, " . -> :: ")) return NO_LOCAL;
    for (size_t l = b->local_count; l-- > 0;)
        if (b->locals[l].name <= i && i < b->locals[l].scope_end && token_same(k, b->locals[l].name, i)) return l;
    return NO_LOCAL;
}

static void add_word(const struct tokens *k, char **list, uint32_t i)
{
    char *more =
        must_print("%s%.*s ", *list ? *list : " ", (int)(k->at[i].end - k->at[i].start), k->text + k->at[i].start);

    free(*list);
    *list = more;
}

static bool in_list(const struct tokens *k, uint32_t i, const char *list)
{
    return list && token_among(k, i, list);
}

/* ---- barriers ---- */

static bool is_barrier_word(const struct tokens *k, uint32_t i)
{
    if (token_among(k, i, " __syncthreads __syncwarp ")) return true;
    return token_is(k, i, "sync") && i && token_among(k, i - 1, " :: . -> ") && token_is(k, i + 1, "(");
}

/* Operations of warps, in a kernel that was expanded for them. */
static bool has_warp_operation(const struct body *b, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; b->choice != NO_LOCAL && i < to; i++)
        if (is_warp_operation(b->k, i)) return true;
    return false;
}

/* A barrier of all threads of the block. */
static bool has_block_barrier(const struct body *b, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (is_barrier_word(b->k, i) && !(b->choice != NO_LOCAL && token_is(b->k, i, "__syncwarp"))) return true;
    return false;
}

static bool has_barrier(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (is_barrier_word(k, i)) return true;
    return false;
}

/* `__syncthreads();`, `__syncwarp();`, `block.sync();`, `cg::sync(block);` */
static bool is_barrier(const struct body *b, uint32_t i, uint32_t end)
{
    const struct tokens *k = b->k;

    if (token_among(k, i, " __syncthreads __syncwarp "))
        return token_is(k, i + 1, "(") && token_is(k, i + 2, ")") && i + 4 == end;
    if (in_list(k, i, b->handles))
        return token_is(k, i + 1, ".") && token_is(k, i + 2, "sync") && token_is(k, i + 4, ")") && i + 6 == end;
    while (token_is_name(k, i) && token_is(k, i + 1, "::")) i += 2;
    return token_is(k, i, "sync") && token_is(k, i + 1, "(") && in_list(k, i + 2, b->handles) &&
           token_is(k, i + 3, ")") && i + 5 == end;
}

/* ---- declarations ---- */

uint32_t type_end(const struct tokens *k, uint32_t i, uint32_t end)
{
    uint32_t at = i;
    bool named = false, built_in = false;

    while (at < end) {
        if (token_among(k, at, " const volatile register constexpr typename ")) {
            at++;
        } else if (!named && is_type_word(k, at)) {
            at++;
            built_in = true;
        } else if (!named && !built_in && token_is_name(k, at) &&
                   !token_among(k, at, " return if for while do switch break continue ")) {
            for (at++; token_is(k, at, "<") || token_is(k, at, "::"); at++) {
                uint32_t close = token_is(k, at, "<") ? angle_end(k, at) : at + 1;

                if (close == NO_TOKEN || close >= end) return i;
                at = close;
            }
            named = true;
        } else {
            break;
        }
    }
    return named || built_in ? at : i;
}

/* Is there a declarator at `i`: signs, a name, and one of the signs behind it? */
static bool is_declarator(const struct tokens *k, uint32_t i)
{
    while (token_among(k, i, " * & && const __restrict__ __restrict ")) i++;
    return token_is_name(k, i) && token_among(k, i + 1, " = ; , [ ( { : ");
}

bool declares(const struct tokens *k, uint32_t i, uint32_t end)
{
    uint32_t at = type_end(k, i, end);

    return at > i && is_declarator(k, at);
}

static void add_local(struct body *b, struct local l)
{
    const struct tokens *k = b->k;

    for (uint32_t i = l.declarator.from; i < l.name; i++)
        if (token_among(k, i, " & && ")) l.reference = true;
    for (uint32_t i = l.type.from; i < l.type.to; i++) {
        if (token_is(k, i, "auto")) l.deduced = true;
        if (token_is(k, i, "volatile")) l.escapes = true;
    }
    for (uint32_t i = l.name + 1; token_is(k, i, "[") && k->at[i].partner != NO_TOKEN; i = k->at[i].partner + 1)
        l.dimensions++;
    b->locals = must_grow(b->locals, (b->local_count + 1) * sizeof *b->locals);
    b->locals[b->local_count++] = l;
}

/* The variables of the declaration [from, end), which ends before its semicolon. */
static bool read_variables(struct body *b, uint32_t from, uint32_t end, size_t leaf, uint32_t scope_end)
{
    const struct tokens *k = b->k;
    struct piece type = {from, type_end(k, from, end)}, p;
    uint32_t at = type.to;

    while (next_piece(k, &at, end, &p)) {
        struct local l = {.name = p.from,
                          .scope_end = scope_end,
                          .type = type,
                          .declarator = p,
                          .initial = {p.to, p.to},
                          .leaf = leaf};
        uint32_t assigned = find_outside(k, p.from, p.to, " = ");

        while (token_among(k, l.name, " * & && const __restrict__ __restrict ")) l.name++;
        if (!token_is_name(k, l.name)) return body_refuse(b, p.from, "a declaration of a shape that is not known");
        if (assigned != NO_TOKEN)
            l.initial = (struct piece){assigned + 1, p.to};
        else if (token_among(k, l.name + 1, " ( { : "))
            l.initial = (struct piece){l.name + 1, p.to};
        l.constant = find_outside(k, type.from, type.to, " constexpr ") != NO_TOKEN;
        add_local(b, l);
    }
    return true;
}

/* `cg::thread_block block = cg::this_thread_block();` */
static bool is_handle(struct body *b, uint32_t from, uint32_t end)
{
    const struct tokens *k = b->k;
    uint32_t assigned = find_outside(k, from, end, " = "), at = assigned + 1;

    if (assigned == NO_TOKEN || !token_is_name(k, assigned - 1)) return false;
    while (token_is_name(k, at) && token_is(k, at + 1, "::")) at += 2;
    if (!token_is(k, at, "this_thread_block") || !token_is(k, at + 2, ")") || at + 4 != end) return false;
    add_word(k, &b->handles, assigned - 1);
    return true;
}

/* `enum { N = 4 };`, of numbers */
static bool is_enumeration(struct body *b, uint32_t from, uint32_t end)
{
    const struct tokens *k = b->k;
    uint32_t open = token_is_name(k, from + 1) ? from + 2 : from + 1, at = open + 1;
    struct piece p;

    if (!token_is(k, from, "enum") || !token_is(k, open, "{") || k->at[open].partner + 2 != end) return false;
    while (next_piece(k, &at, end - 2, &p))
        if (token_is_name(k, p.from)) add_word(k, &b->constants, p.from);
    if (open == from + 2) add_word(k, &b->types, from + 1);
    return true;
}

static void note_shared(struct body *b, uint32_t from, uint32_t end)
{
    const struct tokens *k = b->k;
    uint32_t at = from;
    struct piece p;

    while (next_piece(k, &at, end - 1, &p)) {
        uint32_t name = declared_name(k, p);

        if (name != NO_TOKEN) add_word(k, &b->shared, name);
    }
}

/* ---- statements ---- */

/* Does a break or continue in [from, to) belong to a loop around it? */
static bool escapes(const struct tokens *k, uint32_t from, uint32_t to, bool in_switch)
{
    for (uint32_t i = from; i < to; i++) {
        if (token_is(k, i, "continue") || (token_is(k, i, "break") && !in_switch)) return true;
        if (token_among(k, i, " for while do ")) {
            i = statement_end(k, i, to) - 1;
        } else if (token_is(k, i, "switch")) {
            uint32_t end = statement_end(k, i, to);

            if (escapes(k, i + 1, end, true)) return true;
            i = end - 1;
        }
    }
    return false;
}

/* `if (...) return;` */
static bool is_exit(const struct tokens *k, uint32_t i, uint32_t end, struct piece *condition)
{
    uint32_t at;

    if (!token_is(k, i, "if") || !token_is(k, i + 1, "(") || k->at[i + 1].partner == NO_TOKEN) return false;
    *condition = (struct piece){i + 2, k->at[i + 1].partner};
    at = condition->to + 1;
    if (token_is(k, at, "{"))
        return token_among(k, at + 1, " return break continue ") && token_is(k, at + 2, ";") && at + 4 == end;
    return token_among(k, at, " return break continue ") && token_is(k, at + 1, ";") && at + 2 == end;
}

static bool is_counting(const struct tokens *k, uint32_t i, uint32_t end)
{
    if (token_among(k, i, " ++ -- ")) return token_is_name(k, i + 1) && i + 3 == end;
    return token_is_name(k, i) && (is_assignment(k, i + 1) || (token_among(k, i + 1, " ++ -- ") && i + 3 == end));
}

static bool add_leaf(struct body *b, struct leaf l)
{
    l.group = b->group;
    b->leaves = must_grow(b->leaves, (b->leaf_count + 1) * sizeof *b->leaves);
    b->leaves[b->leaf_count++] = l;
    return true;
}

static bool read_leaf(struct body *b, struct leaf l, uint32_t scope_end)
{
    static const char unknown[] = " auto struct class union enum static extern template decltype ";
    const struct tokens *k = b->k;
    const char *why;
    uint32_t wrong;

    l.frame = true;
    if (is_enumeration(b, l.from, l.to)) {
        l.kind = LEAF_FRAME;
        return add_leaf(b, l);
    }
    if (is_handle(b, l.from, l.to) || token_is(k, l.from, ";")) {
        l.kind = token_is(k, l.from, ";") ? LEAF_FRAME : LEAF_HANDLE;
        return add_leaf(b, l);
    }
    if (find_outside(k, l.from, l.to, " __shared__ ") != NO_TOKEN) {
        note_shared(b, l.from, l.to);
        l.kind = LEAF_FRAME;
        return add_leaf(b, l);
    }
    if (token_among(k, l.from, " typedef using static_assert ")) {
        l.kind = LEAF_FRAME;
        return add_leaf(b, l);
    }
    l.frame = false;
    wrong = find_not_plain(b->functions, k, l.from, l.to, b->types, &why);
    if (declares(k, l.from, l.to)) {
        uint32_t at = type_end(k, l.from, l.to);

        while (token_among(k, at, " * & && const __restrict__ __restrict ")) at++;
        if (wrong == at && token_is(k, at + 1, "("))
            wrong = find_not_plain(b->functions, k, at + 2, l.to, b->types, &why); /* T x(1); */
        if (wrong != NO_TOKEN) return body_refuse(b, wrong, why);
        l.kind = LEAF_DECLARATION;
        if (!read_variables(b, l.from, l.to - 1, b->leaf_count, scope_end)) return false;
        return add_leaf(b, l);
    }
    if (wrong != NO_TOKEN) return body_refuse(b, wrong, why);
    if (token_among(k, l.from, unknown) || is_type_word(k, l.from) || token_is(k, l.from, "const") ||
        (token_is_name(k, l.from) && token_is(k, l.from + 1, ":")))
        return body_refuse(b, l.from, "a declaration or a label of a shape that is not known");
    if (is_exit(k, l.from, l.to, &l.condition))
        l.kind = LEAF_EXIT;
    else if (is_counting(k, l.from, l.to))
        l.kind = LEAF_ASSIGNMENT;
    if (l.kind != LEAF_EXIT && escapes(k, l.from, l.to, false))
        return body_refuse(b, l.from,
                           "break or continue of a loop with a barrier, in a branch that not all threads may take");
    return add_leaf(b, l);
}

/* ---- strides ---- */

static bool is_integer_local(const struct body *b, const struct local *v)
{
    struct piece p = v->parameter ? (struct piece){v->declarator.from, v->name} : v->type;

    for (uint32_t i = p.from; i < p.to; i++)
        if (!token_among(b->k, i, " const int unsigned long size_t uint ")) return false;
    return p.from < p.to && (v->parameter || v->declarator.from == v->name) && !v->dimensions;
}

unsigned body_count_x(const struct body *b, struct piece p, unsigned depth, bool *natural)
{
    const struct tokens *k = b->k;
    unsigned found = 0;

    if (p.from >= p.to || depth > 8) return 2;
    for (uint32_t at = p.from, end; at < p.to; at = end + 1) {
        end = find_outside(k, at, p.to, " + ");
        if (end == NO_TOKEN) end = p.to;
        if (end == at || find_outside(k, at, end, " ? , ") != NO_TOKEN) return 2;
        if (token_is(k, at, "threadIdx") && token_is(k, at + 2, "x") && at + 3 == end) {
            found++;
            continue;
        }
        if (b->group != NO_GROUP && lane_end(k, at) == end) {
            found++;
            continue;
        }
        for (uint32_t i = at; i < end; i++) {
            size_t l = body_local(b, i);

            if (k->at[i].kind == TOKEN_SIGN) {
                if (!token_among(k, i, " + - * ( ) ")) return 2;
                *natural &= !token_is(k, i, "-");
            } else if (k->at[i].kind == TOKEN_NUMBER) {
                for (uint32_t c = k->at[i].start; c < k->at[i].end; c++)
                    if (!strchr("0123456789uUlL", k->text[c])) return 2;
            } else if (token_among(k, i, " blockIdx blockDim gridDim ") && token_is(k, i + 1, ".") &&
                       token_among(k, i + 2, " x y z ")) {
                i += 2;
            } else if (l != NO_LOCAL && is_integer_local(b, &b->locals[l])) {
                *natural &= !b->locals[l].parameter;
                unsigned inner = b->locals[l].parameter ? 0 : body_count_x(b, b->locals[l].initial, depth + 1, natural);

                if (inner == 1 && at == i && at + 1 == end)
                    found++;
                else if (inner)
                    return 2;
            } else if (in_list(k, i, b->constants)) {
                *natural = false;
            } else {
                return 2;
            }
        }
    }
    return found < 2 ? found : 2;
}

static bool has_word(const struct tokens *k, uint32_t from, uint32_t to, const char *words)
{
    for (uint32_t i = from; i < to; i++)
        if (token_among(k, i, words)) return true;
    return false;
}

/* Additions to memory may come in any order, unless the kernel uses the value that they return. */
static bool has_ordered_calls(const struct body *b, uint32_t from, uint32_t to)
{
    const struct tokens *k = b->k;

    for (uint32_t i = from; i < to; i++)
        if (token_is_name(k, i) && call_polls(b->functions, k, i) && !token_among(k, i - 1, " ; { } ) ")) return true;
    return false;
}

/* `for (int i = ...; i < n; i += s)` whose body leaves neither it nor the kernel, and lets i be. */
static bool is_stride(const struct body *b, uint32_t i, uint32_t end, struct stride *s, struct local *counter)
{
    const struct tokens *k = b->k;
    uint32_t open = i + 1, close, first, second, type, name, body;

    if (b->keeps_strides || !token_is(k, i, "for") || !token_is(k, open, "(") || k->at[open].partner == NO_TOKEN)
        return false;
    close = k->at[open].partner;
    body = close + 1;
    first = find_outside(k, open + 1, close, " ; ");
    second = first == NO_TOKEN ? NO_TOKEN : find_outside(k, first + 1, close, " ; ");
    if (second == NO_TOKEN) return false;
    for (type = open + 1; token_among(k, type, " int unsigned long size_t uint "); type++) continue;
    name = type;
    if (name == open + 1 || !token_is_name(k, name) || !token_is(k, name + 1, "=") ||
        find_outside(k, name, first, " , ") != NO_TOKEN)
        return false;
    if (!token_same(k, first + 1, name) || !token_is(k, first + 2, "<") || token_among(k, first + 3, " < <= "))
        return false;
    if (!token_same(k, second + 1, name) || !token_is(k, second + 2, "+=")) return false;
    if (has_word(k, body, end, " return printf ") || escapes(k, body, end, false) || has_ordered_calls(b, body, end))
        return false;
    for (uint32_t t = body; t < end; t++)
        if (token_same(k, t, name) && (is_changed(k, t) || token_is(k, t - 1, "&"))) return false;
    *s = (struct stride){
        i, b->local_count, {name + 2, first}, {first + 3, second}, {second + 3, close}, b->leaf_count, b->group, true};
    *counter = (struct local){.name = name,
                              .scope_end = end,
                              .type = {open + 1, type},
                              .declarator = {name, first},
                              .initial = s->initial,
                              .leaf = NO_LOCAL,
                              .place = PLACE_STRIDE};
    return body_count_x(b, s->initial, 0, &s->natural) == 1;
}

static bool add_header(struct body *b, uint32_t from, uint32_t to);

static bool read_stride(struct body *b, struct stride s, struct local counter, uint32_t end)
{
    struct leaf l = {.from = b->k->at[s.from + 1].partner + 1, .to = end, .sequence = b->sequences++};
    const char *why;
    uint32_t wrong = find_not_plain(b->functions, b->k, s.from, end, b->types, &why);

    if (wrong != NO_TOKEN) return body_refuse(b, wrong, why);
    add_local(b, counter);
    b->strides = must_grow(b->strides, (b->stride_count + 1) * sizeof *b->strides);
    b->strides[b->stride_count++] = s;
    (void)add_header(b, s.bound.from, s.bound.to);
    (void)add_header(b, s.step.from, s.step.to);
    return add_leaf(b, l);
}

static bool read_statement(struct body *b, uint32_t i, uint32_t end, uint32_t sequence, uint32_t scope_end);

static bool read_sequence(struct body *b, uint32_t from, uint32_t to)
{
    uint32_t sequence = b->sequences++;

    for (uint32_t i = from, end; i < to; i = end) {
        end = statement_end(b->k, i, to);
        if (!read_statement(b, i, end, sequence, to)) return false;
    }
    return true;
}

/* The statement inside of a loop or branch of the frame. */
static bool read_inner(struct body *b, uint32_t from, uint32_t to)
{
    if (token_is(b->k, from, "{")) return read_sequence(b, from + 1, to - 1);
    b->bare = must_grow(b->bare, (b->bare_count + 1) * sizeof *b->bare);
    b->bare[b->bare_count++] = (struct piece){from, to};
    return read_sequence(b, from, to);
}

static bool add_header(struct body *b, uint32_t from, uint32_t to)
{
    b->headers = must_grow(b->headers, (b->header_count + 1) * sizeof *b->headers);
    b->headers[b->header_count++] = (struct header){from, to, b->group};
    return true;
}

static bool read_for(struct body *b, uint32_t open, uint32_t end)
{
    const struct tokens *k = b->k;
    uint32_t close = k->at[open].partner, first = find_outside(k, open + 1, close, " ; "),
             second = first == NO_TOKEN ? NO_TOKEN : find_outside(k, first + 1, close, " ; ");

    if (second == NO_TOKEN) return body_refuse(b, open, "a loop over a range, with a barrier");
    if (declares(k, open + 1, first)) {
        if (!read_variables(b, open + 1, first, NO_LOCAL, end)) return false;
    } else {
        (void)add_header(b, open + 1, first);
    }
    (void)add_header(b, first + 1, second);
    (void)add_header(b, second + 1, close);
    return read_inner(b, close + 1, end);
}

/* `auto x = operation(...);`, `operation(...);` */
static bool read_exchange(struct body *b, struct leaf l, uint32_t scope_end)
{
    const struct tokens *k = b->k;
    uint32_t at = l.from, wrong, close;
    const char *why;
    struct local v = {.name = l.from + 1,
                      .scope_end = scope_end,
                      .type = {l.from, l.from + 1},
                      .declarator = {l.from + 1, l.to - 1},
                      .initial = {l.to - 1, l.to - 1},
                      .leaf = b->leaf_count};

    l.frame = true;
    if (token_is(k, at, "__syncwarp")) {
        l.kind = LEAF_BARRIER;
        if (k->at[at + 1].partner != at + 2 && !(at + 5 == l.to && token_among(k, at + 2, " 0xffffffff 0xffffffffu ")))
            return body_refuse(b, at, "a barrier of some lanes only");
        return add_leaf(b, l);
    }
    if (!token_is(k, at, "auto") || !token_is(k, at + 2, "=") || !is_warp_operation(k, at + 3))
        return body_refuse(b, at, "an operation of a warp within an expression");
    close = k->at[at + 4].partner;
    if (close + 2 != l.to) return body_refuse(b, at, "an operation of a warp within an expression");
    wrong = find_not_plain(b->functions, k, at + 5, close, b->types, &why);
    if (wrong != NO_TOKEN) return body_refuse(b, wrong, why);
    l.kind = LEAF_EXCHANGE;
    add_local(b, v);
    return add_leaf(b, l);
}

/* A statement with operations of warps, and without barriers of the block. */
static bool read_group(struct body *b, uint32_t i, uint32_t end, uint32_t sequence, uint32_t scope_end)
{
    bool good;

    b->groups = must_grow(b->groups, (b->group_count + 1) * sizeof *b->groups);
    b->groups[b->group_count] = (struct group){i, end, sequence};
    b->group = b->group_count++;
    good = read_statement(b, i, end, sequence, scope_end);
    b->group = NO_GROUP;
    return good;
}

/* `__kolo_d2 = 1;`: a function has returned (expand.h). Statements behind it that all threads need ask for it. */
static bool has_note(const struct body *b, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to && !b->keeps_notes; i++)
        if (token_is(b->k, i + 1, "=") && token_is_name(b->k, i) && b->k->at[i].end - b->k->at[i].start > 8 &&
            !memcmp(b->k->text + b->k->at[i].start, "__kolo_d", 8))
            return true;
    return false;
}

static bool read_statement(struct body *b, uint32_t i, uint32_t end, uint32_t sequence, uint32_t scope_end)
{
    const struct tokens *k = b->k;
    uint32_t open = token_is(k, i + 1, "constexpr") ? i + 2 : i + 1, close, then;
    struct leaf l = {.from = i, .to = end, .sequence = sequence};
    struct stride stride;
    struct local counter;

    const bool warps = has_warp_operation(b, i, end);

    if (token_is(k, i, "__kolo_or_fibres")) {
        l.kind = LEAF_CHOICE;
        l.frame = true;
        return add_leaf(b, l);
    }
    if (!has_barrier(k, i, end) && !warps && !(token_among(k, i, " { if for while do ") && has_note(b, i, end))) {
        if (is_stride(b, i, end, &stride, &counter)) return read_stride(b, stride, counter, end);
        return read_leaf(b, l, scope_end);
    }
    b->barriers |= has_barrier(k, i, end) || warps;
    if (warps && b->group == NO_GROUP && !has_block_barrier(b, i, end))
        return read_group(b, i, end, sequence, scope_end);
    if (warps && b->group != NO_GROUP && !token_among(k, i, " { do if for while "))
        return read_exchange(b, l, scope_end);
    if (b->group == NO_GROUP && is_barrier(b, i, end)) {
        l.kind = LEAF_BARRIER;
        l.frame = true;
        return add_leaf(b, l);
    }
    if (token_is(k, i, "{")) return read_sequence(b, i + 1, end - 1);
    if (token_is(k, i, "do")) {
        then = statement_end(k, i + 1, end);
        if (has_barrier(k, then, end) || has_warp_operation(b, then, end))
            return body_refuse(b, then, "a barrier in an expression");
        if (!token_is(k, then, "while") || !token_is(k, then + 1, "("))
            return body_refuse(b, then, "a do without a while");
        (void)add_header(b, then + 2, k->at[then + 1].partner);
        return read_inner(b, i + 1, then);
    }
    close = token_is(k, open, "(") ? k->at[open].partner : NO_TOKEN;
    if (!token_among(k, i, " if for while ") || close == NO_TOKEN || has_barrier(k, open, close) ||
        has_warp_operation(b, open, close))
        return body_refuse(b, i, "a barrier within an expression or a statement of a shape that is not known");
    if (token_is(k, i, "for")) return read_for(b, open, end);
    (void)add_header(b, open + 1, close);
    if (token_is(k, i, "while")) return read_inner(b, close + 1, end);
    then = statement_end(k, close + 1, end);
    if (!read_inner(b, close + 1, then)) return false;
    return then == end || read_inner(b, then + 1, end);
}

static void read_header(struct body *b, uint32_t header)
{
    const struct tokens *k = b->k;
    uint32_t close = header == NO_TOKEN ? NO_TOKEN : angle_end(k, header), at = header + 1;
    struct piece p;

    while (close != NO_TOKEN && next_piece(k, &at, close, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = "), last = (assigned == NO_TOKEN ? p.to : assigned) - 1;

        if (!token_is_name(k, last)) continue;
        add_word(k, token_among(k, p.from, " typename class ") ? &b->types : &b->constants, last);
    }
}

/* Other functions rely on it. */
static bool is_closed(const struct body *b, uint32_t i)
{
    const uint32_t partner = b->k->at[i].partner;

    return !token_among(b->k, i, " ( ) [ ] { } ") || (partner != NO_TOKEN && partner >= b->open && partner <= b->close);
}

bool body_read(struct body *b, uint32_t header, uint32_t parameters)
{
    const struct tokens *k = b->k;
    uint32_t at = parameters + 1, close = k->at[parameters].partner;
    struct piece p;

    uint32_t first = b->open + 1;

    b->choice = b->group = NO_LOCAL;
    b->close = k->at[b->open].partner;
    if (b->close == NO_TOKEN || close == NO_TOKEN) return body_refuse(b, b->open, "braces without a partner");
    for (uint32_t i = b->open; i < b->close; i++)
        if (!is_closed(b, i)) return body_refuse(b, i, "a bracket without a partner");
    read_header(b, header);
    while (next_piece(k, &at, close, &p)) {
        struct local l = {.name = declared_name(k, p),
                          .scope_end = b->close,
                          .type = {p.from, p.from},
                          .declarator = p,
                          .initial = {p.to, p.to},
                          .leaf = NO_LOCAL,
                          .parameter = true};

        if (l.name != NO_TOKEN) add_local(b, l);
    }
    if (token_is(k, first, "__kolo_or_fibres")) {
        b->choice = 0;
        first = statement_end(k, first, b->close);
        if (!read_statement(b, b->open + 1, first, b->sequences++, b->close)) return false;
        if (!has_block_barrier(b, first, b->close) &&
            has_warp_operation(b, first, b->close)) { /* all of it is one group */
            b->groups = must_have(sizeof *b->groups);
            b->groups[b->group_count++] = (struct group){first, b->close, b->sequences};
            b->group = 0;
            b->barriers = true;
        }
    }
    return read_sequence(b, first, b->close);
}

void body_drop(struct body *b)
{
    free(b->leaves);
    free(b->headers);
    free(b->bare);
    free(b->strides);
    free(b->locals);
    free(b->named);
    free(b->regions);
    free(b->groups);
    free(b->pointers);
    free(b->segments);
    free(b->shared);
    free(b->types);
    free(b->constants);
    free(b->handles);
}
