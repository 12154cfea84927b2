/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>

enum { LINES_DEPTH = 2 }; /* members at most this deep start on lines of their own */

static void line_break(struct kl_json *j)
{
    if (j->depth > LINES_DEPTH) return;
    fputc('\n', j->to);
    for (int i = 0; i < j->depth; i++) fputc(' ', j->to);
}

static void begin(struct kl_json *j, const char *key)
{
    if (j->more) fputc(',', j->to);
    if (j->depth) line_break(j);
    if (key) fprintf(j->to, "\"%s\": ", key);
    j->more = true;
}

void kl_json_open(struct kl_json *j, const char *key, char bracket)
{
    begin(j, key);
    fputc(bracket, j->to);
    j->depth++;
    j->more = false;
}

void kl_json_close(struct kl_json *j, char bracket)
{
    j->depth--;
    if (j->more && j->depth < LINES_DEPTH) line_break(j);
    fputc(bracket, j->to);
    j->more = true;
    if (!j->depth) fputc('\n', j->to);
}

void kl_json_uint(struct kl_json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->to, "%" PRIu64, value);
}

void kl_json_int(struct kl_json *j, const char *key, int64_t value)
{
    begin(j, key);
    fprintf(j->to, "%" PRId64, value);
}

void kl_json_milli(struct kl_json *j, const char *key, uint64_t thousandths)
{
    begin(j, key);
    fprintf(j->to, "%" PRIu64 ".%03u", thousandths / 1000, (unsigned)(thousandths % 1000));
}

void kl_json_bool(struct kl_json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->to);
}

void kl_json_null(struct kl_json *j, const char *key)
{
    begin(j, key);
    fputs("null", j->to);
}

void kl_json_hex(struct kl_json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->to, "\"0x%" PRIx64 "\"", value);
}

/* ---- strings ---- */

/* Length in bytes of the non-ASCII UTF-8 character at `at`; 0: invalid, or not allowed in strings. */
static int character(const unsigned char *at)
{
    int n = at[0] >= 0xf0 && at[0] < 0xf5   ? 4
            : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
            : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                                            : 0;
    unsigned low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;

    for (int i = 1; i < n; i++) {
        if (at[i] < (i == 1 ? low : 0x80) || at[i] > (i == 1 ? high : 0xbf)) return 0;
    }
    return n;
}

/* Returns how many bytes were consumed. */
static int put_character(FILE *to, const unsigned char *at)
{
    int n = *at < 0x80 ? 1 : character(at);

    if (*at == '"' || *at == '\\')
        fprintf(to, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7f)
        fprintf(to, "\\u%04x", *at);
    else if (n)
        fwrite(at, 1, (size_t)n, to);
    else
        fputs("\\ufffd", to);
    return n ? n : 1;
}

void kl_json_text(struct kl_json *j, const char *key, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    if (!text) {
        kl_json_null(j, key);
        return;
    }
    begin(j, key);
    fputc('"', j->to);
    while (*at) at += put_character(j->to, at);
    fputc('"', j->to);
}
