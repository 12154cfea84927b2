/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/perform.h"

#include "base/atomic.h"
#include "tests/soak/draw.h"
#include "tests/soak/issue.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, HELD = SOAK_STEPS * SOAK_GROUP };

/* Issued, and not waited for yet. */
struct held {
    const struct soak_operation *o;
    struct soak_buffers buffers;
};

struct performer {
    const struct soak_program *p;
    int rank, step;
    uint64_t seed; /* for this rank's own choices */
    ncclComm_t comm[SOAK_COMMS];
    koloStream_t stream[STREAMS]; /* 0: the default one, NULL */
    struct held held[HELD];
    int nheld;
    struct soak_note *notes, *note; /* of all, its own */
    enum soak_outcome outcome;
};

/* ---- errors ---- */

/* The first counts; wrong data more than a failure. */
__attribute__((format(printf, 3, 4))) static void tell(struct performer *f, enum soak_outcome outcome, const char *form,
                                                       ...)
{
    char what[400];
    va_list args;

    if (f->outcome >= outcome) return;
    va_start(args, form);
    vsnprintf(what, sizeof what, form, args);
    va_end(args);
    snprintf(f->note->text, sizeof f->note->text, "rank %d, step %d: %s", f->rank, f->step, what);
    f->outcome = outcome;
}

/* True: the call went well. A failure has to have a text. */
static bool went_well(struct performer *f, ncclResult_t rc, const char *what)
{
    const char *words = rc ? ncclGetLastError(NULL) : "";

    if (!rc) return true;
    if (strlen(words) < 8) tell(f, SOAK_WRONG, "%s: result %d without a word", what, rc);
    tell(f, SOAK_FAILED, "%s: result %d, %.300s", what, rc, words);
    return false;
}

/* ---- communicators ---- */

static const struct soak_comm *members(const struct performer *f, int comm)
{
    return &f->p->comm[comm];
}

static int rank_in(const struct performer *f, int comm)
{
    return soak_comm_rank(members(f, comm), f->rank);
}

/* Wait for the end of a call on a communicator that is not blocking. */
static ncclResult_t finish(ncclComm_t comm, ncclResult_t rc)
{
    while (rc == ncclInProgress) {
        ncclResult_t asked = ncclCommGetAsyncError(comm, &rc);
        if (asked) return asked;
        sched_yield();
    }
    return rc;
}

static bool join(struct performer *f, ncclUniqueId id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t rc;

    config.blocking = f->p->blocking;
    rc = ncclCommInitRankConfig(&f->comm[0], f->p->n, id, f->rank, &config);
    return went_well(f, finish(f->comm[0], rc), "ncclCommInitRankConfig");
}

static bool split(struct performer *f, const struct soak_step *s)
{
    int me = rank_in(f, s->comm);
    ncclComm_t child = NULL;
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < s->depth; i++) rc = soak_worse(rc, ncclGroupStart());
    rc = soak_worse(rc, ncclCommSplit(f->comm[s->comm], s->colour[me], s->key[me], &child, NULL));
    for (int i = 0; i < s->depth; i++) rc = soak_worse(ncclGroupEnd(), rc);
    rc = finish(f->comm[s->comm], rc);
    if (s->child[me] >= 0) f->comm[s->child[me]] = child;
    if (!rc && (s->child[me] >= 0) != (child != NULL))
        tell(f, SOAK_WRONG, "ncclCommSplit: a child where none is, or none");
    return went_well(f, rc, "ncclCommSplit");
}

static bool shrink(struct performer *f, const struct soak_step *s)
{
    int me = rank_in(f, s->comm), excluded[SOAK_RANKS];
    ncclComm_t child = NULL;

    if (s->child[me] < 0) return true;
    memcpy(excluded, s->excluded, sizeof excluded);
    ncclResult_t rc = ncclCommShrink(f->comm[s->comm], excluded, s->nexcluded, &child, NULL, NCCL_SHRINK_DEFAULT);
    rc = finish(f->comm[s->comm], rc);
    f->comm[s->child[me]] = child;
    return went_well(f, rc, "ncclCommShrink");
}

