/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/log_print.h"

#include <string.h>

enum { LINE = 2048, SHOWN = 5 };

static int count(const struct kl_log_answer *a, bool problems)
{
    int n = 0;

    for (int i = 0; i < a->findings.n; i++) n += kl_log_is_problem(&a->findings.finding[i]) == problems;
    return n;
}

static const char *product(const struct kl_log *log)
{
    return log->version[0].rccl ? "RCCL" : "NCCL";
}

static void print_verdict(const struct kl_log_answer *a, FILE *to)
{
    char line[LINE];
    struct kl_text t = kl_text_in(line, sizeof line);

    kl_log_verdict(&a->log, &a->findings, &a->compared, &t);
    fprintf(to, "%s\n", line);
}

/* ---- facts ---- */

static void print_comm(const struct kl_log *log, FILE *to)
{
    const struct kl_log_comm *c = kl_log_main(log);

    if (!c || c->nranks < 1) return;
    fprintf(to, "  communicator: %d rank%s", c->nranks, kl_plural(c->nranks));
    if (c->nnodes > 0) fprintf(to, " on %d node%s", c->nnodes, kl_plural(c->nnodes));
    fprintf(to, ", %d of them in the log", c->seen);
    if (log->ncomm > 1) fprintf(to, "; %d communicators in all", log->ncomm);
    fprintf(to, "\n");
}

static void print_channels(const struct kl_log *log, FILE *to)
{
    const struct kl_log_comm *c = kl_log_main(log);

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (m->coll < 0 || (c && m->comm != c - log->comm)) continue;
        fprintf(to, "  channels: %d", m->coll);
        if (m->nvls > 0) fprintf(to, ", NVLS %d", m->nvls);
        if (m->p2p >= 0) fprintf(to, ", messages %d", m->p2p);
        if (m->per_peer >= 0) fprintf(to, " (%d to one rank)", m->per_peer);
        fprintf(to, "\n");
        return;
    }
}

/* Ways of connections, with how often they occur. */
static void print_ways(const struct kl_log *log, FILE *to)
{
    enum { KINDS = 12 };
    const char *how[KINDS];
    int n[KINDS], kinds = 0, more = 0;

    for (int i = 0; i < log->nlink; i++) {
        int k = 0;

        while (k < kinds && strcmp(how[k], log->link[i].how)) k++;
        if (k == KINDS) {
            more++;
            continue;
        }
        if (k == kinds) {
            how[kinds] = log->link[i].how;
            n[kinds++] = 0;
        }
        n[k]++;
    }
    for (int k = 0; k < kinds; k++) fprintf(to, "%s%s (%d)", k ? ", " : "  connections: ", how[k], n[k]);
    if (more) fprintf(to, ", %d others", more);
    if (kinds) fprintf(to, "\n");
}

static void print_network(const struct kl_log *log, FILE *to)
{
    const char *network = NULL;
    int last = -1;

    for (int i = 0; i < log->nmember && !network; i++) network = log->member[i].network;
    if (!network && !log->nnic) return;
    fprintf(to, "  network: %s", network ? network : "not named");
    for (int i = 0; i < log->nnic && log->nic[i].origin == log->nic[0].origin && log->nic[i].dev > last; i++) {
        fprintf(to, "%s%s", i ? " " : "; ", log->nic[i].name);
        last = log->nic[i].dev;
    }
    fprintf(to, "\n");
}

/* Settings that differ from rank to rank (addresses) are many: the first are shown. */
static void print_settings(const struct kl_log *log, FILE *to)
{
    enum { KINDS = 64 };
    const struct kl_log_setting *shown[KINDS];
    int n = 0, more = 0;

    for (int i = 0; i < log->nsetting; i++) {
        const struct kl_log_setting *s = &log->setting[i];
        int k = 0;

        while (k < n && (strcmp(shown[k]->name, s->name) || strcmp(shown[k]->value, s->value))) k++;
        if (k < n) continue;
        if (n == KINDS) {
            more++;
            continue;
        }
        fprintf(to, "%s%s=%s%s", n ? " " : "  settings: ", s->name, s->value, s->by_plugin ? " (by the plugin)" : "");
        shown[n++] = s;
    }
    if (more) fprintf(to, " and %d more", more);
    if (n) fprintf(to, "\n");
}

static void print_facts(const struct kl_log *log, FILE *to)
{
    if (log->nversion)
        fprintf(to, "  %s %s, %s:%d\n", product(log), log->version[0].text, log->file[log->version[0].at.file].name,
                log->version[0].at.line);
    else
        fprintf(to, "  %s: no line names the release\n", log->file[0].name);
    print_comm(log, to);
    print_channels(log, to);
    print_network(log, to);
    print_ways(log, to);
    print_settings(log, to);
}

