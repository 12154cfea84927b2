/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/world.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 6 }; /* of three processes: this one has ranks 1, 2 and 4 */

/* One rank of this process, with the fields that worlds use. */
struct member {
    struct ncclComm comm;
    pthread_t thread;
    void (*run)(struct member *me);
    ncclResult_t rc;
    char text[KL_ERROR_TEXT];
};

static uint64_t job;

static ncclResult_t join_world(struct ncclComm *comm)
{
    static const uint64_t process[RANKS] = {10, 20, 20, 30, 20, 10};
    struct kl_peer peer[RANKS];

    for (int r = 0; r < RANKS; r++)
        peer[r] = (struct kl_peer){.rank = r, .device = -1, .host = 5, .process = process[r], .job = job + (uint64_t)r};
    return kl_world_join(peer, RANKS, comm->rank, &comm->world);
}

static void *member_main(void *arg)
{
    struct member *me = arg;

    kl_error_quiet(1);
    me->rc = join_world(&me->comm);
    if (!me->rc) me->run(me);
    if (me->rc) snprintf(me->text, sizeof me->text, "%s", kl_error_text());
    return NULL;
}

static struct member *members_of(void (*run)(struct member *me))
{
    static const int ranks[] = {1, 2, 4};
    struct member *m = aligned_alloc(KL_LINE, 3 * sizeof *m);

    memset(m, 0, 3 * sizeof *m);
    job += 100;
    for (int i = 0; i < 3; i++) {
        m[i].run = run;
        m[i].comm.rank = ranks[i];
        m[i].comm.nranks = RANKS;
        m[i].comm.config.bootstrap_timeout_s = 60;
        pthread_mutex_init(&m[i].comm.failure.lock, NULL);
    }
    return m;
}

static void leave(struct member *m)
{
    for (int i = 0; i < 3; i++) kl_world_leave(m[i].comm.world);
    free(m);
}

static struct member *run_members(void (*run)(struct member *me))
{
    struct member *m = members_of(run);

    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&m[i].thread, NULL, member_main, &m[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(m[i].thread, NULL);
    return m;
}

/* ---- shared data ---- */

static _Atomic int runs;

static ncclResult_t count_run(ncclComm_t comm)
{
    kl_fetch_add_relaxed(&runs, 1);
    assert_int_equal(comm->rank, 1);
    return ncclSuccess;
}

static void go_through_stages(struct member *me)
{
    me->rc = kl_world_stage(&me->comm, KL_WORLD_MACHINE, count_run);
    if (!me->rc) me->rc = kl_world_stage(&me->comm, KL_WORLD_GRAPHS, count_run);
}

static void ranks_of_a_process_share_a_world_and_one_works(void **state)
{
    (void)state;
    kl_store_relaxed(&runs, 0);
    struct member *m = run_members(go_through_stages);
    for (int i = 0; i < 3; i++) assert_int_equal(m[i].rc, ncclSuccess);
    assert_int_equal(kl_load_relaxed(&runs), 2);
    assert_ptr_equal(m[0].comm.world, m[1].comm.world);
    assert_ptr_equal(m[0].comm.world, m[2].comm.world);
    assert_int_equal(m[0].comm.world->members, 3);
    assert_true(kl_world_has(m[0].comm.world, 4));
    assert_false(kl_world_has(m[0].comm.world, 3) || kl_world_has(m[0].comm.world, -1) ||
                 kl_world_has(m[0].comm.world, RANKS));
    leave(m);
}

static void only_join(struct member *me)
{
    (void)me;
}

static void communicators_do_not_share(void **state)
{
    (void)state;
    struct member *a = run_members(only_join), *b = run_members(only_join);
    assert_ptr_not_equal(a[0].comm.world, b[0].comm.world);
    leave(a);
    leave(b);
}

static void speakers_are_listed(void **state)
{
    struct member *m = run_members(only_join);
    bool with[] = {false, true, true};
    int32_t list[3];

    (void)state;
    struct kl_among all = kl_world_speakers(&m[2].comm, NULL, list);
    assert_int_equal(all.n, 3);
    assert_int_equal(all.own, 1);
    assert_true(list[0] == 0 && list[1] == 1 && list[2] == 3);
    struct kl_among two = kl_world_speakers(&m[2].comm, with, list);
    assert_int_equal(two.n, 2);
    assert_int_equal(two.own, 0);
    assert_true(list[0] == 1 && list[1] == 3);
    leave(m);
}

/* ---- failures ---- */

static ncclResult_t fail_stage(ncclComm_t comm)
{
    return KL_FAIL(ncclInvalidUsage, "rank %d found nothing", comm->rank);
}

static void meet_failure(struct member *me)
{
    me->rc = kl_world_stage(&me->comm, KL_WORLD_MACHINE, fail_stage);
}

static void all_fail_as_the_speaker_fails(void **state)
{
    (void)state;
    struct member *m = run_members(meet_failure);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(m[i].rc, ncclInvalidUsage);
        assert_string_equal(m[i].text, "rank 1 found nothing");
    }
    assert_string_equal(m[1].comm.failure.text, m[1].text); /* known, so that it is not sent again */
    leave(m);
}

