/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/hosts.h"

#include "base/clock.h"
#include "device/cuda/memory.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_NS = 1000000 }; /* between looks at flags that other threads set without a signal */

/* A rank of this process. Of its rounds, those before `out` have been put on the GPU, those before `in` on their way
 * there. */
struct member {
    struct kl_gpu_gate *gate;
    const void *caller;
    struct kl_gpu_rounds *rounds; /* of the call that arrived; NULL: none */
    size_t in, out, end;          /* positions in its rounds; end: of those that have arrived */
    uint64_t numbered;            /* rounds so far */
    uint64_t collectives;         /* rounds of collectives that have departed */
    uint64_t capture;             /* of the call; 0: none */
    uint64_t departed_in;         /* the same of the last round that has departed */
    uint64_t *sent, *received;    /* by rank of this process: messages that have departed */
};

struct kl_gpu_hosts {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int nranks, refs;
    struct member *member; /* by rank; without a gate: another process's */
    ncclResult_t failed;
    char text[KL_ERROR_TEXT];
};

/* ---- life ---- */

static void free_member(struct member *m, bool released)
{
    if (m->gate) kl_gpu_gate_free(m->gate, released);
    free(m->sent);
    free(m->received);
}

static void free_hosts(struct kl_gpu_hosts *h)
{
    for (int r = 0; h->member && r < h->nranks; r++) free_member(&h->member[r], h->failed);
    free(h->member);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static ncclResult_t add_rank(struct kl_gpu_hosts *h, int rank, int device)
{
    struct member *m = &h->member[rank];

    m->sent = calloc((size_t)h->nranks, sizeof *m->sent);
    m->received = calloc((size_t)h->nranks, sizeof *m->received);
    if (!m->sent || !m->received) return KL_NOMEM("the ranks on GPUs");
    return kl_gpu_gate_create(device, rank, h->nranks, &m->gate);
}

static void init_lock(struct kl_gpu_hosts *h)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
}

ncclResult_t kl_gpu_hosts_create(const struct kl_gpu_place *place, int nranks, struct kl_gpu_hosts **out)
{
    struct kl_gpu_hosts *h = calloc(1, sizeof *h);
    ncclResult_t rc = ncclSuccess;

    *out = NULL;
    if (!h) return KL_NOMEM("the ranks on GPUs");
    h->nranks = nranks;
    init_lock(h);
    h->member = calloc((size_t)nranks, sizeof *h->member);
    if (!h->member) rc = KL_NOMEM("the ranks on GPUs");
    for (int r = 0; r < nranks && !rc; r++)
        if (place[r].device >= 0) rc = add_rank(h, r, place[r].device);
    if (rc)
        free_hosts(h);
    else
        *out = h;
    return rc;
}

void kl_gpu_hosts_ref(struct kl_gpu_hosts *h)
{
    pthread_mutex_lock(&h->lock);
    h->refs++;
    pthread_mutex_unlock(&h->lock);
}

void kl_gpu_hosts_release(struct kl_gpu_hosts *h)
{
    for (int r = 0; r < h->nranks; r++)
        if (h->member[r].gate) kl_gpu_gate_release(h->member[r].gate);
}

static ncclResult_t synchronize(const struct kl_gpu_hosts *h)
{
    for (int r = 0; r < h->nranks; r++)
        if (h->member[r].gate) KL_TRY(kl_gpu_gate_synchronize(h->member[r].gate));
    return ncclSuccess;
}

bool kl_gpu_hosts_leave(struct kl_gpu_hosts *h, bool failed, const char *text)
{
    pthread_mutex_lock(&h->lock);
    if (failed && !h->failed) {
        h->failed = ncclRemoteError;
        snprintf(h->text, sizeof h->text, "%s", text);
    }
    if (failed) kl_gpu_hosts_release(h);
    const bool last = !--h->refs;
    pthread_mutex_unlock(&h->lock);
    if (!last) return false;
    if (!h->failed) (void)synchronize(h);
    free_hosts(h);
    return true;
}

struct kl_gpu_gate *kl_gpu_hosts_gate(const struct kl_gpu_hosts *h, int rank)
{
    return h->member[rank].gate;
}

void kl_gpu_hosts_note_caller(struct kl_gpu_hosts *h, int rank, const void *thread)
{
    pthread_mutex_lock(&h->lock);
    h->member[rank].caller = thread;
    pthread_mutex_unlock(&h->lock);
}

/* ---- checks ---- */

