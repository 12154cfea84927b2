/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables are the same in all threads, and where they live. It begins with the assumption that all are uniform, and drops those that
 * are not until none is left to drop: values of the frame come from values of the frame only. */
#include "compat/cuda/nvcc/body.h"

#include <stdlib.h>
#include <string.h>

static void note_names(struct body *b)
{
    size_t *named = must_have((size_t)(b->close - b->open) * sizeof *named);

    for (uint32_t i = b->open; i < b->close; i++) named[i - b->open] = body_local(b, i);
    b->named = named;
}

static size_t leaf_of(const struct body *b, uint32_t i)
{
    size_t low = 0, high = b->leaf_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (b->leaves[middle].to <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low < b->leaf_count && b->leaves[low].from <= i ? low : NO_LOCAL;
}

/* The region of a token, NO_LOCAL: the frame. */
static size_t region_of(const struct body *b, uint32_t token)
{
    size_t leaf = leaf_of(b, token);

    for (size_t r = 0; leaf != NO_LOCAL && r < b->region_count; r++)
        if (b->regions[r].first <= leaf && leaf <= b->regions[r].last) return r;
    return NO_LOCAL;
}

/* ---- expressions ---- */

static bool in_words(const struct tokens *k, uint32_t i, const char *words)
{
    return words && token_among(k, i, words);
}

static bool has_name(const struct names *n, const struct tokens *k, uint32_t i)
{
    return names_find(n, k->text + k->at[i].start, k->at[i].end - k->at[i].start) != NO_NAME;
}

/* A word that means the same to all threads, and is no variable. */
static bool is_constant_word(const struct body *b, uint32_t i)
{
    const struct tokens *k = b->k;

    if (is_pure_function(k, i)) return !has_name(&b->functions->names, k, i); /* unless it is one of this source */
    return token_among(k, i, " warpSize true false nullptr sizeof const unsigned static_cast reinterpret_cast ") ||
           is_type_word(k, i) || in_words(k, i, b->types) || in_words(k, i, b->constants) ||
           (has_name(&b->functions->constants, k, i) && !has_name(&b->t->aliases, k, i));
}

static bool is_index(const struct tokens *k, uint32_t i, const char *words)
{
    return token_among(k, i, words) && token_is(k, i + 1, ".") && token_among(k, i + 2, " x y z ");
}

/* Does the sign at `i` change the variable of the frame before it, or behind it? */
static bool changes_local(const struct body *b, uint32_t i)
{
    if (is_assignment(b->k, i)) return body_local(b, i - 1) != NO_LOCAL;
    return body_local(b, i - 1) != NO_LOCAL || body_local(b, i + 1) != NO_LOCAL;
}

/* ---- warps ---- */

/* The group of a token, NO_GROUP: it is in none. */
static size_t group_at(const struct body *b, uint32_t token)
{
    for (size_t g = 0; g < b->group_count; g++)
        if (b->groups[g].from <= token && token < b->groups[g].to) return g;
    return NO_GROUP;
}

static bool is_number_of(const struct tokens *k, uint32_t i, unsigned multiple)
{
    char *end;
    unsigned long value;

    if (token_is(k, i, "warpSize")) return true;
    if (i >= k->count || k->at[i].kind != TOKEN_NUMBER) return false;
    value = strtoul(k->text + k->at[i].start, &end, 0);
    while (*end == 'u' || *end == 'U' || *end == 'l' || *end == 'L') end++;
    return end == k->text + k->at[i].end && value % multiple == 0;
}

/* `a * blockDim.x`, without other operators. */
static bool is_whole_warps(const struct body *b, uint32_t from, uint32_t to)
{
    const struct tokens *k = b->k;
    bool whole = false;

    for (uint32_t i = from; i < to; i += 2) {
        if (token_among(k, i, " blockIdx blockDim gridDim ") && token_is(k, i + 1, ".")) {
            whole |= token_is(k, i, "blockDim") && token_is(k, i + 2, "x");
            i += 2;
        } else if (is_number_of(k, i, 32) && i + 1 <= to) {
            whole = true;
        } else if (body_local(b, i) != NO_LOCAL) {
            if (!b->locals[body_local(b, i)].alike) return false;
        } else if (k->at[i].kind != TOKEN_NUMBER) {
            return false;
        }
        if (i + 1 < to && !token_is(k, i + 1, "*")) return false;
    }
    return whole;
}

/* A sum of the thread's x and whole warps. */
static bool is_sum_of_x(const struct body *b, uint32_t from, uint32_t to, unsigned depth);

/* Past such a sum that is one operand: the index, a variable, a group in parentheses; 0: it is none. */
static uint32_t operand_of_x(const struct body *b, uint32_t i, unsigned depth)
{
    const struct tokens *k = b->k;
    size_t l;

    if (token_is(k, i, "threadIdx")) return token_is(k, i + 1, ".") && token_is(k, i + 2, "x") ? i + 3 : 0;
    if (token_is(k, i, "(") && k->at[i].partner != NO_TOKEN && !token_is_name(k, i - 1) &&
        !token_among(k, i - 1, " > ) ] "))
        return is_sum_of_x(b, i + 1, k->at[i].partner, depth) ? k->at[i].partner + 1 : 0;
    l = body_local(b, i);
    if (l == NO_LOCAL || b->locals[l].parameter || b->locals[l].changed || b->locals[l].escapes ||
        b->locals[l].reference || b->locals[l].dimensions || b->locals[l].initial.from == b->locals[l].initial.to ||
        !token_is(k, b->locals[l].initial.from - 1, "="))
        return 0;
    for (uint32_t n = b->locals[l].type.from; n < b->locals[l].type.to; n++)
        if (!token_among(k, n, " const unsigned int long size_t uint ")) return 0;
    return is_sum_of_x(b, b->locals[l].initial.from, b->locals[l].initial.to, depth) ? i + 1 : 0;
}

static bool is_sum_of_x(const struct body *b, uint32_t from, uint32_t to, unsigned depth)
{
    unsigned found = 0;

    if (depth > 4) return false;
    for (uint32_t at = from, end; at < to; at = end + 1) {
        end = find_outside(b->k, at, to, " + ");
        if (end == NO_TOKEN) end = to;
        if (operand_of_x(b, at, depth + 1) == end)
            found++;
        else if (!is_whole_warps(b, at, end))
            return false;
    }
    return found == 1;
}

/* `threadIdx.x / 32`, `tid >> 5`, `tid < 64` at `i`, the same in all threads of a warp: past it, else 0. */
static uint32_t alike_end(const struct body *b, uint32_t i)
{
    const struct tokens *k = b->k;
    uint32_t end = i ? operand_of_x(b, i, 0) : 0;
    bool first = token_among(k, i - 1, before_lane);

    if (!end) return 0;
    if (token_is(k, end, "/") && token_is_32(k, end + 1) && (first || token_among(k, i - 1, " + - < > == != <= >= ")))
        return end + 2;
    if (!first) return 0;
    if (token_is(k, end, ">") && token_touches(k, end) && token_is(k, end + 1, ">") && token_is(k, end + 2, "5") &&
        (token_among(k, end + 3, behind_lane) || token_among(k, end + 3, " < > == != <= >= ")))
        return end + 3;
    if (token_among(k, end, " < >= ") && is_number_of(k, end + 1, 32) && token_among(k, end + 2, behind_lane))
        return end + 2;
    return 0;
}

bool body_uniform(const struct body *b, uint32_t from, uint32_t to, bool assigns, enum reach reach)
{
    const struct tokens *k = b->k;
    const char *why;

    if (find_not_plain(b->functions, k, from, to, b->types, &why) != NO_TOKEN) return false;
    for (uint32_t i = from; i < to; i++) {
        if (k->at[i].kind == TOKEN_STRING) return false;
        if (k->at[i].kind == TOKEN_SIGN) {
            uint32_t alike = reach == OF_WARP && token_is(k, i, "(") ? alike_end(b, i) : 0;

            if (alike && alike <= to) {
                i = alike - 1;
                continue;
            }
            if (token_among(k, i, " { } ; ... # ")) return false;
            if ((is_assignment(k, i) || token_among(k, i, " ++ -- ")) && !(assigns && changes_local(b, i)))
                return false;
            continue;
        }
        if (!token_is_name(k, i)) continue;
        size_t l = body_local(b, i);
        uint32_t alike = reach == OF_WARP ? alike_end(b, i) : 0;

        if (alike && alike <= to) {
            i = alike - 1;
            continue;
        }
        if (l != NO_LOCAL) {
            if (reach == OF_WARP ? !b->locals[l].alike : !b->locals[l].uniform) return false;
        } else if (reach == OF_WARP && token_is(k, i, "threadIdx") && token_is(k, i + 1, ".") &&
                   token_among(k, i + 2, " y z ")) {
            i += 2;
        } else if (is_index(k, i, " blockIdx blockDim gridDim ")) {
            i += 2;
        } else if (token_among(k, i - 1, " . -> ")) {
            if (token_is(k, i + 1, "(")) return false;
        } else if (!is_constant_word(b, i) && !in_words(k, i, b->shared) && !has_name(&b->t->aliases, k, i)) {
            return false; /* aliases: variables of the device, which all threads read */
        }
    }
    return from < to;
}

/* `*` behind a cast reads memory, as it does where an operand begins. */
static bool reads_memory(const struct body *b, uint32_t i)
{
    const struct tokens *k = b->k;

    if (token_among(k, i, " [ -> ")) return true;
    if (!token_is(k, i, "*") || token_among(k, i + 1, " ) > ")) return false;
    if (token_is(k, i - 1, ")")) {
        uint32_t group = k->at[i - 1].partner;

        if (group == NO_TOKEN) return true;
        for (uint32_t n = group + 1; n < i - 1; n++)
            if (!is_type_word(k, n) && !in_words(k, n, b->types) && !token_among(k, n, " const * ")) return false;
        return true;
    }
    return k->at[i - 1].kind == TOKEN_SIGN ? !token_is(k, i - 1, "]") : token_is(k, i - 1, "return");
}

/* The result of an operation is there until the end of its segment only, unless all of the kernel is one. */
static bool is_lasting(const struct body *b, size_t l)
{
    const struct local *v = &b->locals[l];

    return v->uniform || v->leaf == NO_LOCAL || b->leaves[v->leaf].kind != LEAF_EXCHANGE ||
           b->groups[b->leaves[v->leaf].group].to == b->close;
}

/* Does the expression only compute, from numbers, the thread's index, and variables that can be computed? */
static bool is_computable(const struct body *b, uint32_t from, uint32_t to)
{
    const struct tokens *k = b->k;

    for (uint32_t i = from; i < to; i++) {
        if (k->at[i].kind == TOKEN_STRING || reads_memory(b, i)) return false;
        if (k->at[i].kind == TOKEN_SIGN) {
            if (token_among(k, i, " { } ; ++ -- ") || is_assignment(k, i)) return false;
            continue;
        }
        if (!token_is_name(k, i)) continue;
        size_t l = body_local(b, i);

        if (l != NO_LOCAL) {
            const struct local *v = &b->locals[l];

            if (!v->computable && !(v->alike && !v->changed && v->place == PLACE_FRAME && is_lasting(b, l)))
                return false;
        } else if (is_index(k, i, " threadIdx blockIdx blockDim gridDim ")) {
            i += 2;
        } else if (!is_constant_word(b, i)) {
            return false;
        }
    }
    return from < to;
}

/* ---- changes ---- */

/* The function that the argument at `i` is passed to as it is, NO_TOKEN: none. */
static uint32_t passed_to(const struct tokens *k, uint32_t i)
{
    uint32_t at = i - 1;

    if (!token_among(k, i - 1, " ( , ") || !token_among(k, member_end(k, i), " ) , ")) return NO_TOKEN;
    while (at && !token_among(k, at, " ( [ { ; "))
        at = token_among(k, at, " ) ] } ") && k->at[at].partner != NO_TOKEN ? k->at[at].partner - 1 : at - 1;
    if (!token_is(k, at, "(") || !at) return NO_TOKEN;
    return token_is_name(k, at - 1) ? at - 1 : NO_TOKEN;
}

/* An array that is used otherwise than element by element. */
static bool decays(const struct tokens *k, uint32_t i, unsigned dimensions)
{
    uint32_t at = i + 1;

    for (unsigned d = 0; d < dimensions; d++) {
        if (!token_is(k, at, "[") || k->at[at].partner == NO_TOKEN) return true;
        at = k->at[at].partner + 1;
    }
    return false;
}

/* `p.out[i] = x`, of a parameter: the memory that a member points to; the compiler checks that it is a pointer. */
static bool is_pointed_to(struct body *b, uint32_t i)
{
    const struct tokens *k = b->k;
    uint32_t end = member_end(k, i);

    if (end == i + 1 || !token_is(k, end, "[") || k->at[end].partner == NO_TOKEN) return false;
    b->pointers = must_grow(b->pointers, (b->pointer_count + 1) * sizeof *b->pointers);
    b->pointers[b->pointer_count++] = (struct piece){i, end};
    return true;
}

/* `p.get()`, if all methods of that name are const. */
static bool is_only_asked(const struct body *b, uint32_t i)
{
    uint32_t end = member_end(b->k, i);

    return end > i + 1 && token_is(b->k, end, "(") && !token_is(b->k, i - 1, "&") &&
           methods_are_constant(b->functions, b->k, end - 1);
}

static void note_changes(struct body *b)
{
    const struct tokens *k = b->k;

    for (uint32_t i = b->open + 1; i < b->close; i++) {
        size_t l = body_local(b, i);
        struct local *v = l == NO_LOCAL ? NULL : &b->locals[l];
        uint32_t callee;
        bool changes;

        if (!v || i == v->name) continue;
        if (v->dimensions && !v->parameter && decays(k, i, v->dimensions)) v->escapes = true;
        changes = is_changed(k, i) && !is_only_asked(b, i) && !(v->parameter && is_pointed_to(b, i));
        if (changes) v->changed = true;
        if (token_is(k, i - 1, "&") && (changes || (v->dimensions && !v->parameter))) v->escapes = true;
        if (token_is(k, i - 1, "=") && token_is_name(k, i - 2) && token_among(k, i - 3, " & && "))
            v->changed = v->escapes = true;
        callee = passed_to(k, i);
        if (callee != NO_TOKEN && call_refers(b->functions, k, callee)) v->changed = v->escapes = true;
    }
}

/* ---- the same in all threads ---- */

/* The variable that an assignment of the frame would change. */
static size_t target(const struct body *b, const struct leaf *l)
{
    return l->kind == LEAF_ASSIGNMENT ? body_local(b, token_among(b->k, l->from, " ++ -- ") ? l->from + 1 : l->from)
                                      : NO_LOCAL;
}

/* The change at token `i` of variable `l` happens in the frame, to the same value in all threads. */
static bool changes_alike(const struct body *b, uint32_t i, size_t l, enum reach reach)
{
    size_t leaf = leaf_of(b, i);

    if (group_at(b, i) != group_at(b, b->locals[l].name)) return false; /* each warp would do it once more */
    if (leaf == NO_LOCAL) return true; /* in a header, which must be uniform altogether */
    return target(b, &b->leaves[leaf]) == l &&
           body_uniform(b, b->leaves[leaf].from, b->leaves[leaf].to - 1, true, reach);
}

static bool is_result(const struct body *b, size_t l)
{
    return b->locals[l].leaf != NO_LOCAL && b->leaves[b->locals[l].leaf].kind == LEAF_EXCHANGE;
}

struct exchange exchange_of(const struct body *b, const struct leaf *l)
{
    const struct tokens *k = b->k;
    struct exchange e = {.result = l->from + 1, .operation = l->from + 3};
    uint32_t at = l->from + 5, close = k->at[l->from + 4].partner;

    if (!next_piece(k, &at, close, &e.mask) || !next_piece(k, &at, close, &e.value)) e.value = (struct piece){0, 0};
    if (e.value.from < e.value.to && next_piece(k, &at, close, &e.other)) (void)next_piece(k, &at, close, &e.width);
    e.alike = e.mask.from == e.mask.to || body_uniform(b, e.mask.from, e.mask.to, false, OF_WARP);
    if (token_is(k, e.operation, "__shfl_sync"))
        e.alike &= e.width.from == e.width.to && e.other.from < e.other.to &&
                   body_uniform(b, e.other.from, e.other.to, false, OF_WARP);
    else if (token_among(k, e.operation, " __shfl_up_sync __shfl_down_sync __shfl_xor_sync __match_any_sync "))
        e.alike = false;
    return e;
}

static bool stays_uniform(const struct body *b, size_t l, enum reach reach)
{
    const struct local *v = &b->locals[l];

    if (is_result(b, l)) return reach == OF_WARP && exchange_of(b, &b->leaves[v->leaf]).alike;
    if (v->place == PLACE_STRIDE || v->escapes || v->reference || (v->dimensions && !v->parameter)) return false;
    if (v->constant) return true;
    if (v->initial.from < v->initial.to && !body_uniform(b, v->initial.from, v->initial.to, false, reach)) return false;
    if (!v->changed) return true;
    for (uint32_t i = v->name + 1; i < v->scope_end; i++)
        if (body_local(b, i) == l && is_changed(b->k, i) && !changes_alike(b, i, l, reach)) return false;
    return true;
}

static void find_uniform(struct body *b)
{
    for (size_t l = 0; l < b->local_count; l++) b->locals[l].uniform = b->locals[l].alike = true;
    for (bool again = true; again;) {
        again = false;
        for (size_t l = 0; l < b->local_count; l++) {
            struct local *v = &b->locals[l];

            if (v->uniform && !stays_uniform(b, l, OF_BLOCK)) {
                v->uniform = false;
                again = true;
            }
            if (v->alike && b->group_count && !v->uniform && !stays_uniform(b, l, OF_WARP)) {
                v->alike = false;
                again = true;
            }
        }
    }
    for (size_t l = 0; l < b->local_count && !b->group_count; l++) b->locals[l].alike = b->locals[l].uniform;
}

/* The whole body is one group: a thread that returns leaves nothing behind. */
static bool is_whole(const struct body *b, size_t group)
{
    return group != NO_GROUP && b->groups[group].to == b->close;
}

static enum reach reach_of(size_t group)
{
    return group == NO_GROUP ? OF_BLOCK : OF_WARP;
}

static bool check_exits(struct body *b)
{
    for (size_t i = 0; i < b->leaf_count; i++) {
        struct leaf *l = &b->leaves[i];
        bool leaves_loop, returns;

        if (l->kind != LEAF_EXIT) continue;
        leaves_loop = find_outside(b->k, l->condition.to + 1, l->to, " break continue ") != NO_TOKEN ||
                      (token_is(b->k, l->condition.to + 1, "{") && !token_is(b->k, l->condition.to + 2, "return"));
        returns = !leaves_loop;
        l->frame = body_uniform(b, l->condition.from, l->condition.to, false, reach_of(l->group)) &&
                   !(returns && l->group != NO_GROUP && !is_whole(b, l->group));
        if (l->frame) continue;
        if (leaves_loop)
            return body_refuse(b, l->from,
                               "break or continue of a loop with a barrier, in a branch that not all threads may take");
        l->kind = LEAF_CODE;
    }
    return true;
}

static bool check_frame(struct body *b)
{
    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];

        if (v->parameter && !v->uniform) return body_refuse(b, v->name, "a parameter that threads change");
        if (v->leaf == NO_LOCAL && v->place != PLACE_STRIDE &&
            !(group_at(b, v->name) == NO_GROUP ? v->uniform : v->alike))
            return body_refuse(b, v->name, "the counter of a loop around a barrier may differ between threads");
    }
    for (size_t h = 0; h < b->header_count; h++)
        if (b->headers[h].from < b->headers[h].to &&
            !body_uniform(b, b->headers[h].from, b->headers[h].to, true, reach_of(b->headers[h].group)))
            return body_refuse(b, b->headers[h].from, "a condition around a barrier that may differ between threads");
    for (size_t i = 0; i < b->leaf_count; i++) {
        struct exchange e;

        if (b->leaves[i].kind != LEAF_EXCHANGE) continue;
        e = exchange_of(b, &b->leaves[i]);
        if (e.width.from < e.width.to && !body_uniform(b, e.width.from, e.width.to, false, OF_WARP))
            return body_refuse(b, e.width.from, "an operation of parts of a warp that may differ");
    }
    return check_exits(b);
}

