/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory with a size is a variable of the OS thread, which runs one block at a time. Without a size it is the worker's,
 * with one address for all its blocks: a pointer, since several types may be declared for one name. */
#include "compat/cuda/nvcc/translation.h"

#include <stdlib.h>

static uint32_t declaration_start(const struct tokens *k, uint32_t i)
{
    while (i && !token_among(k, i - 1, " ; { } ")) {
        i--;
        if (token_among(k, i, " ) ] ") && k->at[i].partner != NO_TOKEN) i = k->at[i].partner;
    }
    return i;
}

/* alignas must come first: put it before `static`. Other alignment attributes may stay where they are. */
static void pull_alignments(struct translation *t, uint32_t start, uint32_t end)
{
    const struct tokens *k = &t->source.tokens;

    for (uint32_t i = start; i < end; i++) {
        if (!token_is(k, i, "alignas") || !token_is(k, i + 1, "(") || k->at[i + 1].partner == NO_TOKEN) continue;
        if (i == start) return;
        source_move(&t->source, start, "", i, k->at[i + 1].partner + 1, " ");
        return;
    }
}

/* Count the bytes of declarations in the kernel's own body, [i, end), for its attributes. */
static void count_bytes(struct translation *t, uint32_t i, uint32_t end)
{
    struct text out = {0};
    uint32_t at = i + 1, defined = find_outside(&t->source.tokens, i, end, " { ");
    struct piece p;

    if (defined != NO_TOKEN && t->source.tokens.at[defined].partner != NO_TOKEN)
        at = t->source.tokens.at[defined].partner + 1; /* __shared__ struct { ... } x; */
    while (next_piece(&t->source.tokens, &at, end, &p)) {
        uint32_t name = declared_name(&t->source.tokens, p);
        char *word = name == NO_TOKEN ? NULL : source_word(&t->source, name);

        if (word)
            text_print(&out, " (void)&__kolo::shared_variable<%s, sizeof(%s), alignof(decltype(%s)), %u>::registered;",
                       t->kernel, word, word, t->kernel_shared++);
        free(word);
    }
    if (out.at) source_after(&t->source, end, out.at);
    text_drop(&out);
}

static void translate_static(struct translation *t, uint32_t i, uint32_t start, uint32_t end)
{
    const struct tokens *k = &t->source.tokens;

    for (uint32_t s = start; s < end; s++)
        if (token_is(k, s, "static")) source_drop(&t->source, s);
    source_replace(&t->source, i,
                   "static thread_local"); /* not __thread: types may have constructors that do nothing */
    pull_alignments(t, start, end);
    if (t->kernel) count_bytes(t, i, end);
}

/* The words of the element's type in [start, name), without storage and alignment. */
static void put_type(struct translation *t, uint32_t start, uint32_t name, struct text *out)
{
    const struct tokens *k = &t->source.tokens;

    for (uint32_t i = start; i < name; i++) {
        if (token_among(k, i, " extern static __shared__ inline ")) continue;
        if (token_among(k, i, " __align__ alignas __attribute__ __builtin_align__ ") && token_is(k, i + 1, "(") &&
            k->at[i + 1].partner != NO_TOKEN) {
            i = k->at[i + 1].partner;
            continue;
        }
        if (token_is(k, i, "[") && k->at[i].partner != NO_TOKEN) { /* [[...]] */
            i = k->at[i].partner;
            continue;
        }
        text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
        text_put(out, " ");
    }
}

static void put_rest(const struct tokens *k, uint32_t from, uint32_t to, struct text *out)
{
    for (uint32_t i = from; i < to; i++) text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
}

static void translate_dynamic(struct translation *t, uint32_t start, uint32_t end)
{
    const struct tokens *k = &t->source.tokens;
    struct text type = {0}, rows = {0}, out = {0};
    uint32_t bracket = NO_TOKEN, name;
    char *word;

    for (uint32_t i = start; i < end && bracket == NO_TOKEN; i++)
        if (token_is(k, i, "[") && token_is(k, i + 1, "]")) bracket = i;
    if (bracket == NO_TOKEN || bracket == start || !token_is_name(k, bracket - 1) ||
        find_outside(k, bracket, end, " , ") != NO_TOKEN) {
        source_error(&t->source, start,
                     "extern __shared__ is for one array without a size: extern __shared__ T name[]");
        return;
    }
    name = bracket - 1;
    put_type(t, start, name, &type);
    put_rest(k, bracket + 2, end, &rows);
    word = source_word(&t->source, name);
    if (in_code(t)) {
        text_print(&out,
                   rows.at ? "__attribute__((unused)) %s(*const %s)%s = reinterpret_cast<%s(*)%s>(__koloShared)"
                           : "__attribute__((unused)) %s*const %s%s = reinterpret_cast<%s*%s>(__koloShared)",
                   type.at ? type.at : "", word, rows.at ? rows.at : "", type.at ? type.at : "",
                   rows.at ? rows.at : "");
    } else {
        text_print(
            &out,
            "typedef %s__kolo_type_of_%s %s; __attribute__((unused)) static inline __kolo_type_of_%s *%s__kolo() "
            "{ return reinterpret_cast<__kolo_type_of_%s *>(__koloShared); }",
            type.at ? type.at : "", word, rows.at ? rows.at : "", word, word, word);
        add_alias(t, word);
    }
    source_drop_range(&t->source, start, end);
    source_before(&t->source, start, out.at);
    free(word);
    text_drop(&type);
    text_drop(&rows);
    text_drop(&out);
}

void translate_shared(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t start = declaration_start(k, i), end = find_outside(k, i, k->count, " ; ");

    if (end == NO_TOKEN) {
        source_error(&t->source, i, "this declaration has no end");
        return;
    }
    if (find_outside(k, start, end, " extern ") != NO_TOKEN)
        translate_dynamic(t, start, end);
    else
        translate_static(t, i, start, end);
}
