/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings_make.h"
#include "logs/settings.h"

#include <string.h>

/* ---- lines of trouble ---- */

static struct kl_log_finding *same_trouble(struct kl_finding_list *list, const struct kl_log_warning *w)
{
    for (int i = 0; i < list->out->n; i++) {
        struct kl_log_finding *f = &list->out->finding[i];

        if (f->code != KL_FOUND_CAUSE || f->cause != (enum kl_log_cause)w->cause) continue;
        if (w->cause != KL_CAUSE_NONE || !strcmp(f->text, w->text)) return f;
    }
    return NULL;
}

static void find_trouble(struct kl_finding_list *list)
{
    for (int i = 0; i < list->log->nwarning; i++) {
        const struct kl_log_warning *w = &list->log->warning[i];
        struct kl_log_finding *same = same_trouble(list, w);

        if (same) {
            same->times++;
            same->speakers += same->a != w->speaker;
            same->a = w->speaker;
            continue;
        }
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_CAUSE,
                                                     .weight = kl_cause_facts(w->cause)->weight,
                                                     .cause = w->cause,
                                                     .at = w->at,
                                                     .a = w->speaker,
                                                     .text = w->text});
    }
}

/* ---- processes that do not know each other ---- */

static bool all_alone(const struct kl_log *log)
{
    for (int i = 0; i < log->nmember; i++)
        if (log->member[i].nranks > 1) return false;
    return true;
}

/* Benchmarks name the ranks they run: several processes that are each rank 0 make a communicator each. */
static void find_alone(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_device *first = NULL;
    int n = 0;

    for (int i = 0; i < log->ndevice; i++) {
        const struct kl_log_device *d = &log->device[i];
        bool seen = false;

        for (int j = 0; j < i; j++) seen |= log->device[j].pid == d->pid && !strcmp(log->device[j].host, d->host);
        if (d->rank || seen) continue;
        if (!first) first = d;
        n++;
    }
    if (n < 2 || !all_alone(log)) return;
    kl_finding_add(list,
                   (struct kl_log_finding){.code = KL_FOUND_ALONE, .weight = KL_LOG_STOPS, .at = first->at, .n = n});
}

/* ---- init that does not end ---- */

static void find_unfinished(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int c = 0; c < log->ncomm; c++) {
        const struct kl_log_comm *comm = &log->comm[c];
        int began = 0, ended = 0, planned = 0, n = comm->nranks < 4096 ? comm->nranks : 4096, silent = -1;
        bool seen[4096] = {false};
        struct kl_log_at at = {0};

        for (int i = 0; i < log->nmember; i++) {
            const struct kl_log_member *m = &log->member[i];

            if (m->comm != c) continue;
            if (m->rank >= 0 && m->rank < n) seen[m->rank] = true;
            began += m->started;
            ended += m->completed;
            planned += m->coll >= 0;
            if (m->started && !m->completed && !at.line) at = m->at;
        }
        for (int r = n - 1; r >= 0; r--)
            if (!seen[r]) silent = r;
        if (!began || ended || planned || comm->nnodes > 0) continue; /* who knows the nodes knows all ranks */
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_UNFINISHED,
                                                     .weight = KL_LOG_FOLLOWS,
                                                     .at = at,
                                                     .n = began,
                                                     .m = n - comm->seen,
                                                     .a = silent});
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
