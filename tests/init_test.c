/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators made and destroyed side by side: some processes, each with some threads; the thread of one number in all
 * processes makes one communicator after the other with its like.
 */
#include "include/kolo.h"

#include "base/atomic.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 5, LANES = 3, ROUNDS = 150 };

/* What the processes share. */
static struct {
    _Atomic int ready[LANES]; /* ids that have been made */
    ncclUniqueId id[LANES][ROUNDS];
    _Atomic int failures;
} * shared;

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
    if (!rc) rc = ncclCommInitRank(&comm, PROCESSES, shared->id[lane][round], me);
    return rc ? rc : ncclCommDestroy(comm);
}

static void *run_lane(void *arg)
{
    int lane = (int)(intptr_t)arg;

    koloSetDevice(me);
    for (int round = 0; round < ROUNDS && !kl_load_acquire(&shared->failures); round++) {
        if (!make_and_destroy(lane, round)) continue;
        fprintf(stderr, "rank %d, lane %d, round %d: %s\n", me, lane, round, ncclGetLastError(NULL));
        kl_fetch_add_acq_rel(&shared->failures, 1);
    }
    return NULL;
}

static void run_process(void)
{
    pthread_t threads[LANES];

    alarm(100);
    for (int i = 0; i < LANES; i++)
        if (pthread_create(&threads[i], NULL, run_lane, (void *)(intptr_t)i)) _exit(1);
    for (int i = 0; i < LANES; i++) pthread_join(threads[i], NULL);
    _exit(0);
}

static void communicators_are_made_side_by_side(void **state)
{
    pid_t pids[PROCESSES];

    (void)state;
    setenv("KOLO_HOST_DEVICES", "16", 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    for (me = 0; me < PROCESSES; me++) {
        pids[me] = fork();
        if (!pids[me]) run_process();
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(kl_load_acquire(&shared->failures), 0);
    munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(communicators_are_made_side_by_side)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
