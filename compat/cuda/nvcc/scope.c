/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translation.h"

bool in_code(const struct translation *t)
{
    return t->depth && t->scopes[t->depth - 1].kind == SCOPE_CODE;
}

bool in_device_code(const struct translation *t)
{
    return in_code(t) && t->scopes[t->depth - 1].device;
}

bool in_device_code_only(const struct translation *t)
{
    return in_device_code(t) && !t->scopes[t->depth - 1].host;
}

/* ---- kinds of braces ---- */

/* Does the declaration [from, brace) name a class or an enumeration that the brace defines? */
static bool defines_type(const struct tokens *t, uint32_t from, uint32_t brace)
{
    uint32_t i = find_outside(t, from, brace, " class struct union enum ");

    if (i == NO_TOKEN) return false;
    for (i++; i < brace; i++) {
        if (token_is(t, i, ":")) return true;
        if (token_among(t, i, " __align__ alignas __attribute__ __builtin_align__ ") && token_is(t, i + 1, "(") &&
            t->at[i + 1].partner != NO_TOKEN) {
            i = t->at[i + 1].partner;
        } else if (token_is(t, i, "[") && t->at[i].partner != NO_TOKEN) {
            i = t->at[i].partner;
        } else if (token_is(t, i, "<")) {
            uint32_t close = angle_end(t, i);

            if (close == NO_TOKEN) return false;
            i = close;
        } else if (!token_is_name(t, i) && !token_is(t, i, "::")) {
            return false;
        } else if (token_is_name(t, i) && i + 1 < brace && token_is_name(t, i + 1) &&
                   !token_among(t, i + 1, " final ") && !token_among(t, i, " class struct __align__ ")) {
            if (token_is(t, i + 1, "operator")) return false;
        }
    }
    return true;
}

/* `a{1}` among the initialisers of a constructor, before its body. */
static bool is_member_initialiser(const struct tokens *t, uint32_t from, uint32_t brace)
{
    if (!brace || !(token_is_name(t, brace - 1) || token_is(t, brace - 1, ">"))) return false;
    for (uint32_t i = find_outside(t, from, brace, " : "); i != NO_TOKEN; i = find_outside(t, i + 1, brace, " : "))
        if (i && token_is(t, i - 1, ")")) return true;
    return false;
}

struct scope scope_opened_by(const struct translation *t, uint32_t brace)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t header, from = skip_template_headers(k, t->statement, brace, &header);
    bool device = find_outside(k, from, brace, " __global__ __device__ ") != NO_TOKEN,
         host = find_outside(k, from, brace, " __host__ ") != NO_TOKEN;
    struct scope code = {SCOPE_CODE, device, host, NO_TOKEN}, data = {.kind = SCOPE_DATA, .name = NO_TOKEN},
                 class = {.kind = SCOPE_CLASS, .name = NO_TOKEN};

    uint32_t open = parameters_of(k, from, brace);

    if (open != NO_TOKEN && k->at[open].partner != NO_TOKEN && k->at[open].partner > brace)
        return data; /* void f(T x = {}) */
    if (token_is(k, from, "namespace") || (token_is(k, from, "inline") && token_is(k, from + 1, "namespace")) ||
        (token_is(k, from, "extern") && brace == from + 2))
        return (struct scope){.kind = SCOPE_NAMESPACE, .name = NO_TOKEN};
    if (open == NO_TOKEN || token_is(k, from, "enum")) {
        if (defines_type(k, from, brace)) return find_outside(k, from, brace, " enum ") == NO_TOKEN ? class : data;
        if (find_outside(k, from, brace, " [ ") != NO_TOKEN && token_is(k, brace - 1, ")"))
            return code; /* a lambda that a variable is made of */
        return data;
    }
    if (defines_type(k, from, brace)) return class;
    return is_member_initialiser(k, from, brace) ? data : code;
}
