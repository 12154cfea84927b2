/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "logs/log_make.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- origins ---- */

/* Where lines run into each other without a blank, the end of one stands before the host of the next. */
static bool is_host(const char *known, const char *read, bool torn)
{
    size_t n = strlen(known), m = strlen(read);

    if (!torn) return !strcmp(known, read);
    return n && m > n && !strcmp(read + m - n, known);
}

static uint64_t hash_of(const char *host, long pid, int dev)
{
    uint64_t h = kl_hash_add(KL_HASH_START, &pid, sizeof pid);

    h = kl_hash_add(h, &dev, sizeof dev);
    return host ? kl_hash_add(h, host, strlen(host)) : h;
}

static int *bucket_of(const struct kl_log *log, const char *host, long pid, int dev)
{
    uint64_t h = hash_of(host, pid, dev) % (uint64_t)log->buckets;

    return &log->bucket[(host ? 0 : log->buckets) + (int)h];
}

static void hang_in(struct kl_log *log, int i)
{
    struct kl_log_origin *s = &log->origin[i];
    int *all = bucket_of(log, s->host, s->pid, s->dev), *torn = bucket_of(log, NULL, s->pid, s->dev);

    s->next = *all - 1;
    s->next_torn = *torn - 1;
    *all = *torn = i + 1;
}

/* Keep at least as many buckets as origins. */
static bool make_buckets(struct kl_log *log)
{
    int n = log->buckets ? 2 * log->buckets : 64;
    int *fresh = calloc(2 * (size_t)n, sizeof *fresh);

    if (!fresh) return false;
    free(log->bucket);
    log->bucket = fresh;
    log->buckets = n;
    for (int i = 0; i < log->norigin; i++) hang_in(log, i);
    return true;
}

static int find_origin(const struct kl_log *log, const struct kl_log_line *line, bool torn)
{
    if (!log->buckets) return -1;
    for (int i = *bucket_of(log, torn ? NULL : line->host, line->pid, line->dev) - 1; i >= 0;) {
        const struct kl_log_origin *s = &log->origin[i];

        if (s->pid == line->pid && s->dev == line->dev && is_host(s->host, line->host, torn)) return i;
        i = torn ? s->next_torn : s->next;
    }
    return -1;
}

/* Libraries below NCCL name the process only. */
static int origin_with_pid(const struct kl_log *log, long pid)
{
    for (int i = log->norigin - 1; i >= 0; i--)
        if (log->origin[i].pid == pid) return i;
    return -1;
}

static int origin_of(struct kl_log *log, const struct kl_log_line *line)
{
    int found = find_origin(log, line, false);

    if (found < 0 && line->pid >= 0 && !*line->host && line->dev < 0) found = origin_with_pid(log, line->pid);

    if (found < 0 && line->pid >= 0) found = find_origin(log, line, true);
    if (found >= 0) return found;
    if (log->norigin >= log->buckets && !make_buckets(log)) log->full = true;
    struct kl_log_origin *s = log->norigin < log->buckets ? KL_LOG_NEW(log, origin) : NULL;

    if (!s) return -1;
    *s = (struct kl_log_origin){.host = kl_log_keep(log, line->host, strlen(line->host)),
                                .pid = line->pid,
                                .dev = line->dev,
                                .member = -1,
                                .last = -1,
                                .system = -1};
    hang_in(log, log->norigin - 1);
    return log->norigin - 1;
}

/* ---- reading ---- */

static bool (*const readers[])(struct kl_log *, int, const struct kl_log_line *) = {
    kl_log_read_machine, kl_log_read_plan, kl_log_read_run,     kl_log_read_ops,
    kl_log_read_init,    kl_log_read_net,  kl_log_read_trouble, kl_log_read_plugin};

static void read_line(struct kl_log *log, const struct kl_log_line *line)
{
    int origin = origin_of(log, line);

    log->lines++;
    log->library += line->level != KL_LOG_PLAIN;
    for (size_t i = 0; origin >= 0 && i < sizeof readers / sizeof readers[0]; i++)
        if (readers[i](log, origin, line)) {
            log->understood++;
            return;
        }
}

/* A line as it stands in a file may hold those of several ranks. */
static void read_lines(struct kl_log *log, char *text, struct kl_log_at at)
{
    while (text) {
        struct kl_log_line line = {.at = at};

        kl_log_line_read(text, &line);
        char *next = line.more, first = next ? *next : 0;

        if (next) *next = 0;
        read_line(log, &line);
        if (next) *next = first;
        text = next;
    }
}

