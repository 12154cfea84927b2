/* SPDX-License-Identifier: Apache-2.0 */
/** bench_tables.c - tables and rows as they are read. */
#include "base/error.h"
#include "logs/bench_make.h"
#include "logs/log_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kl_bench_table *kl_bench_table_at(struct kl_bench *b, struct kl_log_at at, enum kl_bench_begin begin)
{
    struct kl_bench_table *last = b->ntable ? &b->table[b->ntable - 1] : NULL, *t;

    if (last && last->at.file != at.file)
        begin = KL_BENCH_NEW;
    else if (last && (begin == KL_BENCH_SAME || !last->n))
        return last;
    if (b->ntable == KL_BENCH_TABLES) {
        b->log.full = true;
        return NULL;
    }
    t = kl_log_grow(&b->log, (void **)&b->table, &b->ntable, &b->maxtable, sizeof *t);
    if (!t) return NULL;
    if (begin == KL_BENCH_AGAIN && b->ntable > 1) *t = t[-1];
    t->at = begin == KL_BENCH_AGAIN && b->ntable > 1 ? t[-1].at : at;
    t->first = b->nrow;
    t->n = 0;
    t->wrong = 0;
    return t;
}

struct kl_bench_row *kl_bench_row_of(struct kl_bench *b, struct kl_log_at at, int64_t size)
{
    struct kl_bench_table *t = kl_bench_table_at(b, at, KL_BENCH_SAME);
    struct kl_bench_row *r;

    if (t && t->n && size < b->row[b->nrow - 1].size) t = kl_bench_table_at(b, at, KL_BENCH_AGAIN);
    if (!t) return NULL;
    if (b->nrow == KL_BENCH_ROWS) {
        b->log.full = true;
        return NULL;
    }
    r = kl_log_grow(&b->log, (void **)&b->row, &b->nrow, &b->maxrow, sizeof *r);
    if (!r) return NULL;
    *r = (struct kl_bench_row){.at = at, .size = size, .root = -1};
    r->time[KL_BENCH_OUT].wrong = r->time[KL_BENCH_IN].wrong = -1;
    t->n++;
    return r;
}

/* ---- ranks ---- */

static bool is_of(const struct kl_bench *b, const struct kl_bench_table *t, const struct kl_log_device *d)
{
    return d->at.file == t->at.file && d->at.line >= t->at.line && d->at.line < b->row[t->first].at.line;
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static int count_different(const char **name, int n)
{
    int different = n > 0;

    if (n) qsort(name, (size_t)n, sizeof *name, by_text);
    for (int i = 1; i < n; i++) different += strcmp(name[i - 1], name[i]) != 0;
    return different;
}

ncclResult_t kl_bench_read_ranks(const struct kl_bench *b, struct kl_bench_table *t)
{
    const char **host = malloc(((size_t)b->log.ndevice + 1) * sizeof *host);
    int n = 0, most = -1;

    if (!host) return KL_NOMEM("a list of ranks");
    for (int i = 0; i < b->log.ndevice; i++) {
        const struct kl_log_device *d = &b->log.device[i];

        if (!is_of(b, t, d) || d->rank < 0) continue;
        if (!n && *d->name) snprintf(t->gpu, sizeof t->gpu, "%.60s", d->name);
        if (d->rank > most) most = d->rank;
        host[n++] = d->host;
    }
    if (n) t->nranks = most + 1;
    t->nhosts = n && n == t->nranks ? count_different(host, n) : 0; /* else the list is cut */
    free(host);
    return ncclSuccess;
}