static ncclResult_t check_stream(const struct kl_gpu_gate *g, const struct kl_gpu_op *op, uint64_t *capture)
{
    const struct kl_cuda_driver *driver = g->context->driver;
    int capturing = 0;
    uint64_t id = 0;

    int rc = driver->cuStreamGetCaptureInfo(op->stream, &capturing, &id, NULL, NULL, NULL);
    if (rc)
        return KL_FAIL(ncclInvalidArgument, "rank %d: %p is no stream of CUDA: %s (%d)", g->rank, (void *)op->stream,
                       kl_cuda_error_name(driver, rc), rc);
    *capture = capturing ? id : 0;
    if (!capturing || op->stream != KL_CU_PER_THREAD_STREAM) return ncclSuccess;
    return KL_FAIL(
        ncclInvalidUsage,
        "%s of rank %d: its thread's default stream captures a graph; other threads cannot add to it: capture "
        "on a stream of cudaStreamCreate",
        kl_func_info[op->task->func].name, g->rank);
}

/* All streams of a call capture one graph, or none does. */
static ncclResult_t check_streams(const struct kl_gpu_gate *g, struct kl_gpu_call *call)
{
    for (size_t i = 0; i < call->nops; i++) {
        uint64_t capture = call->capture;
        if (!i || call->op[i].stream != call->op[i - 1].stream) KL_TRY(check_stream(g, &call->op[i], &capture));
        if (!i) call->capture = capture;
        if (call->capture != capture)
            return KL_FAIL(ncclInvalidUsage,
                           "rank %d: streams of a group capture different graphs, or some capture none", call->rank);
    }
    return ncclSuccess;
}

static ncclResult_t check_buffers(const struct kl_gpu_gate *g, const struct kl_gpu_op *op)
{
    struct kl_gpu_buffer b[KL_GPU_BUFFERS];
    char name[96];

    kl_gpu_buffers_of(op->task, g->rank, g->nranks, b);
    for (int i = 0; i < KL_GPU_BUFFERS; i++) {
        if (!b[i].bytes) continue;
        snprintf(name, sizeof name, "%s of rank %d: %s", kl_func_info[op->task->func].name, g->rank, b[i].name);
        KL_TRY(kl_cuda_check(&g->context, 1, name, b[i].ptr, b[i].bytes));
    }
    return ncclSuccess;
}

static ncclResult_t check_all(const struct kl_gpu_gate *g, struct kl_gpu_call *call)
{
    KL_TRY(check_streams(g, call));
    for (size_t i = 0; i < call->nops; i++) KL_TRY(check_buffers(g, &call->op[i]));
    return ncclSuccess;
}

ncclResult_t kl_gpu_hosts_check(const struct kl_gpu_hosts *h, struct kl_gpu_call *call)
{
    const struct kl_gpu_gate *g = h->member[call->rank].gate;

    KL_TRY(kl_cuda_enter(g->context));
    ncclResult_t rc = check_all(g, call);
    kl_cuda_leave(g->context);
    return rc;
}

/* ---- order: under lock ---- */

static void fail(struct kl_gpu_hosts *h, ncclResult_t rc)
{
    if (!rc || h->failed) return;
    h->failed = rc;
    snprintf(h->text, sizeof h->text, "%s", kl_error_text());
}

static bool is_here(const struct kl_gpu_hosts *h, int rank)
{
    return h->member[rank].gate;
}

/* Rounds of one collective overlap; another operation may need the results of those before it. */
static bool may_depart(const struct member *m)
{
    const size_t under_way = m->in - m->out;

    if (m->in == m->end) return false;
    return !under_way || (m->rounds->round[m->in].index && under_way < KL_GPU_SLOTS);
}

static void note_departed(struct member *m, const struct kl_gpu_round *round)
{
    if (!round->messages) m->collectives++;
    for (size_t i = 0; round->messages && i < round->ntravels; i++) {
        const struct kl_task *t = &m->rounds->travel[round->travel + i].task;
        (t->func == KL_FUNC_SEND ? m->sent : m->received)[t->peer]++;
    }
}

static void depart(struct kl_gpu_hosts *h, struct member *m)
{
    const struct kl_gpu_round *round = &m->rounds->round[m->in++];

    fail(h, kl_gpu_gate_depart(m->gate, m->rounds, round));
    m->departed_in = m->capture;
    note_departed(m, round);
}

/* In a graph CUDA has to know that no rank's wait comes before the data that it waits for. */
static ncclResult_t come_back(struct kl_gpu_hosts *h, struct member *m)
{
    for (int r = 0; m->capture && r < h->nranks; r++) {
        const struct member *other = &h->member[r];
        if (other->gate && other != m && other->departed_in == m->capture)
            KL_TRY(kl_gpu_gate_follow(m->gate, other->gate));
    }
    return kl_gpu_gate_return(m->gate, m->rounds, &m->rounds->round[m->out++]);
}

/* A rank of this process whose data the messages need, and which have not departed; -1: none. */
static int missing_side(const struct kl_gpu_hosts *h, int rank, const struct kl_gpu_round *round)
{
    const struct member *m = &h->member[rank];

    for (size_t i = 0; i < round->ntravels; i++) {
        const int peer = m->rounds->travel[round->travel + i].task.peer;
        const struct member *p = &h->member[peer];
        if (is_here(h, peer) && (p->received[rank] < m->sent[peer] || p->sent[rank] < m->received[peer])) return peer;
    }
    return -1;
}

