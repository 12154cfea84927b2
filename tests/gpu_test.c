/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_test.c - communicators on GPUs: all functions, types and operators give the bits of host devices.
 *
 * It uses CUDA's driver as the library does, so it runs on GPUs and on the stand-in, which ctest gives it. Processes are this
 * program again, with arguments.
 */
#include "bootstrap/bootstrap.h"

#include "device/cuda/driver.h"
#include "device/cuda/context.h"
#include "device/device.h"
#include "include/kolo.h"
#include "include/nccl.h"
#include "tests/gpu_cases.h"
#include "tests/gpu_graphs.h"
#include "tests/gpu_memory.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct kl_cuda_driver *cu;
/* Counted in a cell of the matrix, by this process, or by those that it started. */
static struct counts {
    unsigned long operations, comparisons, elsewhere; /* elsewhere: of them in memory that other processes cannot map */
    unsigned functions;                               /* a bit for each */
} counts;

/* ---- ranks ---- */

struct job;

struct rank {
    struct job *job;
    int rank, device;
    const struct kl_cuda_context *context;
    ncclComm_t comm;
    kl_cu_stream stream;
    struct gpu_memory memory[3];
    uint64_t send, recv, scalar; /* its addresses */
    unsigned char before[ARENA], after[ARENA], factor[8];
    void *executable; /* its graph */
    pthread_t thread;
};

/* Several processes have a rank each, or are two with half of the ranks, one of them with threads; or they replay graphs, one
 * for each rank. */
enum mode {
    ONE_THREAD,
    THREADS,
    PROCESSES,
    MIXED,
    ONE_THREAD_GRAPHS,
    THREADS_GRAPHS,
    PROCESSES_GRAPHS,
    MIXED_GRAPHS,
    MODES
};
static const char *const mode_names[] = {"one thread",
                                         "threads",
                                         "processes",
                                         "two processes with several ranks",
                                         "one thread with graphs",
                                         "threads with graphs",
                                         "processes with graphs",
                                         "two processes with several ranks and graphs"};

static bool uses_graphs(enum mode mode)
{
    return mode >= ONE_THREAD_GRAPHS;
}

static bool is_mixed(enum mode mode)
{
    return mode == MIXED || mode == MIXED_GRAPHS;
}

static bool uses_processes(enum mode mode)
{
    return is_mixed(mode) || mode == PROCESSES || mode == PROCESSES_GRAPHS;
}

struct job {
    int n, gpus, hosts;
    enum mode mode;
    int from, to;         /* ranks of this process */
    unsigned first, step; /* of the cases */
    ncclUniqueId id;
    struct rank rank[RANKS];
};

static void enter(const struct rank *r)
{
    assert_int_equal(kl_cuda_enter(r->context), ncclSuccess);
}

static void leave(const struct rank *r)
{
    kl_cuda_leave(r->context);
}

/* Between processes, kinds that they cannot map, too: each buffer of its own kind. */
static enum gpu_memory_kind kind_of(const struct rank *r, int buffer)
{
    if (!uses_processes(r->job->mode)) return GPU_DEVICE;
    return (enum gpu_memory_kind)((r->rank + buffer + (int)r->job->first) % GPU_MEMORY_KINDS);
}

