/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_config.h"

#include "topo/release.h"

#include "device/host/redop.h"
#include "tools/kolo/netns.h"
#include "tools/kolo/job_options.h"
#include "tools/kolo/options.h"
#include "answer/type_named.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_RANKS = 1 << 20, MAX_PROCESSES = 65536, MAX_THREADS = 4096, MAX_DEVICES = 4096, MAX_MISALIGN = 4096 };

#define SAY(...) (snprintf(why, why_size, __VA_ARGS__), -1)

#define FIELD(name) offsetof(struct kl_perf_config, name)
#define INT(letter, name, field, min, max, doc)                                                                        \
    {                                                                                                                  \
        letter, name, KL_OPT_INT, FIELD(field), min, max, "N", doc                                                     \
    }
#define TEXT(letter, name, field, arg, doc)                                                                            \
    {                                                                                                                  \
        letter, name, KL_OPT_TEXT, FIELD(field), 0, 0, arg, doc                                                        \
    }
#define SIZE(letter, name, field, doc)                                                                                 \
    {                                                                                                                  \
        letter, name, KL_OPT_SIZE, FIELD(field), 0, 0, "BYTES", doc                                                    \
    }
#define FLAG(letter, name, field, doc)                                                                                 \
    {                                                                                                                  \
        letter, name, KL_OPT_FLAG, FIELD(field), 0, 0, NULL, doc                                                       \
    }
#define REFUSED(letter, name, doc)                                                                                     \
    {                                                                                                                  \
        letter, name, KL_OPT_REFUSED, 0, 0, 0, NULL, doc                                                               \
    }

const struct kl_opt kl_perf_options[] = {
    INT(0, "np", nprocesses, 1, MAX_PROCESSES, "processes to start on this machine (default: 2)"),
    INT('t', "nthreads", nthreads, 1, MAX_THREADS, "threads per process (1)"),
    INT('g', "ngpus", ndevices, 1, MAX_DEVICES, "devices, each a rank, per thread (1)"),
    SIZE('b', "minbytes", min_bytes, "smallest size, e.g. 64K, 32M or 1G (32M)"),
    SIZE('e', "maxbytes", max_bytes, "largest size (32M)"),
    SIZE('i', "stepbytes", step_bytes, "add BYTES from one size to the next (1M)"),
    INT('f', "stepfactor", step_factor, 1, INT_MAX, "multiply by N from one size to the next instead"),
    TEXT('d', "datatype", type_text, "TYPE",
         "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 "
         "f8e5m2, or all (float)"),
    TEXT('o', "op", op_text, "OP", "sum prod max min avg, or all (sum)"),
    TEXT('r', "root", root_text, "RANK", "root of collectives that have one, or all (0)"),
    INT('n', "iters", iterations, 1, INT_MAX, "timed iterations (20)"),
    INT('w', "warmup_iters", warmups, 0, INT_MAX, "iterations before the timed ones (1)"),
    INT('m', "agg_iters", aggregated, 1, INT_MAX, "operations per iteration, in one group (1)"),
    INT('N', "run_cycles", cycles, 0, INT_MAX, "go through all sizes N times, 0: until interrupted (1)"),
    INT('c', "check", checks, 0, INT_MAX, "verify every element of the results, N times per size; 0: never (1)"),
    TEXT('a', "average", average_text, "HOW",
         "the time to show: rank0's, or average, min or max over ranks; or 0 to 3 (average)"),
    INT('p', "parallel_init", parallel_init, 0, 1, "1: each thread joins with its own devices (0: one joins with all)"),
    INT('z', "blocking", blocking, 0, 3, "after each operation, 1: wait for it, 2: meet all ranks, 3: both (0)"),
    INT('R', "local_register", registration, 0, 2,
        "buffers of ncclMemAlloc, registered by ncclCommRegister (1) or as windows (2); 0: ordinary ones (0)"),
    INT('u', "misalign", misalign, 0, MAX_MISALIGN, "start the buffers N bytes after an aligned address (0)"),
    INT('C', "report_cputime", cpu_time, 0, 1, "1: the time column is the time to issue, not to complete (0)"),
    {'I', "iteration_stats", KL_OPT_SWITCH, FIELD(per_iteration), 0, 0, "[0|1]",
     "time each iteration by itself and add columns: smallest, largest, 99th percentile, variation"},
    INT('G', "cudagraph", graph_launches, 0, INT_MAX,
        "capture the iterations into a graph and launch it N times; 0: issue each operation (0)"),
    INT('y', "stream_null", null_stream, 0, 1, "1: on the default stream, NULL (0)"),
    INT('S', "report_timestamps", timestamps, 0, 1, "1: add the time of day to each row (0)"),
    TEXT('J', "output_file", json, "FILE", "also write the results as JSON"),
    {'T', "timeout", KL_OPT_TIME, FIELD(timeout_ms), 0, 0, "S",
     "end a test that makes no progress for S seconds (never)"},
    INT(0, "hosts", nhosts, 1, KL_NETNS_MAX_HOSTS, "divide the processes over N emulated hosts (1)"),
    FLAG(0, "netns", netns, "give each emulated host a network namespace with its own interface; needs root"),
    {0, "link-rate", KL_OPT_RATE, FIELD(link_rate), 0, 0, "R", KL_JOB_LINK_RATE_DOC},
    TEXT(0, "nccl", nccl, "VERSION", KL_RELEASE_DOC),
    TEXT(0, "topo", topo, "FILE", KL_JOB_TOPO_DOC),
    TEXT(0, "machine", machine, "NAME", KL_JOB_MACHINE_DOC),
    TEXT(0, "net-plugin", net_plugin, "FILE",
         "instead of a collective: measure this net plugin by itself, beside Kolo's sockets (-b 8 -e 1M -f 8)"),
    FLAG(0, "inline", inline_streams, "run operations inside the call, as MPI does"),
    KL_OPT_HELP(struct kl_perf_config, help),
    REFUSED('x', "cta_policy", "host devices have no thread arrays"),
    REFUSED('D', "device_implementation", "there are no device-side kernels to choose from"),
    REFUSED('V', "device_cta_count", "host devices have no thread arrays"),
    KL_OPT_END,
};

