/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that a process keeps open when its communicators over two hosts have ended: those that its threads sleep
 * on (device/host/idle.h), however many communicators there were.
 */
#include "include/kolo.h"

#include "bootstrap/bootstrap.h"
#include "tests/free_port.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2, ROUNDS = 32, COUNT = 1 << 16, KEPT = 8 };

#define must(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, ncclGetLastError(NULL));                             \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* The other rank comes so late that this one sleeps meanwhile. */
static void reduce(ncclComm_t comm, int rank)
{
    static float data[COUNT];

    if (rank) nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    must(!ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, NULL));
    must(!koloStreamSynchronize(NULL));
}

static void use_child(ncclComm_t comm, int rank)
{
    ncclComm_t child;

    must(!ncclCommSplit(comm, 0, rank, &child, NULL));
    reduce(child, rank);
    must(!ncclCommDestroy(child));
}

static void live(const ncclUniqueId *id, int rank)
{
    int before = count_fds(), half_way = 0;
    ncclComm_t comm;
    char host[8];

    snprintf(host, sizeof host, "h%d", rank);
    setenv("NCCL_HOSTID", host, 1);
    alarm(kolo_test_hang_s());
    must(!ncclCommInitRank(&comm, RANKS, *id, rank));
    for (int i = 0; i < ROUNDS; i++) {
        use_child(comm, rank);
        reduce(comm, rank);
        if (i <= ROUNDS / 2 && count_fds() > half_way) half_way = count_fds(); /* the most so far */
    }
    while (count_fds() >
           half_way + KEPT) /* some come once, when a thread first sleeps; a child would leave many more */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* until closing in the background ends */
    must(!ncclCommDestroy(comm));
    while (count_fds() > before + KEPT)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* until the event loop ends */
    _exit(0);
}

static void nothing_is_kept_but_what_sleepers_share(void **state)
{
    ncclUniqueId id;
    char address[32];
    int status;

    (void)state;
    snprintf(address, sizeof address, "127.0.0.1:%d", kolo_test_free_port());
    assert_int_equal(kl_bootstrap_id_parse(address, &id), ncclSuccess);
    for (int r = 0; r < RANKS; r++)
        if (!fork()) live(&id, r);
    for (int r = 0; r < RANKS; r++) {
        wait(&status);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_kept_but_what_sleepers_share)};

    setenv("KOLO_SECRET", "descriptors", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
