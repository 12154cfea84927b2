/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_kolo NP HOW [OPTION ...] ROW ...: Kolo through its public functions, measured by measure.h. HOW is a list of words:
 *
 *   sync      wait for each operation; else launches follow each other and a block ends with one wait, as in nccl-tests
 *   inline    a stream with KOLO_STREAM_INLINE
 *   threads   ranks are threads of one process
 *   alloc     buffers of ncclMemAlloc
 *   register  buffers of the process, given to ncclCommRegister
 *   hosts     each two ranks are an emulated host, which the others reach by network only
 *   report    a line more: how long init took, and how much memory the processes have after it
 *   plain     none of these
 */
#include "bench/collectives/measure.h"
#include "bench/collectives/start.h"

#include "kolo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct job {
    struct measure_options options;
    bool sync, in_line, threads, alloc, registered, hosts, report;
};

struct kolo {
    const struct job *job;
    int rank;
    ncclComm_t comm;
    koloStream_t stream;
};

static void must(ncclResult_t rc, const struct kolo *k)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "bench: rank %d: %s: %s\n", k->rank, ncclGetErrorString(rc), ncclGetLastError(k->comm));
    exit(1);
}

static void sendrecv(const struct kolo *k, const struct row *row, const float *send, float *recv)
{
    int n = row->nranks;

    must(ncclGroupStart(), k);
    must(ncclSend(send, row->count, ncclFloat, (k->rank + 1) % n, k->comm, k->stream), k);
    must(ncclRecv(recv, row->count, ncclFloat, (k->rank + n - 1) % n, k->comm, k->stream), k);
    must(ncclGroupEnd(), k);
}

static void launch(const struct kolo *k, const struct row *row, float *send, float *recv)
{
    switch (row->op) {
    case ROW_ALL_REDUCE:
        return must(ncclAllReduce(send, recv, row->count, ncclFloat, ncclSum, k->comm, k->stream), k);
    case ROW_ALL_GATHER:
        return must(ncclAllGather(send, recv, row->count, ncclFloat, k->comm, k->stream), k);
    case ROW_REDUCE_SCATTER:
        return must(ncclReduceScatter(send, recv, row->count, ncclFloat, ncclSum, k->comm, k->stream), k);
    case ROW_BROADCAST:
        return must(ncclBroadcast(recv, recv, row->count, ncclFloat, 0, k->comm, k->stream), k);
    case ROW_REDUCE:
        return must(ncclReduce(send, recv, row->count, ncclFloat, ncclSum, 0, k->comm, k->stream), k);
    case ROW_ALLTOALL:
        return must(ncclAlltoAll(send, recv, row->count, ncclFloat, k->comm, k->stream), k);
    default:
        return sendrecv(k, row, send, recv);
    }
}

static void finish(void *state)
{
    const struct kolo *k = state;

    must(koloStreamSynchronize(k->stream), k);
}

static void issue(void *state, const struct row *row, float *send, float *recv, bool counts)
{
    const struct kolo *k = state;

    (void)counts;
    launch(k, row, send, recv);
    if (k->job->sync) finish(state);
}

static void *allocate(void *state, size_t bytes)
{
    const struct kolo *k = state;
    void *p = NULL, *handle;

    if (k->job->alloc) {
        must(ncclMemAlloc(&p, bytes), k);
        return p;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED && k->job->registered) must(ncclCommRegister(k->comm, p, bytes, &handle), k);
    return p;
}

static void emulate_host(int rank)
{
    char name[16];

    snprintf(name, sizeof name, "bench-%d", rank / 2);
    setenv("NCCL_HOSTID", name, 1);
}

/* KiB of this process, of shared pages its part. */
static double own_memory(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = 0;

    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "Pss:", 4)) kib = strtod(line + 4, NULL);
    if (file) fclose(file);
    return kib;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void report(const struct job *job, struct area_end *end, double init_s)
{
    double kib = !job->threads || !end->rank ? own_memory() : 0;

    area_largest(end, &init_s, 1);
    area_sum(end, &kib, 1);
    if (end->rank) return;
    printf("{\"config\": \"%s\", \"np\": %d, \"init_ms\": %.3f, \"kib\": %.0f}\n", job->options.name, end->nranks,
           init_s * 1e3, kib);
    fflush(stdout);
}

static void run_rank(struct area_end *end, void *context)
{
    const struct job *job = context;
    struct kolo k = {.job = job, .rank = end->rank};
    struct peer peer = {.state = &k, .issue = issue, .finish = finish, .allocate = allocate};
    ncclUniqueId id;

    measure_pin(&job->options, end->rank);
    if (job->hosts) emulate_host(end->rank);
    if (!end->rank) must(ncclGetUniqueId(&id), &k);
    area_tell(end, &id, sizeof id);
    double begin = seconds();
    must(ncclCommInitRank(&k.comm, end->nranks, id, end->rank), &k);
    if (job->report) report(job, end, seconds() - begin);
    must(koloStreamCreate(&k.stream, job->in_line ? KOLO_STREAM_INLINE : KOLO_STREAM_DEFAULT), &k);
    measure(&job->options, end, &peer);
    must(ncclCommDestroy(k.comm), &k);
    must(koloStreamDestroy(k.stream), &k);
}

static bool take_word(struct job *job, const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } words[] = {{"sync", &job->sync},    {"inline", &job->in_line},      {"threads", &job->threads},
                 {"alloc", &job->alloc},  {"register", &job->registered}, {"hosts", &job->hosts},
                 {"report", &job->report}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(word, words[i].name)) return *words[i].flag = true;
    return !strcmp(word, "plain");
}

int main(int argc, char **argv)
{
    struct job job = {0};

    if (argc < 3) return 2;
    for (char *word = strtok(argv[2], ","); word; word = strtok(NULL, ","))
        if (!take_word(&job, word)) {
            fprintf(stderr, "coll_kolo: no word \"%s\"\n", word);
            return 2;
        }
    job.options = measure_parse(argc - 2, argv + 2);
    return (job.threads ? start_threads : start_processes)((int)strtol(argv[1], NULL, 10), run_rank, &job);
}
