/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/bench_make.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk over the tokens: only keys, strings and numbers matter, and whether a row's object is still open. */
struct walk {
    struct kl_bench *b;
    int file, line, depth;
    const char *at, *end;
    char key[32], text[KL_BENCH_NAME];
    bool is_value; /* a value follows: its key is `key` */
    struct kl_bench_row *row;
    int row_depth, half;
};

static bool is(const struct walk *w, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(w->key, names[i])) return true;
    return false;
}

#define KEY(w, ...) is((w), (const char *const[]){__VA_ARGS__, NULL})

static void begin_row(struct walk *w, double size)
{
    struct kl_log_at at = {w->file, w->line};
    struct kl_bench_table *t = kl_bench_table_at(w->b, at, false);

    if (t && t->n && size < (double)w->b->row[w->b->nrow - 1].size) t = kl_bench_table_at(w->b, at, true);
    w->row = t && size >= 1 && size < 9e18 ? kl_bench_new_row(w->b, at) : NULL;
    if (!w->row) return;
    w->row->size = (int64_t)size;
    w->row_depth = w->depth;
    w->half = KL_BENCH_OUT;
    w->row->time[0].wrong = w->row->time[1].wrong = -1;
}

static void number_of_row(struct walk *w, double value)
{
    struct kl_bench_time *t = &w->row->time[w->half];

    if (!isfinite(value)) return;
    if (KEY(w, "time", "time_us", "us"))
        t->us = value, t->there = true;
    else if (KEY(w, "alg_bw", "algbw", "algBw"))
        t->algorithm = value;
    else if (KEY(w, "bus_bw", "busbw", "busBw"))
        t->bus = value;
    else if (KEY(w, "nwrong", "wrong", "#wrong") && value > -1e15 && value < 1e15)
        t->wrong = (int64_t)value;
    else if (KEY(w, "count") && value > 0 && value < 9e18)
        w->row->count = (int64_t)value;
    else if (KEY(w, "root") && value > -2 && value < 1e6)
        w->row->root = (int)value;
}

static void take_number(struct walk *w, double value)
{
    if (KEY(w, "size", "size_bytes", "bytes"))
        begin_row(w, value);
    else if (w->row)
        number_of_row(w, value);
    else if (KEY(w, "nranks", "ranks", "total_ranks") && value > 0 && value < 1e7) {
        struct kl_bench_table *t = kl_bench_table_at(w->b, (struct kl_log_at){w->file, w->line}, true);

        if (t) t->nranks = (int)value;
    }
}

static void take_text(struct walk *w)
{
    struct kl_bench_table *t;

    if (w->row && KEY(w, "type", "datatype")) snprintf(w->row->type, sizeof w->row->type, "%.15s", w->text);
    if (w->row && KEY(w, "redop", "op")) snprintf(w->row->op, sizeof w->row->op, "%.15s", w->text);
    if (w->row || !KEY(w, "collective", "name", "test", "collective_test", "device_name", "nccl_version")) return;
    t = kl_bench_table_at(w->b, (struct kl_log_at){w->file, w->line}, true);
    if (!t) return;
    if (KEY(w, "device_name"))
        snprintf(t->gpu, sizeof t->gpu, "%s", w->text);
    else if (KEY(w, "nccl_version"))
        snprintf(t->version, sizeof t->version, "%.15s", w->text);
    else
        snprintf(t->name, sizeof t->name, "%.*s",
                 (int)(strstr(w->text, "_perf") ? strstr(w->text, "_perf") - w->text : 63), w->text);
}

/* A string; its escapes stay as they are. */
static void read_string(struct walk *w)
{
    size_t n = 0;

    for (w->at++; w->at < w->end && *w->at != '"'; w->at++) {
        if (*w->at == '\\' && w->at + 1 < w->end) w->at++;
        if (n + 1 < sizeof w->text && (unsigned char)*w->at >= ' ') w->text[n++] = *w->at;
    }
    w->text[n] = 0;
    w->at += w->at < w->end;
    const char *next = w->at;

    while (next < w->end && isspace((unsigned char)*next)) next++;
    if (next < w->end && *next == ':') {
        snprintf(w->key, sizeof w->key, "%.31s", w->text);
        if (KEY(w, "out_of_place", "out-of-place", "outOfPlace")) w->half = KL_BENCH_OUT;
        if (KEY(w, "in_place", "in-place", "inPlace")) w->half = KL_BENCH_IN;
    } else
        take_text(w);
}

static void read_number(struct walk *w)
{
    char text[40];
    size_t n = 0;

    while (w->at < w->end && n + 1 < sizeof text && (isalnum((unsigned char)*w->at) || strchr("+-.", *w->at)))
        text[n++] = *w->at++;
    text[n] = 0;
    if (!n)
        w->at++;
    else if (isdigit((unsigned char)text[0]) || text[0] == '-')
        take_number(w, strtod(text, NULL));
}

void kl_bench_read_json(struct kl_bench *b, int file, const char *text, size_t bytes)
{
    struct walk w = {.b = b, .file = file, .line = 1, .at = text, .end = text + bytes};

    while (w.at < w.end) {
        char c = *w.at;

        if (c == '"') {
            read_string(&w);
            continue;
        }
        if (isalnum((unsigned char)c) || c == '-') {
            read_number(&w);
            continue;
        }
        w.line += c == '\n' && w.line < 1 << 30;
        w.depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (w.row && w.depth < w.row_depth) w.row = NULL;
        w.at++;
    }
}
