/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/event.h"
#include "device/host/legacy.h"
#include "device/host/user_stream.h"

#include "base/error.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Work that appends its number to a list when it runs, after having stalled some times. */
struct list {
    int n;
    uint64_t number[4 * KL_STREAM_SLOTS];
};

enum { ARG_NUMBER, ARG_STALLS };

static enum kl_progress append(struct kl_stream *stream, struct kl_work *work)
{
    struct list *l = work->owner;

    (void)stream;
    if (work->arg[ARG_STALLS]) {
        work->arg[ARG_STALLS]--;
        return KL_STALLED;
    }
    l->number[l->n++] = work->arg[ARG_NUMBER];
    return KL_DONE;
}

static uint64_t push_append(struct kl_stream *s, struct list *l, uint64_t number, uint64_t stalls)
{
    struct kl_work w = {.progress = append, .owner = l, .arg = {number, stalls}};

    return kl_stream_push(s, &w);
}

static struct kl_stream *make_stream(void)
{
    struct kl_stream *s;

    assert_int_equal(kl_stream_create(KOLO_STREAM_DEFAULT, &s), ncclSuccess);
    return s;
}

static void work_runs_in_order_also_when_the_queue_was_full(void **state)
{
    struct list *l = calloc(1, sizeof *l);
    struct kl_stream *s = make_stream();

    (void)state;
    for (unsigned i = 0; i < 3 * KL_STREAM_SLOTS; i++) push_append(s, l, i, i % 3);
    kl_stream_wait(s, kl_stream_tail(s));
    assert_int_equal(l->n, 3 * KL_STREAM_SLOTS);
    for (unsigned i = 0; i < 3 * KL_STREAM_SLOTS; i++) assert_int_equal(l->number[i], i);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    free(l);
}

/* Work that waits for a flag which work of another stream raises. */
static enum kl_progress await_flag(struct kl_stream *stream, struct kl_work *work)
{
    _Atomic uint32_t *flag = work->owner;

    (void)stream;
    return kl_load_acquire(flag) ? KL_DONE : KL_STALLED;
}

static enum kl_progress raise_flag(struct kl_stream *stream, struct kl_work *work)
{
    _Atomic uint32_t *flag = work->owner;

    (void)stream;
    kl_store_release(flag, 1);
    return KL_DONE;
}

static void a_waiter_runs_the_stream_it_depends_on(void **state)
{
    struct kl_stream *a = make_stream(), *b = make_stream();
    _Atomic uint32_t flag = 0;
    struct kl_work await = {.progress = await_flag, .owner = &flag}, raise = {.progress = raise_flag, .owner = &flag};

    (void)state;
    kl_stream_push(a, &await);
    kl_stream_push(b, &raise);
    kl_stream_wait(a, kl_stream_tail(a));
    assert_int_equal(kl_stream_destroy(a), ncclSuccess);
    assert_int_equal(kl_stream_destroy(b), ncclSuccess);
}

static struct kl_stream *make_blocking(int device)
{
    struct kl_stream *s;

    assert_int_equal(kl_stream_create_on(device, KOLO_STREAM_BLOCKING, &s), ncclSuccess);
    return s;
}

/* The default streams of two devices, with equal tickets. */
static void make_alike(struct kl_stream **a, struct kl_stream **b)
{
    static struct list l;

    assert_int_equal(kl_stream_default(6, a), ncclSuccess);
    assert_int_equal(kl_stream_default(7, b), ncclSuccess);
    while (kl_stream_tail(*a) != kl_stream_tail(*b)) {
        struct kl_stream *behind = kl_stream_tail(*a) < kl_stream_tail(*b) ? *a : *b;
        l.n = 0;
        push_append(behind, &l, 0, 0);
        kl_stream_wait(behind, kl_stream_tail(behind));
    }
}

/* The ticket up to which it waits refers to its earlier device's default stream. */
static void a_reused_stream_waits_for_the_default_one_of_its_new_device(void **state)
{
    struct kl_stream *first, *second, *s, *again;
    struct list order = {0};

    (void)state;
    make_alike(&first, &second);
    s = make_blocking(6);
    push_append(first, &order, 0, 0);
    assert_int_equal(kl_legacy_order(s), ncclSuccess);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    again = make_blocking(7);
    assert_ptr_equal(again, s);
    push_append(second, &order, 1, 100);
    assert_int_equal(kl_legacy_order(again), ncclSuccess);
    push_append(again, &order, 2, 0);
    kl_stream_wait(again, kl_stream_tail(again));
    assert_int_equal(order.n, 3);
    assert_int_equal(order.number[2], 2);
    assert_int_equal(kl_stream_destroy(again), ncclSuccess);
}

