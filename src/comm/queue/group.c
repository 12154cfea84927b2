/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/group.h"

#include "base/threadtext.h"
#include "comm/queue/captured.h"
#include "comm/queue/gpus.h"
#include "os/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

KL_THREAD_LOCAL struct kl_group_depth kl_group_depth;

static KL_THREAD_LOCAL struct {
    ncclResult_t first_error;
    /* Sorted by name, so that all ranks queue shared objects in one order; equal names in order of joining. */
    ncclComm_t comms, last_comm; /* linked by group_next */
    struct kl_deferred *calls, **last_call;
} group;

/* One, and those behind it. */
static void drop_call(struct kl_deferred *call, bool inherited)
{
    for (struct kl_deferred *behind; call; call = behind) {
        behind = call->behind;
        if (!inherited) call->drop(call);
        free(call);
    }
}

static void drop_calls(struct kl_deferred *calls, bool inherited)
{
    for (struct kl_deferred *next; calls; calls = next) {
        next = calls->next;
        drop_call(calls, inherited);
    }
}

/* A child of fork finds its parent's group, with communicators that are invalid here. */
static void forget_inherited(void)
{
    drop_calls(group.calls, true);
    group.calls = NULL;
    group.comms = group.last_comm = NULL;
    kl_group_depth.depth = 0;
}

ncclResult_t kl_group_start(void)
{
    if (!kl_group_open()) {
        forget_inherited();
        kl_group_depth.generation = kl_process_generation();
        group.first_error = ncclSuccess;
        group.last_call = &group.calls;
    }
    kl_group_depth.depth++;
    return ncclSuccess;
}

ncclResult_t kl_group_store_error(ncclResult_t rc)
{
    if (rc != ncclInProgress && kl_group_open() && !group.first_error) {
        group.first_error = rc;
        char *first = kl_thread_text(KL_TEXT_GROUP);
        if (first) snprintf(first, KL_THREAD_TEXT, "%s", kl_error_text());
    }
    return rc;
}

static void adopt_first_error(void)
{
    const char *first = kl_thread_text(KL_TEXT_GROUP);

    if (first) kl_error_adopt(first);
}

static bool stands_before(ncclComm_t a, ncclComm_t b)
{
    return kl_load_relaxed(&a->name) <= kl_load_relaxed(&b->name);
}

/* Behind all entries that do not come after it; mostly the end. */
static void insert(ncclComm_t comm)
{
    ncclComm_t *link = &group.comms;

    if (group.last_comm && stands_before(group.last_comm, comm)) link = &group.last_comm->group_next;
    while (*link && stands_before(*link, comm)) link = &(*link)->group_next;
    comm->group_next = *link;
    *link = comm;
    if (!comm->group_next) group.last_comm = comm;
}

void kl_group_join(ncclComm_t comm)
{
    if (kl_load_relaxed(&comm->in_group)) return;
    kl_store_relaxed(&comm->group_thread, kl_thread_self());
    kl_store_relaxed(&comm->in_group, KL_GROUP_JOINED); /* in a call; its end publishes it to an abort */
    insert(comm);
}

ncclResult_t kl_group_check_owner(ncclComm_t comm, const char *function)
{
    if (kl_load_relaxed(&comm->group_thread) == kl_thread_self()) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "%s: the communicator of rank %d is in a group of another thread, which has not ended: threads that "
                   "share one take turns",
                   function, comm->rank);
}

/* So that other calls of the communicator may be added (comm/job.h), until the group ends. */
static void note_deferral(const struct kl_deferred *call)
{
    ncclComm_t comm = call->comm;

    if (!comm) return;
    comm->ends_in_group |= call->last;
    kl_store_relaxed(&comm->deferred_by, comm->ends_in_group ? NULL : kl_thread_self());
}

static void forget_deferral(ncclComm_t comm)
{
    if (!comm) return;
    comm->ends_in_group = false;
    kl_store_relaxed(&comm->deferred_by, NULL);
}

