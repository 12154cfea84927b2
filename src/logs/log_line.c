/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/log_make.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    enum kl_log_level level;
} levels[] = {{"NCCL INFO ", KL_LOG_INFO}, {"NCCL WARN ", KL_LOG_WARN}, {"NCCL TRACE ", KL_LOG_TRACE}};

enum { LEVELS = sizeof levels / sizeof levels[0] };

/* The first of the words that stand between prefix and text; `level` is its index. */
static char *find_level(char *text, int *level)
{
    char *first = NULL;

    for (int i = 0; i < LEVELS; i++) {
        char *found = strstr(text, levels[i].word);

        if (!found || (first && found > first)) continue;
        first = found;
        *level = i;
    }
    return first;
}

/* ---- prefixes, from the right to the left ---- */

/* The word that ends before *end, which moves to its start. */
static size_t last_word(const char *start, const char **end)
{
    const char *at = *end;

    while (at > start && isspace((unsigned char)at[-1])) at--;
    const char *stop = at;

    while (at > start && !isspace((unsigned char)at[-1])) at--;
    *end = at;
    return (size_t)(stop - at);
}

/* "misc/socket.cc:537", "graph/xml.h:", of plugins also "ofi_process_cq:1039". A host and its process have two colons. */
static bool is_source(const char *word, size_t n)
{
    const char *dot = memchr(word, '.', n), *colon = memchr(word, ':', n);
    size_t name = colon ? (size_t)(colon - word) : 0, digits = 0;

    while (name && name + 1 + digits < n && isdigit((unsigned char)word[name + 1 + digits])) digits++;
    if (!name || name + 1 + digits != n || !isalpha((unsigned char)*word)) return false;
    return digits || (dot && dot < colon && colon - dot <= 4);
}

/* "(ncclSocketInit)" */
static bool is_function(const char *word, size_t n)
{
    return n > 2 && word[0] == '(' && word[n - 1] == ')' && (isalpha((unsigned char)word[1]) || word[1] == '_');
}

/* ":123" at the end of a word of n bytes; n becomes the length before it. */
static bool take_number(const char *word, size_t *n, long *value)
{
    size_t at = *n;

    while (at && isdigit((unsigned char)word[at - 1])) at--;
    if (at == *n || *n - at > 12 || !at || word[at - 1] != ':') return false;
    *value = strtol(word + at, NULL, 10);
    *n = at - 1;
    return true;
}

/* "host:pid:tid", perhaps behind a prefix of a scheduler: "[1,0]<stdout>:", "3:". */
static bool take_origin(const char *word, size_t n, struct kl_log_line *line)
{
    size_t first;
    long thread;

    if (!take_number(word, &n, &thread) || !take_number(word, &n, &line->pid)) return false;
    for (first = n; first && !strchr(":<>]", word[first - 1]); first--) continue;
    if (first == n) return false;
    snprintf(line->host, sizeof line->host, "%.*s", (int)(n - first), word + first);
    return true;
}

/* "[0]" */
static bool take_device(const char *word, size_t n, int *dev)
{
    const char *at = word + 1;

    return n > 2 && word[0] == '[' && word[n - 1] == ']' && kl_log_int(&at, dev) && *at == ']';
}

/* Parse the prefix that ends at `end` into `line`; returns its start. */
static const char *read_prefix(const char *start, const char *end, struct kl_log_line *line)
{
    const char *at = end, *begin = end, *source = end;
    size_t n = last_word(start, &at), all = n;

    if (is_function(at, n)) {
        const char *stop = at + n;

        n = last_word(start, &at);
        all = (size_t)(stop - at);
    }
    source = at;
    if (n && is_source(source, n)) {
        snprintf(line->where, sizeof line->where, "%.*s", (int)(all < 120 ? all : 120), source);
        begin = source;
        n = last_word(start, &at);
    } else if (all != n) { /* a word in parentheses that belongs to something else */
        at = end;
        n = last_word(start, &at);
    }
    if (!n || !take_device(at, n, &line->dev)) return begin;
    begin = at;
    n = last_word(start, &at);
    return n && take_origin(at, n, line) ? at : begin;
}

/* "n0[1] text": logs that were shortened. */
static void read_short_prefix(struct kl_log_line *line)
{
    const char *at = line->text;
    size_t n = strcspn(at, "[ \t:=");

    if (!n || n >= sizeof line->host || at[n] != '[' || !isalpha((unsigned char)*at)) return;
    const char *dev = at + n + 1;

    if (!kl_log_int(&dev, &line->dev) || *dev != ']' || dev[1] != ' ') {
        line->dev = -1;
        return;
    }
    memcpy(line->host, at, n);
    line->host[n] = 0;
    line->level = KL_LOG_INFO;
    line->text = dev + 2;
}

/* Another process may have written into the line: cut it there. */
static void cut_next(char *text, struct kl_log_line *line)
{
    int level;
    char *next = find_level(text, &level);
    struct kl_log_line other = {.dev = -1};

    if (!next) return;
    const char *begin = read_prefix(text, next, &other);

    if (!*other.host || begin == text) return;
    line->more = next - (next - begin);
}

/* "libfabric:35:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, ...": process, time, host, source. */
static void read_libfabric(char *text, struct kl_log_line *line)
{
    static const char head[] = "libfabric:";
    char *at = strstr(text, head), *level = at ? strchr(at, '<') : NULL, *end = level ? strchr(level, '>') : NULL;

    if (!end || end - level > 12) return;
    line->pid = strtol(at + sizeof head - 1, NULL, 10);
    const char *source = at + sizeof head - 1;

    for (int colons = 0; colons < 3 && source < level; source++) colons += *source == ':';
    snprintf(line->where, sizeof line->where, "libfabric %.*s", (int)(level - source < 100 ? level - source : 100),
             source);
    line->level = !strncmp(level, "<warn", 5) || !strncmp(level, "<crit", 5) ? KL_LOG_WARN : KL_LOG_INFO;
    line->text = end + 1 + strspn(end + 1, " ");
}

void kl_log_line_read(char *text, struct kl_log_line *line)
{
    int level = 0;
    char *found = find_level(text, &level);
    struct kl_log_at at = line->at;

    *line = (struct kl_log_line){.at = at, .pid = -1, .dev = -1, .text = text};
    if (!found) {
        read_libfabric(text, line);
        if (line->level == KL_LOG_PLAIN) read_short_prefix(line);
        return;
    }
    line->level = levels[level].level;
    read_prefix(text, found, line);
    found += strlen(levels[level].word);
    line->text = found;
    cut_next(found, line);
}
