/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own work on streams: functions, copies, marks of events, and order between streams. None of the calls
 * waits; functions may take long, block, and wait for each other.
 */
#include "base/clock.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/stream_check.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, STREAMS = 24, MANY = 700 };

/* ---- order ---- */

struct log {
    int n, number[3 * MANY];
};

struct entry {
    struct log *log;
    int number;
};

static void append(void *entry)
{
    const struct entry *e = entry;

    e->log->number[e->log->n++] = e->number;
}

static void functions_run_in_the_order_of_the_stream(void **state)
{
    static struct entry entries[MANY];
    static struct log log;
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);

    (void)state;
    for (int i = 0; i < MANY; i++) {
        entries[i] = (struct entry){.log = &log, .number = i};
        ok(koloStreamLaunch(s, append, &entries[i]));
    }
    ok(koloStreamSynchronize(s));
    assert_int_equal(log.n, MANY);
    for (int i = 0; i < MANY; i++) assert_int_equal(log.number[i], i);
    ok(koloStreamDestroy(s));
}

static void copies_and_functions_see_each_other(void **state)
{
    enum { BYTES = 3 << 20 }; /* several pieces */
    unsigned char *a = malloc(BYTES), *b = malloc(BYTES);
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    flag go = 0;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloMemsetAsync(a, 0x1234, BYTES, s));
    ok(koloMemcpyAsync(b, a, BYTES, s));
    ok(koloMemsetAsync(a, 7, BYTES, s));
    assert_int_equal(koloStreamQuery(s), ncclInProgress);
    raise_flag(&go);
    ok(koloStreamSynchronize(s));
    for (int i = 0; i < BYTES; i++) {
        assert_int_equal(b[i], 0x34);
        assert_int_equal(a[i], 7);
    }
    ok(koloStreamDestroy(s));
    free(a);
    free(b);
}

static void ranges_of_a_copy_may_overlap(void **state)
{
    enum { WORDS = 1 << 20, BY = 1000 };
    static uint32_t up[WORDS + BY], down[WORDS + BY];

    (void)state;
    for (uint32_t i = 0; i < WORDS; i++) up[i] = down[BY + i] = i;
    ok(koloMemcpyAsync(up + BY, up, sizeof *up * WORDS, NULL));
    ok(koloMemcpyAsync(down, down + BY, sizeof *up * WORDS, NULL));
    ok(koloStreamSynchronize(NULL));
    for (uint32_t i = 0; i < WORDS; i++) assert_true(up[BY + i] == i && down[i] == i);
}

static void on_a_stream_that_runs_inside_the_call_all_is_done_at_once(void **state)
{
    koloStream_t s;
    flag f = 0;
    int a = 1, b = 2;

    (void)state;
    ok(koloStreamCreate(&s, KOLO_STREAM_INLINE));
    ok(koloStreamLaunch(s, raise_flag, &f));
    assert_int_equal(f, 1);
    ok(koloMemcpyAsync(&a, &b, sizeof a, s));
    assert_int_equal(a, 2);
    ok(koloMemsetAsync(&b, 0, sizeof b, s));
    assert_int_equal(b, 0);
    ok(koloStreamDestroy(s));
}

/* ---- threads that run functions ---- */

static void a_function_runs_although_nobody_waits(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);

    (void)state;
    for (int i = 0; i < 20; i++) {
        flag f = 0;
        ok(koloStreamLaunch(s, raise_flag, &f));
        if (i % 2) usleep(3000); /* the executor may be on its way, or asleep */
        await_flag(&f);
        while (koloStreamQuery(s) == ncclInProgress) sched_yield();
    }
    ok(koloStreamDestroy(s));
}

struct mask {
    sigset_t blocked;
    flag seen;
};

static void look_at_mask(void *arg)
{
    struct mask *m = arg;

    pthread_sigmask(SIG_SETMASK, NULL, &m->blocked);
    raise_flag(&m->seen);
}

