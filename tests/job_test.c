/* SPDX-License-Identifier: Apache-2.0 */
/* koloInitFromEnv with ranks that are processes of one host: however a program calls it, the others find rank 0's
 * id. */
#include "include/kolo.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };

static bool is_ready(ncclComm_t comm)
{
    ncclResult_t state;

    do
        if (ncclCommGetAsyncError(comm, &state)) return false;
    while (state == ncclInProgress && !sched_yield());
    return !state;
}

static bool ends(ncclComm_t comm)
{
    int size = 0;

    if (!is_ready(comm) || ncclCommCount(comm, &size) || size != RANKS) return false;
    ncclResult_t rc = ncclCommFinalize(comm);
    return (!rc || rc == ncclInProgress) && is_ready(comm) && !ncclCommDestroy(comm);
}

static bool joins(void)
{
    ncclComm_t comm;
    ncclResult_t rc = koloInitFromEnv(&comm);

    return (!rc || rc == ncclInProgress) && ends(comm);
}

/* Twice, as one program may do, without anything between. */
static bool joins_twice(void)
{
    ncclComm_t first, second;

    return !koloInitFromEnv(&first) && !koloInitFromEnv(&second) && ends(first) && ends(second);
}

static bool joins_in_a_group(void)
{
    ncclComm_t comm;

    return !ncclGroupStart() && !koloInitFromEnv(&comm) && !ncclGroupEnd() && ends(comm);
}

/* Rank 0 first: it returns from the call before others have begun theirs. */
static bool joins_late(void)
{
    ncclComm_t comm;
    char token = 0;
    const char *rank = getenv("SLURM_PROCID");
    int from = atoi(getenv("FROM")), to = atoi(getenv("TO"));

    setenv("NCCL_COMM_BLOCKING", "0", 1);
    if (*rank != '0' && read(from, &token, 1) != 1) return false;
    if (koloInitFromEnv(&comm) != ncclInProgress) return false;
    if (*rank == '0' && write(to, "12", RANKS - 1) != RANKS - 1) return false;
    return ends(comm);
}

static void in_processes(bool (*call)(void))
{
    pid_t child[RANKS];
    char text[16];
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    snprintf(text, sizeof text, "%d", fds[0]);
    setenv("FROM", text, 1);
    snprintf(text, sizeof text, "%d", fds[1]);
    setenv("TO", text, 1);
    for (int r = 0; r < RANKS; r++) {
        snprintf(text, sizeof text, "%d", r);
        setenv("SLURM_PROCID", text, 1);
        child[r] = fork();
        if (!child[r]) _exit(!call());
    }
    for (int r = 0; r < RANKS; r++) {
        int status;
        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        assert_int_equal(status, 0);
    }
    close(fds[0]);
    close(fds[1]);
}

static void a_call_joins(void **state)
{
    (void)state;
    in_processes(joins);
    in_processes(joins_twice);
}

static void a_group_joins(void **state)
{
    (void)state;
    in_processes(joins_in_a_group);
}

static void a_call_that_does_not_block_joins(void **state)
{
    (void)state;
    in_processes(joins_late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_joins),
        cmocka_unit_test(a_group_joins),
        cmocka_unit_test(a_call_that_does_not_block_joins),
    };
    static const char *const others[] = {
        "KOLO_RANK",  "KOLO_SIZE",   "KOLO_COMM_ID",         "NCCL_COMM_ID",         "RANK",
        "WORLD_SIZE", "MASTER_ADDR", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
        "PMI_SIZE"};
    char job[32];

    FOR_EACH_CASE(name, others) unsetenv(*name);
    snprintf(job, sizeof job, "%d-job-test", (int)getpid());
    setenv("SLURM_JOB_ID", job, 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NUM_NODES", "1", 1);
    setenv("SLURM_NTASKS", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
