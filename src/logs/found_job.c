/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/findings_make.h"
#include "logs/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines of trouble ---- */

/* Lines that nobody knows say the same where they differ in numbers only: ports, addresses, bytes. */
static int compare_words(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (isdigit((unsigned char)*a)) a++;
        while (isdigit((unsigned char)*b)) b++;
        if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        if (!*a) return 0;
    }
}

static int compare_trouble(const struct kl_log_warning *a, const struct kl_log_warning *b)
{
    if (a->cause != b->cause) return a->cause < b->cause ? -1 : 1;
    return a->cause == KL_CAUSE_NONE ? compare_words(a->text, b->text) : 0;
}

static int by_trouble(const void *x, const void *y)
{
    const struct kl_log_warning *a = *(const struct kl_log_warning *const *)x,
                                *b = *(const struct kl_log_warning *const *)y;
    int d = compare_trouble(a, b);

    return d ? d : (a > b) - (a < b);
}

/* One finding for the n lines of a kind, which are in the order of the log. */
static void add_trouble(struct kl_finding_list *list, const struct kl_log_warning *const *w, int n)
{
    struct kl_log_finding f = {.code = KL_FOUND_CAUSE,
                               .weight = kl_cause_facts(w[0]->cause)->weight,
                               .cause = w[0]->cause,
                               .at = w[0]->at,
                               .text = w[0]->text,
                               .times = n};

    kl_finding_add(list, f);
}

static void find_trouble(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_warning **w = malloc(((size_t)log->nwarning + 1) * sizeof(void *));

    if (!w) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int i = 0; i < log->nwarning; i++) w[i] = &log->warning[i];
    qsort(w, (size_t)log->nwarning, sizeof(void *), by_trouble);
    for (int i = 0, next; i < log->nwarning; i = next) {
        for (next = i + 1; next < log->nwarning && !compare_trouble(w[i], w[next]);) next++;
        add_trouble(list, &w[i], next - i);
    }
    free(w);
}

/* ---- processes that do not know each other ---- */

static bool all_alone(const struct kl_log *log)
{
    for (int i = 0; i < log->nmember; i++)
        if (log->member[i].nranks > 1) return false;
    return true;
}

static int by_process(const void *x, const void *y)
{
    const struct kl_log_device *a = *(const struct kl_log_device *const *)x,
                               *b = *(const struct kl_log_device *const *)y;
    int d = strcmp(a->host, b->host);

    return a->pid != b->pid ? (a->pid < b->pid ? -1 : 1) : d ? d : (a > b) - (a < b);
}

/* Benchmarks name the ranks they run: several processes that are each rank 0 make a communicator each. */
static void find_alone(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_device **zero = malloc(((size_t)log->ndevice + 1) * sizeof(void *));
    struct kl_log_finding f = {.code = KL_FOUND_ALONE, .weight = KL_LOG_STOPS};
    int zeros = 0;

    if (!zero) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int i = 0; i < log->ndevice; i++)
        if (!log->device[i].rank) zero[zeros++] = &log->device[i];
    if (zeros) f.at = zero[0]->at;
    qsort(zero, (size_t)zeros, sizeof(void *), by_process);
    for (int i = 0; i < zeros; i++)
        f.n += !i || zero[i - 1]->pid != zero[i]->pid || strcmp(zero[i - 1]->host, zero[i]->host) != 0;
    free(zero);
    if (f.n > 1 && all_alone(log)) kl_finding_add(list, f);
}

/* ---- init that does not end ---- */

/* The lowest rank without a line. */
static int first_silent(const struct kl_log *log, const struct kl_log_comm *c)
{
    bool *seen = calloc((size_t)c->seen + 1, sizeof *seen);
    int silent = 0;

    for (int i = c->first; seen && i >= 0; i = log->member[i].next)
        if (log->member[i].rank >= 0 && log->member[i].rank < c->seen) seen[log->member[i].rank] = true;
    while (seen && seen[silent]) silent++;
    free(seen);
    return silent;
}

/* Did a rank begin, and none come as far as the plan? */
static bool is_unfinished(const struct kl_log *log, const struct kl_log_comm *c, struct kl_log_finding *f)
{
    if (c->nnodes > 0) return false; /* who knows the nodes knows all ranks */
    for (int i = c->first; i >= 0; i = log->member[i].next) {
        const struct kl_log_member *m = &log->member[i];

        if (m->completed || m->coll >= 0) return false;
        if (m->started && !f->n++) f->at = m->at;
    }
    return f->n > 0;
}

static void find_unfinished(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int c = 0; c < log->ncomm; c++) {
        struct kl_log_finding f = {.code = KL_FOUND_UNFINISHED, .weight = KL_LOG_FOLLOWS};

        if (!is_unfinished(log, &log->comm[c], &f)) continue;
        f.m = log->comm[c].nranks > log->comm[c].seen ? log->comm[c].nranks - log->comm[c].seen : 0;
        f.a = f.m ? first_silent(log, &log->comm[c]) : -1;
        kl_finding_add(list, f);
    }
}

static void find_slow_init(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_member *worst = NULL;
    int n = 0;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (m->total < 10) continue;
        n++;
        if (!worst || m->total > worst->total) worst = m;
    }
    if (!worst) return;
    kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_SLOW_INIT,
                                                 .weight = KL_LOG_COSTS,
                                                 .at = worst->timings_at,
                                                 .x = worst->total,
                                                 .y = worst->phase_s,
                                                 .text = worst->phase ? worst->phase : "",
                                                 .times = n});
}

/* ---- settings ---- */

static void find_settings(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nsetting; i++) {
        const struct kl_log_setting *s = &log->setting[i];
        enum kl_log_weight weight;
        int row = kl_log_setting_find(s->name, s->value, &weight);
        bool known = row < 0;

        for (int j = 0; j < list->out->n && !known; j++) {
            struct kl_log_finding *f = &list->out->finding[j];

            known = f->code == KL_FOUND_SETTING && !strcmp(f->text, s->name) && !strcmp(f->other, s->value);
            f->times += known;
        }
        if (known) continue;
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_SETTING,
                                                     .weight = s->by_plugin ? KL_LOG_REMARK : weight,
                                                     .at = s->at,
                                                     .a = row,
                                                     .text = s->name,
                                                     .other = s->value});
    }
}

void kl_found_job(struct kl_finding_list *list)
{
    find_trouble(list);
    find_alone(list);
    find_unfinished(list);
    find_slow_init(list);
    find_settings(list);
}
