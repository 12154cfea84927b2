/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/exit_tracker.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kl_exit_tracker_init(struct kl_exit_tracker *e, int nranks, uint64_t grace_ms)
{
    *e = (struct kl_exit_tracker){
        .nranks = nranks, .nrunning = nranks, .grace_ms = grace_ms, .due_ns = KL_NO_DEADLINE, .first_failed = -1};
    e->rank = calloc((size_t)nranks, sizeof *e->rank);
    return e->rank ? 0 : -1;
}

void kl_exit_tracker_fini(struct kl_exit_tracker *e)
{
    free(e->rank);
    e->rank = NULL;
}

static bool died(const struct kl_exit_tracker *e, const struct kl_rank_exit *r)
{
    return r->ended && (r->signal || (r->code && r->code != e->verdict));
}

static bool start_grace(struct kl_exit_tracker *e, uint64_t now_ns)
{
    if (e->phase != KL_JOB_RUNS) return false;
    e->phase = KL_JOB_GRACE;
    e->due_ns = now_ns + e->grace_ms * 1000000;
    return true;
}

bool kl_exit_tracker_ended(struct kl_exit_tracker *e, int rank, int code, int signal, uint64_t now_ns)
{
    struct kl_rank_exit *r = &e->rank[rank];

    if (r->ended) return false;
    r->ended = true;
    r->code = code;
    r->signal = signal;
    e->nrunning--;
    if ((code || signal) && e->first_failed < 0) e->first_failed = rank;
    return died(e, r) && start_grace(e, now_ns);
}

static void tell(struct kl_exit_tracker *e, int signal)
{
    for (int r = 0; r < e->nranks; r++)
        if (!e->rank[r].ended) e->rank[r].told = signal;
}

void kl_exit_tracker_asked(struct kl_exit_tracker *e, int signal, uint64_t now_ns)
{
    tell(e, signal);
    start_grace(e, now_ns);
}

void kl_exit_tracker_time_is_up(struct kl_exit_tracker *e, uint64_t now_ns)
{
    e->out_of_time = true;
    if (e->phase > KL_JOB_GRACE) return;
    e->phase = KL_JOB_GRACE;
    e->due_ns = now_ns;
}

int kl_exit_tracker_due(struct kl_exit_tracker *e, uint64_t now_ns)
{
    if (now_ns < e->due_ns || !e->nrunning) return 0;
    if (e->phase == KL_JOB_GRACE) {
        e->phase = KL_JOB_TERMINATED;
        e->due_ns = now_ns + (uint64_t)KL_EXIT_TRACKER_KILL_MS * 1000000;
        tell(e, SIGTERM);
        return SIGTERM;
    }
    e->phase = KL_JOB_KILLED;
    e->due_ns = KL_NO_DEADLINE;
    tell(e, SIGKILL);
    return SIGKILL;
}

int kl_exit_tracker_code(const struct kl_exit_tracker *e)
{
    enum { OUT_OF_TIME = 1, BY_SIGNAL = 128 };

    if (e->out_of_time) return OUT_OF_TIME;
    if (e->first_failed < 0) return 0;
    const struct kl_rank_exit *r = &e->rank[e->first_failed];
    return r->signal ? BY_SIGNAL + r->signal : r->code;
}

bool kl_exit_tracker_should_report(const struct kl_exit_tracker *e)
{
    bool worth = e->out_of_time;

    for (int r = 0; r < e->nranks; r++) worth |= died(e, &e->rank[r]);
    return worth;
}

static void name_signal(int signal, char *text, size_t size)
{
    const char *meaning = sigdescr_np(signal); /* unlike strsignal: no locale, no buffer */

    snprintf(text, size, "signal %d (%s)", signal, meaning ? meaning : "?");
}

void kl_exit_tracker_describe(const struct kl_exit_tracker *e, int rank, const char *who, char *text, size_t size)
{
    const struct kl_rank_exit *r = &e->rank[rank];
    char how[64], sent[64];

    if (!r->ended) {
        snprintf(text, size, "rank %d: still running", rank);
        return;
    }
    name_signal(r->told, sent, sizeof sent);
    if (r->signal)
        name_signal(r->signal, how, sizeof how);
    else
        snprintf(how, sizeof how, "exit code %d", r->code);

    if (!r->told)
        snprintf(text, size, "rank %d: %s, by itself", rank, how);
    else if (r->signal == r->told)
        snprintf(text, size, "rank %d: %s, sent by %s", rank, how, who);
    else
        snprintf(text, size, "rank %d: %s, after %s sent %s", rank, how, who, sent);
}
