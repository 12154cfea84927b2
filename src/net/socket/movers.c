/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/movers.h"

#include "base/error.h"
#include "os/bell.h"
#include "os/thread.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct mover {
    struct kl_movers *all;
    struct kl_thread thread;
    int index;
    int bell;
};

struct kl_movers {
    struct kl_socket_lane *lanes;
    struct kl_socket_shape shape;
    bool sends;
    struct kl_sleeper *sleeper;
    _Atomic bool stop;
    int n; /* that have an eventfd */
    struct mover mover[KL_SOCKET_MAX_THREADS];
};

/* ---- a thread ---- */

/* Pairs with the exchange of a thread that goes to sleep: it sees earlier moves, or is woken. */
static void wake_sleeper(struct kl_sleeper *sleeper)
{
    if (kl_swap_acq_rel(&sleeper->asleep, false)) kl_bell_ring(sleeper->bell);
}

/* True: data was moved, or the lane has ended. */
static bool move(struct kl_socket_lane *l, bool sends, bool *waits)
{
    uint64_t before = kl_load_relaxed(&l->taken);

    *waits = kl_lane_move(l, sends);
    return kl_load_relaxed(&l->taken) != before || kl_load_relaxed(&l->flow);
}

/* Move own lanes. Those that wait for their sockets are added to `wait`; returns how many. */
static int move_all(const struct mover *m, struct pollfd *wait)
{
    const struct kl_movers *all = m->all;
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
    const struct mover *m = arg;
    struct pollfd wait[1 + KL_SOCKET_MAX_LANES] = {{.fd = m->bell, .events = POLLIN}};

    while (!kl_load_acquire(&m->all->stop)) {
        int n = 1 + move_all(m, wait + 1);

        if (poll(wait, (nfds_t)n, -1) <= 0 || !wait[0].revents) continue;
        kl_bell_hear(m->bell);
    }
}

/* ---- all threads ---- */

static ncclResult_t start(struct kl_movers *all, int i)
{
    struct mover *m = &all->mover[i];
    char name[KL_THREAD_NAME];

    *m = (struct mover){.all = all, .index = i};
    m->bell = kl_bell_open();
    if (m->bell < 0) return KL_FAIL_ERRNO("cannot start a thread for a connection");
    all->n++;
    snprintf(name, sizeof name, "kolo net %d", i);
    return kl_thread_start(&m->thread, name, run, m);
}

ncclResult_t kl_movers_start(struct kl_socket_lane *lanes, const struct kl_socket_shape *shape, bool sends,
                             struct kl_sleeper *sleeper, struct kl_movers **movers)
{
    struct kl_movers *all = calloc(1, sizeof *all);
    ncclResult_t rc = ncclSuccess;

    if (!all) return KL_NOMEM("a connection's threads");
    *all = (struct kl_movers){.lanes = lanes, .shape = *shape, .sends = sends, .sleeper = sleeper};
    for (int i = 0; i < shape->threads && !rc; i++) rc = start(all, i);
    if (rc)
        kl_movers_stop(all);
    else
        *movers = all;
    return rc;
}

void kl_movers_wake(const struct kl_movers *movers)
{
    for (int i = 0; i < movers->n; i++) kl_bell_ring(movers->mover[i].bell);
}

void kl_movers_stop(struct kl_movers *movers)
{
    if (!movers) return;
    kl_store_release(&movers->stop, true);
    kl_movers_wake(movers);
    for (int i = 0; i < movers->n; i++) {
        kl_thread_join(&movers->mover[i].thread);
        close(movers->mover[i].bell);
    }
    free(movers);
}
