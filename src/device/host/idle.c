/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/idle.h"

#include "base/threadlocal.h"
#include "os/wakeup_fd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { WOKEN_AT_ONCE = 64 }; /* descriptors handled per wake-up */

_Atomic uint32_t kl_idle_resting;
uint64_t kl_idle_longest_ns = 20000000;

/* Process-wide: the descriptors that all resting threads sleep on. -1: not made. */
static struct {
    pthread_mutex_t lock;
    _Atomic int epoll, wakeup_fd;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .epoll = -1, .wakeup_fd = -1};

/* State of a look at the work before a sleep. */
struct look {
    bool resting, arming;
    /* pieces of work that stalled, and those of them that registered; descriptors armed */
    unsigned stalled, told, armed;
};

static KL_THREAD_LOCAL struct look now;

/* ---- descriptors ---- */

static bool open_wakeup_fd(int epoll)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};
    int wakeup_fd = kl_wakeup_open();

    if (wakeup_fd < 0) return false;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup_fd, &event)) {
        close(wakeup_fd);
        return false;
    }
    kl_store_release(&process.wakeup_fd, wakeup_fd);
    return true;
}

static int make_epoll(void)
{
    pthread_mutex_lock(&process.lock);
    int epoll = kl_load_relaxed(&process.epoll);
    if (epoll < 0) {
        epoll = epoll_create1(EPOLL_CLOEXEC);
        if (epoll >= 0 && !open_wakeup_fd(epoll)) {
            close(epoll);
            epoll = -1;
        }
        kl_store_release(&process.epoll, epoll); /* published after the wakeup descriptor */
    }
    pthread_mutex_unlock(&process.lock);
    return epoll;
}

static int epoll_of_process(void)
{
    int epoll = kl_load_acquire(&process.epoll);

    return epoll < 0 ? make_epoll() : epoll;
}

void kl_idle_after_fork(void)
{
    if (kl_load_relaxed(&process.epoll) >= 0) {
        close(kl_load_relaxed(&process.epoll));
        close(kl_load_relaxed(&process.wakeup_fd));
    }
    pthread_mutex_init(&process.lock, NULL);
    kl_store_relaxed(&process.epoll, -1);
    kl_store_relaxed(&process.wakeup_fd, -1);
    kl_store_relaxed(&kl_idle_resting, 0);
    now = (struct look){.arming = false};
}

void kl_idle_wake(void)
{
    int wakeup_fd =
        now.resting ? -1 : kl_load_acquire(&process.wakeup_fd); /* if this thread is the resting one, it is awake */

    if (wakeup_fd >= 0) kl_wakeup_signal(wakeup_fd);
}

/* ---- stalled work ---- */

bool kl_idle_arming(void)
{
    return now.arming;
}

bool kl_idle_wait_fd(int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};
    int epoll = now.arming ? epoll_of_process() : -1;

    if (epoll < 0) return false;
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) && (errno != ENOENT || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)))
        return false;
    now.armed++;
    return true;
}

void kl_idle_registered(void)
{
    now.told++;
}

void kl_idle_stalled(void)
{
    now.stalled++;
}

/* ---- sleeping ---- */

/* Consume the wake-ups, each of which counts once. Threads that rest beside this one have been woken as well. */
static void take_wakeups(int epoll)
{
    struct epoll_event event[WOKEN_AT_ONCE];
    int n = epoll_wait(epoll, event, WOKEN_AT_ONCE, 0);

    for (int i = 0; i < n; i++) {
        if (event[i].data.fd == -1) kl_wakeup_clear(kl_load_relaxed(&process.wakeup_fd));
    }
}

static void sleep_on_descriptors(struct kl_poll_wait *wait, bool all_told)
{
    uint64_t ns = all_told ? kl_idle_longest_ns : (uint64_t)wait->sleep_us * 1000;
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    struct pollfd p = {.fd = kl_load_relaxed(&process.epoll), .events = POLLIN};

    kl_wait_slept();
    wait->woken = ppoll(&p, 1, &t, NULL) > 0;
    if (wait->woken)
        take_wakeups(p.fd);
    else
        kl_wait_lengthen(wait);
}

bool kl_idle_rest(struct kl_poll_wait *wait, bool (*look)(void *), void *ctx)
{
    kl_fetch_add_seq_cst(&kl_idle_resting, 1);
    now = (struct look){.resting = true,
                        .arming = !wait->woken}; /* after a useless wake-up, take a nap that descriptors cannot end */
    bool moved = look(ctx);
    const struct look got = now;
    bool all_told = got.told == got.stalled;
    now.arming = false;
    bool wakeable = got.armed || (got.told && all_told && epoll_of_process() >= 0);
    if (!moved && wakeable) moved = look(ctx);
    if (!moved && wakeable && (all_told || wait->sleep_us)) sleep_on_descriptors(wait, all_told);
    now.resting = false;
    kl_fetch_sub_acq_rel(&kl_idle_resting, 1);
    if (moved || wakeable || !wait->sleep_us) return moved;
    wait->woken = false;
    kl_wait_pause(wait, KL_CORES_SHARED);
    return false;
}