/* ---- places ---- */

/* The variables of an expression of the frame are the frame's. True: some were not yet. */
static bool draw_in(struct body *b, uint32_t from, uint32_t to)
{
    bool more = false;

    for (uint32_t i = from; i < to; i++) {
        size_t l = body_local(b, i);

        if (l == NO_LOCAL || b->locals[l].place == PLACE_FRAME) continue;
        if (!b->locals[l].uniform && (group_at(b, b->locals[l].name) == NO_GROUP || !b->locals[l].alike))
            continue; /* each warp computes it */
        b->locals[l].place = PLACE_FRAME;
        more = true;
    }
    return more;
}

static bool is_alike_piece(const struct body *b, struct piece p)
{
    return p.from < p.to && body_uniform(b, p.from, p.to, false, OF_WARP);
}

static void draw_in_exchange(struct body *b, const struct leaf *l)
{
    struct exchange e = exchange_of(b, l);
    const struct piece pieces[] = {e.mask, e.other, e.width};

    for (unsigned i = 0; i < 3; i++)
        if (is_alike_piece(b, pieces[i])) (void)draw_in(b, pieces[i].from, pieces[i].to);
}

/* One for all is less than one for each: of those that change, and those that come from memory. */
static bool is_better_alike(const struct body *b, const struct local *v)
{
    if (v->place == PLACE_STRIDE) return false;
    if (group_at(b, v->name) != NO_GROUP) return v->alike;
    if (!v->uniform) return false;
    for (uint32_t i = v->initial.from; i < v->initial.to; i++)
        if (token_among(b->k, i, " [ -> ")) return true;
    return v->changed;
}

