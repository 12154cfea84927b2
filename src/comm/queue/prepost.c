/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a task are posted before its turn if no incomplete task before it writes there, and the memory belongs to
 * this process alone (os/pagemap.h), which has no other rank: another rank might write there, and signal that by the very
 * operation in progress.
 *
 * While calls find operations queued, the program does not wait for each: then queueing is better than yielding the core
 * (run.c).
 */
#include "comm/queue/prepost.h"

#include "coll/shm/shm_exchange.h"
#include "comm/queue/launch.h"

_Static_assert((int)KL_PREPOST_MAX <= (int)KL_SHM_EXCHANGE_EARLY, "an exchange allows for so many");

/*
 * CALLS_PER_LOOK   calls that find operations queued: one of so many looks, the others only queue
 * QUEUEING         after a call that found operations queued: so many that find none queue as well, instead of yielding
 * TRY_EACH         else one of so many calls queues, to see whether later calls find it queued
 * *_PAUSE          tasks without posting: after a task of another kind; after a task with unsuitable memory, at first
 *                  and at most
 */
enum { CALLS_PER_LOOK = 8, QUEUEING = 64, TRY_EACH = 16, SHORT_PAUSE = 8, FIRST_PAUSE = 64, LONGEST_PAUSE = 1 << 12 };

/* ---- life ---- */

static bool is_alone(ncclComm_t comm)
{
    for (int r = 0; r < comm->nranks; r++)
        if (r != comm->rank && kl_process_shared_has_rank(comm->shared, r)) return false;
    return true;
}

void kl_prepost_init(ncclComm_t comm)
{
    struct kl_prepost *a = &comm->prepost;
    const bool one_host = comm->nranks > 1 && comm->local_ranks == comm->nranks && comm->one_memory;

    if (!comm->config.ahead || comm->compare.on || comm->devices != &kl_host_devices || !one_host) return;
    a->on = is_alone(comm) && kl_pagemap_init(&a->pagemap);
}

/* ---- in a call ---- */

/* In rooted functions ranks run ahead of others anyway. */
static bool suits(ncclComm_t comm, uint64_t first)
{
    struct kl_prepost *a = &comm->prepost;
    const int func = kl_comm_task(comm, first)->func;

    a->suits = a->on && first >= kl_load_relaxed(&a->pause) && !kl_func_info[func].rooted;
    return a->suits;
}

bool kl_prepost_may_only_queue(ncclComm_t comm, uint64_t first)
{
    struct kl_prepost *a = &comm->prepost;

    if (!suits(comm, first)) return false;
    a->queueing = QUEUEING;
    if (kl_load_relaxed(&a->next) != first || kl_prepost_should_yield(comm)) return false;
    return ++a->calls % CALLS_PER_LOOK;
}

bool kl_prepost_should_queue(ncclComm_t comm)
{
    struct kl_prepost *a = &comm->prepost;

    if (!suits(comm, comm->cursor)) return false;
    if (!a->queueing) return !(++a->tries % TRY_EACH);
    a->queueing--;
    return true;
}

bool kl_prepost_should_yield(ncclComm_t comm)
{
    const struct kl_prepost *a = &comm->prepost;

    return !a->suits || kl_load_relaxed(&a->next) - kl_load_relaxed(&comm->tasks_done) >= KL_PREPOST_MAX - 2;
}

void kl_prepost_queued(struct kl_prepost *a, uint64_t first, uint64_t end, bool follows)
{
    if (!follows) kl_store_relaxed(&a->from, first);
    kl_store_release(&a->until, end); /* pairs with kl_prepost_post */
}

/* ---- destinations of results ---- */

static struct kl_prepost_range range_of(ncclComm_t comm, const struct kl_task *t, const void *at, bool parts)
{
    const size_t bytes = t->count * kl_comm_elem_bytes(comm, t) * (parts ? (size_t)comm->nranks : 1);

    return (struct kl_prepost_range){(uintptr_t)at, (uintptr_t)at + bytes};
}

static bool meet(struct kl_prepost_range a, struct kl_prepost_range b)
{
    return a.at < b.end && b.at < a.end;
}

static void add_result(ncclComm_t comm, uint64_t number)
{
    struct kl_prepost *a = &comm->prepost;
    const struct kl_task *t = kl_comm_task(comm, number);
    struct kl_prepost_range *r = &a->result[number % KL_PREPOST_MAX];

    *r = (struct kl_prepost_range){0};
    if (!kl_task_writes(t, comm->rank)) return;
    *r = range_of(comm, t, t->recv, kl_func_info[t->func].recv_parts);
    if (r->at < a->results.at) a->results.at = r->at;
    if (r->end > a->results.end) a->results.end = r->end;
}

/* Does it send data that stay unchanged until its turn? */
static bool is_settled(ncclComm_t comm, uint64_t number)
{
    struct kl_prepost *a = &comm->prepost;
    const struct kl_task *t = kl_comm_task(comm, number);
    const struct kl_prepost_range s = range_of(comm, t, t->send, kl_func_info[t->func].send_parts);

    if (!kl_task_reads(t, comm->rank) || s.at == s.end) return true;
    for (uint64_t i = comm->cursor; meet(s, a->results) && i < number; i++)
        if (meet(s, a->result[i % KL_PREPOST_MAX])) return false;
    return kl_pagemap_is_private(&a->pagemap, t->send, s.end - s.at);
}

/* ---- posting ---- */

/* The first to be posted. If none was posted yet, it is the one behind the operation in progress. UINT64_MAX: none. */
static uint64_t begin(ncclComm_t comm)
{
    struct kl_prepost *a = &comm->prepost;
    const uint64_t next = kl_load_relaxed(&a->next);

    if (next > comm->begun) return next;
    if (comm->begun - comm->cursor >= KL_PREPOST_MAX) return UINT64_MAX;
    a->results = (struct kl_prepost_range){.at = UINTPTR_MAX};
    for (uint64_t i = comm->cursor; i < comm->begun; i++) add_result(comm, i);
    return comm->begun;
}

/* The longer memory was unsuitable, the more tasks wait for their turns. */
static void pause_from(struct kl_prepost *a, uint64_t number)
{
    if (a->pauses < LONGEST_PAUSE) a->pauses = 2 * a->pauses + FIRST_PAUSE;
    kl_store_relaxed(&a->pause, number + a->pauses);
}

static bool post(ncclComm_t comm, uint64_t number)
{
    struct kl_prepost *a = &comm->prepost;

    if (number < kl_load_relaxed(&a->pause)) return false;
    if (!is_settled(comm, number)) {
        pause_from(a, number);
        return false;
    }
    if (!kl_exec_prepost(comm->exec, kl_comm_task(comm, number), (unsigned)(number - comm->cursor))) {
        if (number == comm->begun)
            kl_store_relaxed(&a->pause, number + SHORT_PAUSE); /* there is room: the task is of another kind */
        return false;
    }
    add_result(comm, number);
    a->pauses = 0;
    return true;
}

bool kl_prepost_post(ncclComm_t comm)
{
    struct kl_prepost *a = &comm->prepost;
    const uint64_t until = kl_load_acquire(&a->until); /* pairs with kl_prepost_queued */

    if (!a->on || kl_load_relaxed(&a->from) > kl_load_acquire(&comm->tasks_done))
        return false; /* pairs with finish_launch */
    if (comm->begun == comm->cursor) return false;
    const uint64_t first = begin(comm);
    uint64_t next = first;
    while (next < until && next - comm->cursor < KL_PREPOST_MAX && post(comm, next)) next++;
    if (next > first || first == comm->begun) kl_store_relaxed(&a->next, next);
    return next > first;
}
