/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/source.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void find_markers(struct source *s);

void source_open(struct source *s, const char *text, size_t bytes, FILE *errors)
{
    *s = (struct source){.tokens = tokens_of(text, bytes), .errors = errors};
    s->edits = must_have(((size_t)s->tokens.count + 1) * sizeof *s->edits);
    find_markers(s);
}

static void free_edit(struct edit *e)
{
    free(e->before);
    free(e->between);
    free(e->instead);
    free(e->after);
}

void source_close(struct source *s)
{
    for (uint32_t i = 0; i < s->tokens.count; i++) free_edit(&s->edits[i]);
    free(s->edits);
    free(s->markers);
    tokens_drop(&s->tokens);
}

/* ---- changes ---- */

void source_drop(struct source *s, uint32_t token)
{
    free_edit(&s->edits[token]);
    s->edits[token] = (struct edit){.dropped = true, .moved = s->edits[token].moved};
}

void source_drop_range(struct source *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) source_drop(s, i);
}

void source_replace(struct source *s, uint32_t token, const char *by)
{
    free(s->edits[token].instead);
    s->edits[token].instead = must_copy(by, strlen(by));
    s->edits[token].dropped = true;
}

static void join(char **to, const char *first, const char *second)
{
    char *both = must_print("%s%s", first ? first : "", second ? second : "");

    free(*to);
    *to = both;
}

void source_enclose(struct source *s, uint32_t first, const char *before, uint32_t last, const char *behind)
{
    join(&s->edits[first].before, before, s->edits[first].before);
    source_after(s, last, behind);
}

bool source_has_moved(const struct source *s, uint32_t token)
{
    return s->edits[token].moved_from < s->edits[token].moved_to;
}

void source_before(struct source *s, uint32_t token, const char *what)
{
    struct edit *e = &s->edits[token];
    const bool has_moved = source_has_moved(s, token);

    join(has_moved ? &e->between : &e->before, has_moved ? e->between : e->before, what);
}

void source_after(struct source *s, uint32_t token, const char *what)
{
    join(&s->edits[token].after, s->edits[token].after, what);
}

void source_move(struct source *s, uint32_t token, const char *before, uint32_t from, uint32_t to, const char *behind)
{
    struct edit *e = &s->edits[token];

    join(&e->before, e->before, before);
    join(&e->between, behind, e->between);
    e->moved_from = from;
    e->moved_to = to;
    for (uint32_t i = from; i < to; i++) s->edits[i].moved = true;
}

/* ---- the result ---- */

/* Pragmas for nvcc mean nothing to other compilers, and some of them say so at length. The largest factor of unrolling is CUB's: it unrolls
 * all of each loop for the registers of GPUs, which costs a compiler for CPUs minutes and gigabytes. */
static bool is_foreign_pragma(const char *line, size_t bytes)
{
    static const char *const words[] = {"unroll", "nounroll", "nv_", "hd_warning_disable", "GCC unroll 65534"};
    const char *end = line + bytes;

    while (line < end && (*line == ' ' || *line == '\t')) line++;
    if (line == end || *line++ != '#') return false;
    while (line < end && (*line == ' ' || *line == '\t')) line++;
    if (end - line < 7 || memcmp(line, "pragma", 6) != 0) return false;
    for (line += 6; line < end && (*line == ' ' || *line == '\t');) line++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - line) >= n && !memcmp(line, words[i], n)) return true;
    }
    return false;
}

static void render_gap(const char *gap, size_t bytes, struct text *out)
{
    while (bytes) {
        const char *newline = memchr(gap, '\n', bytes);
        size_t n = newline ? (size_t)(newline - gap) + 1 : bytes;

        if (!is_foreign_pragma(gap, n))
            text_add(out, gap, n);
        else if (newline)
            text_put(out, "\n");
        gap += n;
        bytes -= n;
    }
}

/* A raw string goes over several lines; those behind it keep their numbers without it. */
static void render_line_ends(const char *token, size_t bytes, struct text *out)
{
    for (size_t i = 0; i < bytes; i++)
        if (token[i] == '\n') text_put(out, "\n");
}

/* One token with its notes; a token that was moved away is written when `there`. */
static void render_token(const struct source *s, uint32_t i, bool there, struct text *out)
{
    const struct edit *e = &s->edits[i];
    const struct token *t = &s->tokens.at[i];

    if (e->moved && !there) return;
    if (e->before) text_put(out, e->before);
    if (source_has_moved(s, i)) source_render_range(s, e->moved_from, e->moved_to, out);
    if (e->between) text_put(out, e->between);
    if (e->instead) text_put(out, e->instead);
    if (e->dropped)
        render_line_ends(s->tokens.text + t->start, t->end - t->start, out);
    else if (!e->instead)
        text_add(out, s->tokens.text + t->start, t->end - t->start);
    if (e->after) text_put(out, e->after);
}

