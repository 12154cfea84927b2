/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/call_times.h"
#include "tools/kolo/plugin/replay.h"

#include "tools/kolo/cmd.h"

#include <stdio.h>

struct kind {
    struct kl_call_times times;
    uint64_t not_yet, failed;
};

static bool may_be_not_yet(enum kl_recorded_name name)
{
    return name == KL_REC_CONNECT || name == KL_REC_ACCEPT || name == KL_REC_ISEND || name == KL_REC_IRECV ||
           name == KL_REC_TEST;
}

static void print_kind(const char *name, const struct kind *k)
{
    printf("  %-13s %10llu %9.2f %9.2f %9.1f %6.1f%% %7llu\n", name, (unsigned long long)k->times.calls,
           (double)kl_call_times_quantile(&k->times, 0.5) / 1e3, (double)kl_call_times_quantile(&k->times, 0.99) / 1e3,
           (double)k->times.most_ns / 1e3, 100 * (double)k->not_yet / (double)k->times.calls,
           (unsigned long long)k->failed);
}

/* Returns the number of calls that failed or have not returned. */
static int sum_up(const struct kl_recorded *r)
{
    static struct kind kind[KL_REC_NAMES];
    int bad = 0;

    for (int i = 0; i < KL_REC_NAMES; i++) kind[i] = (struct kind){.not_yet = 0};
    for (size_t i = 0; i < r->n; i++) {
        const struct kl_recorded_call *c = &r->call[i];
        struct kind *k = &kind[c->name];
        if (!c->ended) continue;
        kl_call_times_add(&k->times, c->ended - c->begun);
        k->not_yet += !c->result && !c->value && may_be_not_yet(c->name);
        k->failed += c->result != 0;
        bad += c->result != 0;
    }
    printf("%s: %zu calls\n  %-13s %10s %9s %9s %9s %7s %7s\n", r->file, r->n, "call", "calls", "p50 us", "p99 us",
           "max us", "not yet", "failed");
    for (int i = 0; i < KL_REC_NAMES; i++)
        if (kind[i].times.calls) print_kind(kl_recorded_names[i], &kind[i]);
    for (size_t i = 0; i < r->n; i++) {
        if (r->call[i].ended) continue;
        printf("  thread %ld has not returned from %s\n", r->call[i].thread, kl_recorded_names[r->call[i].name]);
        bad++;
    }
    return bad;
}

int kl_plugin_summary(const struct kl_recorded *recorded, int n)
{
    int bad = 0;

    for (int i = 0; i < n; i++) bad += sum_up(&recorded[i]);
    return bad ? EXIT_PROBLEM : EXIT_OK;
}
