/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translate.h"

#include "compat/cuda/nvcc/expand.h"
#include "compat/cuda/nvcc/plain.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- braces ---- */

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

static bool translate_once(const char *text, size_t bytes, struct translate_options *options, struct refusals *refusals,
                           struct text *out, FILE *errors)
{
    struct translation t = {.options = options, .refusals = refusals};
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

/* Kernels that were expanded and are no loops stay as they are: then all of it is done again, without their expansion. */
static bool translate_expanded(const char *text, size_t bytes, const struct translate_options *options,
                               struct refusals *refusals, struct translate_options *done, struct text *out,
                               FILE *errors)
{
    for (;;) {
        struct text expanded = {0};
        size_t before;
        bool methods = false, any = expand(text, bytes, refusals, &methods, &expanded), good;
        char *said = NULL;
        size_t said_bytes = 0;
        FILE *report = options->report ? open_memstream(&said, &said_bytes) : NULL;

        before = refusals->count;
        *done = (struct translate_options){.report = report, .methods = methods};
        good = translate_once(any ? expanded.at : text, any ? expanded.bytes : bytes, done, refusals, out, errors);
        text_drop(&expanded);
        if (report) (void)fclose(report);
        if (!good || refusals->count == before) {
            if (said) fputs(said, options->report);
            free(said);
            return good;
        }
        free(said);
        text_drop(out);
    }
}

/* Parts of a source are handled as C strings. */
static bool has_no_null(const char *text, size_t bytes, FILE *errors)
{
    const char *null = bytes ? memchr(text, 0, bytes) : NULL;
    unsigned line = 1;

    if (!null) return true;
    for (const char *at = text; at < null; at++) line += *at == '\n';
    fprintf(errors, "error: line %u of the preprocessed source has a null character; remove it\n", line);
    return false;
}

bool translate(const char *text, size_t bytes, struct translate_options *options, struct text *out, FILE *errors)
{
    struct refusals refusals = {0};
    struct translate_options done;
    bool good;

    if (!has_no_null(text, bytes, errors)) return false;
    if (options->fibres) return translate_once(text, bytes, options, NULL, out, errors);
    good = translate_expanded(text, bytes, options, &refusals, &done, out, errors);
    options->loops += done.loops;
    options->methods |= done.methods;
    refusals_drop(&refusals);
    return good;
}
