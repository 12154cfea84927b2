/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translate.h"

#include "compat/cuda/nvcc/plain.h"

#include <stdlib.h>

static enum scope_kind kind_here(const struct translation *t)
{
    return t->depth ? t->scopes[t->depth - 1].kind : SCOPE_NAMESPACE;
}

static void push(struct translation *t, struct scope s)
{
    if (t->depth == t->scope_room) {
        t->scope_room = t->scope_room ? 2 * t->scope_room : 64;
        t->scopes = must_grow(t->scopes, t->scope_room * sizeof *t->scopes);
    }
    t->scopes[t->depth++] = s;
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

/* A brace in code, or in initial values: the same again, or a lambda with specifiers of its own. */
static void enter_more(struct translation *t)
{
    struct scope s = {.kind = kind_here(t), .name = NO_TOKEN};

    s.device = t->lambda_device || t->scopes[t->depth - 1].device;
    s.host = t->lambda_device ? t->lambda_host : t->scopes[t->depth - 1].host;
    push(t, s);
    t->lambda_device = t->lambda_host = false;
}

static void enter(struct translation *t, uint32_t brace)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t header, from, parameters;
    struct scope s;

    if (kind_here(t) == SCOPE_CODE || kind_here(t) == SCOPE_DATA) {
        enter_more(t);
        return;
    }
    s = scope_opened_by(t, brace);
    from = skip_template_headers(k, t->statement, brace, &header);
    if (s.kind == SCOPE_CODE && find_outside(k, from, brace, " __global__ ") != NO_TOKEN) translate_kernel(t, brace);
    parameters = s.kind == SCOPE_CODE ? parameters_of(k, from, brace) : NO_TOKEN;
    push(t, s);
    note_type_parameters(t, t->statement, from, t->depth);
    if (s.kind == SCOPE_NAMESPACE && brace && token_is_name(k, brace - 1)) t->scopes[t->depth - 1].name = brace - 1;
    if (s.device && parameters != NO_TOKEN && k->at[parameters].partner != NO_TOKEN)
        hide_parameters(t, parameters + 1, k->at[parameters].partner, t->depth);
    if (s.kind == SCOPE_CLASS) hide_members(t, brace, t->depth);
    if (s.kind == SCOPE_NAMESPACE || s.kind == SCOPE_CLASS) t->statement = brace + 1;
    t->lambda_device = t->lambda_host = false;
}

static void leave_kernel(struct translation *t)
{
    free(t->kernel);
    t->kernel = NULL;
}

static void leave(struct translation *t, uint32_t brace)
{
    enum scope_kind closed = kind_here(t);

    if (t->depth) t->depth--;
    forget_shadows(t);
    forget_type_parameters(t);
    if (t->kernel && t->depth <= t->kernel_depth) {
        translate_barriers(t);
        leave_kernel(t);
    }
    if (closed != SCOPE_DATA && (kind_here(t) == SCOPE_NAMESPACE || kind_here(t) == SCOPE_CLASS))
        t->statement = brace + 1;
}

static void end_statement(struct translation *t, uint32_t semicolon)
{
    if (kind_here(t) == SCOPE_NAMESPACE) translate_variables(t, semicolon);
    if (kind_here(t) == SCOPE_CLASS) refuse_member_variable(t, semicolon);
    if (kind_here(t) != SCOPE_CODE && kind_here(t) != SCOPE_DATA) t->statement = semicolon + 1;
    t->lambda_device = t->lambda_host = false;
}

static bool is_launch(const struct tokens *k, uint32_t i)
{
    return token_is(k, i, "<") && token_touches(k, i) && token_is(k, i + 1, "<") && token_touches(k, i + 1) &&
           token_is(k, i + 2, "<");
}

static void walk(struct translation *t)
{
    const struct tokens *k = &t->source.tokens;

    for (uint32_t i = 0; i < k->count; i++) {
        if (t->source.edits[i].dropped) continue; /* part of a declaration that is another one by now */
        if (k->at[i].kind == TOKEN_NAME) {
            if (in_device_code(t) && token_among(k, i, " asm __asm__ __asm "))
                i = translate_asm(t, i);
            else
                translate_word(t, i);
        } else if (k->at[i].kind != TOKEN_SIGN) {
            continue;
        } else if (token_is(k, i, "(")) {
            if (in_device_code(t)) translate_cast(t, i);
        } else if (token_is(k, i, "{")) {
            enter(t, i);
        } else if (token_is(k, i, "}")) {
            leave(t, i);
        } else if (token_is(k, i, ";")) {
            end_statement(t, i);
        } else if (is_launch(k, i)) {
            i = translate_launch(t, i);
        }
    }
}

bool translate(const char *text, size_t bytes, struct translate_options *options, struct text *out, FILE *errors)
{
    struct translation t = {.options = options};
    bool good;

    source_open(&t.source, text, bytes, errors);
    walk(&t);
    good = !t.source.failed;
    if (good) source_render(&t.source, out);
    names_drop(&t.aliases);
    free(t.hidden);
    names_drop(&t.declared);
    free(t.shadows);
    free(t.type_parameters);
    leave_kernel(&t);
    free(t.scopes);
    functions_drop(t.functions);
    source_close(&t.source);
    return good;
}
