/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings.h"
#include "tools/kolo/explain/record_print.h"

#include <inttypes.h>
#include <string.h>

enum { LINE = 4096, FEW = 16, SUMS = 12 };

static bool is_problem(const struct kl_record_finding *f)
{
    return f->weight != KL_LOG_REMARK;
}

/* ---- facts ---- */

static int recorded(const struct kl_record *r)
{
    int n = 0;

    for (int i = 0; i < r->nproc; i++) n += r->proc[i].recorded;
    return n;
}

static void print_facts(const struct kl_record *r, FILE *to)
{
    const int ranks = recorded(r);

    fprintf(to, "  %d file%s", r->nfile, kl_plural(r->nfile));
    if (ranks) fprintf(to, ", %d rank%s", ranks, kl_plural(ranks));
    if (r->ngroup) fprintf(to, ", %d group%s", r->ngroup, kl_plural(r->ngroup));
    if (r->ncall) fprintf(to, ", %d call%s", r->ncall, kl_plural(r->ncall));
    if (*r->file[0].version) fprintf(to, "; version %s", r->file[0].version);
    fprintf(to, "\n");
}

/* ---- findings ---- */

/* The remedy of several findings is said once. */
static bool says_anew(const struct kl_record *r, int finding)
{
    return !finding || r->finding[finding - 1].code != r->finding[finding].code;
}

static void print_finding(const struct kl_record *r, int finding, FILE *to)
{
    const struct kl_record_finding *f = &r->finding[finding];
    char line[LINE], remedy[LINE];
    struct kl_text t = kl_text_in(line, sizeof line), u = kl_text_in(remedy, sizeof remedy);

    kl_record_finding_text(r, f, &t);
    kl_record_finding_remedy(r, f, &u);
    fprintf(to, "  %s\n", line);
    if (f->call >= 0 && *r->call[f->call].where) fprintf(to, "      called at %s\n", r->call[f->call].where);
    if (*remedy && says_anew(r, finding)) fprintf(to, "      %s\n", remedy);
}

static void print_findings(const struct kl_record *r, bool problems, const char *title, FILE *to)
{
    bool any = false;

    for (int i = 0; i < r->nfinding; i++) {
        if (is_problem(&r->finding[i]) != problems) continue;
        if (!any) fprintf(to, "\n%s\n", title);
        any = true;
        print_finding(r, i, to);
    }
}

/* ---- ranks ---- */

static bool is_named(const struct kl_record *r, const struct kl_record_member *m)
{
    for (int i = 0; i < r->nfinding; i++) {
        const struct kl_record_finding *f = &r->finding[i];

        for (int k = 0; k < f->n && f->group == m->group && is_problem(f); k++)
            if (r->list[f->first + k] == m->rank) return true;
    }
    return false;
}

static void print_number(int64_t n, FILE *to)
{
    if (n < 0)
        fprintf(to, "%-8s", "-");
    else
        fprintf(to, "%-8" PRId64, n);
}

static void print_doing(const struct kl_record *r, const struct kl_record_member *m, FILE *to)
{
    const int call = m->open >= 0 ? m->open : m->last;
    char line[LINE];
    struct kl_text t = kl_text_in(line, sizeof line);

    if (m->state != KL_MEMBER_RUNS) {
        fprintf(to, "%s", kl_member_state_name(m->state));
    } else if (call >= 0) {
        kl_record_call_text(r, &r->call[call], &t);
        fprintf(to, "%s%s, %s", m->open >= 0 ? "" : "after ", line, kl_call_state_name(r->call[call].state));
        if (*r->call[call].where) fprintf(to, ", at %s", r->call[call].where);
    } else if (!m->ncounts) {
        fprintf(to, "no call");
    }
    for (int i = m->first_count; i < m->first_count + m->ncounts; i++)
        fprintf(to, "%s%" PRId64 " %s", i > m->first_count ? ", " : "", r->count[i].n, r->count[i].function);
    fprintf(to, "\n");
}

