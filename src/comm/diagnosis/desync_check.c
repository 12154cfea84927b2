/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/desync_check.h"

#include "base/clock.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/diagnosis/rank_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000u /* ns */

enum {
    FIRST_LOOK_MS = 2000,
    COMPARE_LOOK_MS = 200, /* where calls are compared */
    LAST_LOOK_MS = 60000,
    REPEAT_MS = 500,       /* repeat questions: answers may be lost */
    ASK_INSTEAD_MS = 1500, /* instead of the rank that has asked */
    ASK_LATE_MS = 50,      /* the same, while a rank may still make the call */
    WAIT_LATE_MS = 2000,   /* for that call */
    HOLD_MS = 3000,        /* for all answers */
    LAST_WAIT_MS = 10000,  /* for the rank that asks in this rank's place, after a timeout */
    FRESH_HELD_MS = 200,   /* age up to which another rank's question serves for a held failure; */
    FRESH_MS = 3000,       /* the same for a stall: longer than it waits for answers */
    ANSWER_MS = 2000,      /* for all answers about a stalled operation */
    MOST_BACK = 256        /* earlier calls that are compared */
};

/* ---- this rank's answers ---- */

static void send_calls(ncclComm_t comm, uint64_t question, struct kl_rank_status *s)
{
    uint64_t last = question < s->issued ? question : s->issued;

    s->first = last > KL_RANK_STATUS_CALLS ? last - KL_RANK_STATUS_CALLS + 1 : 1;
    for (uint64_t i = s->first; i <= last; i++) {
        const struct kl_past_call *c = &comm->calls[i % KL_CALLS];
        s->calls[s->ncalls++] = (struct kl_call){kl_load_acquire(&c->what), kl_load_acquire(&c->count)};
    }
    /* A call is overwritten by one KL_CALLS later: a slot far from that is stable. */
    if (kl_load_acquire(&comm->collectives) - s->first >= KL_CALLS - 1) s->ncalls = 0;
}

void kl_desync_check_answer(void *ctx, uint64_t question, unsigned char *answer)
{
    ncclComm_t comm = ctx;
    const struct kl_desync_check *q = &comm->desync;
    uint64_t since = kl_load_acquire(&q->stalled_since); /* pairs with note */
    bool idle = kl_load_relaxed(&comm->tasks_taken) == kl_load_relaxed(&comm->tasks_done) &&
                !kl_load_relaxed(&comm->joins_left);
    struct kl_rank_status s = {.issued = kl_load_acquire(&comm->collectives), .waits_for = -1};

    s.state = idle ? KL_RANK_STATUS_IDLE : since ? KL_RANK_STATUS_STALLED : KL_RANK_STATUS_WORKING;
    if (s.state == KL_RANK_STATUS_STALLED) {
        s.now = (struct kl_call){kl_load_relaxed(&q->what), kl_load_relaxed(&q->count)};
        s.waits_for = kl_load_relaxed(&q->waits_for);
        s.stalled_ms = (kl_now_ns() - since) / MS;
    }
    send_calls(comm, question, &s);
    memcpy(answer, &s, sizeof s);
}

static int awaited(ncclComm_t comm)
{
    return comm->compare.awaited >= 0 ? comm->compare.awaited : kl_exec_blocked_on(comm->exec, false);
}

static void note(ncclComm_t comm, const struct kl_task *t, uint64_t since)
{
    struct kl_desync_check *q = &comm->desync;
    const struct kl_call call = kl_call_of_task(t);

    kl_store_relaxed(&q->what, call.what);
    kl_store_relaxed(&q->count, call.count);
    kl_store_relaxed(&q->waits_for, awaited(comm));
    kl_store_release(&q->stalled_since, since); /* pairs with kl_desync_check_answer */
}

/* ---- the others' answers ---- */

struct tables {
    unsigned char *known;
    struct kl_rank_status *of;
    struct kl_known_call *called;
    struct kl_rank_statuses all;
};

static const char *describe(void *ctx, int rank, char *text, size_t size)
{
    return kl_comm_describe(ctx, rank, text, size);
}

static void free_tables(struct tables *t)
{
    free(t->known);
    free(t->of);
    free(t->called);
}

/* False: another rank's question counts, or memory is short. */
static bool read_tables(ncclComm_t comm, struct tables *t)
{
    size_t n = (size_t)comm->nranks;

    *t = (struct tables){.known = calloc(n, 1), .of = calloc(n, sizeof *t->of), .called = calloc(n, sizeof *t->called)};
    t->all =
        (struct kl_rank_statuses){.n = comm->nranks, .known = t->known, .of = t->of, .describe = describe, .ctx = comm};
    if (t->known && t->of && t->called && kl_bootstrap_query_replies(comm->bootstrap, t->known, (void *)t->of) > 0)
        return true;
    free_tables(t);
    return false;
}

