/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/drain.h"

#include "base/clock.h"
#include "event/loop.h"

enum { OTHERS_MS = 10000, FIRST_LOOKS = 100, FIRST_MS = 1, LATER_MS = 10 };

static void look_again(struct kl_gpu_drain *d)
{
    kl_source_deadline(d->tick, kl_deadline_in_ms(d->looks < FIRST_LOOKS ? FIRST_MS : LATER_MS));
    d->looks += d->looks < FIRST_LOOKS;
}

/* Under lock, which is released. */
static void end(struct kl_gpu_drain *d)
{
    const struct kl_gpu_drain_work work = d->work;
    struct kl_loop *loop = d->loop;
    const bool frees = d->frees;

    d->over = true;
    kl_source_remove(d->tick);
    pthread_mutex_unlock(work.lock);
    if (frees) work.free(work.owner);
    kl_loop_unref(loop);
}

/* A thread that submits may hold the lock, and wait for room in a queue that is emptied here: the loop does not wait for it. */
static void on_tick(void *ctx, uint32_t events)
{
    struct kl_gpu_drain *d = ctx;

    (void)events;
    if (pthread_mutex_trylock(d->work.lock)) {
        look_again(d);
    } else if (d->work.look(d->work.owner, kl_deadline_passed(d->deadline))) {
        end(d);
    } else {
        look_again(d);
        pthread_mutex_unlock(d->work.lock);
    }
}

static bool start(struct kl_gpu_drain *d)
{
    if (kl_loop_ref(&d->loop)) return false;
    if (!kl_loop_add(d->loop, -1, 0, on_tick, d, &d->tick)) return true;
    kl_loop_unref(d->loop);
    return false;
}

bool kl_gpu_drain_claim(struct kl_gpu_drain *d)
{
    return !kl_swap_acq_rel(&d->begun, 1);
}

void kl_gpu_drain_begin(struct kl_gpu_drain *d, const struct kl_gpu_drain_work *work)
{
    d->work = *work;
    d->deadline = kl_deadline_in_ms(OTHERS_MS);
    if (start(d)) {
        kl_source_deadline(d->tick, kl_deadline_in_ms(0));
    } else { /* no thread looks: own streams go on now, others later without this process */
        (void)work->look(work->owner, true);
        d->over = true;
    }
}

bool kl_gpu_drain_takes(struct kl_gpu_drain *d)
{
    d->frees = kl_load_acquire(&d->begun) && !d->over; /* pairs with kl_gpu_drain_claim */
    return d->frees;
}
