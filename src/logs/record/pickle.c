/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/record/pickle.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_BOX = -1, LONGEST_NUMBER = 64 };

/*
 * A value on the stack or in the memo. Containers have a box, which knows their depth. A container that became part of another
 * one takes no more members: so no value can contain itself, and references are all released.
 */
struct item {
    json_t *value; /* NULL: a mark */
    int box;
};

struct box {
    int depth;
    bool sealed;
};

struct pickle {
    const char *name;
    const unsigned char *bytes;
    size_t n, at, began; /* began: the offset of the current opcode */
    struct item *stack, *memo;
    struct box *box;
    size_t nstack, maxstack, nmemo, maxmemo, nbox, maxbox, puts;
    bool done;
};

/* ---- errors ---- */

static ncclResult_t bad(const struct pickle *p, const char *why)
{
    return KL_FAIL(ncclInvalidUsage, "%s: offset %zu: %s: this is no complete pickle of plain data", p->name, p->began,
                   why);
}

/* ---- memory ---- */

static ncclResult_t reserve(void **list, size_t *max, size_t need, size_t size)
{
    size_t more = *max ? *max : 64;
    void *grown;

    if (need <= *max) return ncclSuccess;
    while (more < need) more *= 2;
    grown = realloc(*list, more * size);
    if (!grown) return KL_NOMEM("a pickle");
    memset((char *)grown + *max * size, 0, (more - *max) * size);
    *list = grown;
    *max = more;
    return ncclSuccess;
}

static ncclResult_t push_item(struct pickle *p, struct item item)
{
    ncclResult_t rc = reserve((void **)&p->stack, &p->maxstack, p->nstack + 1, sizeof *p->stack);

    if (rc)
        json_decref(item.value);
    else
        p->stack[p->nstack++] = item;
    return rc;
}

/* Takes the reference; NULL: jansson refused the value. */
static ncclResult_t push(struct pickle *p, json_t *value)
{
    return value ? push_item(p, (struct item){value, NO_BOX}) : bad(p, "a text that is not UTF-8");
}

static ncclResult_t push_container(struct pickle *p, json_t *value)
{
    if (!value) return KL_NOMEM("a pickle");
    if (p->nbox >= KL_PICKLE_CONTAINERS) {
        json_decref(value);
        return bad(p, "more lists and dictionaries than 2^20");
    }
    ncclResult_t rc = reserve((void **)&p->box, &p->maxbox, p->nbox + 1, sizeof *p->box);

    if (rc) {
        json_decref(value);
        return rc;
    }
    p->box[p->nbox] = (struct box){.depth = 1};
    return push_item(p, (struct item){value, (int)p->nbox++});
}

/* ---- bytes ---- */

static ncclResult_t take(struct pickle *p, size_t n, const unsigned char **from)
{
    *from = p->bytes + p->at;
    if (n > p->n - p->at) return bad(p, "it ends within an opcode");
    p->at += n;
    return ncclSuccess;
}

/* A little-endian number of up to 8 bytes. */
static ncclResult_t take_number(struct pickle *p, size_t n, uint64_t *value)
{
    const unsigned char *from;

    KL_TRY(take(p, n, &from));
    *value = 0;
    for (size_t i = n; i-- > 0;) *value = *value << 8 | from[i];
    return ncclSuccess;
}

/* The rest of a line, as protocol 0 has it. */
static ncclResult_t take_line(struct pickle *p, const char **line, size_t *n)
{
    const unsigned char *start = p->bytes + p->at, *stop = memchr(start, '\n', p->n - p->at);

    *line = (const char *)start;
    *n = stop ? (size_t)(stop - start) : 0;
    if (!stop) return bad(p, "it ends within a line");
    p->at += *n + 1;
    return ncclSuccess;
}