static void print_member(const struct kl_record *r, const struct kl_record_member *m, FILE *to)
{
    char name[128];
    struct kl_text t = kl_text_in(name, sizeof name);

    kl_record_group_text(r, m->group, &t);
    fprintf(to, "  %-6d %-34s ", m->rank, name);
    print_number(m->called, to);
    print_number(m->ended, to);
    print_doing(r, m, to);
}

static void print_ranks(const struct kl_record *r, bool all, FILE *to)
{
    int left_out = 0;

    if (!r->nmember) return;
    fprintf(to, "\nWhere each rank is:\n  %-6s %-34s %-8s%-8s%s\n", "rank", "group", "called", "ended", "in");
    for (int i = 0; i < r->nmember; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i]];

        if (all || r->nmember <= FEW || is_named(r, m))
            print_member(r, m, to);
        else
            left_out++;
    }
    if (left_out) fprintf(to, "  %d more; --all lists them\n", left_out);
}

/* ---- times ---- */

static void print_sum(const struct kl_record_sum *s, FILE *to)
{
    char size[32] = "", mean[32] = "", least[32] = "", most[32] = "", how[64] = "";
    struct kl_text t = kl_text_in(size, sizeof size), u = kl_text_in(mean, sizeof mean),
                   v = kl_text_in(least, sizeof least), w = kl_text_in(most, sizeof most),
                   x = kl_text_in(how, sizeof how);
    const struct kl_record_call *c = s->like;

    if (c->bytes >= 0)
        kl_text_add_size(&t, c->bytes);
    else if (c->in >= 0)
        kl_text_add(&t, "%" PRId64 "%s%s", c->in, *c->type ? " " : "", c->type);
    kl_text_add_time(&u, s->total_us / s->timed);
    kl_text_add_time(&v, s->least_us);
    kl_text_add_time(&w, s->most_us);
    kl_text_add(&x, "%s%s%s", c->algorithm, *c->algorithm && *c->protocol ? " " : "", c->protocol);
    fprintf(to, "  %-20s %-14s %-12s %6d  %9s %9s %9s\n", c->name, *how ? how : "-", *size ? size : "-", s->n, mean,
            least, most);
}

static void print_sums(const struct kl_record_answer *a, bool all, FILE *to)
{
    bool ring = false;
    int shown = 0;

    for (int i = 0; i < a->nsum; i++) {
        if (!a->sum[i].timed) continue;
        if (!shown++)
            fprintf(to, "\n  %-20s %-14s %-12s %6s  %9s %9s %9s\n", "call", "how", "size", "calls", "mean", "least",
                    "most");
        if (shown > SUMS && !all) {
            fprintf(to, "  ...; --all lists all\n");
            return;
        }
        print_sum(&a->sum[i], to);
        ring |= !strcmp(a->sum[i].like->algorithm, "RING");
    }
    if (ring) fprintf(to, "  RING in the name of a kernel stands for NVLS, CollNet and PAT as well\n");
}

static void print_overlap(const struct kl_record *r, bool all, FILE *to)
{
    int shown = 0;

    for (int i = 0; i < r->nfile; i++) {
        const struct kl_record_file *f = &r->file[i];

        if (f->span_us <= 0 || (shown >= FEW && !all)) continue;
        if (!shown++) fprintf(to, "\n  %-6s %14s %14s %14s\n", "rank", "communicates", "not hidden", "computes");
        fprintf(to, "  %-6d %12.1f %% %12.1f %% %12.1f %%\n", f->rank, 100 * f->comm_us / f->span_us,
                100 * (f->comm_us - f->hidden_us) / f->span_us, 100 * f->compute_us / f->span_us);
    }
}

void kl_record_print(const struct kl_record_answer *a, bool all, FILE *to)
{
    const struct kl_record *r = &a->record;
    char line[LINE];
    struct kl_text t = kl_text_in(line, sizeof line);

    kl_record_verdict(r, &t);
    fprintf(to, "%s\n", line);
    print_facts(r, to);
    print_findings(r, true, "What is wrong, culprit first:", to);
    print_findings(r, false, "Worth knowing:", to);
    print_overlap(r, all, to);
    print_sums(a, all, to);
    if (all || r->ncount || (r->nfinding && r->finding[0].weight <= KL_LOG_FOLLOWS)) print_ranks(r, all, to);
}
