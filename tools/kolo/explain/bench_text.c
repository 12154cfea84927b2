/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/bench_print.h"

#include "logs/remedy.h"

#include <math.h>
#include <string.h>

enum { LINE = 1024, REASONS = 4 }; /* a table has names of at most 64 bytes */

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

static int compared_tables(const struct kl_bench *b)
{
    int n = 0;

    for (int i = 0; i < b->ntable; i++) n += b->table[i].compared > 0;
    return n;
}

/* Where nothing is wrong: the largest size of the first table that was compared. */
static void add_compared(const struct kl_bench *b, struct kl_text *t)
{
    int i = 0, n = compared_tables(b);

    while (!b->table[i].compared) i++;
    const struct kl_bench_row *r = &b->row[b->table[i].first + b->table[i].n - 1];

    kl_text_add(t, "No size is much slower than predicted: %.4g GB/s measured, %.4g predicted, at ",
                kl_bench_row_bus(r), r->predicted_bus);
    kl_text_add_size(t, r->size);
    kl_text_add(t, " (");
    add_table(b, i, t);
    kl_text_add(t, ")");
    if (b->ntable > 1) kl_text_add(t, "; %d of %d tables could be compared", n, b->ntable);
}

static void add_not_compared(const struct kl_bench *b, struct kl_text *t)
{
    kl_text_add(t, "%s no problem", b->ntable > 1 ? "The tables show" : "The table shows");
    if (!is_modelled(b)) {
        kl_text_add(t, " by %s", b->ntable > 1 ? "themselves" : "itself");
        if (b->log.nrun > 1) kl_text_add(t, " (%d runs, each judged by itself)", b->log.nrun);
        return;
    }
    kl_text_add(t, ", but nothing could be compared with the model: ");
    for (int i = 0; i < b->nrow; i++)
        if (b->row[i].size >= KL_BENCH_FILLS && b->row[i].predicted_us <= 0) {
            kl_text_add(t, "it has no time for ");
            kl_text_add_size(t, b->row[i].size);
            return;
        }
    kl_text_add(t, "no size reaches ");
    kl_text_add_size(t, KL_BENCH_FILLS);
}

/* Runs of several releases have no release in common. */
static bool is_one_release(const struct kl_bench *b)
{
    for (int i = 1; i < b->log.nversion; i++)
        if (b->log.version[i].number != b->log.version[0].number) return false;
    return true;
}

static void print_headline(const struct kl_bench *b, FILE *to)
{
    char line[2 * LINE];
    struct kl_text t = kl_text_in(line, sizeof line);
    int n = problems(b);

    if (is_modelled(b))
        kl_text_add(&t, "NCCL %s: ", b->nccl);
    else if (b->log.nversion && is_one_release(b))
        kl_text_add(&t, "%s %s: ", b->log.version[0].rccl ? "RCCL" : "NCCL", b->log.version[0].text);
    if (n) {
        kl_bench_finding_text(&b->finding[0], &t);
        if (b->finding[0].table >= 0) {
            kl_text_add(&t, " (");
            add_table(b, b->finding[0].table, &t);
            kl_text_add(&t, ")");
        }
        if (n > 1) kl_text_add(&t, "; %d more problem%s", n - 1, kl_plural(n - 1));
    } else if (compared_tables(b))
        add_compared(b, &t);
    else
        add_not_compared(b, &t);
    fprintf(to, "%s\n", line);
}

static void print_shape(const struct kl_bench_table *t, FILE *to)
{
    char line[LINE];
    struct kl_text l = kl_text_in(line, sizeof line);

    if (t->shape.floor_us > 0) {
        kl_text_add(&l, "latency ");
        kl_text_add_time(&l, t->shape.floor_us);
        kl_text_add(&l, "; ");
    }
    kl_text_add(&l, "peak %.4g GB/s at ", t->shape.peak);
    kl_text_add_size(&l, t->shape.peak_size);
    kl_text_add(&l, ", half of it from ");
    kl_text_add_size(&l, t->shape.knee);
    fprintf(to, "  %s on\n", line);
}

static void print_wrong(const struct kl_bench_row *r, FILE *to)
{
    int64_t n = (r->time[0].wrong > 0 ? r->time[0].wrong : 0) + (r->time[1].wrong > 0 ? r->time[1].wrong : 0);

    if (n) fprintf(to, "  %lld wrong", (long long)n);
}

