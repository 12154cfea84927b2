/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that wait, of objects: `scan.sum(v)`, `Scan<float>(room).sum(v)`, `Scan<float>::sum(v)`. The names of members become the object's:
 * `room[i]` is `scan.room[i]`, also if it is private. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

/* ---- where methods are called ---- */

static bool is_method(const struct expander *x, uint32_t i)
{
    uint32_t open = expand_behind_name(x->k, i);

    return token_is_name(x->k, i) && token_is(x->k, open, "(") && x->k->at[open].partner != NO_TOKEN &&
           method_waits(x->functions, x->k, i) != NO_NAME;
}

/* The object or class from token `i` on, and the method that is called of it. */
struct of {
    struct piece type; /* of an object that is made there, or the class; empty: of a variable */
    uint32_t open;     /* the bracket of its arguments; NO_TOKEN: none */
    uint32_t method;   /* NO_TOKEN: no such call */
};

static struct of read_object(const struct expander *x, uint32_t i)
{
    const struct tokens *k = x->k;
    struct of o = {.open = NO_TOKEN, .method = NO_TOKEN};
    uint32_t at = i;

    if (!token_is_name(k, i) || (i && token_among(k, i - 1, " . -> :: "))) return o;
    while (token_is_name(k, at) && token_is(k, expand_behind_name(k, at), "::")) {
        uint32_t name = expand_behind_name(k, at) + 1;

        if (is_method(x, name)) {
            o.type = (struct piece){i, name - 1};
            o.method = name;
            return o;
        }
        at = name;
    }
    if (!token_is_name(k, at)) return o;
    at = expand_behind_name(k, at);
    if (token_among(k, at, " ( { ") && k->at[at].partner != NO_TOKEN) {
        o.type = (struct piece){i, at};
        o.open = at;
        at = k->at[at].partner + 1;
        if (token_is(k, at, ".") && is_method(x, at + 1)) o.method = at + 1;
        return o;
    }
    while (token_among(k, at, " . -> ") && token_is_name(k, at + 1)) {
        if (is_method(x, at + 1)) {
            o.method = at + 1;
            return o;
        }
        at += 2;
    }
    return o;
}

uint32_t expand_method(const struct expander *x, uint32_t i)
{
    return read_object(x, i).method;
}

/* ---- which class ---- */

/* The type that `using NAME = ...;` or `typedef ... NAME;` gives the name at `i`, before it. */
static bool find_alias(const struct tokens *k, uint32_t i, struct piece *type)
{
    for (uint32_t n = i; n-- > 1;) {
        uint32_t from;

        if (!token_same(k, n, i)) continue;
        if (token_is(k, n - 1, "using") && token_is(k, n + 1, "=")) {
            *type = (struct piece){n + 2, find_outside(k, n, k->count, " ; ")};
            return type->to != NO_TOKEN;
        }
        if (!token_is(k, n + 1, ";")) continue;
        for (from = n; from && !token_among(k, from, " ; { } typedef ");) from--;
        if (!token_is(k, from, "typedef")) continue;
        *type = (struct piece){from + 1, n};
        return true;
    }
    return false;
}

/* A type as the name of a class and its template arguments. */
struct class
{
    uint32_t name; /* NO_TOKEN: not known */
    struct piece arguments;
};

static struct class class_of(const struct tokens *k, struct piece type)
{
    struct class c = {.name = NO_TOKEN};

    for (unsigned round = 0; round < 4; round++) {
        while (token_among(k, type.from, " const typename struct class ")) type.from++;
        for (uint32_t i = type.from; i < type.to && token_is_name(k, i); i = expand_behind_name(k, i) + 1) {
            uint32_t end = expand_behind_name(k, i);

            c.name = i;
            c.arguments = end > i + 1 ? (struct piece){i + 2, end - 1} : (struct piece){end, end};
            if (!token_is(k, end, "::")) break;
        }
        if (c.name == NO_TOKEN || c.arguments.from != c.arguments.to || !find_alias(k, c.name, &type)) break;
    }
    return c;
}

