/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/executor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "device/host/stream.h"
#include "device/host/wait.h"
#include "device/host/idle.h"
#include "os/thread.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TICK_NS = 100000, SLEEP_AFTER_NS = 10000000, LONGEST_TICK = 64 };
enum {
    LONGEST_PAUSE = 8
}; /* ticks between looks while other threads run all work: work is taken at the second look that finds it unmoved */

_Atomic uint32_t kl_executor_state = KL_EXECUTOR_ABSENT;
static _Atomic uint32_t ticks = 1; /* between looks */

static void futex(int op, uint32_t value)
{
    syscall(SYS_futex, &kl_executor_state, op, value, NULL, NULL, 0);
}

/* Is there work that no thread waits for? Reads the slots with the operation that pushes publish them with, and
 * `waiter` with the one that waiters leave with: any work ordered before is found. */
static bool anything_left(void)
{
    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) {
        uint64_t head = kl_load_relaxed(&s->head);
        if (kl_load_seq_cst(&s->slots[head % KL_STREAM_SLOTS].seq) == head + 1 && !kl_load_seq_cst(&s->waiter))
            return true;
    }
    return false;
}

/* Sleep until a push, or until a thread leaves work unfinished. All these operations are sequentially consistent:
 * either the push sees ASLEEP and wakes the executor, or the executor sees its slot and stays awake. */
static void sleep_until_work(void)
{
    kl_swap_seq_cst(&kl_executor_state, KL_EXECUTOR_ASLEEP);
    while (kl_load_relaxed(&kl_executor_state) == KL_EXECUTOR_ASLEEP && !anything_left())
        futex(FUTEX_WAIT_PRIVATE, KL_EXECUTOR_ASLEEP);
    kl_store_relaxed(&kl_executor_state, KL_EXECUTOR_AWAKE);
}

/* Whether a stream is left to the executor: its work has waited since the last look; while `busy`, any pending work. */
static bool is_ours(struct kl_stream *s, bool busy)
{
    uint64_t head = kl_load_relaxed(&s->head);
    bool stale = s->seen == head + 1;

    s->seen = head + 1;
    return (busy || stale) && !kl_load_relaxed(&s->waiter);
}

struct look {
    bool taken, moved;
    uint64_t pushed; /* pieces of work ever pushed */
};

static struct look look_around(bool busy)
{
    struct look l = {.taken = false};

    for (struct kl_stream *s = kl_streams_first(); s; s = s->next) {
        if (!(kl_load_relaxed(&s->flags) & KOLO_STREAM_INLINE)) l.pushed += kl_stream_tail(s);
        if (!kl_stream_pending(s)) {
            s->seen = 0;
            continue;
        }
        if (!is_ours(s, busy)) continue;
        l.taken = true;
        if (kl_stream_run(s) != KL_STALLED)
            l.moved = true;
        else
            kl_idle_stalled();
    }
    return l;
}

static bool look_again(void *look)
{
    struct look *l = look;

    *l = look_around(true);
    return l->moved;
}

/* Until its work may continue, or new work is pushed. */
static struct look rest(struct kl_poll_wait *wait)
{
    struct look l;

    kl_swap_seq_cst(&kl_executor_state, KL_EXECUTOR_RESTING); /* before the looks, as with ASLEEP */
    kl_idle_rest(wait, look_again, &l);
    kl_store_relaxed(&kl_executor_state, KL_EXECUTOR_AWAKE);
    return l;
}

/* Longer and longer pauses while other threads run all work. Each look takes a core from one of them; beside other
 * programs it costs the rest of a time slice, as these run when the executor sleeps again. */
static void pause_between_looks(unsigned *pause)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)TICK_NS * *pause * kl_load_relaxed(&ticks)}, NULL);
    if (*pause < LONGEST_PAUSE) *pause *= 2;
}

static void run_executor(void *unused)
{
    struct kl_poll_wait wait = KL_WAIT_START;
    uint64_t pushed = 0, last_push = kl_now_ns();
    unsigned pause = 1;
    bool busy = false;

    (void)unused;
    for (;;) {
        struct look l = busy && wait.sleep_us ? rest(&wait) : look_around(busy);
        busy = l.taken;
        if (l.moved) kl_wait_reset(&wait);
        if (busy) {
            pause = 1;
            if (!l.moved && !wait.sleep_us) kl_wait_pause(&wait, KL_CORES_SHARED);
            continue;
        }
        if (l.pushed != pushed) {
            pushed = l.pushed;
            last_push = kl_now_ns();
        }
        if (kl_now_ns() - last_push > SLEEP_AFTER_NS && !anything_left())
            sleep_until_work(), pause = 1;
        else
            pause_between_looks(&pause);
    }
}

void kl_executor_share(unsigned ranks_per_cpu)
{
    unsigned wanted = ranks_per_cpu < 1 ? 1 : ranks_per_cpu < LONGEST_TICK ? ranks_per_cpu : LONGEST_TICK;

    if (kl_load_relaxed(&ticks) != wanted) kl_store_relaxed(&ticks, wanted);
}

/* ---- starting ---- */

void kl_executor_forget(void)
{
    kl_store_relaxed(&kl_executor_state, KL_EXECUTOR_ABSENT);
}

void kl_executor_wake(void)
{
    uint32_t before = kl_swap_acq_rel(&kl_executor_state, KL_EXECUTOR_AWAKE);

    if (before == KL_EXECUTOR_ASLEEP) futex(FUTEX_WAKE_PRIVATE, 1);
    if (before == KL_EXECUTOR_RESTING) kl_idle_wake();
    if (before != KL_EXECUTOR_ABSENT) return;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_thread_detached("kolo-executor", run_executor, NULL);
    kl_error_quiet(quiet);
    if (!rc) return;
    /* the next push tries again; waiting threads still run work */
    kl_store_relaxed(&kl_executor_state, KL_EXECUTOR_ABSENT);
    KL_WARN("cannot start the background executor (%s): operations run only when somebody waits for them",
            kl_error_text());
}
