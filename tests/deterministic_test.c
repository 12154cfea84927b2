/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KOLO_DETERMINISTIC: every reduction has the bits of a loop over the ranks, in threads, processes and hosts, with
 * every algorithm, protocol and number of channels.
 */
#include "bootstrap/bootstrap.h"
#include "device/host/redop.h"
#include "tests/api_check.h"
#include "tests/hang.h"

#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEW_RANKS = 5, MAX_RANKS = 40, COUNT = 3001, PARTS_COUNT = 257, MAX_BYTES = 8, EXIT_REFUSED = 7 };
enum { SCALED = ncclNumOps }; /* the sum of contributions that each rank multiplies by its own factor */

static const ncclDataType_t types[] = {ncclFloat32,  ncclFloat64,    ncclFloat16,
                                       ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
static const ncclRedOp_t ops[] = {ncclSum, ncclAvg, ncclProd, ncclMax, (ncclRedOp_t)SCALED};

/* ---- data of very different sizes, so that the order of additions shows ---- */

static uint64_t bits(int rank, size_t i)
{
    uint64_t x = ((uint64_t)rank << 32 | i) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static double wide(int rank, size_t i)
{
    uint64_t x = bits(rank, i);

    return ldexp((double)(int64_t)x, (int)(x & 31) - 78); /* below 2 to the power of 16 */
}

/* Of small types any number below 2. */
static void put(ncclDataType_t type, void *to, size_t at, int rank, size_t i)
{
    if (type == ncclFloat64)
        ((double *)to)[at] = wide(rank, i);
    else if (type == ncclFloat32)
        ((float *)to)[at] = (float)wide(rank, i);
    else if (kl_type_bytes(type) == 2)
        ((uint16_t *)to)[at] = (uint16_t)(bits(rank, i) & 0xbfff);
    else
        ((uint8_t *)to)[at] = (uint8_t)(bits(rank, i) & 0xbf);
}

static void fill(ncclDataType_t type, void *to, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++) put(type, to, i, rank, i);
}

static void put_factor(ncclDataType_t type, void *factor, int rank)
{
    put(type, factor, 0, rank, (size_t)MAX_RANKS * COUNT);
}

static void choose_arithmetic(struct kl_redop *redop, ncclDataType_t type, ncclRedOp_t op, int rank, int nranks)
{
    _Alignas(MAX_BYTES) char factor[MAX_BYTES];

    if (op != (ncclRedOp_t)SCALED) {
        ok(kl_redop_init(redop, type, op, nranks));
        return;
    }
    put_factor(type, factor, rank);
    ok(kl_redop_init_scaled(redop, type, factor));
}

/* One thread, one rank after the other, the last one first if `back`. */
static void loop(ncclDataType_t type, ncclRedOp_t op, int nranks, bool back, size_t count, void *result)
{
    struct kl_redop redop;
    char *own = calloc(count, MAX_BYTES);

    for (int r = 0; r < nranks; r++) {
        const int rank = back ? nranks - 1 - r : r;
        char *to = r ? own : result;
        choose_arithmetic(&redop, type, op, rank, nranks);
        fill(type, own, rank, count);
        if (redop.first)
            redop.first(&redop, to, own, count);
        else if (!r)
            memcpy(result, own, count * redop.elem_bytes);
        if (r) redop.merge(&redop, result, result, own, count);
    }
    if (redop.last) redop.last(&redop, result, count);
    free(own);
}

static void loop_over_ranks(ncclDataType_t type, ncclRedOp_t op, int nranks, size_t count, void *result)
{
    loop(type, op, nranks, false, count, result);
}

/* The same without the library's arithmetic. */
static void loop_of_floats(int nranks, size_t count, float *result)
{
    for (size_t i = 0; i < count; i++) {
        result[i] = (float)wide(0, i);
        for (int r = 1; r < nranks; r++) result[i] += (float)wide(r, i);
    }
}

/* ---- a rank ---- */

struct work {
    ncclComm_t comm;
    int rank, nranks;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t bytes; /* of an element */
    char *send, *recv, *want;
};

/* Values that an operation left before must not pass for its result. */
static char *fresh(struct work *w)
{
    memset(w->recv, 0xa5, COUNT * w->bytes);
    return w->recv;
}

static bool same(struct work *w, ncclResult_t rc, const char *got, size_t from, size_t count)
{
    ok(rc);
    ok(koloStreamSynchronize(NULL));
    return !memcmp(got, w->want + from * w->bytes, count * w->bytes);
}

static bool all_reduce(struct work *w)
{
    ncclResult_t rc = ncclAllReduce(w->send, fresh(w), COUNT, w->type, w->op, w->comm, NULL);

    return same(w, rc, w->recv, 0, COUNT);
}

static bool reduce(struct work *w, size_t count)
{
    const int root = w->nranks / 2;
    ncclResult_t rc = ncclReduce(w->send, fresh(w), count, w->type, w->op, root, w->comm, NULL);

    return same(w, rc, w->recv, 0, w->rank == root ? count : 0);
}

static bool reduce_scatter(struct work *w)
{
    ncclResult_t rc = ncclReduceScatter(w->send, fresh(w), PARTS_COUNT, w->type, w->op, w->comm, NULL);

    return same(w, rc, w->recv, (size_t)w->rank * PARTS_COUNT, PARTS_COUNT);
}

/* Parts of other sizes, and none for rank 1. */
static bool reduce_scatter_v(struct work *w)
{
    size_t counts[MAX_RANKS], from = 0;

    for (int r = 0; r < w->nranks; r++) counts[r] = r == 1 ? 0 : (size_t)(PARTS_COUNT - 5 * r);
    for (int r = 0; r < w->rank; r++) from += counts[r];
    ncclResult_t rc = koloReduceScatterV(w->send, fresh(w), counts, w->type, w->op, w->comm, NULL);
    return same(w, rc, w->recv, from, counts[w->rank]);
}

static bool all_reduce_in_place(struct work *w)
{
    ncclResult_t rc = ncclAllReduce(w->send, w->send, COUNT, w->type, w->op, w->comm, NULL);

    return same(w, rc, w->send, 0, COUNT);
}

/* All ranks print, as others may see no error. */
static bool reduce_in_all_ways(struct work *w)
{
    bool right = all_reduce(w);

    right &= reduce(w, 7);
    right &= reduce(w, COUNT);
    right &= reduce_scatter(w);
    right &= reduce_scatter_v(w);
    right &= all_reduce_in_place(w);
    return right;
}

static bool reduce_all(struct work *w, ncclDataType_t type, ncclRedOp_t op)
{
    const size_t parts = (size_t)w->nranks * PARTS_COUNT, count = COUNT > parts ? COUNT : parts;
    _Alignas(MAX_BYTES) char factor[MAX_BYTES];

    w->type = type;
    w->bytes = kl_type_bytes(type);
    w->op = op;
    fill(type, w->send, w->rank, count);
    loop_over_ranks(type, op, w->nranks, count, w->want);
    if (op != (ncclRedOp_t)SCALED) return reduce_in_all_ways(w);
    put_factor(type, factor, w->rank);
    ok(ncclRedOpCreatePreMulSum(&w->op, factor, type, ncclScalarHostImmediate, w->comm));
    bool right = reduce_in_all_ways(w);
    ok(ncclRedOpDestroy(w->op, w->comm));
    return right;
}

static bool few_kinds; /* the ranks of this process; set before they start */

/* With many ranks each computes all contributions: run only cases that differ in kind. */
static bool is_run(int nranks, ncclDataType_t type, ncclRedOp_t op)
{
    if (nranks <= FEW_RANKS && !few_kinds) return true;
    return (type == ncclFloat32 && op == ncclSum) || (type == ncclBfloat16 && op == (ncclRedOp_t)SCALED);
}

static bool run_rank(const ncclUniqueId *id, int rank, int nranks)
{
    const size_t room = MAX_BYTES * (COUNT + (size_t)nranks * PARTS_COUNT);
    struct work w = {.rank = rank, .nranks = nranks};
    bool fine = true;

    ncclResult_t rc = ncclCommInitRank(&w.comm, nranks, *id, rank);
    if (rc && strstr(ncclGetLastError(NULL), "KOLO_DETERMINISTIC"))
        exit(EXIT_REFUSED); /* one's own sentence, or the other's */
    ok(rc);
    w.send = malloc(room), w.recv = malloc(room), w.want = malloc(room);
    FOR_EACH_CASE(type, types)
    FOR_EACH_CASE(op, ops)
    {
        bool right = !is_run(nranks, *type, *op) || reduce_all(&w, *type, *op);
        if (!right)
            fprintf(stderr, "rank %d of %d: other bits, %s %s\n", rank, nranks, kl_type_name(*type),
                    *op == (ncclRedOp_t)SCALED ? "scaled" : kl_redop_name(*op));
        fine &= right;
    }
    ok(ncclCommDestroy(w.comm));
    free(w.send), free(w.recv), free(w.want);
    return fine;
}

/* ---- threads ---- */

struct thread {
    pthread_t thread;
    const ncclUniqueId *id;
    int rank, nranks;
    bool fine;
};

static void *run_thread(void *arg)
{
    struct thread *t = arg;

    t->fine = run_rank(t->id, t->rank, t->nranks);
    return NULL;
}

/* The ranks of a process. */
static bool run_some(const ncclUniqueId *id, int first, int n, int nranks)
{
    struct thread t[MAX_RANKS];
    bool fine = true;

    for (int i = 0; i < n; i++) {
        t[i] = (struct thread){.id = id, .rank = first + i, .nranks = nranks};
        assert_int_equal(pthread_create(&t[i].thread, NULL, run_thread, &t[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i].thread, NULL);
        fine &= t[i].fine;
    }
    return fine;
}

static bool run_threads(int nranks)
{
    ncclUniqueId id;

    ok(ncclGetUniqueId(&id));
    return run_some(&id, 0, nranks, nranks);
}

/* ---- processes ---- */

struct job {
    int processes, hosts;
    int threads; /* in each process, a rank each */
};

static pid_t start_process(const char *id, const struct job *job, int process)
{
    char first[12], threads[12], nranks[12], host[12];
    char *argv[] = {(char *)"deterministic_test", (char *)(uintptr_t)id, first, threads, nranks, NULL};
    pid_t pid;

    snprintf(first, sizeof first, "%d", process * job->threads);
    snprintf(threads, sizeof threads, "%d", job->threads);
    snprintf(nranks, sizeof nranks, "%d", job->processes * job->threads);
    snprintf(host, sizeof host, "h%d", process % job->hosts);
    if (job->hosts > 1) setenv("NCCL_HOSTID", host, 1);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    unsetenv("NCCL_HOSTID");
    return pid;
}

static bool run_processes(struct job job)
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[MAX_RANKS];
    ncclUniqueId id;
    bool fine = true;

    ok(ncclGetUniqueId(&id));
    kl_bootstrap_id_format(&id, text);
    for (int p = 0; p < job.processes; p++) pid[p] = start_process(text, &job, p);
    for (int p = 0; p < job.processes; p++) {
        int status;
        waitpid(pid[p], &status, 0);
        fine &= WIFEXITED(status) && !WEXITSTATUS(status);
    }
    return fine;
}

static int process_main(char **argv)
{
    int number[3];
    ncclUniqueId id;

    alarm(kolo_test_hang_s());
    if (kl_bootstrap_id_parse(argv[1], &id)) return 1;
    for (int i = 0; i < 3; i++) number[i] = (int)strtol(argv[2 + i], NULL, 10);
    return !run_some(&id, number[0], number[1], number[2]);
}

/* ---- the ways ---- */

static void threads(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) assert_true(run_threads(n));
}

