/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/text.h"
#include "logs/bench_file.h"
#include "logs/bench_make.h"
#include "logs/log_make.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk over the values in their order: an object with a size is a row; values outside of rows are facts of the table. */
struct walk {
    struct kl_bench *b;
    struct kl_log_at at;
    const char *next, *end; /* of the text: where the next row is looked for */
};

static bool is(const char *key, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(key, names[i])) return true;
    return false;
}

#define IS(key, ...) is((key), (const char *const[]){__VA_ARGS__, NULL})

static const char *const sizes[] = {"size", "size_bytes", "bytes"};

/* ---- rows ---- */

/* A parsed document has no line numbers: a row gets the line where its key occurs next in the text. */
static void go_to(struct walk *w, const char *key)
{
    size_t n = strlen(key);

    for (; w->next < w->end; w->next++) {
        w->at.line += *w->next == '\n';
        if (*w->next != '"' || (size_t)(w->end - w->next) < n + 2 || memcmp(w->next + 1, key, n)) continue;
        w->next++;
        if (w->next[n] == '"') return;
    }
}

static double number(const json_t *object, const char *const *names, double absent)
{
    for (int i = 0; names[i]; i++) {
        const json_t *v = json_object_get(object, names[i]);

        if (json_is_number(v) && isfinite(json_number_value(v))) return json_number_value(v);
    }
    return absent;
}

#define NUMBER(object, absent, ...) number((object), (const char *const[]){__VA_ARGS__, NULL}, (absent))

static void read_half(const json_t *o, struct kl_bench_time *t)
{
    double us = NUMBER(o, -1, "time", "time_us", "us"), wrong = NUMBER(o, -1, "nwrong", "wrong", "#wrong");

    if (us < 0) return;
    *t = (struct kl_bench_time){.there = true,
                                .us = us,
                                .algorithm = NUMBER(o, 0, "alg_bw", "algbw", "algBw"),
                                .bus = NUMBER(o, 0, "bus_bw", "busbw", "busBw"),
                                .wrong = wrong >= 0 && wrong < 1e15 ? (int64_t)wrong : -1};
}

static void read_word(const json_t *object, const char *name, const char *other, char *text, size_t size)
{
    const json_t *v = json_object_get(object, name) ? json_object_get(object, name) : json_object_get(object, other);

    if (json_is_string(v)) snprintf(text, size, "%.*s", (int)size - 1, json_string_value(v));
}

static const json_t *half_of(const json_t *row, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (json_is_object(json_object_get(row, names[i]))) return json_object_get(row, names[i]);
    return NULL;
}

static void read_row(struct walk *w, const json_t *o, double size)
{
    static const char *const out[] = {"out_of_place", "out-of-place", "outOfPlace", NULL}, *const in[] = {
                                                                                               "in_place", "in-place",
                                                                                               "inPlace", NULL};
    struct kl_bench_row *r = kl_bench_row_of(w->b, w->at, (int64_t)size);
    double count = NUMBER(o, 0, "count"), root = NUMBER(o, -1, "root");

    if (!r) return;
    if (count > 0 && count < 9e18) r->count = (int64_t)count;
    if (root > -2 && root < 1e6) r->root = (int)root;
    read_word(o, "type", "datatype", r->type, sizeof r->type);
    read_word(o, "redop", "op", r->op, sizeof r->op);
    read_half(half_of(o, out) ? half_of(o, out) : o, &r->time[KL_BENCH_OUT]);
    if (half_of(o, in)) read_half(half_of(o, in), &r->time[KL_BENCH_IN]);
}

/* ---- facts of a table ---- */

static void read_text(struct walk *w, const char *key, const char *text)
{
    const char *perf = strstr(text, "_perf");
    bool name = IS(key, "collective", "test", "collective_test") || (IS(key, "name", "program") && perf);
    struct kl_bench_table *t;

    if (!name && !IS(key, "device_name", "nccl_version")) return;
    t = kl_bench_table_at(w->b, w->at, KL_BENCH_NEW);
    if (!t) return;
    if (name)
        snprintf(t->name, sizeof t->name, "%.*s", perf && perf - text < 63 ? (int)(perf - text) : 63, text);
    else if (IS(key, "device_name"))
        snprintf(t->gpu, sizeof t->gpu, "%.63s", text);
    else
        snprintf(t->version, sizeof t->version, "%.15s", text);
}

static void read_fact(struct walk *w, const char *key, const json_t *value)
{
    double n = json_number_value(value);
    struct kl_bench_table *t;

    if (json_is_string(value)) read_text(w, key, json_string_value(value));
    if (!json_is_number(value) || !IS(key, "nranks", "ranks", "total_ranks") || !(n >= 1 && n < 1e7)) return;
    t = kl_bench_table_at(w->b, w->at, KL_BENCH_NEW);
    if (t) t->nranks = (int)n;
}

/* ---- the walk ---- */

static void read_value(struct walk *w, json_t *value);

static void read_object(struct walk *w, json_t *o)
{
    const char *key;
    json_t *v;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double size = NUMBER(o, 0, sizes[i]);

        if (size < 1 || size >= 9e18) continue;
        go_to(w, sizes[i]);
        read_row(w, o, size);
        return;
    }
    json_object_foreach(o, key, v)
    {
        if (json_is_object(v) || json_is_array(v))
            read_value(w, v);
        else
            read_fact(w, key, v);
    }
}

static void read_value(struct walk *w, json_t *value)
{
    size_t i;
    json_t *v;

    if (json_is_object(value)) read_object(w, value);
    json_array_foreach(value, i, v) read_value(w, v);
}

/* ---- files ---- */

static bool is_json(const char *text, size_t bytes)
{
    size_t at = 0;

    while (at < bytes && isspace((unsigned char)text[at])) at++;
    if (at < bytes && text[at] == '[') /* of a launcher, unless an object follows */
        for (at++; at < bytes && isspace((unsigned char)text[at]);) at++;
    return at < bytes && text[at] == '{';
}

ncclResult_t kl_bench_add_any(struct kl_bench *b, const char *name, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *document;

    if (!is_json(text, bytes)) return kl_bench_add_text(b, name, text, bytes);
    KL_TRY(kl_log_add_text(&b->log, name, "", 0));
    document = json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (!document)
        return KL_FAIL(ncclInvalidUsage, "%s:%d: not a complete JSON document: %s", name, error.line, error.text);
    struct walk w = {.b = b, .at = {b->log.nfile - 1, 1}, .next = text, .end = text + bytes};

    read_value(&w, document);
    json_decref(document);
    return ncclSuccess;
}

ncclResult_t kl_bench_add_file(struct kl_bench *b, const char *path)
{
    char *text;
    size_t bytes;

    KL_TRY(kl_log_load(path, &text, &bytes));
    ncclResult_t rc = kl_bench_add_any(b, kl_text_input(path), text, bytes);

    free(text);
    return rc;
}
