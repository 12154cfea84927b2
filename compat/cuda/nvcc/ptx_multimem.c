/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions on multicast objects: multimem.ld_reduce, .st and .red become calls of kolo_cuda/multimem.h. */
#include "compat/cuda/nvcc/ptx.h"

#include <stdlib.h>
#include <string.h>

/* A type's element in C++, its description in multimem.h, and the numbers of elements that it may have. */
static const struct type {
    const char *word, *element, *name, *vectors;
} types[] = {
    {"u32", "uint32_t", "plain<uint32_t>", " v1 "}, {"s32", "int32_t", "plain<int32_t>", " v1 "},
    {"u64", "uint64_t", "plain<uint64_t>", " v1 "}, {"s64", "int64_t", "plain<int64_t>", " v1 "},
    {"b32", "uint32_t", "plain<uint32_t>", " v1 "}, {"b64", "uint64_t", "plain<uint64_t>", " v1 "},
    {"f32", "float", "plain<float>", " v1 v2 v4 "}, {"f64", "double", "plain<double>", " v1 "},
    {"f16", "uint16_t", "f16", " v2 v4 v8 "},       {"f16x2", "uint32_t", "f16x2", " v1 v2 v4 "},
    {"bf16", "uint16_t", "bf16", " v2 v4 v8 "},     {"bf16x2", "uint32_t", "bf16x2", " v1 v2 v4 "},
    {"e4m3", "uint8_t", "e4m3", " v4 v8 "},         {"e4m3x2", "uint16_t", "e4m3x2", " v2 v4 v8 "},
    {"e4m3x4", "uint32_t", "e4m3x4", " v1 v2 v4 "}, {"e5m2", "uint8_t", "e5m2", " v4 v8 "},
    {"e5m2x2", "uint16_t", "e5m2x2", " v2 v4 v8 "}, {"e5m2x4", "uint32_t", "e5m2x4", " v1 v2 v4 "},
};

#define HALVES " f16 f16x2 bf16 bf16x2 "
#define BYTES  " e4m3 e4m3x2 e4m3x4 e5m2 e5m2x2 e5m2x4 "

/* The types of an operation, as ld_reduce and red have it. */
static const struct operation {
    const char *word, *name, *loads, *reduces;
} operations[] = {
    {"add", "add", " u32 s32 u64 f32 f64 " HALVES BYTES, " u32 s32 u64 f32 f64 " HALVES},
    {"min", "min", " u32 s32 u64 s64 " HALVES BYTES, " u32 s32 u64 s64 " HALVES},
    {"max", "max", " u32 s32 u64 s64 " HALVES BYTES, " u32 s32 u64 s64 " HALVES},
    {"and", "and_", " b32 b64 ", " b32 b64 "},
    {"or", "or_", " b32 b64 ", " b32 b64 "},
    {"xor", "xor_", " b32 b64 ", " b32 b64 "},
};

/* An instruction in parts. */
struct parts {
    const struct type *type;
    const struct operation *operation; /* NULL: none */
    const char *order;                 /* NULL: none is said */
    const char *precision;             /* "f32", "f16" or NULL */
    unsigned elements;
};

static bool among(const char *words, const char *word)
{
    char *spaced = must_print(" %s ", word);
    bool found = strstr(words, spaced);

    free(spaced);
    return found;
}

static const struct type *type_of(const char *word)
{
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++)
        if (!strcmp(types[n].word, word)) return &types[n];
    return NULL;
}

static const struct operation *operation_of(const char *word)
{
    for (size_t n = 0; n < sizeof operations / sizeof operations[0]; n++)
        if (!strcmp(operations[n].word, word)) return &operations[n];
    return NULL;
}

/* One word behind multimem.ld_reduce and the like. */
static bool read_word(struct parts *p, const char *word)
{
    const struct type *type = type_of(word);
    const struct operation *operation = operation_of(word);

    if (among(" cta cluster gpu sys global ", word)) return true;
    if (type && !p->type)
        p->type = type;
    else if (operation && !p->operation)
        p->operation = operation;
    else if (among(" weak relaxed acquire release ", word) && !p->order)
        p->order = word;
    else if (among(" acc::f32 acc::f16 ", word) && !p->precision)
        p->precision = word + strlen("acc::");
    else if (among(" v2 v4 v8 ", word) && p->elements == 1)
        p->elements = (unsigned)(word[1] - '0');
    else
        return false;
    return true;
}

static bool read_parts(const struct ptx_instruction *i, struct parts *p)
{
    *p = (struct parts){.elements = 1};
    for (unsigned w = 2; w < i->words; w++)
        if (!read_word(p, i->word[w])) return false;
    if (!p->type) return false;
    char vector[] = {'v', (char)('0' + p->elements), 0};
    return among(p->type->vectors, vector);
}

