/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel, which copied between processes so far, ceases to in the middle of a job: it refuses reads or writes of
 * one rank or of all (a seccomp filter), or makes one's memory unreachable (PR_SET_DUMPABLE). Every element is right,
 * in that operation and all later ones.
 *
 * The test runs its own program again as ranks: refused_copies_test FAULT RANK ID.
 */
#include "include/kolo.h"

#include "bootstrap/bootstrap.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, PART = 30000, ROUNDS = 6, REFUSED_IN = 2 };

/* ---- faults ---- */

/* In this process, from now on. */
static int refuse(long call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static int refuse_writes(int rank)
{
    return rank == 1 ? refuse(SYS_process_vm_writev) : 0;
}

static int refuse_reads(int rank)
{
    return rank == 1 ? refuse(SYS_process_vm_readv) : 0;
}

static int refuse_all(int rank)
{
    (void)rank;
    return refuse(SYS_process_vm_writev) || refuse(SYS_process_vm_readv);
}

static int close_memory(int rank)
{
    return rank == 1 ? prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) : 0;
}

static const struct fault {
    const char *name;
    int (*happen)(int rank);
} faults[] = {{"writes", refuse_writes}, {"reads", refuse_reads}, {"all", refuse_all}, {"dumpable", close_memory}};

/* ---- a rank ---- */

static int32_t send[RANKS * PART], recv[RANKS * PART];
static ncclComm_t comm;
static int rank;

static int32_t value(int of, size_t i, int round)
{
    return (int32_t)((size_t)of * 1000003 + i * 7 + (size_t)round);
}

static int32_t sum(size_t i, int round)
{
    int32_t all = 0;

    for (int r = 0; r < RANKS; r++) all += value(r, i, round);
    return all;
}

static void fill(int32_t *to, size_t count, int round)
{
    for (size_t i = 0; i < count; i++) to[i] = value(rank, i, round);
}

static bool done(ncclResult_t rc, const char *what)
{
    if (!rc) rc = koloStreamSynchronize(NULL);
    if (rc) fprintf(stderr, "rank %d: %s: %d %s\n", rank, what, rc, ncclGetLastError(comm));
    return !rc;
}

static bool is(bool right, const char *what, int round)
{
    if (!right) fprintf(stderr, "rank %d: wrong result of %s in round %d\n", rank, what, round);
    return right;
}

static bool all_reduce(int round, bool in_place)
{
    const size_t n = RANKS * PART;
    bool right = true;

    fill(in_place ? recv : send, n, round);
    if (!done(ncclAllReduce(in_place ? recv : send, recv, n, ncclInt32, ncclSum, comm, NULL), "all_reduce"))
        return false;
    for (size_t i = 0; i < n; i++) right &= recv[i] == sum(i, round);
    return is(right, in_place ? "all_reduce in place" : "all_reduce", round);
}

static bool all_gather(int round)
{
    bool right = true;

    fill(recv + (size_t)rank * PART, PART, round);
    if (!done(ncclAllGather(recv + (size_t)rank * PART, recv, PART, ncclInt32, comm, NULL), "all_gather")) return false;
    for (size_t i = 0; i < RANKS * PART; i++) right &= recv[i] == value((int)(i / PART), i % PART, round);
    return is(right, "all_gather in place", round);
}

static bool reduce_scatter(int round)
{
    int32_t *own = send + (size_t)rank * PART;
    bool right = true;

    fill(send, RANKS * PART, round);
    if (!done(ncclReduceScatter(send, own, PART, ncclInt32, ncclSum, comm, NULL), "reduce_scatter")) return false;
    for (size_t i = 0; i < PART; i++) right &= own[i] == sum((size_t)rank * PART + i, round);
    return is(right, "reduce_scatter in place", round);
}

static bool broadcast(int round)
{
    const int root = round % RANKS;
    bool right = true;

    if (rank == root) fill(recv, RANKS * PART, round);
    if (!done(ncclBcast(recv, RANKS * PART, ncclInt32, root, comm, NULL), "broadcast")) return false;
    for (size_t i = 0; i < RANKS * PART; i++) right &= recv[i] == value(root, i, round);
    return is(right, "broadcast", round);
}

