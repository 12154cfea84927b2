/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/clock.h"
#include "base/file_size_limit.h"
#include "base/parse.h"
#include "topo/config.h"
#include "tools/kolo/checks.h"
#include "tools/kolo/launch.h"
#include "tools/kolo/machines.h"
#include "tools/kolo/perf_config.h"
#include "tools/kolo/perf_process.h"
#include "tools/kolo/plugin/net_bench.h"
#include "tools/kolo/spawn.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEFAULT_PROCESSES = 2, GRACE_MS = 10000 };

static char command_name[] = "kolo", hidden_name[] = "perf-rank";

static int wrong_usage(const char *why)
{
    fprintf(stderr, "kolo perf: %s; `kolo perf --help` explains\n", why);
    return EXIT_USAGE;
}

/* Only results and usage have an exit code of their own to the outside. */
static int outer_code(int code)
{
    return code == KL_PERF_FAILED ? EXIT_PROBLEM : code;
}

/* ---- a process that the launcher started: perf-rank DESCRIPTOR WORDS... ---- */

static int rank_command(int argc, char **argv)
{
    struct kl_perf_config config;
    char why[256];
    int64_t number;

    if (argc < 3 || !kl_parse_int(argv[1], &number)) return EXIT_USAGE;
    int fd = (int)number;
    off_t bytes = lseek(fd, 0, SEEK_END);
    void *slots = bytes > 0 ? mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (slots == MAP_FAILED) return EXIT_USAGE;
    close(fd);
    if (kl_perf_configure(argc - 1, argv + 1, &config, why, sizeof why)) return wrong_usage(why);
    config.release = kl_topo_config_release();
    return kl_perf_process(&config, slots, argc - 2, argv + 2);
}

/* ---- the launcher ---- */

struct watched {
    const struct kl_perf_config *config;
    struct kl_watchdog_slot *slots;
    int nranks;
};

static bool is_stuck(void *context)
{
    const struct watched *w = context;
    char text[512];

    if (!kl_watchdog_stuck(w->slots, w->nranks, 0, kl_now_ns(), w->config->timeout_ms, w->config->coll->name, text,
                           sizeof text))
        return false;
    fprintf(stderr, "kolo perf: %s\n", text);
    return true;
}

static int share_slots(struct watched *w)
{
    size_t bytes = (size_t)w->nranks * sizeof *w->slots;
    int fd = memfd_create("kolo-perf", MFD_CLOEXEC);

    if (fd < 0 || !kl_file_size_limit_allows(bytes) || ftruncate(fd, (off_t)bytes)) return -1;
    w->slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return w->slots == MAP_FAILED ? -1 : fd;
}

/* Check files now, for an error in one line instead of in the middle of a job. */
static int check_files(const struct kl_perf_config *c, char topo[PATH_MAX])
{
    FILE *f = NULL;

    if (c->topo && (!realpath(c->topo, topo) || access(topo, R_OK))) {
        fprintf(stderr, "kolo perf: --topo %s: %s\n", c->topo, strerror(errno));
        return -1;
    }
    if (c->json && !(f = fopen(c->json, "ae"))) {
        fprintf(stderr, "kolo perf: -J %s: %s\n", c->json, strerror(errno));
        return -1;
    }
    if (f) fclose(f);
    return 0;
}

static int launch(const struct kl_perf_config *c, struct watched *w, int fd, char **words)
{
    char topo[PATH_MAX];
    int nown = c->nthreads * c->ndevices;
    struct kl_launch job = {
        .who = "kolo perf",
        .path = KL_SPAWN_SELF,
        .argv = words,
        .nranks = c->nprocesses,
        .nhosts = c->nhosts,
        .netns = c->netns,
        .link_rate = c->link_rate,
        .topo_file = c->topo ? topo : NULL,
        .grace_ms = GRACE_MS,
        .verdict = EXIT_PROBLEM,
        .kept_fd = fd,
        .out = stdout,
        .err = stderr,
        .make_id = ncclGetUniqueId,
        .is_stuck = c->timeout_ms ? is_stuck : NULL,
        .context = w,
    };

    if (check_files(c, topo) || !kl_machines_use("perf", c->topo, c->machine)) return EXIT_PROBLEM;
    /* The library would count one device per process. */
    if (nown > 1 && !c->topo && !c->machine && !getenv("KOLO_HOST_DEVICES") && !getenv("NCCL_TOPO_FILE"))
        job.host_devices = c->nprocesses / c->nhosts * nown;
    return kl_launch(&job) ? EXIT_PROBLEM : EXIT_OK;
}

static int start_processes(const struct kl_perf_config *c, int argc, char **argv)
{
    struct watched w = {.config = c, .nranks = c->nprocesses * c->nthreads * c->ndevices};
    char why[256], number[16];
    char **words = calloc((size_t)argc + 3, sizeof *words);
    int fd, code = EXIT_PROBLEM;

    if (kl_perf_check_ranks(c, w.nranks, why, sizeof why)) {
        free(words);
        return wrong_usage(why);
    }
    fd = share_slots(&w);
    if (!words || fd < 0) {
        fprintf(stderr, "kolo perf: starting processes: %s%s\n", strerror(errno),
                errno == EFBIG ? "; raise `ulimit -f`" : "");
    } else {
        snprintf(number, sizeof number, "%d", fd);
        words[0] = command_name;
        words[1] = hidden_name;
        words[2] = number;
        memcpy(words + 3, argv + 1, (size_t)(argc - 1) * sizeof *words);
        code = launch(c, &w, fd, words);
    }
    if (fd >= 0) close(fd);
    free(words);
    return code;
}

/* Did a job launcher start this process: are the variables of koloInitFromEnv there? */
static bool is_in_a_job(void)
{
    static const char *const pairs[][2] = {{"KOLO_RANK", "KOLO_SIZE"},
                                           {"RANK", "WORLD_SIZE"},
                                           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (getenv(pairs[i][0]) && getenv(pairs[i][1])) return true;
    return false;
}

static int command(int argc, char **argv)
{
    struct kl_perf_config config;
    char why[256];

    if (kl_perf_configure(argc, argv, &config, why, sizeof why)) return wrong_usage(why);
    if (config.help) {
        kl_perf_print_help(stdout);
        return EXIT_OK;
    }
    if (config.net_plugin) return kl_net_bench(&config);
    if (!kl_follow_release("perf", config.nccl)) return EXIT_USAGE;
    config.release = kl_topo_config_release();
    kl_checks_enable_by_default();
    if (!config.nprocesses && is_in_a_job()) {
        if (config.nhosts > 1 || config.netns || config.topo || config.machine)
            return wrong_usage(
                "--hosts, --netns, --topo and --machine are for processes started here; give --np, or leave them out");
        return outer_code(kl_perf_process(&config, NULL, argc, argv));
    }
    if (!config.nprocesses) config.nprocesses = config.nhosts > DEFAULT_PROCESSES ? config.nhosts : DEFAULT_PROCESSES;
    if (config.nprocesses % config.nhosts) return wrong_usage("--hosts does not divide --np");
    return start_processes(&config, argc, argv);
}

static const char *operand(int i)
{
    return i < KL_NCOLLS ? kl_colls[i].name : NULL;
}

const struct kl_command kl_command_perf = {
    "perf", command, "measure and verify collectives", kl_perf_print_help, kl_perf_options, operand};
const struct kl_command kl_command_perf_rank = {.name = "perf-rank", .run = rank_command}; /* started by `kolo perf` */
