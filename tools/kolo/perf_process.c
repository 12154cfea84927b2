/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_agree.h"
#include "tools/kolo/perf_process.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "include/kolo.h"
#include "tools/kolo/cmd.h"
#include "tools/kolo/jobid.h"
#include "tools/kolo/perf_json.h"
#include "tools/kolo/perf_measure.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WATCH_MS = 100 };

struct process {
    const struct kl_perf_config *config;
    int argc;
    char **argv;

    int process, nprocesses, local; /* among all, and among this host's */
    int nranks, nown;               /* of the job, of this process */
    ncclUniqueId id;                /* of the communicator to measure */

    struct kl_watchdog_slot *slots, *own_slots; /* of this process's ranks; the memory, if it is ours */
    struct kl_perf_rank *rank;                  /* nown */
    struct kl_perf_thread *thread;              /* config->nthreads */
    struct kl_perf_json *json;
    int stop; /* eventfd that ends the watching thread */
};

/* The whole process ends: its other threads may be waiting for ranks that now never come. */
_Noreturn static void give_up(const struct kl_perf_rank *r, const char *operation)
{
    const char *text = ncclGetLastError(r->comm);
    char what[160];

    kl_watchdog_describe(r->slot, operation, what, sizeof what);
    fprintf(stderr, "kolo perf: rank %d: %s: %s\n", r->rank, what, text && *text ? text : "failed without a reason");
    fflush(stdout);
    _exit(KL_PERF_FAILED);
}

/* ---- joining ---- */

/* A number from a launcher's environment variable; -1: not set. */
static int number_of(const char *name)
{
    const char *text = getenv(name);
    int64_t value;

    return text && kl_parse_int(text, &value) && value >= 0 && value <= INT_MAX ? (int)value : -1;
}

