/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/lex.h"
#include "compat/cuda/nvcc/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
    const char *text;
    size_t bytes, at;
    struct tokens *out;
    size_t room;
};

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_name_part(char c)
{
    return is_name_start(c) || isdigit((unsigned char)c);
}

static char peek(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->bytes ? l->text[l->at + ahead] : 0;
}

static void add(struct lexer *l, size_t start, enum token_kind kind)
{
    if (l->out->count == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        l->out->at = must_grow(l->out->at, l->room * sizeof *l->out->at);
    }
    l->out->at[l->out->count++] = (struct token){(uint32_t)start, (uint32_t)l->at, NO_TOKEN, NO_TOKEN, (uint8_t)kind};
}

/* ---- text between tokens ---- */

static void skip_line(struct lexer *l)
{
    while (l->at < l->bytes && l->text[l->at] != '\n') {
        if (l->text[l->at] == '\\' && peek(l, 1) == '\n') l->at++;
        l->at++;
    }
}

static void skip_comment(struct lexer *l)
{
    const char *end;

    l->at += 2;
    end = memmem(l->text + l->at, l->bytes - l->at, "*/", 2);
    l->at = end ? (size_t)(end - l->text) + 2 : l->bytes;
}

static bool at_line_start(const struct lexer *l)
{
    size_t i = l->at;

    while (i && (l->text[i - 1] == ' ' || l->text[i - 1] == '\t')) i--;
    return !i || l->text[i - 1] == '\n';
}

static bool skip_gap(struct lexer *l)
{
    char c = peek(l, 0);

    if (isspace((unsigned char)c) || !c) {
        l->at++;
        return true;
    }
    if (c == '\\' && peek(l, 1) == '\n') {
        l->at += 2;
        return true;
    }
    if ((c == '#' && at_line_start(l)) || (c == '/' && peek(l, 1) == '/')) {
        skip_line(l);
        return true;
    }
    if (c == '/' && peek(l, 1) == '*') {
        skip_comment(l);
        return true;
    }
    return false;
}

/* ---- tokens ---- */

static void skip_quoted(struct lexer *l, char quote)
{
    for (l->at++; l->at < l->bytes; l->at++) {
        if (l->text[l->at] == '\\')
            l->at++;
        else if (l->text[l->at] == quote || l->text[l->at] == '\n')
            break;
    }
    l->at = l->at < l->bytes ? l->at + 1 : l->bytes;
}

/* R"delimiter( ... )delimiter" */
static void skip_raw(struct lexer *l)
{
    const char *open = memchr(l->text + l->at, '(', l->bytes - l->at), *end;
    char closing[20];
    size_t n;

    l->at++;
    n = open ? (size_t)(open - (l->text + l->at)) : 17;
    if (n > 16) return;
    closing[0] = ')';
    memcpy(closing + 1, l->text + l->at, n);
    closing[n + 1] = '"';
    end = memmem(open, l->bytes - (size_t)(open - l->text), closing, n + 2);
    l->at = end ? (size_t)(end - l->text) + n + 2 : l->bytes;
}

/* A name that is the prefix of a literal: u8"", LR"()", L'' */
static bool is_prefix(const struct lexer *l, size_t start)
{
    static const char *const prefixes[] = {"R", "L", "u", "U", "u8", "LR", "uR", "UR", "u8R"};
    size_t n = l->at - start;

    if (peek(l, 0) != '"' && peek(l, 0) != '\'') return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strlen(prefixes[i]) == n && !memcmp(prefixes[i], l->text + start, n)) return true;
    return false;
}

static void take_literal(struct lexer *l, size_t start)
{
    char quote = peek(l, 0);

    if (quote == '"' && l->at > start && l->text[l->at - 1] == 'R')
        skip_raw(l);
    else
        skip_quoted(l, quote);
    add(l, start, quote == '"' ? TOKEN_STRING : TOKEN_CHARACTER);
}

static void take_name(struct lexer *l)
{
    size_t start = l->at;

    while (l->at < l->bytes && is_name_part(l->text[l->at])) l->at++;
    if (is_prefix(l, start))
        take_literal(l, start);
    else
        add(l, start, TOKEN_NAME);
}

static void take_number(struct lexer *l)
{
    size_t start = l->at;

    for (l->at++; l->at < l->bytes; l->at++) {
        char c = l->text[l->at], before = l->text[l->at - 1];

        if (c == '\'' && is_name_part(peek(l, 1))) continue;
        if ((c == '+' || c == '-') && strchr("eEpP", before) &&
            !(before == 'E' && l->at - start > 1 && l->text[start + 1] == 'x'))
            continue;
        if (!is_name_part(c) && c != '.') break;
    }
    add(l, start, TOKEN_NUMBER);
}

static void take_sign(struct lexer *l)
{
    static const char *const longer[] = {"...", "->*", "::", "->", "==", "!=", "<=", ">=", "&&", "||", "++",
                                         "--",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##"};
    size_t start = l->at, n = 1;

    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        size_t bytes;

        if (*longer[i] != l->text[l->at]) continue;
        bytes = strlen(longer[i]);
        if (bytes <= l->bytes - l->at && !memcmp(longer[i], l->text + l->at, bytes)) {
            n = bytes;
            break;
        }
    }
    l->at += n;
    add(l, start, TOKEN_SIGN);
}