static void find_frame(struct body *b)
{
    bool again = true;

    for (size_t l = 0; l < b->local_count; l++)
        if (b->locals[l].place != PLACE_STRIDE &&
            (b->locals[l].leaf == NO_LOCAL || b->locals[l].constant || is_better_alike(b, &b->locals[l])))
            b->locals[l].place = PLACE_FRAME;
    for (size_t h = 0; h < b->header_count; h++) (void)draw_in(b, b->headers[h].from, b->headers[h].to);
    for (size_t i = 0; i < b->leaf_count; i++)
        if (b->leaves[i].kind == LEAF_EXIT) (void)draw_in(b, b->leaves[i].condition.from, b->leaves[i].condition.to);
    for (size_t i = 0; i < b->leaf_count; i++)
        if (b->leaves[i].kind == LEAF_EXCHANGE) draw_in_exchange(b, &b->leaves[i]);
    while (again) {
        again = false;
        for (size_t l = 0; l < b->local_count; l++)
            if (b->locals[l].place == PLACE_FRAME)
                again |= draw_in(b, b->locals[l].initial.from, b->locals[l].initial.to);
        for (size_t i = 0; i < b->leaf_count; i++) {
            size_t l = target(b, &b->leaves[i]);

            if (l == NO_LOCAL || b->locals[l].place != PLACE_FRAME) continue;
            b->leaves[i].frame = true;
            again |= draw_in(b, b->leaves[i].from, b->leaves[i].to);
        }
    }
}

