/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/expand.h"

#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

/* ---- kernels ---- */

/* The kernel as it is, as a function. */
static void put_clone(const struct expander *x, const struct function *f, struct text *out)
{
    const struct tokens *k = x->k;
    char *marker = source_marker(&x->source, f->statement);

    text_print(out, "\n%s\n", marker);
    for (uint32_t i = f->statement; i <= k->at[f->body].partner; i++) {
        if (token_is(k, i, "__global__"))
            text_put(out, "static __attribute__((unused)) __device__");
        else if (i == f->name)
            text_print(out, "__kolo_fibres_of_%.*s", (int)(k->at[i].end - k->at[i].start), k->text + k->at[i].start);
        else if (i > f->name || !(token_among(k, i, " static inline extern __inline__ __forceinline__ ") ||
                                  k->at[i].kind == TOKEN_STRING))
            expand_word(x, i, out);
        if (i + 1 < k->count) text_add(out, k->text + k->at[i].end, k->at[i + 1].start - k->at[i].end);
    }
    free(marker);
    marker = source_marker(&x->source, f->statement);
    text_print(out, "\n%s\n", marker);
    free(marker);
}

/* `__kolo_or_fibres(3, __kolo_fibres_of_k<T, N>(a, b));` */
static bool put_choice(struct expander *x, const struct function *f, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t at, end;
    const char *between = "";
    struct piece p;

    text_print(out, " __kolo_or_fibres(%u, __kolo_fibres_of_%.*s", f->name,
               (int)(k->at[f->name].end - k->at[f->name].start), k->text + k->at[f->name].start);
    if (f->header != NO_TOKEN) {
        end = angle_end(k, f->header);
        at = f->header + 1;
        if (end == NO_TOKEN || f->statement + 1 != f->header || end == at)
            return expand_refuse(x, f->name, "a template of a shape that is not known");
        text_put(out, "<");
        while (next_piece(k, &at, end, &p)) {
            uint32_t assigned = find_outside(k, p.from, p.to, " = "),
                     name = (assigned == NO_TOKEN ? p.to : assigned) - 1;

            if (!token_is_name(k, name) || name == p.from ||
                find_outside(k, p.from, p.to, " ... template ") != NO_TOKEN)
                return expand_refuse(x, f->name, "a template of a shape that is not known");
            text_put(out, between);
            expand_word(x, name, out);
            between = ", ";
        }
        text_put(out, ">");
    }
    text_put(out, "(");
    at = f->open + 1;
    between = "";
    while (expand_pieces(k, f->open, false) && next_piece(k, &at, k->at[f->open].partner, &p)) {
        uint32_t name = declared_name(k, p);

        if (name == NO_TOKEN || name == p.from || is_type_word(k, name) ||
            find_outside(k, p.from, p.to, " ... ") != NO_TOKEN)
            return expand_refuse(x, f->name, "a parameter without a name");
        text_put(out, between);
        expand_word(x, name, out);
        between = ", ";
    }
    text_put(out, "));");
    return true;
}

/* A parameter that threads may change is the initial value of a variable of each. */
static bool changes_parameters(const struct expander *x, const struct function *f, uint32_t name)
{
    const struct tokens *k = x->k;

    for (uint32_t i = f->body; i < k->at[f->body].partner; i++)
        if (token_is_name(k, i) && token_same(k, i, name) && !token_among(k, i - 1, " . -> :: ") &&
            (is_assignment(k, i + 1) || token_among(k, i + 1, " ++ -- ") || token_among(k, i - 1, " ++ -- ")))
            return true;
    return false;
}

/* `float *` of `float *__restrict__ p`: a plain type, of which there can be a variable. */
static bool is_variable(const struct tokens *k, struct piece p, uint32_t name)
{
    return name != NO_TOKEN && name > p.from && name + 1 == p.to && !is_type_word(k, name) &&
           find_outside(k, p.from, p.to, " & && ... [ ( ") == NO_TOKEN;
}

