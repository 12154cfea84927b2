/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static char *trimmed(const char *from, size_t bytes)
{
    while (bytes && isspace((unsigned char)*from)) from++, bytes--;
    while (bytes && isspace((unsigned char)from[bytes - 1])) bytes--;
    return must_copy(from, bytes);
}

/* `p|q` */
static void split_pair(struct ptx_operand *o)
{
    char *bar = strchr(o->element[0], '|');

    if (!bar) return;
    o->second = trimmed(bar + 1, strlen(bar + 1));
    *bar = 0;
    while (bar > o->element[0] && isspace((unsigned char)bar[-1])) *--bar = 0;
}

static bool read_vector(struct ptx_operand *o, const char *from, size_t bytes)
{
    o->vector = true;
    while (o->count < PTX_ELEMENTS) {
        const char *comma = memchr(from, ',', bytes);
        size_t n = comma ? (size_t)(comma - from) : bytes;

        o->element[o->count++] = trimmed(from, n);
        if (!comma) return true;
        from += n + 1;
        bytes -= n + 1;
    }
    return false;
}

/* `%1`, `%1+8`, `%1 + -8` */
static bool read_address(struct ptx_operand *o, const char *from, size_t bytes)
{
    char *word = trimmed(from, bytes), *sign = *word ? strpbrk(word + 1, "+-") : NULL, *end;
    bool good = true;

    o->address = true;
    if (sign) {
        char *digits = sign + (*sign == '+');

        while (isspace((unsigned char)*digits)) digits++;
        o->offset = strtol(digits, &end, 0);
        good = end > digits && !*end;
    }
    o->element[o->count++] = trimmed(word, sign ? (size_t)(sign - word) : strlen(word));
    free(word);
    return good;
}

static bool read_operand(struct ptx_operand *o, const char *from, size_t bytes)
{
    while (bytes && isspace((unsigned char)*from)) from++, bytes--;
    while (bytes && isspace((unsigned char)from[bytes - 1])) bytes--;
    if (!bytes) return false;
    if (*from == '{') return from[bytes - 1] == '}' && read_vector(o, from + 1, bytes - 2);
    if (*from == '[') return from[bytes - 1] == ']' && read_address(o, from + 1, bytes - 2);
    o->negated = *from == '!';
    o->element[o->count++] = trimmed(from + o->negated, bytes - o->negated);
    split_pair(o);
    return true;
}

/* Commas outside of brackets separate operands. */
static bool read_operands(struct ptx_instruction *i, const char *c)
{
    int depth = 0;

    while (isspace((unsigned char)*c)) c++;
    for (const char *start = c; *start; start = c) {
        for (; *c && (depth || *c != ','); c++) {
            if (strchr("[{", *c)) depth++;
            if (strchr("]}", *c)) depth--;
        }
        if (i->operands == PTX_OPERANDS) return false;
        if (!read_operand(&i->operand[i->operands++], start, (size_t)(c - start))) return false;
        if (*c) c++;
    }
    return depth == 0;
}

static char *read_guard(struct ptx_instruction *i, char *c)
{
    size_t n;

    for (c++; isspace((unsigned char)*c); c++) {
    }
    i->guard_negated = *c == '!';
    c += i->guard_negated;
    n = strcspn(c, " \t\n");
    i->guard = trimmed(c, n);
    for (c += n; isspace((unsigned char)*c); c++) {
    }
    return c;
}

bool ptx_read(const char *text, size_t bytes, struct ptx_instruction *i)
{
    char *c, *end;
    bool more;

    *i = (struct ptx_instruction){.copy = trimmed(text, bytes)};
    c = i->copy;
    if (*c == '@') c = read_guard(i, c);
    end = c + strcspn(c, " \t\n");
    more = *end != 0;
    *end = 0;
    for (char *w = c; w; i->words++) {
        char *dot = strchr(w, '.');

        if (i->words == PTX_WORDS) return false;
        if (dot) *dot = 0;
        i->word[i->words] = w;
        w = dot ? dot + 1 : NULL;
    }
    return read_operands(i, more ? end + 1 : "");
}

void ptx_drop(struct ptx_instruction *i)
{
    for (unsigned o = 0; o < i->operands; o++) {
        for (unsigned e = 0; e < i->operand[o].count; e++) free(i->operand[o].element[e]);
        free(i->operand[o].second);
    }
    free(i->guard);
    free(i->copy);
}

/* ---- words ---- */

static const struct {
    const char *ptx, *type;
} types[] = {{"u8", "uint8_t"},    {"s8", "int8_t"},      {"b8", "uint8_t"},     {"u16", "uint16_t"},
             {"s16", "int16_t"},   {"b16", "uint16_t"},   {"u32", "uint32_t"},   {"s32", "int32_t"},
             {"b32", "uint32_t"},  {"u64", "uint64_t"},   {"s64", "int64_t"},    {"b64", "uint64_t"},
             {"f32", "float"},     {"f64", "double"},     {"pred", "bool"},      {"f16", "uint16_t"},
             {"bf16", "uint16_t"}, {"f16x2", "uint32_t"}, {"bf16x2", "uint32_t"}};

const char *ptx_type_of_word(const char *word)
{
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++)
        if (!strcmp(word, types[n].ptx)) return types[n].type;
    return NULL;
}

const char *ptx_type(const struct ptx_instruction *i, unsigned n)
{
    for (unsigned w = 1; w < i->words; w++) {
        const char *type = ptx_type_of_word(i->word[w]);

        if (type && !n--) return type;
    }
    return NULL;
}

unsigned ptx_bits(const char *type)
{
    if (!strcmp(type, "bool")) return 1;
    if (!strcmp(type, "float")) return 32;
    return strstr(type, "8") ? 8 : strstr(type, "16") ? 16 : strstr(type, "32") ? 32 : 64;
}

bool ptx_is(const struct ptx_instruction *i, const char *word)
{
    return i->words && !strcmp(i->word[0], word);
}

bool ptx_has(const struct ptx_instruction *i, const char *word)
{
    for (unsigned w = 1; w < i->words; w++)
        if (!strcmp(i->word[w], word)) return true;
    return false;
}

bool ptx_only(const struct ptx_instruction *i, const char *words)
{
    for (unsigned w = 1; w < i->words; w++) {
        char *spaced = must_print(" %s ", i->word[w]);
        bool known = strstr(words, spaced) || ptx_type_of_word(i->word[w]) || !strncmp(i->word[w], "L1::", 4) ||
                     !strncmp(i->word[w], "L2::", 4);

        free(spaced);
        if (!known) return false;
    }
    return true;
}