static void place_declarations(struct body *b)
{
    for (size_t i = 0; i < b->leaf_count; i++) {
        size_t all = 0, frame = 0;

        if (b->leaves[i].kind != LEAF_DECLARATION) continue;
        for (size_t l = 0; l < b->local_count; l++) {
            if (b->locals[l].leaf != i) continue;
            all++;
            frame += b->locals[l].place == PLACE_FRAME;
        }
        b->leaves[i].mixed = frame && frame < all;
        b->leaves[i].frame = frame && frame == all;
    }
}

/* ---- places of variables ---- */

static void find_computable(struct body *b)
{
    for (size_t l = 0; l < b->local_count; l++) {
        struct local *v = &b->locals[l];

        v->computable = v->place != PLACE_FRAME && v->place != PLACE_STRIDE && !v->changed && !v->escapes &&
                        !v->reference && !v->dimensions && v->initial.from < v->initial.to &&
                        token_is(b->k, v->initial.from - 1, "=") && is_computable(b, v->initial.from, v->initial.to);
    }
}

/* Is the variable used outside the region of its declaration? */
static bool crosses(const struct body *b, size_t l)
{
    const struct local *v = &b->locals[l];
    size_t home = region_of(b, v->name);

    for (uint32_t i = v->name + 1; i < v->scope_end; i++)
        if (body_local(b, i) == l && region_of(b, i) != home) return true;
    return false;
}

