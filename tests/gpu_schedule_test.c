/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_schedule_test.c - kernels that follow schedules (KOLO_CUDA_MOVER=schedule) give the bits of the engine of host
 * devices with the same plan, algorithm, protocol and channels.
 *
 * Each job runs twice, in processes of this program: with KOLO_DEVICES=cuda, in one process or several, and =host, in one.
 * They print a hash of every result, and the hashes are compared. GPUs say in their log that the operation went this way.
 *
 * gpu_schedule_test              ranks of one process
 * gpu_schedule_test processes    ranks of several
 * gpu_schedule_test RANKS GPUS TURN SHARES DEVICES LOG PROCESSES PROCESS [ID ...]
 *                                such a process: an identifier for each plan; PROCESS -1 has all ranks
 */
#include "comm/comm.h"

#include "bootstrap/bootstrap.h"
#include "coll/gpu/team.h"
#include "comm/handle.h"
#include "device/cuda/context.h"
#include "device/device.h"
#include "device/host/redop.h"
#include "include/kolo.h"
#include "include/nccl.h"
#include "tests/gpu_call.h"
#include "tests/gpu_data.h"
#include "tests/hang.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 8, LARGE = 90000, ARENA = LARGE * 4 + 4096, ARGUMENTS = 9 };

/* ---- cases ---- */

/* A communicator with these settings, and its functions. Small fifos: operations have several loops. */
static const struct plan {
    const char *algo, *proto, *fifo; /* NULL: not set */
    unsigned funcs;
    bool exact; /* only operations whose bits do not depend on the order: hosts may take another algorithm */
    bool large;
} plans[] = {
    {.algo = "Ring", .proto = "Simple", .fifo = "16384", .funcs = (1u << FUNCS) - 1},
    {.algo = "Ring", .proto = "LL", .fifo = "16384", .funcs = (1u << FUNCS) - 1},
    {.algo = "Ring", .proto = "LL128", .fifo = "16384", .funcs = (1u << FUNCS) - 1},
    {.algo = "Tree", .proto = "Simple", .fifo = "16384", .funcs = 1u << ALL_REDUCE},
    {.algo = "Tree", .proto = "LL", .fifo = "16384", .funcs = 1u << ALL_REDUCE},
    {.algo = "Tree", .proto = "LL128", .fifo = "16384", .funcs = 1u << ALL_REDUCE},
    {.algo = "PAT", .proto = "Simple", .fifo = "16384", .funcs = 1u << REDUCE_SCATTER | 1u << ALL_GATHER},
    {.algo = "Ring", .proto = "Simple", .funcs = 1u << ALL_REDUCE, .large = true},
    {.funcs = (1u << FUNCS) - 1, .exact = true},
};
enum { PLANS = sizeof plans / sizeof plans[0] };

struct tcase {
    enum func func;
    ncclDataType_t type;
    int op;
    size_t count, offset; /* elements; bytes of the buffers from 256-byte alignment */
    bool in_place;
    int root;
    unsigned seed;
};

static bool reduces(enum func f)
{
    return f <= REDUCE_SCATTER;
}

static bool is_exact(const struct tcase *c)
{
    return !reduces(c->func) || (c->type < ncclFloat16 && c->op < PREMUL_HOST);
}

static bool exists(const struct plan *p, const struct tcase *c)
{
    if (!(p->funcs >> c->func & 1) || (p->exact && !is_exact(c))) return false;
    if (p->large) return c->op == ncclSum && (c->type == ncclFloat32 || c->type == ncclInt8);
    if (!reduces(c->func)) return c->op == 0 && c->type % 3 == 0;
    return c->op < BITS || c->type < ncclFloat16;
}

enum { CASES = FUNCS * ncclNumTypes * OPS };

static struct tcase case_of(const struct plan *p, unsigned i, int nranks)
{
    static const size_t counts[] = {1021, 1, 64, 7, 5003, 2048};
    struct tcase c = {.func = (enum func)(i % FUNCS),
                      .type = (ncclDataType_t)(i / FUNCS % ncclNumTypes),
                      .op = (int)(i / FUNCS / ncclNumTypes),
                      .seed = i};
    const size_t size = kl_type_bytes(c.type);