/* The default stream belongs to the communicator's device, also where it was made in the background. */
static bool choose_device(struct performer *f)
{
    int device;

    return went_well(f, ncclCommCuDevice(f->comm[0], &device), "ncclCommCuDevice") &&
           went_well(f, koloSetDevice(device), "koloSetDevice");
}

/* A new communicator has the size and the rank of the model. */
static bool check_comm(struct performer *f, int comm)
{
    int n = -1, me = -1;

    if (!went_well(f, ncclCommCount(f->comm[comm], &n), "ncclCommCount")) return false;
    if (!went_well(f, ncclCommUserRank(f->comm[comm], &me), "ncclCommUserRank")) return false;
    if (n == members(f, comm)->n && me == rank_in(f, comm)) return true;
    tell(f, SOAK_WRONG, "communicator %d: rank %d of %d, not rank %d of %d", comm, me, n, rank_in(f, comm),
         members(f, comm)->n);
    return false;
}

static bool check_child(struct performer *f, const struct soak_step *s)
{
    int child = s->child[rank_in(f, s->comm)];

    return child < 0 || check_comm(f, child);
}

static bool leave(struct performer *f, int comm, bool finalize)
{
    bool well = !finalize || went_well(f, finish(f->comm[comm], ncclCommFinalize(f->comm[comm])), "ncclCommFinalize");

    well = went_well(f, ncclCommDestroy(f->comm[comm]), "ncclCommDestroy") && well;
    f->comm[comm] = NULL;
    return well;
}

/* ---- waiting ---- */

static ncclResult_t ask_until_done(koloStream_t stream)
{
    ncclResult_t rc;

    while ((rc = koloStreamQuery(stream)) == ncclInProgress) sched_yield();
    return rc;
}

static ncclResult_t wait_for_event(koloStream_t stream)
{
    koloEvent_t e;
    ncclResult_t rc = koloEventCreate(&e);

    if (rc) return rc;
    rc = koloEventRecord(e, stream);
    while (!rc && (rc = koloEventQuery(e)) == ncclInProgress) rc = ncclSuccess;
    rc = soak_worse(rc, koloEventSynchronize(e));
    return soak_worse(rc, koloEventDestroy(e));
}

static ncclResult_t wait_for_stream(struct performer *f, koloStream_t stream)
{
    switch (soak_pick(&f->seed, 4)) {
    case 0:
        return ask_until_done(stream);
    case 1:
        return wait_for_event(stream);
    default:
        return koloStreamSynchronize(stream);
    }
}

static bool wait_for_all(struct performer *f)
{
    int first = soak_pick(&f->seed, STREAMS);
    bool well = true;

    for (int k = 0; k < STREAMS; k++) {
        koloStream_t stream = f->stream[(first + k) % STREAMS];
        well = went_well(f, wait_for_stream(f, stream), "waiting for a stream") && well;
    }
    return well;
}

static void compare(struct performer *f, const struct held *h)
{
    char name[200], wrong[200];
    int n = members(f, h->o->comm)->n, me = rank_in(f, h->o->comm);

    if (!soak_buffers_wrong(&h->buffers, h->o, n, me, wrong, sizeof wrong)) return;
    soak_operation_text(h->o, name, sizeof name);
    tell(f, SOAK_WRONG, "%s, rank %d of %d: %s", name, me, n, wrong);
}

static void let_go(struct performer *f)
{
    for (int i = 0; i < f->nheld; i++) soak_buffers_free(&f->held[i].buffers);
    f->nheld = 0;
}

/* All earlier work is done, and was right. */
static bool settle(struct performer *f)
{
    bool well = wait_for_all(f);

    for (int i = 0; i < f->nheld && well; i++) compare(f, &f->held[i]);
    if (well) let_go(f);
    return well && f->outcome == SOAK_RUNNING;
}

/* ---- operations ---- */