static bool reduce(int round)
{
    const int root = round % RANKS;
    bool right = true;

    fill(recv, RANKS * PART, round);
    if (!done(ncclReduce(recv, recv, RANKS * PART, ncclInt32, ncclSum, root, comm, NULL), "reduce")) return false;
    for (size_t i = 0; i < RANKS * PART && rank == root; i++) right &= recv[i] == sum(i, round);
    return is(right, "reduce in place", round);
}

static bool all_to_all(int round)
{
    bool right = true;

    fill(send, RANKS * PART, round);
    if (!done(ncclAlltoAll(send, recv, PART, ncclInt32, comm, NULL), "alltoall")) return false;
    for (size_t i = 0; i < RANKS * PART; i++)
        right &= recv[i] == value((int)(i / PART), (size_t)rank * PART + i % PART, round);
    return is(right, "alltoall", round);
}

static bool pass_on(int round)
{
    const int from = (rank + RANKS - 1) % RANKS;
    bool right = true;

    fill(send, RANKS * PART, round);
    ncclGroupStart();
    ncclSend(send, RANKS * PART, ncclInt32, (rank + 1) % RANKS, comm, NULL);
    ncclRecv(recv, RANKS * PART, ncclInt32, from, comm, NULL);
    if (!done(ncclGroupEnd(), "sendrecv")) return false;
    for (size_t i = 0; i < RANKS * PART; i++) right &= recv[i] == value(from, i, round);
    return is(right, "sendrecv", round);
}

/* The rank with the fault differs from round to round. */
static bool run_round(int round, const struct fault *fault, int when)
{
    for (int i = 0; i < 8; i++) {
        if (i == when && fault->happen(rank)) return is(false, fault->name, round);
        const bool good = i == 0   ? all_reduce(round, true)
                          : i == 1 ? all_gather(round)
                          : i == 2 ? reduce_scatter(round)
                          : i == 3 ? broadcast(round)
                          : i == 4 ? reduce(round)
                          : i == 5 ? all_to_all(round)
                          : i == 6 ? pass_on(round)
                                   : all_reduce(round, false);
        if (!good) return false;
    }
    return true;
}

static int run_rank(char **argv)
{
    const struct fault *fault = faults;
    ncclUniqueId id;
    int when = (int)strtol(argv[4], NULL, 10);

    alarm(kolo_test_hang_s());
    while (strcmp(fault->name, argv[1]) != 0) fault++;
    rank = (int)strtol(argv[2], NULL, 10);
    if (kl_bootstrap_id_parse(argv[3], &id) || !done(ncclCommInitRank(&comm, RANKS, id, rank), "init")) return 1;
    for (int round = 0; round < ROUNDS; round++)
        if (!run_round(round, fault, round == REFUSED_IN ? when : -1)) return 1;
    return done(ncclCommDestroy(comm), "destroy") ? 0 : 1;
}

/* ---- the parent ---- */

static pid_t start_rank(const struct fault *fault, int number, const char *id, int when)
{
    char rank_text[12], when_text[12];
    char *argv[] = {(char *)"refused_copies_test",
                    (char *)(uintptr_t)fault->name,
                    rank_text,
                    (char *)(uintptr_t)id,
                    when_text,
                    NULL};
    pid_t pid;

    snprintf(rank_text, sizeof rank_text, "%d", number);
    snprintf(when_text, sizeof when_text, "%d", when);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    return pid;
}

static void run_job(const struct fault *fault, int when)
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    ncclUniqueId id;
    pid_t pid[RANKS];
    int bad = 0;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < RANKS; r++) pid[r] = start_rank(fault, r, text, when);
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        assert_int_equal(waitpid(pid[r], &status, 0), pid[r]);
        bad += status != 0;
    }
    if (bad) fail_msg("%s, before operation %d: %d ranks failed", fault->name, when, bad);
}

static void all_goes_on_without_the_kernel(void **state)
{
    (void)state;
    setenv("KOLO_KERNEL_COPIES", "ALWAYS", 1);
    FOR_EACH_CASE(f, faults)
    {
        for (int when = 0; when < 8; when++) run_job(f, when);
    }
    unsetenv("KOLO_KERNEL_COPIES");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_goes_on_without_the_kernel)};

    if (argc > 1) return run_rank(argv);
    return cmocka_run_group_tests_name("kernel copies that are refused", tests, NULL, NULL);
}
