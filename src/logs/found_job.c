/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/findings_make.h"
#include "logs/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines of trouble ---- */

/* Unknown lines are the same where they differ in numbers only: ports, addresses, bytes. */
static int compare_words(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (isdigit((unsigned char)*a)) a++;
        while (isdigit((unsigned char)*b)) b++;
        if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        if (!*a) return 0;
    }
}

/* Did the process go on after its warning? */
static bool went_on(const struct kl_log *log, const struct kl_log_warning *w)
{
    const struct kl_log_origin *s = &log->origin[w->origin];
    const struct kl_log_member *m = s->last >= 0 ? &log->member[s->last] : NULL;

    return m && m->completed && m->step_at.line > w->at.line;
}

static enum kl_log_weight weight_of(const struct kl_log *log, const struct kl_log_warning *w)
{
    enum kl_log_weight weight = kl_cause_facts(w->cause)->weight;

    if (w->follows) return KL_LOG_FOLLOWS;
    if (w->fatal && weight != KL_LOG_FOLLOWS) return KL_LOG_STOPS;
    return w->cause == KL_CAUSE_NONE && went_on(log, w) ? KL_LOG_REMARK : weight;
}

/* A warning and its weight: with the cause they decide which finding it belongs to. */
struct trouble {
    const struct kl_log_warning *w;
    enum kl_log_weight weight;
};

static int compare_trouble(const struct trouble *a, const struct trouble *b)
{
    if (a->w->cause != b->w->cause) return a->w->cause < b->w->cause ? -1 : 1;
    if (a->weight != b->weight) return a->weight < b->weight ? -1 : 1;
    return a->w->cause == KL_CAUSE_NONE || a->w->cause == KL_CAUSE_CUDA ? compare_words(a->w->text, b->w->text) : 0;
}

static int by_trouble(const void *x, const void *y)
{
    const struct trouble *a = x, *b = y;
    int d = compare_trouble(a, b);

    return d ? d : (a->w > b->w) - (a->w < b->w);
}

/* The first ranks with lines of a finding. */
static const char *origins_of(struct kl_finding_list *list, const struct trouble *t, int n, int *norigins)
{
    enum { SHOWN = 3 };
    char text[SHOWN * KL_LOG_ORIGIN_TEXT + 32] = "", who[KL_LOG_ORIGIN_TEXT];
    struct kl_text o = kl_text_in(text, sizeof text);
    int last = -1;

    *norigins = 0;
    for (int i = 0; i < n; i++) {
        if (t[i].w->origin == last) continue;
        last = t[i].w->origin;
        who[0] = 0;
        if (!*list->log->origin[last].host || !*kl_log_origin_text(list->log, last, who)) continue;
        if (++*norigins <= SHOWN) kl_text_add(&o, "%s%s", *norigins > 1 ? ", " : "", who);
    }
    if (*norigins > SHOWN) kl_text_add(&o, " and %d more", *norigins - SHOWN);
    return *text ? kl_finding_keep(list, text) : NULL;
}

/* One finding for the n lines of a kind, which are in the order of the log. */
static void add_trouble(struct kl_finding_list *list, const struct trouble *t, int n)
{
    struct kl_log_finding f = {.code = KL_FOUND_CAUSE,
                               .weight = t->weight,
                               .cause = t->w->cause,
                               .source = t->w->source,
                               .at = t->w->at,
                               .text = t->w->text,
                               .other = t->w->where,
                               .times = n};

    f.origins = origins_of(list, t, n, &f.norigins);
    kl_finding_add(list, f);
}

static void find_trouble(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    struct trouble *t = malloc(((size_t)log->nwarning + 1) * sizeof *t);

    if (!t) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int i = 0; i < log->nwarning; i++) t[i] = (struct trouble){&log->warning[i], weight_of(log, &log->warning[i])};
    qsort(t, (size_t)log->nwarning, sizeof *t, by_trouble);
    for (int i = 0, next; i < log->nwarning; i = next) {
        for (next = i + 1; next < log->nwarning && !compare_trouble(&t[i], &t[next]);) next++;
        add_trouble(list, &t[i], next - i);
    }
    free(t);
}

/* ---- processes that do not know each other ---- */

static bool all_alone(const struct kl_log *log)
{
    for (int i = 0; i < log->nmember; i++)
        if (log->member[i].nranks > 1) return false;
    return true;
}

/* Benchmarks name the ranks they run. Several lists of one rank each, begun before the rows of any, are as many communicators; a
 * list whose rows came before the next list is a run of its own. */
static void find_alone(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    struct kl_log_finding f = {.code = KL_FOUND_ALONE, .weight = KL_LOG_STOPS};

    for (int i = 0; i < log->nrun; i++) {
        const struct kl_log_run *r = &log->run[i];

        if (r->ranks > 1) return;
        if (r->ranks != 1 || (r->rows && i + 1 < log->nrun)) continue;
        if (!f.n++) f.at = r->at;
    }
    if (f.n > 1 && all_alone(log)) kl_finding_add(list, f);
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
    find_slow_init(list);
    find_settings(list);
}
