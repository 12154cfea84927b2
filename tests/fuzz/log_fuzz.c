/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a log of NCCL: reading, judging, and planning for the machine that it shows must be safe. */
#include "api/param_sets.h"
#include "base/error.h"
#include "logs/compare.h"
#include "logs/findings.h"
#include "logs/verdict.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { PLANNED = 64 }; /* nodes: a plan for more takes too long here */

static bool says_no_problem(const char *text)
{
    return !strncmp(text, "The log shows no problem", 24);
}

/* A message of the log has these words, and is quoted. */
static bool quotes_it(const struct kl_log_findings *f)
{
    char text[2048];

    for (int i = 0; i < f->n; i++) {
        struct kl_text t = kl_text_in(text, sizeof text);

        kl_log_finding_text(&f->finding[i], &t);
        if (says_no_problem(text)) return true;
    }
    return false;
}

/* The line about it says that there is no problem only where no finding is one. */
static void check_verdict(const struct kl_log *log, const struct kl_log_findings *f)
{
    const struct kl_log_compare none = {.made = false};
    char text[4096];
    struct kl_text t = kl_text_in(text, sizeof text);

    kl_log_verdict(log, f, &none, &t);
    if (!*text) abort();
    if (says_no_problem(text) && kl_log_has_problem(f) && !quotes_it(f)) abort();
}

static void check_findings(const struct kl_log *log)
{
    struct kl_log_findings f;

    if (kl_log_findings_make(log, &f)) abort();
    for (int i = 0; i < f.n; i++) {
        char text[2048], at[KL_LOG_AT];
        struct kl_text t = kl_text_in(text, sizeof text);

        kl_log_finding_text(&f.finding[i], &t);
        kl_log_finding_remedy(log, &f.finding[i], &t);
        if (i && f.finding[i].weight < f.finding[i - 1].weight) abort(); /* worst first */
        if (f.finding[i].at.line < 0 || f.finding[i].at.line > log->lines) abort();
        kl_log_at_text(log, f.finding[i].at, at);
    }
    check_verdict(log, &f);
    kl_log_findings_fini(&f);
}

static void compare(const struct kl_log *log)
{
    const struct kl_log_comm *c = kl_log_main(log);
    const struct kl_cluster_request none = {.hosts = c && c->nnodes > 4 ? 4 : 0,
                                            .edits = {.params = &kl_param_registry}};
    struct kl_log_compare compared;

    if (log->nnode > PLANNED) return;
    if (kl_log_compare_make(log, &none, &compared)) abort(); /* there was no wrong question */
    for (int i = 0; i < compared.n; i++) {
        char text[512];
        struct kl_text t = kl_text_in(text, sizeof text);

        kl_log_difference_text(&compared.difference[i], &t);
    }
    kl_log_compare_fini(&compared);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kl_log log;

    kl_error_quiet(1);
    kl_log_init(&log);
    if (kl_log_add_text(&log, "fuzz", (const char *)data, bytes) || kl_log_finish(&log)) abort();
    check_findings(&log);
    compare(&log);
    kl_log_fini(&log);
    return 0;
}
