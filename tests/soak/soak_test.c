/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs against a sequential model, each in a job of its own:
 *
 *   soak_test --seeds 0-199     these programs, one after the other
 *   soak_test --seed 17         one, and say what it is doing
 *   soak_test --print 17        show it
 *
 * What fails is repeated by the command that it prints: the program is the same, when its ranks do what is not.
 */
#include "tests/soak/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { LIMIT_S = 90 };
#else
enum { LIMIT_S = 45 };
#endif

static const char *self;

static bool is_good(const struct soak_program *p, const struct soak_ending *e)
{
    return !e->late && !e->crashed && e->ranks[SOAK_RIGHT] == p->n;
}

static bool run(uint64_t seed)
{
    static struct soak_program p;
    static struct soak_ending e;

    soak_program_draw(&p, seed);
    soak_stage(&p, LIMIT_S, &e);
    if (is_good(&p, &e)) return true;
    printf("%s: %s --seed %llu (show it: --print %llu)\n%s",
           e.late      ? "HANGS"
           : e.crashed ? "CRASHES"
                       : "FAILS",
           self, (unsigned long long)seed, (unsigned long long)seed, e.text);
    fflush(stdout);
    return false;
}

static int run_all(uint64_t first, uint64_t last)
{
    int failed = 0;

    for (uint64_t seed = first; seed <= last; seed++) failed += !run(seed);
    printf("%llu programs, %d failed\n", (unsigned long long)(last - first + 1), failed);
    return failed != 0;
}

static int print(uint64_t seed)
{
    static struct soak_program p;

    soak_program_draw(&p, seed);
    soak_program_print(&p, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long long first, last;
    char more;

    self = argv[0];
    setenv("KOLO_TIMEOUT", "20", 0); /* what waits for nobody says who waits for whom */
    if (argc == 3 && !strcmp(argv[1], "--seeds") && sscanf(argv[2], "%llu-%llu%c", &first, &last, &more) == 2)
        return run_all(first, last);
    if (argc == 3 && !strcmp(argv[1], "--seed") && sscanf(argv[2], "%llu%c", &first, &more) == 1)
        return run_all(first, first);
    if (argc == 3 && !strcmp(argv[1], "--print") && sscanf(argv[2], "%llu%c", &first, &more) == 1) return print(first);
    fprintf(stderr, "usage: %s --seeds FIRST-LAST | --seed SEED | --print SEED\n", self);
    return 2;
}
