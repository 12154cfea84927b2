/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KOLO_DETERMINISTIC: the bits of every reduction are those of a loop over the ranks, in threads, processes and hosts, whatever algorithm,
 * protocol and number of channels are set.
 */
#include "bootstrap/bootstrap.h"
#include "device/host/redop.h"
#include "tests/api_check.h"

#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RANKS = 40, COUNT = 3001, PARTS_COUNT = 257, DEADLINE_S = 120, MAX_BYTES = 8, EXIT_REFUSED = 7 };

/* ---- data of very different sizes, so that the order of additions shows ---- */

static double input(int rank, size_t i)
{
    uint64_t x = ((uint64_t)rank << 32 | i) * 0x9e3779b97f4a7c15u;

    x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
    return ldexp((double)(x % 2001) - 1000, (int)(x >> 40) % 40 - 30);
}

static void put(ncclDataType_t type, void *to, size_t i, double value)
{
    if (type == ncclFloat64)
        ((double *)to)[i] = value;
    else if (type == ncclFloat32)
        ((float *)to)[i] = (float)value;
    else /* of two bytes: any bits of a number below 2 */
        ((uint16_t *)to)[i] = (uint16_t)((int64_t)(value * 4096) & 0xbfff);
}

static void fill(ncclDataType_t type, void *to, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++) put(type, to, i, input(rank, i));
}

/* One thread, one rank after the other. */
static void loop_over_ranks(ncclDataType_t type, ncclRedOp_t op, int nranks, size_t count, void *result)
{
    struct kl_redop redop;
    char *own = calloc(count, MAX_BYTES);

    ok(kl_redop_init(&redop, type, op, nranks));
    for (int r = 0; r < nranks; r++) {
        char *to = r ? own : result;
        fill(type, own, r, count);
        if (redop.first)
            redop.first(&redop, to, own, count);
        else if (!r)
            memcpy(result, own, count * redop.elem_bytes);
        if (r) redop.merge(&redop, result, result, own, count);
    }
    if (redop.last) redop.last(&redop, result, count);
    free(own);
}

/* The same without the library's arithmetic. */
static void loop_of_floats(int nranks, size_t count, float *result)
{
    for (size_t i = 0; i < count; i++) {
        result[i] = (float)input(0, i);
        for (int r = 1; r < nranks; r++) result[i] += (float)input(r, i);
    }
}

/* ---- a rank ---- */

struct buffers {
    char *send, *recv, *want;
};

static bool same(const struct buffers *b, size_t from, size_t count, size_t elem_bytes)
{
    return !memcmp(b->recv, b->want + from * elem_bytes, count * elem_bytes);
}

static bool reduce_all(ncclComm_t comm, int rank, int nranks, ncclDataType_t type, ncclRedOp_t op, struct buffers *b)
{
    const size_t bytes = kl_type_bytes(type), parts = (size_t)nranks * PARTS_COUNT;
    const int root = nranks / 2;

    fill(type, b->send, rank, COUNT > parts ? COUNT : parts);
    loop_over_ranks(type, op, nranks, COUNT > parts ? COUNT : parts, b->want);
    ok(ncclAllReduce(b->send, b->recv, COUNT, type, op, comm, NULL));
    ok(koloStreamSynchronize(NULL));
    if (!same(b, 0, COUNT, bytes)) return false;
    ok(ncclReduce(b->send, b->recv, 7, type, op, root, comm, NULL));
    ok(koloStreamSynchronize(NULL));
    if (rank == root && !same(b, 0, 7, bytes)) return false;
    ok(ncclReduce(b->send, b->recv, COUNT, type, op, root, comm, NULL));
    ok(koloStreamSynchronize(NULL));
    if (rank == root && !same(b, 0, COUNT, bytes)) return false;
    ok(ncclReduceScatter(b->send, b->recv, PARTS_COUNT, type, op, comm, NULL));
    ok(koloStreamSynchronize(NULL));
    if (!same(b, (size_t)rank * PARTS_COUNT, PARTS_COUNT, bytes)) return false;
    ok(ncclAllReduce(b->send, b->send, COUNT, type, op, comm, NULL));
    ok(koloStreamSynchronize(NULL));
    return !memcmp(b->send, b->want, COUNT * bytes);
}

