/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that are pinned to two CPUs in turn: reduces with every root go through a chain in which ranks of one CPU follow each other, beside rings in which
 * they do not, over the same connections or others; and reductions through shared memory are hierarchical, or not, now and then.
 */
#include "base/cpuset.h"
#include "include/kolo.h"
#include "os/affinity.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 20000 };

static struct shared {
    ncclUniqueId id;
    _Atomic int has_id;
} * shared;

static struct {
    int number, n;
    ncclComm_t comm;
    koloStream_t stream;
    uint32_t send[MOST], recv[MOST];
} rank;

static void must(ncclResult_t rc)
{
    if (!rc) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank.number, ncclGetErrorString(rc), ncclGetLastError(rank.comm));
    _exit(1);
}

/* The CPU of that number, among the CPUs that this process may use. */
static int nth_cpu(const struct kl_cpuset *all, int n)
{
    int cpu = kl_cpuset_next(all, 0);

    while (n--) cpu = kl_cpuset_next(all, cpu + 1);
    return cpu;
}

static void pin(int cpu)
{
    struct kl_cpuset all, one = {{0}};

    must(kl_affinity_get(&all));
    kl_cpuset_add(&one, nth_cpu(&all, cpu));
    must(kl_affinity_pin(&one, NULL));
}

/* Rank r's contribution to element i. */
static uint32_t brings(int r, int i)
{
    return (uint32_t)(r + 1) * 1000003u + (uint32_t)i;
}

static void expect_sums(int count, const char *what)
{
    must(koloStreamSynchronize(rank.stream));
    for (int i = 0; i < count; i++) {
        uint32_t want = 0;

        for (int r = 0; r < rank.n; r++) want += brings(r, i);
        if (rank.recv[i] == want) continue;
        fprintf(stderr, "rank %d: %s, element %d: %u instead of %u\n", rank.number, what, i, rank.recv[i], want);
        _exit(1);
    }
}

static void reduce(int root, int count)
{
    memset(rank.recv, 0, sizeof rank.recv);
    must(ncclReduce(rank.send, rank.recv, (size_t)count, ncclUint32, ncclSum, root, rank.comm, rank.stream));
    if (rank.number == root) expect_sums(count, "reduce");
}

static void all_reduce(int count)
{
    must(ncclAllReduce(rank.send, rank.recv, (size_t)count, ncclUint32, ncclSum, rank.comm, rank.stream));
    expect_sums(count, "all-reduce");
}

static void reduce_with_every_root(void)
{
    static const int counts[] = {1, 700, 8192, MOST};

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (int root = 0; root < rank.n; root++) {
            reduce(root, counts[c]);
            all_reduce(counts[c]);
        }
}

/* So often that both ways are used, and compared. */
static void reduce_often(void)
{
    enum { TIMES = 600 };

    for (int i = 0; i < TIMES; i++) all_reduce(8192 + i % 2 * 4096);
}

static int be_rank(int number, int n, void (*run)(void))
{
    alarm(kolo_test_hang_s());
    rank.number = number;
    rank.n = n;
    pin(number % 2);
    for (int i = 0; i < MOST; i++) rank.send[i] = brings(number, i);
    if (!number) must(ncclGetUniqueId(&shared->id));
    if (!number) atomic_store(&shared->has_id, 1);
    while (!atomic_load(&shared->has_id)) sched_yield();
    must(ncclCommInitRank(&rank.comm, n, shared->id, number));
    must(koloStreamCreate(&rank.stream, KOLO_STREAM_DEFAULT));
    run();
    must(ncclCommDestroy(rank.comm));
    must(koloStreamDestroy(rank.stream));
    return 0;
}

static void run_ranks(int n, void (*run)(void))
{
    int failed = 0, status;

    if (kl_affinity_count() < 2) {
        puts("one CPU: no ranks share one of two");
        exit(KOLO_TEST_SKIP);
    }
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    for (int r = 0; r < n; r++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) _exit(be_rank(r, n, run));
    }
    while (wait(&status) > 0) failed += !WIFEXITED(status) || WEXITSTATUS(status);
    assert_int_equal(failed, 0);
}

static void reduces_of_every_root_are_right(void **state)
{
    (void)state;
    setenv("NCCL_ALGO", "Ring", 1);
    run_ranks(5, reduce_with_every_root);
    unsetenv("NCCL_ALGO");
}

static void either_way_is_right(void **state)
{
    (void)state;
    run_ranks(4, reduce_often);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reduces_of_every_root_are_right),
                                       cmocka_unit_test(either_way_is_right)};

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