/* The program's handlers of faults are for these too, whichever thread runs them; other signals are not. */
static void a_fault_in_a_function_would_be_handled(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    struct mask m = {0};

    (void)state;
    ok(koloStreamLaunch(s, look_at_mask, &m));
    await_flag(&m.seen);
    assert_false(sigismember(&m.blocked, SIGSEGV) || sigismember(&m.blocked, SIGFPE));
    assert_true(sigismember(&m.blocked, SIGINT));
    ok(koloStreamDestroy(s));
}

struct pair {
    flag here, there;
};

static void meet_there(void *pair)
{
    struct pair *p = pair;

    raise_flag(&p->here);
    await_flag(&p->there);
}

static void meet_here(void *pair)
{
    struct pair *p = pair;

    raise_flag(&p->there);
    await_flag(&p->here);
}

static void functions_of_two_streams_may_wait_for_each_other(void **state)
{
    koloStream_t a = make_stream(KOLO_STREAM_DEFAULT), b = make_stream(KOLO_STREAM_DEFAULT);

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct pair p = {0};
        ok(koloStreamLaunch(a, meet_there, &p));
        ok(koloStreamLaunch(b, meet_here, &p));
        ok(koloStreamSynchronize(i % 2 ? a : b));
        ok(koloStreamSynchronize(i % 2 ? b : a));
    }
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
}

static void meet_all(void *barrier)
{
    pthread_barrier_wait(barrier);
}

static void functions_of_many_streams_may_wait_for_each_other(void **state)
{
    koloStream_t s[STREAMS];
    pthread_barrier_t all;

    (void)state;
    pthread_barrier_init(&all, NULL, STREAMS);
    for (int i = 0; i < STREAMS; i++) s[i] = make_stream(KOLO_STREAM_DEFAULT);
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < STREAMS; i++) ok(koloStreamLaunch(s[i], meet_all, &all));
    for (int i = 0; i < STREAMS; i++) {
        ok(koloStreamSynchronize(s[i]));
        ok(koloStreamDestroy(s[i]));
    }
    pthread_barrier_destroy(&all);
}

static void who_waits_for_one_stream_is_not_kept_by_a_function_of_another(void **state)
{
    koloStream_t slow = make_stream(KOLO_STREAM_DEFAULT), quick = make_stream(KOLO_STREAM_DEFAULT);
    int from = 5, to = 0;
    flag go = 0, f = 0;

    (void)state;
    ok(koloStreamLaunch(slow, await_flag, &go));
    ok(koloMemcpyAsync(&to, &from, sizeof to, quick));
    ok(koloStreamLaunch(quick, raise_flag, &f));
    ok(koloStreamSynchronize(quick));
    assert_true(to == 5 && f);
    raise_flag(&go);
    ok(koloStreamSynchronize(slow));
    ok(koloStreamDestroy(slow));
    ok(koloStreamDestroy(quick));
}

static void who_waits_for_an_event_is_not_kept_by_a_function_behind_it(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    flag go = 0;

    (void)state;
    ok(koloEventRecord(e, s));
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloEventSynchronize(e));
    raise_flag(&go);
    ok(koloStreamDestroy(s));
    ok(koloEventDestroy(e));
}

static void *synchronize(void *stream)
{
    ok(koloStreamSynchronize(stream));
    return NULL;
}

/* They sleep after some milliseconds, and one of them runs all streams. */
static void threads_that_wait_for_long_do_not_keep_each_other(void **state)
{
    enum { THREADS = 6 };
    koloStream_t s[THREADS];
    pthread_t thread[THREADS];
    flag go[THREADS] = {0};

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        s[i] = make_stream(KOLO_STREAM_DEFAULT);
        ok(koloStreamLaunch(s[i], await_flag, &go[i]));
        ok(koloStreamLaunch(s[i], raise_flag, &go[(i + 1) % THREADS]));
        assert_int_equal(pthread_create(&thread[i], NULL, synchronize, s[i]), 0);
    }
    usleep(30000);
    raise_flag(&go[THREADS / 2]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) ok(koloStreamDestroy(s[i]));
}

struct relay {
    koloStream_t stream;
    _Atomic int left; /* the test looks while a function runs */
};

static void launch_next(void *relay)
{
    struct relay *r = relay;

    if (kl_fetch_sub_acq_rel(&r->left, 1)) ok(koloStreamLaunch(r->stream, launch_next, r));
}

