/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share communicators and streams without taking turns, which programs must not do: calls are refused or do something, and
 * nothing crashes. `misuse_test SEED N` tries N seeds from SEED on.
 */
#include <pthread.h>
#include <stdlib.h>

enum { RANKS = 2, THREADS = 4, STREAMS = 6, ACTIONS = 100, SEEDS = 20, ROOM = 4096 };

#include "base/atomic.h"
#include "tests/api_comms.h"

static float data[2 * RANKS][ROOM];

/* ---- one group, two threads ---- */

static void *issue_beside(void *words)
{
    expect_refused(ncclAllReduce(data[0], data[1], 1, ncclFloat, ncclSum, comms[0], NULL), ncclInvalidUsage, words);
    ok(ncclGroupStart());
    expect_refused(ncclAllReduce(data[0], data[1], 1, ncclFloat, ncclSum, comms[0], NULL), ncclInvalidUsage, words);
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, words);
    return NULL;
}

static void a_group_is_one_threads(void **state)
{
    pthread_t thread;

    (void)state;
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAllReduce(data[r], data[RANKS + r], 1, ncclFloat, ncclSum, comms[r], NULL));
    assert_int_equal(pthread_create(&thread, NULL, issue_beside, (void *)"in a group of another thread"), 0);
    pthread_join(thread, NULL);
    ok(ncclGroupEnd());
    synchronize_all();
}

/* ---- a function that runs inside of a call ---- */

static void reduce_alone(void *comm)
{
    ok(ncclAllReduce(data[0], data[1], 1, ncclFloat, ncclSum, *(ncclComm_t *)comm, NULL));
}

/* It may issue to the communicator that the call waits for: that is the same thread. */
static void a_function_that_a_call_runs_may_issue(void **state)
{
    koloStream_t stream;
    ncclComm_t one;

    (void)state;
    ok(koloSetDevice(0));
    ok(ncclCommInitAll(&one, 1, NULL));
    ok(koloStreamCreate(&stream, KOLO_STREAM_INLINE));
    for (int i = 0; i < 100; i++) {
        ok(koloStreamLaunch(stream, reduce_alone, &one));
        ok(ncclAllReduce(data[2], data[3], 1, ncclFloat, ncclSum, one, (cudaStream_t)(void *)stream));
    }
    ok(koloStreamDestroy(stream));
    ok(koloStreamSynchronize(NULL));
    ok(ncclCommDestroy(one));
}

/* ---- a stream that is gone ---- */

/* Its memory may be reused, its handle is not. */
static void the_handle_of_a_stream_that_was_destroyed_names_none(void **state)
{
    koloStream_t old[200], next;

    (void)state;
    for (int i = 0; i < 200; i++) {
        ok(koloStreamCreate(&old[i], KOLO_STREAM_DEFAULT));
        ok(koloStreamDestroy(old[i]));
    }
    ok(koloStreamCreate(&next, KOLO_STREAM_DEFAULT));
    for (int i = 0; i < 200; i++) {
        expect_refused(koloStreamQuery(old[i]), ncclInvalidArgument, "or was destroyed");
        expect_refused(koloStreamDestroy(old[i]), ncclInvalidArgument, "or was destroyed");
        expect_refused(ncclAllReduce(data[0], data[1], 1, ncclFloat, ncclSum, comms[0], (cudaStream_t)(void *)old[i]),
                       ncclInvalidArgument, "or was destroyed");
    }
    ok(koloStreamDestroy(next));
}

/* ---- whatever ---- */

static struct {
    _Atomic(koloStream_t) stream[STREAMS];
    unsigned seed;
} shared;

struct actor {
    pthread_t thread;
    unsigned random;
};

static unsigned draw(struct actor *a, unsigned below)
{
    a->random = a->random * 1664525u + 1013904223u;
    return (a->random >> 8) % below;
}

static void renew_stream(struct actor *a)
{
    unsigned at = draw(a, STREAMS);
    koloStream_t fresh = NULL;

    (void)koloSetDevice((int)draw(a, RANKS));
    if (koloStreamCreate(&fresh, draw(a, 2) ? KOLO_STREAM_DEFAULT : KOLO_STREAM_BLOCKING)) return;
    koloStream_t old = kl_swap_acq_rel(&shared.stream[at], fresh);
    if (old && !koloStreamQuery(old)) (void)koloStreamDestroy(old); /* waiting for a destroyed stream would not end */
}