static ncclResult_t take_line_number(struct pickle *p, int64_t *value)
{
    char text[LONGEST_NUMBER], *end;
    const char *line;
    size_t n;

    KL_TRY(take_line(p, &line, &n));
    if (n && line[n - 1] == 'L') n--; /* of LONG */
    if (!n || n >= sizeof text) return bad(p, "a number of no length or too long");
    memcpy(text, line, n);
    text[n] = 0;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *end || errno ? bad(p, "a number beyond 64 bits") : ncclSuccess;
}

/* ---- numbers and texts ---- */

static ncclResult_t push_int(struct pickle *p, size_t n)
{
    uint64_t value;

    KL_TRY(take_number(p, n, &value));
    return push(p, json_integer(n == 4 ? (json_int_t)(int32_t)(uint32_t)value : (json_int_t)value));
}

/* Two's complement of any length. */
static ncclResult_t push_long(struct pickle *p, size_t length_bytes)
{
    const unsigned char *from;
    uint64_t n, value = 0;

    KL_TRY(take_number(p, length_bytes, &n));
    KL_TRY(take(p, n, &from));
    if (n > 8) { /* time stamps of other tools may have a byte for the sign */
        for (uint64_t i = 8; i < n; i++)
            if (from[i] != (from[7] & 0x80 ? 0xff : 0)) return bad(p, "a number beyond 64 bits");
        n = 8;
    }
    for (uint64_t i = n; i-- > 0;) value = value << 8 | from[i];
    if (n && n < 8 && from[n - 1] & 0x80) value |= UINT64_MAX << (8 * n);
    return push(p, json_integer((json_int_t)value));
}

static ncclResult_t push_line_int(struct pickle *p)
{
    size_t at = p->at;
    int64_t value;

    KL_TRY(take_line_number(p, &value));
    if (p->at - at == 3 && p->bytes[at] == '0') return push(p, json_boolean(value)); /* 00 and 01 */
    return push(p, json_integer(value));
}

/* A number that JSON has not becomes null. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static ncclResult_t push_float(struct pickle *p)
{
    const unsigned char *from;
    uint64_t bits = 0;
    double value;

    KL_TRY(take(p, 8, &from));
    for (int i = 0; i < 8; i++) bits = bits << 8 | from[i];
    memcpy(&value, &bits, sizeof value);
    return push(p, real(value));
}

static ncclResult_t push_line_float(struct pickle *p)
{
    char text[LONGEST_NUMBER], *end;
    const char *line;
    size_t n;

    KL_TRY(take_line(p, &line, &n));
    if (!n || n >= sizeof text) return bad(p, "a number of no length or too long");
    memcpy(text, line, n);
    text[n] = 0;
    double value = strtod(text, &end);

    return *end ? bad(p, "a number that is none") : push(p, real(value));
}

static ncclResult_t push_text(struct pickle *p, size_t length_bytes)
{
    const unsigned char *from;
    uint64_t n;

    KL_TRY(take_number(p, length_bytes, &n));
    KL_TRY(take(p, n, &from));
    return push(p, json_stringn((const char *)from, n));
}

/* UNICODE: raw-unicode-escape; escapes stay as they are. */
static ncclResult_t push_line_text(struct pickle *p)
{
    const char *line;
    size_t n;

    KL_TRY(take_line(p, &line, &n));
    return push(p, json_stringn(line, n));
}

/* ---- the stack ---- */

static ncclResult_t need(const struct pickle *p, size_t n)
{
    bool there = p->nstack >= n;

    for (size_t i = 0; there && i < n; i++) there = p->stack[p->nstack - 1 - i].value != NULL;
    return there ? ncclSuccess : bad(p, "an opcode without its operands");
}

static void pop(struct pickle *p)
{
    json_decref(p->stack[--p->nstack].value);
}

/* The index behind the last mark. */
static ncclResult_t find_mark(const struct pickle *p, size_t *first)
{
    *first = 0;
    for (size_t i = p->nstack; i-- > 0;) {
        if (p->stack[i].value) continue;
        *first = i + 1;
        return ncclSuccess;
    }
    return bad(p, "an opcode without its mark");
}