static void print_cells(double us, double bus, FILE *to)
{
    char time[32];
    struct kl_text t = kl_text_in(time, sizeof time);

    kl_text_add_time(&t, us);
    fprintf(to, "  %9s %8.2f", time, bus);
}

static void print_rows(const struct kl_bench *b, const struct kl_bench_table *t, bool all, FILE *to)
{
    if (!t->modelled && !all) return;
    fprintf(to, "          size   measured     GB/s%s\n", t->modelled ? "  predicted     GB/s  reached" : "");
    for (int i = 0; i < t->n; i++) {
        const struct kl_bench_row *r = &b->row[t->first + i];
        char size[32];
        struct kl_text s = kl_text_in(size, sizeof size);

        kl_text_add_size(&s, r->size);
        fprintf(to, "  %12s", size);
        print_cells(kl_bench_row_us(r), kl_bench_row_bus(r), to);
        if (t->modelled && r->predicted_bus > 0) {
            print_cells(r->predicted_us, r->predicted_bus, to);
            fprintf(to, "  %5.0f %%", 100 * r->predicted_us / fmax(kl_bench_row_us(r), 1e-3));
        }
        print_wrong(r, to);
        fprintf(to, "\n");
    }
}

static void print_findings(const struct kl_bench *b, int table, FILE *to)
{
    for (int i = 0; i < b->nfinding; i++) {
        const struct kl_bench_finding *f = &b->finding[i];
        char line[LINE], at[KL_LOG_AT];
        struct kl_text t = kl_text_in(line, sizeof line);
        char remedy[LINE];
        struct kl_text r = kl_text_in(remedy, sizeof remedy);

        if (f->table != table) continue;
        kl_remedy_add(&b->log, kl_bench_finding_remedy(f->code), &r);
        kl_bench_finding_text(f, &t);
        fprintf(to, "  %s%s\n      %s\n", f->problem ? "" : "worth knowing: ", line,
                kl_log_at_text(&b->log, f->at, at));
        if (*remedy) fprintf(to, "      %s\n", remedy);
    }
}

static void print_reasons(const struct kl_bench_table *t, FILE *to)
{
    int shown = t->nhypotheses < REASONS ? t->nhypotheses : REASONS;

    if (t->beside == KL_BENCH_FASTER)
        fprintf(
            to,
            "  Measured is %.3g times as fast as predicted: is this the right machine, and are its links complete?\n",
            1 / t->slower);
    else if (t->beside == KL_BENCH_SLOWER && !shown)
        fprintf(to,
                "  %.2f times as slow as predicted, and no setting that the model knows explains it: a log "
                "(NCCL_DEBUG=INFO, "
                "kolo explain --log) shows more\n",
                t->slower);
    else if (t->beside == KL_BENCH_SCATTERED)
        fprintf(to, "  Some sizes are faster than predicted, others slower: by a factor of %.2f on average\n", t->off);
    if (shown) fprintf(to, "  Prediction and measurement differ by a factor of %.2f. They come closer\n", t->off);
    for (int i = 0; i < shown; i++)
        fprintf(to, "    %s: factor %.2f\n      %s\n", t->hypothesis[i].text, t->hypothesis[i].off,
                t->hypothesis[i].experiment);
}

static void print_table(const struct kl_bench *b, int table, bool all, FILE *to)
{
    const struct kl_bench_table *t = &b->table[table];
    char about[LINE], at[KL_LOG_AT];
    struct kl_text a = kl_text_in(about, sizeof about);

    add_table(b, table, &a);
    fprintf(to, "\n%s%s", about, t->named_by_ratio ? " (inferred from its bandwidths)" : "");
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
        fprintf(
            to,
            "  %s, by the rules of NCCL %s; predictions are those of its model, whose constants were not measured on "
            "this cluster\n",
            b->machine, b->nccl);
    else
        fprintf(to, "  not compared with the model: %s%s\n", b->why[0] ? b->why : "no table could be",
                b->machine[0] ? "" : "; --topo FILE or --machine NAME names the machine");
    print_findings(b, -1, to);
    for (int i = 0; i < b->ntable; i++) print_table(b, i, all, to);
    if (b->log.full) fprintf(to, "\nThe files have more tables or rows than fit: the rest was ignored.\n");
}