    c.count = p->large ? LARGE : counts[gpu_mix(i) % 6];
    c.offset = i % 4 < 2 ? 0 : i % 4 == 2 ? size : 1;
    c.in_place = i / 7 % 2;
    c.root = (int)(i % (unsigned)nranks);
    if (c.func == REDUCE_SCATTER || c.func == ALL_GATHER)
        while (c.count * size * (size_t)nranks + 1024 > ARENA) c.count /= 2;
    return c;
}

static size_t send_elements(const struct tcase *c, int n)
{
    return c->func == REDUCE_SCATTER ? c->count * (size_t)n : c->count;
}

static size_t recv_elements(const struct tcase *c, int n)
{
    return c->func == ALL_GATHER ? c->count * (size_t)n : c->count;
}

/* ---- devices of both kinds ---- */

static const struct kl_cuda_driver *cu; /* NULL: host devices */

struct job;

struct rank {
    struct job *job;
    int rank, device;
    const struct kl_cuda_context *context;
    ncclComm_t comm;
    cudaStream_t stream;
    unsigned char *send, *recv, *scalar; /* of the device */
    unsigned char data[ARENA], factor[8];
    uint64_t hash[CASES];
    pthread_t thread;
};

/* Its share of the cases: number turn / 2 of them; turn % 2: ranks are threads, not one. */
struct job {
    int n, gpus, turn, shares, processes, process;
    int first, end; /* ranks of this process */
    const struct plan *plan;
    ncclUniqueId ids[PLANS], id;
    struct rank rank[RANKS];
};

static void enter(const struct rank *r)
{
    if (cu)
        assert_int_equal(kl_cuda_enter(r->context), ncclSuccess);
    else
        assert_int_equal(koloSetDevice(r->device), ncclSuccess);
}

static void leave(const struct rank *r)
{
    if (cu) kl_cuda_leave(r->context);
}

static void *allocate(size_t bytes)
{
    void *ptr = NULL;

    assert_int_equal(ncclMemAlloc(&ptr, bytes), ncclSuccess);
    return ptr;
}

