/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/bench_make.h"
#include "logs/log_make.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

enum { VALUES = 12, WORDS = 2, MOST_ROOT = 1000000 };

/* Numbers and words at the start of a line, until something else comes. "N/A" is the number -1. */
struct cells {
    double value[VALUES];
    bool whole[VALUES]; /* without a point */
    int n;
    int64_t size;
    char word[WORDS][16];
    int nwords, before; /* before: numbers before the first word */
    bool rest;          /* something else came */
};

static bool is_number(const char *at)
{
    return isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1])) ||
           (*at == '.' && isdigit((unsigned char)at[1]));
}

/* "e-07" */
static size_t exponent(const char *at)
{
    size_t sign = *at == 'e' && (at[1] == '+' || at[1] == '-') ? 2 : 0;

    return sign ? sign + strspn(at + sign, "0123456789") : 0;
}

/* Digits, also grouped by "_". */
static const char *take_number(const char *at, struct cells *c)
{
    char text[40];
    size_t n = 0;

    while ((isdigit((unsigned char)*at) || *at == '_' || *at == '.' || (*at == '-' && !n)) && n + 1 < sizeof text) {
        if (*at != '_') text[n++] = *at;
        at++;
    }
    size_t e = exponent(at), kept = n + e < sizeof text ? e : 0;

    memcpy(text + n, at, kept);
    text[n + kept] = 0;
    at += e;
    c->value[c->n] = strtod(text, NULL);
    c->whole[c->n] = !strchr(text, '.') && !e;
    if (!c->n) c->size = strtoll(text, NULL, 10);
    c->n++;
    return at;
}

static const char *take_word(const char *at, struct cells *c)
{
    size_t n = 0;

    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
    if (!c->nwords) c->before = c->n;
    if (n >= sizeof c->word[0]) return NULL;
    snprintf(c->word[c->nwords++], sizeof c->word[0], "%.*s", (int)n, at);
    return at + n;
}

static void read_cells(const char *at, struct cells *c)
{
    *c = (struct cells){.before = -1};
    for (at += strspn(at, " "); *at && c->n < VALUES; at += strspn(at, " ")) {
        if (!strncmp(at, "N/A", 3)) {
            c->value[c->n++] = -1;
            at += 3;
        } else if (is_number(at))
            at = take_number(at, c);
        else if (isalpha((unsigned char)*at) && c->before != 0 && c->n == 2 && c->nwords < WORDS) {
            at = take_word(at, c);
            if (!at) return;
        } else
            break;
    }
    c->rest = *at;
}

/* time algbw busbw #wrong; older tools print the largest error instead of how many are wrong */
static int set_half(struct kl_bench_row *r, enum kl_bench_half half, const struct cells *c, int at)
{
    struct kl_bench_time *t = &r->time[half];

    if (at + 3 > c->n) return at;
    for (int i = at; i < at + 3; i++)
        if (!isfinite(c->value[i])) return at;
    *t = (struct kl_bench_time){true, c->value[at], c->value[at + 1], c->value[at + 2], -1};
    if (at + 3 < c->n && c->whole[at + 3] && fabs(c->value[at + 3]) < 1e15) t->wrong = (int64_t)c->value[at + 3];
    return at + 4;
}

/* The fields of a size; its times may come in later lines when a log writes into the table. */
static void add_row(struct kl_bench *b, const struct cells *c, struct kl_log_at at)
{
    struct kl_bench_row *r = kl_bench_row_of(b, at, c->size);
    int next = c->before;

    if (!r) return;
    r->count = (int64_t)c->value[1];
    snprintf(r->type, sizeof r->type, "%s", c->word[0]);
    if (c->nwords > 1) snprintf(r->op, sizeof r->op, "%s", c->word[1]);
    /* a root, unless there are just the four numbers of each half */
    if (c->n > next && c->whole[next] && (c->n - next) % 4 == 1) {
        double root = c->value[next++];
        if (root > -2 && root < MOST_ROOT) r->root = (int)root;
    }
    set_half(r, KL_BENCH_IN, c, set_half(r, KL_BENCH_OUT, c, next));
    b->pending = c->rest || !r->time[KL_BENCH_OUT].there;
}

static bool is_row(const struct cells *c)
{
    return c->before == 2 && c->size > 0 && c->whole[0] && c->whole[1] && c->value[1] >= 0 && c->value[1] < 1e18;
}

