/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose ranks are threads of this process: failures and their notices, aborts, and leaving at any moment. */
#include "bootstrap/bootstrap.h"

#include "base/atomic.h"
#include "base/error.h"
#include "bootstrap/jobs.h"
#include "bootstrap/state.h"
#include "tests/kolo_test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- failures, aborts, goodbyes ---- */

static void report_one(struct rank *me, struct kl_bootstrap *b)
{
    int got;

    kl_error_quiet(1);
    ncclResult_t rc = kl_bootstrap_barrier(b); /* all have joined; the report may overtake the last step */
    if (me->config.rank == 1) {
        must(!rc);
        kl_bootstrap_report(b, 2, ncclSystemError, "rank 2 has no memory left");
        kl_bootstrap_report(b, 0, ncclRemoteError, "a later one");
        must(kl_load_acquire(&me->failures) == 0); /* it has been told */
    } else {
        await_failure(me);
        must(me->culprit == 2);
        must(me->code == ncclSystemError);
        must(!strcmp(me->failure, "rank 2 has no memory left"));
    }
    kl_error_adopt("");
    must(kl_bootstrap_recv(b, 0, 1, &got, sizeof got) == ncclSystemError);
    must(!strcmp(kl_error_text(), "rank 2 has no memory left"));
    must(kl_bootstrap_send(b, 0, 1, &got, sizeof got) == ncclSystemError);
    must(kl_bootstrap_barrier(b) == ncclSystemError);
}

static void a_report_reaches_everybody_once(void **state)
{
    struct rank ranks[MAX_RANKS];

    (void)state;
    setup_job(ranks, MAX_RANKS, report_one);
    run_ranks(ranks, MAX_RANKS);
    expect_joined(ranks, MAX_RANKS);
    for (int r = 0; r < MAX_RANKS; r++) assert_int_equal(kl_load_acquire(&ranks[r].failures), r != 1);
}

static void wait_in_vain(struct rank *me, struct kl_bootstrap *b)
{
    int got;

    kl_error_quiet(1);
    ncclResult_t rc = kl_bootstrap_barrier(b); /* all have joined; the failure may overtake the last step */
    kl_bootstrap_phase(b, "plan");
    if (me->config.rank == 0) {
        must(!rc);
        b->timeout_ms = 100;
        must(kl_bootstrap_recv(b, 2, 5, &got, sizeof got) == ncclRemoteError);
        must(strstr(kl_error_text(), "rank 0: no message from rank 2 (host "));
        must(strstr(kl_error_text(), "within 0.1 s in phase plan"));
    } else {
        await_failure(me);
        must(me->culprit == 2);
        must(strstr(me->failure, "rank 0: no message from rank 2"));
    }
}

static void a_silent_rank_is_named_to_everybody(void **state)
{
    (void)state;
    run_job(3, wait_in_vain);
}

/* An error of write(2) is reported at once: the end of the connection may never be seen. */
static void write_in_vain(struct rank *me, struct kl_bootstrap *b)
{
    int word = 1;

    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 0) {
        struct kl_contact *peer = kl_contact_find(b, 1);
        int kept = dup(peer->fd), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        must(kept >= 0 && nothing >= 0 && dup2(nothing, peer->fd) == peer->fd);
        close(nothing);
        (void)kl_bootstrap_post(b, 1, 5, &word, sizeof word);
        await_failure(me);
        must(me->culprit == 1);
        must(strstr(me->failure, "rank 1 (host ") && strstr(me->failure, "is gone: writing to it failed: "));
        close(kept); /* the other rank notices */
    } else {
        await_failure(me);
    }
}

static void a_write_that_fails_is_told(void **state)
{
    struct rank ranks[2];

    (void)state;
    setup_job(ranks, 2, write_in_vain);
    run_ranks(ranks, 2);
    expect_joined(ranks, 2);
}

static sem_t stumbled;

/* Rank 0 runs into an offer that the failed rank 1 has withdrawn, and gets the failure notice only later. */
static void stumble(struct rank *me, struct kl_bootstrap *b)
{
    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 0) {
        ncclResult_t rc = KL_FAIL(ncclRemoteError, "a descriptor is no longer offered");
        sem_post(&stumbled);
        must(kl_bootstrap_cause(b, rc) == ncclSystemError);
        must(!strcmp(kl_error_text(), "rank 1 has no memory left"));
    } else {
        while (sem_wait(&stumbled)) continue;
        kl_bootstrap_report(b, 1, ncclSystemError, "rank 1 has no memory left");
    }
}