static void wait_for_flag(_Atomic uint32_t *flag)
{
    while (!kl_load_acquire(flag)) usleep(1000);
}

static void work_that_nobody_waits_for_is_done_by_the_executor(void **state)
{
    struct kl_stream *s = make_stream();

    (void)state;
    for (int i = 0; i < 3; i++) {
        _Atomic uint32_t flag = 0;
        struct kl_work raise = {.progress = raise_flag, .owner = &flag};
        kl_stream_push(s, &raise);
        wait_for_flag(&flag);      /* never touches the stream; the test's time limit is the deadline */
        if (i == 1) usleep(50000); /* let it fall asleep: the next push has to wake it */
    }
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
}

static void a_forked_child_has_an_executor_of_its_own(void **state)
{
    int status;

    (void)state;
    pid_t child = fork();
    if (!child) {
        struct kl_stream *s = NULL;
        _Atomic uint32_t flag = 0;
        struct kl_work raise = {.progress = raise_flag, .owner = &flag};
        if (kl_stream_create(0, &s)) _exit(1);
        kl_stream_push(s, &raise);
        alarm(kolo_test_hang_s());
        wait_for_flag(&flag);
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Also of a stream that another thread runs at this moment, or has half done. */
static void a_forked_child_does_not_run_the_work_of_its_parent(void **state)
{
    struct kl_stream *s = make_stream();
    struct list *l = calloc(1, sizeof *l);
    int status;

    (void)state;
    push_append(s, l, 1, 300); /* the executor has taken it before it is done */
    push_append(s, l, 2, 0);
    while (!kl_stream_reached(s, 0) || kl_stream_pending(s)) {
        pid_t child = fork();
        if (!child) {
            alarm(kolo_test_hang_s());
            kl_stream_wait(s, kl_stream_tail(s));
            int n = l->n;
            push_append(s, l, 3, 0);
            kl_stream_wait(s, kl_stream_tail(s));
            _exit(l->n == n + 1 && l->number[n] == 3 ? 0 : 1);
        }
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(l->n, 2);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    free(l);
}

/* Work that the parent has half done would never be finished in the child. */
static void a_forked_child_finds_streams_empty_and_events_done(void **state)
{
    struct list *l = calloc(1, sizeof *l);
    struct kl_stream *s, *failed = make_stream();
    struct kl_event *e, *other;
    int status;

    (void)state;
    assert_int_equal(kl_stream_create(KOLO_STREAM_INLINE, &s), ncclSuccess); /* the executor never sees it */
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &e), ncclSuccess);
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &other), ncclSuccess);
    push_append(s, l, 1, 2);
    kl_event_record(e, s);
    kl_store_relaxed(&s->running, 1); /* as if a thread ran it */
    kl_stream_fail(failed, l, ncclRemoteError, "rank 3 is gone");
    kl_event_record(other, failed); /* the work that has failed */
    pid_t child = fork();
    if (!child) {
        alarm(kolo_test_hang_s());
        if (kl_stream_pending(s) || kl_event_query(e)) _exit(1);
        if (kl_stream_synchronize(failed, kl_stream_tail(failed)) || kl_event_synchronize(e)) _exit(3);
        kl_stream_wait(s, kl_stream_tail(s));
        push_append(s, l, 2, 0);
        kl_event_record(e, s);
        _exit(kl_event_synchronize(e) || l->n != 1 || l->number[0] != 2);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    kl_store_relaxed(&s->running, 0);
    kl_stream_wait(s, kl_stream_tail(s));
    assert_int_equal(l->n, 1);
    kl_event_destroy(e);
    kl_event_destroy(other);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    assert_int_equal(kl_stream_destroy(failed), ncclRemoteError);
    free(l);
}

static void only_an_empty_stream_is_taken(void **state)
{
    _Atomic uint32_t flag = 0;
    struct kl_stream *s = make_stream();
    struct kl_work w = {.progress = await_flag, .owner = &flag};

    (void)state;
    assert_true(kl_stream_take_idle(s));
    assert_false(kl_stream_take_idle(s));
    kl_stream_push(s, &w);
    assert_int_equal(kl_stream_run(s), KL_STALLED); /* another thread runs it */
    kl_stream_give_back(s);
    assert_false(kl_stream_take_idle(s)); /* it is not empty */
    kl_store_release(&flag, 1);
    kl_stream_wait(s, kl_stream_tail(s));
    assert_true(kl_stream_take_idle(s));
    kl_stream_give_back(s);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
}

enum { PRODUCERS = 4, PUSHES = 2000 };

struct counting {
    struct kl_stream *stream;
    uint64_t sum; /* written by the stream's runners, without atomics: passed on with `running` */
};