static bool run_rank(const ncclUniqueId *id, int rank, int nranks)
{
    static const ncclDataType_t types[] = {ncclFloat32, ncclFloat64, ncclFloat16, ncclBfloat16};
    static const ncclRedOp_t ops[] = {ncclSum, ncclAvg, ncclProd, ncclMax};
    const size_t room = MAX_BYTES * (COUNT + (size_t)nranks * PARTS_COUNT);
    struct buffers b = {.send = malloc(room), .recv = malloc(room), .want = malloc(room)};
    ncclComm_t comm;
    bool fine = true;

    ncclResult_t rc = ncclCommInitRank(&comm, nranks, *id, rank);
    if (rc && strstr(ncclGetLastError(NULL), "KOLO_DETERMINISTIC"))
        exit(EXIT_REFUSED); /* one's own sentence, or the other's */
    ok(rc);
    FOR_EACH_CASE(type, types)
    FOR_EACH_CASE(op, ops)
    {
        bool right = reduce_all(comm, rank, nranks, *type, *op, &b);
        if (!right)
            fprintf(stderr, "rank %d of %d: other bits, %s %s\n", rank, nranks, kl_type_name(*type),
                    kl_redop_name(*op));
        fine &= right;
    }
    ok(ncclCommDestroy(comm));
    free(b.send), free(b.recv), free(b.want);
    return fine;
}

/* ---- threads ---- */

struct thread {
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

static bool run_threads(int nranks)
{
    struct thread t[MAX_RANKS];
    pthread_t thread[MAX_RANKS];
    ncclUniqueId id;
    bool fine = true;

    ok(ncclGetUniqueId(&id));
    for (int r = 0; r < nranks; r++) {
        t[r] = (struct thread){.id = &id, .rank = r, .nranks = nranks};
        assert_int_equal(pthread_create(&thread[r], NULL, run_thread, &t[r]), 0);
    }
    for (int r = 0; r < nranks; r++) {
        pthread_join(thread[r], NULL);
        fine &= t[r].fine;
    }
    return fine;
}

/* ---- processes ---- */

static pid_t start_process(const char *id, int rank, int nranks, int nhosts)
{
    char rank_text[12], size_text[12], host[12];
    char *argv[] = {(char *)"deterministic_test", (char *)(uintptr_t)id, rank_text, size_text, NULL};
    pid_t pid;

    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(size_text, sizeof size_text, "%d", nranks);
    snprintf(host, sizeof host, "h%d", rank % nhosts);
    if (nhosts > 1) setenv("NCCL_HOSTID", host, 1);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    unsetenv("NCCL_HOSTID");
    return pid;
}

static bool run_processes(int nranks, int nhosts)
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[MAX_RANKS];
    ncclUniqueId id;
    bool fine = true;

    ok(ncclGetUniqueId(&id));
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < nranks; r++) pid[r] = start_process(text, r, nranks, nhosts);
    for (int r = 0; r < nranks; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        fine &= WIFEXITED(status) && !WEXITSTATUS(status);
    }
    return fine;
}

static int process_main(char **argv)
{
    ncclUniqueId id;

    alarm(DEADLINE_S);
    if (kl_bootstrap_id_parse(argv[1], &id)) return 1;
    return !run_rank(&id, (int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
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
    assert_true(run_processes(3, 1));
}

static void hosts(void **state)
{
    (void)state;
    assert_true(run_processes(4, 2));
}

static void whatever_is_set(void **state)
{
    static const char *const ways[][3] = {
        {"NCCL_ALGO", "tree,ring", NULL},  {"NCCL_ALGO", "ring", NULL},       {"NCCL_PROTO", "LL", NULL},
        {"NCCL_MAX_NCHANNELS", "1", NULL}, {"NCCL_MIN_NCHANNELS", "8", NULL}, {"NCCL_BUFFSIZE", "16384", NULL},
        {"NCCL_SHM_DISABLE", "1", NULL},   {"NCCL_P2P_DISABLE", "1", NULL},   {"NCCL_RUNTIME_CONNECT", "0", NULL},
    };

    (void)state;
    FOR_EACH_CASE(way, ways)
    {
        setenv((*way)[0], (*way)[1], 1);
        assert_true(run_threads(3));
        unsetenv((*way)[0]);
    }
}

/* The library's arithmetic is not judge in its own cause. */
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

/* Else this shows nothing. */
static void the_order_shows_in_these_data(void **state)
{
    int differ = 0;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        float up = (float)input(0, i), down = (float)input(4, i);
        for (int r = 1; r < 5; r++) {
            up += (float)input(r, i);
            down += (float)input(4 - r, i);
        }
        differ += up != down;
    }
    assert_true(differ > 10);
}

static void all_ranks_need_the_same(void **state)
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[2];
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    kl_bootstrap_id_format(&id, text);
    pid[0] = start_process(text, 0, 2, 1);
    unsetenv("KOLO_DETERMINISTIC");
    pid[1] = start_process(text, 1, 2, 1);
    setenv("KOLO_DETERMINISTIC", "1", 1);
    for (int r = 0; r < 2; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_is_a_loop),
        cmocka_unit_test(the_order_shows_in_these_data),
        cmocka_unit_test(threads),
        cmocka_unit_test(more_ranks_than_have_edges_to_each_other),
        cmocka_unit_test(processes),
        cmocka_unit_test(hosts),
        cmocka_unit_test(whatever_is_set),
        cmocka_unit_test(all_ranks_need_the_same),
    };

    if (argc == 4) return process_main(argv);
    setenv("KOLO_DETERMINISTIC", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