/* Is the first use of the variable in the region from leaf `first` on an assignment that all threads make? */
static bool begins_anew(const struct body *b, size_t l, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++) {
        const struct leaf *leaf = &b->leaves[i];

        for (uint32_t t = leaf->from; t < leaf->to; t++) {
            if (body_local(b, t) != l) continue;
            if (t != leaf->from || leaf->kind != LEAF_ASSIGNMENT || !token_is(b->k, t + 1, "=")) return false;
            for (t++; t < leaf->to; t++)
                if (body_local(b, t) == l) return false;
            return true;
        }
    }
    return true;
}

static bool is_renewed(const struct body *b, size_t l)
{
    const struct local *v = &b->locals[l];

    if (v->dimensions || v->reference || v->deduced || v->escapes) return false;
    for (size_t i = 0; i < b->leaf_count; i++)
        for (uint32_t t = b->leaves[i].from; b->leaves[i].kind == LEAF_EXCHANGE && t < b->leaves[i].to; t++)
            if (body_local(b, t) == l) return false;
    for (size_t r = 0; r < b->region_count; r++)
        if (!(b->regions[r].first <= v->leaf && v->leaf <= b->regions[r].last) &&
            !begins_anew(b, l, b->regions[r].first, b->regions[r].last))
            return false;
    return true;
}