static int local_index(void)
{
    static const char *const names[] = {"KOLO_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (number_of(names[i]) >= 0) return number_of(names[i]);
    return 0;
}

/* A launcher of Kolo has made the id; any number of ranks may use it. */
static bool has_job_id(struct process *p)
{
    const char *id = getenv("KOLO_COMM_ID");

    p->process = number_of("KOLO_RANK");
    p->nprocesses = number_of("KOLO_SIZE");
    if (p->process < 0 || p->process >= p->nprocesses) return false;
    return id && !kl_jobid_parse(id, &p->id);
}

/* Hand out the id of a larger communicator in the one that has a rank per process. */
static ncclResult_t share_id(struct process *p, ncclComm_t comm)
{
    if (p->process == 0) KL_TRY(ncclGetUniqueId(&p->id));
    struct kl_perf_rank self = {.rank = p->process, .nranks = p->nprocesses, .comm = comm};
    return kl_perf_hand_out(&self, &p->id, sizeof p->id);
}

static ncclResult_t join_as_environment_says(struct process *p, ncclComm_t *comm)
{
    KL_TRY(koloInitFromEnv(comm));
    KL_TRY(ncclCommUserRank(*comm, &p->process));
    KL_TRY(ncclCommCount(*comm, &p->nprocesses));
    if (p->config->nthreads * p->config->ndevices == 1) return ncclSuccess;
    KL_TRY(share_id(p, *comm));
    ncclCommDestroy(*comm);
    *comm = NULL;
    return ncclSuccess;
}

/* Several ranks in a process choose their devices; a single one takes the library's default. */
static ncclResult_t init_rank(const struct process *p, struct kl_perf_rank *r)
{
    int ndevices;

    if (p->nown > 1) {
        KL_TRY(koloGetDeviceCount(&ndevices));
        KL_TRY(koloSetDevice((p->local * p->nown + r->rank % p->nown) % ndevices));
    }
    return ncclCommInitRank(&r->comm, p->nranks, p->id, r->rank);
}

static ncclResult_t init_ranks(const struct process *p, struct kl_perf_rank *rank, int n)
{
    ncclResult_t rc = ncclSuccess;

    if (n == 1) return init_rank(p, rank);
    KL_TRY(ncclGroupStart());
    for (int i = 0; i < n && !rc; i++) rc = init_rank(p, &rank[i]);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

/* ---- a thread ---- */

static ncclResult_t register_buffers(struct kl_perf_rank *rank, int n, int which)
{
    ncclResult_t rc = ncclSuccess;

    KL_TRY(ncclGroupStart());
    for (int i = 0; i < n && !rc; i++) rc = kl_perf_rank_register(&rank[i], which);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

static ncclResult_t open_ranks(const struct process *p, struct kl_perf_rank *rank)
{
    const struct kl_perf_config *c = p->config;
    unsigned flags = c->inline_streams ? KOLO_STREAM_INLINE : KOLO_STREAM_DEFAULT;
    size_t room = c->coll->cut == KL_CUT_ONE ? sizeof(double) : c->max_bytes;

    for (int i = 0; i < c->ndevices; i++) {
        KL_TRY(ncclCommCuDevice(rank[i].comm, &rank[i].device));
        rank[i].registration = (enum kl_perf_registration)c->registration;
        KL_TRY(kl_perf_rank_open(&rank[i], room, (size_t)c->misalign, c->null_stream ? NULL : &flags));
    }
    for (int which = 0; which < 2 && c->registration; which++) KL_TRY(register_buffers(rank, c->ndevices, which));
    return ncclSuccess;
}

static void describe_rank(const struct kl_perf_rank *r, struct kl_perf_device *d)
{
    const char *host = getenv("NCCL_HOSTID");

    *d = (struct kl_perf_device){.rank = r->rank, .pid = (int32_t)getpid(), .device = r->device};
    if (host && *host)
        snprintf(d->host, sizeof d->host, "%s", host);
    else
        gethostname(d->host, sizeof d->host - 1);
}

static ncclResult_t list_devices(struct kl_perf_rank *rank, int n, struct kl_perf_device *devices)
{
    int nranks = rank[0].nranks;

    for (int i = 0; i < n; i++) describe_rank(&rank[i], &devices[(size_t)i * (size_t)nranks + (size_t)rank[i].rank]);
    return kl_perf_gather(rank, n, devices, sizeof *devices);
}

static ncclResult_t present(struct process *p, struct kl_perf_thread *t)
{
    int n = p->config->ndevices;
    struct kl_perf_device *devices = calloc((size_t)n * (size_t)p->nranks, sizeof *devices);

    if (!devices) return KL_NOMEM("the list of devices");
    ncclResult_t rc = list_devices(t->rank, n, devices);
    if (!rc && t->report) kl_perf_print_header(stdout, p->config, devices, p->nranks);
    if (!rc && p->json && t->report) kl_perf_json_devices(p->json, devices, p->nranks);
    free(devices);
    return rc;
}

static ncclResult_t thread_steps(struct process *p, struct kl_perf_thread *t)
{
    if (!t->rank[0].comm) KL_TRY(init_ranks(p, t->rank, p->config->ndevices));
    KL_TRY(open_ranks(p, t->rank));
    KL_TRY(present(p, t));
    for (int i = 0; i < p->config->ndevices; i++) kl_watchdog_end(t->rank[i].slot); /* joined */
    return kl_perf_measure(t);
}

struct start {
    struct process *process;
    struct kl_perf_thread *thread;
};

static void *thread_main(void *argument)
{
    struct start *s = argument;

    if (thread_steps(s->process, s->thread)) give_up(&s->thread->rank[0], s->process->config->coll->name);
    for (int i = 0; i < s->process->config->ndevices; i++) kl_perf_rank_close(&s->thread->rank[i]);
    return NULL;
}

/* The first one runs here, so that a process with one thread has no other. */
static void run_threads(struct process *p)
{
    int n = p->config->nthreads, started = 1, err = 0;
    struct start own = {p, &p->thread[0]};
    pthread_t *handle = calloc((size_t)n, sizeof *handle);
    struct start *start = calloc((size_t)n, sizeof *start);

    if (!handle || !start) err = ENOMEM;
    while (started < n && !err) {
        start[started] = (struct start){p, &p->thread[started]};
        err = pthread_create(&handle[started], NULL, thread_main, &start[started]);
        started += !err;
    }
    if (err) {
        fprintf(stderr, "kolo perf: starting threads: %s\n", strerror(err));
        _exit(KL_PERF_FAILED); /* the running threads wait for the missing ones */
    }
    thread_main(&own);
    for (int i = 1; i < started; i++) pthread_join(handle[i], NULL);
    free(start);
    free(handle);
}

/* ---- the watching thread, if no launcher watches ---- */

static void *watch_main(void *argument)
{
    const struct process *p = argument;
    struct pollfd stop = {.fd = p->stop, .events = POLLIN};
    char text[512];

    while (poll(&stop, 1, WATCH_MS) == 0)
        if (kl_watchdog_stuck(p->slots, p->nown, p->process * p->nown, kl_now_ns(), p->config->timeout_ms,
                              p->config->coll->name, text, sizeof text)) {
            fprintf(stderr, "kolo perf: %s\n", text);
            _exit(KL_PERF_FAILED);
        }
    return NULL;
}

static int run_watched(struct process *p)
{
    pthread_t watcher;
    bool watch = p->own_slots && p->config->timeout_ms;

    if (watch) p->stop = eventfd(0, EFD_CLOEXEC);
    if (watch && (p->stop < 0 || pthread_create(&watcher, NULL, watch_main, p))) {
        fprintf(stderr, "kolo perf: -T: no thread that could watch\n");
        return -1;
    }
    run_threads(p);
    if (!watch) return 0;
    eventfd_write(p->stop, 1);
    pthread_join(watcher, NULL);
    close(p->stop);
    return 0;
}

/* ---- the process ---- */

static void report(void *context, const struct kl_perf_row *row, int half)
{
    struct process *p = context;

    if (half < 0) {
        kl_perf_print_row(stdout, row);
    } else if (half < 2) {
        kl_perf_print_half(stdout, p->config, &row->half[half]);
    } else {
        kl_perf_print_end(stdout, p->config, time(NULL));
        if (p->json) kl_perf_json_row(p->json, p->config, row, p->nprocesses);
    }
}

static double least_bandwidth(void)
{
    const char *text = getenv("NCCL_TESTS_MIN_BW");

    return text ? strtod(text, NULL) : -1;
}

static void set_rank(struct process *p, int i)
{
    p->rank[i] = (struct kl_perf_rank){.rank = p->process * p->nown + i, .nranks = p->nranks, .slot = &p->slots[i]};
}

static void set_thread(struct process *p, int i)
{
    p->thread[i] = (struct kl_perf_thread){
        .config = p->config,
        .rank = &p->rank[i * p->config->ndevices],
        .nranks = p->nranks,
        .process = p->process,
        .nprocesses = p->nprocesses,
        .nthreads = p->nprocesses * p->config->nthreads,
        .summary.min_bandwidth = least_bandwidth(),
    };
}

/* Slots of our own if there is no other watcher. */
static int allocate(struct process *p, struct kl_watchdog_slot *slots)
{
    size_t bytes = (size_t)p->nown * sizeof *slots;

    p->rank = calloc((size_t)p->nown, sizeof *p->rank);
    p->thread = calloc((size_t)p->config->nthreads, sizeof *p->thread);
    if (!slots) p->own_slots = aligned_alloc(KL_LINE, bytes);
    p->slots = slots ? slots + p->process * p->nown : p->own_slots;
    if (!p->rank || !p->thread || !p->slots) return -1;
    memset(p->slots, 0, bytes);

    set_rank(p, 0);
    set_thread(p, 0);
    for (int i = 1; i < p->nown; i++) set_rank(p, i);
    for (int i = 1; i < p->config->nthreads; i++) set_thread(p, i);
    return 0;
}

static void release(struct process *p)
{
    free(p->rank);
    free(p->thread);
    free(p->own_slots);
}

static int open_json(struct process *p)
{
    if (p->process || !p->config->json) return 0;
    p->json = kl_perf_json_open(p->config->json, p->argc, p->argv);
    if (!p->json) {
        fprintf(stderr, "kolo perf: -J %s: %s\n", p->config->json, strerror(errno));
        return -1;
    }
    kl_perf_json_config(p->json, p->config);
    return 0;
}

/* The table's end, the file's end, and the exit code. */
static int conclude(struct process *p)
{
    const struct kl_perf_summary *s = &p->thread[0].summary;
    bool bad = s->wrong || kl_perf_too_slow(s);

    for (int i = 0; i < p->config->nthreads; i++) bad |= p->thread[i].own_wrong != 0;
    if (p->process == 0) kl_perf_print_footer(stdout, p->config, s);
    if (kl_perf_json_close(p->json, s)) {
        fprintf(stderr, "kolo perf: -J %s: %s\n", p->config->json, strerror(errno));
        bad = true;
    }
    return bad ? EXIT_PROBLEM : EXIT_OK;
}

/* Without -p the communicators of all threads are made here, in one group. */
static void join_together(struct process *p)
{
    struct kl_watchdog_step step = {.phase = KL_PHASE_JOIN};

    for (int i = 0; i < p->nown; i++) kl_watchdog_begin(p->rank[i].slot, &step);
    if (p->config->parallel_init || p->rank[0].comm) return;
    if (init_ranks(p, p->rank, p->nown)) give_up(&p->rank[0], p->config->coll->name);
}

/* The rank that reports. */
static void appoint_reporter(struct process *p)
{
    if (p->process) return;
    p->thread[0].report = report;
    p->thread[0].context = p;
}

static int run(struct process *p, struct kl_watchdog_slot *slots, ncclComm_t comm)
{
    if (allocate(p, slots)) {
        fprintf(stderr, "kolo perf: out of memory\n");
        return KL_PERF_FAILED;
    }
    p->rank[0].comm = comm;
    appoint_reporter(p);
    if (open_json(p)) return KL_PERF_FAILED;
    join_together(p);
    return run_watched(p) ? KL_PERF_FAILED : conclude(p);
}

int kl_perf_process(const struct kl_perf_config *config, struct kl_watchdog_slot *slots, int argc, char **argv)
{
    struct process p = {.config = config, .argc = argc, .argv = argv, .local = local_index()};
    ncclComm_t comm = NULL;
    char why[256];

    if (!has_job_id(&p) && join_as_environment_says(&p, &comm)) {
        fprintf(stderr, "kolo perf: joining the job: %s\n", ncclGetLastError(comm));
        return KL_PERF_FAILED;
    }
    p.nown = config->nthreads * config->ndevices;
    p.nranks = p.nprocesses * p.nown;
    if (kl_perf_check_ranks(config, p.nranks, why, sizeof why)) {
        if (p.process == 0) fprintf(stderr, "kolo perf: %s\n", why);
        ncclCommDestroy(comm);
        return EXIT_USAGE;
    }
    int code = run(&p, slots, comm);
    release(&p);
    return code;
}