static void drop_calls_of(ncclComm_t comm)
{
    for (struct kl_deferred **link = &group.calls, *call; (call = *link);) {
        if (call->comm != comm) {
            link = &call->next;
            continue;
        }
        *link = call->next;
        forget_deferral(comm);
        drop_call(call, false);
    }
    for (group.last_call = &group.calls; *group.last_call;) group.last_call = &(*group.last_call)->next;
}

static void leave(ncclComm_t comm)
{
    ncclComm_t before = NULL, c = group.comms;

    while (c && c != comm) before = c, c = c->group_next;
    if (!c) return;
    if (before)
        before->group_next = c->group_next;
    else
        group.comms = c->group_next;
    if (group.last_comm == c) group.last_comm = before;
    kl_store_relaxed(&comm->in_group, KL_GROUP_NONE);
}

void kl_group_forget(ncclComm_t comm)
{
    if (!kl_group_open()) return;
    drop_calls_of(comm);
    leave(comm);
}

/* The last of those that it stands behind; NULL: it is the first of its communicator. */
static struct kl_deferred *last_before(const struct kl_deferred *call)
{
    struct kl_deferred *c = group.calls;

    if (!call->comm) return NULL;
    while (c && (c->comm != call->comm || c->last != call->last)) c = c->next;
    while (c && c->behind) c = c->behind;
    return c;
}

static void defer(struct kl_deferred *call)
{
    struct kl_deferred *before = last_before(call);

    call->next = call->behind = NULL;
    note_deferral(call);
    if (before) {
        before->behind = call;
        return;
    }
    *group.last_call = call;
    group.last_call = &call->next;
}

/* ---- deferred calls ---- */

/* And those behind it, also when it has failed: other ranks make them as well. */
static void *run_call(void *arg)
{
    for (struct kl_deferred *call = arg; call; call = call->behind) {
        call->rc = call->run(call);
        if (call->rc) snprintf(call->text, sizeof call->text, "%s", kl_error_text());
    }
    return NULL;
}

static void run_and_free(void *arg)
{
    for (struct kl_deferred *call = arg, *behind; call; call = behind) {
        behind = call->behind;
        (void)call->run(call); /* its communicator knows */
        free(call);
    }
}

/* Without a thread it runs here. */
static ncclResult_t start_in_background(struct kl_deferred *call)
{
    if (kl_thread_start_detached("kolo job", run_and_free, call)) run_and_free(call);
    return ncclInProgress;
}

ncclResult_t kl_group_call(struct kl_deferred *call)
{
    if (kl_group_open()) {
        defer(call);
        return ncclSuccess;
    }
    if (call->background) return start_in_background(call);
    ncclResult_t rc = call->run(call);
    free(call);
    return rc;
}

static ncclResult_t start_all_in_background(struct kl_deferred *calls)
{
    for (struct kl_deferred *next; calls; calls = next) {
        next = calls->next;
        start_in_background(calls);
    }
    return ncclInProgress;
}

static int start_thread(struct kl_deferred *call)
{
    pthread_attr_t attributes;

    kl_thread_attributes(&attributes);
    int err = pthread_create(&call->thread, &attributes, run_call, call);
    pthread_attr_destroy(&attributes);
    return err;
}

static void start_calls(struct kl_deferred *calls)
{
    for (struct kl_deferred *c = calls; c; c = c->next) {
        if (!c->next) {
            run_call(c); /* the last one, or the only one, runs here */
            continue;
        }
        int err = start_thread(c);
        c->started = !err;
        if (err) {
            errno = err;
            c->rc = KL_FAIL_ERRNO("cannot start a thread to create a communicator");
            snprintf(c->text, sizeof c->text, "%s", kl_error_text());
            for (struct kl_deferred *d = c; d; d = d->behind) {
                d->rc = c->rc;
                d->drop(d); /* now: the others may wait for it */
            }
        }
    }
}

