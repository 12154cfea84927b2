/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that wait, or ask for their thread, written where they are called. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8 };

/* The parameters or arguments in a parenthesis. `needed`: only parameters without a default. */
unsigned expand_pieces(const struct tokens *k, uint32_t open, bool needed)
{
    uint32_t at = open + 1, close = k->at[open].partner;
    unsigned n = 0;
    struct piece p;

    if (close == open + 2 && token_is(k, at, "void")) return 0;
    while (next_piece(k, &at, close, &p)) n += !needed || find_outside(k, p.from, p.to, " = ") == NO_TOKEN;
    return n;
}

/* The one function of this name that takes so many arguments, where the kernel sees its namespace. */
static const struct function *find_callee(struct expander *x, const struct frame *fr, uint32_t i, unsigned arguments)
{
    const struct tokens *k = x->k;
    const struct function *found = NULL;

    for (size_t at = call_waits(x->functions, k, i) == NO_NAME ? NO_NAME : functions_first(x->functions, k, i);
         at != NO_NAME; at = x->functions->at[at].same) {
        const struct function *f = &x->functions->at[at];

        if (expand_pieces(k, f->open, true) > arguments || expand_pieces(k, f->open, false) < arguments) continue;
        if (f->class != NO_TOKEN && !(fr->class && f->class_open == fr->f->class_open)) return NULL;
        if (found || f->kernel || f->implicit || !token_same(k, f->name, i)) return NULL;
        if (f->space != NO_TOKEN && !(f->space < fr->f->body && fr->f->body < k->at[f->space].partner)) return NULL;
        if (token_is(k, f->open - 1, ">") || token_is(k, f->name - 1, "::")) return NULL;
        found = f;
    }
    return found;
}

/* The type of the elements of `__shared__ float s[N]`. */
static bool put_shared_type(struct expander *x, const struct frame *fr, uint32_t name, struct text *by)
{
    const struct tokens *k = x->k;

    for (uint32_t i = fr->f->body + 1; i < name; i++) {
        uint32_t from = i;

        if (!token_is_name(k, i) || !token_same(k, i, name) || !token_is(k, i + 1, "[")) continue;
        while (from > fr->f->body && !token_among(k, from, " ; { } __shared__ ")) from--;
        if (!token_is(k, from, "__shared__") || find_outside(k, from, i, " , ( ) * volatile ") != NO_TOKEN) continue;
        expand_type_words(x, fr, from + 1, i, by);
        return true;
    }
    return false;
}

/* The type that the variable points to. */
static bool put_type_behind(struct expander *x, const struct frame *fr, struct piece argument, struct text *by)
{
    const struct tokens *k = x->k;
    struct piece type, signs;

    if (argument.from + 1 != argument.to || !token_is_name(k, argument.from)) return false;
    if (put_shared_type(x, fr, argument.from, by)) return true;
    if (!expand_find_type(x, fr, argument.from, &type, &signs) || !token_is(k, signs.from, "*") ||
        find_outside(k, signs.from + 1, signs.to, " * & && ") != NO_TOKEN)
        return false;
    if (find_outside(k, type.from, type.to, " volatile ") != NO_TOKEN) return false;
    if (find_outside(k, type.from, type.to, " const ") != NO_TOKEN) text_put(by, "const ");
    expand_type_words(x, fr, type.from, type.to, by);
    return true;
}

/* The type that the template parameter `name` has by the argument for a parameter that is `T x`, `const T &x`, `T *x`. */
static bool deduce(struct expander *x, const struct frame *fr, uint32_t name, uint32_t open, struct text *by)
{
    const struct tokens *k = x->k;
    const struct function *f = fr->f;
    uint32_t parameter = f->open + 1, passed = open + 1;
    struct piece q, argument;

    while (open != NO_TOKEN && next_piece(k, &parameter, k->at[f->open].partner, &q) &&
           next_piece(k, &passed, k->at[open].partner, &argument)) {
        uint32_t first = q.from + token_is(k, q.from, "const");

        if (token_same(k, first, name) && token_among(k, first + 1, " & ") == (first + 3 == q.to) &&
            first + 2 + token_is(k, first + 1, "&") == q.to) {
            if (expand_type_of_argument(x, fr->caller, argument, by)) return true;
        } else if (first == q.from && token_same(k, first, name) && token_is(k, first + 1, "*") &&
                   find_outside(k, first + 2, q.to, " * & && [ ") == NO_TOKEN) {
            if (put_type_behind(x, fr->caller, argument, by)) return true;
        }
    }
    return false;
}