static bool place_locals(struct body *b)
{
    bool pointers = false;

    for (size_t l = 0; l < b->local_count; l++) {
        struct local *v = &b->locals[l];

        if (v->place == PLACE_FRAME || v->place == PLACE_STRIDE) continue;
        if (is_result(b, l)) {
            v->place = PLACE_KEPT;
            continue;
        }
        if (!crosses(b, l)) continue;
        v->place = v->computable ? PLACE_COMPUTED : PLACE_KEPT;
        if (v->computable) continue;
        if (is_renewed(b, l)) {
            v->place = PLACE_RENEWED;
            continue;
        }
        if (v->reference || v->deduced || v->escapes)
            return body_refuse(b, v->name,
                               v->escapes ? "a variable that is needed behind a barrier, and whose address may be taken"
                                          : "a variable that is needed behind a barrier, and has no type of its own");
        pointers |= body_may_point(b, v);
    }
    for (size_t l = 0; l < b->local_count && pointers; l++)
        if (b->locals[l].escapes && b->locals[l].place != PLACE_FRAME)
            return body_refuse(b, b->locals[l].name,
                               "the address of a variable, which a pointer may keep beyond a barrier");
    return true;
}

/* The first counter of thread 0, and the bound of all, are computed in the frame. */
static bool check_strides(struct body *b)
{
    for (size_t s = 0; s < b->stride_count; s++) {
        const struct stride *v = &b->strides[s];

        for (uint32_t i = v->initial.from; i < v->step.to; i++)
            if (token_among(b->k, i, " [ -> { ") || (token_is(b->k, i, "*") && b->k->at[i - 1].kind == TOKEN_SIGN))
                return body_refuse(b, i, "a stride over memory that depends on memory");
        if (!is_computable(b, v->initial.from, v->initial.to))
            return body_refuse(b, v->initial.from, "a stride that begins somewhere else");
    }
    return true;
}