static bool put_variables(const struct expander *x, struct frame *fr, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t at = fr->f->open + 1;
    struct piece p;
    bool any = false;

    while (next_piece(k, &at, k->at[fr->f->open].partner, &p)) {
        uint32_t name = declared_name(k, p);
        char *word;

        if (!is_variable(k, p, name) || !changes_parameters(x, fr->f, name)) continue;
        any = true;
        if (!out) continue;
        word = source_word(&x->source, name);
        text_put(out, " ");
        for (uint32_t i = p.from; i < name; i++) {
            expand_word(x, i, out);
            text_put(out, " ");
        }
        text_print(out, "%s__kolo = %s;", word, word);
        expand_rename(fr, name, must_print("%s__kolo", word));
        free(word);
    }
    return any;
}

static bool has_barriers(const struct tokens *k, const struct function *f)
{
    for (uint32_t i = f->body; i < k->at[f->body].partner; i++)
        if (token_is(k, i, "__syncthreads") || (token_is(k, i, "sync") && token_is(k, i + 1, "("))) return true;
    return false;
}

static bool is_to_be_expanded(struct expander *x, const struct function *f)
{
    const struct tokens *k = x->k;

    if (!f->kernel || f->class != NO_TOKEN || token_is(k, f->open - 1, ">") || token_is(k, f->name - 1, "::"))
        return false;
    if (expand_has_calls(x, f->body, k->at[f->body].partner)) return true;
    return has_barriers(k, f) && put_variables(x, &(struct frame){.f = f}, NULL);
}

static bool put_kernel(struct expander *x, const struct function *f, struct text *out)
{
    const struct tokens *k = x->k;
    struct frame fr = {.f = f};
    uint32_t end = k->at[f->body].partner;
    bool good;

    for (uint32_t i = f->body; i < end; i++)
        if (expand_is_lasting(k, i)) return expand_refuse(x, i, "a static variable, of which there must be one only");
    put_clone(x, f, out);
    for (uint32_t i = f->statement; i <= f->body; i++) {
        expand_word(x, i, out);
        if (i < f->body) expand_gap(x, &fr, i, false, out);
    }
    good = put_choice(x, f, out);
    (void)put_variables(x, &fr, out);
    expand_gap(x, &fr, f->body, false, out);
    good = good && expand_sequence(x, &fr, f->body + 1, end, out);
    text_put(out, "}");
    for (size_t r = 0; r < fr.count; r++) free(fr.renames[r].by);
    free(fr.renames);
    return good;
}

static void try_kernel(struct expander *x, const struct function *f, struct refusals *refusals, struct text *out)
{
    char *place = source_named_place(&x->source, f->name);
    char *why;

    free(x->tiles);
    x->tiles = NULL;
    x->why = NULL;
    x->words = 0;
    x->methods = false;
    if (!refusal_of(refusals, place) && !put_kernel(x, f, out)) {
        char *word = source_word(&x->source, x->wrong), *where = source_place(&x->source, x->wrong);

        text_drop(out);
        why = must_print("%s (\"%s\", %s)", x->why, word, where);
        refuse_kernel(refusals, place, why);
        free(why);
        free(word);
        free(where);
    }
    free(place);
}

bool expand(const char *text, size_t bytes, struct refusals *refusals, bool *methods, struct text *out)
{
    struct expander x = {.statements = &expand_statements};
    struct translation t = {0};
    size_t at = 0;
    bool any = false;

    if (!memmem(text, bytes, "__global__", 10) ||
        !(memmem(text, bytes, "__sync", 6) || memmem(text, bytes, "tiled_partition", 15) ||
          memmem(text, bytes, "_sync", 5)))
        return false;
    source_open(&x.source, text, bytes, NULL);
    x.k = &x.source.tokens;
    t.source = x.source;
    x.functions = functions_find(&t);
    for (size_t n = 0; n < x.functions->count; n++) {
        const struct function *f = &x.functions->at[n];
        struct text kernel = {0};

        if (!is_to_be_expanded(&x, f) || x.k->at[f->statement].start < at) continue;
        try_kernel(&x, f, refusals, &kernel);
        if (!kernel.at) continue;
        any = true;
        *methods |= x.methods;
        text_add(out, text + at, x.k->at[f->statement].start - at);
        text_put(out, kernel.at);
        at = x.k->at[x.k->at[f->body].partner].end;
        text_drop(&kernel);
    }
    if (any) text_add(out, text + at, bytes - at);
    functions_drop(x.functions);
    free(x.tiles);
    source_close(&x.source);
    return any;
}