static ncclResult_t first_failure(const struct kl_deferred *call)
{
    while (call && !call->rc) call = call->behind;
    if (!call) return ncclSuccess;
    kl_error_adopt(call->text);
    return call->rc;
}

/* The last one is undone first. */
static void end_call(struct kl_deferred *call, ncclResult_t rc)
{
    if (!call) return;
    end_call(call->behind, rc);
    if (rc && !call->rc && call->undo) call->undo(call);
    free(call);
}

/* Run all, wait for all; the first failure in the order of the calls counts, and undoes what succeeded. */
static ncclResult_t finish_calls(struct kl_deferred *calls)
{
    ncclResult_t rc = ncclSuccess;

    start_calls(calls);
    for (struct kl_deferred *c = calls; c; c = c->next) {
        if (c->started) pthread_join(c->thread, NULL);
        if (!rc) rc = first_failure(c);
    }
    for (struct kl_deferred *c = calls, *next; c; c = next) {
        next = c->next;
        end_call(c, rc);
    }
    return rc;
}

/* ---- the end ---- */

/*
 * A thread that ends a communicator waits until we have left it. `*end` is the first communicator that was ended
 * already, or that another thread issues to: it is not entered, nor is any behind it.
 */
static ncclResult_t enter_all(ncclComm_t comms, ncclComm_t *end)
{
    struct ncclComm *entered;
    ncclResult_t rc = ncclSuccess;
    ncclComm_t c = comms;

    while (c && !(rc = kl_handle_enter_as_issuer(c->handle, "ncclGroupEnd", &entered))) c = c->group_next;
    *end = c;
    if (rc != ncclInvalidArgument) return rc;
    return KL_FAIL(ncclInternalError, "ncclGroupEnd: another thread aborted or destroyed the communicator of rank %d",
                   c->rank);
}

/* Functions of the program that run meanwhile may issue to them. */
static void run_all_inline(ncclComm_t comms)
{
    for (ncclComm_t c = comms; c; c = c->group_next) kl_store_relaxed(&c->waits_inline, kl_thread_self());
    for (ncclComm_t c = comms; c; c = c->group_next) kl_comm_run_inline(c);
    for (ncclComm_t c = comms; c; c = c->group_next) kl_store_relaxed(&c->waits_inline, NULL);
}

/* Check everything before anything is queued. */
static ncclResult_t launch_all(ncclComm_t comms)
{
    bool captured;

    for (ncclComm_t c = comms; c; c = c->group_next) {
        KL_TRY(kl_comm_failure(c));
        KL_TRY(kl_comm_check_queued(c));
    }
    if (comms && comms->gpus) return kl_comm_run_on_gpus(comms);
    KL_TRY(kl_captured_group(comms, &captured));
    if (captured) return ncclSuccess;
    for (ncclComm_t c = comms; c; c = c->group_next) KL_TRY(kl_comm_make_room(c, c->nqueued));
    for (ncclComm_t c = comms; c; c = c->group_next) kl_comm_launch_queued(c, !comms->group_next);
    run_all_inline(comms);
    return ncclSuccess;
}

static ncclResult_t enter_and_launch(ncclComm_t comms)
{
    ncclComm_t end;
    ncclResult_t rc = enter_all(comms, &end);

    if (!rc) rc = launch_all(comms);
    kl_comm_profile_group_ended(); /* before calls that may end its communicator */
    for (ncclComm_t c = comms; c != end; c = c->group_next)
        kl_handle_leave_as_issuer(c); /* it stays entered: it is in the group */
    return rc;
}

static void leave_all(ncclComm_t comms)
{
    for (ncclComm_t c = comms, next; c; c = next) {
        next = c->group_next;
        kl_comm_drop_queued(c);
        kl_comm_leave_group(c);
    }
}

