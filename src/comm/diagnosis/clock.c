/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/clock.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"
#include "comm/diagnosis/control_msg.h"

enum { ROUND_TRIPS = 16, TIMEOUT_MS = 2000, RETRY_MS = 2, WIRE = 1 + 8 + 8 };

void kl_clock_init(struct kl_clock *clock)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&clock->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&clock->changed, &attr);
    pthread_condattr_destroy(&attr);
}

void kl_clock_fini(struct kl_clock *clock)
{
    pthread_cond_destroy(&clock->changed);
    pthread_mutex_destroy(&clock->lock);
}

void kl_clock_same(struct kl_clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    clock->best = (struct kl_trace_clock){.known = true};
    pthread_mutex_unlock(&clock->lock);
}

struct kl_trace_clock kl_clock_best(struct kl_clock *clock)
{
    pthread_mutex_lock(&clock->lock);
    struct kl_trace_clock best = clock->best;
    pthread_mutex_unlock(&clock->lock);
    return best;
}

/* ---- questions ---- */

static bool say(struct kl_bootstrap *b, int to, enum kl_control_msg what, uint64_t asked, uint64_t answered)
{
    unsigned char wire[WIRE];
    struct kl_writer w = kl_writer_on(wire, sizeof wire);

    kl_put_u8(&w, (uint8_t)what);
    kl_put_u64(&w, asked);
    kl_put_u64(&w, answered);
    return kl_bootstrap_control_send(b, to, wire, sizeof wire);
}

/* Until `ns` of the monotonic clock. Under lock. */
static void wait_until(struct kl_clock *clock, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    pthread_cond_timedwait(&clock->changed, &clock->lock, &t);
}

/* One question after the other: each waits for the answer to the one before. It is repeated while there is no
 * connection yet. */
ncclResult_t kl_clock_measure(struct kl_clock *clock, struct kl_bootstrap *b)
{
    uint64_t deadline = kl_deadline_in_ms(TIMEOUT_MS);
    int asked = 0;

    KL_TRY(kl_bootstrap_watch(b, 0)); /* connects, if there is no connection */
    pthread_mutex_lock(&clock->lock);
    while (clock->answers < ROUND_TRIPS && !kl_deadline_passed(deadline)) {
        if (asked == clock->answers && say(b, 0, KL_CONTROL_MSG_CLOCK_ASK, kl_now_ns(), 0)) asked++;
        wait_until(clock, asked > clock->answers ? deadline : kl_deadline_in_ms(RETRY_MS));
    }
    pthread_mutex_unlock(&clock->lock);
    return ncclSuccess;
}

/* ---- answers ---- */

static void learn(struct kl_clock *clock, uint64_t asked, uint64_t theirs)
{
    uint64_t now = kl_now_ns(), error = (now - asked + 1) / 2;

    pthread_mutex_lock(&clock->lock);
    clock->answers++;
    if (now >= asked && (!clock->best.known || error < clock->best.error_ns))
        clock->best = (struct kl_trace_clock){
            .known = true, .offset_ns = (int64_t)(theirs - (asked + (now - asked) / 2)), .error_ns = error};
    pthread_cond_signal(&clock->changed);
    pthread_mutex_unlock(&clock->lock);
}

void kl_clock_on_message(struct kl_clock *clock, struct kl_bootstrap *b, int from, const void *data, size_t bytes)
{
    struct kl_reader r = kl_reader_on(data, bytes);
    uint8_t what = kl_get_u8(&r);
    uint64_t asked = kl_get_u64(&r), answered = kl_get_u64(&r);

    if (r.bad || r.at != r.end) return;
    if (what == KL_CONTROL_MSG_CLOCK_ASK)
        (void)say(b, from, KL_CONTROL_MSG_CLOCK_ANSWER, asked, kl_now_ns());
    else if (from == 0)
        learn(clock, asked, answered);
}
