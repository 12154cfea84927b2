/* SPDX-License-Identifier: Apache-2.0 */
/** bench_tables.c - tables and rows as they are read. */
#include "logs/bench_make.h"
#include "logs/log_make.h"

#include <string.h>

struct kl_bench_table *kl_bench_table_at(struct kl_bench *b, struct kl_log_at at, bool fresh)
{
    struct kl_bench_table *last = b->ntable ? &b->table[b->ntable - 1] : NULL, *t;

    if (last && (!fresh || !last->n)) return last;
    if (b->ntable == KL_BENCH_TABLES) return last;
    t = kl_log_grow(&b->log, (void **)&b->table, &b->ntable, &b->maxtable, sizeof *t);
    if (!t) return NULL;
    t->at = at;
    t->first = b->nrow;
    if (b->ntable < 2) return t;
    last = t - 1; /* a file's tables have its ranks, until it names others */
    t->nranks = last->nranks;
    t->nhosts = last->nhosts;
    memcpy(t->name, last->name, sizeof t->name);
    memcpy(t->gpu, last->gpu, sizeof t->gpu);
    memcpy(t->version, last->version, sizeof t->version);
    return t;
}

struct kl_bench_row *kl_bench_new_row(struct kl_bench *b, struct kl_log_at at)
{
    struct kl_bench_table *t = b->ntable ? &b->table[b->ntable - 1] : NULL;
    struct kl_bench_row *r;

    if (!t || b->nrow == KL_BENCH_ROWS) return NULL;
    r = kl_log_grow(&b->log, (void **)&b->row, &b->nrow, &b->maxrow, sizeof *r);
    if (!r) return NULL;
    r->at = at;
    r->root = -1;
    t->n++;
    return r;
}