/* All wait, or none does. */
static ncclResult_t check_mix(const struct kl_deferred *calls, ncclComm_t comms)
{
    bool blocking = false, background = false;

    for (const struct kl_deferred *c = calls; c; c = c->next) *(c->background ? &background : &blocking) = true;
    for (ncclComm_t c = comms; c; c = c->group_next) *(c->blocking ? &blocking : &background) = true;
    if (blocking && background)
        return KL_FAIL(ncclInvalidArgument,
                       "ncclGroupEnd: the group has communicators that are blocking and others that "
                       "are not: give each kind a group of its own");
    return ncclSuccess;
}

/* Remove the calls that come after the operations. */
static struct kl_deferred *take_last(struct kl_deferred **calls)
{
    struct kl_deferred *taken = NULL, **end = &taken;

    for (struct kl_deferred **link = calls, *c; (c = *link);) {
        if (!c->last) {
            link = &c->next;
            continue;
        }
        *link = c->next;
        c->next = NULL;
        *end = c;
        end = &c->next;
    }
    return taken;
}

static ncclResult_t run_blocking(struct kl_deferred *calls, ncclComm_t comms)
{
    struct kl_deferred *last = take_last(&calls);
    ncclResult_t rc = calls ? finish_calls(calls) : ncclSuccess;

    if (!rc) rc = enter_and_launch(comms);
    if (!rc) return last ? finish_calls(last) : ncclSuccess;
    drop_calls(last, false);
    return rc;
}

static ncclResult_t run_group(struct kl_deferred *calls, ncclComm_t comms)
{
    ncclResult_t rc = check_mix(calls, comms);

    if (rc) {
        drop_calls(calls, false);
        return rc;
    }
    if (!calls || !calls->background) return run_blocking(calls, comms);
    rc = enter_and_launch(comms);
    if (!rc) return start_all_in_background(calls);
    drop_calls(calls, false);
    return rc;
}

/* The collected calls of a group, taken from the thread. */
struct collected {
    ncclComm_t comms;
    struct kl_deferred *calls;
    ncclResult_t rc; /* the first error */
};

static ncclResult_t close_group(const char *function, bool *outermost, struct collected *c)
{
    if (!kl_group_open()) {
        bool inherited = kl_group_depth.depth > 0;
        forget_inherited();
        return KL_FAIL(ncclInvalidUsage, "%s without ncclGroupStart%s", function,
                       inherited ? ": the group was opened by the process that this one was forked from" : "");
    }
    *outermost = !--kl_group_depth.depth;
    if (!*outermost) return ncclSuccess;
    *c = (struct collected){.comms = group.comms, .calls = group.calls, .rc = group.first_error};
    for (const struct kl_deferred *call = group.calls; call; call = call->next) forget_deferral(call->comm);
    group.comms = group.last_comm = NULL;
    group.calls = NULL;
    return ncclSuccess;
}

ncclResult_t kl_group_end(void)
{
    struct collected c;
    bool outermost;

    KL_TRY(close_group("ncclGroupEnd", &outermost, &c));
    if (!outermost) return ncclSuccess;
    kl_comm_profile_group_ends();
    if (c.rc) {
        drop_calls(c.calls, false);
        adopt_first_error();
    } else {
        c.rc = run_group(c.calls, c.comms);
    }
    kl_comm_profile_group_ended();
    leave_all(c.comms);
    return c.rc;
}

/* Communicators that another thread has ended are not accessed. */
static float longest(ncclComm_t comms)
{
    float most = 0;

    for (ncclComm_t c = comms; c && kl_handle_try(c->handle); c = c->group_next) {
        float time = kl_comm_time_queued(c);
        if (time > most) most = time;
        kl_handle_leave(c);
    }
    return most;
}

ncclResult_t kl_group_simulate_end(float *time_us)
{
    struct collected c;
    bool outermost;

    KL_TRY(close_group("ncclGroupSimulateEnd", &outermost, &c));
    if (!outermost) return ncclSuccess;
    drop_calls(c.calls, false);
    kl_comm_profile_group_ended();
    if (c.rc)
        adopt_first_error();
    else
        *time_us = longest(c.comms);
    leave_all(c.comms);
    return c.rc;
}