static bool has_bases(const struct tokens *k, const struct function *f)
{
    return find_outside(k, f->class, f->class_open, " : ") != NO_TOKEN;
}

/* The one method of that class that takes so many arguments. Without a class: of all that are no templates. */
static const struct function *find_method(struct expander *x, const struct frame *fr, struct class c, uint32_t i,
                                          unsigned arguments)
{
    const struct tokens *k = x->k;
    const struct function *found = NULL;

    for (size_t at = functions_first(x->functions, k, i); at != NO_NAME; at = x->functions->at[at].same) {
        const struct function *f = &x->functions->at[at];

        if (f->class == NO_TOKEN ||
            (c.name == NO_TOKEN ? f->class_header != NO_TOKEN : !token_same(k, f->class, c.name)))
            continue;
        if (expand_pieces(k, f->open, true) > arguments || expand_pieces(k, f->open, false) < arguments) continue;
        if (found || f->implicit || has_bases(k, f)) return NULL;
        if (find_outside(k, f->statement, f->body, " virtual override final ") != NO_TOKEN) return NULL;
        if (f->space != NO_TOKEN && !(f->space < fr->f->body && fr->f->body < k->at[f->space].partner)) return NULL;
        found = f;
    }
    return found;
}

/* ---- members ---- */

static char *words_of(const struct expander *x, const struct frame *fr, struct piece p)
{
    struct text t = {0};

    expand_type_words(x, fr, p.from, p.to, &t);
    if (!t.at) text_put(&t, "");
    return t.at;
}

/* An object that is made for the call becomes a variable. */
static bool make_object(struct expander *x, struct frame *fr, const struct of *o, struct frame *inner,
                        struct text *before)
{
    struct text arguments = {0};
    char *type = words_of(x, fr, o->type);
    uint32_t close = x->k->at[o->open].partner;
    bool good = expand_expression(x, fr, o->open + 1, close, true, before, &arguments);

    if (o->open + 1 == close)
        text_print(before, "%s __kolo_o%u = {}; ", type, inner->number);
    else
        text_print(before, "%s __kolo_o%u%s%s%s; ", type, inner->number, token_is(x->k, o->open, "(") ? "(" : "{",
                   arguments.at ? arguments.at : "", token_is(x->k, o->open, "(") ? ")" : "}");
    inner->object = must_print("__kolo_o%u.", inner->number);
    text_drop(&arguments);
    free(type);
    return good;
}

bool expand_method_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t *close, struct text *before,
                        struct text *out)
{
    const struct tokens *k = x->k;
    const struct of o = read_object(x, i);
    uint32_t open = expand_behind_name(k, o.method);
    struct frame inner = {.caller = fr, .number = ++x->numbers, .depth = fr->depth + 1};
    struct piece type = o.type, signs;
    struct class c = {.name = NO_TOKEN};

    *close = k->at[open].partner;
    if (type.from != type.to || (o.method == i + 2 && expand_find_type(x, fr, i, &type, &signs))) c = class_of(k, type);
    inner.f = find_method(x, fr, c, o.method, expand_pieces(k, open, false));
    if (!inner.f) return expand_refuse(x, o.method, "a method that waits, and that is not found, or not the only one");
    if (o.open != NO_TOKEN)
        (void)make_object(x, fr, &o, &inner, before);
    else if (type.from == type.to || type.from != i) /* of a variable */
        inner.object = words_of(x, fr, (struct piece){i, o.method});
    inner.class = type.from != type.to ? words_of(x, fr, type) : source_word(&x->source, inner.f->class);
    if (!expand_bind(x, &inner, inner.f->class_header, c.arguments, NO_TOKEN))
        (void)expand_refuse(x, o.method, "a method of a class whose template arguments are not clear");
    return expand_call_of(x, &inner, o.method, open, before, out);
}