static void reduce(struct actor *a)
{
    unsigned r = draw(a, RANKS), n = draw(a, 3) ? 2 : 1 + draw(a, ROOM);
    koloStream_t s = kl_load_acquire(&shared.stream[draw(a, STREAMS)]);

    (void)ncclAllReduce(data[r], data[RANKS + r], n, ncclFloat, ncclSum, comms[r], (cudaStream_t)(void *)s);
}

static void exchange(struct actor *a)
{
    unsigned r = draw(a, RANKS);
    koloStream_t s = kl_load_acquire(&shared.stream[draw(a, STREAMS)]);

    (void)ncclSend(data[r], 1 + draw(a, ROOM), ncclFloat, (int)(1 - r), comms[r], (cudaStream_t)(void *)s);
    (void)ncclRecv(data[RANKS + r], 1 + draw(a, ROOM), ncclFloat, (int)(1 - r), comms[r], (cudaStream_t)(void *)s);
}

static void grouped(struct actor *a)
{
    (void)ncclGroupStart();
    for (unsigned i = draw(a, 4); i; i--) reduce(a);
    if (draw(a, 2)) exchange(a);
    (void)ncclGroupEnd();
}

static void nothing(void *unused)
{
    (void)unused;
}

static void use_streams(struct actor *a)
{
    koloStream_t s = kl_load_acquire(&shared.stream[draw(a, STREAMS)]);
    koloEvent_t event;

    (void)koloStreamLaunch(s, nothing, NULL);
    (void)koloMemcpyAsync(data[0], data[1], sizeof data[0], s);
    if (koloEventCreate(&event)) return;
    (void)koloEventRecord(event, s);
    (void)koloStreamWaitEvent(kl_load_acquire(&shared.stream[draw(a, STREAMS)]), event, 0);
    (void)koloEventQuery(event);
    (void)koloEventDestroy(event);
    (void)koloStreamQuery(s);
}

static void *act(void *arg)
{
    static void (*const actions[])(struct actor *) = {renew_stream, reduce,  reduce,      reduce,
                                                      exchange,     grouped, use_streams, reduce};
    struct actor *a = arg;

    for (int i = 0; i < ACTIONS; i++) actions[draw(a, sizeof actions / sizeof actions[0])](a);
    return NULL;
}

/* Queued calls that do not fit together are withdrawn, not waited for. */
static void end_seed(void)
{
    for (int r = 0; r < RANKS; r++) ok(ncclCommAbort(comms[r]));
    for (int i = 0; i < STREAMS; i++) {
        koloStream_t s = kl_swap_acq_rel(&shared.stream[i], NULL);
        if (s) (void)koloStreamDestroy(s);
    }
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        (void)koloStreamSynchronize(NULL); /* may report that the abort withdrew work */
    }
}

static void run_seed(unsigned seed)
{
    struct actor actors[THREADS];

    ok(ncclCommInitAll(comms, RANKS, NULL));
    for (unsigned t = 0; t < THREADS; t++) {
        actors[t].random = seed * 7919 + t;
        assert_int_equal(pthread_create(&actors[t].thread, NULL, act, &actors[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) pthread_join(actors[t].thread, NULL);
    end_seed();
}

static unsigned first_seed = 1, seeds = SEEDS;

static void nothing_crashes(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: calls that are not allowed at the same time are data races\n");
    skip();
#endif
    for (unsigned s = first_seed; s < first_seed + seeds; s++) {
        shared.seed = s; /* for a debugger */
        run_seed(s);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_is_one_threads, create_comms, destroy_comms),
        cmocka_unit_test(a_function_that_a_call_runs_may_issue),
        cmocka_unit_test_setup_teardown(the_handle_of_a_stream_that_was_destroyed_names_none, create_comms,
                                        destroy_comms),
        cmocka_unit_test(nothing_crashes),
    };

    const struct CMUnitTest chosen[] = {cmocka_unit_test(nothing_crashes)};

    if (argc != 3) return cmocka_run_group_tests(tests, NULL, NULL);
    first_seed = (unsigned)atoi(argv[1]);
    seeds = (unsigned)atoi(argv[2]);
    return cmocka_run_group_tests(chosen, NULL, NULL);
}