static void a_function_may_queue_work_on_its_own_stream(void **state)
{
    struct relay r = {.stream = make_stream(KOLO_STREAM_DEFAULT), .left = MANY};

    (void)state;
    ok(koloStreamLaunch(r.stream, launch_next, &r));
    while (kl_load_acquire(&r.left) >= 0) ok(koloStreamSynchronize(r.stream)); /* waits for the work queued before it */
    ok(koloStreamSynchronize(r.stream));
    assert_int_equal(r.left, -1);
    ok(koloStreamDestroy(r.stream));
}

static void a_forked_child_runs_functions_of_its_own(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    flag go = 0;
    int status;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    assert_int_equal(koloStreamQuery(s), ncclInProgress);
    pid_t child = fork();
    if (!child) {
        flag f = 0;
        alarm(kolo_test_hang_s());
        if (koloStreamSynchronize(s)) _exit(1);
        if (koloStreamLaunch(s, raise_flag, &f)) _exit(2);
        await_flag(&f);
        _exit(koloStreamSynchronize(s) ? 3 : 0);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    raise_flag(&go);
    ok(koloStreamDestroy(s));
}

static void streams_cost_no_threads(void **state)
{
    static koloStream_t s[8 * 64];
    int a = 1, b = 0;

    (void)state;
    ok(koloMemcpyAsync(&b, &a, sizeof a, NULL)); /* the executor */
    ok(koloStreamSynchronize(NULL));
    int before = count_entries("/proc/self/task");
    for (int i = 0; i < 8 * 64; i++) {
        s[i] = make_stream(KOLO_STREAM_DEFAULT);
        ok(koloMemcpyAsync(&b, &a, sizeof a, s[i]));
    }
    assert_true(count_entries("/proc/self/task") <= before);
    for (int i = 0; i < 8 * 64; i++) ok(koloStreamDestroy(s[i]));
}

/* ---- with collectives ---- */

struct ranks {
    ncclComm_t comm[RANKS];
    koloStream_t stream[RANKS];
    int32_t send[RANKS][64], recv[RANKS][64];
};

static void make_ranks(struct ranks *all)
{
    memset(all, 0, sizeof *all);
    ok(ncclCommInitAll(all->comm, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        all->stream[r] = make_stream(KOLO_STREAM_DEFAULT);
    }
}

static void free_ranks(struct ranks *all)
{
    for (int r = 0; r < RANKS; r++) {
        ok(koloStreamDestroy(all->stream[r]));
        ok(ncclCommDestroy(all->comm[r]));
    }
    ok(koloSetDevice(0));
}

static void fill(void *buffer)
{
    int32_t *b = buffer;

    for (int i = 0; i < 64; i++) b[i] += i;
}

/* One thread has all ranks: a call that waited for earlier work in its stream would never return. */
static void nothing_waits_for_a_rank_that_has_not_called_yet(void **state)
{
    static struct ranks all;
    int32_t copy[RANKS][64];

    (void)state;
    make_ranks(&all);
    for (int round = 1; round <= 50; round++) {
        for (int r = 0; r < RANKS; r++) {
            ok(koloStreamLaunch(all.stream[r], fill, all.send[r]));
            ok(ncclAllReduce(all.send[r], all.recv[r], 64, ncclInt32, ncclSum, all.comm[r], all.stream[r]));
            ok(koloMemcpyAsync(copy[r], all.recv[r], sizeof copy[r], all.stream[r]));
            ok(koloStreamLaunch(all.stream[r], fill, copy[r]));
        }
        for (int r = 0; r < RANKS; r++) ok(koloStreamSynchronize(all.stream[r]));
        for (int i = 0; i < 64; i++) assert_int_equal(copy[round % RANKS][i], (RANKS * round + 1) * i);
    }
    free_ranks(&all);
}

/* ---- streams that go ---- */

static void a_released_stream_runs_what_it_has(void **state)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT), other;
    flag go = 0, done = 0;

    (void)state;
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloStreamLaunch(s, raise_flag, &done));
    ok(koloStreamRelease(s));
    expect_refused(koloStreamSynchronize(s), ncclInvalidArgument, "not a host stream");
    expect_refused(koloStreamRelease(s), ncclInvalidArgument, "not a host stream");
    other = make_stream(KOLO_STREAM_DEFAULT);
    assert_ptr_not_equal(other, s);
    assert_int_equal(done, 0);
    raise_flag(&go);
    await_flag(&done);
    ok(koloStreamDestroy(other));
}