static enum kl_progress add(struct kl_stream *stream, struct kl_work *work)
{
    struct counting *c = work->owner;

    (void)stream;
    c->sum += work->arg[0];
    return KL_DONE;
}

static void *produce(void *arg)
{
    struct counting *c = arg;
    struct kl_work w = {.progress = add, .owner = c, .arg = {1}};

    for (int i = 0; i < PUSHES; i++) {
        if (i % 3 == 0 && kl_stream_take_idle(c->stream)) {
            c->sum++;
            kl_stream_give_back(c->stream);
            continue;
        }
        uint64_t ticket = kl_stream_push(c->stream, &w);
        if (i % 7 == 0) kl_stream_wait(c->stream, ticket + 1);
    }
    return NULL;
}

static void many_threads_push_and_run_one_stream(void **state)
{
    struct counting c = {.stream = make_stream()};
    pthread_t t[PRODUCERS];

    (void)state;
    for (int i = 0; i < PRODUCERS; i++) pthread_create(&t[i], NULL, produce, &c);
    for (int i = 0; i < PRODUCERS; i++) pthread_join(t[i], NULL);
    kl_stream_wait(c.stream, kl_stream_tail(c.stream));
    assert_int_equal(c.sum, PRODUCERS * PUSHES);
    assert_int_equal(kl_stream_destroy(c.stream), ncclSuccess);
}

static enum kl_progress fail_twice(struct kl_stream *stream, struct kl_work *work)
{
    kl_stream_fail(stream, work->owner, ncclRemoteError, "rank 3 is gone");
    kl_stream_fail(stream, work->owner, ncclInternalError, "a later one");
    return KL_DONE;
}

/* It is returned by waits for the failed work, or for work behind it, as long as the work's owner lives. */
static void a_failure_is_returned_by_every_wait_behind_it(void **state)
{
    struct kl_stream *s = make_stream();
    struct list *l = calloc(1, sizeof *l);
    struct kl_event *before, *after;
    struct kl_work fail = {.progress = fail_twice, .owner = s};

    (void)state;
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &before), ncclSuccess);
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &after), ncclSuccess);
    push_append(s, l, 1, 0);
    kl_event_record(before, s);
    kl_stream_push(s, &fail);
    kl_event_record(after, s);
    push_append(s, l, 2, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kl_stream_synchronize(s, kl_stream_tail(s)), ncclRemoteError);
        assert_string_equal(kl_error_text(), "rank 3 is gone");
        assert_int_equal(kl_stream_failure(s, kl_stream_tail(s)), ncclRemoteError);
        assert_int_equal(kl_event_synchronize(before), ncclSuccess);
        assert_int_equal(kl_event_query(before), ncclSuccess);
        assert_int_equal(kl_event_synchronize(after), ncclRemoteError);
        assert_int_equal(kl_event_query(after), ncclRemoteError);
    }
    assert_int_equal(l->n, 2); /* work of other owners runs nevertheless */
    kl_streams_end_owner(s, true);
    assert_int_equal(kl_stream_synchronize(s, kl_stream_tail(s)), ncclSuccess);
    assert_int_equal(kl_event_query(after), ncclSuccess);
    kl_event_destroy(before);
    kl_event_destroy(after);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    free(l);
}

static int settled;

/* No wait has returned while the work is settled. */
static void settle(void *owner)
{
    const struct list *l = owner;

    assert_int_equal(l->n, 0);
    settled++;
}

static void withdrawn_work_does_not_run_and_holds_nothing_up(void **state)
{
    struct list *mine = calloc(1, sizeof *mine), *other = calloc(1, sizeof *other);
    struct kl_stream *a = make_stream(), *b = make_stream();

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        push_append(a, mine, i, UINT64_MAX); /* practically never */
        push_append(a, other, i, 0);
    }
    push_append(b, other, 3, 0);
    kl_streams_withdraw(mine, ncclInternalError, "no longer wanted", settle);
    assert_int_equal(settled, 1);
    kl_stream_wait(a, kl_stream_tail(a));
    kl_stream_wait(b, kl_stream_tail(b));
    assert_int_equal(mine->n, 0);
    assert_int_equal(other->n, 4);
    assert_int_equal(kl_stream_destroy(a), ncclInternalError);
    assert_string_equal(kl_error_text(), "no longer wanted");
    assert_int_equal(kl_stream_destroy(b), ncclSuccess);
    free(mine);
    free(other);
}

