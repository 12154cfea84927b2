/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random work against a model: several jobs at once, each with a thread per rank and streams of both kinds, do random
 * sequences of collectives, groups and messages, and know every result; and jobs that are aborted anywhere end everywhere.
 *
 * All choices follow from a job's seed, so that its ranks agree without communication; a failure names the seed and the
 * step.
 */
#include "include/kolo.h"

#include "base/atomic.h"
#include "tests/kolo_test.h"
#include "tests/soak/draw.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 4, JOBS = 3, STEPS = 90, ABORTED_JOBS = 12, MOST_COUNT = 70000, STREAMS = 3 };

/* ---- random numbers: the same for all ranks of a job ---- */

static size_t draw_count(uint64_t *seed)
{
    static const size_t most[] = {2, 30, 3000, MOST_COUNT};

    return soak_draw(seed) % (most[soak_draw(seed) % 4] + 1);
}

/* ---- a job ---- */

struct job {
    uint64_t seed;
    int n, steps;
    ncclUniqueId id;
    _Atomic uint32_t joined; /* ranks */
};

struct rank {
    struct job *job;
    int rank;
    ncclComm_t comm;
    koloStream_t streams[STREAMS];
    int32_t *send, *recv;
    char error[200]; /* "": all was right */
    pthread_t thread;
};

static int32_t input(const struct job *j, int rank, int step, size_t i)
{
    return (int32_t)((i % 977 + 1) * (size_t)(rank + 1) + (size_t)step + (size_t)j->n);
}

static void fill(struct rank *r, int step, size_t elements)
{
    for (size_t i = 0; i < elements; i++) r->send[i] = input(r->job, r->rank, step, i);
    memset(r->recv, -1, elements * sizeof *r->recv);
}

static int32_t sum(const struct job *j, int step, size_t i)
{
    int32_t s = 0;

    for (int r = 0; r < j->n; r++) s += input(j, r, step, i);
    return s;
}

/* ---- one step: issue, wait, compare ---- */

enum kind { ALLREDUCE, IN_PLACE, REDUCE, BROADCAST, ALLGATHER, REDUCESCATTER, ALLTOALL, RING, PAIR_OF_STREAMS, KINDS };

struct step {
    enum kind kind;
    int number, root;
    size_t count;
    koloStream_t stream, other;
    bool event;
};

static struct step draw_step(struct rank *r, uint64_t *seed, int number)
{
    struct step s = {.number = number};

    s.kind = (enum kind)(soak_draw(seed) % KINDS);
    s.root = (int)(soak_draw(seed) % (unsigned)r->job->n);
    s.count = draw_count(seed);
    s.stream = r->streams[soak_draw(seed) % STREAMS];
    s.other = r->streams[soak_draw(seed) % STREAMS];
    s.event = soak_draw(seed) % 4 == 0;
    return s;
}

/* The first of two failures; the order in which arguments are evaluated is undefined, so both are results already. */
static ncclResult_t first_of(ncclResult_t a, ncclResult_t b)
{
    return a ? a : b;
}

/* Block k to rank k, and the block of rank k from it. */
static ncclResult_t all_to_all(struct rank *r, const struct step *s)
{
    ncclResult_t rc = ncclGroupStart();

    for (int k = 0; k < r->job->n; k++) {
        int32_t *to = r->send + (size_t)k * s->count, *from = r->recv + (size_t)k * s->count;
        rc = first_of(rc, ncclSend(to, s->count, ncclInt32, k, r->comm, s->stream));
        rc = first_of(rc, ncclRecv(from, s->count, ncclInt32, k, r->comm, k % 2 ? s->stream : s->other));
    }
    return first_of(ncclGroupEnd(), rc);
}

/* Two messages to the next rank; when one rank is both neighbours, or is alone, the order decides. */
static ncclResult_t ring(struct rank *r, const struct step *s)
{
    int n = r->job->n, next = (r->rank + 1) % n, prev = (r->rank + n - 1) % n;
    ncclResult_t rc = ncclGroupStart();

    for (size_t k = 0; k < 2; k++) {
        rc = first_of(rc, ncclRecv(r->recv + k * s->count, s->count, ncclInt32, prev, r->comm, s->stream));
        rc = first_of(rc, ncclSend(r->send + k * s->count, s->count, ncclInt32, next, r->comm, s->stream));
    }
    return first_of(ncclGroupEnd(), rc);
}

/* A sum and a maximum in one group, on two streams. */
static ncclResult_t pair_of_streams(struct rank *r, const struct step *s)
{
    ncclResult_t rc = ncclGroupStart();

    rc = first_of(rc, ncclAllReduce(r->send, r->recv, s->count, ncclInt32, ncclSum, r->comm, s->stream));
    rc = first_of(rc, ncclAllReduce(r->send, r->recv + s->count, s->count, ncclInt32, ncclMax, r->comm, s->other));
    return first_of(ncclGroupEnd(), rc);
}

