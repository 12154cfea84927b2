/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/io_threads.h"

#include "base/error.h"
#include "os/wakeup_fd.h"
#include "os/thread.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct io_thread {
    struct kl_io_threads *all;
    struct kl_thread thread;
    int index;
    int wakeup_fd;
};

struct kl_io_threads {
    struct kl_socket_lane *lanes;
    struct kl_socket_shape shape;
    bool sends;
    struct kl_sleeper *sleeper;
    _Atomic bool stop;
    int n; /* that have an eventfd */
    struct io_thread io_thread[KL_SOCKET_MAX_THREADS];
};

/* ---- a thread ---- */

/* Pairs with the exchange of a thread that goes to sleep: it sees earlier moves, or is woken. */
static void wake_sleeper(struct kl_sleeper *sleeper)
{
    if (kl_swap_acq_rel(&sleeper->asleep, false)) kl_wakeup_signal(sleeper->wakeup_fd);
}

/* True: data was moved, or the lane has ended. */
static bool move(struct kl_socket_lane *l, bool sends, bool *waits)
{
    uint64_t before = kl_load_relaxed(&l->taken);

    *waits = kl_lane_move(l, sends);
    return kl_load_relaxed(&l->taken) != before || kl_load_relaxed(&l->flow);
}

/* Move own lanes. Those that wait for their sockets are added to `wait`; returns how many. */
static int move_all(const struct io_thread *m, struct pollfd *wait)
{
    const struct kl_io_threads *all = m->all;
    bool moved = false;
    int n = 0;

    for (int i = m->index; i < all->shape.lanes; i += all->shape.threads) {
        struct kl_socket_lane *l = &all->lanes[i];
        bool waits;

        if (kl_lane_is_idle(l) || kl_load_relaxed(&l->flow)) continue;
        moved |= move(l, all->sends, &waits);
        if (waits) wait[n++] = (struct pollfd){.fd = l->fd, .events = all->sends ? POLLOUT : POLLIN};
    }
    if (moved) wake_sleeper(all->sleeper);
    return n;
}

static void run(void *arg)
{
    const struct io_thread *m = arg;
    struct pollfd wait[1 + KL_SOCKET_MAX_LANES] = {{.fd = m->wakeup_fd, .events = POLLIN}};

    while (!kl_load_acquire(&m->all->stop)) {
        int n = 1 + move_all(m, wait + 1);

        if (poll(wait, (nfds_t)n, -1) <= 0 || !wait[0].revents) continue;
        kl_wakeup_clear(m->wakeup_fd);
    }
}

/* ---- all threads ---- */

static ncclResult_t start(struct kl_io_threads *all, int i)
{
    struct io_thread *m = &all->io_thread[i];
    char name[KL_THREAD_NAME];

    *m = (struct io_thread){.all = all, .index = i};
    m->wakeup_fd = kl_wakeup_open();
    if (m->wakeup_fd < 0) return KL_FAIL_ERRNO("cannot start a thread for a connection");
    all->n++;
    snprintf(name, sizeof name, "kolo net %d", i);
    return kl_thread_start(&m->thread, name, run, m);
}

ncclResult_t kl_io_threads_start(struct kl_socket_lane *lanes, const struct kl_socket_shape *shape, bool sends,
                                 struct kl_sleeper *sleeper, struct kl_io_threads **io_threads)
{
    struct kl_io_threads *all = calloc(1, sizeof *all);
    ncclResult_t rc = ncclSuccess;

    if (!all) return KL_NOMEM("a connection's threads");
    *all = (struct kl_io_threads){.lanes = lanes, .shape = *shape, .sends = sends, .sleeper = sleeper};
    for (int i = 0; i < shape->threads && !rc; i++) rc = start(all, i);
    if (rc)
        kl_io_threads_stop(all);
    else
        *io_threads = all;
    return rc;
}

void kl_io_threads_wake(const struct kl_io_threads *io_threads)
{
    for (int i = 0; i < io_threads->n; i++) kl_wakeup_signal(io_threads->io_thread[i].wakeup_fd);
}

void kl_io_threads_stop(struct kl_io_threads *io_threads)
{
    if (!io_threads) return;
    kl_store_release(&io_threads->stop, true);
    kl_io_threads_wake(io_threads);
    for (int i = 0; i < io_threads->n; i++) {
        kl_thread_join(&io_threads->io_thread[i].thread);
        close(io_threads->io_thread[i].wakeup_fd);
    }
    free(io_threads);
}
