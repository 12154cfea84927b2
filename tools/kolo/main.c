/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "include/nccl.h"
#include "answer/output.h"
#include "tools/kolo/escaped.h"
#include "tools/kolo/help_json.h"
#include "tools/kolo/spawn.h"

#include <stdio.h>
#include <string.h>

static const struct kl_command *const commands[] = {
    &kl_command_env,   &kl_command_topo,      &kl_command_graph, &kl_command_explain,
    &kl_command_perf,  &kl_command_perf_rank, &kl_command_ras,   &kl_command_plugin,
    &kl_command_trace, &kl_command_tune,      &kl_command_run,   NULL,
};

static void usage(FILE *to)
{
    fprintf(to, "usage: kolo COMMAND [options]\n\n");
    for (const struct kl_command *const *c = commands; *c; c++)
        if ((*c)->summary) fprintf(to, "  %-8s %s\n", (*c)->name, (*c)->summary);
    fprintf(to, "  %-8s %s\n  %-8s %s\n", "help", "print this, or the help of a COMMAND; --json: all of them as JSON",
            "version", "print the version of Kolo and of the NCCL API");
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

/* These pass on the output of programs, byte by byte. All others print texts of inputs. */
static int passes_output(const struct kl_command *c)
{
    return c == &kl_command_run || c == &kl_command_perf || c == &kl_command_perf_rank;
}

static int run_command(int argc, char **argv)
{
    for (const struct kl_command *const *c = commands; *c; c++) {
        if (strcmp(argv[0], (*c)->name) != 0) continue;
        if (!passes_output(*c)) {
            stdout = kl_escaped(stdout);
            stderr = kl_escaped(stderr);
            setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
        }
        return finish((*c)->run(argc, argv));
    }

    fprintf(stderr, "kolo: no command \"%s\"; `kolo --help` lists them\n", argv[0]);
    return EXIT_USAGE;
}

static int print_json(void)
{
    if (!kl_help_json(commands, stdout)) return EXIT_OK;
    fprintf(stderr, "%s\n", kl_error_text());
    return EXIT_PROBLEM;
}

/* help, help --json, or help COMMAND as COMMAND --help. */
static int help(const char *command)
{
    char name[32], option[] = "--help", *words[] = {name, option, NULL};

    if (!command) {
        usage(stdout);
        return finish(EXIT_OK);
    }
    if (!strcmp(command, "--json")) return print_json();
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