/* "size time algbw busbw", where other columns were removed: true if the numbers fit together. */
static bool is_short_row(const struct cells *c)
{
    double algorithm = c->n == 4 && c->value[1] > 0 ? (double)c->size / c->value[1] / 1e3 : 0;

    return c->nwords == 0 && c->whole[0] && algorithm > 0 && isfinite(c->value[1]) && isfinite(c->value[3]) &&
           c->value[2] > 0.95 * algorithm - 0.01 && c->value[2] < 1.05 * algorithm + 0.01;
}

static void add_short_row(struct kl_bench *b, const struct cells *c, struct kl_log_at at)
{
    struct kl_bench_row *r = kl_bench_row_of(b, at, c->size);

    if (!r) return;
    r->time[KL_BENCH_OUT] = (struct kl_bench_time){true, c->value[1], c->value[2], c->value[3], -1};
}

/* Times that go on with the last row. */
static bool go_on(struct kl_bench *b, const struct cells *c)
{
    struct kl_bench_row *r = b->nrow ? &b->row[b->nrow - 1] : NULL;
    int half = !r || r->time[KL_BENCH_IN].there ? KL_BENCH_HALVES
               : r->time[KL_BENCH_OUT].there    ? KL_BENCH_IN
                                                : KL_BENCH_OUT;

    if (!b->pending || half == KL_BENCH_HALVES || c->nwords || c->n < 3 || c->n > 8) return false;
    if (!b->table[b->ntable - 1].n) return false;
    if (half == KL_BENCH_IN && c->n > 4) return false;
    set_half(r, KL_BENCH_IN, c, set_half(r, (enum kl_bench_half)half, c, 0));
    return true;
}

/* ---- lines around them ---- */

/* "all_reduce" of "all_reduce_perf". Behind a table it is the next one's, but where a line says that it ended, or speaks of the
 * same program in passing. */
static bool read_name(struct kl_bench *b, const char *text, struct kl_log_at at)
{
    const char *end = strstr(text, "_perf"), *start = end;
    struct kl_bench_table *last = b->ntable ? &b->table[b->ntable - 1] : NULL;
    char name[KL_BENCH_NAME];

    if (!end || isalnum((unsigned char)end[5])) return false;
    while (start > text && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) start--;
    if (start == end || end - start >= KL_BENCH_NAME) return false;
    snprintf(name, sizeof name, "%.*s", (int)(end - start), start);
    bool passing = *text != '#' && last && !strcmp(last->name, name);
    struct kl_bench_table *t =
        kl_bench_table_at(b, at, passing || strstr(text, "concluded") ? KL_BENCH_SAME : KL_BENCH_NEW);

    if (t) snprintf(t->name, sizeof t->name, "%s", name);
    return true;
}

static void begin(struct kl_bench *b, const char *text, struct kl_log_at at)
{
    struct kl_bench_table *t = kl_bench_table_at(b, at, KL_BENCH_NEW);

    text += strspn(text, "# ");
    if (!strncmp(text, "section", 7)) text += 7 + strspn(text + 7, ": ");
    if (t && text[0]) snprintf(t->title, sizeof t->title, "%.60s", text);
}

static void set_version(struct kl_bench *b, const char *text, struct kl_log_at at)
{
    const char *digits = kl_log_after(text, "ccl-library"); /* nccl-tests, rccl-tests */
    struct kl_bench_table *t = kl_bench_table_at(b, at, KL_BENCH_NEW);
    long n = strtol(digits + strspn(digits, "=: "), NULL, 10);

    if (t && n > 20000 && n < 100000)
        snprintf(t->version, sizeof t->version, "%ld.%ld.%ld", n / 10000, n / 100 % 100, n % 100);
}

/* "# Out of bounds values : 4 FAILED", behind the table */
static void read_verdict(struct kl_bench *b, const char *text)
{
    struct kl_bench_table *t = b->ntable ? &b->table[b->ntable - 1] : NULL;

    if (t) t->wrong = kl_log_number(text, "Out of bounds values : ", 0);
}

static bool is_head(const char *text)
{
    return !strncmp(text, "# nThread", 9) || (strstr(text, " size ") && strstr(text, "busbw")) ||
           (strstr(text, "Rank ") && strstr(text, " Pid "));
}

