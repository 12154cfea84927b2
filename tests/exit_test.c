/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that ends without having destroyed its communicator: the others go on if it has done its part of
 * everything, even ranks that are still in the last operation; but if an operation was in progress, it counts as lost.
 *
 * The test runs its own program again as ranks: exit_test ROLE RANK ID.
 */
#include "include/kolo.h"

#include "bootstrap/bootstrap.h"
#include "comm/handle.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"
#include "tests/leftovers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, LEAVES = 2, COUNT = 256 };

/* ---- a rank ---- */

struct rank {
    int rank;
    ncclComm_t comm;
    int32_t pid[RANKS]; /* of all */
    int32_t data[COUNT];
};

static bool fine(struct rank *r, ncclResult_t rc, const char *what)
{
    if (rc) fprintf(stderr, "rank %d: %s: %d %s\n", r->rank, what, rc, ncclGetLastError(r->comm));
    return !rc;
}

static ncclResult_t finish(ncclResult_t rc)
{
    return rc ? rc : koloStreamSynchronize(NULL);
}

/* From the rank that leaves, which can be done with it before the others begin. */
static bool broadcast(struct rank *r, int32_t value)
{
    bool right = true;

    for (int i = 0; i < COUNT; i++) r->data[i] = r->rank == LEAVES ? value : -1;
    if (!fine(r, finish(ncclBcast(r->data, COUNT, ncclInt32, LEAVES, r->comm, NULL)), "broadcast")) return false;
    for (int i = 0; i < COUNT; i++) right = right && r->data[i] == value;
    return right;
}

static bool pass_round(struct rank *r)
{
    int32_t in = -1;

    if (r->rank < LEAVES) {
        ncclGroupStart();
        ncclSend(&r->rank, 1, ncclInt32, 1 - r->rank, r->comm, NULL);
        ncclRecv(&in, 1, ncclInt32, 1 - r->rank, r->comm, NULL);
        if (!fine(r, finish(ncclGroupEnd()), "messages") || in != 1 - r->rank) return false;
    }
    return true;
}

/* Once the parent has reaped it. */
static void wait_until_gone(pid_t pid)
{
    while (!kill(pid, 0) || errno != ESRCH) sched_yield();
}

static int outlive(struct rank *r)
{
    ncclResult_t async = ncclSuccess;

    wait_until_gone(r->pid[LEAVES]);
    bool good = broadcast(r, 7) && pass_round(r);
    good = fine(r, ncclCommGetAsyncError(r->comm, &async), "asking") && fine(r, async, "asynchronously") && good;
    return fine(r, ncclCommDestroy(r->comm), "destroy") && good ? 0 : 1;
}

/* It leaves by returning from main, when all that was asked of it is done. */
static int leave(struct rank *r)
{
    return broadcast(r, 7) ? 0 : 1;
}

static int leave_or_outlive(struct rank *r)
{
    return r->rank == LEAVES ? leave(r) : outlive(r);
}

/* A child of it ends as every program does; that does not affect its parent. */
static int have_a_child(struct rank *r)
{
    if (r->rank == LEAVES) {
        pid_t child = fork();
        if (!child) exit(0);
        waitpid(child, NULL, 0);
    }
    return broadcast(r, 3) ? leave_or_outlive(r) : 1;
}

static bool hears_of_loss(struct rank *r)
{
    int32_t sum;
    ncclResult_t rc = finish(ncclAllReduce(&r->rank, &sum, 1, ncclInt32, ncclSum, r->comm, NULL));
    const char *text = ncclGetLastError(r->comm);
    bool named = rc == ncclRemoteError && strstr(text, "rank 2 (") && strstr(text, "is gone");

    if (!named) fprintf(stderr, "rank %d: %d %s\n", r->rank, rc, text);
    ncclCommDestroy(r->comm);
    return named;
}

/* The remaining ranks have finished all earlier work: its loss does not meet them there. */
static bool wait_for_others(struct rank *r)
{
    int32_t token[RANKS] = {0};

    ncclGroupStart();
    if (r->rank != LEAVES) ncclSend(token, 1, ncclInt32, LEAVES, r->comm, NULL);
    for (int from = 0; from < RANKS && r->rank == LEAVES; from++)
        if (from != LEAVES) ncclRecv(&token[from], 1, ncclInt32, from, r->comm, NULL);
    return fine(r, finish(ncclGroupEnd()), "tokens");
}