static void copy(struct rank *r, void *to, const void *from, size_t bytes)
{
    if (cu)
        assert_int_equal(cu->cuMemcpyAsync((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, r->stream), 0);
    else
        assert_int_equal(koloMemcpyAsync(to, from, bytes, r->stream), ncclSuccess);
}

static void synchronize(struct rank *r)
{
    if (cu)
        assert_int_equal(cu->cuStreamSynchronize(r->stream), 0);
    else
        assert_int_equal(koloStreamSynchronize(r->stream), ncclSuccess);
}

static void start_rank(struct rank *r)
{
    kl_cu_stream stream;

    if (cu) assert_int_equal(kl_cuda_context_of(r->device, NULL, 0, &r->context), ncclSuccess);
    enter(r);
    r->send = allocate(ARENA);
    r->recv = allocate(ARENA);
    r->scalar = allocate(64);
    if (cu) {
        assert_int_equal(cu->cuStreamCreateWithPriority(&stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
        r->stream = stream;
    } else {
        assert_int_equal(koloStreamCreate(&r->stream, 0), ncclSuccess);
    }
    leave(r);
}

static void end_rank(struct rank *r)
{
    enter(r);
    assert_int_equal(ncclMemFree(r->send), ncclSuccess);
    assert_int_equal(ncclMemFree(r->recv), ncclSuccess);
    assert_int_equal(ncclMemFree(r->scalar), ncclSuccess);
    if (cu)
        assert_int_equal(cu->cuStreamDestroy(r->stream), 0);
    else
        assert_int_equal(koloStreamDestroy(r->stream), ncclSuccess);
    leave(r);
}

/* ---- one operation of a rank ---- */

static unsigned char *send_of(const struct rank *r, const struct tcase *c)
{
    const size_t behind = c->count * (size_t)r->rank * kl_type_bytes(c->type);

    if (c->in_place && c->func == ALL_GATHER) return r->recv + c->offset + behind;
    return r->send + c->offset;
}

static unsigned char *recv_of(const struct rank *r, const struct tcase *c)
{
    const size_t behind = c->count * (size_t)r->rank * kl_type_bytes(c->type);

    if (!c->in_place || c->func == ALL_GATHER) return r->recv + c->offset;
    return r->send + c->offset + (c->func == REDUCE_SCATTER ? behind : 0);
}

static void prepare(struct rank *r, const struct tcase *c)
{
    enter(r);
    synchronize(r); /* of a reduce, ranks other than the root have not waited for the end */
    memset(r->data, 0xa5, ARENA);
    copy(r, r->recv, r->data, ARENA);
    copy(r, r->send, r->data, ARENA);
    synchronize(r);
    gpu_fill(r->data, send_elements(c, r->job->n) * kl_type_bytes(c->type), c->seed, r->rank);
    copy(r, send_of(r, c), r->data, send_elements(c, r->job->n) * kl_type_bytes(c->type));
    gpu_factor(c->type, c->seed, r->rank, r->factor);
    copy(r, r->scalar, r->factor, 8);
    leave(r);
}

static void issue(struct rank *r, const struct tcase *c)
{
    enter(r);
    const ncclRedOp_t op = gpu_op(c->op, c->type, r->factor, r->scalar, r->comm);
    const ncclResult_t rc =
        gpu_call(c->func, send_of(r, c), recv_of(r, c), c->count, c->type, op, c->root, r->comm, r->stream);
    if (rc) fail_msg("function %d of rank %d: %s", (int)c->func, r->rank, ncclGetLastError(r->comm));
    gpu_drop_op(c->op, op, r->comm);
    leave(r);
}

/* Of the result, and of the bytes around it, but for what ranks other than the root are left with after a reduce. */
static uint64_t hash_of(struct rank *r, const struct tcase *c)
{
    const size_t bytes = recv_elements(c, r->job->n) * kl_type_bytes(c->type);
    uint64_t hash = 14695981039346656037u;

    if (c->func == REDUCE && c->root != r->rank) return 0;
    enter(r);
    copy(r, r->data, recv_of(r, c), bytes + (c->in_place ? 0 : 64));
    synchronize(r);
    leave(r);
    for (size_t i = 0; i < bytes + (c->in_place ? 0 : 64); i++) hash = (hash ^ r->data[i]) * 1099511628211u;
    return hash;
}

/* ---- jobs ---- */

static bool next_case(const struct job *j, unsigned *i, struct tcase *c)
{
    for (; *i < CASES; (*i)++) {
        if ((int)(gpu_mix(*i) % (unsigned)j->shares) != j->turn / 2 % j->shares && !j->plan->large) continue;
        *c = case_of(j->plan, *i, j->n);
        if (exists(j->plan, c)) return true;
    }
    return false;
}

static void join(struct rank *r)
{
    enter(r);
    if (ncclCommInitRank(&r->comm, r->job->n, r->job->id, r->rank))
        fail_msg("rank %d: %s", r->rank, ncclGetLastError(NULL));
    leave(r);
}

static void part(struct rank *r)
{
    enter(r);
    assert_int_equal(ncclCommFinalize(r->comm), ncclSuccess);
    assert_int_equal(ncclCommDestroy(r->comm), ncclSuccess);
    leave(r);
}

static void *run_thread(void *arg)
{
    struct rank *r = arg;
    struct tcase c;

    join(r);
    for (unsigned i = 0; next_case(r->job, &i, &c); i++) {
        prepare(r, &c);
        issue(r, &c);
        r->hash[i] = hash_of(r, &c);
    }
    part(r);
    return NULL;
}

static void run_threads(struct job *j)
{
    for (int r = j->first; r < j->end; r++)
        assert_int_equal(pthread_create(&j->rank[r].thread, NULL, run_thread, &j->rank[r]), 0);
    for (int r = j->first; r < j->end; r++) pthread_join(j->rank[r].thread, NULL);
}

static void run_one_thread(struct job *j)
{
    struct tcase c;

    ncclGroupStart();
    for (int r = j->first; r < j->end; r++) join(&j->rank[r]);
    if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
    for (unsigned i = 0; next_case(j, &i, &c); i++) {
        for (int r = j->first; r < j->end; r++) prepare(&j->rank[r], &c);
        ncclGroupStart();
        for (int r = j->first; r < j->end; r++) issue(&j->rank[r], &c);
        if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
        for (int r = j->first; r < j->end; r++) j->rank[r].hash[i] = hash_of(&j->rank[r], &c);
    }
    for (int r = j->first; r < j->end; r++) part(&j->rank[r]);
}

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void print_hashes(const struct job *j, int plan)
{
    struct tcase c;

    for (unsigned i = 0; next_case(j, &i, &c); i++) {
        printf("hash plan %d func %d type %s op %d count %zu offset %zu place %d root %d:", plan, (int)c.func,
               kl_type_name(c.type), c.op, c.count, c.offset, c.in_place, c.root);
        for (int r = j->first; r < j->end; r++) printf(" %016llx", (unsigned long long)j->rank[r].hash[i]);
        printf("\n");
    }
}

static struct job *job;

/* Of several processes, each has GPUs of its own. */
static int device_of(const struct job *j, int rank)
{
    return j->processes > 1 ? rank * j->gpus / j->n : rank % j->gpus;
}

static void ranks(void **state)
{
    struct job *j = job;

    (void)state;
    for (int r = j->first; r < j->end; r++) {
        j->rank[r].job = j;
        j->rank[r].rank = r;
        j->rank[r].device = device_of(j, r);
        start_rank(&j->rank[r]);
    }
    for (int p = 0; p < PLANS; p++) {
        j->plan = &plans[p];
        set("NCCL_ALGO", j->plan->algo);
        set("NCCL_PROTO", j->plan->proto);
        set("NCCL_BUFFSIZE", j->plan->fifo);
        j->id = j->ids[p];
        if (j->process < 0) assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
        if (j->turn % 2)
            run_threads(j);
        else
            run_one_thread(j);
        print_hashes(j, p);
    }
    for (int r = j->first; r < j->end; r++) end_rank(&j->rank[r]);
}

/* ---- the comparison ---- */

/* A process of the job. */
struct part {
    FILE *out;
    char log[32], line[1024];
};

static void start(struct part *p, const struct job *j, const char *devices, int process)
{
    char program[512], command[8192], hex[2 * NCCL_UNIQUE_ID_BYTES + 1];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    assert_true(length > 0);
    program[length] = '\0';
    snprintf(p->log, sizeof p->log, "/tmp/gpu_schedule_XXXXXX");
    const int fd = mkstemp(p->log);
    assert_true(fd >= 0);
    close(fd);
    size_t used = (size_t)snprintf(command, sizeof command, "exec '%s' %d %d %d %d %s %s %d %d", program, j->n, j->gpus,
                                   j->turn, j->shares, devices, p->log, j->processes, process);
    for (int i = 0; process >= 0 && i < PLANS; i++) {
        kl_bootstrap_id_format(&j->ids[i], hex);
        used += (size_t)snprintf(command + used, sizeof command - used, " %s", hex);
    }
    assert_true(used < sizeof command);
    p->out = popen(command, "r");
    assert_non_null(p->out);
}

static bool next_hash(struct part *p)
{
    while (fgets(p->line, sizeof p->line, p->out))
        if (!strncmp(p->line, "hash ", 5)) return true;
    return false;
}

static unsigned long count_in(const char *log, const char *text)
{
    FILE *from = fopen(log, "r");
    unsigned long found = 0;
    char line[1024];

    while (from && fgets(line, sizeof line, from)) found += strstr(line, text) != NULL;
    if (from) fclose(from);
    return found;
}

static void end_part(struct part *p)
{
    assert_int_equal(pclose(p->out), 0);
    unlink(p->log);
}

/* The hashes of all ranks in one line; false: there is no other. */
static bool next_hashes(struct part *part, int parts, char *line, size_t size)
{
    size_t used = 0;

    for (int p = 0; p < parts; p++) {
        const bool there = next_hash(&part[p]);
        if (!there) assert_int_equal(p, 0);
        if (!there) return false;
        char *hashes = strchr(part[p].line, ':');
        assert_non_null(hashes);
        hashes[strcspn(hashes, "\n")] = '\0';
        used += (size_t)snprintf(line + used, size - used, "%s", p ? hashes + 1 : part[p].line);
        assert_true(used < size);
    }
    return true;
}

/* Of a line: does its plan say so? */
static bool is_in_ll128(const char *line)
{
    const struct plan *p = &plans[strtol(line + strlen("hash plan "), NULL, 10)];

    return p->proto && !strcmp(p->proto, "LL128");
}

static unsigned long compare(const struct job *j)
{
    struct part gpus[RANKS], host;
    char on_gpus[2048], on_hosts[2048];
    unsigned long compared = 0, in_ll128 = 0;

    for (int p = 0; p < j->processes; p++) start(&gpus[p], j, "cuda", j->processes > 1 ? p : -1);
    start(&host, j, "host", -1);
    while (next_hashes(gpus, j->processes, on_gpus, sizeof on_gpus) &&
           next_hashes(&host, 1, on_hosts, sizeof on_hosts)) {
        if (strcmp(on_gpus, on_hosts) != 0)
            fail_msg("%d ranks of %d processes on %d GPUs:\n  %s\n  but on hosts\n  %s", j->n, j->processes, j->gpus,
                     on_gpus, on_hosts);
        compared++;
        in_ll128 += is_in_ll128(on_hosts);
    }
    assert_false(next_hash(&host));
    for (int p = 0; p < j->processes; p++) { /* kernels did all of them */
        assert_int_equal(count_in(gpus[p].log, " GPUs, blocks of "), compared);
        assert_true(in_ll128 > 0 && count_in(gpus[p].log, " LL128, ") >= in_ll128);
        end_part(&gpus[p]);
    }
    end_part(&host);
    return compared;
}

static void bits_are_those_of_the_engine(void **state)
{
    static const int sizes[] = {2, 3, 4, 8};
    const char *most = getenv("GPU_TEST_RANKS");
    unsigned long compared = 0;
    int turn = 0;

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int g = 0; g < 3; g++) {
            const int n = sizes[i], gpus = g == 0 ? 1 : g == 1 ? 2 : n;
            if (gpus > cu->devices || (g == 2 && n == 2) || (most && n > (int)strtol(most, NULL, 10))) continue;
            compared += compare(&(struct job){.n = n, .gpus = gpus, .turn = turn++, .shares = 7, .processes = 1});
        }
    printf("%lu operations by schedules, bits as on host devices\n", compared);
    assert_true(compared > 0);
}

/* ---- processes ---- */

static struct job *processes(int n, int nprocesses, int gpus, int turn)
{
    struct job *j = calloc(1, sizeof *j);

    assert_non_null(j);
    j->n = n;
    j->processes = nprocesses;
    j->gpus = gpus;
    j->turn = turn;
    j->shares = 16;
    for (int p = 0; p < PLANS; p++) assert_int_equal(ncclGetUniqueId(&j->ids[p]), ncclSuccess);
    return j;
}

/* A process each, and two with several ranks, on a GPU each or on one of the process's. */
static void processes_have_the_bits_of_the_engine(void **state)
{
    static const struct {
        int n, processes, gpus;
    } jobs[] = {{2, 2, 2}, {4, 4, 4}, {4, 2, 4}, {6, 2, 2}};
    unsigned long compared = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        if (jobs[i].gpus > cu->devices) continue;
        struct job *j = processes(jobs[i].n, jobs[i].processes, jobs[i].gpus, i);
        compared += compare(j);
        free(j);
    }
    printf("%lu operations by schedules between processes, bits as on host devices\n", compared);
    assert_true(compared > 0);
}

/* Their kernels would not be on it at once. */
static void processes_that_share_a_gpu_go_another_way(void **state)
{
    struct job *j = processes(2, 2, 1, 0);
    struct part part[2];
    char line[2048];
    unsigned long done = 0;

    (void)state;
    j->shares = 60;
    for (int p = 0; p < 2; p++) start(&part[p], j, "cuda", p);
    while (next_hashes(part, 2, line, sizeof line)) done++;
    assert_true(done > 0);
    for (int p = 0; p < 2; p++) {
        assert_int_equal(count_in(part[p].log, " GPUs, blocks of "), 0);
        assert_int_equal(count_in(part[p].log, "no schedule on GPUs: a GPU has ranks of several processes"), done);
        end_part(&part[p]);
    }
    free(j);
}

/* ---- where LL128 is safe ---- */

/* Two ranks of one process or two, on GPUs of a machine: lines of their logs with a text. */
static unsigned long count_on(const char *machine, int nprocesses, const char *text)
{
    struct job *j = processes(2, nprocesses, 2, 0);
    struct part part[2];
    unsigned long found = 0;
    char path[256];

    snprintf(path, sizeof path, "tests/data/topologies/synthetic/%s.xml", machine);
    assert_int_equal(access(path, R_OK), 0);
    setenv("NCCL_TOPO_FILE", path, 1);
    j->shares = 200;
    for (int p = 0; p < nprocesses; p++) start(&part[p], j, "cuda", nprocesses > 1 ? p : -1);
    for (int p = 0; p < nprocesses; p++) {
        while (next_hash(&part[p])) continue;
        found += count_in(part[p].log, text);
        end_part(&part[p]);
    }
    unsetenv("NCCL_TOPO_FILE");
    free(j);
    return found;
}

/* Each communicator of each process says so; ranks of a process share it. */
static void ll128_is_chosen_over_nvlink_only(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++) {
        assert_int_equal(count_on("h100-nvsw-0nic", n, "LL128 may be chosen"), n * PLANS);
        assert_int_equal(count_on("pcie-8gpu-0nic-l40s", n, "LL128 only where NCCL_PROTO has it"), n * PLANS);
    }
}