static void read_comment(struct kl_bench *b, const char *text, struct kl_log_at at)
{
    if (strstr(text, "Out of bounds values"))
        read_verdict(b, text);
    else if (!strncmp(text, "##", 2))
        begin(b, text, at);
    else if (strstr(text, "ccl-library"))
        set_version(b, text, at);
    else if (is_head(text))
        kl_bench_table_at(b, at, KL_BENCH_NEW);
    else
        read_name(b, text, at);
}

static void read_line(struct kl_bench *b, const char *text, struct kl_log_at at)
{
    struct cells c;

    text += strspn(text, " ");
    if (*text == '#') {
        read_comment(b, text, at);
        return;
    }
    read_cells(text, &c);
    if (is_row(&c))
        add_row(b, &c, at);
    else if (!go_on(b, &c)) {
        if (is_short_row(&c))
            add_short_row(b, &c, at);
        else if (!c.n)
            read_name(b, text, at);
    }
}

/* ---- tags ---- */

/* A mark of a launcher: "[0]", "[1,3]<stdout>:", "1:", "rank0|". Its length; 0: it is none. */
static size_t tag_length(const char *at)
{
    size_t n = 0;

    if (*at == '[') {
        n = 1 + strspn(at + 1, "0123456789,");
        if (n < 2 || at[n++] != ']') return 0;
        if (at[n] == '<' && strchr(at + n, '>')) n = (size_t)(strchr(at + n, '>') - at) + 1;
        return n + (at[n] == ':');
    }
    if (isdigit((unsigned char)*at)) {
        n = strspn(at, "0123456789");
        return n < 7 && at[n] == ':' && (at[n + 1] == ' ' || !at[n + 1]) ? n + 1 : 0;
    }
    while (isalnum((unsigned char)at[n]) || (n && strchr("_-.", at[n]) && at[n])) n++;
    return n && at[n] == '|' && isalpha((unsigned char)*at) ? n + 1 : 0;
}

static void blank(char *at, size_t n)
{
    memset(at, ' ', n);
}

/* Launchers that pass on output as it comes put their mark before each piece, also inside of a row. The mark at the line's start
 * may even touch a number: "-11: 2180.1" is -1, and the mark "1:". */
static void blank_tags(char *line)
{
    char tag[40] = "", *start = line + strspn(line, " ");
    size_t n = tag_length(start);

    if (n && n < sizeof tag) {
        memcpy(tag, start, n);
        tag[n] = 0;
        for (char *at = strstr(start, tag); at; at = strstr(at, tag)) blank(at, n);
    }
    for (char *at = line; *at; at++) {
        bool begins = at == line || at[-1] == ' ' || *at == '[';
        size_t length = begins ? tag_length(at) : 0;

        if (length) blank(at, length);
    }
}

/* ---- files ---- */

void kl_bench_init(struct kl_bench *b)
{
    *b = (struct kl_bench){.nrow = 0};
    kl_log_init(&b->log);
}

void kl_bench_fini(struct kl_bench *b)
{
    kl_log_fini(&b->log);
    free(b->row);
    free(b->table);
    free(b->finding);
    kl_log_findings_fini(&b->trouble);
    kl_bench_init(b);
}

ncclResult_t kl_bench_add_text(struct kl_bench *b, const char *name, const char *text, size_t bytes)
{
    char line[4096];
    int number = 0;

    KL_TRY(kl_log_add_text(&b->log, name, text, bytes));
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at), kept = n < sizeof line - 1 ? n : sizeof line - 1;

        memcpy(line, at, kept);
        kl_log_clean(line, kept);
        number += number < 1 << 30;
        const char *rest = kl_log_skip_prefix(line);

        if (*rest != '#' && !strstr(line, "NCCL ")) {
            blank_tags(line);
            rest = kl_log_skip_prefix(line);
        }
        read_line(b, rest, (struct kl_log_at){b->log.nfile - 1, number});
        at = stop ? stop + 1 : end;
    }
    return ncclSuccess;
}

/* ---- names, ranks, releases ---- */

static const struct kl_bench_row *last_row(const struct kl_bench *b, const struct kl_bench_table *t)
{
    return t->n ? &b->row[t->first + t->n - 1] : NULL;
}

