/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel stays a function of its name and type. Called between `<<<...>>>` and its arguments it hands their addresses to the launcher;
 * called by the engine it runs. The template argument that names the function registers it wherever its address is taken. */
#include "compat/cuda/nvcc/translation.h"

#include <stdlib.h>

static const char type_words[] =
    " int char long short float double bool void unsigned signed auto wchar_t char8_t char16_t char32_t ";
static const char no_types[] =
    " const volatile typename class struct union enum __restrict__ __restrict restrict register __grid_constant__ "
    "__const __volatile__ alignas __align__ ";

/* A parameter of a function or a template: its name, or where one is to be put. */
struct parameter {
    uint32_t name; /* NO_TOKEN: it has none */
    uint32_t last; /* token behind which a name can be put, NO_TOKEN: nowhere */
    bool pack;
};

/* Is there a type in [from, to), rather than only words that belong to one? */
static bool has_type(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (token_is_name(k, i) && !token_among(k, i, no_types)) return true;
        if (token_among(k, i, " > * & && ")) return true;
    }
    return false;
}

static bool can_be_name(const struct tokens *k, uint32_t i)
{
    return token_is_name(k, i) && !token_among(k, i, type_words) && !token_among(k, i, no_types);
}

/* The name in `(*name)` or `(&name)[4]`, given the parenthesis that closes it. */
static uint32_t name_in_group(const struct tokens *k, uint32_t close)
{
    uint32_t open = k->at[close].partner, i = close;

    if (open == NO_TOKEN) return NO_TOKEN;
    while (i-- > open + 1) {
        if (token_is(k, i, "]") && k->at[i].partner != NO_TOKEN)
            i = k->at[i].partner;
        else
            return can_be_name(k, i) ? i : NO_TOKEN;
    }
    return NO_TOKEN;
}

static struct parameter parse_parameter(const struct tokens *k, struct piece p)
{
    struct parameter result = {NO_TOKEN, NO_TOKEN, false};
    uint32_t assigned = find_outside(k, p.from, p.to, " = "), to = assigned == NO_TOKEN ? p.to : assigned, last;
    bool array = false;

    if (p.from >= to) return result;
    result.pack = find_outside(k, p.from, to, " ... ") != NO_TOKEN;
    for (last = to - 1; last > p.from && token_is(k, last, "]") && k->at[last].partner != NO_TOKEN; array = true)
        last = k->at[last].partner - 1;
    if (token_is(k, last, ")") && k->at[last].partner != NO_TOKEN && k->at[last].partner > p.from) {
        uint32_t before = k->at[last].partner - 1;

        result.name = name_in_group(k, token_is(k, before, ")") ? before : last);
        return result;
    }
    if (can_be_name(k, last) && last > p.from && !token_is(k, last - 1, "::") &&
        (has_type(k, p.from, last) || token_is(k, last - 1, "...") || token_among(k, last - 1, " typename class ")))
        result.name = last;
    else if (!array)
        result.last = last;
    return result;
}

/* Its name as text, put into the source where it has none; NULL with an error told where that is not possible. */
static char *name_of(struct translation *t, struct piece p, const char *prefix, unsigned number, bool *pack)
{
    struct parameter found = parse_parameter(&t->source.tokens, p);
    char *made, *inserted;

    *pack = found.pack;
    if (found.name != NO_TOKEN) return source_word(&t->source, found.name);
    if (found.last == NO_TOKEN) {
        source_error(&t->source, p.from, "give this parameter of a kernel a name");
        return NULL;
    }
    made = must_print("__kolo_%s%u", prefix, number);
    inserted = must_print(" %s", made);
    source_after(&t->source, found.last, inserted);
    free(inserted);
    return made;
}

/* The first argument of __launch_bounds__, 0 if there is none. */
static void put_bound(struct translation *t, uint32_t from, uint32_t body, struct text *out)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t word = find_outside(k, from, body, " __launch_bounds__ "), at;
    struct piece first;

    text_put(out, "(unsigned)(");
    at = word == NO_TOKEN ? NO_TOKEN : word + 2;
    if (word != NO_TOKEN && token_is(k, word + 1, "(") && k->at[word + 1].partner != NO_TOKEN &&
        next_piece(k, &at, k->at[word + 1].partner, &first))
        for (uint32_t i = first.from; i < first.to; i++) {
            text_put(out, " ");
            text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
        }
    else
        text_put(out, "0");
    text_put(out, ")");
}

