/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators made from others: split by colours and keys, shrunk, also without dead ranks, and aborted on the way.
 */
#include "base/atomic.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 3000 };

#include "tests/api_comms.h"

static void synchronize(ncclComm_t comm)
{
    int device;

    ok(ncclCommCuDevice(comm, &device));
    ok(synchronize_device(device));
}

/* The sum over the ranks, with `value` from each, of one of several communicators that one thread drives. */
static void sum_over(ncclComm_t *children, const int *value, const int *want, int n)
{
    static int in[RANKS][COUNT], out[RANKS][COUNT];

    for (int r = 0; r < n; r++)
        for (int i = 0; i < COUNT; i++) in[r][i] = value[r] * (i + 1);
    ok(ncclGroupStart());
    for (int r = 0; r < n; r++)
        if (children[r]) ok(ncclAllReduce(in[r], out[r], COUNT, ncclInt, ncclSum, children[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < n; r++) {
        if (!children[r]) continue;
        synchronize(children[r]);
        for (int i = 0; i < COUNT; i++) assert_int_equal(out[r][i], want[r] * (i + 1));
    }
}

static void split_all(ncclComm_t *parents, int n, const int *color, const int *key, ncclComm_t *children)
{
    ok(ncclGroupStart());
    for (int r = 0; r < n; r++) ok(ncclCommSplit(parents[r], color[r], key[r], &children[r], NULL));
    ok(ncclGroupEnd());
}

static void destroy_all(ncclComm_t *children, int n)
{
    for (int r = 0; r < n; r++) ok(ncclCommDestroy(children[r]));
}

static const struct split_case {
    const char *label;
    int color[RANKS], key[RANKS], size[RANKS], rank[RANKS]; /* size 0: no communicator */
} split_cases[] = {
    {"one colour", {0, 0, 0, 0}, {0, 0, 0, 0}, {4, 4, 4, 4}, {0, 1, 2, 3}},
    {"two colours", {0, 7, 0, 7}, {0, 0, 0, 0}, {2, 2, 2, 2}, {0, 0, 1, 1}},
    {"backwards", {5, 5, 5, 5}, {4, 3, 2, 1}, {4, 4, 4, 4}, {3, 2, 1, 0}},
    {"negative keys and ties", {1, 1, 1, 1}, {0, -1, 0, -1}, {4, 4, 4, 4}, {2, 0, 3, 1}},
    {"one without", {2, NCCL_SPLIT_NOCOLOR, 2, 2}, {0, 0, 0, 0}, {3, 0, 3, 3}, {0, 0, 1, 2}},
    {"each its own", {0, 1, 2, 3}, {9, 9, 9, 9}, {1, 1, 1, 1}, {0, 0, 0, 0}},
    {"none", {-1, -1, -1, -1}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
    {"the largest numbers", {INT_MAX, INT_MAX, 0, 0}, {INT_MAX, INT_MIN, INT_MIN, INT_MAX}, {2, 2, 2, 2}, {1, 0, 0, 1}},
};

static void colours_and_keys_say_who_is_where(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, split_cases)
    {
        ncclComm_t children[RANKS];
        int want[RANKS] = {0}, n, rank;

        split_all(comms, RANKS, c->color, c->key, children);
        for (int r = 0; r < RANKS; r++) {
            expect_case(c->label, !children[r] == !c->size[r]);
            if (!children[r]) continue;
            ok(ncclCommCount(children[r], &n));
            ok(ncclCommUserRank(children[r], &rank));
            expect_case(c->label, n == c->size[r] && rank == c->rank[r]);
            for (int k = 0; k < RANKS; k++) want[r] += c->color[k] == c->color[r] ? k + 1 : 0;
        }
        sum_over(children, (int[]){1, 2, 3, 4}, want, RANKS);
        destroy_all(children, RANKS);
    }
}

/* Children of children live on when their parents have gone. */
static void children_outlive_their_parents(void **state)
{
    ncclComm_t all[RANKS], halves[RANKS];

    (void)state;
    split_all(comms, RANKS, (int[]){0, 0, 0, 0}, (int[]){3, 2, 1, 0}, all);
    split_all(all, RANKS, (int[]){1, 1, 2, 2}, (int[]){0, 0, 0, 0}, halves);
    destroy_all(all, RANKS);
    sum_over(halves, (int[]){1, 2, 3, 4}, (int[]){3, 3, 7, 7}, RANKS);
    destroy_all(halves, RANKS);
    sum_over(comms, (int[]){1, 2, 3, 4}, (int[]){10, 10, 10, 10}, RANKS);
}

static void wrong_arguments_are_refused(void **state)
{
    int one = 1, self = 0, far = RANKS;
    ncclComm_t child = comms[0];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    (void)state;
    expect_refused(ncclCommSplit(comms[0], 0, 0, NULL, NULL), ncclInvalidArgument, "result pointer is NULL");
    expect_refused(ncclCommSplit(comms[0], -2, 0, &child, NULL), ncclInvalidArgument, "colour -2");
    assert_null(child);
    expect_refused(ncclCommSplit(NULL, 0, 0, &child, NULL), ncclInvalidArgument, "communicator is NULL");
    config.splitShare = 3;
    expect_refused(ncclCommSplit(comms[0], 0, 0, &child, &config), ncclInvalidArgument, "splitShare is 3");
    expect_refused(ncclCommShrink(comms[0], NULL, 1, &child, NULL, 0), ncclInvalidArgument, "is empty");
    expect_refused(ncclCommShrink(comms[0], &one, 0, &child, NULL, 0), ncclInvalidArgument, "is empty");
    expect_refused(ncclCommShrink(comms[0], &self, 1, &child, NULL, 0), ncclInvalidArgument, "is to go itself");
    expect_refused(ncclCommShrink(comms[0], &far, 1, &child, NULL, 0), ncclInvalidArgument, "rank 4 is to go");
    expect_refused(ncclCommShrink(comms[0], &one, 1, &child, NULL, 2), ncclInvalidArgument, "flags 2");
    expect_refused(ncclCommShrink(comms[0], &one, 1, NULL, NULL, 0), ncclInvalidArgument, "result pointer is NULL");
}

/* ---- shrinking ---- */

static void shrink_without(ncclComm_t *parents, int gone, int flags, ncclComm_t *children)
{
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        children[r] = NULL;
        if (r != gone) ok(ncclCommShrink(parents[r], &gone, 1, &children[r], NULL, flags));
    }
    ok(ncclGroupEnd());
}

static void a_shrunk_one_keeps_the_order(void **state)
{
    ncclComm_t first[RANKS], second[RANKS];
    int n, rank;

    (void)state;
    shrink_without(comms, 1, NCCL_SHRINK_DEFAULT, first);
    shrink_without(comms, 1, NCCL_SHRINK_DEFAULT, second); /* the same again, while the first lives */
    ok(ncclCommCount(first[3], &n));
    ok(ncclCommUserRank(first[3], &rank));
    assert_int_equal(n, 3);
    assert_int_equal(rank, 2);
    sum_over(second, (int[]){1, 2, 3, 4}, (int[]){8, 0, 8, 8}, RANKS);
    sum_over(first, (int[]){1, 2, 3, 4}, (int[]){8, 0, 8, 8}, RANKS);
    sum_over(comms, (int[]){1, 2, 3, 4}, (int[]){10, 10, 10, 10}, RANKS);
    destroy_all(first, RANKS);
    destroy_all(second, RANKS);
}

/* A rank that takes no part delays the others, until they go on without it. */
static void shrinking_may_give_up_what_is_under_way(void **state)
{
    ncclComm_t parents[RANKS], children[RANKS];
    static float in[RANKS][COUNT], out[RANKS][COUNT];

    (void)state;
    ok(ncclCommInitAll(parents, RANKS, NULL));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS - 1; r++) ok(ncclAllReduce(in[r], out[r], COUNT, ncclFloat, ncclSum, parents[r], NULL));
    ok(ncclGroupEnd());
    shrink_without(parents, RANKS - 1, NCCL_SHRINK_ABORT, children);
    for (int r = 0; r < RANKS - 1; r++) {
        ok(koloSetDevice(r));
        assert_int_not_equal(koloStreamSynchronize(NULL), ncclSuccess);
        ncclCommDestroy(parents[r]); /* fails with its reason, and does not wait */
    }
    ncclCommAbort(parents[RANKS - 1]);
    sum_over(children, (int[]){1, 2, 3, 4}, (int[]){6, 6, 6, 0}, RANKS);
    destroy_all(children, RANKS);
}