/* Of a table without a name: bus over algorithm bandwidth is 2 (n - 1) / n for an all-reduce, (n - 1) / n for others. */
static void name_by_ratio(const struct kl_bench *b, struct kl_bench_table *t)
{
    const struct kl_bench_row *r = last_row(b, t);
    double ratio = r && r->time[0].algorithm > 0 ? r->time[0].bus / r->time[0].algorithm : 0;
    const char *name = NULL;

    if (!r || ratio <= 0.4) return;
    bool none = !strcmp(r->op, "none") || !r->op[0];

    if (!none && r->root < 0 && (ratio > 1.02 || t->nranks == 2)) name = "all_reduce";
    if (!none && r->root < 0 && ratio < 0.99 && t->nranks != 2) name = "reduce_scatter";
    if (none && r->op[0] && r->root >= 0) name = "broadcast";
    if (!r->type[0] && ratio > 1.02) name = "all_reduce";
    if (!none && r->root >= 0) name = "reduce";
    if (!name) return;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->named_by_ratio = true;
}

static bool is_part_of_each(const char *name)
{
    return !strcmp(name, "all_gather") || !strcmp(name, "reduce_scatter") || !strcmp(name, "alltoall");
}

/* Lists of ranks are often cut: the bandwidths tell how many there are. */
static void count_by_ratio(const struct kl_bench *b, struct kl_bench_table *t)
{
    const struct kl_bench_row *r = last_row(b, t);
    double ratio = r && r->time[0].algorithm > 0 ? r->time[0].bus / r->time[0].algorithm : 0, n = 0;

    if (!strcmp(t->name, "all_reduce") && ratio > 0.9 && ratio < 1.9995) n = 2 / (2 - ratio);
    if (is_part_of_each(t->name) && ratio < 0.9995) n = 1 / (1 - ratio);
    if (n < 1.9 || n > 2000 || (t->nranks && fabs(n - t->nranks) < 0.1 * n)) return;
    t->nhosts = 0; /* the list of ranks is cut, or there is none */
    t->nranks = (int)(n + 0.5);
}

/* Tables without rows were only begun. */
static void drop_empty(struct kl_bench *b)
{
    int kept = 0;

    for (int i = 0; i < b->ntable; i++)
        if (b->table[i].n) b->table[kept++] = b->table[i];
    b->ntable = kept;
}

/* Nccl-tests name it; else the last line of the library above the rows does, or, without one, any line. */
static void find_version(const struct kl_bench *b, struct kl_bench_table *t)
{
    const char *found = NULL;

    for (int i = 0; i < b->log.nversion; i++) {
        const struct kl_log_version *v = &b->log.version[i];
        bool above = v->at.file == t->at.file && v->at.line <= b->row[t->first].at.line;

        if (!v->by_tests && (above || !found)) found = v->text;
    }
    if (found) snprintf(t->version, sizeof t->version, "%.15s", found);
}

static bool has_failure(const struct kl_bench *b)
{
    for (int i = 0; i < b->log.nrun; i++)
        if (b->log.run[i].failure) return true;
    return false;
}

/* Where bandwidths were rounded to 0.00, they follow from time and size, if the number of ranks is known. */
static void unround(struct kl_bench *b, const struct kl_bench_table *t)
{
    if (t->nranks < 2) return;
    for (int i = t->first; i < t->first + t->n; i++)
        for (int h = 0; h < KL_BENCH_HALVES; h++) {
            struct kl_bench_time *time = &b->row[i].time[h];

            if (!time->there || time->us <= 0 || time->algorithm > 0 || time->bus > 0) continue;
            time->algorithm = (double)b->row[i].size / time->us / 1e3;
            time->bus = time->algorithm * kl_bench_bus_factor(t);
        }
}

ncclResult_t kl_bench_finish(struct kl_bench *b, const struct kl_cluster_request *request)
{
    KL_TRY(kl_log_finish(&b->log));
    drop_empty(b);
    KL_TRY(kl_log_findings_make(&b->log, &b->trouble));
    if (!b->nrow && !has_failure(b))
        return KL_FAIL(ncclInvalidUsage, "%s: no row of nccl-tests; its tables begin with size, count and type",
                       b->log.nfile ? b->log.file[0].name : "nothing");
    for (int i = 0; i < b->ntable; i++) {
        struct kl_bench_table *t = &b->table[i];

        if (!t->version[0]) find_version(b, t);
        KL_TRY(kl_bench_read_ranks(b, t));
        if (!t->name[0]) name_by_ratio(b, t);
        count_by_ratio(b, t);
        unround(b, t);
    }
    KL_TRY(kl_bench_model(b, request));
    kl_bench_judge(b);
    return b->log.full && !b->nrow ? KL_NOMEM("a table") : ncclSuccess;
}