/* ---- events ---- */

static void a_stream_waits_for_an_event_of_another_device(void **state)
{
    koloEvent_t e = make_event(KOLO_EVENT_DISABLE_TIMING);
    int from = 1, between = 0, to = 0;
    koloStream_t a = make_stream(KOLO_STREAM_DEFAULT), b;
    flag go = 0;

    (void)state;
    ok(koloSetDevice(1));
    b = make_stream(KOLO_STREAM_DEFAULT);
    ok(koloSetDevice(0));
    ok(koloStreamLaunch(a, await_flag, &go));
    ok(koloMemcpyAsync(&between, &from, sizeof from, a));
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    ok(koloMemcpyAsync(&to, &between, sizeof from, b));
    assert_int_equal(koloStreamQuery(b), ncclInProgress);
    raise_flag(&go);
    ok(koloStreamSynchronize(b));
    assert_int_equal(to, 1);
    ok(koloEventDestroy(e));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
}

static void a_wait_means_the_record_before_it(void **state)
{
    koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
    koloStream_t a = make_stream(KOLO_STREAM_DEFAULT), b = make_stream(KOLO_STREAM_DEFAULT);
    flag first = 0, second = 0;

    (void)state;
    ok(koloStreamWaitEvent(b, e, 0)); /* never recorded */
    ok(koloStreamSynchronize(b));
    ok(koloStreamLaunch(a, await_flag, &first));
    ok(koloEventRecord(e, a));
    ok(koloStreamWaitEvent(b, e, 0));
    ok(koloStreamLaunch(a, await_flag, &second));
    ok(koloEventRecord(e, a));
    raise_flag(&first);
    ok(koloStreamSynchronize(b));
    assert_int_equal(koloEventQuery(e), ncclInProgress);
    raise_flag(&second);
    ok(koloEventSynchronize(e));
    ok(koloEventDestroy(e));
    ok(koloStreamDestroy(a));
    ok(koloStreamDestroy(b));
}

struct turn {
    flag *turns;
    uint32_t at;
};

static void take_turn(void *turn)
{
    const struct turn *t = turn;

    kl_fetch_add_acq_rel(t->turns, kl_load_acquire(t->turns) == t->at);
}

/* Streams that each wait for the one before, waited for by a thread each, from the end: they run in their order. */
static void a_chain_of_streams_unwinds(void **state)
{
    koloStream_t s[STREAMS];
    pthread_t thread[STREAMS];
    struct turn turn[STREAMS];
    flag go = 0, turns = 0;

    (void)state;
    for (uint32_t i = 0; i < STREAMS; i++) {
        s[i] = make_stream(KOLO_STREAM_DEFAULT);
        turn[i] = (struct turn){.turns = &turns, .at = i};
    }
    ok(koloStreamLaunch(s[0], await_flag, &go));
    ok(koloStreamLaunch(s[0], take_turn, &turn[0]));
    for (int i = 1; i < STREAMS; i++) {
        koloEvent_t e = make_event(KOLO_EVENT_DEFAULT);
        ok(koloEventRecord(e, s[i - 1]));
        ok(koloStreamWaitEvent(s[i], e, 0));
        ok(koloStreamLaunch(s[i], take_turn, &turn[i]));
        ok(koloEventDestroy(e)); /* pending */
    }
    for (int i = STREAMS; i-- > 0;) assert_int_equal(pthread_create(&thread[i], NULL, synchronize, s[i]), 0);
    usleep(10000); /* some sleep by then, one leads: any state will do */
    raise_flag(&go);
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(thread[i], NULL);
        ok(koloStreamDestroy(s[i]));
    }
    assert_int_equal(turns, STREAMS);
}