static ncclResult_t issue(struct performer *f, const struct soak_operation *o)
{
    int n = members(f, o->comm)->n, me = rank_in(f, o->comm);
    struct held *h = &f->held[f->nheld];

    h->o = o;
    if (!soak_buffers_make(&h->buffers, o, n, me, &f->seed)) {
        tell(f, SOAK_FAILED, "no memory for the buffers of the program itself");
        return ncclSystemError;
    }
    f->nheld++;
    return soak_issue(o, n, me, &h->buffers, f->comm[o->comm], f->stream[soak_pick(&f->seed, STREAMS)]);
}

/* Operations in progress on the communicators of a step. */
static ncclResult_t finish_step(struct performer *f, const struct soak_step *s, ncclResult_t rc)
{
    if (rc != ncclInProgress) return rc;
    rc = ncclSuccess;
    for (int i = 0; i < s->operations; i++)
        if (f->comm[s->operation[i].comm]) rc = soak_worse(rc, finish(f->comm[s->operation[i].comm], ncclInProgress));
    return rc;
}

/* In a group; one inside it is closed and opened again between operations now and then. */
static bool operate(struct performer *f, const struct soak_step *s)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < s->depth; i++) rc = soak_worse(rc, ncclGroupStart());
    for (int i = 0; i < s->operations && !rc; i++) {
        if (!f->comm[s->operation[i].comm]) continue;
        if (s->depth > 1 && soak_once_in(&f->seed, 2)) {
            rc = soak_worse(rc, ncclGroupEnd());
            rc = soak_worse(rc, ncclGroupStart());
        }
        rc = soak_worse(rc, issue(f, &s->operation[i]));
        if (!s->depth) rc = finish(f->comm[s->operation[i].comm], rc);
    }
    for (int i = 0; i < s->depth; i++) rc = soak_worse(rc, ncclGroupEnd());
    return went_well(f, finish_step(f, s, rc), "issuing operations");
}

/* ---- aborts ---- */

static void *abort_comm(void *arg)
{
    ncclCommAbort((ncclComm_t)arg);
    return NULL;
}

/* A failure is expected, and names the rank that caused it. */
static void expect_name(struct performer *f, ncclResult_t rc, const char *what)
{
    const char *words = rc && rc != ncclInProgress ? ncclGetLastError(NULL) : NULL;

    if (!words || strstr(words, "abort") || strstr(words, "rank")) return;
    if (f->p->hard && strlen(words) >= 8) return; /* an injected fault of another kind */
    tell(f, SOAK_WRONG, "%s after an abort: result %d, \"%.200s\" names no rank", what, rc, words);
}

static void issue_what_will_be_aborted(struct performer *f, const struct soak_step *s)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < s->operations && !rc; i++) {
        rc = issue(f, &s->operation[i]);
        if (rc == ncclInProgress) rc = ncclSuccess;
    }
    expect_name(f, rc, "issuing");
}

static void end_aborted(struct performer *f, int comm)
{
    ncclResult_t state;

    expect_name(f, ncclCommGetAsyncError(f->comm[comm], &state), "ncclCommGetAsyncError");
    if (f->p->blocking && soak_once_in(&f->seed, 2))
        expect_name(f, ncclCommDestroy(f->comm[comm]), "ncclCommDestroy");
    else
        went_well(f, ncclCommAbort(f->comm[comm]), "ncclCommAbort");
}

/* An abort may hit all unfinished work of others: no rank may be at an earlier step any more. False: some rank will
 * never come. */
static bool meet(struct performer *f, int comm)
{
    const struct soak_comm *c = members(f, comm);

    kl_store_release(&f->note->settled, (uint32_t)f->step);
    for (int r = 0; r < c->n; r++) {
        struct soak_note *other = &f->notes[c->member[r]];
        while (kl_load_acquire(&other->settled) < (uint32_t)f->step) {
            if (kl_load_acquire(&other->outcome) != SOAK_RUNNING) {
                tell(f, SOAK_FAILED, "rank %d has failed before, and does not come to the abort", c->member[r]);
                return false;
            }
            sched_yield();
        }
    }
    return true;
}

