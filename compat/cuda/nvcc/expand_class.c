/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that wait, of objects: `scan.sum(v)`, `Scan<float>(room).sum(v)`, `Scan<float>::sum(v)`. The names of members become the object's:
 * `room[i]` is `scan.room[i]`, also if it is private. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

/* ---- where methods are called ---- */

/* Past the name at `i` and its template arguments. */
static uint32_t behind_name(const struct tokens *k, uint32_t i)
{
    uint32_t close = token_is(k, i + 1, "<") ? angle_end(k, i + 1) : NO_TOKEN;

    return close == NO_TOKEN ? i + 1 : close + 1;
}

static bool is_method(const struct expander *x, uint32_t i)
{
    uint32_t open = behind_name(x->k, i);

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
    while (token_is_name(k, at) && token_is(k, behind_name(k, at), "::")) {
        uint32_t name = behind_name(k, at) + 1;

        if (is_method(x, name)) {
            o.type = (struct piece){i, name - 1};
            o.method = name;
            return o;
        }
        at = name;
    }
    if (!token_is_name(k, at)) return o;
    at = behind_name(k, at);
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

/* What `using NAME = ...;` or `typedef ... NAME;` says of the name at `i`, before it. */
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
        for (uint32_t i = type.from; i < type.to && token_is_name(k, i); i = behind_name(k, i) + 1) {
            uint32_t end = behind_name(k, i);

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

static void rename_member(const struct expander *x, struct frame *fr, uint32_t name, bool type, bool lasting)
{
    const struct tokens *k = x->k;
    const char *word = k->text + k->at[name].start;
    int bytes = (int)(k->at[name].end - k->at[name].start);

    if (expand_renamed(x, fr, name)) return; /* a parameter or a variable of the method */
    if (type || lasting || !fr->object)
        expand_rename(fr, name, must_print("%s%s::%.*s", type ? "typename " : "", fr->class, bytes, word));
    else
        expand_rename(fr, name, must_print("%s%.*s", fr->object, bytes, word));
}

/* `struct Room { ... };`, `enum { N = 4 };` from `i` on; past it. */
static uint32_t read_nested(const struct expander *x, struct frame *fr, uint32_t i, uint32_t brace, uint32_t close)
{
    const struct tokens *k = x->k;
    uint32_t end = k->at[brace].partner, word = i + 1 + token_is(k, i + 1, "class");

    if (word < brace && token_is_name(k, word)) rename_member(x, fr, word, true, true);
    for (uint32_t n = brace + 1; token_is(k, i, "enum") && n < end; n++)
        if (token_is_name(k, n) && token_among(k, n - 1, " { , ")) rename_member(x, fr, n, false, true);
    end = find_outside(k, end + 1, close, " ; ");
    return end == NO_TOKEN ? close : end + 1;
}

/* The brace of a function, past the initial values of a constructor. */
static uint32_t body_behind(const struct tokens *k, uint32_t parameters, uint32_t close)
{
    uint32_t i = k->at[parameters].partner + 1;

    if (find_outside(k, i, close, " ; { : ") != NO_TOKEN && token_is(k, find_outside(k, i, close, " ; { : "), ":"))
        for (i = find_outside(k, i, close, " : ") + 1; i < close && !token_is(k, i, "{");) {
            i = behind_name(k, i);
            if (token_among(k, i, " ( { ") && k->at[i].partner != NO_TOKEN) i = k->at[i].partner + 1;
            if (!token_is(k, i, ",")) break;
            i++;
        }
    return find_outside(k, i, close, " ; { ");
}

static void read_variables(const struct expander *x, struct frame *fr, uint32_t i, uint32_t end, bool lasting)
{
    const struct tokens *k = x->k;
    uint32_t at = type_end(k, i, end);
    struct piece p;

    while (at > i && next_piece(k, &at, end, &p)) {
        while (token_among(k, p.from, " * & && const __restrict__ __restrict ")) p.from++;
        if (token_is_name(k, p.from)) rename_member(x, fr, p.from, false, lasting);
    }
}

/* The declaration at `i`; past it. */
static uint32_t read_member(const struct expander *x, struct frame *fr, uint32_t i, uint32_t close)
{
    static const char before_types[] =
        " static mutable inline __device__ __host__ __forceinline__ __inline__ explicit ";
    const struct tokens *k = x->k;
    uint32_t end, parameters, header, from = skip_template_headers(k, i, close, &header);
    bool lasting = false;

    for (; token_among(k, from, before_types); from++) lasting |= token_is(k, from, "static");
    end = find_outside(k, from, close, " ; { ");
    if (end == NO_TOKEN) return close;
    if (token_among(k, from, " struct class union enum ") && token_is(k, end, "{"))
        return read_nested(x, fr, from, end, close);
    parameters = token_among(k, from, " using typedef friend ") ? NO_TOKEN : parameters_of(k, from, end);
    if (parameters != NO_TOKEN && k->at[parameters].partner != NO_TOKEN) {
        if (token_is_name(k, parameters - 1) && !token_same(k, parameters - 1, fr->f->class) &&
            find_outside(k, from, parameters, " operator ~ ") == NO_TOKEN)
            rename_member(x, fr, parameters - 1, false, lasting);
        end = body_behind(k, parameters, close);
        if (end == NO_TOKEN) return close;
        return token_is(k, end, "{") ? k->at[end].partner + 1 : end + 1;
    }
    if (token_is(k, end, "{")) end = find_outside(k, end, close, " ; "); /* int n{4}; */
    if (end == NO_TOKEN) return close;
    if (token_is(k, from, "using"))
        rename_member(x, fr, from + 1, true, true);
    else if (token_is(k, from, "typedef"))
        rename_member(x, fr, end - 1, true, true);
    else
        read_variables(x, fr, from, end, lasting || find_outside(k, from, end, " constexpr ") != NO_TOKEN);
    return end + 1;
}

bool expand_members(struct expander *x, struct frame *fr)
{
    const struct tokens *k = x->k;
    uint32_t close = k->at[fr->f->class_open].partner;

    for (uint32_t i = fr->f->body; i < k->at[fr->f->body].partner; i++)
        if (token_is(k, i, "this") && !(token_is(k, i + 1, "->") && fr->object))
            return expand_refuse(x, i, "a method that needs its object as a whole");
    for (uint32_t i = fr->f->class_open + 1; i < close;) {
        if (token_among(k, i, " public private protected ") && token_is(k, i + 1, ":"))
            i += 2;
        else if (token_is(k, i, ";"))
            i++;
        else
            i = read_member(x, fr, i, close);
    }
    x->methods = true;
    return true;
}

/* ---- calls ---- */

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
    uint32_t open = behind_name(k, o.method);
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

bool expand_inherit(const struct expander *x, const struct frame *fr, struct frame *inner)
{
    const struct tokens *k = x->k;
    uint32_t header = inner->f->class_header, at = header + 1,
             end = header == NO_TOKEN ? NO_TOKEN : angle_end(k, header);
    struct piece p;

    if (!fr->class || fr->f->class_open != inner->f->class_open) return false;
    inner->object = fr->object ? must_print("%s", fr->object) : NULL;
    inner->class = must_print("%s", fr->class);
    while (end != NO_TOKEN && next_piece(k, &at, end, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = "), name = (assigned == NO_TOKEN ? p.to : assigned) - 1;
        const char *by = expand_renamed(x, fr, name);

        if (by) expand_rename(inner, name, must_print("%s", by));
    }
    return true;
}