static bool find_difference(ncclComm_t comm, char *text, size_t size, bool *all)
{
    struct tables t;

    *all = true;
    if (!read_tables(comm, &t)) return false;
    bool differ =
        kl_rank_statuses_differ(&t.all, comm->desync.question, t.called, text, size, &comm->desync.culprit, all);
    free_tables(&t);
    return differ;
}

static bool all_have_answered(ncclComm_t comm)
{
    return kl_bootstrap_query_replies(comm->bootstrap, NULL, NULL) == comm->nranks;
}

static ncclResult_t ask(ncclComm_t comm, uint64_t question, uint64_t now)
{
    comm->desync.question = question;
    comm->desync.asked = now;
    return kl_bootstrap_query(comm->bootstrap, question, comm->desync.held ? FRESH_HELD_MS : FRESH_MS);
}

/* The running collective; while messages run, the last one that was called. */
static uint64_t number_of(ncclComm_t comm, const struct kl_task *t)
{
    return kl_func_is_message(t->func) ? kl_load_relaxed(&comm->collectives) : t->number;
}

/* ---- a held failure ---- */

void kl_desync_check_hold(ncclComm_t comm, ncclResult_t rc)
{
    struct kl_desync_check *q = &comm->desync;
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);

    q->held = rc;
    q->begun = kl_now_ns();
    snprintf(q->text, sizeof q->text, "%s", kl_error_text());
    if (ask(comm, number_of(comm, t), q->begun)) q->begun = 0; /* there is nothing to wait for */
}

static ncclResult_t release(struct kl_desync_check *q, ncclResult_t rc, const char *text)
{
    q->held = ncclSuccess;
    q->asked = 0;
    return KL_FAIL(rc, "%s", text);
}

/* The ranks diverged before: look at earlier calls. */
static bool compare_earlier_calls(ncclComm_t comm, uint64_t now)
{
    struct kl_desync_check *q = &comm->desync;
    uint64_t newest = kl_load_relaxed(&comm->collectives);

    if (q->question <= KL_RANK_STATUS_CALLS || q->question + MOST_BACK < newest) return false;
    return !ask(comm, q->question - KL_RANK_STATUS_CALLS, now);
}

/* A lost connection may be a rank that left without the running collective. */
static void blame_departed(ncclComm_t comm)
{
    struct kl_desync_check *q = &comm->desync;
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);
    char what[KL_CALL_TEXT], who[128];
    struct tables all;

    if (q->held != ncclRemoteError || kl_func_is_message(t->func) || !read_tables(comm, &all)) return;
    for (int r = comm->nranks - 1; r >= 0; r--) {
        if (all.known[r] != KL_REPLY_LEFT || all.of[r].issued >= t->number) continue;
        q->culprit = r;
        snprintf(q->text, sizeof q->text, "%s: %s destroyed its communicator without taking part",
                 kl_call_text(kl_call_of_task(t), t->number, what), kl_comm_describe(comm, r, who, sizeof who));
    }
    free_tables(&all);
}

/* Ask again after so long; a rank that waits for another one's question asks later. */
static void ask_after(ncclComm_t comm, uint64_t ms, uint64_t now)
{
    struct kl_desync_check *q = &comm->desync;

    if (kl_bootstrap_query_replies(comm->bootstrap, NULL, NULL) < 0) ms = ASK_INSTEAD_MS;
    if (now - q->asked >= ms * MS && ask(comm, q->question, now)) q->begun = 0; /* then there is nothing to wait for */
}

ncclResult_t kl_desync_check_progress(ncclComm_t comm)
{
    struct kl_desync_check *q = &comm->desync;
    const uint64_t now = kl_now_ns();
    const bool over = now - q->begun >= (uint64_t)HOLD_MS * MS, complete = all_have_answered(comm);
    char text[KL_ERROR_TEXT];
    bool all;

    if (!complete && !over) {
        ask_after(comm, REPEAT_MS, now);
        return ncclInProgress;
    }
    bool differ = find_difference(comm, text, sizeof text, &all);
    if (!all && now - q->begun < (uint64_t)WAIT_LATE_MS * MS) {
        ask_after(comm, ASK_LATE_MS, now);
        return ncclInProgress;
    }
    if (differ) return release(q, ncclInvalidUsage, text);
    if (!over && complete && compare_earlier_calls(comm, now)) return ncclInProgress;
    if (complete) blame_departed(comm);
    return release(q, q->held, q->text);
}

/* ---- timeouts ---- */

static ncclResult_t fail_differing(ncclComm_t comm, bool *failed)
{
    char text[KL_ERROR_TEXT];
    bool all;

    *failed = find_difference(comm, text, sizeof text, &all);
    return *failed ? KL_FAIL(ncclInvalidUsage, "%s", text) : ncclSuccess;
}

