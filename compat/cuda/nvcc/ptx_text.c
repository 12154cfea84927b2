/* SPDX-License-Identifier: Apache-2.0 */
/* One after the other, the instructions of a statement become blocks of C++; labels and jumps become its own. */
#include "compat/cuda/nvcc/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Comments become spaces. */
static char *without_comments(const char *text)
{
    char *copy = must_copy(text, strlen(text));

    for (char *c = copy; *c; c++) {
        char *end = NULL;

        if (c[0] == '/' && c[1] == '/') end = c + strcspn(c, "\n");
        if (c[0] == '/' && c[1] == '*') end = strstr(c + 2, "*/") ? strstr(c + 2, "*/") + 2 : c + strlen(c);
        if (!end) continue;
        memset(c, ' ', (size_t)(end - c));
        c = end - 1;
    }
    return copy;
}

/* The length of `name:` at `c`, 0 if there is no label. */
static size_t label_length(const char *c)
{
    size_t n = isalpha((unsigned char)*c) || (*c && strchr("_$%", *c)) ? 1 : 0;

    while (n && (isalnum((unsigned char)c[n]) || (c[n] && strchr("_$%", c[n])))) n++;
    return n && c[n] == ':' && c[n + 1] != ':' ? n : 0;
}

static size_t find_label(const struct ptx_block *b, const char *name, size_t bytes)
{
    size_t l = 0;

    while (l < b->label_count && (strlen(b->labels[l]) != bytes || memcmp(b->labels[l], name, bytes) != 0)) l++;
    return l;
}

/* Where the instruction at `c` ends: at its semicolon, or at the brace that closes the scope, or with the text. */
static size_t instruction_length(const char *c)
{
    size_t n = 0;

    for (int depth = 0; c[n] && c[n] != ';'; n++) {
        if (c[n] == '{') depth++;
        if (c[n] == '}' && !depth--) break;
    }
    return n;
}

/* The next part of the text: *bytes of a label, an instruction, a brace or a semicolon. False: there is none. */
enum part { PART_LABEL, PART_OPEN, PART_CLOSE, PART_EMPTY, PART_INSTRUCTION };

static bool next_part(const char **at, size_t *bytes, enum part *part)
{
    const char *c = *at;

    while (isspace((unsigned char)*c)) c++;
    *at = c;
    *bytes = 1;
    if (!*c) return false;
    *part = *c == '{' ? PART_OPEN : *c == '}' ? PART_CLOSE : *c == ';' ? PART_EMPTY : PART_INSTRUCTION;
    if (*part != PART_INSTRUCTION) return true;
    *bytes = label_length(c);
    if (*bytes)
        *part = PART_LABEL;
    else
        *bytes = instruction_length(c);
    return true;
}

/* Remember the labels; false if one is there twice. */
static bool read_labels(struct ptx_block *b, const char *text)
{
    enum part part;
    size_t bytes;

    for (const char *c = text; next_part(&c, &bytes, &part); c += bytes + (part == PART_LABEL)) {
        if (part != PART_LABEL) continue;
        if (find_label(b, c, bytes) < b->label_count) return false;
        b->labels = must_grow(b->labels, (b->label_count + 1) * sizeof *b->labels);
        b->labels[b->label_count++] = must_copy(c, bytes);
    }
    return true;
}

/* ---- instructions ---- */

/* The text of an instruction for a message, between quotation marks of C. */
static char *quoted(const char *text, size_t bytes)
{
    struct text out = {0};
    bool space = true;

    text_put(&out, "");
    for (size_t n = 0; n < bytes; n++) {
        unsigned char c = (unsigned char)text[n];

        if (isspace(c) && space) continue;
        space = isspace(c);
        if (c == '"' || c == '\\') text_put(&out, "\\");
        text_add(&out, isprint(c) ? text + n : " ", 1);
    }
    return out.at;
}

static void refuse(struct ptx_block *b, const char *text, size_t bytes)
{
    char *message = quoted(text, bytes);

    text_print(&b->out,
               "void __kolo_refused%u() __attribute__((error(\"no translation to CPUs for the PTX instruction "
               "\\\"%s\\\"\"))); "
               "__kolo_refused%u(); ",
               b->id, message, b->id);
    free(message);
}