/* ---- names ---- */

static int find_type(const char *text, struct kl_perf_config *c)
{
    ncclDataType_t one;

    if (kl_type_named(text, &one))
        c->types[c->ntypes++] = one;
    else if (!strcasecmp(text, "all"))
        for (int t = 0; t < ncclNumTypes; t++) c->types[c->ntypes++] = (ncclDataType_t)t;
    return c->ntypes ? 0 : -1;
}

static int find_op(const char *text, struct kl_perf_config *c)
{
    for (int op = 0; op < ncclNumOps; op++)
        if (!strcasecmp(text, "all") || !strcasecmp(text, kl_redop_name((ncclRedOp_t)op)))
            c->ops[c->nops++] = (ncclRedOp_t)op;
    return c->nops ? 0 : -1;
}

static int find_root(const char *text, int *root)
{
    char *end;

    if (!strcasecmp(text, "all")) return *root = -1, 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < -1 || n > INT_MAX) return -1;
    *root = (int)n;
    return 0;
}

static int find_average(const char *text, enum kl_perf_average *average)
{
    static const char *const words[][2] = {{"0", "rank0"}, {"1", "average"}, {"2", "min"}, {"3", "max"}};

    for (int i = 0; i < 4; i++)
        if (!strcmp(text, words[i][0]) || !strcasecmp(text, words[i][1])) return *average = (enum kl_perf_average)i, 0;
    return -1;
}

static int resolve_names(struct kl_perf_config *c, char *why, size_t why_size)
{
    if (find_type(c->type_text, c)) return SAY("-d: no data type \"%s\"; `kolo perf --help` lists them", c->type_text);
    if (find_op(c->op_text, c)) return SAY("-o: no operation \"%s\"; one of sum prod max min avg all", c->op_text);
    if (find_root(c->root_text, &c->root)) return SAY("-r: \"%s\" is neither a rank nor all", c->root_text);
    if (find_average(c->average_text, &c->average))
        return SAY("-a: \"%s\" is none of rank0 average min max, or 0 to 3", c->average_text);
    return 0;
}

