/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as they are written where a function is expanded: their gaps, names and types. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

bool expand_refuse(struct expander *x, uint32_t token, const char *why)
{
    if (!x->why) {
        x->why = why;
        x->wrong = token;
    }
    return false;
}

void expand_word(const struct expander *x, uint32_t i, struct text *out)
{
    text_add(out, x->k->text + x->k->at[i].start, x->k->at[i].end - x->k->at[i].start);
}

/* ---- gaps ---- */

/* The text behind token `i`: the kernel's own lines stay, functions come on one line. */
void expand_gap(const struct expander *x, const struct frame *fr, uint32_t i, bool flat, struct text *out)
{
    const struct tokens *k = x->k;

    if (flat || fr->caller) {
        if (!token_touches(k, i)) text_put(out, " ");
    } else if (i + 1 < k->count) {
        text_add(out, k->text + k->at[i].end, k->at[i + 1].start - k->at[i].end);
    }
}

/* The line ends within tokens [from, to), which are written elsewhere. */
void expand_lines(const struct expander *x, const struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    const struct tokens *k = x->k;

    if (fr->caller) return;
    for (uint32_t i = from; i < to && i + 1 < k->count; i++)
        if (memchr(k->text + k->at[i].end, '\n', k->at[i + 1].start - k->at[i].end)) expand_gap(x, fr, i, false, out);
}

/* ---- names ---- */

const char *expand_renamed(const struct expander *x, const struct frame *fr, uint32_t i)
{
    if (!token_is_name(x->k, i) || token_among(x->k, i - 1, " . -> :: ")) return NULL;
    for (size_t r = 0; r < fr->count; r++)
        if (token_same(x->k, fr->renames[r].name, i)) return fr->renames[r].by;
    return NULL;
}

bool expand_is_tile(const struct expander *x, uint32_t i)
{
    return x->tiles && token_among(x->k, i, x->tiles);
}

void expand_add_tile(struct expander *x, uint32_t i)
{
    char *more = must_print("%s%.*s ", x->tiles ? x->tiles : " ", (int)(x->k->at[i].end - x->k->at[i].start),
                            x->k->text + x->k->at[i].start);

    free(x->tiles);
    x->tiles = more;
}

void expand_rename(struct frame *fr, uint32_t name, char *by)
{
    fr->renames = must_grow(fr->renames, (fr->count + 1) * sizeof *fr->renames);
    fr->renames[fr->count++] = (struct rename){name, by};
}

/* May the function at `at` declare the word of token `i` anywhere, also as a parameter? */
bool expand_may_declare(const struct tokens *k, const struct function *at, uint32_t i)
{
    for (uint32_t n = at->statement; n < k->at[at->body].partner; n++) {
        if (!token_same(k, n, i) || token_among(k, n - 1, " . -> :: ")) continue;
        if (is_declared_by_type(k, n) || (token_is(k, n - 1, ",") && token_among(k, n + 1, " = ; , [ { "))) return true;
        if (n < at->open && token_among(k, n - 1, " typename class ")) return true;
    }
    return false;
}

/* Names of the function that are neither its own nor a member's must mean the same where it is expanded. */
bool expand_check_names(struct expander *x, const struct frame *fr)
{
    const struct tokens *k = x->k;
    const struct function *f = fr->f;

    for (uint32_t i = f->open; i < k->at[f->body].partner; i++) {
        bool own = false;

        if (!token_is_name(k, i) || token_among(k, i - 1, " . -> :: ") || expand_renamed(x, fr, i)) continue;
        for (uint32_t n = f->open; n <= i && !own; n++) own = token_same(k, n, i) && is_declared_by_type(k, n);
        for (const struct frame *other = fr->caller; other && !own; other = other->caller)
            if (expand_may_declare(k, other->f, i))
                return expand_refuse(x, i, "a function with a name that means something else in the kernel");
    }
    return true;
}

/* ---- types ---- */

void expand_type_words(const struct expander *x, const struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    static const char no_types[] = " static inline __inline__ __forceinline__ __noinline__ __device__ __host__ "
                                   "constexpr const __restrict__ __restrict register ";

    for (uint32_t i = from; i < to; i++) {
        const char *by = expand_renamed(x, fr, i);

        if (token_among(x->k, i, no_types)) continue;
        if (token_is(x->k, i, "__attribute__") && x->k->at[i + 1].partner != NO_TOKEN) {
            i = x->k->at[i + 1].partner;
            continue;
        }
        if (by)
            text_put(out, by);
        else
            expand_word(x, i, out);
        text_put(out, " ");
    }
}