/* ---- aborts ---- */

static void start_pair(struct job *j)
{
    j->n = 2;
    for (int r = 0; r < 2; r++) {
        j->rank[r].job = j;
        j->rank[r].rank = j->rank[r].device = r;
        start_rank(&j->rank[r]);
    }
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    ncclGroupStart();
    for (int r = 0; r < 2; r++) join(&j->rank[r]);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
}

static const struct kl_gpu_team *team_of(const struct rank *r)
{
    ncclComm_t comm = kl_handle_try(r->comm);
    const struct kl_gpu_team *team = comm->shared->team;

    kl_handle_leave(comm);
    return team;
}

/* The stream waits until the CPU has written to the word. */
static void hold(const struct rank *r, kl_cu_stream stream, _Atomic uint32_t *word)
{
    uint64_t at;

    kl_store_relaxed(word, 0);
    enter(r);
    assert_int_equal(cu->cuMemHostRegister((void *)word, 4096, KL_CU_HOST_PORTABLE_MAPPED), 0);
    assert_int_equal(cu->cuMemHostGetDevicePointer(&at, (void *)word, 0), 0);
    assert_int_equal(cu->cuStreamWaitValue32(stream, at, 1, KL_CU_WAIT_AT_LEAST), 0);
    leave(r);
}

