/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "include/nccl.h"
#include "tools/kolo/checks.h"
#include "tools/kolo/cuda_path.h"
#include "tools/kolo/job_options.h"
#include "tools/kolo/launch.h"
#include "tools/kolo/machines.h"
#include "tools/kolo/netns.h"
#include "tools/kolo/options.h"
#include "tools/kolo/spawn.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RANKS = 65536, GRACE_MS = 10000 };

struct run_options {
    int nranks, nhosts, netns, tag, bound, unbound, cuda, help;
    const char *topo, *machine, *nccl;
    uint64_t timeout_ms, grace_ms, link_rate;
};

#define FIELD(name) offsetof(struct run_options, name)
static const struct kl_opt table[] = {
    {'n', "np", KL_OPT_INT, FIELD(nranks), 1, MAX_RANKS, "N", "number of ranks"},
    {0, "hosts", KL_OPT_INT, FIELD(nhosts), 1, KL_NETNS_MAX_HOSTS, "H",
     "divide the ranks over H emulated hosts (NCCL_HOSTID), which reach each other by network only (default: 1)"},
    {0, "netns", KL_OPT_FLAG, FIELD(netns), 0, 0, NULL,
     "give each emulated host a network namespace with its own interface and address; needs root"},
    {0, "link-rate", KL_OPT_RATE, FIELD(link_rate), 0, 0, "R", KL_JOB_LINK_RATE_DOC},
    {0, "topo", KL_OPT_TEXT, FIELD(topo), 0, 0, "FILE", KL_JOB_TOPO_DOC},
    {0, "machine", KL_OPT_TEXT, FIELD(machine), 0, 0, "NAME", KL_JOB_MACHINE_DOC},
    {0, "cuda", KL_OPT_FLAG, FIELD(cuda), 0, 0, NULL,
     "let a program for CUDA and NCCL find Kolo's libraries in place of those (LD_LIBRARY_PATH); without -n: one "
     "process"},
    {0, "nccl", KL_OPT_TEXT, FIELD(nccl), 0, 0, "VERSION", KL_RELEASE_DOC},
    {0, "timeout", KL_OPT_TIME, FIELD(timeout_ms), 0, 0, "S", "end all ranks after S seconds (default: never)"},
    {0, "grace", KL_OPT_TIME, FIELD(grace_ms), 0, 0, "S",
     "when a rank dies, give the others S seconds to end by themselves before SIGTERM (default: 10)"},
    {0, "bind", KL_OPT_FLAG, FIELD(bound), 0, 0, NULL,
     "bind ranks also where there are more than CPUs, to each in turn: steadier, and it is known which ranks share "
     "one"},
    {0, "no-bind", KL_OPT_FLAG, FIELD(unbound), 0, 0, NULL,
     "let ranks run on all CPUs (default: each gets an equal share, where there are enough)"},
    {0, "tag", KL_OPT_FLAG, FIELD(tag), 0, 0, NULL, "start each line of output with \"[rank] \""},
    KL_OPT_HELP(struct run_options, help),
    KL_OPT_END,
};

static void print_help(FILE *to)
{
    fputs("usage: kolo run -n N [options] [--] PROGRAM [ARGUMENTS]\n\n"
          "Start PROGRAM as N processes on this machine, the ranks of one job. Each has in its environment\n"
          "  KOLO_RANK KOLO_SIZE KOLO_LOCAL_RANK KOLO_LOCAL_SIZE KOLO_COMM_ID      for koloInitFromEnv\n"
          "  RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT   as from torchrun\n\n",
          to);
    kl_opts_help(table, to);
    fputs(
        "\nOutput is passed on line by line, stdout and stderr separately; rank 0 reads stdin. Signals are passed on "
        "to all "
        "ranks.\n"
        "When a rank dies, the others get the grace period, then SIGTERM, and SIGKILL 2 seconds later; a report says\n"
        "how each rank ended. Exit code: 0 when all ranks ended with 0; else the code of the rank that failed first, "
        "or "
        "128 and\n"
        "the number of the signal that ended it; 1 after --timeout or if the job cannot be set up, 2 for wrong usage, "
        "126\n"
        "and 127 if the program cannot be executed or is not there.\n"
        "Calls that differ between ranks are found before any data move (NCCL_CHECK_MODE=FIRST_USE, unless it is "
        "set).\n\n"
        "example: kolo run -n 4 --hosts 2 --tag -- ./my_program\n"
        "         kolo run --cuda --topo dgx.xml --hosts 2 -n 16 -- ./all_reduce_perf\n",
        to);
}

