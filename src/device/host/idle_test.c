/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeps last an hour here: if a thread is not woken up, the test never ends. */
#include "device/host/idle.h"

#include "device/host/executor.h"
#include "device/host/stream.h"
#include "tests/kolo_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOUR_S = 3600 };

/* Work that is done when there is a byte in a pipe, or a flag is set. */
struct piece {
    int pipe[2];
    bool told; /* waits for the pipe only */
    _Atomic uint32_t flag, armed;
};

static enum kl_progress await(struct kl_stream *stream, struct kl_work *work)
{
    struct piece *p = work->owner;
    char byte;

    (void)stream;
    if (kl_load_acquire(&p->flag) || read(p->pipe[0], &byte, 1) == 1) return KL_DONE;
    if (!kl_idle_arming() || !kl_idle_on(p->pipe[0])) return KL_STALLED;
    if (p->told) kl_idle_told();
    kl_fetch_add_acq_rel(&p->armed, 1);
    return KL_STALLED;
}

static struct kl_stream *begin(struct piece *p, bool told)
{
    const struct kl_work work = {.progress = await, .owner = p};
    struct kl_stream *s;

    *p = (struct piece){.told = told};
    assert_int_equal(pipe2(p->pipe, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(kl_stream_create(KOLO_STREAM_INLINE, &s), ncclSuccess); /* so that the executor does not run it */
    kl_stream_push(s, &work);
    return s;
}

static void end(struct piece *p, struct kl_stream *s)
{
    assert_int_equal(kl_stream_destroy(s), ncclSuccess);
    close(p->pipe[0]);
    close(p->pipe[1]);
}

static void *wait_for(void *stream)
{
    kl_stream_wait(stream, kl_stream_tail(stream));
    return NULL;
}

static pthread_t waiter_of(struct kl_stream *s)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_for, s), 0);
    return thread;
}

static void await_sleeper(struct piece *p)
{
    while (!kl_load_acquire(&p->armed)) sched_yield();
}

static void put_byte(const struct piece *p)
{
    assert_int_equal(write(p->pipe[1], "", 1), 1);
}

static void a_descriptor_wakes(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct piece p;
        struct kl_stream *s = begin(&p, true);
        pthread_t thread = waiter_of(s);

        await_sleeper(&p);
        put_byte(&p);
        pthread_join(thread, NULL);
        end(&p, s);
    }
}

/* The leader sleeps on its pipe; another thread starts to wait for memory, and is served. */
static void a_second_waiter_wakes_the_leader(void **state)
{
    struct piece first, second;
    struct kl_stream *s = begin(&first, true), *t = begin(&second, false);
    pthread_t leader = waiter_of(s);

    (void)state;
    await_sleeper(&first);
    pthread_t waiter = waiter_of(t);
    await_sleeper(&second); /* by the leader, for the other thread is not leader */
    kl_store_release(&second.flag, 1);
    pthread_join(waiter, NULL);
    put_byte(&first);
    pthread_join(leader, NULL);
    end(&first, s);
    end(&second, t);
}

static void somebody_else_may_finish_the_work(void **state)
{
    struct piece p;
    struct kl_stream *s = begin(&p, true);
    pthread_t thread = waiter_of(s);

    (void)state;
    await_sleeper(&p);
    kl_store_release(&p.flag, 1);
    while (kl_stream_query(s)) sched_yield();
    pthread_join(thread, NULL);
    end(&p, s);
}

/* No thread waits: the executor runs both, and is woken by the second while it sleeps on the first. */
static void pushing_wakes_the_executor(void **state)
{
    struct piece first, second;
    struct kl_stream *s = begin(&first, true), *t = begin(&second, false);
    const struct kl_work work = {.progress = await, .owner = &first};
    struct kl_stream *u;

    (void)state;
    assert_int_equal(kl_stream_create(KOLO_STREAM_DEFAULT, &u), ncclSuccess);
    put_byte(&first);
    kl_stream_wait(s, kl_stream_tail(s));
    kl_store_release(&second.flag, 1);
    kl_stream_wait(t, kl_stream_tail(t));
    kl_store_release(&first.armed, 0);
    kl_stream_push(u, &work);
    await_sleeper(&first);
    /* done at once, by any thread that looks */
    kl_stream_push(s, &(struct kl_work){.progress = await, .owner = &second});
    kl_stream_push(u, &(struct kl_work){.progress = await, .owner = &second});
    while (kl_stream_query(s)) sched_yield();
    put_byte(&first);
    while (kl_stream_pending(u)) sched_yield();
    assert_int_equal(kl_stream_destroy(u), ncclSuccess);
    end(&first, s);
    end(&second, t);
}

/* The child has no threads of its own: the parent wakes it. */
static void a_child_sleeps_on_its_own(void **state)
{
    struct piece *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct kl_stream *s = begin(p, true);
    int status;

    (void)state;
    pid_t pid = fork();
    if (!pid) {
        const struct kl_work work = {.progress = await, .owner = p};
        kl_stream_push(s, &work); /* the parent's executor does not exist in the child */
        wait_for(s);
        _exit(0);
    }
    await_sleeper(p);
    put_byte(p);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    put_byte(p);
    end(p, s);
    munmap(p, sizeof *p);
    a_descriptor_wakes(state);
}

/* The executor sleeps, because a thread waits for the stream; that thread leaves, and the executor continues. */
static void what_a_waiter_leaves_is_done_all_the_same(void **state)
{
    struct piece first, second;
    struct kl_stream *s = begin(&first, true), *t = begin(&second, true), *u;
    const struct kl_work works[] = {{.progress = await, .owner = &first}, {.progress = await, .owner = &second}};

    (void)state;
    for (int i = 0; i < 2; i++) put_byte(i ? &second : &first);
    wait_for(s);
    wait_for(t);
    assert_int_equal(kl_stream_create(KOLO_STREAM_DEFAULT, &u), ncclSuccess);
    for (int i = 0; i < 2; i++) kl_stream_push(u, &works[i]);
    kl_store_release(&u->waiter, 1); /* long enough for the executor to fall asleep */
    while (kl_load_acquire(&kl_executor_state) != KL_EXECUTOR_ASLEEP) sched_yield();
    put_byte(&first);
    kl_stream_wait(u, kl_stream_tail(u) - 1);
    put_byte(&second);
    while (kl_stream_pending(u)) sched_yield();
    assert_int_equal(kl_stream_destroy(u), ncclSuccess);
    end(&first, s);
    end(&second, t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_wakes),
        cmocka_unit_test(a_second_waiter_wakes_the_leader),
        cmocka_unit_test(somebody_else_may_finish_the_work),
        cmocka_unit_test(pushing_wakes_the_executor),
        cmocka_unit_test(what_a_waiter_leaves_is_done_all_the_same),
        cmocka_unit_test(a_child_sleeps_on_its_own),
    };

    kl_idle_longest_ns = (uint64_t)HOUR_S * 1000000000u;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