/* `member` becomes part of `owner`. */
static ncclResult_t seal(struct pickle *p, const struct item *owner, const struct item *member)
{
    struct box *in = &p->box[owner->box];

    if (in->sealed) return bad(p, "a container that changes after it became part of another one");
    if (member->box == NO_BOX) return ncclSuccess;
    if (member->box == owner->box) return bad(p, "a container that contains itself");
    p->box[member->box].sealed = true;
    if (p->box[member->box].depth + 1 > in->depth) in->depth = p->box[member->box].depth + 1;
    return in->depth > KL_PICKLE_DEPTH ? bad(p, "containers that are nested too deeply") : ncclSuccess;
}

/* ---- containers ---- */

static ncclResult_t append(struct pickle *p, const struct item *list, const struct item *member)
{
    if (!json_is_array(list->value) || list->box == NO_BOX) return bad(p, "an opcode that needs a list");
    KL_TRY(seal(p, list, member));
    return json_array_append(list->value, member->value) ? KL_NOMEM("a pickle") : ncclSuccess;
}

/* Keys are texts, or numbers. */
static ncclResult_t set_item(struct pickle *p, const struct item *dict, const struct item *key,
                             const struct item *value)
{
    char number[32];

    if (!json_is_object(dict->value) || dict->box == NO_BOX) return bad(p, "an opcode that needs a dictionary");
    if (!json_is_string(key->value) && !json_is_integer(key->value))
        return bad(p, "a key that is neither a text nor a number");
    KL_TRY(seal(p, dict, value));
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(key->value));
    const char *text = json_is_string(key->value) ? json_string_value(key->value) : number;

    return json_object_set(dict->value, text, value->value) ? KL_NOMEM("a pickle") : ncclSuccess;
}

/* Drop the stack from the mark before `first` on. */
static void drop_from_mark(struct pickle *p, size_t first)
{
    while (p->nstack >= first) pop(p);
}

static ncclResult_t appends(struct pickle *p)
{
    size_t first;

    KL_TRY(find_mark(p, &first));
    if (first < 2 || !p->stack[first - 2].value) return bad(p, "an opcode without its list");
    for (size_t i = first; i < p->nstack; i++) KL_TRY(append(p, &p->stack[first - 2], &p->stack[i]));
    drop_from_mark(p, first);
    return ncclSuccess;
}

static ncclResult_t set_items(struct pickle *p)
{
    size_t first;

    KL_TRY(find_mark(p, &first));
    if (first < 2 || !p->stack[first - 2].value) return bad(p, "an opcode without its dictionary");
    if ((p->nstack - first) % 2) return bad(p, "a key without a value");
    for (size_t i = first; i < p->nstack; i += 2)
        KL_TRY(set_item(p, &p->stack[first - 2], &p->stack[i], &p->stack[i + 1]));
    drop_from_mark(p, first);
    return ncclSuccess;
}

/* A new list or tuple of the items from `first` on. */
static ncclResult_t make_list(struct pickle *p, size_t first, bool marked)
{
    KL_TRY(push_container(p, json_array()));
    struct item list = p->stack[p->nstack - 1];

    for (size_t i = first; i + 1 < p->nstack; i++) KL_TRY(append(p, &list, &p->stack[i]));
    p->nstack--;
    while (p->nstack > first - marked) pop(p);
    p->stack[p->nstack++] = list;
    return ncclSuccess;
}

static ncclResult_t make_marked_list(struct pickle *p)
{
    size_t first;

    KL_TRY(find_mark(p, &first));
    return make_list(p, first, true);
}

static ncclResult_t make_tuple(struct pickle *p, size_t n)
{
    KL_TRY(need(p, n));
    return make_list(p, p->nstack - n, false);
}

static ncclResult_t make_dict(struct pickle *p)
{
    size_t first;

    KL_TRY(find_mark(p, &first));
    if ((p->nstack - first) % 2) return bad(p, "a key without a value");
    KL_TRY(push_container(p, json_object()));
    struct item dict = p->stack[p->nstack - 1];

    for (size_t i = first; i + 2 < p->nstack; i += 2) KL_TRY(set_item(p, &dict, &p->stack[i], &p->stack[i + 1]));
    p->nstack--;
    drop_from_mark(p, first);
    p->stack[p->nstack++] = dict;
    return ncclSuccess;
}

