/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "include/nccl.h"
#include "answer/output.h"
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
    {"topo", cmd_topo, "show this machine or a topology file, and the paths through it"},
    {"graph", cmd_graph, "show the search's results for a topology: rings, trees, tuning"},
    {"explain", cmd_explain, "explain algorithms, channels, transports, NICs, and the effect of a change"},
    {"perf", cmd_perf, "measure and verify collectives"},
    {"perf-rank", cmd_perf_rank, NULL},
    {"ras", cmd_ras, "show the state of the ranks of running jobs: which lag behind, which are missing"},
    {"plugin", cmd_plugin, "check a plugin of NCCL's ABI against its contract"},
    {"trace", cmd_trace, "merge the traces of several ranks, and say which is late"},
    {"tune", cmd_tune, "measure this machine, so that communicators choose by its times"},
    {"run", cmd_run, "start a program on N ranks on this machine"},
    {NULL, NULL, NULL},
};

static void usage(FILE *to)
{
    fprintf(to, "usage: kolo COMMAND [options]\n\n");
    for (const struct command *c = commands; c->name; c++)
        if (c->summary) fprintf(to, "  %-8s %s\n", c->name, c->summary);
    fprintf(to, "  %-8s %s\n  %-8s %s\n", "help", "print this, or the help of a COMMAND", "version",
            "print the version of Kolo and of the NCCL API");
    fprintf(to, "\n`kolo COMMAND --help` lists the options of a command.\n");
}

static int is_any(const char *text, const char *a, const char *b)
{
    return !strcmp(text, a) || !strcmp(text, b);
}

/* A command only succeeds if its output was written. One that failed has printed the reason. */
static int finish(int status)
{
    if (status != EXIT_OK || !kl_output_end(stdout)) return status;
    fprintf(stderr, "%s\n", kl_error_text());
    return EXIT_PROBLEM;
}

static int run_command(int argc, char **argv)
{
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(argv[0], c->name)) return finish(c->run(argc, argv));

    fprintf(stderr, "kolo: no command \"%s\"; `kolo --help` lists them\n", argv[0]);
    return EXIT_USAGE;
}

/* help, or help COMMAND as COMMAND --help. */
static int help(const char *command)
{
    char name[32], option[] = "--help", *words[] = {name, option, NULL};

    if (!command) {
        usage(stdout);
        return finish(EXIT_OK);
    }
    snprintf(name, sizeof name, "%s", command);
    return run_command(2, words);
}

int main(int argc, char **argv)
{
    kl_spawn_hidden(argc, argv);
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (is_any(argv[1], "--help", "-h") || !strcmp(argv[1], "help")) return help(argc > 2 ? argv[2] : NULL);
    if (is_any(argv[1], "--version", "-V") || !strcmp(argv[1], "version")) {
        printf("kolo 0.1.0 (NCCL API %d.%d.%d)\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
        return finish(EXIT_OK);
    }
    return run_command(argc - 1, argv + 1);
}
