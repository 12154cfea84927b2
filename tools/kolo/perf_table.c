/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_table.h"

#include "topo/release.h"

double kl_perf_mean_bandwidth(const struct kl_perf_summary *s)
{
    return s->nhalves ? s->bus_sum / s->nhalves : 0;
}

bool kl_perf_too_slow(const struct kl_perf_summary *s)
{
    return s->min_bandwidth >= 0 && kl_perf_mean_bandwidth(s) < 0.9 * s->min_bandwidth;
}

static void print_hosts(FILE *to, const struct kl_perf_config *c)
{
    if (c->nhosts <= 1 && !c->netns) return;
    fprintf(to, "# Emulated hosts: %d%s", c->nhosts, c->netns ? ", each in a network namespace" : "");
    if (c->link_rate) fprintf(to, ", with a link of %.10g Gb/s in each direction", (double)c->link_rate / 1e9);
    fputs("\n", to);
}

static void print_parameters(FILE *to, const struct kl_perf_config *c)
{
    bool by_factor = c->step_factor > 1;
    char nccl[KL_NCCL_TEXT];

    fprintf(to, "# NCCL %s: algorithms and channels are those that this release chooses\n",
            kl_nccl_text(c->release, nccl));
    fprintf(to, "# nccl-headers=%d nccl-library=%d\n", NCCL_VERSION_CODE, NCCL_VERSION_CODE);
    fprintf(to, "# Collective test starting: %s_perf\n", c->coll->name);
    fprintf(to,
            "# nThread %d nGpus %d minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d iters: %d agg iters: %d "
            "validation: %d graph: %d\n",
            c->nthreads, c->ndevices, (unsigned long long)c->min_bytes, (unsigned long long)c->max_bytes,
            by_factor ? (unsigned long long)c->step_factor : (unsigned long long)c->step_bytes,
            by_factor ? "factor" : "bytes", c->warmups, c->iterations, c->aggregated, c->checks, c->graph_launches);
    if (c->blocking) fputs("# Blocking Enabled: wait for completion after each collective\n", to);
    if (c->parallel_init) fputs("# Parallel Init Enabled: threads call into NcclInitRank concurrently\n", to);
    print_hosts(to, c);
    fputs("#\n", to);
}

static void print_devices(FILE *to, const struct kl_perf_device *d, int nranks)
{
    fputs("# Using devices\n", to);
    for (int r = 0; r < nranks; r++)
        fprintf(to, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [0x%02x] host CPU\n", d[r].rank, 0, d[r].pid,
                d[r].host, d[r].device, d[r].device);
}

/* The columns of a half are 32 wide, and 35 more with the spread of the iterations. */
static void print_halves(FILE *to, bool spread)
{
    int gap = spread ? 58 : 23;

    fprintf(to, "# %10s  %12s  %8s  %6s  %6s           out-of-place%*sin-place          \n", "", "", "", "", "", gap,
            "");
}

static void print_names(FILE *to, const char *time, bool spread)
{
    fprintf(to, "  %7s  %6s  %6s %6s", time, "algbw", "busbw", "#wrong");
    if (spread) fprintf(to, "  %7s  %7s  %7s  %6s", "i_min", "i_max", "i_p99", "i_cv%");
}

static void print_units(FILE *to, bool spread)
{
    fprintf(to, "  %7s  %6s  %6s  %5s", "(us)", "(GB/s)", "(GB/s)", "");
    if (spread) fprintf(to, "  %7s  %7s  %7s  %6s", "(us)", "(us)", "(us)", "(%)");
}

static void print_columns(FILE *to, const struct kl_perf_config *c)
{
    const char *time = c->cpu_time ? "cputime" : "time";

    print_halves(to, c->per_iteration);
    fprintf(to, "# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
    for (int half = 0; half < 2; half++) print_names(to, time, c->per_iteration);
    if (c->timestamps) fprintf(to, "  %-19s", "timestamp");
    fprintf(to, "\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
    for (int half = 0; half < 2; half++) print_units(to, c->per_iteration);
    fputs("\n", to);
}

void kl_perf_print_header(FILE *to, const struct kl_perf_config *c, const struct kl_perf_device *devices, int nranks)
{
    print_parameters(to, c);
    print_devices(to, devices, nranks);
    fputs("#\n", to);
    print_columns(to, c);
    fflush(to);
}

void kl_perf_print_row(FILE *to, const struct kl_perf_row *r)
{
    fprintf(to, "%12zu  %12zu  %8s  %6s  %6d", r->bytes, r->count, r->type, r->op, r->root);
    fflush(to);
}

static void format_time(double us, char *text, size_t size)
{
    int digits = us >= 10000 ? 0 : us >= 100 ? 1 : 2;

    snprintf(text, size, "%7.*f", digits, us);
}

void kl_perf_print_half(FILE *to, const struct kl_perf_config *c, const struct kl_perf_half *h)
{
    char time[24], min[24], max[24], p99[24];

    format_time(h->time_us, time, sizeof time);
    fprintf(to, "  %7s  %6.2f  %6.2f", time, h->bandwidth.algorithm, h->bandwidth.bus);
    if (h->wrong == KL_PERF_UNCHECKED)
        fprintf(to, "  %5s", "N/A");
    else
        fprintf(to, "  %5g", (double)h->wrong);
    if (c->per_iteration) {
        format_time(h->spread.min, min, sizeof min);
        format_time(h->spread.max, max, sizeof max);
        format_time(h->spread.p99, p99, sizeof p99);
        fprintf(to, "  %7s  %7s  %7s  %6.2f", min, max, p99, h->spread.cv_percent);
    }
    fflush(to);
}

void kl_perf_print_end(FILE *to, const struct kl_perf_config *c, time_t at)
{
    char text[32];
    struct tm tm;

    if (c->timestamps && localtime_r(&at, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm))
        fprintf(to, "  %s", text);
    fputs("\n", to);
    fflush(to);
}

void kl_perf_print_footer(FILE *to, const struct kl_perf_config *c, const struct kl_perf_summary *s)
{
    const char *speed = s->min_bandwidth < 0 ? "" : kl_perf_too_slow(s) ? "FAILED" : "OK";

    fprintf(to, "# Out of bounds values : %lld %s\n", (long long)s->wrong, s->wrong ? "FAILED" : "OK");
    fprintf(to, "# Avg bus bandwidth    : %g %s\n", kl_perf_mean_bandwidth(s), speed);
    fprintf(to, "#\n# Collective test concluded: %s_perf\n", c->coll->name);
    fflush(to);
}