static void more_ranks_than_have_edges_to_each_other(void **state)
{
    (void)state;
    assert_true(run_threads(MAX_RANKS));
}

static void processes(void **state)
{
    (void)state;
    assert_true(run_processes((struct job){.processes = 3, .threads = 1, .hosts = 1}));
}

static void hosts(void **state)
{
    (void)state;
    assert_true(run_processes((struct job){.processes = 4, .threads = 1, .hosts = 2}));
}

static void many_ranks_in_processes(void **state)
{
    (void)state;
    assert_true(run_processes((struct job){.processes = 3, .threads = 12, .hosts = 1}));
}

static void many_ranks_on_hosts(void **state)
{
    (void)state;
    assert_true(run_processes((struct job){.processes = 3, .threads = 12, .hosts = 3}));
}

static void every_setting_gives_the_same_bits(void **state)
{
    static const struct {
        const char *name, *value;
    } settings[] = {
        {"NCCL_ALGO", "tree,ring"},  {"NCCL_ALGO", "ring"},       {"NCCL_PROTO", "LL"},
        {"NCCL_MAX_NCHANNELS", "1"}, {"NCCL_MIN_NCHANNELS", "8"}, {"NCCL_BUFFSIZE", "16384"},
        {"NCCL_SHM_DISABLE", "1"},   {"NCCL_P2P_DISABLE", "1"},   {"NCCL_RUNTIME_CONNECT", "0"},
    };

    (void)state;
    few_kinds = true;
    FOR_EACH_CASE(s, settings)
    {
        setenv(s->name, s->value, 1);
        assert_true(run_threads(3));
        unsetenv(s->name);
    }
    few_kinds = false;
}