static void suspect_in_passing(struct rank *me, struct kl_bootstrap *b)
{
    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 0) {
        kl_bootstrap_suspect(b, 1, ncclRemoteError, "a descriptor is no longer offered");
        sem_post(&stumbled);
        await_failure(me);
        must(me->code == ncclSystemError);
        must(!strcmp(me->failure, "rank 1 has no memory left"));
    } else {
        while (sem_wait(&stumbled)) continue;
        kl_bootstrap_report(b, 1, ncclSystemError, "rank 1 has no memory left");
    }
}

static void the_wake_of_a_failure_does_not_hide_it(void **state)
{
    (void)state;
    sem_init(&stumbled, 0, 0);
    run_job(2, stumble);
    run_job(2, suspect_in_passing);
    sem_destroy(&stumbled);
}

/* Without another failure the suspicion is the failure: all ranks are told, the suspecting one, too. */
static void suspect_rightly(struct rank *me, struct kl_bootstrap *b)
{
    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 0) {
        must(kl_bootstrap_cause(b, KL_FAIL(ncclInvalidUsage, "my own")) == ncclInvalidUsage);
        must(!strcmp(kl_error_text(), "my own"));
        kl_bootstrap_suspect(b, 1, ncclRemoteError, "rank 1 makes no sense");
        kl_bootstrap_suspect(b, 2, ncclRemoteError, "a later one");
    }
    await_failure(me);
    must(me->culprit == 1);
    must(!strcmp(me->failure, "rank 1 makes no sense"));
}

static void a_suspicion_becomes_a_failure(void **state)
{
    (void)state;
    run_job(3, suspect_rightly);
}

static void *abort_soon(void *arg)
{
    kl_bootstrap_abort(arg);
    return NULL;
}

static void be_aborted(struct rank *me, struct kl_bootstrap *b)
{
    pthread_t thread;
    int got;

    kl_error_quiet(1);
    if (me->config.rank == 0) {
        must(pthread_create(&thread, NULL, abort_soon, b) == 0);
        must(kl_bootstrap_recv(b, 1, 1, &got, sizeof got) == ncclInternalError);
        must(strstr(kl_error_text(), "aborted"));
        pthread_join(thread, NULL);
        must(kl_bootstrap_send(b, 1, 1, &got, sizeof got) == ncclInternalError);
        must(kl_bootstrap_barrier(b) == ncclInternalError);
    } else {
        must(kl_bootstrap_recv(b, 0, 1, &got, sizeof got) == ncclRemoteError); /* it has left */
    }
}

static void an_abort_ends_a_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) run_job(2, be_aborted);
}

static void *raise_soon(void *arg)
{
    kl_stop_raise(arg);
    return NULL;
}

static void a_raised_stop_ends_joining(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct rank ranks[3];
        struct kl_stop stop;
        pthread_t thread;

        assert_int_equal(kl_stop_init(&stop), ncclSuccess);
        setup_job(ranks, 3, NULL);
        for (int r = 0; r < 2; r++) {
            ranks[r].config.stop = &stop;
            ranks[r].config.timeout_ms = 2000; /* how long the rendezvous waits for one that was stopped early */
        }
        assert_int_equal(pthread_create(&thread, NULL, raise_soon, &stop), 0);
        run_ranks(ranks, 2);
        pthread_join(thread, NULL);
        kl_stop_fini(&stop);
        for (int r = 0; r < 2; r++) /* the second may be told that the first has gone */
            assert_true(ranks[r].joined == ncclInternalError || ranks[r].joined == ncclRemoteError);
        ranks[2].config.timeout_ms = 100;
        run_ranks(ranks + 2, 1); /* late, and told the reason */
        assert_int_equal(ranks[2].joined, ncclRemoteError);
    }
}

/* ---- leaving during a call ---- */

/* Of six ranks, 0 and 3 are no partners. Rank 0 aborts and leaves while it calls rank 3, which has its proof and
 * must not take it for dead. */