static ncclResult_t issue(struct rank *r, const struct step *s)
{
    switch (s->kind) {
    case ALLREDUCE:
        return ncclAllReduce(r->send, r->recv, s->count, ncclInt32, ncclSum, r->comm, s->stream);
    case IN_PLACE:
        return ncclAllReduce(r->send, r->send, s->count, ncclInt32, ncclSum, r->comm, s->stream);
    case REDUCE:
        return ncclReduce(r->send, r->rank == s->root ? r->recv : NULL, s->count, ncclInt32, ncclSum, s->root, r->comm,
                          s->stream);
    case BROADCAST:
        return ncclBroadcast(r->rank == s->root ? r->send : NULL, r->recv, s->count, ncclInt32, s->root, r->comm,
                             s->stream);
    case ALLGATHER:
        return ncclAllGather(r->send, r->recv, s->count, ncclInt32, r->comm, s->stream);
    case REDUCESCATTER:
        return ncclReduceScatter(r->send, r->recv, s->count, ncclInt32, ncclSum, r->comm, s->stream);
    case ALLTOALL:
        return all_to_all(r, s);
    case RING:
        return ring(r, s);
    default:
        return pair_of_streams(r, s);
    }
}

static ncclResult_t wait_for(const struct step *s)
{
    koloEvent_t e;
    ncclResult_t rc;

    if (!s->event) return first_of(koloStreamSynchronize(s->stream), koloStreamSynchronize(s->other));
    if ((rc = koloEventCreate(&e))) return rc;
    rc = koloEventRecord(e, s->stream);
    while (!rc && (rc = koloEventQuery(e)) == ncclInProgress) rc = ncclSuccess;
    rc = first_of(rc, koloEventSynchronize(e));
    koloEventDestroy(e);
    return first_of(rc, koloStreamSynchronize(s->other));
}

/* The expected element i of the result; elements beyond result_of's number are not checked. */
static int32_t model(const struct rank *r, const struct step *s, size_t i)
{
    const struct job *j = r->job;
    size_t block = s->count ? i / s->count : 0, rest = s->count ? i % s->count : 0;
    int n = j->n, me = r->rank;

    switch (s->kind) {
    case BROADCAST:
        return input(j, s->root, s->number, i);
    case ALLGATHER:
        return input(j, (int)block, s->number, rest);
    case REDUCESCATTER:
        return sum(j, s->number, (size_t)me * s->count + i);
    case ALLTOALL:
        return input(j, (int)block, s->number, (size_t)me * s->count + rest);
    case RING:
        return input(j, (me + n - 1) % n, s->number, i);
    case PAIR_OF_STREAMS:
        return block ? input(j, n - 1, s->number, rest) : sum(j, s->number, i);
    default:
        return sum(j, s->number, i);
    }
}

static size_t result_of(const struct rank *r, const struct step *s, const int32_t **result)
{
    *result = s->kind == IN_PLACE ? r->send : r->recv;
    if (s->kind == REDUCE && r->rank != s->root) return 0;
    if (s->kind == ALLGATHER || s->kind == ALLTOALL) return s->count * (size_t)r->job->n;
    return s->kind == RING || s->kind == PAIR_OF_STREAMS ? 2 * s->count : s->count;
}

static bool compare(struct rank *r, const struct step *s)
{
    const int32_t *result;
    size_t elements = result_of(r, s, &result);

    for (size_t i = 0; i < elements; i++) {
        if (result[i] == model(r, s, i)) continue;
        snprintf(r->error, sizeof r->error,
                 "seed %llu, rank %d of %d, step %d (kind %d, %zu elements): %zu is %d, not %d",
                 (unsigned long long)r->job->seed, r->rank, r->job->n, s->number, s->kind, s->count, i, result[i],
                 model(r, s, i));
        return false;
    }
    return true;
}

/* ---- a rank ---- */

static ncclResult_t join(struct rank *r)
{
    size_t bytes = sizeof *r->send * MOST_COUNT * MOST_RANKS;
    ncclResult_t rc = ncclCommInitRank(&r->comm, r->job->n, r->job->id, r->rank);

    for (int k = 0; k < STREAMS; k++)
        rc = first_of(rc, koloStreamCreate(&r->streams[k], k ? KOLO_STREAM_DEFAULT : KOLO_STREAM_INLINE));
    r->send = malloc(bytes);
    r->recv = malloc(bytes);
    kl_fetch_add_acq_rel(&r->job->joined, 1);
    return rc;
}

static ncclResult_t work(struct rank *r)
{
    uint64_t seed = r->job->seed;
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < r->job->steps && !rc && !*r->error; i++) {
        struct step s = draw_step(r, &seed, i);
        fill(r, i, 2 * s.count > s.count * (size_t)r->job->n ? 2 * s.count : s.count * (size_t)r->job->n);
        rc = issue(r, &s);
        rc = first_of(rc, wait_for(&s));
        if (!rc) compare(r, &s);
    }
    return rc;
}