/* The expected values do not use the library's arithmetic. */
static void the_loop_is_a_loop(void **state)
{
    static float plain[COUNT], own[COUNT];

    (void)state;
    for (int n = 1; n <= 9; n++) {
        loop_of_floats(n, COUNT, plain);
        loop_over_ranks(ncclFloat32, ncclSum, n, COUNT, own);
        assert_memory_equal(plain, own, sizeof plain);
    }
}

static int elements_that_differ(ncclDataType_t type, ncclRedOp_t op)
{
    static char up[COUNT * MAX_BYTES], down[COUNT * MAX_BYTES];
    const size_t bytes = kl_type_bytes(type);
    int differ = 0;

    loop(type, op, 5, false, COUNT, up);
    loop(type, op, 5, true, COUNT, down);
    for (size_t i = 0; i < COUNT; i++) differ += !!memcmp(up + i * bytes, down + i * bytes, bytes);
    return differ;
}

/* Else this shows nothing. */
static void the_order_shows_in_these_data(void **state)
{
    (void)state;
    FOR_EACH_CASE(type, types)
    FOR_EACH_CASE(op, ops)
    expect_case(kl_type_name(*type), (elements_that_differ(*type, *op) > 10) == (*op != ncclMax));
}

static void all_ranks_need_the_same(void **state)
{
    const struct job two = {.processes = 2, .threads = 1, .hosts = 1};
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[2];
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    kl_bootstrap_id_format(&id, text);
    pid[0] = start_process(text, &two, 0);
    unsetenv("KOLO_DETERMINISTIC");
    pid[1] = start_process(text, &two, 1);
    setenv("KOLO_DETERMINISTIC", "1", 1);
    for (int r = 0; r < 2; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest in_one_process[] = {
        cmocka_unit_test(the_loop_is_a_loop),
        cmocka_unit_test(the_order_shows_in_these_data),
        cmocka_unit_test(threads),
        cmocka_unit_test(more_ranks_than_have_edges_to_each_other),
        cmocka_unit_test(every_setting_gives_the_same_bits),
        cmocka_unit_test(all_ranks_need_the_same),
    };
    const struct CMUnitTest of_processes[] = {
        cmocka_unit_test(processes),
        cmocka_unit_test(hosts),
        cmocka_unit_test(many_ranks_in_processes),
        cmocka_unit_test(many_ranks_on_hosts),
    };

    if (argc == 5) return process_main(argv);
    setenv("KOLO_DETERMINISTIC", "1", 1);
    const int failed = cmocka_run_group_tests(in_one_process, NULL, NULL);
    return KOLO_TEST_THREADS_ONLY ? failed : failed + cmocka_run_group_tests(of_processes, NULL, NULL);
}