static int wrong_usage(const char *why)
{
    fprintf(stderr, "kolo run: %s; `kolo run --help` explains\n", why);
    return EXIT_USAGE;
}

static int cannot_run(const char *program, int err)
{
    if (err == ENOENT)
        fprintf(stderr, "kolo run: there is no program \"%s\"\n", program);
    else if (err == EACCES)
        fprintf(stderr, "kolo run: \"%s\" is not executable: see `chmod +x`\n", program);
    else
        fprintf(stderr, "kolo run: \"%s\": %s\n", program, strerror(err));
    return err == ENOENT ? KL_SPAWN_NOT_FOUND : KL_SPAWN_NOT_RUN;
}

static int start(const struct run_options *o, const char *path, char **argv)
{
    char topo[PATH_MAX];
    struct kl_launch job = {
        .who = "kolo run",
        .path = path,
        .argv = argv,
        .nranks = o->nranks,
        .nhosts = o->nhosts,
        .netns = o->netns,
        .link_rate = o->link_rate,
        .tag = o->tag,
        .bound = o->bound,
        .unbound = o->unbound,
        .timeout_ms = o->timeout_ms,
        .grace_ms = o->grace_ms,
        .out = stdout,
        .err = stderr,
        .make_id = ncclGetUniqueId,
    };

    if (o->bound && o->unbound) {
        fputs("kolo run: --bind and --no-bind exclude each other\n", stderr);
        return EXIT_USAGE;
    }
    if (!kl_follow_release("run", o->nccl)) return EXIT_USAGE;
    if (o->topo) {
        if (!realpath(o->topo, topo) || access(topo, R_OK)) {
            fprintf(stderr, "kolo run: --topo %s: %s\n", o->topo, strerror(errno));
            return EXIT_PROBLEM;
        }
        job.topo_file = topo; /* ranks may change their directory */
    }
    if (!kl_machines_use("run", o->topo, o->machine)) return EXIT_PROBLEM;
    char why[256];
    if (o->cuda && !kl_cuda_path_use(why, sizeof why)) {
        fprintf(stderr, "kolo run: --cuda: %s\n", why);
        return EXIT_PROBLEM;
    }
    kl_checks_enable_by_default();
    return kl_launch(&job);
}

static int command(int argc, char **argv)
{
    struct run_options o = {.nhosts = 1, .grace_ms = GRACE_MS};
    char why[256];
    int at = kl_opts_parse(table, argc, argv, 1, &o, why, sizeof why);

    if (at < 0) return wrong_usage(why);
    if (o.help) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (!o.nranks && o.cuda) o.nranks = o.nhosts;
    if (!o.nranks) return wrong_usage("say how many ranks: -n N");
    if (at == argc) return wrong_usage("no program to run");
    if (o.nranks % o.nhosts) {
        snprintf(why, sizeof why, "%d ranks do not divide over %d hosts", o.nranks, o.nhosts);
        return wrong_usage(why);
    }
    if (o.link_rate && !o.netns) return wrong_usage("--link-rate is for links of network namespaces: add --netns");
    char *path;
    int err = kl_find_program(argv[at], &path);
    if (err) return cannot_run(argv[at], err);
    int code = start(&o, path, argv + at);
    free(path);
    return code;
}

const struct kl_command kl_command_run = {"run",      command, "start a program on N ranks on this machine",
                                          print_help, table,   NULL};