static bool check_results(struct body *b)
{
    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];

        if (!is_result(b, l)) continue;
        for (uint32_t i = v->name + 1; i < v->scope_end; i++)
            if (body_local(b, i) == l && body_segment(b, i) != body_segment(b, v->name))
                return body_refuse(b, i, "the result of an operation of a warp that is needed behind a barrier");
    }
    return true;
}

bool body_headable(const struct body *b, size_t l, size_t segment)
{
    const struct local *v = &b->locals[l];

    if (!v->computable || v->place == PLACE_FRAME) return false;
    for (uint32_t i = v->initial.from; i < v->initial.to; i++) {
        size_t other = body_local(b, i);

        if (other == NO_LOCAL || b->locals[other].parameter || body_headable(b, other, segment)) continue;
        if (b->locals[other].place != PLACE_FRAME || body_segment(b, b->locals[other].name) == segment) return false;
    }
    return true;
}

/* Statements that each warp executes once find the variables of the frame, and the variables that the segment computes. */
static bool check_warps(struct body *b)
{
    for (uint32_t i = b->open; i < b->close; i++) {
        size_t l = body_local(b, i), leaf;

        if (l == NO_LOCAL || i == b->locals[l].name || group_at(b, i) == NO_GROUP) continue;
        if (b->locals[l].place == PLACE_FRAME || b->locals[l].place == PLACE_STRIDE || b->locals[l].computable)
            continue;
        leaf = leaf_of(b, i);
        if (leaf != NO_LOCAL && (!b->leaves[leaf].frame || b->leaves[leaf].kind == LEAF_EXCHANGE)) {
            struct exchange e;

            if (b->leaves[leaf].kind != LEAF_EXCHANGE) continue;
            e = exchange_of(b, &b->leaves[leaf]);
            if (e.value.from <= i && i < e.value.to) continue;
            if (!b->locals[l].alike) continue; /* of each lane */
        }
        return body_refuse(b, i, "a variable of each thread, where warps need one for all");
    }
    return true;
}

bool body_classify(struct body *b)
{
    if (!b->barriers) return body_refuse(b, b->open, "no barrier");
    if (b->functions->unclear)
        return body_refuse(b, b->open, "an operator or a constructor of this source waits, or asks for its thread");
    note_names(b);
    note_changes(b);
    find_uniform(b);
    if (!check_frame(b)) return false;
    find_frame(b);
    place_declarations(b);
    body_find_segments(b);
    body_find_regions(b);
    find_computable(b);
    return check_strides(b) && place_locals(b) && check_results(b) && check_warps(b);
}