static void report(ncclComm_t comm, const struct kl_task *task, char *text, size_t size)
{
    struct tables t;

    comm->desync.culprit = awaited(comm);
    if (read_tables(comm, &t)) {
        comm->desync.culprit = kl_rank_statuses_report(&t.all, comm->rank, task->number, text, size);
        free_tables(&t);
    } else if (comm->desync.culprit >= 0) {
        char who[128];
        snprintf(text, size, "waiting for %s", kl_comm_describe(comm, comm->desync.culprit, who, sizeof who));
    } else {
        snprintf(text, size, "waiting for nobody");
    }
}

static const char *time_text(uint64_t ns, char text[32])
{
    bool seconds = ns >= 1000ull * MS;

    snprintf(text, 32, "%llu %s", (unsigned long long)(ns / (seconds ? 1000ull * MS : MS)), seconds ? "s" : "ms");
    return text;
}

static ncclResult_t give_up(ncclComm_t comm, const struct kl_task *t, uint64_t stalled)
{
    const struct kl_call call = kl_call_of_task(t);
    char what[KL_CALL_TEXT], text[800], time[32];

    report(comm, t, text, sizeof text);
    return KL_FAIL(ncclRemoteError, "%s at rank %d: nothing moved for %s, %s", kl_call_text(call, t->number, what),
                   comm->rank, time_text(stalled, time), text);
}

static void say(ncclComm_t comm, const struct kl_task *t, uint64_t stalled)
{
    const struct kl_call call = kl_call_of_task(t);
    char what[KL_CALL_TEXT], text[800], time[32];

    if (!kl_log_on(KL_LOG_INFO, KL_COLL)) return;
    report(comm, t, text, sizeof text);
    KL_INFO(KL_COLL, "rank %d: %s: nothing moved for %s, %s", comm->rank, kl_call_text(call, t->number, what),
            time_text(stalled, time), text);
}

/* When to ask next: more and more seldom, and when the timeout passes. */
static uint64_t look_after(ncclComm_t comm, const struct kl_task *t, uint64_t stalled)
{
    uint64_t next = 2 * stalled, timeout = t->timeout_ns;
    uint64_t first = (uint64_t)(comm->compare.awaited < 0 ? FIRST_LOOK_MS : COMPARE_LOOK_MS) * MS;

    if (next < first) next = first;
    if (next > stalled + (uint64_t)LAST_LOOK_MS * MS) next = stalled + (uint64_t)LAST_LOOK_MS * MS;
    if (!timeout || next <= timeout) return next;
    return stalled < timeout ? timeout : stalled;
}

/* Of the questions asked: are all answers in that will come? If another rank asks, it reports the result. */
static bool is_answered(ncclComm_t comm, uint64_t now)
{
    int known = kl_bootstrap_query_replies(comm->bootstrap, NULL, NULL);
    unsigned wait_ms = known < 0 ? HOLD_MS : ANSWER_MS;

    return known == comm->nranks || now - comm->desync.asked >= (uint64_t)wait_ms * MS;
}

/* Has the timeout passed? Decide on answers from after it; if another rank has asked, give it some time to report the
 * reason. */
static bool is_over(ncclComm_t comm, const struct kl_task *t, uint64_t stalled, uint64_t now)
{
    uint64_t over = t->timeout_ns, ago = now - comm->desync.asked;

    if (!over || stalled < over + ago) return false;
    return kl_bootstrap_query_replies(comm->bootstrap, NULL, NULL) >= 0 ||
           stalled >= over + (uint64_t)LAST_WAIT_MS * MS;
}

static ncclResult_t judge(ncclComm_t comm, const struct kl_task *t, uint64_t stalled, uint64_t now)
{
    struct kl_desync_check *q = &comm->desync;
    bool failed;
    ncclResult_t rc = fail_differing(comm, &failed);

    if (failed) return rc;
    if (is_over(comm, t, stalled, now)) return give_up(comm, t, stalled);
    if (stalled >= 2 * (uint64_t)FIRST_LOOK_MS * MS) say(comm, t, stalled);
    q->next_look = look_after(comm, t, stalled);
    q->asked = 0;
    return ncclSuccess;
}

ncclResult_t kl_desync_check_stalled(ncclComm_t comm)
{
    struct kl_desync_check *q = &comm->desync;
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);
    const uint64_t now = kl_now_ns();
    uint64_t since = kl_load_relaxed(&q->stalled_since);

    if (!since) {
        since = now;
        q->asked = 0;
        q->next_look = look_after(comm, t, 0);
    }
    note(comm, t, since);
    const uint64_t stalled = now - since;
    if (!q->asked && stalled >= q->next_look) (void)ask(comm, number_of(comm, t), now); /* or not: out of memory */
    return q->asked && is_answered(comm, now) ? judge(comm, t, stalled, now) : ncclSuccess;
}