static void spin(void *ns)
{
    uint64_t begin = kl_now_ns();

    while (kl_now_ns() - begin < 2000000) continue;
    *(int64_t *)ns = (int64_t)(kl_now_ns() - begin);
}

static void time_passes_between_events(void **state)
{
    koloEvent_t a = make_event(KOLO_EVENT_DEFAULT), b = make_event(KOLO_EVENT_BLOCKING_SYNC);
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    int64_t ran, passed, back;

    (void)state;
    uint64_t begin = kl_now_ns();
    ok(koloEventRecord(a, s));
    ok(koloStreamLaunch(s, spin, &ran));
    ok(koloEventRecord(b, s));
    ok(koloEventSynchronize(b));
    int64_t here = (int64_t)(kl_now_ns() - begin);
    ok(koloEventElapsedTime(&passed, a, b));
    assert_true(passed >= ran && passed <= here);
    ok(koloEventElapsedTime(&back, b, a));
    assert_int_equal(back, -passed);
    ok(koloEventDestroy(a));
    ok(koloEventDestroy(b));
    ok(koloStreamDestroy(s));
}

/* The time of an event with nothing before it is the time of the call, also if no thread waits for it. */
static void an_idle_stream_marks_at_once(void **state)
{
    koloEvent_t a = make_event(KOLO_EVENT_DEFAULT), b = make_event(KOLO_EVENT_DEFAULT);
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    int64_t ran, passed;

    (void)state;
    ok(koloEventRecord(a, s));
    ok(koloEventQuery(a));
    spin(&ran);
    ok(koloEventRecord(b, s));
    ok(koloEventElapsedTime(&passed, a, b));
    assert_true(passed >= ran);
    ok(koloEventDestroy(a));
    ok(koloEventDestroy(b));
    ok(koloStreamDestroy(s));
}

static void times_that_are_not_there(void **state)
{
    koloEvent_t done = make_event(KOLO_EVENT_DEFAULT), never = make_event(KOLO_EVENT_DEFAULT);
    koloEvent_t untimed = make_event(KOLO_EVENT_DISABLE_TIMING), pending = make_event(KOLO_EVENT_DEFAULT);
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    int64_t ns = 42;
    flag go = 0;

    (void)state;
    ok(koloEventRecord(done, s));
    ok(koloEventRecord(untimed, s));
    ok(koloStreamSynchronize(s));
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloEventRecord(pending, s));
    expect_refused(koloEventElapsedTime(&ns, done, never), ncclInvalidUsage, "second event was never recorded");
    expect_refused(koloEventElapsedTime(&ns, never, done), ncclInvalidUsage, "first event was never recorded");
    expect_refused(koloEventElapsedTime(&ns, untimed, done), ncclInvalidUsage, "KOLO_EVENT_DISABLE_TIMING");
    expect_refused(koloEventElapsedTime(&ns, pending, untimed), ncclInvalidUsage, "KOLO_EVENT_DISABLE_TIMING");
    assert_int_equal(koloEventElapsedTime(&ns, done, pending), ncclInProgress);
    assert_int_equal(koloEventElapsedTime(&ns, pending, done), ncclInProgress);
    assert_int_equal(ns, 42);
    raise_flag(&go);
    ok(koloStreamDestroy(s));
    ok(koloEventElapsedTime(&ns, done, pending));
    koloEvent_t all[] = {done, never, untimed, pending};
    for (int i = 0; i < 4; i++) ok(koloEventDestroy(all[i]));
}

static void a_forked_child_has_no_time_of_what_did_not_run_in_it(void **state)
{
    koloEvent_t done = make_event(KOLO_EVENT_DEFAULT), pending = make_event(KOLO_EVENT_DEFAULT);
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);
    flag go = 0;
    int status;

    (void)state;
    ok(koloEventRecord(done, s));
    ok(koloEventSynchronize(done));
    ok(koloStreamLaunch(s, await_flag, &go));
    ok(koloEventRecord(pending, s));
    pid_t child = fork();
    if (!child) {
        int64_t ns;
        if (koloEventQuery(pending)) _exit(1);
        if (koloEventElapsedTime(&ns, done, done)) _exit(2);
        if (koloEventElapsedTime(&ns, done, pending) != ncclInvalidUsage) _exit(3);
        _exit(koloGetLastReason() == koloReasonEventTime ? 0 : 4);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    raise_flag(&go);
    ok(koloStreamDestroy(s));
    ok(koloEventDestroy(done));
    ok(koloEventDestroy(pending));
}