/* The same of a collective. */
static int missing_rank(const struct kl_gpu_hosts *h, int rank)
{
    const struct member *m = &h->member[rank];
    const uint64_t number = m->collectives - (m->in - m->out) + 1; /* of the first round under way */

    for (int r = 0; r < h->nranks; r++)
        if (is_here(h, r) && h->member[r].collectives < number) return r;
    return -1;
}

static int missing(const struct kl_gpu_hosts *h, int rank)
{
    const struct member *m = &h->member[rank];
    const struct kl_gpu_round *round = &m->rounds->round[m->out];

    return round->messages ? missing_side(h, rank, round) : missing_rank(h, rank);
}

static bool advance_rank(struct kl_gpu_hosts *h, int rank)
{
    struct member *m = &h->member[rank];

    if (!m->rounds || h->failed) return false;
    if (may_depart(m)) {
        depart(h, m);
        return true;
    }
    if (m->out == m->in || missing(h, rank) >= 0) return false;
    fail(h, come_back(h, m));
    return true;
}

/* Submit all that is complete. */
static void advance(struct kl_gpu_hosts *h)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (int r = 0; r < h->nranks; r++) moved |= advance_rank(h, r);
    }
}

void kl_gpu_hosts_number(struct kl_gpu_hosts *h, int rank, struct kl_gpu_rounds *rounds)
{
    for (size_t i = 0; i < rounds->nrounds; i++) {
        struct kl_gpu_round *r = &rounds->round[i];
        r->number = ++h->member[rank].numbered;
        if (r->notice) r->notice->number = r->number;
    }
}

void kl_gpu_hosts_arrive(struct kl_gpu_hosts *h, int rank, struct kl_gpu_rounds *rounds, uint64_t capture,
                         bool messages)
{
    struct member *m = &h->member[rank];
    const size_t from = messages ? rounds->ncollectives : 0, to = messages ? rounds->nrounds : rounds->ncollectives;

    if (from == to) return;
    pthread_mutex_lock(&h->lock);
    m->rounds = rounds;
    m->in = m->out = from;
    m->end = to;
    m->capture = capture;
    m->caller = kl_thread_self();
    advance(h);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

/* ---- waiting: under lock ---- */

static void wait_a_moment(struct kl_gpu_hosts *h)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&h->changed, &h->lock, &until);
}

static const char *name_of_next(const struct member *m)
{
    return kl_func_info[m->rounds->travel[m->rounds->round[m->out].travel].task.func].name;
}

static ncclResult_t late(const struct kl_gpu_hosts *h, int rank)
{
    return KL_FAIL(ncclSystemError,
                   "%s of rank %d has waited KOLO_TIMEOUT for the call of rank %d: ranks of one thread need "
                   "ncclGroupStart and ncclGroupEnd around their calls",
                   name_of_next(&h->member[rank]), rank, missing(h, rank));
}

static ncclResult_t alone(const struct kl_gpu_hosts *h, int rank)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s of rank %d waits for the call of rank %d, which is this thread's as well: put the calls of a "
                   "thread's ranks between ncclGroupStart and ncclGroupEnd",
                   name_of_next(&h->member[rank]), rank, missing(h, rank));
}

/* Does a call of this thread have to come first? */
static bool waits_for_itself(const struct kl_gpu_hosts *h, int rank)
{
    const int other = missing(h, rank);

    return other >= 0 && h->member[other].caller == kl_thread_self();
}

static ncclResult_t wait_for_others(struct kl_gpu_hosts *h, int rank, _Atomic uint32_t *stop,
                                    const struct kl_gpu_limits *limits)
{
    const struct member *m = &h->member[rank];

    while (m->out < m->end && !h->failed && !kl_load_acquire(stop)) { /* pairs with kl_comm_fail */
        if (kl_deadline_passed(limits->deadline)) return late(h, rank);
        if (kl_deadline_passed(limits->alone) && waits_for_itself(h, rank)) return alone(h, rank);
        wait_a_moment(h);
    }
    if (h->failed) {
        kl_error_adopt(h->text);
        return h->failed;
    }
    return m->out < m->end ? ncclInternalError : ncclSuccess;
}

ncclResult_t kl_gpu_hosts_wait(struct kl_gpu_hosts *h, int rank, _Atomic uint32_t *stop,
                               const struct kl_gpu_limits *limits)
{
    struct member *m = &h->member[rank];

    pthread_mutex_lock(&h->lock);
    ncclResult_t rc = m->rounds ? wait_for_others(h, rank, stop, limits) : ncclSuccess;
    m->rounds = NULL;
    pthread_mutex_unlock(&h->lock);
    return rc;
}
