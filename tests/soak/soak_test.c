/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs against a sequential model, each in a job of its own:
 *
 *   soak_test --seeds 0-199     these programs, one after the other
 *   soak_test --seed 17         one of them
 *   soak_test --print 17        show it
 *   soak_test --verbose ...     also print failures that are allowed
 *
 * With --chaos, delays and short reads and writes are injected, which change no result; with --hard-chaos also faults
 * that make operations fail: refused descriptors and memory, broken connections, ranks that are killed or stopped. Then
 * every rank gets the right result, or a failure with its reason, in time.
 *
 * A failure is repeated by the command that it prints: the program is the same, the timing of its ranks is not.
 */
#include "tests/hang.h"
#include "tests/soak/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *self;
    bool verbose, chaos, hard;
    int failing; /* programs in which a rank failed, as it may */
} job;

static void draw(struct soak_program *p, uint64_t seed)
{
    soak_program_draw(p, seed);
    if (job.chaos) soak_program_disturb(p, job.hard);
}

static bool is_good(const struct soak_program *p, const struct soak_ending *e)
{
    if (e->late || e->crashed || e->ranks[SOAK_WRONG] || e->ranks[SOAK_RUNNING]) return false;
    return job.hard || e->ranks[SOAK_RIGHT] == p->n;
}

static void tell(const struct soak_ending *e, uint64_t seed, bool good)
{
    const char *what = good ? "fails" : e->late ? "HANGS" : e->crashed ? "CRASHES" : "FAILS";
    const char *option = job.hard ? "--hard-chaos " : job.chaos ? "--chaos " : "";

    printf("%s: %s %s--seed %llu (show it: --print %llu)\n%s", what, job.self, option, (unsigned long long)seed,
           (unsigned long long)seed, e->text);
    fflush(stdout);
}

static bool run(uint64_t seed)
{
    static struct soak_program p;
    static struct soak_ending e;

    draw(&p, seed);
    soak_stage(&p, (int)kolo_test_hang_s() / 3, &e);
    bool good = is_good(&p, &e), failed = e.ranks[SOAK_RIGHT] < p.n;
    job.failing += good && failed;
    if (!good || (failed && job.verbose)) tell(&e, seed, good);
    return good;
}

static int run_all(uint64_t first, uint64_t last)
{
    int wrong = 0;

    for (uint64_t seed = first; seed <= last; seed++) wrong += !run(seed);
    if (last > first && job.failing == (int)(last - first + 1))
        wrong++; /* no operation succeeded in spite of the faults */
    printf("%llu programs, %d failed", (unsigned long long)(last - first + 1), wrong);
    if (job.hard) printf("; %d ended with failures that said why", job.failing);
    printf("\n");
    return wrong != 0;
}

static int print(uint64_t seed)
{
    static struct soak_program p;

    draw(&p, seed);
    soak_program_print(&p, stdout);
    return 0;
}

static bool take_option(const char *word)
{
    bool hard = !strcmp(word, "--hard-chaos"), chaos = hard || !strcmp(word, "--chaos"),
         verbose = !strcmp(word, "--verbose");

    job.hard |= hard;
    job.chaos |= chaos;
    job.verbose |= verbose;
    return chaos || verbose;
}

int main(int argc, char **argv)
{
    unsigned long long first, last;
    char more;

    job.self = argv[0];
    for (; argc > 1 && take_option(argv[1]); argc--) argv++;
    setenv("KOLO_TIMEOUT", "20", 0); /* an endless wait prints the chain of waiting ranks */
    if (argc == 3 && !strcmp(argv[1], "--seeds") && sscanf(argv[2], "%llu-%llu%c", &first, &last, &more) == 2)
        return run_all(first, last);
    if (argc == 3 && !strcmp(argv[1], "--seed") && sscanf(argv[2], "%llu%c", &first, &more) == 1)
        return run_all(first, first);
    if (argc == 3 && !strcmp(argv[1], "--print") && sscanf(argv[2], "%llu%c", &first, &more) == 1) return print(first);
    fprintf(stderr, "usage: %s [--chaos | --hard-chaos] [--verbose] --seeds FIRST-LAST | --seed SEED | --print SEED\n",
            job.self);
    return 2;
}