void source_render_range(const struct source *s, uint32_t from, uint32_t to, struct text *out)
{
    for (uint32_t i = from; i < to; i++) {
        render_token(s, i, true, out);
        if (!token_touches(&s->tokens, i)) text_put(out, " ");
    }
}

void source_render(const struct source *s, struct text *out)
{
    size_t at = 0;

    for (uint32_t i = 0; i < s->tokens.count; i++) {
        render_gap(s->tokens.text + at, s->tokens.at[i].start - at, out);
        render_token(s, i, false, out);
        at = s->tokens.at[i].end;
    }
    render_gap(s->tokens.text + at, s->tokens.bytes - at, out);
}

/* ---- errors ---- */

/* `# 12 "file.cu" 2`, or with the word line. False: another directive. */
static bool read_marker(const char *line, const char *end, unsigned long *number, const char **file, size_t *file_bytes)
{
    const char *quote, *close;

    while (line < end && (*line == ' ' || *line == '\t')) line++;
    if (line == end || *line != '#') return false;
    for (line++; line < end && *line == ' ';) line++;
    if (end - line > 5 && !memcmp(line, "line ", 5)) line += 5;
    if (line == end || !isdigit((unsigned char)*line)) return false;
    *number = 0;
    for (; line < end && isdigit((unsigned char)*line); line++) *number = *number * 10 + (unsigned long)(*line - '0');
    quote = memchr(line, '"', (size_t)(end - line));
    close = quote ? memchr(quote + 1, '"', (size_t)(end - quote - 1)) : NULL;
    if (close) {
        *file = quote + 1;
        *file_bytes = (size_t)(close - quote - 1);
    }
    return true;
}

static void add_marker(struct source *s, size_t *room, struct marker m)
{
    if (s->marker_count == *room) {
        *room = *room ? 2 * *room : 256;
        s->markers = must_grow(s->markers, *room * sizeof *s->markers);
    }
    s->markers[s->marker_count++] = m;
}

static void find_markers(struct source *s)
{
    const char *text = s->tokens.text;
    struct marker m = {.line = 1, .file = "input", .file_bytes = strlen("input")};
    size_t room = 0;

    add_marker(s, &room, m);
    for (size_t at = 0; at < s->tokens.bytes; at = m.from) {
        const char *newline = memchr(text + at, '\n', s->tokens.bytes - at);
        size_t end = newline ? (size_t)(newline - text) : s->tokens.bytes;

        m.from = end + 1;
        if (read_marker(text + at, text + end, &m.line, &m.file, &m.file_bytes)) add_marker(s, &room, m);
    }
}

/* The line of `offset` in the original source, and its file. */
static unsigned long line_of(const struct source *s, size_t offset, const char **file, size_t *file_bytes)
{
    const char *text = s->tokens.text, *newline;
    size_t low = 0, high = s->marker_count;
    unsigned long line;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (s->markers[middle].from <= offset)
            low = middle;
        else
            high = middle;
    }
    *file = s->markers[low].file;
    *file_bytes = s->markers[low].file_bytes;
    line = s->markers[low].line;
    for (size_t at = s->markers[low].from; at < offset; at = (size_t)(newline - text) + 1, line++) {
        newline = memchr(text + at, '\n', offset - at);
        if (!newline) break;
    }
    return line;
}

static size_t offset_of(const struct source *s, uint32_t token)
{
    return token < s->tokens.count ? s->tokens.at[token].start : s->tokens.bytes;
}

char *source_place(const struct source *s, uint32_t token)
{
    const char *file;
    size_t bytes;
    unsigned long line = line_of(s, offset_of(s, token), &file, &bytes);

    return must_print("%.*s:%lu", (int)bytes, file, line);
}

char *source_named_place(const struct source *s, uint32_t token)
{
    char *place = source_place(s, token),
         *both = must_print("%s %.*s", place, (int)(s->tokens.at[token].end - s->tokens.at[token].start),
                            s->tokens.text + s->tokens.at[token].start);

    free(place);
    return both;
}

char *source_marker(const struct source *s, uint32_t token)
{
    const char *file;
    size_t bytes;
    unsigned long line = line_of(s, offset_of(s, token), &file, &bytes);

    return must_print("# %lu \"%.*s\"", line, (int)bytes, file);
}

void source_error(struct source *s, uint32_t token, const char *what, ...)
{
    char *place = source_place(s, token);
    va_list args;

    s->failed = true;
    fprintf(s->errors, "%s: error: ", place);
    va_start(args, what);
    vfprintf(s->errors, what, args);
    va_end(args);
    fputc('\n', s->errors);
    free(place);
}

char *source_word(const struct source *s, uint32_t token)
{
    const struct token *t = &s->tokens.at[token];

    return must_copy(s->tokens.text + t->start, t->end - t->start);
}