bool expand_find_type(const struct expander *x, const struct frame *fr, uint32_t name, struct piece *found,
                      struct piece *found_signs)
{
    const struct tokens *k = x->k;
    uint32_t at = fr->f->open + 1, close = k->at[fr->f->open].partner;
    struct piece p, type = {0, 0}, signs = {0, 0};

    if (token_among(k, name - 1, " . -> :: ")) return false;
    while (next_piece(k, &at, close, &p)) {
        uint32_t own = declared_name(k, p);

        if (own == NO_TOKEN || !token_same(k, own, name) || own + 1 != p.to) continue;
        type = (struct piece){p.from, type_end(k, p.from, p.to)};
        signs = (struct piece){type.to, own};
    }
    for (uint32_t i = fr->f->body + 1; i < name; i++) {
        uint32_t end;

        if (!token_among(k, i - 1, " ; { } ( ) else ") || token_among(k, i, " ( ; { } ")) continue;
        end = find_outside(k, i, k->at[fr->f->body].partner, " ; : ");
        if (end == NO_TOKEN || !declares(k, i, end)) continue;
        at = type_end(k, i, end);
        for (uint32_t first = i; next_piece(k, &at, end, &p);) {
            uint32_t own = p.from;

            while (token_among(k, own, " * & && const __restrict__ __restrict ")) own++;
            if (!token_same(k, own, name) || own > name) continue;
            if (token_is(k, own + 1, "[")) return false;
            type = (struct piece){first, type_end(k, first, end)};
            signs = (struct piece){p.from, own};
        }
    }
    if (type.from == type.to || find_outside(k, type.from, type.to, " auto ") != NO_TOKEN) return false;
    *found = type;
    *found_signs = signs;
    return true;
}

/* The type of the variable that the token names, with the frame's names. False: it is not found, or deduced. */
static bool put_type_of(const struct expander *x, const struct frame *fr, uint32_t name, struct text *out)
{
    struct piece type, signs;

    if (!expand_find_type(x, fr, name, &type, &signs)) return false;
    expand_type_words(x, fr, type.from, type.to, out);
    for (uint32_t i = signs.from; i < signs.to; i++)
        if (token_is(x->k, i, "*")) text_put(out, "*");
    return true;
}

static bool is_class(const struct tokens *k, uint32_t name)
{
    for (uint32_t i = 0; i + 1 < k->count; i++)
        if (token_among(k, i, " struct class ") && token_same(k, i + 1, name)) return true;
    return false;
}

/* The type of an object that the argument makes: `Sum()`, `cub::Sum{}`, `plus<float>()`. */
static bool put_type_made(const struct expander *x, const struct frame *fr, struct piece p, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = token_among(k, p.to - 1, " ) } ") ? k->at[p.to - 1].partner : NO_TOKEN, word = open - 1;

    if (open == NO_TOKEN || open <= p.from || !token_is_name(k, p.from)) return false;
    if (token_is(k, word, ">")) {
        word = angle_begin(k, word);
        if (word == NO_TOKEN || word <= p.from) return false;
        word--;
    }
    for (uint32_t i = word; i > p.from; i -= 2)
        if (i < p.from + 2 || !token_is(k, i - 1, "::") || !token_is_name(k, i - 2)) return false;
    if (!token_is_name(k, word) || !(expand_renamed(x, fr, word) || is_class(k, word))) return false;
    expand_type_words(x, fr, p.from, open, out);
    return true;
}

bool expand_type_of_argument(const struct expander *x, const struct frame *fr, struct piece p, struct text *out)
{
    const struct token *t = &x->k->at[p.from];
    char last;

    if (p.from + 1 != p.to) return p.from < p.to && put_type_made(x, fr, p, out);
    if (token_is_name(x->k, p.from)) return put_type_of(x, fr, p.from, out);
    if (t->kind != TOKEN_NUMBER) return false;
    last = x->k->text[t->end - 1];
    if (!memchr(x->k->text + t->start, '.', t->end - t->start)) return false;
    text_put(out, last == 'f' || last == 'F' ? "float" : "double");
    return true;
}

uint32_t expand_behind_name(const struct tokens *k, uint32_t i)
{
    uint32_t close = token_is(k, i + 1, "<") ? angle_end(k, i + 1) : NO_TOKEN;

    return close == NO_TOKEN ? i + 1 : close + 1;
}