/* ---- refusals ---- */

static void what_is_wrong_is_refused(void **state)
{
    koloEvent_t e;
    char c;

    (void)state;
    expect_refused(koloStreamLaunch(NULL, NULL, NULL), ncclInvalidArgument, "function is NULL");
    expect_refused(koloMemcpyAsync(NULL, &c, 1, NULL), ncclInvalidArgument, "destination is NULL");
    expect_refused(koloMemcpyAsync(&c, NULL, 1, NULL), ncclInvalidArgument, "source is NULL");
    expect_refused(koloMemsetAsync(NULL, 0, 1, NULL), ncclInvalidArgument, "destination is NULL");
    ok(koloMemcpyAsync(NULL, NULL, 0, NULL));
    ok(koloMemsetAsync(NULL, 0, 0, NULL));
    expect_refused(koloMemcpyAsync(&c, &c, 1, (koloStream_t)&c), ncclInvalidArgument, "not a host stream");
    expect_refused(koloEventCreateWithFlags(&e, 64), ncclInvalidArgument, "0x40");
    expect_refused(koloEventCreateWithFlags(NULL, 0), ncclInvalidArgument, "NULL");
    ok(koloEventCreate(&e));
    expect_refused(koloStreamWaitEvent(NULL, NULL, 0), ncclInvalidArgument, "event is NULL");
    expect_refused(koloStreamWaitEvent(NULL, e, 2), ncclInvalidArgument, "0x2");
    expect_refused(koloEventRecordWithFlags(NULL, NULL, 1), ncclInvalidArgument, "event is NULL");
    expect_refused(koloEventRecordWithFlags(e, NULL, 2), ncclInvalidArgument, "0x2");
    expect_refused(koloEventElapsedTime(NULL, e, e), ncclInvalidArgument, "result pointer");
    expect_refused(koloStreamRelease(NULL), ncclInvalidArgument, "default stream");
    ok(koloEventDestroy(e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_run_in_the_order_of_the_stream),
        cmocka_unit_test(copies_and_functions_see_each_other),
        cmocka_unit_test(ranges_of_a_copy_may_overlap),
        cmocka_unit_test(on_a_stream_that_runs_inside_the_call_all_is_done_at_once),
        cmocka_unit_test(a_function_runs_although_nobody_waits),
        cmocka_unit_test(a_fault_in_a_function_would_be_handled),
        cmocka_unit_test(functions_of_two_streams_may_wait_for_each_other),
        cmocka_unit_test(functions_of_many_streams_may_wait_for_each_other),
        cmocka_unit_test(who_waits_for_one_stream_is_not_kept_by_a_function_of_another),
        cmocka_unit_test(who_waits_for_an_event_is_not_kept_by_a_function_behind_it),
        cmocka_unit_test(threads_that_wait_for_long_do_not_keep_each_other),
        cmocka_unit_test(a_function_may_queue_work_on_its_own_stream),
        cmocka_unit_test(a_forked_child_runs_functions_of_its_own),
        cmocka_unit_test(streams_cost_no_threads),
        cmocka_unit_test(nothing_waits_for_a_rank_that_has_not_called_yet),
        cmocka_unit_test(a_released_stream_runs_what_it_has),
        cmocka_unit_test(a_stream_waits_for_an_event_of_another_device),
        cmocka_unit_test(a_wait_means_the_record_before_it),
        cmocka_unit_test(a_chain_of_streams_unwinds),
        cmocka_unit_test(time_passes_between_events),
        cmocka_unit_test(an_idle_stream_marks_at_once),
        cmocka_unit_test(times_that_are_not_there),
        cmocka_unit_test(a_forked_child_has_no_time_of_what_did_not_run_in_it),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
