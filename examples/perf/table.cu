/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

void print_head(const options &o)
{
    printf(
        "# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: %d validation: %d\n#\n",
        o.threads, o.gpus, o.first, o.last, o.factor > 1 ? o.factor : o.step, o.factor > 1 ? "factor" : "bytes",
        o.warmup, o.iterations, o.check);
}

void print_devices(const char *lines, int ranks, size_t width)
{
    printf("# Using devices\n");
    for (int r = 0; r < ranks; r++) printf("%s\n", lines + r * width);
}

void print_columns(void)
{
    printf("#\n"
           "#%57s%30s\n"
           "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n"
           "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n",
           "out-of-place", "in-place", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
           "time", "algbw", "busbw", "#wrong", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
           "(GB/s)", "(GB/s)", "");
}

static void print_measured(const measured &m)
{
    int digits = m.us >= 10000 ? 0 : m.us >= 100 ? 1 : 2;

    if (!m.possible) {
        printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    printf("  %7.*f  %6.2f  %6.2f  ", digits, m.us, m.algbw, m.busbw);
    if (m.wrong < 0)
        printf("%5s", "N/A");
    else
        printf("%5.0f", m.wrong);
}

void print_row(size_t bytes, size_t count, const char *type, const char *op, int root, const measured m[2])
{
    printf("%12zu  %12zu  %8s  %6s  %6d", bytes, count, type, op, root);
    print_measured(m[0]);
    print_measured(m[1]);
    putchar('\n');
    fflush(stdout);
}

void print_foot(double wrong, double bandwidth)
{
    printf("# Out of bounds values : %.0f %s\n# Avg bus bandwidth    : %g\n#\n", wrong, wrong > 0 ? "FAILED" : "OK",
           bandwidth);
}