static void reduce_both(struct job *j)
{
    ncclGroupStart();
    for (int r = 0; r < 2; r++)
        assert_int_equal(ncclAllReduce(j->rank[r].send, j->rank[r].recv, 100, ncclFloat, ncclSum, j->rank[r].comm,
                                       j->rank[r].stream),
                         ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
}

/* Rank 1's kernel does not begin, so rank 0's waits for it until the abort. */
static void an_abort_ends_kernels_that_wait(void **state)
{
    struct job *j = calloc(1, sizeof *j);
    _Atomic uint32_t *word = aligned_alloc(4096, 4096);

    (void)state;
    assert_non_null(j);
    assert_non_null(word);
    if (cu->devices < 2) skip();
    start_pair(j);
    kl_cu_stream waiting = team_of(&j->rank[0])->worker[0].stream;
    hold(&j->rank[1], team_of(&j->rank[0])->worker[1].stream, word);
    reduce_both(j);
    enter(&j->rank[0]);
    assert_int_equal(cu->cuStreamQuery(waiting), KL_CU_NOT_READY);
    assert_int_equal(ncclCommAbort(j->rank[0].comm), ncclSuccess);
    assert_int_equal(cu->cuStreamSynchronize(waiting), 0); /* the other rank keeps the team */
    leave(&j->rank[0]);
    kl_store_release(word, 1);
    assert_int_equal(ncclCommAbort(j->rank[1].comm), ncclSuccess);
    for (int r = 0; r < 2; r++) {
        enter(&j->rank[r]);
        synchronize(&j->rank[r]);
        leave(&j->rank[r]);
    }
    enter(&j->rank[1]);
    assert_int_equal(cu->cuMemHostUnregister((void *)word), 0);
    leave(&j->rank[1]);
    for (int r = 0; r < 2; r++) end_rank(&j->rank[r]);
    free((void *)word);
    free(j);
}

/* ---- main ---- */

static int setup(const char *devices)
{
    const struct kl_device_kind *kind;

    setenv("KOLO_DEVICES", devices, 1);
    if (!strcmp(devices, "host")) return 0;
    setenv("KOLO_CUDA_MOVER", "schedule", 1);
    if (!kl_cuda_driver(&cu) && !kl_devices(&kind)) return kind == &kl_cuda_devices ? 0 : 1;
    printf("skipped: %s\n", kl_error_text());
    return 77;
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* The arguments of a process with ranks. */
static bool read_job(struct job *j, int argc, char **argv)
{
    j->n = number(argv[1]);
    j->gpus = number(argv[2]);
    j->turn = number(argv[3]);
    j->shares = number(argv[4]);
    j->processes = number(argv[7]);
    j->process = number(argv[8]);
    j->end = j->n;
    if (j->process < 0) return argc == ARGUMENTS;
    j->first = j->process * j->n / j->processes;
    j->end = (j->process + 1) * j->n / j->processes;
    for (int p = 0; p < PLANS; p++)
        if (argc != ARGUMENTS + PLANS || kl_bootstrap_id_parse(argv[ARGUMENTS + p], &j->ids[p])) return false;
    return true;
}

static int be_ranks(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks)};

    setenv("NCCL_PAT_ENABLE", "1", 1); /* else not for several ranks of a node */
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    setenv("NCCL_DEBUG_FILE", argv[6], 1);
    if (setup(argv[5])) return 1;
    job = calloc(1, sizeof *job);
    if (!job || !read_job(job, argc, argv)) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_ends_kernels_that_wait),
        cmocka_unit_test(bits_are_those_of_the_engine),
    };
    const struct CMUnitTest of_processes[] = {
        cmocka_unit_test(ll128_is_chosen_over_nvlink_only),
        cmocka_unit_test(processes_that_share_a_gpu_go_another_way),
        cmocka_unit_test(processes_have_the_bits_of_the_engine),
    };

    alarm(kolo_test_hang_s());
    if (argc >= ARGUMENTS) return be_ranks(argc, argv);
    const int rc = setup("cuda");
    if (rc) return rc;
    return argc == 2 && !strcmp(argv[1], "processes") ? cmocka_run_group_tests(of_processes, NULL, NULL)
                                                      : cmocka_run_group_tests(tests, NULL, NULL);
}