/* ---- a rank dies: processes ---- */

/* The first one makes the id: this process must have no threads when it forks. */
static void die_or_shrink(const int pipe[2], int rank)
{
    ncclUniqueId id;
    static int in[COUNT], out[COUNT];
    int dead = 1, sum = 0;
    ncclComm_t comm, child;
    ncclResult_t rc;

    setenv("KOLO_BOOTSTRAP_TIMEOUT", "20", 1);
    if (!rank && ncclGetUniqueId(&id)) _exit(9);
    for (int i = 0; !rank && i < 2; i++)
        if (write(pipe[1], &id, sizeof id) != sizeof id) _exit(9);
    if (rank && read(pipe[0], &id, sizeof id) != sizeof id) _exit(9);
    if (ncclCommInitRank(&comm, 3, id, rank)) _exit(10);
    for (int i = 0; i < COUNT; i++) in[i] = rank + i;
    rc = ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, comm, NULL);
    if (!rc) rc = koloStreamSynchronize(NULL);
    if (rank == dead) _exit(0); /* silently; all ranks have joined */
    if (!rc) rc = ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, comm, NULL);
    if (!rc) rc = koloStreamSynchronize(NULL);
    if (rc != ncclRemoteError) _exit(11);
    if (ncclCommShrink(comm, &dead, 1, &child, NULL, NCCL_SHRINK_ABORT)) _exit(12);
    ncclCommDestroy(comm);
    if (ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, child, NULL) || koloStreamSynchronize(NULL)) _exit(13);
    for (int i = 0; i < COUNT; i++) sum += out[i] != 2 + 2 * i;
    if (sum || ncclCommDestroy(child)) _exit(14);
    _exit(0);
}

