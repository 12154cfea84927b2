/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/verdict.h"

#include <string.h>

bool kl_log_has_problem(const struct kl_log_findings *f)
{
    return f->n && kl_log_is_problem(&f->finding[0]); /* worst first */
}

static bool is_finished(const struct kl_log *log)
{
    bool finished = log->rings;

    for (int i = 0; i < log->nmember; i++) finished |= log->member[i].completed;
    for (int i = 0; i < log->nrun; i++) finished |= log->run[i].rows > 0;
    return finished;
}

/* ---- a log without problems ---- */

static bool was_compared(const struct kl_log_compare *c)
{
    int n = 0;

    for (int p = 0; p < KL_PARTS; p++) n += c->checked[p];
    return c->made && n > 0;
}

/* Runs of benchmarks, and whether they are all the log shows. */
static void add_runs(const struct kl_log *log, struct kl_text *t)
{
    if (!log->nrun) return;
    kl_text_add(t, "%d run%s of nccl-tests", log->nrun, kl_plural(log->nrun));
    if (log->run[0].ranks)
        kl_text_add(t, " with %d rank%s%s", log->run[0].ranks, kl_plural(log->run[0].ranks),
                    log->nrun > 1 ? " each" : "");
}

static bool are_alike(const struct kl_log *log)
{
    for (int i = 1; i < log->nrun; i++)
        if (log->run[i].ranks != log->run[0].ranks) return false;
    return true;
}

/* A clause about the plan; nothing where it could not be compared. */
static void add_plan(const struct kl_log_compare *c, struct kl_text *t)
{
    if (c->n && c->other_release)
        kl_text_add(t, "; its plan differs from that of NCCL %s, which is not the log's release", c->nccl);
    else if (c->n)
        kl_text_add(t, ", but its plan is not the one expected for its machine: %d difference%s", c->n,
                    kl_plural(c->n));
    else if (was_compared(c))
        kl_text_add(t, ", and its plan is the one expected for its machine");
}

static void add_finished(const struct kl_log *log, const struct kl_log_compare *c, struct kl_text *t)
{
    kl_text_add(t, "The log shows no problem");
    add_plan(c, t);
    if (log->nrun > 1 && are_alike(log)) {
        kl_text_add(t, "; ");
        add_runs(log, t);
        kl_text_add(t, ", each judged by itself (--bench)");
    }
}

/* ---- a log that is too short to say more ---- */

/* Connections by kind, the first ones. */
static int add_ways(const struct kl_log *log, struct kl_text *t)
{
    const char *how = log->nlink ? log->link[0].how : NULL;
    int n = 0;

    for (int i = 0; i < log->nlink; i++) n += !strcmp(log->link[i].how, how);
    if (n) kl_text_add(t, "%d connection%s over %s", n, kl_plural(n), how);
    if (n < log->nlink) kl_text_add(t, " and %d other%s", log->nlink - n, kl_plural(log->nlink - n));
    return n;
}

static const char *network_of(const struct kl_log *log)
{
    for (int i = 0; i < log->nmember; i++)
        if (log->member[i].network) return log->member[i].network;
    return NULL;
}

static void add_visible(const struct kl_log *log, struct kl_text *t)
{
    const char *network = network_of(log);

    if (add_ways(log, t)) return;
    if (log->plugin.lines) {
        kl_text_add(t, "lines of %s", log->plugin.name);
        if (log->plugin.version) kl_text_add(t, " %s", log->plugin.version);
    } else if (network)
        kl_text_add(t, "the network %s", network);
    else if (log->nrun)
        add_runs(log, t);
    else
        kl_text_add(t, "%d line%s", log->lines, kl_plural(log->lines));
}

/* Remarks about trouble that came to nothing are the answer: the first two. */
static int add_remarks(const struct kl_log_findings *f, struct kl_text *t)
{
    int n = 0;

    for (int i = 0; i < f->n && n < 2; i++) {
        if (f->finding[i].code != KL_FOUND_CAUSE || f->finding[i].weight != KL_LOG_REMARK) continue;
        kl_text_add(t, "%s", n++ ? "; " : "; remarks only: ");
        kl_log_finding_text(&f->finding[i], t);
    }
    return n;
}

static void add_short(const struct kl_log *log, const struct kl_log_findings *f, const struct kl_log_compare *c,
                      struct kl_text *t)
{
    kl_text_add(t, "Nothing here failed");
    if (add_remarks(f, t)) return;
    kl_text_add(t, ", but the log shows no communicator that finished init: ");
    add_visible(log, t);
    add_plan(c, t);
}

/* ---- a log with problems ---- */

/* Consequences of a failure that the log shows are no further problems. */
static int count_further(const struct kl_log_findings *f)
{
    int n = 0;

    for (int i = 1; i < f->n; i++) n += f->finding[i].weight == KL_LOG_STOPS || f->finding[i].weight == KL_LOG_COSTS;
    return n;
}

/* The first clause of its remedy. */
static void add_remedy(const struct kl_log *log, const struct kl_log_finding *f, struct kl_text *t)
{
    char remedy[1024];
    struct kl_text r = kl_text_in(remedy, sizeof remedy);

    kl_log_finding_remedy(log, f, &r);
    char *end = strstr(remedy, "; ");

    if (end) *end = 0;
    if (*remedy) kl_text_add(t, ": %s", remedy);
}

/* A line of nccl-tests that says how the run ended. */
static const char *failure_in(const struct kl_log_finding *f)
{
    static const char *const words[] = {"Test CUDA failure", "Test HIP failure", "Test NCCL failure"};
    const char *found = NULL;

    for (size_t i = 0; f->code == KL_FOUND_CAUSE && !found && i < sizeof words / sizeof words[0]; i++)
        found = strstr(f->text, words[i]);
    return found;
}

static void add_problem(const struct kl_log *log, const struct kl_log_findings *f, struct kl_text *t)
{
    const struct kl_log_finding *worst = &f->finding[0];
    int n = count_further(f);
    bool stops = worst->code == KL_FOUND_CAUSE && worst->weight == KL_LOG_STOPS;

    if (failure_in(worst) && stops) kl_text_add(t, "the run failed with %s: ", failure_in(worst));
    kl_log_finding_text(worst, t);
    if (stops && worst->origins) kl_text_add(t, ", on %s", worst->origins);
    if (stops) add_remedy(log, worst, t);
    if (n) kl_text_add(t, "; %d more problem%s", n, kl_plural(n));
}

void kl_log_verdict(const struct kl_log *log, const struct kl_log_findings *findings,
                    const struct kl_log_compare *compared, struct kl_text *t)
{
    if (!log->lines) {
        kl_text_add(t, "Not a log of NCCL: %s is empty", log->nfile ? log->file[0].name : "it");
        return;
    }
    if (!log->understood && !log->library) {
        kl_text_add(t, "Not a log of NCCL: nothing in %d line%s is what NCCL prints with NCCL_DEBUG=INFO", log->lines,
                    kl_plural(log->lines));
        return;
    }
    if (log->nversion)
        kl_text_add(t, "%s %s: ", log->version[0].rccl ? "RCCL" : "NCCL", log->version[0].text);
    else if (log->amd)
        kl_text_add(t, "RCCL: ");
    if (kl_log_has_problem(findings))
        add_problem(log, findings, t);
    else if (is_finished(log))
        add_finished(log, compared, t);
    else
        add_short(log, findings, compared, t);
}
