/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that has all ranks, without groups: a call for one rank waits for the calls that it makes for the next
 * ones later. Each rank has a stream of its own, or all have the stream of their device.
 */
#include "include/kolo.h"

#include "tests/kolo_test.h"

#include <stdbool.h>
#include <stdlib.h>

enum { RANKS = 3, COUNT = 700 };

struct ranks {
    ncclComm_t comm[2][RANKS];
    koloStream_t stream[RANKS]; /* NULL: the device's */
    int32_t *send[RANKS], *recv[RANKS];
};

static void make_comms(ncclComm_t *comm, bool one_device)
{
    ncclUniqueId id;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(koloSetDevice(one_device ? 0 : r), ncclSuccess);
        assert_int_equal(ncclCommInitRank(&comm[r], RANKS, id, r), ncclSuccess);
    }
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
}

static void make_ranks(struct ranks *all, bool one_device)
{
    *all = (struct ranks){.stream = {NULL}};
    for (int c = 0; c < 2; c++) make_comms(all->comm[c], one_device);
    for (int r = 0; r < RANKS; r++) {
        if (!one_device) assert_int_equal(koloStreamCreate(&all->stream[r], 0), ncclSuccess);
        all->send[r] = calloc(RANKS * COUNT, sizeof(int32_t));
        all->recv[r] = calloc(RANKS * COUNT, sizeof(int32_t));
        for (int i = 0; i < RANKS * COUNT; i++) all->send[r][i] = (r + 1) * (i + 1);
    }
    assert_int_equal(koloSetDevice(0), ncclSuccess);
}

static void free_ranks(struct ranks *all)
{
    for (int r = 0; r < RANKS; r++) {
        if (all->stream[r]) assert_int_equal(koloStreamDestroy(all->stream[r]), ncclSuccess);
        for (int c = 0; c < 2; c++) assert_int_equal(ncclCommDestroy(all->comm[c][r]), ncclSuccess);
        free(all->send[r]);
        free(all->recv[r]);
    }
}

static void wait_for_all(const struct ranks *all)
{
    for (int r = 0; r < RANKS; r++) assert_int_equal(koloStreamSynchronize(all->stream[r]), ncclSuccess);
}

/* The n-th operation: its kind follows from n; by rank `r` of communicator `c`. */
static void issue(const struct ranks *all, int c, int r, int n)
{
    ncclComm_t comm = all->comm[c][r];
    ncclResult_t rc;

    switch (n % 3) {
    case 0:
        rc = ncclAllReduce(all->send[r], all->recv[r], COUNT, ncclInt32, ncclSum, comm, all->stream[r]);
        break;
    case 1:
        rc = ncclAllGather(all->send[r], all->recv[r], COUNT, ncclInt32, comm, all->stream[r]);
        break;
    default:
        rc = ncclBroadcast(all->send[r], all->recv[r], COUNT, ncclInt32, n % RANKS, comm, all->stream[r]);
    }
    assert_int_equal(rc, ncclSuccess);
}

static int32_t wanted(int n, int i)
{
    if (n % 3 == 0) return (i + 1) * (RANKS * (RANKS + 1) / 2);
    if (n % 3 == 1) return (i / COUNT + 1) * (i % COUNT + 1);
    return (n % RANKS + 1) * (i + 1);
}

static void expect(const struct ranks *all, int n)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < (n % 3 == 1 ? RANKS * COUNT : COUNT); i++) assert_int_equal(all->recv[r][i], wanted(n, i));
}

/* `many` operations of one rank, then of the next. */
static void queue_much(bool one_device, int many)
{
    struct ranks all;

    make_ranks(&all, one_device);
    for (int last = 0; last < 3; last++) {
        for (int r = 0; r < RANKS; r++)
            for (int n = 0; n < many; n++) issue(&all, 0, r, n + last);
        wait_for_all(&all);
        expect(&all, many - 1 + last);
    }
    free_ranks(&all);
}

static void a_thousand_for_one_rank_first(void **state)
{
    (void)state;
    queue_much(false, 1000);
}

static void ranks_share_a_stream(void **state)
{
    (void)state;
    queue_much(true, 1);
    queue_much(true, 20);
}

static void ranks_share_a_stream_that_is_full(void **state)
{
    (void)state;
    queue_much(true, 80);  /* three times as many fit into the stream */
    queue_much(true, 100); /* three times as many do not */
    queue_much(true, 900);
}

/* No thread waits: the executor runs it. */
static void a_shared_stream_runs_by_itself(void **state)
{
    struct ranks all;
    koloEvent_t event;

    (void)state;
    make_ranks(&all, true);
    assert_int_equal(koloEventCreate(&event), ncclSuccess);
    for (int r = 0; r < RANKS; r++) issue(&all, 0, r, 0);
    assert_int_equal(koloEventRecord(event, NULL), ncclSuccess);
    while (koloEventQuery(event) == ncclInProgress) continue;
    expect(&all, 0);
    koloEventDestroy(event);
    free_ranks(&all);
}

/* Later operations of another communicator in the stream wait. */
static void communicators_on_a_shared_stream_take_turns(void **state)
{
    struct ranks all;

    (void)state;
    make_ranks(&all, true);
    for (int round = 0; round < 50; round++) {
        for (int c = 0; c < 2; c++)
            for (int r = 0; r < RANKS; r++) issue(&all, c, r, c ? 2 : 0);
        wait_for_all(&all);
        expect(&all, 2);
    }
    free_ranks(&all);
}

/* A communicator ends while others wait for it in the stream that they share. */
static void an_abort_ends_what_is_queued(void **state)
{
    struct ranks all;

    (void)state;
    make_ranks(&all, true);
    for (int r = 0; r < RANKS - 1; r++)
        for (int n = 0; n < 300; n++) issue(&all, 0, r, n);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ncclCommAbort(all.comm[0][r]), ncclSuccess);
        all.comm[0][r] = NULL;
    }
    koloStreamSynchronize(NULL); /* the failure of queued operations, or none: it was reported */
    make_comms(all.comm[0], true);
    for (int r = 0; r < RANKS; r++) issue(&all, 0, r, 0);
    wait_for_all(&all);
    expect(&all, 0);
    free_ranks(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_for_one_rank_first),
        cmocka_unit_test(ranks_share_a_stream),
        cmocka_unit_test(ranks_share_a_stream_that_is_full),
        cmocka_unit_test(a_shared_stream_runs_by_itself),
        cmocka_unit_test(communicators_on_a_shared_stream_take_turns),
        cmocka_unit_test(an_abort_ends_what_is_queued),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