ncclResult_t kl_log_add_text(struct kl_log *log, const char *name, const char *text, size_t bytes)
{
    char *line = malloc(KL_LOG_LINE + 1);
    struct kl_log_file *file = line ? KL_LOG_NEW(log, file) : NULL;
    int number = 0;

    if (!file) {
        free(line);
        return KL_NOMEM("a log");
    }
    file->name = kl_log_keep(log, name, strlen(name));
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at), kept = n < KL_LOG_LINE ? n : KL_LOG_LINE;

        memcpy(line, at, kept);
        number += number < INT_MAX;
        kl_log_clean(line, kept);
        read_lines(log, line, (struct kl_log_at){log->nfile - 1, number});
        at = stop ? stop + 1 : end;
    }
    free(line);
    return ncclSuccess;
}

enum { FIRST_READ = 1 << 16 }; /* bytes */

static ncclResult_t read_stream(FILE *from, const char *name, char **text, size_t *bytes)
{
    size_t max = 0;

    *text = NULL;
    *bytes = 0;
    for (;;) {
        if (*bytes == max) {
            char *grown = realloc(*text, max = max ? 2 * max : FIRST_READ);

            if (!grown) return KL_NOMEM("a log");
            *text = grown;
        }
        size_t n = fread(*text + *bytes, 1, max - *bytes, from);

        *bytes += n;
        if (n) continue;
        return ferror(from) ? KL_FAIL_ERRNO("%s cannot be read", name) : ncclSuccess;
    }
}

/* What a compressed file begins with, and what reads it. */
static ncclResult_t refuse_compressed(const char *name, const char *text, size_t bytes)
{
    static const struct {
        const char *magic;
        size_t n;
        const char *tool;
    } kinds[] = {{"\x1f\x8b", 2, "zcat"},
                 {"\x28\xb5\x2f\xfd", 4, "zstdcat"},
                 {"\xfd"
                  "7zXZ",
                  5, "xzcat"},
                 {"BZh", 3, "bzcat"},
                 {"PK\x03\x04", 4, "unzip -p"}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (bytes >= kinds[i].n && !memcmp(text, kinds[i].magic, kinds[i].n))
            return KL_FAIL(ncclInvalidUsage, "%s is compressed: %s %s | kolo explain ... -", name, kinds[i].tool, name);
    return ncclSuccess;
}

ncclResult_t kl_log_load(const char *path, char **text, size_t *bytes)
{
    bool is_stdin = !strcmp(path, "-");
    const char *name = kl_text_input(path);
    FILE *from = is_stdin ? stdin : fopen(path, "r");

    *text = NULL;
    if (!from) return KL_FAIL_ERRNO("%s cannot be opened", path);
    ncclResult_t rc = read_stream(from, name, text, bytes);

    if (!is_stdin) fclose(from);
    if (!rc) rc = refuse_compressed(name, *text, *bytes);
    if (!rc) return ncclSuccess;
    free(*text);
    *text = NULL;
    return rc;
}

ncclResult_t kl_log_add_file(struct kl_log *log, const char *path)
{
    char *text;
    size_t bytes;

    KL_TRY(kl_log_load(path, &text, &bytes));
    ncclResult_t rc = kl_log_add_text(log, kl_text_input(path), text, bytes);

    free(text);
    return rc;
}

/* ---- names ---- */

const char *kl_log_origin_text(const struct kl_log *log, int origin, char text[KL_LOG_ORIGIN_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_LOG_ORIGIN_TEXT);

    if (origin < 0 || origin >= log->norigin) return text;
    const struct kl_log_origin *s = &log->origin[origin];

    kl_text_add(&t, "%s", s->host);
    if (s->pid >= 0) kl_text_add(&t, ":%ld", s->pid);
    if (s->dev >= 0) kl_text_add(&t, "%s[%d]", t.length ? " " : "", s->dev);
    return text;
}

const char *kl_log_at_text(const struct kl_log *log, struct kl_log_at at, char text[KL_LOG_AT])
{
    struct kl_text t = kl_text_in(text, KL_LOG_AT);

    if (at.line && at.file < log->nfile) kl_text_add(&t, "%s:%d", log->file[at.file].name, at.line);
    return text;
}
