/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "include/nccl.h"
#include "tools/kolo/output.h"
#include "tools/kolo/spawn.h"

#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

/* A command without a summary is not shown. Ends with an empty row. */
static const struct command commands[] = {
    {"env", cmd_env, "list parameters, their defaults and current values"},
    {"topo", cmd_topo, "this machine or a topology file, and the paths through it"},
    {"graph", cmd_graph, "what the search makes of a topology: rings, trees, tuning"},
    {"explain", cmd_explain, "why: algorithms, channels, transports, NICs, and what a change would change"},
    {"perf", cmd_perf, "measure and verify collectives"},
    {"perf-rank", cmd_perf_rank, NULL},
    {"trace", cmd_trace, "put the traces of several ranks together, and say who is late"},
    {"run", cmd_run, "start a program on N ranks on this machine"},
    {NULL, NULL, NULL},
};

static void usage(FILE *to)
{
    fprintf(to, "usage: kolo <command> [options]\n\n");
    for (const struct command *c = commands; c->name; c++)
        if (c->summary) fprintf(to, "  %-8s %s\n", c->name, c->summary);
    fprintf(to, "\n`kolo <command> --help` explains a command.\n");
}

static int is_any(const char *text, const char *a, const char *b)
{
    return !strcmp(text, a) || !strcmp(text, b);
}

/* A command that did well has done so only if its output arrived. One that failed has said why. */
static int finish(int status)
{
    if (status != EXIT_OK || !kl_output_end(stdout)) return status;
    fprintf(stderr, "%s\n", kl_error_text());
    return EXIT_PROBLEM;
}

int main(int argc, char **argv)
{
    kl_spawn_hidden(argc, argv);
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (is_any(argv[1], "--help", "-h")) {
        usage(stdout);
        return finish(EXIT_OK);
    }
    if (is_any(argv[1], "--version", "-V")) {
        printf("kolo 0.1.0 (NCCL API %d.%d.%d)\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
        return finish(EXIT_OK);
    }
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(argv[1], c->name)) return finish(c->run(argc - 1, argv + 1));

    fprintf(stderr, "kolo: no command \"%s\"; `kolo --help` lists them\n", argv[1]);
    return EXIT_USAGE;
}