/* Some abort while others wait. Afterwards the streams work again. */
static bool abort_some(struct performer *f, const struct soak_step *s)
{
    bool aborts = s->aborters >> rank_in(f, s->comm) & 1;
    pthread_t thread;

    issue_what_will_be_aborted(f, s);
    if (aborts && !s->by_another) ncclCommAbort(f->comm[s->comm]);
    if (aborts && s->by_another && pthread_create(&thread, NULL, abort_comm, f->comm[s->comm])) abort();
    for (int k = 0; k < STREAMS; k++) expect_name(f, wait_for_stream(f, f->stream[k]), "waiting");
    if (aborts && s->by_another) pthread_join(thread, NULL);
    if (!aborts) end_aborted(f, s->comm);
    f->comm[s->comm] = NULL;
    for (int k = 0; k < STREAMS; k++) wait_for_stream(f, f->stream[k]); /* takes the remaining errors */
    let_go(f);
    return wait_for_all(f) && f->outcome == SOAK_RUNNING;
}

/* ---- the program ---- */

static bool do_step(struct performer *f, const struct soak_step *s)
{
    if (s->act == SOAK_OPERATE) return operate(f, s);
    if (!f->comm[s->comm]) return true;
    switch (s->act) {
    case SOAK_SPLIT:
        return split(f, s) && check_child(f, s);
    case SOAK_SHRINK:
        return shrink(f, s) && check_child(f, s);
    case SOAK_LEAVE:
        return leave(f, s->comm, s->finalize);
    default:
        return settle(f) && meet(f, s->comm) && abort_some(f, s);
    }
}

static bool do_steps(struct performer *f)
{
    for (; f->step < f->p->nsteps; f->step++) {
        kl_store_relaxed(&f->note->step, (uint32_t)f->step);
        if (!do_step(f, &f->p->step[f->step])) return false;
        if (f->p->step[f->step].wait && !settle(f)) return false;
    }
    kl_store_relaxed(&f->note->step, (uint32_t)f->step);
    return settle(f);
}

/* Well: in any order. Else at once, so that the others notice. */
static void leave_all(struct performer *f, bool well)
{
    int first = soak_pick(&f->seed, SOAK_COMMS);

    for (int k = 0; k < SOAK_COMMS; k++) {
        int comm = (first + k) % SOAK_COMMS;
        if (!f->comm[comm]) continue;
        if (well)
            leave(f, comm, soak_once_in(&f->seed, 2));
        else
            ncclCommAbort(f->comm[comm]);
    }
}

static bool open_streams(struct performer *f)
{
    for (int k = 1; k < STREAMS; k++) {
        unsigned flags = k == 1 ? KOLO_STREAM_INLINE : KOLO_STREAM_DEFAULT;
        if (!went_well(f, koloStreamCreate(&f->stream[k], flags), "koloStreamCreate")) return false;
    }
    return true;
}

static void close_streams(struct performer *f)
{
    koloStreamSynchronize(NULL);
    for (int k = 1; k < STREAMS; k++)
        if (f->stream[k]) koloStreamDestroy(f->stream[k]);
}

void soak_perform(const struct soak_program *p, int rank, ncclUniqueId id, struct soak_note *notes)
{
    struct performer *f = calloc(1, sizeof *f);

    if (!f) abort();
    *f = (struct performer){
        .p = p, .rank = rank, .notes = notes, .note = &notes[rank], .seed = soak_key(p->seed, 1 + (uint64_t)rank)};
    bool well = join(f, id) && check_comm(f, 0) && choose_device(f) && open_streams(f) && do_steps(f);
    leave_all(f, well);
    close_streams(f);
    let_go(f);
    kl_store_release(&f->note->outcome, (uint32_t)(f->outcome == SOAK_RUNNING ? SOAK_RIGHT : f->outcome));
    free(f);
}
