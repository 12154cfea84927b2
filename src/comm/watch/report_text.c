/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/watch/report.h"

#include "base/error.h"
#include "base/text.h"
#include "coll/signature.h"
#include "comm/watch/flight.h"
#include "device/host/redop.h"

#include <inttypes.h>
#include <string.h>

enum {
    FEW = 16,
    NAMED = 10,
    MANY_NAMED = 4096
}; /* ranks that are listed by default, and missing ones that are
                                                   * named */

static const char *const states[KL_STATUS_STATES] = {
    [KL_STATUS_INIT] = "INIT",
    [KL_STATUS_RUNNING] = "RUNNING",
    [KL_STATUS_FINALIZED] = "FINALIZE",
    [KL_STATUS_FAILED] = "ABORT",
};

/* ---- the job ---- */

static bool new_process(const struct kl_gathered *g, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (g->status[k].pid == g->status[i].pid && !strcmp(g->status[k].host, g->status[i].host)) return false;
    return true;
}

static bool new_host(const struct kl_gathered *g, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(g->status[k].host, g->status[i].host)) return false;
    return true;
}

static const char *plural(size_t n)
{
    return kl_plural((long long)n);
}

static void put_summary(const struct kl_gathered *g, FILE *to)
{
    size_t hosts = 0, processes = 0, comms = 0;

    for (size_t i = 0; i < g->n; i++) {
        hosts += new_host(g, i);
        processes += new_process(g, i);
        comms += !i || g->status[i].communicator != g->status[i - 1].communicator;
    }
    fprintf(to, "Kolo, NCCL API %d.%d.%d\n\nJob summary\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    fprintf(to, "  %zu rank%s of %zu communicator%s in %zu process%s on %zu host%s answered within %.1f ms\n\n", g->n,
            plural(g->n), comms, plural(comms), processes, processes == 1 ? "" : "es", hosts, plural(hosts),
            (double)g->took_ns / 1e6);
}

static void put_table(const struct kl_gathered *g, FILE *to)
{
    fprintf(to, "Communicators\n  %-20s %-7s %-9s %-9s %-12s %s\n", "communicator", "ranks", "answered", "status",
            "errors", "collectives called");
    for (size_t i = 0; i < g->n;) {
        struct kl_report_comm c = kl_report_judge(g, i);
        const char *state = c.init ? "INIT" : c.failed ? "ABORT" : states[c.status->state];
        fprintf(to, "  0x%-18" PRIx64 " %-7d %-9zu %-9s %-12s ", c.status->communicator, c.nranks, c.n, state,
                kl_report_verdict(&c));
        fprintf(to, "%" PRIu64, c.least);
        if (c.least != c.most) fprintf(to, " to %" PRIu64, c.most);
        fputc('\n', to);
        i += c.n;
    }
}

/* ---- ranks ---- */

static void put_bytes(uint64_t bytes, FILE *to)
{
    static const char units[] = "BKMGT";
    int unit = 0;

    while (bytes >= 10240 && bytes % 1024 == 0 && unit < 4) bytes /= 1024, unit++;
    if (unit)
        fprintf(to, "%" PRIu64 "%c", bytes, units[unit]);
    else
        fprintf(to, "%" PRIu64 " bytes", bytes);
}

static const char *or_unknown(const char *name)
{
    return name ? name : "?";
}

static void put_operation(const struct kl_status *s, FILE *to)
{
    const struct kl_func_info *f = &kl_func_info[s->func];

    if (!s->number) {
        fprintf(to, "nothing yet");
        return;
    }
    if (s->collective) fprintf(to, "#%" PRIu64 " ", s->collective);
    fprintf(to, "%s of ", f->name);
    put_bytes(s->bytes, to);
    fprintf(to, ", %s", or_unknown(kl_type_name((ncclDataType_t)s->type)));
    if (f->reduces) fprintf(to, " %s", kl_call_op_name(s->op));
    if (f->rooted) fprintf(to, ", root %d", s->peer);
    if (kl_func_is_message(s->func)) fprintf(to, " %s rank %d", s->func == KL_FUNC_SEND ? "to" : "from", s->peer);
}

static void put_doing(const struct kl_status *s, FILE *to)
{
    if (s->state == KL_STATUS_INIT) {
        fprintf(to, "init, phase %s\n", s->phase);
        return;
    }
    if (s->number && s->op_state == KL_FLIGHT_ENDED) fprintf(to, "idle since ");
    if (s->number && s->op_state == KL_FLIGHT_QUEUED) fprintf(to, "queued ");
    put_operation(s, to);
    if (s->op_state != KL_FLIGHT_ENDED && s->for_ns) fprintf(to, ", for %.3f s", (double)s->for_ns / 1e9);
    if (s->waits_for >= 0) fprintf(to, ", waits for rank %d", s->waits_for);
    fputc('\n', to);
}

