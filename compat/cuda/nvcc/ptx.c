/* SPDX-License-Identifier: Apache-2.0 */
/* An asm statement of device code: its operands become variables, its text C++ that uses them. */
#include "compat/cuda/nvcc/ptx.h"

#include "compat/cuda/nvcc/translation.h"

#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 40 };

/* "+r"(expression) */
struct operand {
    char *expression;
    bool written, read;
};

struct statement {
    struct translation *t;
    struct operand operand[OPERANDS];
    unsigned operands;
};

/* The text of string literals [from, to), with their escapes undone. */
static void put_literals(const struct tokens *k, uint32_t from, uint32_t to, struct text *out)
{
    text_put(out, "");
    for (uint32_t i = from; i < to; i++) {
        const char *c = k->text + k->at[i].start, *end = k->text + k->at[i].end - 1;
        bool raw = *c == 'R';

        while (c < end && *c++ != '"') {
        }
        if (raw) {
            size_t delimiter = strcspn(c, "(");

            c += delimiter + 1;
            end -= delimiter + 1;
        }
        for (; c < end; c++) {
            bool escape = !raw && *c == '\\' && c + 1 < end;

            if (escape) c++;
            text_add(out, escape && strchr("ntr", *c) ? "\n" : c, 1);
        }
    }
}

/* Is this character in a constraint, which may be several literals? */
static bool has(const struct tokens *k, uint32_t from, uint32_t to, char c)
{
    for (uint32_t i = from; i < to; i++)
        if (memchr(k->text + k->at[i].start, c, k->at[i].end - k->at[i].start)) return true;
    return false;
}

/* One operand: "constraint" (expression) */
static bool read_operand(struct statement *s, struct piece p)
{
    const struct tokens *k = &s->t->source.tokens;
    struct text expression = {0};
    struct operand *o = &s->operand[s->operands];
    uint32_t open;

    if (s->operands == OPERANDS) return false;
    open = find_outside(k, p.from, p.to, " ( ");
    if (open == NO_TOKEN || k->at[open].partner == NO_TOKEN || open == p.from) return false;
    for (uint32_t n = open + 1; n < k->at[open].partner; n++)
        if (token_is_name(k, n)) translate_word(s->t, n);
    source_render_range(&s->t->source, open + 1, k->at[open].partner, &expression);
    o->expression = must_copy(expression.at ? expression.at : "", expression.bytes);
    o->written = has(k, p.from, open, '=') || has(k, p.from, open, '+');
    o->read = !o->written || has(k, p.from, open, '+');
    s->operands++;
    text_drop(&expression);
    return true;
}

/* Where the section ends that begins at `from`: at a colon, or the end. `::` is two. */
static uint32_t section_end(const struct tokens *k, uint32_t from, uint32_t end)
{
    uint32_t at = find_outside(k, from, end, " : :: ");

    return at == NO_TOKEN ? end : at;
}

static bool read_operands(struct statement *s, uint32_t from, uint32_t end)
{
    const struct tokens *k = &s->t->source.tokens;

    for (unsigned section = 0; section < 2 && from < end;) {
        uint32_t stop, at;
        struct piece p;

        section += token_is(k, from, "::") ? 2 : 1;
        at = from + 1;
        stop = section_end(k, at, end);
        if (section <= 2)
            while (next_piece(k, &at, stop, &p))
                if (p.from < p.to && !read_operand(s, p)) return false;
        from = stop;
    }
    return true;
}

/* Variables hold the operands: the statement reads all before it writes any. */
static void put_variables(const struct statement *s, struct text *out)
{
    text_put(out,
             "__attribute__((unused)) uint32_t __kolo_carry = 0; __attribute__((unused)) uint64_t __kolo_none = 0; ");
    for (unsigned n = 0; n < s->operands; n++) {
        const struct operand *o = &s->operand[n];

        if (o->read)
            text_print(out, "__attribute__((unused)) auto __kolo_v%u = (%s); ", n, o->expression);
        else
            text_print(out, "__kolo::ptx::variable<decltype((%s))> __kolo_v%u{}; ", o->expression, n);
    }
}

static void put_results(const struct statement *s, struct text *out)
{
    for (unsigned n = 0; n < s->operands; n++)
        if (s->operand[n].written) text_print(out, "(%s) = __kolo_v%u; ", s->operand[n].expression, n);
}

static bool do_statement(struct statement *s, uint32_t i, uint32_t open, struct text *out)
{
    const struct tokens *k = &s->t->source.tokens;
    uint32_t end = k->at[open].partner, text_end = section_end(k, open + 1, end);
    struct text text = {0};

    for (uint32_t n = open + 1; n < text_end; n++)
        if (k->at[n].kind != TOKEN_STRING) return false;
    if (!read_operands(s, text_end, end)) return false;
    put_literals(k, open + 1, text_end, &text);
    text_put(out, "do { ");
    put_variables(s, out);
    (void)ptx_translate(text.at, s->operands, i, out); /* the compiler reports an instruction that is refused */
    put_results(s, out);
    text_put(out, "} while (0)");
    text_drop(&text);
    return true;
}

uint32_t translate_asm(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    struct statement s = {.t = t};
    struct text out = {0};
    uint32_t open = i + 1, close = i;

    while (token_among(k, open, " volatile __volatile__ __volatile goto inline ")) open++;
    if (!token_is(k, open, "(") || k->at[open].partner == NO_TOKEN || !do_statement(&s, i, open, &out)) {
        source_error(&t->source, i, "this asm statement is none of PTX that has a translation");
    } else {
        close = k->at[open].partner;
        source_drop_range(&t->source, i, close + 1);
        source_before(&t->source, i, out.at);
    }
    for (unsigned n = 0; n < s.operands; n++) free(s.operand[n].expression);
    text_drop(&out);
    return close;
}
