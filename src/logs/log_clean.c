/* SPDX-License-Identifier: Apache-2.0 */
/** log_clean.c - remove the additions of terminals, launchers and schedulers from lines. */
#include "logs/log_make.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- control characters ---- */

/* Colours of terminals and control characters. */
static size_t plain(char *text, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (text[i] == 27 && i + 1 < n && text[i + 1] == '[') {
            for (i += 2; i < n && !isalpha((unsigned char)text[i]); i++) continue;
            continue;
        }
        if (text[i] == '\t')
            text[kept++] = ' ';
        else if ((unsigned char)text[i] >= ' ')
            text[kept++] = text[i];
    }
    text[kept] = 0;
    return kept;
}

/* Decode one escape of JSON behind its backslash into *to; returns its length. */
static size_t unescape(const char *at, char *to)
{
    char code[5] = "";

    *to = *at == 'n' || *at == 't' || *at == 'r' ? ' ' : *at;
    if (*at != 'u' || strspn(at + 1, "0123456789abcdefABCDEF") < 4) return 1;
    memcpy(code, at + 1, 4);
    long c = strtol(code, NULL, 16);

    *to = c >= ' ' && c < 127 ? (char)c : ' ';
    return 5;
}

/* Docker keeps lines as {"log":"...\n","stream":"stdout","time":"..."}. */
static size_t unwrap(char *text)
{
    static const char head[] = "{\"log\":\"";
    char *to = text;

    if (strncmp(text, head, sizeof head - 1)) return strlen(text);
    for (const char *at = text + sizeof head - 1; *at && *at != '"';)
        if (*at == '\\' && !at[1]) /* the line is cut */
            break;
        else if (*at == '\\')
            at += 1 + unescape(at + 1, to++);
        else
            *to++ = *at++;
    *to = 0;
    return (size_t)(to - text);
}

size_t kl_log_clean(char *text, size_t n)
{
    plain(text, n);
    return unwrap(text);
}

/* ---- prefixes ---- */

static size_t digits(const char *at)
{
    return strspn(at, "0123456789");
}

/* "[1,3]<stdout>:", "[2025-06-01 10:00:00]", "[pod/train-0/main]", "[rank0]:" */
static const char *skip_brackets(const char *at)
{
    const char *end = *at == '[' ? strchr(at, ']') : NULL;

    if (!end || end - at > 96) return at;
    end++;
    if (*end == '<' && strchr(end, '>')) end = strchr(end, '>') + 1;
    return end + (*end == ':');
}

/* "3:" of a launcher, in a column of its own. */
static const char *skip_rank(const char *at)
{
    size_t n = digits(at);

    return n && n < 7 && at[n] == ':' && (at[n + 1] == ' ' || !at[n + 1]) ? at + n + 1 : at;
}

/* "2025-06-01T10:00:00.123456789Z", and "stdout F" behind it */
static const char *skip_time(const char *at)
{
    size_t n = digits(at);

    if (n != 4 || at[4] != '-' || digits(at + 5) != 2 || at[7] != '-' || digits(at + 8) != 2) return at;
    at += 10;
    if (*at == 'T' || (*at == ' ' && digits(at + 1) == 2 && at[3] == ':')) at += 1 + strspn(at + 1, "0123456789:.,+-Z");
    at += strspn(at, " ");
    if (!strncmp(at, "stdout ", 7) || !strncmp(at, "stderr ", 7)) at += 7;
    return (*at == 'F' || *at == 'P') && at[1] == ' ' ? at + 2 : at;
}

/* "worker-1  | " */
static const char *skip_service(const char *at)
{
    size_t n = strcspn(at, " |");
    const char *bar = at + n + strspn(at + n, " ");

    return n && n < 64 && isalpha((unsigned char)*at) && bar[0] == '|' && bar[1] == ' ' ? bar + 2 : at;
}

const char *kl_log_skip_prefix(const char *text)
{
    static const char *(*const skips[])(const char *) = {skip_brackets, skip_rank, skip_time, skip_service};

    for (;;) {
        const char *at = text += strspn(text, " ");

        for (size_t i = 0; at == text && i < sizeof skips / sizeof skips[0]; i++) at = skips[i](text);
        if (at == text) return text;
        text = at;
    }
}