/* The leader never comes: a failure from elsewhere ends the wait. */
static void wait_in_vain(struct member *me)
{
    if (me->comm.rank == 1)
        me->rc = KL_FAIL(ncclSystemError, "rank 1 died");
    else
        me->rc = kl_world_stage(&me->comm, KL_WORLD_MACHINE, count_run);
}

static void *hear_of_failure(void *arg)
{
    struct member *m = arg;

    for (int i = 1; i < 3; i++) kl_comm_fail(&m[i].comm, 1, ncclRemoteError, "rank 1 is gone", false);
    return NULL;
}

static void waiting_ends_with_the_communicator(void **state)
{
    struct member *m = members_of(wait_in_vain);
    pthread_t other;

    (void)state;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&m[i].thread, NULL, member_main, &m[i]), 0);
    assert_int_equal(pthread_create(&other, NULL, hear_of_failure, m), 0);
    for (int i = 0; i < 3; i++) pthread_join(m[i].thread, NULL);
    pthread_join(other, NULL);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(m[i].rc, ncclRemoteError);
        assert_string_equal(m[i].text, "rank 1 is gone");
    }
    leave(m);
}

/* No rank sends anything: the wait is bounded. */
static void waiting_is_bounded(void **state)
{
    struct member *m = members_of(wait_in_vain);

    (void)state;
    for (int i = 0; i < 3; i++) {
        m[i].comm.config.bootstrap_timeout_s = 0;
        assert_int_equal(pthread_create(&m[i].thread, NULL, member_main, &m[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(m[i].thread, NULL);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(m[i].rc, ncclRemoteError);
        assert_non_null(strstr(m[i].text, "KOLO_BOOTSTRAP_TIMEOUT"));
    }
    leave(m);
}

/* The leader waits for all records; a rank that fails before never arrives. */
static ncclResult_t await_all(ncclComm_t comm)
{
    return kl_world_await_members(comm);
}

static void arrive(struct member *me)
{
    kl_world_arrive(me->comm.world);
    me->rc = kl_world_stage(&me->comm, KL_WORLD_MACHINE, await_all);
}

static void arrive_but_one(struct member *me)
{
    if (me->comm.rank == 1) kl_comm_fail(&me->comm, 2, ncclRemoteError, "rank 2 failed", false);
    if (me->comm.rank == 2)
        me->rc = KL_FAIL(ncclSystemError, "no memory");
    else
        arrive(me);
}

static ncclResult_t fail_if_called(ncclComm_t comm)
{
    fail_msg("rank %d works in a world that has failed", comm->rank);
    return ncclSuccess;
}

static void records_are_awaited(void **state)
{
    (void)state;
    struct member *m = run_members(arrive);
    for (int i = 0; i < 3; i++) assert_int_equal(m[i].rc, ncclSuccess);
    leave(m);
    m = run_members(arrive_but_one);
    assert_int_equal(m[0].rc, ncclRemoteError);
    assert_int_equal(m[2].rc, ncclRemoteError);
    assert_string_equal(m[2].text, "rank 2 failed");
    leave(m);
}

/* Else they would wait in a world of their own for a leader that has gone. */
static void who_comes_when_the_others_have_failed_and_left_fails_at_once(void **state)
{
    struct member *m = members_of(only_join);

    (void)state;
    kl_error_quiet(1);
    for (int i = 0; i < 3; i++) {
        struct ncclComm *comm = &m[i].comm;
        assert_int_equal(join_world(comm), ncclSuccess);
        if (i) {
            assert_int_equal(kl_world_stage(comm, KL_WORLD_MACHINE, fail_if_called), ncclRemoteError);
            assert_non_null(strstr(kl_error_text(), "another rank of this process has failed"));
        }
        kl_world_leave(comm->world);
        comm->world = NULL;
    }
    kl_error_quiet(0);
    leave(m);
}

static void leaving_early_is_allowed(void **state)
{
    struct member *m = members_of(only_join);

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(join_world(&m[i].comm), ncclSuccess);
        kl_world_leave(m[i].comm.world);
        m[i].comm.world = NULL;
    }
    leave(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_a_process_share_a_world_and_one_works),
        cmocka_unit_test(communicators_do_not_share),
        cmocka_unit_test(speakers_are_listed),
        cmocka_unit_test(all_fail_as_the_speaker_fails),
        cmocka_unit_test(waiting_ends_with_the_communicator),
        cmocka_unit_test(waiting_is_bounded),
        cmocka_unit_test(records_are_awaited),
        cmocka_unit_test(leaving_early_is_allowed),
        cmocka_unit_test(who_comes_when_the_others_have_failed_and_left_fails_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
