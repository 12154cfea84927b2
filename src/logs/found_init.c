/* SPDX-License-Identifier: Apache-2.0 */
/** found_init.c - ranks that began init and did not finish it, and the step they reached. */
#include "base/error.h"
#include "logs/findings_make.h"

#include <stdlib.h>

/* Rows of a benchmark behind it show that a communicator works. */
static bool rows_follow(const struct kl_log *log, struct kl_log_at at)
{
    for (int i = 0; i < log->nrun; i++)
        if (log->run[i].last_row.file == at.file && log->run[i].last_row.line > at.line) return true;
    return false;
}

static bool has_finished(const struct kl_log *log, const struct kl_log_member *m, bool others)
{
    return m->completed || (others && m->step == KL_LOG_CONNECTED) || rows_follow(log, m->at);
}

static bool any_completed(const struct kl_log *log, const struct kl_log_comm *c)
{
    for (int i = c->first; i >= 0; i = log->member[i].next)
        if (log->member[i].completed) return true;
    return false;
}

static int by_number(const void *x, const void *y)
{
    return *(const int *)x - *(const int *)y;
}

/* "rank 1", "ranks 0-3, 7" */
static void add_ranks(struct kl_text *t, int *rank, int n)
{
    enum { RANGES = 8 };
    int ranges = 0;

    qsort(rank, (size_t)n, sizeof *rank, by_number);
    kl_text_add(t, "rank%s", kl_plural(n));
    for (int i = 0, next; i < n && ranges < RANGES; i = next, ranges++) {
        for (next = i + 1; next < n && rank[next] <= rank[next - 1] + 1;) next++;
        kl_text_add(t, "%s%d", ranges ? ", " : " ", rank[i]);
        if (rank[next - 1] > rank[i]) kl_text_add(t, "-%d", rank[next - 1]);
        if (next < n && ranges == RANGES - 1) kl_text_add(t, " and others");
    }
}

/* The lowest rank without a line. */
static int first_silent(const struct kl_log *log, const struct kl_log_comm *c)
{
    bool *seen = calloc((size_t)c->seen + 1, sizeof *seen);
    int silent = 0;

    for (int i = c->first; seen && i >= 0; i = log->member[i].next)
        if (log->member[i].rank >= 0 && log->member[i].rank < c->seen) seen[log->member[i].rank] = true;
    while (seen && silent <= c->seen && seen[silent]) silent++;
    free(seen);
    return silent;
}

static void describe(struct kl_finding_list *list, const struct kl_log_comm *c, struct kl_log_finding *f, int *rank,
                     bool others)
{
    char text[512];
    struct kl_text t = kl_text_in(text, sizeof text);

    add_ranks(&t, rank, f->n);
    kl_text_add(&t, " of %d began init and never finished it%s; %s: %s", c->nranks, others ? ", the others did" : "",
                f->n == 1 ? "its last step" : "the last step of the slowest", kl_log_step_text((enum kl_log_step)f->a));
    if (f->m > 0)
        kl_text_add(&t, "; %d rank%s not appear in the log, the first is rank %d", f->m, f->m == 1 ? " does" : "s do",
                    first_silent(list->log, c));
    f->text = kl_finding_keep(list, text);
}

/* Ranks of a communicator without an end of init; the one that came least far gives the line. */
static void look_at_comm(struct kl_finding_list *list, const struct kl_log_comm *c, int *rank)
{
    const struct kl_log *log = list->log;
    const bool others = any_completed(log, c);
    struct kl_log_finding f = {.code = KL_FOUND_UNFINISHED, .weight = KL_LOG_FOLLOWS, .a = KL_LOG_CONNECTED + 1};

    for (int i = c->first; i >= 0; i = log->member[i].next) {
        const struct kl_log_member *m = &log->member[i];

        if (!m->started || has_finished(log, m, others)) continue;
        rank[f.n++] = m->rank;
        if ((int)m->step >= f.a) continue;
        f.a = (int)m->step;
        f.at = m->step_at;
    }
    if (!f.n) return;
    f.m = !others && c->nranks > c->seen ? c->nranks - c->seen : 0;
    describe(list, c, &f, rank, others);
    f.times = f.n;
    kl_finding_add(list, f);
}

void kl_found_init(struct kl_finding_list *list)
{
    int *rank = malloc(((size_t)list->log->nmember + 1) * sizeof *rank);

    if (!rank) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int c = 0; c < list->log->ncomm; c++) look_at_comm(list, &list->log->comm[c], rank);
    free(rank);
}