static void survivors_of_a_death_go_on_together(void **state)
{
    int status, ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (int r = 0; r < 3; r++)
        if (!fork()) die_or_shrink(ends, r);
    for (int r = 0; r < 3; r++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    close(ends[0]);
    close(ends[1]);
}

/* ---- in the background, and aborted ---- */

static void create_unblocking(ncclComm_t *parents, int n)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = 0;
    ok(ncclGetUniqueId(&id));
    for (int r = 0; r < n; r++) {
        ok(koloSetDevice(r));
        assert_int_equal(ncclCommInitRankConfig(&parents[r], n, id, r, &config), ncclInProgress);
    }
    for (int r = 0; r < n; r++) assert_int_equal(await(parents[r]), ncclSuccess);
}

static void a_split_goes_on_in_the_background(void **state)
{
    ncclComm_t parents[RANKS], children[RANKS];
    int n;

    (void)state;
    create_unblocking(parents, RANKS);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ncclCommSplit(parents[r], r / 2, r, &children[r], NULL), ncclInProgress);
        if (!r) expect_refused(ncclCommCount(parents[0], &n), ncclInvalidArgument, "creation of another one");
    }
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(await(parents[r]), ncclSuccess);
        assert_int_equal(await(children[r]), ncclSuccess);
    }
    sum_over(children, (int[]){1, 2, 3, 4}, (int[]){3, 3, 7, 7}, RANKS);
    destroy_all(children, RANKS);
    destroy_all(parents, RANKS);
}

