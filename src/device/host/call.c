/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/call.h"

#include "device/host/idle.h"
#include "device/host/workers.h"

/* Looks at what is offered to who waits, before a worker gets it: who waits comes by at each of its polls, unless it sleeps. */
enum { LOOKS = 4 };

static void work_for(void *arg)
{
    struct kl_stream *s = arg;

    kl_stream_attend(s);
    while (kl_stream_take_call(s, UINT64_MAX))
        while (kl_stream_run(s) == KL_MOVED) continue;
    kl_stream_leave(s);
}

static enum kl_call_state state_of(struct kl_stream *s)
{
    uint64_t word = kl_load_acquire(&s->call); /* pairs with kl_stream_take_call */

    return word / KL_CALL_STATES == s->at ? (enum kl_call_state)(word % KL_CALL_STATES) : KL_CALL_NEW;
}

/* In its own time where there is no thread for it. */
static void hand_over(struct kl_stream *s)
{
    s->call_looks = LOOKS;
    if (!kl_workers_run(work_for, s)) kl_stream_take_call(s, UINT64_MAX);
}

static enum kl_progress progress_call(struct kl_stream *s, struct kl_work *work)
{
    (void)work;
    switch (state_of(s)) {
    case KL_CALL_ENDED:
        return KL_DONE;
    case KL_CALL_NEW:
        s->call_looks = 0;
        kl_store_release(&s->call, kl_call_word(s->at, KL_CALL_OFFERED)); /* pairs with kl_stream_take_call */
        if (!kl_load_relaxed(&s->waiter)) hand_over(s);
        break;
    case KL_CALL_OFFERED:
        if (s->call_looks < LOOKS && ++s->call_looks == LOOKS) hand_over(s);
        break;
    default:
        break;
    }
    if (kl_idle_arming()) kl_idle_told(); /* its end rings */
    return KL_STALLED;
}

struct kl_work kl_call_work(kl_call_fn fn, void *arg)
{
    return (struct kl_work){.progress = progress_call,
                            .arg = {[KL_CALL_FN] = (uintptr_t)fn, [KL_CALL_ARG] = (uintptr_t)arg}};
}
