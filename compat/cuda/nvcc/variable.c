/* SPDX-License-Identifier: Apache-2.0 */
/* Each device has its own copy of a variable. The variable itself stays, for host code and as the initial value; device
 * code calls name__kolo(), which returns the copy of the device that it runs on. */
#include "compat/cuda/nvcc/translation.h"

#include <stdlib.h>
#include <string.h>

/* ---- names that mean something else in device code ---- */

static size_t find_alias(const struct translation *t, uint32_t i)
{
    const struct token *k = &t->source.tokens.at[i];

    return names_find(&t->aliases, t->source.tokens.text + k->start, k->end - k->start);
}

void add_alias(struct translation *t, const char *name)
{
    bool fresh;
    size_t alias = names_add(&t->aliases, name, &fresh);

    if (!fresh) return;
    t->hidden = must_grow(t->hidden, t->aliases.count * sizeof *t->hidden);
    t->hidden[alias] = 0;
}

static void hide(struct translation *t, size_t alias, uint32_t depth)
{
    t->shadows = must_grow(t->shadows, (t->shadow_count + 1) * sizeof *t->shadows);
    t->shadows[t->shadow_count++] = (struct shadow){alias, depth};
    t->hidden[alias]++;
}

void forget_shadows(struct translation *t)
{
    while (t->shadow_count && t->shadows[t->shadow_count - 1].depth > t->depth)
        t->hidden[t->shadows[--t->shadow_count].alias]--;
}

static const char no_type_before[] =
    " return else case goto throw delete new sizeof do co_return co_yield co_await and or not typename "
    "operator ";

/* Is the name at `i` being declared? Two names side by side always are a declaration; with * and & only where a statement begins. */
static bool is_declared(const struct tokens *k, uint32_t i)
{
    uint32_t from = i;

    if (!i) return false;
    if (token_is_name(k, i - 1)) return !token_among(k, i - 1, no_type_before);
    if (!token_among(k, i - 1, " * & && > ") || !token_among(k, i + 1, " = ; , [ { ( : ")) return false;
    while (from && !token_among(k, from - 1, " ; { } ( ")) {
        from--;
        if (!token_is_name(k, from) && !token_among(k, from, " :: * & && < > , ")) return false;
        if (token_among(k, from, no_type_before)) return false;
    }
    if (from && token_is(k, from - 1, "(") && !(from >= 2 && token_among(k, from - 2, " for if while switch ")))
        return false;
    return token_is_name(k, from) && from < i - 1;
}

void hide_parameters(struct translation *t, uint32_t from, uint32_t to, uint32_t depth)
{
    const struct tokens *k = &t->source.tokens;

    for (uint32_t i = from; i < to; i++) {
        size_t alias;

        if (!token_is_name(k, i) || !(token_is_name(k, i - 1) || token_among(k, i - 1, " * & && > ... "))) continue;
        alias = find_alias(t, i);
        if (alias != NO_NAME) hide(t, alias, depth);
    }
}

void hide_members(struct translation *t, uint32_t brace, uint32_t depth)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t end = k->at[brace].partner;

    if (!t->aliases.count || end == NO_TOKEN) return;
    for (uint32_t i = brace + 1; i < end; i++) {
        size_t alias = token_is_name(k, i) ? find_alias(t, i) : NO_NAME;

        if (token_is(k, i, "{") && k->at[i].partner != NO_TOKEN) i = k->at[i].partner;
        if (alias != NO_NAME && is_declared(k, i)) hide(t, alias, depth);
    }
}

void translate_name(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    size_t alias = find_alias(t, i);
    char *word;

    if (alias == NO_NAME || (i && token_among(k, i - 1, " . -> "))) return;
    if (is_declared(k, i)) {
        hide(t, alias, t->depth);
        return;
    }
    if (t->hidden[alias] && !(i && token_is(k, i - 1, "::"))) return;
    word = must_print("%s__kolo()", t->aliases.at[alias]);
    source_replace(&t->source, i, word);
    free(word);
}

/* ---- declarations ---- */

/* At the declarator or at its type's pointers: a const before that belongs to the pointed-to type. */
static bool is_constant(const struct tokens *k, uint32_t from, uint32_t to)
{
    uint32_t constant = find_outside(k, from, to, " const constexpr "), pointer = find_outside(k, from, to, " * & ");

    if (find_outside(k, from, to, " constexpr ") != NO_TOKEN) return true;
    if (constant == NO_TOKEN) return false;
    return pointer == NO_TOKEN || find_outside(k, pointer, to, " const ") != NO_TOKEN;
}