/* An operation is queued that needs other ranks, and does not end. */
static int leave_in_the_midst(struct rank *r)
{
    if (!wait_for_others(r)) return 1;
    if (r->rank != LEAVES) return hears_of_loss(r) ? 0 : 1;
    return fine(r, ncclRecv(r->data, 1, ncclInt32, 0, r->comm, NULL), "receive") ? 0 : 1;
}

static sem_t inside;

static void *stay_inside(void *comm)
{
    if (!kl_handle_try(comm)) return NULL;
    sem_post(&inside);
    for (;;) pause();
}

/* Nothing is queued, but another thread is in the middle of a call. */
static int leave_another_thread(struct rank *r)
{
    pthread_t thread;

    if (!wait_for_others(r)) return 1;
    if (r->rank != LEAVES) return hears_of_loss(r) ? 0 : 1;
    sem_init(&inside, 0, 0);
    if (pthread_create(&thread, NULL, stay_inside, r->comm)) return 1;
    while (sem_wait(&inside)) continue;
    return 0;
}

static const struct role {
    const char *name;
    int (*run)(struct rank *r);
} roles[] = {
    {"leave", leave_or_outlive},
    {"child", have_a_child},
    {"midst", leave_in_the_midst},
    {"thread", leave_another_thread},
};

static bool join(struct rank *r, const char *text)
{
    ncclUniqueId id;

    return fine(r, kl_bootstrap_id_parse(text, &id), "id") &&
           fine(r, ncclCommInitRank(&r->comm, RANKS, id, r->rank), "init");
}

static bool tell_pids(struct rank *r)
{
    r->pid[r->rank] = (int32_t)getpid();
    return fine(r, finish(ncclAllGather(&r->pid[r->rank], r->pid, 1, ncclInt32, r->comm, NULL)), "pids");
}

static int run_rank(char **argv)
{
    static struct rank r;

    alarm(kolo_test_hang_s());
    r.rank = (int)strtol(argv[2], NULL, 10);
    if (!join(&r, argv[3]) || !broadcast(&r, 1) || !pass_round(&r) || !tell_pids(&r)) return 1;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (!strcmp(argv[1], roles[i].name)) return roles[i].run(&r);
    return 1;
}

/* ---- the parent ---- */

static pid_t start_rank(const char *role, int rank, const char *id, bool hosts)
{
    char number[12];
    char *argv[] = {(char *)"exit_test", (char *)(uintptr_t)role, number, (char *)(uintptr_t)id, NULL};
    pid_t pid;

    snprintf(number, sizeof number, "%d", rank);
    if (hosts) setenv("NCCL_HOSTID", number, 1);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    unsetenv("NCCL_HOSTID");
    return pid;
}

static int status_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* The leaving rank is reaped first: the others wait for that. */
static void run_job(const char *role, bool hosts)
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    ncclUniqueId id;
    pid_t pid[RANKS];

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < RANKS; r++) pid[r] = start_rank(role, r, text, hosts);
    assert_int_equal(status_of(pid[LEAVES]), 0);
    for (int r = 0; r < RANKS; r++)
        if (r != LEAVES) assert_int_equal(status_of(pid[r]), 0);
}

static void who_is_done_may_end(void **state)
{
    (void)state;
    run_job("leave", false);
    run_job("leave", true);
}

static void a_forked_child_leaves_nothing(void **state)
{
    (void)state;
    run_job("child", false);
}

static void who_ends_in_the_midst_is_lost(void **state)
{
    (void)state;
    run_job("midst", false);
    run_job("midst", true);
    run_job("thread", false);
}

/* A rank's, inspected before the library leaves; "exe" is its own thread. */
struct kolo_test_keep kolo_test_keeps[] = {{"kolo-", 3, 0},    {"/memfd:kolo", 50, 0}, {"anon_inode:", 10, 0},
                                           {"socket:", 20, 0}, {"exe", 1, 0},          {NULL, 0, 0}};

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_done_may_end),
        cmocka_unit_test(a_forked_child_leaves_nothing),
        cmocka_unit_test(who_ends_in_the_midst_is_lost),
    };

    if (argc == 1) kolo_test_keeps[0].name = NULL;
    return argc > 1 ? run_rank(argv) : cmocka_run_group_tests(tests, NULL, NULL);
}