/* A backward jump polls: let others run. */
static bool jump(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *name;
    size_t label;

    if (i->operands != 1 || i->operand[0].count != 1 || !ptx_only(i, " uni ")) return false;
    name = i->operand[0].element[0];
    label = find_label(b, name, strlen(name));
    if (label == b->label_count) return false;
    text_print(&b->out, "__kolo::patience(); goto __kolo_l%u_%zu; ", b->id, label);
    return true;
}

static bool translate_one(struct ptx_block *b, const struct ptx_instruction *i)
{
    if (ptx_is(i, "bra")) return jump(b, i);
    return ptx_compare(b, i) || ptx_memory(b, i) || ptx_multimem(b, i) || ptx_warp(b, i) || ptx_compute(b, i);
}

static bool put_guard(struct ptx_block *b, const struct ptx_instruction *i)
{
    char *value = i->guard ? ptx_word_value(b, i->guard, "bool") : NULL;

    if (value) text_print(&b->out, "if (%s%s) ", i->guard_negated ? "!" : "", value);
    free(value);
    return !i->guard || value;
}

static bool do_instruction(struct ptx_block *b, const char *text, size_t bytes)
{
    struct ptx_instruction i;
    size_t start = b->out.bytes;
    bool good = ptx_read(text, bytes, &i) && put_guard(b, &i);

    if (good) {
        text_put(&b->out, "{ ");
        good = translate_one(b, &i);
        if (good) text_put(&b->out, "} ");
    }
    if (!good) { /* nothing of it, but the call that the compiler reports */
        b->out.bytes = start;
        if (b->out.at) b->out.at[start] = 0;
        text_put(&b->out, "{ ");
        refuse(b, text, bytes);
        text_put(&b->out, "} ");
    }
    ptx_drop(&i);
    return good;
}

/* .reg .u32 a, b */
static bool do_declaration(struct ptx_block *b, const char *text, size_t bytes)
{
    char *copy = must_copy(text, bytes);
    bool good = !strncmp(copy, ".reg", 4) && isspace((unsigned char)copy[4]) &&
                ptx_declare(b, copy + 5 + strspn(copy + 5, " \t\n"));

    free(copy);
    if (!good) {
        text_put(&b->out, "{ ");
        refuse(b, text, bytes);
        text_put(&b->out, "} ");
    }
    return good;
}

static void do_scope(struct ptx_block *b, enum part part)
{
    if (part == PART_OPEN) {
        b->scope++;
        text_put(&b->out, "{ ");
    } else if (b->scope) {
        ptx_leave_scope(b);
        text_put(&b->out, "} ");
    }
}

static bool do_part(struct ptx_block *b, enum part part, const char *c, size_t bytes)
{
    if (part == PART_INSTRUCTION) return *c == '.' ? do_declaration(b, c, bytes) : do_instruction(b, c, bytes);
    if (part == PART_LABEL)
        text_print(&b->out, "__kolo_l%u_%zu: __attribute__((unused)); ", b->id, find_label(b, c, bytes));
    else if (part != PART_EMPTY)
        do_scope(b, part);
    return true;
}

static void drop(struct ptx_block *b)
{
    while (b->scope) {
        ptx_leave_scope(b);
        text_put(&b->out, "} ");
    }
    ptx_leave_scope(b);
    free(b->registers);
    while (b->label_count) free(b->labels[--b->label_count]);
    free(b->labels);
}

bool ptx_translate(const char *text, unsigned variables, unsigned id, struct text *out)
{
    struct ptx_block b = {.variables = variables, .id = id};
    char *plain = without_comments(text);
    enum part part;
    size_t bytes;
    bool good = read_labels(&b, plain);

    if (!good) refuse(&b, "a label twice", 13);
    for (const char *c = plain; good && next_part(&c, &bytes, &part); c += bytes + (part == PART_LABEL))
        if (!do_part(&b, part, c, bytes)) good = false;
    drop(&b);
    text_put(out, b.out.at ? b.out.at : "");
    text_drop(&b.out);
    free(plain);
    return good;
}
