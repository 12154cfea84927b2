/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/bench_print.h"

#include <math.h>
#include <string.h>

enum { LINE = 1024, REASONS = 4 };

static int problems(const struct kl_bench *b)
{
    int n = 0;

    for (int i = 0; i < b->nfinding; i++) n += b->finding[i].problem;
    return n;
}

static void add_table(const struct kl_bench *b, int table, struct kl_text *t)
{
    const struct kl_bench_table *k = &b->table[table];

    kl_text_add(t, "%s", k->name[0] ? k->name : "a collective");
    if (k->nranks) kl_text_add(t, ", %d rank%s", k->nranks, kl_plural(k->nranks));
    if (k->nhosts > 1) kl_text_add(t, " on %d hosts", k->nhosts);
}

static bool is_modelled(const struct kl_bench *b)
{
    for (int i = 0; i < b->ntable; i++)
        if (b->table[i].modelled) return true;
    return false;
}

static void print_headline(const struct kl_bench *b, FILE *to)
{
    char line[LINE], about[LINE];
    struct kl_text t = kl_text_over(line, sizeof line), a = kl_text_over(about, sizeof about);
    int n = problems(b);

    if (!n) {
        fprintf(to, "%s\n",
                is_modelled(b) ? "Nothing falls short of the model" : "The table shows no problem by itself");
        return;
    }
    kl_bench_finding_text(&b->finding[0], &t);
    add_table(b, b->finding[0].table, &a);
    fprintf(to, "%s (%s)", line, about);
    if (n > 1) fprintf(to, "; %d more problem%s", n - 1, kl_plural(n - 1));
    fprintf(to, "\n");
}

static const char *size_text(int64_t size, char text[32])
{
    static const char units[] = "BKMGT";
    int u = 0;

    while (size >= 1024 && size % 1024 == 0 && u < 4) size /= 1024, u++;
    snprintf(text, 32, u ? "%lld %ciB" : "%lld B", (long long)size, units[u]);
    return text;
}

static void print_shape(const struct kl_bench_table *t, FILE *to)
{
    char knee[32], peak[32];

    fprintf(to, "  ");
    if (t->shape.floor_us > 0) fprintf(to, "%.4g us at least; ", t->shape.floor_us);
    fprintf(to, "half of the bandwidth from %s on, most of it %.4g GB/s at %s\n", size_text(t->shape.knee, knee),
            t->shape.peak, size_text(t->shape.peak_size, peak));
}

static void print_wrong(const struct kl_bench_row *r, FILE *to)
{
    int64_t n = (r->time[0].wrong > 0 ? r->time[0].wrong : 0) + (r->time[1].wrong > 0 ? r->time[1].wrong : 0);

    if (n) fprintf(to, "  %lld wrong", (long long)n);
}

static void print_rows(const struct kl_bench *b, const struct kl_bench_table *t, bool all, FILE *to)
{
    char size[32];

    if (!t->modelled && !all) return;
    fprintf(to, "          size   measured us     GB/s%s\n", t->modelled ? "  predicted us     GB/s  measured" : "");
    for (int i = 0; i < t->n; i++) {
        const struct kl_bench_row *r = &b->row[t->first + i];
        double bus = kl_bench_row_bus(r);

        fprintf(to, "  %12s  %12.5g  %7.4g", size_text(r->size, size), kl_bench_row_us(r), bus);
        if (t->modelled && r->predicted_bus > 0)
            fprintf(to, "  %12.5g  %7.4g  %6.0f %%", r->predicted_us, r->predicted_bus,
                    100 * r->predicted_us / fmax(kl_bench_row_us(r), 1e-3));
        print_wrong(r, to);
        fprintf(to, "\n");
    }
}

static void print_findings(const struct kl_bench *b, int table, FILE *to)
{
    for (int i = 0; i < b->nfinding; i++) {
        const struct kl_bench_finding *f = &b->finding[i];
        char line[LINE], at[KL_LOG_AT];
        struct kl_text t = kl_text_over(line, sizeof line);
        const char *remedy = kl_bench_finding_remedy(f->code);

        if (f->table != table) continue;
        kl_bench_finding_text(f, &t);
        fprintf(to, "  %s%s\n      %s\n", f->problem ? "" : "worth knowing: ", line,
                kl_log_at_text(&b->log, f->at, at));
        if (remedy) fprintf(to, "      %s\n", remedy);
    }
}

static void print_reasons(const struct kl_bench_table *t, FILE *to)
{
    int shown = t->nhypotheses < REASONS ? t->nhypotheses : REASONS;

    if (t->modelled && t->off > 1.2 && t->slower < 1 / 1.15)
        fprintf(
            to,
            "  Measured is %.3g times as fast as the model: is this the machine, and are its links as in the file?\n",
            1 / t->slower);
    else if (t->modelled && t->off > 1.2 && !shown)
        fprintf(to,
                "  No setting that the model knows explains the difference (factor %.2f): NCCL_DEBUG=INFO and kolo "
                "explain --log "
                "would tell more\n",
                t->off);
    if (shown) fprintf(to, "  The model is off by a factor of %.2f. It comes nearer\n", t->off);
    for (int i = 0; i < shown; i++)
        fprintf(to, "    %s: factor %.2f\n      %s\n", t->hypothesis[i].text, t->hypothesis[i].off,
                t->hypothesis[i].experiment);
}

static void print_table(const struct kl_bench *b, int table, bool all, FILE *to)
{
    const struct kl_bench_table *t = &b->table[table];
    char about[LINE], at[KL_LOG_AT];
    struct kl_text a = kl_text_over(about, sizeof about);

    add_table(b, table, &a);
    fprintf(to, "\n%s%s", about, t->named_by_ratio ? " (by its bandwidths)" : "");
    if (t->gpu[0]) fprintf(to, ", %s", t->gpu);
    if (t->version[0]) fprintf(to, ", NCCL %s", t->version);
    fprintf(to, ", %s\n", kl_log_at_text(&b->log, b->row[t->first].at, at));
    if (t->shape.peak > 0) print_shape(t, to);
    print_rows(b, t, all, to);
    print_findings(b, table, to);
    print_reasons(t, to);
}

void kl_bench_text(const struct kl_bench *b, bool all, FILE *to)
{
    print_headline(b, to);
    if (is_modelled(b))
        fprintf(to,
                "  %s, by the rules of NCCL %s; times are those of its model, with constants that are assumed, not "
                "measured\n",
                b->machine, b->nccl);
    else
        fprintf(to, "  not beside the model: %s; --topo FILE names the machine\n",
                b->why[0] ? b->why : "it has no times for this");
    for (int i = 0; i < b->ntable; i++) print_table(b, i, all, to);
}