static void an_abort_of_the_parent_ends_a_split(void **state)
{
    ncclComm_t parents[2], child;

    (void)state;
    create_unblocking(parents, 2);
    assert_int_equal(ncclCommSplit(parents[0], 0, 0, &child, NULL), ncclInProgress); /* the other rank does not join */
    ok(ncclCommAbort(parents[0]));
    assert_null(child);
    ok(ncclCommAbort(parents[1]));
}

static void a_shrink_for_which_others_do_not_come_is_aborted(void **state)
{
    ncclComm_t parents[3], child;
    int gone = 2;

    (void)state;
    create_unblocking(parents, 3);
    assert_int_equal(ncclCommShrink(parents[0], &gone, 1, &child, NULL, 0), ncclInProgress);
    ok(ncclCommAbort(parents[0]));
    assert_null(child);
    ok(ncclCommAbort(parents[1]));
    ok(ncclCommAbort(parents[2]));
}

/* ---- groups of several ---- */

struct twice {
    ncclComm_t first, second;
    int sum[2];
};

/* On one stream, so that one waits for the other. */
static void *reduce_in_one_group(void *arg)
{
    struct twice *t = arg;
    static const int one = 1;
    koloStream_t stream;
    int device;

    ok(ncclCommCuDevice(t->first, &device));
    ok(koloSetDevice(device));
    ok(koloStreamCreate(&stream, KOLO_STREAM_DEFAULT));
    ok(ncclGroupStart());
    ok(ncclAllReduce(&one, &t->sum[0], 1, ncclInt, ncclSum, t->first, stream));
    ok(ncclAllReduce(&one, &t->sum[1], 1, ncclInt, ncclSum, t->second, stream));
    ok(ncclGroupEnd());
    ok(koloStreamSynchronize(stream));
    ok(koloStreamDestroy(stream));
    return NULL;
}

static void a_group_of_several_has_no_order(void **state)
{
    static const int color[RANKS], key[RANKS];
    ncclComm_t copies[RANKS];
    struct twice twice[RANKS];
    pthread_t thread[RANKS];

    (void)state;
    split_all(comms, RANKS, color, key, copies);
    for (int r = 0; r < RANKS; r++) {
        twice[r] = (struct twice){r % 2 ? comms[r] : copies[r], r % 2 ? copies[r] : comms[r], {0, 0}};
        assert_int_equal(pthread_create(&thread[r], NULL, reduce_in_one_group, &twice[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(thread[r], NULL);
        assert_int_equal(twice[r].sum[0], RANKS);
        assert_int_equal(twice[r].sum[1], RANKS);
    }
    destroy_all(copies, RANKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_of_a_death_go_on_together), /* before this process has threads */
        cmocka_unit_test_setup_teardown(colours_and_keys_say_who_is_where, create_comms, destroy_comms),
        cmocka_unit_test_setup_teardown(children_outlive_their_parents, create_comms, destroy_comms),
        cmocka_unit_test_setup_teardown(wrong_arguments_are_refused, create_comms, destroy_comms),
        cmocka_unit_test_setup_teardown(a_shrunk_one_keeps_the_order, create_comms, destroy_comms),
        cmocka_unit_test(shrinking_may_give_up_what_is_under_way),
        cmocka_unit_test(a_split_goes_on_in_the_background),
        cmocka_unit_test(an_abort_of_the_parent_ends_a_split),
        cmocka_unit_test(a_shrink_for_which_others_do_not_come_is_aborted),
        cmocka_unit_test_setup_teardown(a_group_of_several_has_no_order, create_comms, destroy_comms),
    };

    setenv("NCCL_DEBUG", "NONE", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