static void leave_in_a_call(struct rank *me, struct kl_bootstrap *b)
{
    int value = 7;

    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 0) {
        must(!kl_bootstrap_post(b, 3, 1, &value, sizeof value));
        kl_bootstrap_abort(b);
    }
    for (bool left = false; me->config.rank == 3 && !left; sched_yield()) {
        pthread_mutex_lock(&b->lock);
        struct kl_contact *caller = kl_contact_find(b, 0);
        left = caller && caller->state == KL_LINK_LEFT;
        pthread_mutex_unlock(&b->lock);
        must(!kl_load_acquire(&me->failures));
    }
}

static void a_call_that_has_begun_is_ended_in_good_order(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) run_job(6, leave_in_a_call);
}

static sem_t leaving;
static _Atomic bool in_time; /* rank 3 waits a second */

/* Of six ranks, 0 and 3 are no partners. Rank 3 has told rank 0 to call it, and leaves. */
static void leave_while_called(struct rank *me, struct kl_bootstrap *b)
{
    int value = 7;

    kl_error_quiet(1);
    must(!kl_bootstrap_barrier(b));
    if (me->config.rank == 3) {
        struct kl_contact *caller;
        pthread_mutex_lock(&b->lock);
        must(!kl_contact_make(b, 0, &caller));
        caller->state = KL_LINK_EXPECTED;
        pthread_mutex_unlock(&b->lock);
        sem_post(&leaving);
    }
    if (me->config.rank != 0) return;
    while (sem_wait(&leaving)) continue;
    for (int i = 0; i < 1000; i++) sched_yield(); /* time for rank 3 to end, if it does not wait */
    bool sent = !kl_bootstrap_send(b, 3, 1, &value, sizeof value);
    bool late = !sent && strstr(kl_error_text(), "has no rank of this job any more");
    must(sent || late || strstr(kl_error_text(), "has left"));
    must(late || !kl_load_acquire(&me->failures));
    kl_store_release(&in_time, !late);
}

static void who_was_told_to_call_finds_somebody(void **state)
{
    (void)state;
    sem_init(&leaving, 0, 0);
    for (int i = 0; i < 20 && !kl_load_acquire(&in_time); i++) run_job(6, leave_while_called);
    assert_true(kl_load_acquire(&in_time));
    sem_destroy(&leaving);
}

/* Failures of some arrive while others are leaving. */
static void fail_and_leave(struct rank *me, struct kl_bootstrap *b)
{
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank % 4 == 2) kl_bootstrap_report(b, me->config.rank, ncclRemoteError, "leaving in anger");
    if (me->config.rank % 4 == 3) shutdown(kl_contact_find(b, (me->config.rank + 1) % 8)->fd, SHUT_RDWR);
}

static void failing_and_leaving_go_together(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct rank ranks[8];

        setup_job(ranks, 8, fail_and_leave);
        run_ranks(ranks, 8); /* a quick rank may fail before a slow one has joined */
        for (int r = 0; r < 8; r++) assert_true(kl_load_acquire(&ranks[r].failures) <= 1);
    }
}

static void leave_early(struct rank *me, struct kl_bootstrap *b)
{
    int value = 7, got = 0;

    kl_error_quiet(1);
    if (me->config.rank == 0) {
        must(kl_bootstrap_send(b, 1, 1, &value, sizeof value) == ncclSuccess);
        return;
    }
    must(kl_bootstrap_recv(b, 0, 1, &got, sizeof got) == ncclSuccess); /* sent before it left */
    must(got == 7);
    must(kl_load_acquire(&me->failures) == 0); /* leaving is not a failure */
    must(kl_bootstrap_recv(b, 0, 1, &got, sizeof got) == ncclRemoteError);
    must(strstr(kl_error_text(), "has left"));
}

static void who_leaves_is_not_a_failure(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) run_job(2, leave_early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(a_report_reaches_everybody_once),     leak_test(a_silent_rank_is_named_to_everybody),
        leak_test(a_write_that_fails_is_told),          leak_test(the_wake_of_a_failure_does_not_hide_it),
        leak_test(a_suspicion_becomes_a_failure),       leak_test(an_abort_ends_a_wait),
        leak_test(a_raised_stop_ends_joining),          leak_test(a_call_that_has_begun_is_ended_in_good_order),
        leak_test(who_was_told_to_call_finds_somebody), leak_test(failing_and_leaving_go_together),
        leak_test(who_leaves_is_not_a_failure),
    };

    return cmocka_run_group_tests_name("bootstrap, failing and leaving", tests, NULL, NULL);
}