static void leave(struct rank *r)
{
    for (int k = 0; k < STREAMS; k++) koloStreamDestroy(r->streams[k]);
    free(r->send);
    free(r->recv);
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    ncclResult_t rc = join(r);

    if (!rc) rc = work(r);
    if (rc && !*r->error)
        snprintf(r->error, sizeof r->error, "seed %llu, rank %d of %d: %d %.100s", (unsigned long long)r->job->seed,
                 r->rank, r->job->n, rc, ncclGetLastError(r->comm));
    ncclCommDestroy(r->comm);
    leave(r);
    return NULL;
}

static void start_job(struct job *j, struct rank *ranks, void *(*run)(void *))
{
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    for (int r = 0; r < j->n; r++) {
        ranks[r] = (struct rank){.job = j, .rank = r};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, run, &ranks[r]), 0);
    }
}

static void end_job(const struct job *j, struct rank *ranks)
{
    for (int r = 0; r < j->n; r++) pthread_join(ranks[r].thread, NULL);
    for (int r = 0; r < j->n; r++)
        if (*ranks[r].error) fail_msg("%s", ranks[r].error);
}

/* ---- tests ---- */

static void random_work_gives_what_the_model_says(void **state)
{
    struct job jobs[JOBS];
    static struct rank ranks[JOBS][MOST_RANKS];

    (void)state;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.seed = 1000 + (uint64_t)i, .n = MOST_RANKS - i, .steps = STEPS};
        start_job(&jobs[i], ranks[i], run_rank);
    }
    for (int i = 0; i < JOBS; i++) end_job(&jobs[i], ranks[i]);
}

/* Each job alone in its thread: nothing but the streams, the executor and the registries is shared. */
static void many_communicators_of_one_rank_do_not_disturb_each_other(void **state)
{
    enum { ALONE = 12 };
    struct job jobs[ALONE];
    static struct rank ranks[ALONE];

    (void)state;
    for (int i = 0; i < ALONE; i++) {
        jobs[i] = (struct job){.seed = 2000 + (uint64_t)i, .n = 1, .steps = STEPS};
        start_job(&jobs[i], &ranks[i], run_rank);
    }
    for (int i = 0; i < ALONE; i++) end_job(&jobs[i], &ranks[i]);
}

/* ---- aborts ---- */

enum { QUEUED = 40 }; /* operations in flight: fewer than a stream takes, so that issuing them does not wait */

static void *abort_rank(void *arg)
{
    struct rank *r = arg;

    while (kl_load_acquire(&r->job->joined) < (uint32_t)r->job->n) sched_yield();
    for (uint64_t i = r->job->seed * 7919 % 400; i; i--) sched_yield(); /* at any point: nothing depends on it */
    ncclCommAbort(r->comm);
    return NULL;
}

/* Issue everything, then wait; rank 0 is aborted meanwhile by another thread. Buffers are freed as soon as allowed. */
static void *run_aborted_rank(void *arg)
{
    struct rank *r = arg;
    uint64_t seed = r->job->seed;
    ncclResult_t rc = join(r), want = r->rank ? ncclRemoteError : ncclInternalError;
    koloStream_t stream = r->streams[1];
    pthread_t aborter;

    fill(r, 0, 2 * MOST_COUNT);
    if (rc) snprintf(r->error, sizeof r->error, "rank %d cannot join: %d", r->rank, rc);
    for (int i = 0; i < QUEUED && !rc; i++) {
        struct step s = draw_step(r, &seed, i);
        s.stream = s.other = stream;
        if (s.kind <= BROADCAST || s.kind >= RING) rc = issue(r, &s);
    }
    if (!r->rank) pthread_create(&aborter, NULL, abort_rank, r);
    rc = first_of(rc, koloStreamSynchronize(stream));
    leave(r); /* no rank reads or writes the buffers any more */
    if (rc && rc != want) snprintf(r->error, sizeof r->error, "rank %d: %d", r->rank, rc);
    if (!r->rank)
        pthread_join(aborter, NULL);
    else
        ncclCommDestroy(r->comm);
    return NULL;
}

static void an_abort_anywhere_ends_every_rank(void **state)
{
    static struct rank ranks[MOST_RANKS];

    (void)state;
    for (int i = 0; i < ABORTED_JOBS; i++) {
        struct job j = {.seed = 3000 + (uint64_t)i, .n = 3};
        start_job(&j, ranks, run_aborted_rank);
        end_job(&j, ranks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_work_gives_what_the_model_says),
        cmocka_unit_test(many_communicators_of_one_rank_do_not_disturb_each_other),
        cmocka_unit_test(an_abort_anywhere_ends_every_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
