/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/setting.h"
#include "graph/tuning_file.h"
#include "os/affinity.h"
#include "tools/kolo/cpu_use.h"
#include "tools/kolo/options.h"
#include "tools/kolo/tune_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS = 18 };

/* Limits of noise: other programs had more than a tenth of the CPUs, or more than a third of the times did not repeat. */
#define MOST_OTHERS 0.1
#define MOST_APART  (1.0 / 3)

struct asked {
    int show, forget, help, seconds, keep;
    const char *file;
};

static const struct kl_opt table[] = {
    {0, "show", KL_OPT_FLAG, offsetof(struct asked, show), 0, 0, NULL, "print the kept times, measure nothing"},
    {0, "forget", KL_OPT_FLAG, offsetof(struct asked, forget), 0, 0, NULL, "remove the kept times"},
    {0, "file", KL_OPT_TEXT, offsetof(struct asked, file), 0, 0, "FILE",
     "keep them in FILE (default: KOLO_TUNING, or kolo/tuning-... in the user's cache)"},
    {'t', "seconds", KL_OPT_INT, offsetof(struct asked, seconds), 1, 600, "S",
     "start no measurement after S seconds (default: 18)"},
    {0, "keep", KL_OPT_FLAG, offsetof(struct asked, keep), 0, 0, NULL,
     "keep the times even if other programs ran meanwhile, or the times did not repeat"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: kolo tune [options]\n\nMeasure how long collectives take on this machine with each algorithm, "
                "and keep the times: from then on\ncommunicators within this host choose by them, if all of their "
                "ranks know them. Nothing else should run meanwhile: times that other programs "
                "disturbed are not kept, and the\nexit code is 1.\n\n");
    kl_opts_help(table, to);
    fprintf(
        to,
        "\nWith KOLO_TUNING=none they are not used. `kolo explain allreduce 1M --constants host` shows them beside the "
        "modelled ones.\n");
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static int fail(void)
{
    fprintf(stderr, "kolo tune: %s\n", kl_error_text());
    return EXIT_PROBLEM;
}

/* ---- the file ---- */

static void print_line(const struct kl_tuning_measured *m, int func, int algo, int ranks)
{
    const float *us = m->us[func][algo][ranks];

    if (us[0] <= 0) return;
    printf("%-14s %-8s %5d", kl_func_name[func], kl_algo_name[algo], kl_measured_ranks[ranks]);
    for (int s = 0; s < KL_MEASURED_SIZES; s++) printf(" %9.2f", (double)us[s]);
    printf("\n");
}

static void print_times(const struct kl_tuning_measured *m)
{
    printf("# microseconds\n%-14s %-8s %5s", "", "", "ranks");
    for (int s = 0; s < KL_MEASURED_SIZES; s++) {
        long long bytes = kl_measured_bytes[s], kib = bytes >> 10;
        printf(" %7lld %s", kib >> 10 ? kib >> 10 : kib ? kib : bytes, kib >> 10 ? "M" : kib ? "K" : "B");
    }
    printf("\n");
    for (int f = 0; f < KL_FUNCS; f++)
        for (int r = 0; r < KL_MEASURED_RANKS; r++)
            for (int a = 0; a < KL_ALGOS; a++) print_line(m, f, a, r);
}

static int show(const char *path)
{
    struct kl_tuning_measured m;

    if (kl_tuning_file_read(path, &m)) return fail();
    print_times(&m);
    return EXIT_OK;
}

static int forget(const char *path)
{
    if (!unlink(path)) return printf("%s is removed\n", path), EXIT_OK;
    kl_fail_errno(__FILE__, __LINE__, "%s", path);
    return fail();
}

/* ---- measuring ---- */

/* The result of a tuning. */
struct outcome {
    struct kl_tuning_measured m;
    struct kl_tune_spread spread;
    double others; /* share of the CPUs */
    double seconds;
    bool noise;
};

static void judge(struct outcome *o, const struct kl_cpu_use *before, uint64_t begin)
{
    const struct kl_cpu_use now = kl_cpu_use_now();

    o->seconds = (double)(kl_now_ns() - begin) / 1e9;
    o->others = kl_cpu_use_of_others(before, &now, kl_affinity_count(), o->seconds);
    o->noise = o->others > MOST_OTHERS || o->spread.apart > MOST_APART * o->spread.times;
}

/* Stop measuring once the result is too noisy to keep. */
static ncclResult_t measure_all(const struct asked *a, struct outcome *o)
{
    const struct kl_cpu_use before = kl_cpu_use_now();
    uint64_t begin = kl_now_ns(), end = begin + (uint64_t)a->seconds * 1000000000u;

    for (int r = 0; r < KL_MEASURED_RANKS && (!o->noise || a->keep); r++) {
        if (isatty(STDERR_FILENO)) fprintf(stderr, "measuring with %d ranks\n", kl_measured_ranks[r]);
        KL_TRY(kl_tune_measure(r, kl_tune_share(end, KL_MEASURED_RANKS - r), &o->m, &o->spread));
        judge(o, &before, begin);
    }
    return ncclSuccess;
}

static void say_noise(const struct outcome *o, bool keep)
{
    fprintf(stderr,
            "%s: other programs had %.0f %% of the CPUs meanwhile, and %d of %d times did not repeat (median above %g "
            "times the least): %s\n",
            keep ? "warning" : "kolo tune", o->others * 100, o->spread.apart, o->spread.times, KL_TUNE_SPREAD_LIMIT,
            keep ? "kept all the same" : "not kept; measure when nothing else runs, or keep them with --keep");
}

static int measure(const char *path, const struct asked *a)
{
    struct outcome o = {.noise = false};

    if (kl_tuning_file_check(path) || measure_all(a, &o)) return fail();
    if (o.noise) say_noise(&o, a->keep);
    if (o.noise && !a->keep) return EXIT_PROBLEM;
    if (kl_tuning_file_write(path, &o.m)) return fail();
    print_times(&o.m);
    printf("# %.1f s; kept in %s\n", o.seconds, path);
    return EXIT_OK;
}

static int command(int argc, char **argv)
{
    struct asked a = {.seconds = SECONDS};
    char why[256], path[KL_TUNING_PATH];
    struct kl_setting setting;
    int end = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (end < 0) return fprintf(stderr, "kolo tune: %s\n", why), EXIT_USAGE;
    if (a.help) return usage(stdout);
    if (end < argc) {
        kl_opts_refuse_word(table, argv[end], why, sizeof why);
        return fprintf(stderr, "kolo tune: %s\n", why), EXIT_USAGE;
    }
    if (a.show && a.forget) return fprintf(stderr, "kolo tune: --show and --forget exclude each other\n"), EXIT_USAGE;
    kl_error_quiet(1);
    if (!kl_settings_find(kl_settings_process(), "KOLO_TUNING", &setting)) setting.text = "";
    if (kl_tuning_file_path(a.file ? a.file : setting.text, path)) return fail();
    if (a.show) return show(path);
    return a.forget ? forget(path) : measure(path, &a);
}

const struct kl_command kl_command_tune = {
    "tune", command, "measure this machine, so that communicators choose by its times", print_help, table, NULL};