/* The variable's name with the namespaces around it, between line ends. */
static char *full_name(const struct translation *t, const char *name)
{
    struct text full = {0};
    char *result;

    for (uint32_t i = 0; i < t->depth; i++) {
        char *word = t->scopes[i].name == NO_TOKEN ? must_copy("", 0) : source_word(&t->source, t->scopes[i].name);

        text_print(&full, "%s::", word);
        free(word);
    }
    result = must_print("%s%s", full.at ? full.at : "", name);
    text_drop(&full);
    return result;
}

/* Declared with extern and defined afterwards, a variable has its function already; the definition adds its size. */
static void put_variable(struct translation *t, const char *name, const char *kind, uint32_t token, struct text *out)
{
    char *full = full_name(t, name);
    bool first;

    names_add(&t->declared, full, &first);

    text_print(out,
               " __attribute__((unused)) static __kolo::variable<decltype(%s)> %s__kolo_images%u{&%s, \"%s\", %s};",
               name, name, token, name, name, kind);
    if (first)
        text_print(
            out, " __attribute__((unused)) static inline decltype(%s) &%s__kolo() { return %s__kolo_images%u.here(); }",
            name, name, name, token);
    free(full);
}

/* An attribute between the words of a declaration is no declarator. */
static uint32_t skip_attributes(const struct tokens *k, uint32_t i)
{
    while (token_among(k, i, " __align__ alignas __attribute__ __builtin_align__ ") && token_is(k, i + 1, "(") &&
           k->at[i + 1].partner != NO_TOKEN)
        i = k->at[i + 1].partner + 1;
    return i;
}

static bool is_variable(const struct tokens *k, uint32_t from, uint32_t end)
{
    if (find_outside(k, from, end, " typedef using friend operator __global__ __shared__ static_assert template ") !=
        NO_TOKEN)
        return false;
    return parameters_of(k, from, end) == NO_TOKEN;
}

void translate_variables(struct translation *t, uint32_t end)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t from = t->statement, at, name;
    bool managed, constant;
    struct text out = {0};
    struct piece p;

    if (find_outside(k, from, end, " __device__ __constant__ __managed__ ") == NO_TOKEN || !is_variable(k, from, end))
        return;
    managed = find_outside(k, from, end, " __managed__ ") != NO_TOKEN;
    constant = find_outside(k, from, end, " __constant__ ") != NO_TOKEN;
    for (at = skip_attributes(k, from); next_piece(k, &at, end, &p);) {
        char *word;

        name = declared_name(k, p);
        if (name == NO_TOKEN || is_constant(k, from, name)) continue;
        word = source_word(&t->source, name);
        if (constant && find_outside(k, from, end, " extern ") == NO_TOKEN)
            text_print(&out, " static_assert(sizeof(%s) <= 65536, \"constant memory has 64 KiB\");", word);
        put_variable(t, word,
                     managed    ? "__kolo::managed"
                     : constant ? "__kolo::constant"
                                : "__kolo::device",
                     name, &out);
        if (!managed) add_alias(t, word);
        free(word);
    }
    if (out.at) source_after(&t->source, end, out.at);
    text_drop(&out);
}

void refuse_member_variable(struct translation *t, uint32_t end)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t word = find_outside(k, t->statement, end, " __device__ __constant__ __managed__ __shared__ ");

    if (word != NO_TOKEN && find_outside(k, t->statement, end, " static ") != NO_TOKEN &&
        is_variable(k, t->statement, end))
        source_error(&t->source, word,
                     "a member of a class is in no memory of its own: declare the variable in a namespace");
}

/* ---- static variables of functions ---- */

void translate_local_static(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t end = find_outside(k, i, k->count, " ; "), at = i + 1, name;
    struct text out = {0};
    struct piece p;

    if (i && !token_among(k, i - 1, " ; { } __device__ const ")) return;
    if (end == NO_TOKEN || !is_variable(k, i, end) || is_constant(k, i - (i && token_is(k, i - 1, "const")), end))
        return;
    for (at = skip_attributes(k, at); next_piece(k, &at, end, &p);) {
        char *word, *initial;

        name = declared_name(k, p);
        if (name == NO_TOKEN) continue;
        word = source_word(&t->source, name);
        initial = must_print("%s__kolo_initial", word);
        source_replace(&t->source, name, initial);
        text_print(&out,
                   " static __kolo::variable<decltype(%s)> %s__kolo_images{&%s, \"%s\", __kolo::device}; "
                   "__attribute__((unused)) auto &%s = %s__kolo_images.found();",
                   initial, word, initial, word, word, word);
        free(word);
        free(initial);
    }
    if (out.at) source_after(&t->source, end, out.at);
    text_drop(&out);
}