/* ---- the memo ---- */

/* Picklers count their entries; an index beyond the bytes read so far is none of theirs. */
static ncclResult_t put(struct pickle *p, uint64_t index)
{
    KL_TRY(need(p, 1));
    if (index > p->at) return bad(p, "a memo with a gap");
    KL_TRY(reserve((void **)&p->memo, &p->maxmemo, (size_t)index + 1, sizeof *p->memo));
    if (index >= p->nmemo) p->nmemo = (size_t)index + 1;
    json_decref(p->memo[index].value);
    p->memo[index] = p->stack[p->nstack - 1];
    json_incref(p->memo[index].value);
    p->puts++;
    return ncclSuccess;
}

static ncclResult_t get(struct pickle *p, uint64_t index)
{
    if (index >= p->nmemo || !p->memo[index].value) return bad(p, "a memo entry that was never set");
    json_incref(p->memo[index].value);
    return push_item(p, p->memo[index]);
}

static ncclResult_t memo_by(struct pickle *p, size_t bytes, ncclResult_t (*use)(struct pickle *, uint64_t))
{
    uint64_t index;

    KL_TRY(take_number(p, bytes, &index));
    return use(p, index);
}

static ncclResult_t memo_by_line(struct pickle *p, ncclResult_t (*use)(struct pickle *, uint64_t))
{
    int64_t index;

    KL_TRY(take_line_number(p, &index));
    return index < 0 ? bad(p, "a memo entry below 0") : use(p, (uint64_t)index);
}

/* ---- opcodes ---- */

enum {
    MARK = '(',
    STOP = '.',
    PROTO = 0x80,
    FRAME = 0x95,
};

