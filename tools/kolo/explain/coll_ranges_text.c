/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/coll_print.h"

#include <stdio.h>

enum { COLUMNS = 110, INDENT = 6 };

static bool same_pair(const struct kl_tuning_range *a, const struct kl_tuning_range *b)
{
    return a->choice.algo == b->choice.algo && a->choice.proto == b->choice.proto;
}

/* The ranges from `first` on that share algorithm and protocol end before the result. */
static int end_of(const struct kl_op_choice *f, int first)
{
    int end = first;

    while (end < f->nranges && same_pair(&f->range[first], &f->range[end])) end++;
    return end;
}

static void span(int a, int b, char text[KL_SIZE_TEXT])
{
    if (a == b)
        snprintf(text, KL_SIZE_TEXT, "%d", a);
    else
        snprintf(text, KL_SIZE_TEXT, "%d to %d", a, b);
}

static void print_row(const struct kl_coll_asked *a, const struct kl_op_choice *f, int first, int end, FILE *to)
{
    const struct kl_tuning_range *x = &f->range[first], *y = &f->range[end - 1];
    char low[KL_SIZE_TEXT], high[KL_SIZE_TEXT], channels[KL_SIZE_TEXT], threads[KL_SIZE_TEXT], name[KL_SIZE_TEXT];

    fprintf(to, "  %16s %16s  ", kl_grouped(x->first, low), kl_grouped(y->last, high));
    if (x->choice.algo < 0) {
        fprintf(to, "nothing\n");
        return;
    }
    span(x->choice.nchannels, y->choice.nchannels, channels);
    span(x->choice.nthreads, y->choice.nthreads, threads);
    snprintf(name, sizeof name, "%s %s", kl_algo_name[x->choice.algo], kl_proto_name[x->choice.proto]);
    fprintf(to, "%-20s %10s %12s %12.1f %12.1f %9.4g\n", name, channels, threads, (double)x->choice.time,
            (double)y->last_time, kl_coll_bus(a, y->last, y->last_time));
}

/* "16 x 640 from 81,920 B", as many as fit a line. */
static void print_steps(const struct kl_op_choice *f, int first, int end, FILE *to)
{
    int used = COLUMNS;

    for (int i = first; i < end; i++) {
        char text[2 * KL_SIZE_TEXT + 32], from[KL_SIZE_TEXT];
        const struct kl_tuning_range *r = &f->range[i];
        int n = snprintf(text, sizeof text, "%d x %d from %s", r->choice.nchannels, r->choice.nthreads,
                         kl_grouped(r->first, from));

        if (used + n + 2 > COLUMNS) {
            used =
                fprintf(to, "%s%*s%s", i == first ? "" : ",\n", INDENT, "", i == first ? "channels x threads: " : "") -
                (i == first ? 0 : 2);
            fprintf(to, "%s", text);
            used += n;
        } else {
            used += fprintf(to, ", %s", text);
        }
    }
    fprintf(to, "\n");
}

/* Where within the ranges of an algorithm and protocol the size is that was asked for. */
static void print_own_step(const struct kl_coll_asked *a, const struct kl_op_choice *f, int first, int end, FILE *to)
{
    char low[KL_SIZE_TEXT], high[KL_SIZE_TEXT];

    for (int i = first; i < end; i++) {
        const struct kl_tuning_range *r = &f->range[i];

        if (a->first < r->first || a->first > r->last) continue;
        fprintf(to, "  %16s %16s    %d x %d channels x threads, with the size asked for\n", kl_grouped(r->first, low),
                kl_grouped(r->last, high), r->choice.nchannels, r->choice.nthreads);
    }
}

void kl_coll_ranges_text(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    bool one = a->first == a->last;

    fprintf(to, "\nwhere the choice changes, to the byte\n  %16s %16s  %-20s %10s %12s %12s %12s %9s\n", "from", "to",
            "", "channels", "threads", "us at from", "us at to", "bus GB/s");
    for (int i = 0, end; i < f->nranges; i = end) {
        end = end_of(f, i);
        print_row(a, f, i, end, to);
        if (end - i > 1 && one) print_own_step(a, f, i, end, to);
        if (end - i > 1 && !one) print_steps(f, i, end, to);
    }
}