/* ---- consistency of options ---- */

static int check_sizes(const struct kl_perf_config *c, char *why, size_t why_size)
{
    if (c->coll && c->coll->cut == KL_CUT_ONE) return 0;
    if (c->min_bytes > c->max_bytes)
        return SAY("-b %llu is above -e %llu", (unsigned long long)c->min_bytes, (unsigned long long)c->max_bytes);
    if (c->max_bytes > SIZE_MAX / 4) return SAY("-e %llu is beyond any memory", (unsigned long long)c->max_bytes);
    if (c->step_factor <= 1 && !c->step_bytes && c->min_bytes < c->max_bytes)
        return SAY("-i 0 never gets from -b to -e; use -f for factors");
    for (int i = 0; i < c->ntypes; i++) {
        size_t bytes = kl_type_bytes(c->types[i]);
        if (c->min_bytes < bytes)
            return SAY("-b %llu is below one element of %s (%zu bytes)", (unsigned long long)c->min_bytes,
                       kl_type_name(c->types[i]), bytes);
    }
    return 0;
}

static int check_launch(const struct kl_perf_config *c, char *why, size_t why_size)
{
    if ((int64_t)c->nprocesses * c->nthreads * c->ndevices > MAX_RANKS)
        return SAY("--np, -t and -g together are more than %d ranks", MAX_RANKS);
    if (c->nprocesses % c->nhosts) return SAY("--np %d does not divide over --hosts %d", c->nprocesses, c->nhosts);
    if (c->link_rate && !c->netns) return SAY("--link-rate is for links of network namespaces: add --netns");
    if (c->null_stream && c->ndevices > 1) return SAY("-y 1: each thread has one default stream, so -g must be 1");
    if (c->null_stream && c->inline_streams)
        return SAY("-y 1: the default stream does not run operations inside the call");
    if (c->aggregated > 1 && c->coll == &kl_colls[KL_HYPERCUBE])
        return SAY("-m: the steps of hypercube depend on each other and cannot be one group");
    return 0;
}

/* A capture runs nothing that could be waited for or timed, and the default stream is not captured. */
static int check_graphs(const struct kl_perf_config *c, char *why, size_t why_size)
{
    if (!c->graph_launches) return 0;
    if (c->blocking) return SAY("-z waits after each operation, but -G issues all of them at once");
    if (c->per_iteration) return SAY("-I times each iteration, but -G launches all of them at once");
    if (c->null_stream) return SAY("-y 1: the default stream cannot be captured, as -G would");
    return 0;
}

static const struct kl_perf_config defaults = {
    .min_bytes = 32 << 20,
    .max_bytes = 32 << 20,
    .step_bytes = 1 << 20,
    .step_factor = 1,
    .nthreads = 1,
    .ndevices = 1,
    .iterations = 20,
    .warmups = 1,
    .aggregated = 1,
    .checks = 1,
    .cycles = 1,
    .nhosts = 1,
    .type_text = "float",
    .op_text = "sum",
    .root_text = "0",
    .average_text = "average",
};

/* With --net-plugin. */
static struct kl_perf_config plugin_defaults(const char *file)
{
    struct kl_perf_config c = defaults;

    c.net_plugin = file;
    c.min_bytes = 8;
    c.max_bytes = 1 << 20;
    c.step_factor = 8;
    return c;
}