static void start_rank(struct rank *r)
{
    uint64_t *at[] = {&r->send, &r->recv, &r->scalar};

    assert_int_equal(kl_cuda_context_of(r->device, NULL, 0, &r->context), ncclSuccess);
    enter(r);
    for (int i = 0; i < 3; i++) {
        const enum gpu_memory_kind kind = kind_of(r, i);
        const int rc = gpu_memory_alloc(cu, &r->memory[i], kind, r->device, ARENA + 256);
        if (rc) fail_msg("%s memory: %s", gpu_memory_names[kind], kl_cuda_error_name(cu, rc));
        *at[i] = r->memory[i].at;
    }
    /* Others use the NULL stream, which ranks of a GPU share; between hosts one rank's message would hold up the others. */
    if (r->job->n % 4 || r->job->hosts > 1 || uses_graphs(r->job->mode))
        assert_int_equal(cu->cuStreamCreateWithPriority(&r->stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
    leave(r);
}

static void end_rank(struct rank *r)
{
    enter(r);
    assert_int_equal(ncclCommFinalize(r->comm), ncclSuccess);
    assert_int_equal(ncclCommDestroy(r->comm), ncclSuccess);
    if (r->stream) assert_int_equal(cu->cuStreamDestroy(r->stream), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(gpu_memory_free(cu, &r->memory[i]), 0);
    leave(r);
}

static void join(struct rank *r)
{
    enter(r);
    ncclResult_t rc = ncclCommInitRank(&r->comm, r->job->n, r->job->id, r->rank);
    if (rc) fail_msg("rank %d: %s", r->rank, ncclGetLastError(NULL));
    leave(r);
}

/* ---- one operation of a rank ---- */

static uint64_t base_of(const struct rank *r, const struct tcase *c, bool recv)
{
    const bool in_recv = has_place(c) ? c->func == ALL_GATHER : recv;

    return (in_recv ? r->recv : r->send) + GUARD + c->offset;
}

static void *address(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

static void copy(struct rank *r, uint64_t to, uint64_t from, size_t bytes)
{
    assert_int_equal(cu->cuMemcpyAsync(to, from, bytes, r->stream), 0);
}

static uint64_t host(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static void prepare(struct rank *r, const struct tcase *c)
{
    const size_t size = kl_type_bytes(c->type);

    enter(r);
    memset(r->before, 0xa5, sizeof r->before);
    copy(r, r->recv, host(r->before), sizeof r->before);
    copy(r, r->send, host(r->before), sizeof r->before);
    assert_int_equal(cu->cuStreamSynchronize(r->stream), 0);
    gpu_fill(r->before + GUARD, send_elements(c, r->job->n) * size, c->seed, r->rank);
    copy(r, base_of(r, c, false) + send_behind(c, r->rank) * size * has_place(c), host(r->before + GUARD),
         send_elements(c, r->job->n) * size);
    gpu_factor(c->type, c->seed, r->rank, r->factor);
    copy(r, r->scalar, host(r->factor), 8); /* the operation comes behind it on the stream */
    leave(r);
}

static ncclRedOp_t op_of(struct rank *r, const struct tcase *c)
{
    unsigned char scalar[8];
    ncclRedOp_t op = (ncclRedOp_t)c->op;

    gpu_factor(c->type, c->seed, r->rank, scalar);
    if (c->op >= BITS) return (ncclRedOp_t)(koloBitAnd + c->op - BITS);
    if (c->op == PREMUL_HOST)
        assert_int_equal(ncclRedOpCreatePreMulSum(&op, scalar, c->type, ncclScalarHostImmediate, r->comm), ncclSuccess);
    if (c->op == PREMUL_DEVICE)
        assert_int_equal(ncclRedOpCreatePreMulSum(&op, address(r->scalar), c->type, ncclScalarDevice, r->comm),
                         ncclSuccess);
    return op;
}

static ncclResult_t exchange_messages(struct rank *r, const struct tcase *c, const void *send, void *recv)
{
    const int n = r->job->n;

    ncclGroupStart();
    ncclSend(send, c->count, c->type, (r->rank + 1) % n, r->comm, r->stream);
    ncclRecv(recv, c->count, c->type, (r->rank + n - 1) % n, r->comm, r->stream);
    return ncclGroupEnd();
}

static ncclResult_t call(struct rank *r, const struct tcase *c, ncclRedOp_t op)
{
    const size_t size = kl_type_bytes(c->type);
    const void *send = address(base_of(r, c, false) + send_behind(c, r->rank) * size * has_place(c));
    void *recv = address(base_of(r, c, true) + recv_behind(c, r->rank) * size * has_place(c));

    switch (c->func) {
    case ALL_REDUCE:
        return ncclAllReduce(send, recv, c->count, c->type, op, r->comm, r->stream);
    case REDUCE:
        return ncclReduce(send, recv, c->count, c->type, op, c->root, r->comm, r->stream);
    case REDUCE_SCATTER:
        return ncclReduceScatter(send, recv, c->count, c->type, op, r->comm, r->stream);
    case BROADCAST:
        return ncclBroadcast(send, recv, c->count, c->type, c->root, r->comm, r->stream);
    case ALL_GATHER:
        return ncclAllGather(send, recv, c->count, c->type, r->comm, r->stream);
    case ALL_TO_ALL:
        return ncclAlltoAll(send, recv, c->count, c->type, r->comm, r->stream);
    case GATHER:
        return ncclGather(send, recv, c->count, c->type, c->root, r->comm, r->stream);
    case SCATTER:
        return ncclScatter(send, recv, c->count, c->type, c->root, r->comm, r->stream);
    default:
        return exchange_messages(r, c, send, recv);
    }
}

static void issue(struct rank *r, const struct tcase *c)
{
    enter(r);
    const ncclRedOp_t op = op_of(r, c);
    const ncclResult_t rc = call(r, c, op);
    if (rc) fail_msg("function %d of rank %d: %s", (int)c->func, r->rank, ncclGetLastError(r->comm));
    if (c->op == PREMUL_HOST || c->op == PREMUL_DEVICE) assert_int_equal(ncclRedOpDestroy(op, r->comm), ncclSuccess);
    leave(r);
}

static void verify(struct rank *r, const struct tcase *c)
{
    static _Thread_local unsigned char want[ARENA];
    const size_t size = kl_type_bytes(c->type), bytes = recv_elements(c, r->job->n) * size;
    const uint64_t recv = base_of(r, c, true) + recv_behind(c, r->rank) * size * has_place(c);

    enter(r);
    copy(r, host(r->after), recv - GUARD / 2, bytes + GUARD);
    assert_int_equal(cu->cuStreamSynchronize(r->stream), 0);
    leave(r);
    __atomic_fetch_add(&counts.operations, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(&counts.functions, 1u << c->func, __ATOMIC_RELAXED);
    if (!result_on_host(c, r->job->n, r->rank, want)) return;
    __atomic_fetch_add(&counts.comparisons, 1, __ATOMIC_RELAXED);
    if (kind_of(r, 1)) __atomic_fetch_add(&counts.elsewhere, 1, __ATOMIC_RELAXED);
    if (!memcmp(r->after + GUARD / 2, want, bytes)) {
        if (has_place(c)) return;
        for (int i = 0; i < GUARD / 2; i++)
            if (r->after[i] != 0xa5 || r->after[GUARD / 2 + bytes + (size_t)i] != 0xa5)
                fail_msg("function %d type %d: rank %d wrote outside of its buffer", (int)c->func, (int)c->type,
                         r->rank);
        return;
    }
    size_t at = 0;
    while (r->after[GUARD / 2 + at] == want[at]) at++;
    fail_msg(
        "%d ranks on %d GPUs, %s: function %d type %s op %d count %zu offset %zu%s root %d: rank %d byte %zu is %02x, "
        "not %02x",
        r->job->n, r->job->gpus, mode_names[r->job->mode], (int)c->func, kl_type_name(c->type), c->op, c->count,
        c->offset, has_place(c) ? " in place" : "", c->root, r->rank, at, r->after[GUARD / 2 + at], want[at]);
}

/* ---- jobs ---- */

/* Sums and products of floats. Settings may have GPUs merge them in an order that is not the ranks'. */
static bool depends_on_order(const struct tcase *c)
{
    return reduces(c->func) && c->type >= ncclFloat16 && c->op != ncclMin && c->op != ncclMax;
}

/* The job's share of all cases, then a case of each function. `turn` begins with 0. */
static bool next_case(const struct job *j, unsigned *turn, struct tcase *c)
{
    const unsigned share = (CASES - j->first + j->step - 1) / j->step;
    const bool any_order = getenv("GPU_TEST_ANY_ORDER");
    const unsigned types = any_order ? 2 : 3; /* of the cases of each function: integers, and doubles */

    while (*turn < share + FUNCS) {
        const unsigned t = (*turn)++;
        *c = case_of(t < share ? j->first + t * j->step : (t - share) + (t + j->first) % types * 4 * FUNCS, j->n);
        if (exists(c) && !(any_order && depends_on_order(c))) return true;
    }
    return false;
}

enum { THREAD_LOCAL = 1 }; /* of a capture */

static void order(const struct rank *before, const struct rank *after)
{
    kl_cu_event event;

    enter(before);
    assert_int_equal(cu->cuEventCreate(&event, KL_CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(cu->cuEventRecord(event, before->stream), 0);
    assert_int_equal(cu->cuStreamWaitEvent(after->stream, event, 0), 0);
    assert_int_equal(cu->cuEventDestroy(event), 0);
    leave(before);
}

/* The ranks [r, end) have a graph together. */
static void begin_capture(struct rank *r, const struct rank *end)
{
    struct gpu_graphs graphs;

    gpu_graphs_find(&graphs);
    enter(r);
    assert_int_equal(graphs.begin(r->stream, THREAD_LOCAL), 0);
    leave(r);
    for (const struct rank *other = r + 1; other < end; other++) order(r, other);
}

static void end_capture(struct rank *r, const struct rank *end)
{
    struct gpu_graphs graphs;

    gpu_graphs_find(&graphs);
    for (const struct rank *other = r + 1; other < end; other++) order(other, r);
    enter(r);
    r->executable = gpu_graphs_finish(&graphs, r->stream);
    assert_non_null(r->executable);
    leave(r);
}

/* Its other ranks go on when the first one's stream has been waited for. */
static void launch(const struct rank *r, const struct rank *end)
{
    struct gpu_graphs graphs;

    gpu_graphs_find(&graphs);
    for (const struct rank *other = r + 1; other < end; other++) order(other, r);
    enter(r);
    assert_int_equal(graphs.launch(r->executable, r->stream), 0);
    leave(r);
}

static void destroy_graph(struct rank *r)
{
    struct gpu_graphs graphs;

    gpu_graphs_find(&graphs);
    enter(r);
    assert_int_equal(graphs.destroy(r->executable), 0);
    leave(r);
}

static void run_operation(struct rank *r, const struct tcase *c)
{
    prepare(r, c);
    issue(r, c);
    verify(r, c);
}

/* Captured, and replayed twice, with another operation in between. */
static void replay(struct rank *r, const struct tcase *c)
{
    begin_capture(r, r + 1);
    issue(r, c);
    end_capture(r, r + 1);
    for (int i = 0; i < 2; i++) {
        if (i) run_operation(r, c);
        prepare(r, c);
        launch(r, r + 1);
        verify(r, c);
    }
    destroy_graph(r);
}

static void *run_thread(void *arg)
{
    struct rank *r = arg;
    struct tcase c;

    start_rank(r);
    join(r);
    for (unsigned turn = 0; next_case(r->job, &turn, &c);) {
        if (uses_graphs(r->job->mode))
            replay(r, &c);
        else
            run_operation(r, &c);
    }
    end_rank(r);
    return NULL;
}

static void issue_all(struct job *j, const struct tcase *c)
{
    ncclGroupStart();
    for (int r = j->from; r < j->to; r++) issue(&j->rank[r], c);
    if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
}

static void run_all(struct job *j, const struct tcase *c)
{
    for (int r = j->from; r < j->to; r++) prepare(&j->rank[r], c);
    issue_all(j, c);
    for (int r = j->from; r < j->to; r++) verify(&j->rank[r], c);
}

/* A graph for each rank, or, in every other job of many ranks, for two of them. */
static void replay_all(struct job *j, const struct tcase *c)
{
    struct rank *const from = &j->rank[j->from], *const to = &j->rank[j->to];
    const int each = (to - from) % 2 == 0 && j->first % 2 ? 2 : 1;

    for (struct rank *r = from; r < to; r += each) begin_capture(r, r + each);
    issue_all(j, c);
    for (struct rank *r = from; r < to; r += each) end_capture(r, r + each);
    for (int i = 0; i < 2; i++) {
        if (i) run_all(j, c);
        for (struct rank *r = from; r < to; r++) prepare(r, c);
        for (struct rank *r = from; r < to; r += each) launch(r, r + each);
        for (struct rank *r = from; r < to; r++) verify(r, c);
    }
    for (struct rank *r = from; r < to; r += each) destroy_graph(r);
}

static void run_one_thread(struct job *j)
{
    struct tcase c;

    for (int r = j->from; r < j->to; r++) start_rank(&j->rank[r]);
    ncclGroupStart();
    for (int r = j->from; r < j->to; r++) join(&j->rank[r]);
    if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
    for (unsigned turn = 0; next_case(j, &turn, &c);) {
        if (uses_graphs(j->mode))
            replay_all(j, &c);
        else
            run_all(j, &c);
    }
    for (int r = j->from; r < j->to; r++) end_rank(&j->rank[r]);
}

static void run_threads(struct job *j)
{
    for (int r = j->from; r < j->to; r++)
        assert_int_equal(pthread_create(&j->rank[r].thread, NULL, run_thread, &j->rank[r]), 0);
    for (int r = j->from; r < j->to; r++) pthread_join(j->rank[r].thread, NULL);
}

static void set_ranks(struct job *j)
{
    for (int r = 0; r < j->n; r++) {
        j->rank[r].job = j;
        j->rank[r].rank = r;
        j->rank[r].device = r % j->gpus;
    }
}

/* Emulated hosts have consecutive ranks; reductions over them have the oracle's order. */
static void name_host(const struct job *j, int rank)
{
    char name[32];

    if (j->hosts == 1) return;
    snprintf(name, sizeof name, "host%d", rank * j->hosts / j->n);
    setenv("NCCL_HOSTID", name, 1);
    setenv("KOLO_DETERMINISTIC", "1", 1);
}

/* This program again, for some ranks; it prints its counts. */
static FILE *start_process(const struct job *j, int from, int to)
{
    char program[512], id[2 * NCCL_UNIQUE_ID_BYTES + 1], command[1200];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

    assert_true(n > 0);
    program[n] = '\0';
    kl_bootstrap_id_format(&j->id, id);
    snprintf(command, sizeof command, "exec '%s' %d %d %d %u %u %d %d %s %d", program, j->n, j->gpus, (int)j->mode,
             j->first, j->step, from, to, id, j->hosts);
    return popen(command, "r");
}

static void add_counts(struct counts *to, const struct counts *more)
{
    to->operations += more->operations;
    to->comparisons += more->comparisons;
    to->elsewhere += more->elsewhere;
    to->functions |= more->functions;
}

static void run_processes(struct job *j)
{
    const int each = is_mixed(j->mode) ? j->n / (j->hosts > 1 ? j->hosts : 2) : 1, processes = j->n / each;
    FILE *process[RANKS];

    for (int p = 0; p < processes; p++) assert_non_null(process[p] = start_process(j, p * each, (p + 1) * each));
    for (int p = 0; p < processes; p++) {
        struct counts own = {0};
        char line[1024] = "";
        while (fgets(line, sizeof line, process[p]))
            (void)sscanf(line, "counts %lu %lu %lu %x", &own.operations, &own.comparisons, &own.elsewhere,
                         &own.functions);
        add_counts(&counts, &own);
        assert_int_equal(pclose(process[p]), 0);
        assert_int_equal(own.functions, ALL_FUNCTIONS);
    }
}

static struct counts all; /* cells together */
static unsigned cells;

static void run_job(int n, int gpus, int hosts, enum mode mode, unsigned first, unsigned step)
{
    struct job *j = calloc(1, sizeof *j);

    assert_non_null(j);
    *j = (struct job){.n = n, .gpus = gpus, .hosts = hosts, .mode = mode, .first = first, .step = step, .to = n};
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    set_ranks(j);
    counts = (struct counts){0};
    if (uses_processes(mode))
        run_processes(j);
    else if (mode == THREADS || mode == THREADS_GRAPHS)
        run_threads(j);
    else
        run_one_thread(j);
    free(j);
    printf("%d ranks, %d GPUs, %d hosts, %s: %lu operations of ranks, %lu results compared\n", n, gpus, hosts,
           mode_names[mode], counts.operations, counts.comparisons);
    assert_int_equal(counts.functions, ALL_FUNCTIONS);
    add_counts(&all, &counts);
    cells++;
}

/* One process of a job. */
static struct job *of_process;

static void ranks_of_a_process(void **state)
{
    (void)state;
    if (is_mixed(of_process->mode) && of_process->from)
        run_one_thread(of_process);
    else
        run_threads(of_process);
    printf("counts %lu %lu %lu %x\n", counts.operations, counts.comparisons, counts.elsewhere, counts.functions);
}

static bool read_arguments(char **argv)
{
    struct job *j = of_process = calloc(1, sizeof *j);

    if (!j || prctl(PR_SET_PDEATHSIG, SIGKILL)) return false;
    j->n = atoi(argv[1]);
    j->gpus = atoi(argv[2]);
    j->mode = (enum mode)atoi(argv[3]);
    j->first = (unsigned)atoi(argv[4]);
    j->step = (unsigned)atoi(argv[5]);
    j->from = atoi(argv[6]);
    j->to = atoi(argv[7]);
    j->hosts = atoi(argv[9]);
    name_host(j, j->from);
    set_ranks(j);
    return !kl_bootstrap_id_parse(argv[8], &j->id);
}

/*
 * Graphs of a process that wait for each other need a hardware queue of their GPU each, which streams get in the order of their
 * creation; GPUs without P2P need several for their copies.
 */
static bool shares_queues(enum mode mode, int n, int gpus)
{
    const int ranks = is_mixed(mode) ? n / 2 : uses_processes(mode) ? 1 : n;

    if (!getenv("KOLO_CUDA_STRICT") || !uses_graphs(mode)) return false;
    return ranks > 1 && (gpus < n || getenv("KOLO_CUDA_P2P"));
}

/* Between cases. Graphs keep memory of other processes mapped, of which a communicator has a limited number. */
static unsigned step_of(enum mode mode)
{
    const char *share = getenv("GPU_TEST_SHARE"); /* of the cases, one in so many */
    const unsigned each = share ? (unsigned)atoi(share) : 1;

    if (getenv("GPU_TEST_ALL")) return 1;
    if (uses_graphs(mode)) return each * (uses_processes(mode) ? 41 : 11);
    return each * (uses_processes(mode) ? 9 : 3);
}

static void print_total(const char *name)
{
    printf("%s: %u cells, %lu operations of ranks, %lu results compared, 0 wrong; %lu of them in memory that other "
           "processes cannot map\n",
           name, cells, all.operations, all.comparisons, all.elsewhere);
}

/* One GPU, two, and a GPU for each rank; together they have every case, and each has a share of all of them, and every
 * function. */
static void bits_are_those_of_hosts(void **state)
{
    static const int ranks[] = {1, 2, 4, 8};
    unsigned turn = 0;
    const char *most = getenv("GPU_TEST_RANKS");
    const bool one_process = getenv("GPU_TEST_ONE_PROCESS");

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int g = 0; g < 3; g++) {
            const int n = ranks[i], gpus = g == 0 ? 1 : g == 1 ? 2 : n;
            if (gpus > cu->devices || (g == 1 && n <= 2) || (g == 2 && n == 1) || (most && n > atoi(most))) continue;
            for (int mode = 0; mode < MODES; mode++, turn++) {
                if (uses_processes((enum mode)mode) && (one_process || n == 1 || (is_mixed((enum mode)mode) && n == 2)))
                    continue;
                if (shares_queues((enum mode)mode, n, gpus)) continue;
                const unsigned step = step_of((enum mode)mode);
                run_job(n, gpus, 1, (enum mode)mode, turn % step, step);
            }
        }
    print_total("all");
    if (!one_process && (!most || atoi(most) > 1)) assert_true(all.elsewhere);
}

/* Ranks of emulated hosts, which share a GPU of each host or have one each: a process for each rank, or for each host. */
static void bits_between_hosts(void **state)
{
    static const struct {
        int ranks, hosts;
    } jobs[] = {{2, 2}, {4, 2}, {3, 3}, {6, 3}, {8, 2}};
    const char *most = getenv("GPU_TEST_RANKS");
    unsigned turn = 0;

    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        for (int own = 0; own < 2; own++)
            for (enum mode mode = 0; mode < MODES; mode++, turn++) {
                const int n = jobs[i].ranks, gpus = own ? n / jobs[i].hosts : 1;
                const unsigned step = step_of(mode);
                if (!uses_processes(mode) || (own && gpus == 1) || gpus > cu->devices || (most && n > atoi(most)))
                    continue;
                if (is_mixed(mode) && n == jobs[i].hosts) continue;
                run_job(n, gpus, jobs[i].hosts, mode, turn % step, step);
            }
    print_total("between hosts");
}

static int setup(void **state)
{
    const struct kl_device_kind *kind;

    (void)state;
    setenv("KOLO_DEVICES", "cuda", 1);
    if (kl_cuda_driver(&cu) || kl_devices(&kind)) {
        printf("skipped: %s\n", kl_error_text());
        return 77;
    }
    return kind == &kl_cuda_devices ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_hosts)};
    const struct CMUnitTest hosts[] = {cmocka_unit_test(bits_between_hosts)};
    const struct CMUnitTest process[] = {cmocka_unit_test(ranks_of_a_process)};
    void *none = NULL;

    alarm(kolo_test_hang_s());
    const int rc = setup(&none);
    if (rc) return rc;
    if (argc == 2 && !strcmp(argv[1], "hosts")) return cmocka_run_group_tests(hosts, NULL, NULL);
    if (argc == 10) return read_arguments(argv) ? cmocka_run_group_tests(process, NULL, NULL) : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
