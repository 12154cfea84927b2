/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/function.h"

#include "device/host/idle.h"
#include "device/host/workers.h"

/* Looks at an offered function before a worker gets it: a waiting thread looks at each of its polls, unless it
 * sleeps. */
enum { LOOKS = 4 };

static void work_for(void *arg)
{
    struct kl_stream *s = arg;

    kl_stream_attend(s);
    while (kl_stream_take_function(s, UINT64_MAX))
        while (kl_stream_run(s) == KL_MOVED) continue;
    kl_stream_leave(s);
}

static enum kl_function_state state_of(struct kl_stream *s)
{
    uint64_t word = kl_load_acquire(&s->function); /* pairs with kl_stream_take_function */

    return word / KL_FUNCTION_STATES == s->at ? (enum kl_function_state)(word % KL_FUNCTION_STATES) : KL_FUNCTION_NEW;
}

/* If no thread can be had, it is run here. */
static void hand_over(struct kl_stream *s)
{
    s->function_looks = LOOKS;
    if (!kl_workers_run(work_for, s)) kl_stream_take_function(s, UINT64_MAX);
}

static enum kl_progress progress_function(struct kl_stream *s, struct kl_work *work)
{
    (void)work;
    switch (state_of(s)) {
    case KL_FUNCTION_ENDED:
        return KL_DONE;
    case KL_FUNCTION_NEW:
        s->function_looks = 0;
        kl_store_release(&s->function,
                         kl_function_word(s->at, KL_FUNCTION_OFFERED)); /* pairs with kl_stream_take_function */
        if (!kl_load_relaxed(&s->waiter)) hand_over(s);
        break;
    case KL_FUNCTION_OFFERED:
        if (s->function_looks < LOOKS && ++s->function_looks == LOOKS) hand_over(s);
        break;
    default:
        break;
    }
    if (kl_idle_arming()) kl_idle_told(); /* its end wakes the sleepers */
    return KL_STALLED;
}

struct kl_work kl_function_work(kl_function fn, void *arg)
{
    return (struct kl_work){.progress = progress_function,
                            .arg = {[KL_FUNCTION_FN] = (uintptr_t)fn, [KL_FUNCTION_ARG] = (uintptr_t)arg}};
}