static void take_token(struct lexer *l)
{
    char c = peek(l, 0);

    if (is_name_start(c))
        take_name(l);
    else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(l, 1))))
        take_number(l);
    else if (c == '"' || c == '\'')
        take_literal(l, l->at);
    else
        take_sign(l);
}

/* ---- pairs ---- */

static char closing_of(char open)
{
    return open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : 0;
}

static void pair_brackets(struct tokens *t)
{
    uint32_t *open = must_have(((size_t)t->count + 1) * sizeof *open), depth = 0;

    for (uint32_t i = 0; i < t->count; i++) {
        char c = t->text[t->at[i].start];

        if (depth) t->at[i].around = open[depth - 1];
        if (t->at[i].kind != TOKEN_SIGN) continue;
        if (closing_of(c)) {
            open[depth++] = i;
        } else if (depth && c == closing_of(t->text[t->at[open[depth - 1]].start])) {
            t->at[i].partner = open[--depth];
            t->at[open[depth]].partner = i;
        }
    }
    free(open);
}

struct tokens tokens_of(const char *text, size_t bytes)
{
    struct tokens t = {.text = text, .bytes = bytes > INT32_MAX ? INT32_MAX : bytes};
    struct lexer l = {.text = text, .bytes = t.bytes, .out = &t};

    while (l.at < l.bytes)
        if (!skip_gap(&l)) take_token(&l);
    pair_brackets(&t);
    return t;
}

void tokens_drop(struct tokens *t)
{
    free(t->at);
    *t = (struct tokens){0};
}

/* ---- questions ---- */

/* Nearly all comparisons end at the first character. */
bool token_is(const struct tokens *t, uint32_t i, const char *word)
{
    const char *at;
    size_t n;

    if (i >= t->count) return false;
    at = t->text + t->at[i].start;
    if (*at != *word) return false;
    n = t->at[i].end - t->at[i].start;
    return !strncmp(at, word, n) && !word[n];
}

bool token_is_name(const struct tokens *t, uint32_t i)
{
    return i < t->count && t->at[i].kind == TOKEN_NAME;
}

bool token_among(const struct tokens *t, uint32_t i, const char *words)
{
    const char *at;
    size_t n;

    if (i >= t->count) return false;
    at = t->text + t->at[i].start;
    n = t->at[i].end - t->at[i].start;
    for (const char *w = words + 1; (w = strchr(w, *at)); w++)
        if (w[-1] == ' ' && !strncmp(w, at, n) && w[n] == ' ') return true;
    return false;
}

bool token_same(const struct tokens *t, uint32_t a, uint32_t b)
{
    uint32_t n = t->at[a].end - t->at[a].start;

    return t->at[b].end - t->at[b].start == n && !memcmp(t->text + t->at[a].start, t->text + t->at[b].start, n);
}

bool token_touches(const struct tokens *t, uint32_t i)
{
    return i + 1 < t->count && t->at[i].end == t->at[i + 1].start;
}

/* `<<` or `>>` at `i`: no template argument begins with `<`. */
static bool is_pair(const struct tokens *t, uint32_t i, const char *sign)
{
    return token_is(t, i, sign) && token_touches(t, i) && token_is(t, i + 1, sign);
}

/* The header of a template may give values to its parameters; arguments assign nothing. */
static bool is_header(const struct tokens *t, uint32_t i)
{
    return i && (!token_is_name(t, i - 1) || token_is(t, i - 1, "template"));
}

static bool assigns(const struct tokens *t, uint32_t i)
{
    return token_among(t, i, " = += -= *= /= %= &= |= ^= ");
}

uint32_t angle_end(const struct tokens *t, uint32_t i)
{
    const bool header = is_header(t, i);
    uint32_t depth = 0;

    if (is_pair(t, i, "<")) return NO_TOKEN;
    for (; i < t->count; i++) {
        if (is_pair(t, i, "<")) {
            i++;
        } else if (token_is(t, i, "<")) {
            depth++;
        } else if (token_is(t, i, ">")) {
            if (--depth == 0) return i;
        } else if (token_among(t, i, " ( [ { ")) {
            if (t->at[i].partner == NO_TOKEN) return NO_TOKEN;
            i = t->at[i].partner;
        } else if (token_among(t, i, " ; ) ] } ") || (!header && assigns(t, i))) {
            return NO_TOKEN;
        }
    }
    return NO_TOKEN;
}

uint32_t angle_begin(const struct tokens *t, uint32_t i)
{
    uint32_t depth = 0;
    bool assigned = false;

    for (; i != NO_TOKEN; i--) {
        if (token_is(t, i, ">")) {
            depth++;
        } else if (i && is_pair(t, i - 1, "<") && !(i > 1 && is_pair(t, i - 2, "<")) && !is_pair(t, i, "<")) {
            i--; /* a shift; a launch has three */
        } else if (token_is(t, i, "<")) {
            if (--depth == 0) return assigned && !is_header(t, i) ? NO_TOKEN : i;
        } else if (token_among(t, i, " ) ] } ")) {
            if (t->at[i].partner == NO_TOKEN) return NO_TOKEN;
            i = t->at[i].partner;
        } else if (token_among(t, i, " ; ( [ { ")) {
            return NO_TOKEN;
        } else {
            assigned |= assigns(t, i);
        }
    }
    return NO_TOKEN;
}