/* Options may stand before and behind the name of the collective. */
static int parse_words(int argc, char **argv, struct kl_perf_config *c, char *why, size_t why_size)
{
    const char *name = NULL;

    for (int at = 1; at < argc; at++) {
        at = kl_opts_parse(kl_perf_options, argc, argv, at, c, why, why_size);
        if (at < 0) return -1;
        if (at == argc || c->help) break;
        if (kl_opts_is_file(argv[at])) {
            kl_opts_refuse_word(kl_perf_options, argv[at], why, why_size);
            return -1;
        }
        if (name) return SAY("one collective at a time: %s or %s", name, argv[at]);
        name = argv[at];
    }
    if (c->help) return 0;
    if (c->net_plugin)
        return !name ? 0
                     : SAY("--net-plugin measures a plugin without a collective; for one over it: NCCL_NET_PLUGIN=%s "
                           "kolo "
                           "perf %s --hosts 2",
                           c->net_plugin, name);
    if (!name) return SAY("which collective? all_reduce, for example");
    c->coll = kl_coll_find(name);
    return c->coll ? 0 : SAY("no collective \"%s\"; `kolo perf --help` lists them", name);
}

int kl_perf_configure(int argc, char **argv, struct kl_perf_config *c, char *why, size_t why_size)
{
    *c = defaults;
    if (parse_words(argc, argv, c, why, why_size)) return -1;
    if (c->help) return 0;
    if (c->net_plugin) { /* once more, over other defaults */
        *c = plugin_defaults(c->net_plugin);
        if (parse_words(argc, argv, c, why, why_size)) return -1;
        return c->min_bytes ? check_sizes(c, why, why_size) : SAY("-b 0: a size is at least 1 byte");
    }
    if (resolve_names(c, why, why_size) || check_sizes(c, why, why_size) || check_launch(c, why, why_size) ||
        check_graphs(c, why, why_size))
        return -1;
    if (!c->coll->has_op) c->nops = 1;
    if (!c->coll->has_root) c->root = 0;
    if (c->coll->cut == KL_CUT_ONE) c->max_bytes = c->min_bytes;
    return 0;
}

int kl_perf_check_ranks(const struct kl_perf_config *c, int nranks, char *why, size_t why_size)
{
    if (c->coll->has_root && c->root >= nranks)
        return SAY("-r %d: there are %d ranks, 0 to %d", c->root, nranks, nranks - 1);
    if (c->coll == &kl_colls[KL_HYPERCUBE] && (nranks & (nranks - 1)))
        return SAY("hypercube needs 1, 2, 4, 8, ... ranks, not %d", nranks);
    return 0;
}

uint64_t kl_perf_next_size(const struct kl_perf_config *c, uint64_t bytes)
{
    uint64_t factor = (uint64_t)c->step_factor;

    if (factor > 1) return bytes <= c->max_bytes / factor ? bytes * factor : 0;
    return c->step_bytes && c->step_bytes <= c->max_bytes - bytes ? bytes + c->step_bytes : 0;
}

void kl_perf_print_help(FILE *to)
{
    fputs("usage: kolo perf COLLECTIVE [options]\n       kolo perf --net-plugin FILE [options]\n\n"
          "Measure a collective over a range of sizes and verify every element of its results. Starts its own "
          "processes on\n"
          "this machine; under mpirun, srun, torchrun or kolo run it joins the job instead (unless --np is given).\n\n",
          to);
    for (int i = 0; i < KL_NCOLLS; i++) fprintf(to, "  %-15s %s\n", kl_colls[i].name, kl_colls[i].help);
    fputs("\nOptions as in nccl-tests, and some more; defaults in parentheses:\n\n", to);
    kl_opts_help(kl_perf_options, to);
    fputs("\nThe table is as in nccl-tests: size in bytes and count of elements as the call takes it, then for "
          "separate\n"
          "(out-of-place) and shared (in-place) buffers the time per operation, bytes per time (algbw), the bandwidth "
          "that\n"
          "the slowest link must have carried (busbw), and the number of wrong elements. With NCCL_TESTS_MIN_BW=X a "
          "busbw\n"
          "below 0.9 X is a failure.\n"
          "Exit code: 0 success, 1 wrong values or a failed rank, 2 wrong usage.\n\n"
          "example: kolo perf all_reduce --np 4 -b 8 -e 64M -f 4\n",
          to);
}