/* ---- findings ---- */

static void print_finding(const struct kl_log *log, const struct kl_log_finding *f, FILE *to)
{
    char line[LINE], remedy[LINE], at[KL_LOG_AT];
    struct kl_text t = kl_text_in(line, sizeof line), r = kl_text_in(remedy, sizeof remedy);

    kl_log_finding_remedy(log, f, &r);
    kl_log_finding_text(f, &t);
    fprintf(to, "  %s\n      %s", line, kl_log_at_text(log, f->at, at));
    if (f->times > 1) fprintf(to, ", %d times", f->times);
    if (f->code == KL_FOUND_CAUSE && f->cause != KL_CAUSE_NONE) fprintf(to, ": %.200s", f->text);
    fprintf(to, "\n");
    if (*remedy) fprintf(to, "      %s\n", remedy);
}

static void print_findings(const struct kl_log_answer *a, bool problems, const char *title, FILE *to)
{
    if (!count(a, problems)) return;
    fprintf(to, "\n%s\n", title);
    for (int i = 0; i < a->findings.n; i++)
        if (kl_log_is_problem(&a->findings.finding[i]) == problems) print_finding(&a->log, &a->findings.finding[i], to);
}

/* ---- the plan ---- */

static void print_checked(const struct kl_log_compare *c, FILE *to)
{
    int n = 0;

    for (int p = 0; p < KL_PARTS; p++)
        if (c->checked[p])
            fprintf(to, "%s%s %d of %d", n++ ? ", " : "  the same: ", kl_log_part_name((enum kl_log_part)p), c->same[p],
                    c->checked[p]);
    fprintf(to, n ? "\n" : "  nothing to compare: the log has no rings, trees or channel counts\n");
}

static bool differ_hosts(const struct kl_log_answer *a)
{
    for (int i = 0; i < a->findings.n; i++)
        if (a->findings.finding[i].code == KL_FOUND_MACHINES_DIFFER) return a->compared.n > 0;
    return false;
}

static const char *release_note(const struct kl_log *log)
{
    return log->nversion ? " (the nearest to the log's)" : " (the log names none; --nccl does)";
}

static void print_compared(const struct kl_log_answer *a, bool all, FILE *to)
{
    const struct kl_log_compare *c = &a->compared;
    int shown = all || c->n <= SHOWN + 1 ? c->n : SHOWN;

    if (!c->made) {
        if (c->why[0] && a->log.nmember)
            fprintf(to, "\nNot compared with a plan: %s; --topo FILE or --machine NAME names the machine\n", c->why);
        return;
    }
    fprintf(to, "\nBeside the plan for %s, %d host%s with %d GPU%s, by the rules of NCCL %s%s:\n",
            c->from_log ? "the log's machine" : c->machine, c->hosts, kl_plural(c->hosts), c->gpus, kl_plural(c->gpus),
            c->nccl, c->other_release ? release_note(&a->log) : "");
    if (c->from_log) fprintf(to, "  assumed: sm %d, %s\n", c->assumed.sm, c->assumed.sm_from);
    if (c->settings)
        fprintf(to, "  %d setting%s of the log appl%s\n", c->settings, kl_plural(c->settings),
                c->settings == 1 ? "ies" : "y");
    print_checked(c, to);
    if (differ_hosts(a)) fprintf(to, "  the hosts differ, but the plan assumes that all are like the first\n");
    for (int i = 0; i < shown; i++) {
        char line[LINE], at[KL_LOG_AT];
        struct kl_text t = kl_text_in(line, sizeof line);

        kl_log_difference_text(&c->difference[i], &t);
        fprintf(to, "  %s\n      %s\n", line, kl_log_at_text(&a->log, c->difference[i].at, at));
    }
    if (shown < c->n) fprintf(to, "  ... and %d more; --all shows them\n", c->n - shown);
}

void kl_log_text(const struct kl_log_answer *a, bool all, FILE *to)
{
    print_verdict(a, to);
    if (!a->log.understood && !a->log.library) return;
    print_facts(&a->log, to);
    print_findings(a, true, "What is wrong, worst first:", to);
    print_findings(a, false, "Worth knowing:", to);
    print_compared(a, all, to);
    if (a->findings.dropped)
        fprintf(to, "\n%d more finding%s of the same kinds left out.\n", a->findings.dropped,
                a->findings.dropped == 1 ? " is" : "s are");
    if (a->log.full) fprintf(to, "\nThe log has more than fits: the rest was ignored.\n");
}