/* The arguments of __cluster_dims__, if they are there. */
static void put_cluster(struct translation *t, uint32_t from, uint32_t body, struct text *out)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t word = find_outside(k, from, body, " __cluster_dims__ ");

    if (word == NO_TOKEN || !token_is(k, word + 1, "(") || k->at[word + 1].partner == NO_TOKEN) return;
    text_put(out, ", __kolo::cluster");
    for (uint32_t i = word + 1; i <= k->at[word + 1].partner; i++) {
        text_put(out, " ");
        text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
    }
}

/* The kernel's name inside its own body: with all template arguments. */
static void put_own_name(struct translation *t, uint32_t header, uint32_t open, struct text *out)
{
    const struct tokens *k = &t->source.tokens;
    uint32_t last = open - 1, first = last, at, close;
    bool pack, arguments = token_is(k, last, ">");
    struct piece p;

    if (arguments) first = angle_begin(k, last);
    if (arguments && first != NO_TOKEN && first) first--;
    if (first == NO_TOKEN) first = last;
    while (first >= 2 && token_is(k, first - 1, "::") && token_is_name(k, first - 2)) first -= 2;
    for (uint32_t i = first; i <= last; i++) {
        text_add(out, k->text + k->at[i].start, k->at[i].end - k->at[i].start);
        text_put(out, " ");
    }
    if (header == NO_TOKEN || arguments) return;
    close = angle_end(k, header);
    at = header + 1;
    if (close == NO_TOKEN || at == close) return;
    text_put(out, "<");
    for (unsigned n = 0; next_piece(k, &at, close, &p); n++) {
        char *name = name_of(t, p, "t", n, &pack);

        if (!name) return;
        text_print(out, "%s%s%s", n ? ", " : "", name, pack ? "..." : "");
        free(name);
    }
    text_put(out, ">");
}

void translate_kernel(struct translation *t, uint32_t body)
{
    const struct tokens *k = &t->source.tokens;
    struct text list = {0}, types = {0}, name = {0};
    char *stub;
    uint32_t header, from = skip_template_headers(k, t->statement, body, &header), open = parameters_of(k, from, body),
                     at, close;
    struct piece p;
    bool pack;

    if (open == NO_TOKEN || open == from || k->at[open].partner == NO_TOKEN) {
        source_error(&t->source, body, "__global__ is for functions");
        return;
    }
    close = k->at[open].partner;
    at = open + 1;
    if (close == open + 2 && token_is(k, at, "void")) at = close;
    for (unsigned n = 0; next_piece(k, &at, close, &p); n++) {
        char *word = name_of(t, p, "p", n, &pack);

        if (!word) break;
        text_print(&list, "__kolo::address(%s)%s, ", word, pack ? "..." : "");
        text_print(&types, "%s__kolo::parameter<decltype(%s)>%s", n ? ", " : "", word, pack ? "..." : "");
        free(word);
    }
    text_print(&name, "static_cast<void (*)(%s)>(&", types.at ? types.at : "");
    put_own_name(t, header, open, &name);
    text_put(&name, ")");
    free(t->kernel);
    t->kernel = must_copy(name.at, name.bytes);
    t->kernel_depth = t->depth;
    t->kernel_body = body;
    t->kernel_shared = 0;
    text_put(&name, ", ");
    put_bound(t, from, body, &name);
    put_cluster(t, from, body, &name);
    stub = must_print(" if (__builtin_expect(__koloPending, 0)) { void *__kolo_list[] = {%snullptr}; "
                      "__kolo::launch<%s>(__kolo_list); return; }",
                      list.at ? list.at : "", name.at);
    source_after(&t->source, body, stub);
    free(stub);
    text_drop(&list);
    text_drop(&types);
    text_drop(&name);
}