static bool of_interest(const struct kl_report_comm *c, const struct kl_status *s)
{
    return s->state != KL_STATUS_RUNNING || kl_report_behind(c, s) || s == c->longest;
}

static void put_ranks(const struct kl_report_comm *c, bool all, FILE *to)
{
    size_t left_out = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct kl_status *s = &c->status[i];
        left_out += !all && !of_interest(c, s);
        if (!all && !of_interest(c, s)) continue;
        fprintf(to, "  rank %-5d %-16s pid %-8d %-9s called %" PRIu64 ", ended %" PRIu64 ": ", s->rank, s->host, s->pid,
                states[s->state], s->collectives_issued, s->collectives_ended);
        put_doing(s, to);
    }
    if (left_out)
        fprintf(to, "  %zu other rank%s: VERBOSE STATUS lists %s\n", left_out, plural(left_out),
                left_out == 1 ? "it" : "them");
}

/* ---- findings ---- */

static void put_missing(const struct kl_report *r, const struct kl_report_comm *c, FILE *to)
{
    char who[KL_REPORT_WHO];
    int named = 0, most = r->verbose ? MANY_NAMED : NAMED;

    if (c->init) { /* only ranks of this process can be asked */
        fprintf(to, "  INIT: %zu of %d ranks are known to be there\n", c->n, c->nranks);
        return;
    }
    for (int rank = 0; rank < c->nranks && named < c->missing && named < most; rank++) {
        if (kl_report_has(c, rank)) continue;
        named++;
        fprintf(to, "  MISSING: %s has not answered\n", r->describe(c->status->communicator, rank, who));
    }
    if (c->missing > most) fprintf(to, "  MISSING: %d more\n", c->missing - most);
}

static void put_failures(const struct kl_report_comm *c, FILE *to)
{
    const char *last = "";

    for (size_t i = 0; i < c->n; i++) {
        const struct kl_status *s = &c->status[i];
        if (s->state != KL_STATUS_FAILED || !strcmp(s->text, last)) continue;
        fprintf(to, "  ERROR: rank %d: %s\n", s->rank, s->text);
        last = s->text;
    }
}

static void put_mismatch(const struct kl_report_comm *c, FILE *to)
{
    const struct kl_status *first = NULL;

    for (size_t i = 0; i < c->n; i++) {
        const struct kl_status *s = &c->status[i];
        if (!s->number || s->op_state == KL_FLIGHT_ENDED || !s->collective) continue;
        if (!first) first = s;
        if (s->collective != first->collective || kl_report_agree(first, s)) continue;
        fprintf(to, "  MISMATCH: rank %d calls ", s->rank);
        put_operation(s, to);
        fprintf(to, " where rank %d calls ", first->rank);
        put_operation(first, to);
        fputc('\n', to);
    }
}

static void put_behind(const struct kl_report_comm *c, FILE *to)
{
    if (!c->stuck) return;
    fprintf(to, "  STUCK: ");
    put_operation(c->longest, to);
    fprintf(to, " of rank %d has lasted for %.3f s\n", c->longest->rank, (double)c->longest->for_ns / 1e9);
    for (size_t i = 0; i < c->n; i++)
        if (kl_report_behind(c, &c->status[i]))
            fprintf(to,
                    "  BEHIND: rank %d (host %s, pid %d) has called %" PRIu64 " collectives, others are in #%" PRIu64
                    "\n",
                    c->status[i].rank, c->status[i].host, c->status[i].pid, c->status[i].collectives_issued, c->front);
}

static void put_comm(const struct kl_report *r, const struct kl_report_comm *c, FILE *to)
{
    fprintf(to, "\nCommunicator 0x%" PRIx64 ", %d rank%s: %s\n", c->status->communicator, c->nranks,
            plural((size_t)c->nranks), kl_report_verdict(c));
    put_ranks(c, r->verbose || c->nranks <= FEW, to);
    if (c->missing) put_missing(r, c, to);
    put_failures(c, to);
    if (c->mismatch) put_mismatch(c, to);
    put_behind(c, to);
}

void kl_report_text(const struct kl_report *r, FILE *to)
{
    put_summary(r->gathered, to);
    if (r->gathered->n) put_table(r->gathered, to);
    for (size_t i = 0; i < r->gathered->n;) {
        struct kl_report_comm c = kl_report_judge(r->gathered, i);
        put_comm(r, &c, to);
        i += c.n;
    }
}