static void handles_are_looked_up_and_not_followed(void **state)
{
    struct kl_stream *s = make_stream(), *found = NULL, *again = NULL;
    int no_stream;

    (void)state;
    assert_int_equal(kl_user_stream_of(kl_user_stream_handle(s), 0, &found), ncclSuccess);
    assert_ptr_equal(found, s);
    assert_int_equal(kl_user_stream_of((cudaStream_t)(void *)&no_stream, 0, &found), ncclInvalidArgument);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    assert_int_equal(kl_user_stream_of(kl_user_stream_handle(s), 0, &found), ncclInvalidArgument);
    assert_int_equal(kl_user_stream_of(NULL, 5, &found), ncclSuccess);
    assert_int_equal(kl_user_stream_of(NULL, 5, &again), ncclSuccess);
    assert_ptr_equal(found, again);
    assert_int_equal(kl_user_stream_of(NULL, 6, &again), ncclSuccess);
    assert_ptr_not_equal(found, again);
    assert_int_equal(kl_user_stream_of(NULL, -1, &found), ncclInvalidArgument);
    assert_int_equal(kl_user_stream_of(koloStreamPerThread, -1, &found), ncclInvalidArgument);
    assert_int_equal(kl_stream_create(1u << 30, &found), ncclInvalidArgument);
}

static void events_mark_a_place_in_a_stream(void **state)
{
    struct kl_stream *s = make_stream();
    struct list *l = calloc(1, sizeof *l);
    struct kl_event *e, *f;

    (void)state;
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &e), ncclSuccess);
    assert_int_equal(kl_event_query(e), ncclSuccess); /* never recorded */
    push_append(s, l, 1, 5);
    kl_event_record(e, s);
    push_append(s, l, 2, 0);
    assert_int_equal(kl_event_synchronize(e), ncclSuccess);
    assert_true(l->n >= 1);
    kl_event_record(e, s);
    while (kl_event_query(e) == ncclInProgress) continue;
    assert_int_equal(l->n, 2);
    kl_event_destroy(e);
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &f), ncclSuccess);
    assert_int_equal(kl_event_query(f), ncclSuccess); /* also if it was used before */
    kl_event_destroy(f);
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    free(l);
}

struct recording {
    struct kl_event *event;
    struct kl_stream *streams[2];
    _Atomic uint32_t over;
};

static void *record_here_and_there(void *arg)
{
    struct recording *r = arg;

    for (int i = 0; i < 20000; i++) kl_event_record(r->event, r->streams[i % 100 == 0]);
    kl_store_release(&r->over, 1);
    return NULL;
}

/* The tickets of one stream mean nothing in the other, which is far behind. */
static void an_event_may_be_waited_for_while_it_moves_to_another_stream(void **state)
{
    struct recording r = {.streams = {make_stream(), make_stream()}};
    struct kl_event *old;
    pthread_t recorder;

    (void)state;
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &r.event), ncclSuccess);
    assert_int_equal(pthread_create(&recorder, NULL, record_here_and_there, &r), 0);
    while (!kl_load_acquire(&r.over)) {
        kl_event_query(r.event);
        kl_event_synchronize(r.event);
    }
    pthread_join(recorder, NULL);
    assert_int_equal(kl_event_synchronize(r.event), ncclSuccess);
    kl_event_destroy(r.event);
    assert_int_equal(kl_event_create(KOLO_EVENT_DEFAULT, &old), ncclSuccess);
    assert_null(old->stream); /* the new owner is independent of the old stream */
    kl_event_destroy(old);
    for (int i = 0; i < 2; i++) assert_int_equal(kl_stream_destroy(r.streams[i]), ncclSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_finds_streams_empty_and_events_done), /* before there is an executor */
        cmocka_unit_test(a_forked_child_has_an_executor_of_its_own),
        cmocka_unit_test(work_runs_in_order_also_when_the_queue_was_full),
        cmocka_unit_test(a_waiter_runs_the_stream_it_depends_on),
        cmocka_unit_test(a_reused_stream_waits_for_the_default_one_of_its_new_device),
        cmocka_unit_test(work_that_nobody_waits_for_is_done_by_the_executor),
        cmocka_unit_test(a_forked_child_has_an_executor_of_its_own), /* and after */
        cmocka_unit_test(a_forked_child_does_not_run_the_work_of_its_parent),
        cmocka_unit_test(only_an_empty_stream_is_taken),
        cmocka_unit_test(many_threads_push_and_run_one_stream),
        cmocka_unit_test(a_failure_is_returned_by_every_wait_behind_it),
        cmocka_unit_test(withdrawn_work_does_not_run_and_holds_nothing_up),
        cmocka_unit_test(handles_are_looked_up_and_not_followed),
        cmocka_unit_test(events_mark_a_place_in_a_stream),
        cmocka_unit_test(an_event_may_be_waited_for_while_it_moves_to_another_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