/* Opcodes that this reader knows and refuses. */
static const struct {
    unsigned char code;
    const char *name;
} refused[] = {{'c', "GLOBAL"},       {0x93, "STACK_GLOBAL"},
               {'R', "REDUCE"},       {'b', "BUILD"},
               {'i', "INST"},         {'o', "OBJ"},
               {0x81, "NEWOBJ"},      {0x92, "NEWOBJ_EX"},
               {'P', "PERSID"},       {'Q', "BINPERSID"},
               {0x82, "EXT1"},        {0x83, "EXT2"},
               {0x84, "EXT4"},        {'S', "STRING"},
               {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
               {'B', "BINBYTES"},     {'C', "SHORT_BINBYTES"},
               {0x8e, "BINBYTES8"},   {0x96, "BYTEARRAY8"},
               {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
               {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
               {0x91, "FROZENSET"}};

static ncclResult_t refuse(const struct pickle *p, unsigned char code)
{
    const char *name = "unknown";

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].code == code) name = refused[i].name;
    return KL_FAIL(
        ncclInvalidUsage,
        "%s: offset %zu: opcode %s (0x%02x) is refused: only plain data are read from a pickle, and nothing in it "
        "is run",
        p->name, p->began, name, code);
}

static ncclResult_t begin_frame(struct pickle *p, size_t bytes)
{
    uint64_t n;

    KL_TRY(take_number(p, bytes, &n));
    if (bytes == 1 && n > 5) return bad(p, "a protocol beyond 5");
    return ncclSuccess;
}

static ncclResult_t duplicate(struct pickle *p)
{
    KL_TRY(need(p, 1));
    json_incref(p->stack[p->nstack - 1].value);
    return push_item(p, p->stack[p->nstack - 1]);
}

static ncclResult_t append_one(struct pickle *p)
{
    KL_TRY(need(p, 2));
    KL_TRY(append(p, &p->stack[p->nstack - 2], &p->stack[p->nstack - 1]));
    pop(p);
    return ncclSuccess;
}

static ncclResult_t set_one(struct pickle *p)
{
    KL_TRY(need(p, 3));
    KL_TRY(set_item(p, &p->stack[p->nstack - 3], &p->stack[p->nstack - 2], &p->stack[p->nstack - 1]));
    pop(p);
    pop(p);
    return ncclSuccess;
}

static ncclResult_t pop_mark(struct pickle *p)
{
    size_t first;

    KL_TRY(find_mark(p, &first));
    drop_from_mark(p, first);
    return ncclSuccess;
}

static ncclResult_t pop_one(struct pickle *p)
{
    if (!p->nstack) return bad(p, "an opcode without its operands");
    pop(p);
    return ncclSuccess;
}

static ncclResult_t stop(struct pickle *p)
{
    KL_TRY(need(p, 1));
    p->done = true;
    return ncclSuccess;
}

/* Numbers, texts, None. */
static ncclResult_t step_value(struct pickle *p, unsigned char code)
{
    switch (code) {
    case 'N':
        return push(p, json_null());
    case 0x88:
        return push(p, json_true());
    case 0x89:
        return push(p, json_false());
    case 'I':
        return push_line_int(p);
    case 'L':
        return push_line_int(p);
    case 'J':
        return push_int(p, 4);
    case 'K':
        return push_int(p, 1);
    case 'M':
        return push_int(p, 2);
    case 0x8a:
        return push_long(p, 1);
    case 0x8b:
        return push_long(p, 4);
    case 'F':
        return push_line_float(p);
    case 'G':
        return push_float(p);
    case 'V':
        return push_line_text(p);
    case 'X':
        return push_text(p, 4);
    case 0x8c:
        return push_text(p, 1);
    case 0x8d:
        return push_text(p, 8);
    default:
        return refuse(p, code);
    }
}

static ncclResult_t step_container(struct pickle *p, unsigned char code)
{
    switch (code) {
    case ')':
    case ']':
        return push_container(p, json_array());
    case '}':
        return push_container(p, json_object());
    case 't':
    case 'l':
        return make_marked_list(p);
    case 0x85:
        return make_tuple(p, 1);
    case 0x86:
        return make_tuple(p, 2);
    case 0x87:
        return make_tuple(p, 3);
    case 'd':
        return make_dict(p);
    case 'a':
        return append_one(p);
    case 'e':
        return appends(p);
    case 's':
        return set_one(p);
    case 'u':
        return set_items(p);
    default:
        return step_value(p, code);
    }
}

static ncclResult_t step(struct pickle *p, unsigned char code)
{
    switch (code) {
    case PROTO:
        return begin_frame(p, 1);
    case FRAME:
        return begin_frame(p, 8);
    case STOP:
        return stop(p);
    case MARK:
        return push_item(p, (struct item){NULL, NO_BOX});
    case '0':
        return pop_one(p);
    case '1':
        return pop_mark(p);
    case '2':
        return duplicate(p);
    case 'p':
        return memo_by_line(p, put);
    case 'q':
        return memo_by(p, 1, put);
    case 'r':
        return memo_by(p, 4, put);
    case 0x94:
        return put(p, p->puts);
    case 'g':
        return memo_by_line(p, get);
    case 'h':
        return memo_by(p, 1, get);
    case 'j':
        return memo_by(p, 4, get);
    default:
        return step_container(p, code);
    }
}

static ncclResult_t run(struct pickle *p)
{
    while (!p->done) {
        p->began = p->at;
        if (p->at == p->n) return bad(p, "it ends without STOP");
        KL_TRY(step(p, p->bytes[p->at++]));
    }
    return ncclSuccess;
}

ncclResult_t kl_pickle_read(const char *name, const char *bytes, size_t n, json_t **value)
{
    struct pickle p = {.name = name, .bytes = (const unsigned char *)bytes, .n = n};
    ncclResult_t rc = run(&p);

    *value = rc ? NULL : json_incref(p.stack[p.nstack - 1].value);
    while (p.nstack) pop(&p);
    for (size_t i = 0; i < p.nmemo; i++) json_decref(p.memo[i].value);
    free(p.stack);
    free(p.memo);
    free(p.box);
    return rc;
}