/* Without a word for it, access is weak, which needs no order. */
static const char *order_of(const struct parts *p)
{
    return p->order && !strcmp(p->order, "acquire")   ? "__kolo::ptx::acquire"
           : p->order && !strcmp(p->order, "release") ? "__kolo::ptx::release"
                                                      : "__kolo::ptx::relaxed";
}

/* Sums of small numbers may have another precision; sums of 8 bits have one in any case. */
static const char *precision_of(const struct parts *p)
{
    if (strcmp(p->operation->word, "add") != 0) return "";
    if (p->precision) return !strcmp(p->precision, "f32") ? "_f32" : "_f16";
    return among(BYTES, p->type->word) ? "_f32" : "";
}

static bool precision_fits(const struct parts *p)
{
    if (!p->precision) return true;
    if (strcmp(p->operation->word, "add") != 0) return false;
    return among(!strcmp(p->precision, "f32") ? HALVES : BYTES, p->type->word);
}

static bool put_copies(struct ptx_block *b, const struct parts *p, const struct ptx_operand *o)
{
    char *value = o->address ? ptx_word_value(b, o->element[0], "uint64_t") : NULL;

    if (value)
        text_print(&b->out, "const __kolo::multimem::copies __kolo_at(%s, %ld, %u * sizeof(%s)); ", value, o->offset,
                   p->elements, p->type->element);
    free(value);
    return value != NULL;
}

/* const T __kolo_each[] = {a, b}; */
static bool put_values(struct ptx_block *b, const struct parts *p, const struct ptx_operand *from)
{
    bool good = true;

    text_print(&b->out, "const %s __kolo_each[] = {", p->type->element);
    for (unsigned n = 0; n < from->count && good; n++) {
        char *value = ptx_word_value(b, from->element[n], p->type->element);

        good = value != NULL;
        if (good) text_print(&b->out, "%s%s", n ? ", " : "", value);
        free(value);
    }
    text_put(&b->out, "}; ");
    return good;
}

static bool is_value(const struct parts *p, const struct ptx_operand *o)
{
    return o->count == p->elements && !o->address && !o->second && !o->negated;
}

static bool do_load(struct ptx_block *b, const struct ptx_instruction *i, const struct parts *p)
{
    const struct ptx_operand *to = &i->operand[0];

    if (!p->operation || !among(p->operation->loads, p->type->word) || !precision_fits(p) || !is_value(p, to) ||
        (p->order && !strcmp(p->order, "release")) || !put_copies(b, p, &i->operand[1]))
        return false;
    text_print(
        &b->out,
        "%s __kolo_each[%u]; __kolo::multimem::load<%s, __kolo::multimem::%s%s<__kolo::multimem::%s>>(__kolo_at, "
        "__kolo_each); ",
        p->type->element, p->elements, order_of(p), p->operation->name, precision_of(p), p->type->name);
    for (unsigned n = 0; n < to->count; n++)
        if (!ptx_put(b, ptx_target(b, to->element[n]), must_print("__kolo_each[%u]", n))) return false;
    return true;
}

static bool do_store(struct ptx_block *b, const struct ptx_instruction *i, const struct parts *p)
{
    if (p->operation || p->precision || !is_value(p, &i->operand[1]) || (p->order && !strcmp(p->order, "acquire")) ||
        !put_copies(b, p, &i->operand[0]) || !put_values(b, p, &i->operand[1]))
        return false;
    text_print(&b->out, "__kolo::multimem::store<%s>(__kolo_at, __kolo_each); ", order_of(p));
    return true;
}

/* The least and the greatest of halves are for vectors alone. */
static bool reduces(const struct parts *p)
{
    if (!p->operation || !among(p->operation->reduces, p->type->word)) return false;
    return p->elements > 1 || strcmp(p->operation->word, "add") == 0 || !among(HALVES, p->type->word);
}

static bool do_reduce(struct ptx_block *b, const struct ptx_instruction *i, const struct parts *p)
{
    if (!reduces(p) || p->precision || !is_value(p, &i->operand[1]) ||
        (p->order && among(" weak acquire ", p->order)) || !put_copies(b, p, &i->operand[0]) ||
        !put_values(b, p, &i->operand[1]))
        return false;
    text_print(&b->out,
               "__kolo::multimem::reduce<%s, __kolo::multimem::%s<__kolo::multimem::%s>>(__kolo_at, __kolo_each); ",
               order_of(p), p->operation->name, p->type->name);
    return true;
}

bool ptx_multimem(struct ptx_block *b, const struct ptx_instruction *i)
{
    struct parts p;

    if (!ptx_is(i, "multimem") || i->words < 3 || i->operands != 2 || !read_parts(i, &p)) return false;
    if (!strcmp(i->word[1], "ld_reduce")) return do_load(b, i, &p);
    if (!strcmp(i->word[1], "st")) return do_store(b, i, &p);
    return !strcmp(i->word[1], "red") && do_reduce(b, i, &p);
}