bool expand_bind(struct expander *x, struct frame *fr, uint32_t header, struct piece given, uint32_t open)
{
    const struct tokens *k = x->k;
    uint32_t at = header + 1, end;
    struct piece p, argument;

    if (header == NO_TOKEN) return given.from == given.to;
    end = angle_end(k, header);
    if (end == NO_TOKEN) return false;
    while (next_piece(k, &at, end, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = "), name = (assigned == NO_TOKEN ? p.to : assigned) - 1;
        bool type = token_among(k, p.from, " typename class ");
        struct text by = {0};

        if (find_outside(k, p.from, p.to, " ... template ") != NO_TOKEN || !token_is_name(k, name) || name == p.from)
            return false;
        if (!type) text_put(&by, "(");
        if (next_piece(k, &given.from, given.to, &argument)) {
            expand_type_words(x, fr->caller, argument.from, argument.to, &by);
        } else if (!type || !deduce(x, fr, name, open, &by)) {
            if (assigned == NO_TOKEN) {
                text_drop(&by);
                return false;
            }
            expand_type_words(x, fr, assigned + 1, p.to, &by);
        }
        if (!type) text_put(&by, ")");
        expand_rename(fr, name, by.at);
    }
    return true;
}

/* The parameters of the template: given between angles, by default, or from the types of arguments. */
static bool bind_template(struct expander *x, struct frame *fr, uint32_t i, uint32_t open)
{
    const struct function *f = fr->f;
    bool given = token_is(x->k, i + 1, "<");

    if (f->header == NO_TOKEN) return !given;
    if (f->statement + 1 != f->header) return false;
    return expand_bind(x, fr, f->header, given ? (struct piece){i + 2, open - 1} : (struct piece){open, open}, open);
}

/* A parameter becomes a variable; one by reference is the caller's variable itself. */
static bool bind_parameter(struct expander *x, struct frame *fr, struct piece p, struct piece argument, bool by_default,
                           struct text *before, struct text *body)
{
    const struct tokens *k = x->k;
    uint32_t assigned = find_outside(k, p.from, p.to, " = "), end = assigned == NO_TOKEN ? p.to : assigned,
             name = end - 1;
    bool constant = find_outside(k, p.from, end, " const ") != NO_TOKEN,
         reference = find_outside(k, p.from, end, " & && ") != NO_TOKEN;
    struct text value = {0}, type = {0};
    char *by;
    bool good;

    if (find_outside(k, p.from, end, " thread_block_tile ") != NO_TOKEN ||
        (argument.from + 1 == argument.to && expand_is_tile(x, argument.from))) {
        if (argument.from + 1 != argument.to || !expand_is_tile(x, argument.from) || !token_is_name(k, name))
            return false;
        expand_add_tile(x, name);
        return true;
    }
    if (!token_is_name(k, name) || name == p.from || find_outside(k, p.from, end, " ... [ ( ") != NO_TOKEN)
        return false;
    if (reference && !constant) {
        if (argument.from + 1 != argument.to || !token_is_name(k, argument.from) || by_default) return false;
        if (expand_may_declare(k, fr->f, argument.from) && !token_same(k, argument.from, name)) return false;
        const char *other = expand_renamed(x, fr->caller, argument.from);

        by = other ? must_print("%s", other) : source_word(&x->source, argument.from);
        expand_rename(fr, name, by);
        return true;
    }
    good = expand_expression(x, by_default ? fr : fr->caller, argument.from, argument.to, true, before, &value);
    for (uint32_t i = p.from; i < name; i++) {
        const char *other = expand_renamed(x, fr, i);

        if (token_among(k, i, " & && register ")) continue;
        if (other)
            text_put(&type, other);
        else
            expand_word(x, i, &type);
        text_put(&type, " ");
    }
    by =
        must_print("%.*s__kolo%u", (int)(k->at[name].end - k->at[name].start), k->text + k->at[name].start, fr->number);
    text_print(body, "%s%s = %s; ", type.at ? type.at : "", by, value.at ? value.at : "");
    text_drop(&type);
    text_drop(&value);
    expand_rename(fr, name, by);
    return good;
}

/* The function's variables have names of their own: the kernel, and other calls of it, may have the same. */
static void rename_variables(const struct expander *x, struct frame *fr)
{
    const struct tokens *k = x->k;
    uint32_t end = k->at[fr->f->body].partner;

    for (uint32_t i = fr->f->body + 1; i < end; i++) {
        uint32_t stop = find_outside(k, i, end, " ; : "), at;
        struct piece p;

        if (!token_among(k, i - 1, " ; { } ") && !(token_is(k, i - 1, "(") && token_is(k, i - 2, "for"))) continue;
        if (token_among(k, i, " typedef using ") || stop == NO_TOKEN || !declares(k, i, stop)) continue;
        at = type_end(k, i, stop);
        while (next_piece(k, &at, stop, &p)) {
            uint32_t own = p.from;

            while (token_among(k, own, " * & && const __restrict__ __restrict ")) own++;
            if (token_is_name(k, own) && !expand_renamed(x, fr, own))
                expand_rename(fr, own,
                              must_print("%.*s__kolo%u", (int)(k->at[own].end - k->at[own].start),
                                         k->text + k->at[own].start, fr->number));
        }
    }
}

/* The word static of a variable that is not the block's. */
bool expand_is_lasting(const struct tokens *k, uint32_t i)
{
    return token_is(k, i, "static") && !token_is(k, i + 1, "__shared__") && !token_is(k, i - 1, "__shared__");
}

static bool write_function(struct expander *x, struct frame *fr, uint32_t i, uint32_t open, struct text *before,
                           struct text *out)
{
    static const char never[] = " asm __asm__ goto ";
    const struct tokens *k = x->k;
    const struct function *f = fr->f;
    uint32_t at = f->open + 1, passed = open + 1;
    struct text body = {0}, type = {0}, inner = {0};
    struct piece p, argument;
    bool good = true;

    for (uint32_t n = f->body; n < k->at[f->body].partner; n++)
        if (token_among(k, n, never) || expand_is_lasting(k, n))
            return expand_refuse(x, n, "a function that cannot stand in the kernel");
    if (!bind_template(x, fr, i, open)) return expand_refuse(x, i, "a function whose template arguments are not clear");
    while (good && expand_pieces(k, f->open, false) && next_piece(k, &at, k->at[f->open].partner, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = ");
        bool by_default = !next_piece(k, &passed, k->at[open].partner, &argument);

        if (by_default) argument = (struct piece){assigned + 1, p.to};
        if (!bind_parameter(x, fr, p, argument, by_default, before, &body))
            good = expand_refuse(x, p.from < p.to ? p.to - 1 : i,
                                 "a function with a parameter of a shape that is not known");
    }
    rename_variables(x, fr);
    if (f->class != NO_TOKEN) good = good && expand_members(x, fr);
    good = good && expand_check_names(x, fr);
    expand_find_returns(x, fr);
    expand_type_words(x, fr, f->from, f->name, &type);
    fr->returns = type.at && strcmp(type.at, "void ") != 0;
    if (fr->returns && (!type.at || strstr(type.at, "auto ") || strchr(type.at, '&')))
        good = expand_refuse(x, f->name, "a function whose type is not clear");
    if (good) good = expand_sequence(x, fr, f->body + 1, k->at[f->body].partner, &inner);
    if (fr->returns) {
        text_print(before, "%s __kolo_r%u; ", type.at, fr->number);
        text_print(out, "__kolo_r%u", fr->number);
    }
    text_put(before, "{ ");
    if (fr->notes) text_print(before, "int __kolo_d%u = 0; (void)__kolo_d%u; ", fr->number, fr->number);
    text_print(before, "%s%s} ", body.at ? body.at : "", inner.at ? inner.at : "");
    text_drop(&body);
    text_drop(&type);
    text_drop(&inner);
    return good;
}

static void drop_frame(struct frame *fr)
{
    for (size_t r = 0; r < fr->count; r++) free(fr->renames[r].by);
    free(fr->renames);
    free(fr->object);
    free(fr->class);
}

bool expand_call_of(struct expander *x, struct frame *inner, uint32_t i, uint32_t open, struct text *before,
                    struct text *out)
{
    bool good = !x->why;

    if (good && inner->depth > DEPTH) good = expand_refuse(x, i, "functions that wait, too deep in each other");
    for (const struct frame *other = inner->caller; other && good; other = other->caller)
        if (other->f == inner->f) good = expand_refuse(x, i, "a function that calls itself");
    good = good && write_function(x, inner, i, open, before, out);
    drop_frame(inner);
    return good;
}

bool expand_function_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t open, struct text *before,
                          struct text *out)
{
    const struct function *callee = find_callee(x, fr, i, expand_pieces(x->k, open, false));
    struct frame inner = {.f = callee, .caller = fr, .number = ++x->numbers, .depth = fr->depth + 1};

    if (!callee)
        return expand_refuse(x, i, "a function that waits, and that is not found, or not the only one of its name");
    if (callee->class != NO_TOKEN && !expand_inherit(x, fr, &inner))
        return expand_refuse(x, i, "a method without an object");
    return expand_call_of(x, &inner, i, open, before, out);
}
