/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators made and destroyed side by side, and by the thousand: some processes, each with some threads, called
 * lanes; the lanes of one number in all processes make one communicator after the other together.
 */
#include "include/kolo.h"

#include "base/atomic.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST_PROCESSES = 5,
    MOST_LANES = 3,
    MOST_ROUNDS = KOLO_TEST_THREADS_ONLY ? 300 : 1500,
    SIDE_BY_SIDE = MOST_ROUNDS / 10
};

static const struct shape {
    const char *label;
    int processes, lanes, rounds;
} shapes[] = {
    {"side by side", 5, 3, SIDE_BY_SIDE},
    {"one after the other", 2, 1, MOST_ROUNDS},
};

/* Shared by the processes. */
struct shared {
    _Atomic int ready[MOST_LANES]; /* ids that have been made */
    ncclUniqueId id[MOST_LANES][MOST_ROUNDS];
    _Atomic int failures;
};

static struct shared *shared;
static const struct shape *shape;
static int me; /* this process's rank in all communicators */

static ncclResult_t make_and_destroy(int lane, int round)
{
    ncclComm_t comm;
    ncclResult_t rc = ncclSuccess;

    if (me == 0) {
        rc = ncclGetUniqueId(&shared->id[lane][round]);
        kl_store_release(&shared->ready[lane], round + 1);
    }
    while (kl_load_acquire(&shared->ready[lane]) <= round) sched_yield();
    if (!rc) rc = ncclCommInitRank(&comm, shape->processes, shared->id[lane][round], me);
    return rc ? rc : ncclCommDestroy(comm);
}

static void *run_lane(void *arg)
{
    int lane = (int)(intptr_t)arg;

    koloSetDevice(me);
    for (int round = 0; round < shape->rounds && !kl_load_acquire(&shared->failures); round++) {
        if (!make_and_destroy(lane, round)) continue;
        fprintf(stderr, "rank %d, lane %d, round %d: %s\n", me, lane, round, ncclGetLastError(NULL));
        kl_fetch_add_acq_rel(&shared->failures, 1);
    }
    return NULL;
}

static void run_process(void)
{
    pthread_t threads[MOST_LANES];

    alarm(kolo_test_hang_s());
    for (int i = 0; i < shape->lanes; i++)
        if (pthread_create(&threads[i], NULL, run_lane, (void *)(intptr_t)i)) _exit(1);
    for (int i = 0; i < shape->lanes; i++) pthread_join(threads[i], NULL);
    _exit(0);
}

static void run_processes(void)
{
    pid_t pids[MOST_PROCESSES];

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    for (me = 0; me < shape->processes; me++) {
        pids[me] = fork();
        if (!pids[me]) run_process();
    }
    for (int i = 0; i < shape->processes; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        expect_case(shape->label, status == 0);
    }
    expect_case(shape->label, kl_load_acquire(&shared->failures) == 0);
    munmap(shared, sizeof *shared);
}

static void many_communicators_come_and_go(void **state)
{
    (void)state;
    setenv("KOLO_HOST_DEVICES", "16", 1);
    FOR_EACH_CASE(s, shapes)
    {
        shape = s;
        run_processes();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_communicators_come_and_go)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
