/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/sleep.h"

#include "base/error.h"
#include "os/wakeup_fd.h"

/* Make helper threads wake the sleeper. */
static ncclResult_t watch_io_threads(struct kl_conn *c)
{
    struct kl_sleeper *s = &c->sleeper;

    if (s->wakeup_fd < 0) s->wakeup_fd = kl_wakeup_open();
    if (s->wakeup_fd < 0) return KL_FAIL_ERRNO("cannot watch a connection");
    kl_wakeup_clear(s->wakeup_fd); /* of the previous sleep */
    /* Threads that move data from now on wake it; earlier moves are seen. */
    (void)kl_swap_acq_rel(&s->asleep, true);
    return kl_watch(c->epoll, &c->watched_wakeup, s->wakeup_fd, EPOLLIN);
}

/* Of lane 0: a sender always watches for its receiver's end, unless messages come over the same socket. */
static uint32_t events_of_first(const struct kl_conn *c)
{
    if (c->sends && c->halved) return c->first ? EPOLLOUT : 0;
    if (c->sends) return c->first ? EPOLLIN | EPOLLOUT : EPOLLIN;
    return c->message || (c->first && !c->headed) ? EPOLLIN : 0;
}

static uint32_t events_of(const struct kl_conn *c, const struct kl_socket_lane *l)
{
    if (kl_lane_is_idle(l)) return 0;
    return c->sends ? EPOLLOUT : EPOLLIN;
}

static ncclResult_t watch_lanes(struct kl_conn *c)
{
    KL_TRY(kl_watch(c->epoll, &c->lane[0].watched, c->lane[0].fd, events_of_first(c)));
    for (int i = 1; i <= c->shape.lanes && !c->shape.threads; i++)
        KL_TRY(kl_watch(c->epoll, &c->lane[i].watched, c->lane[i].fd, events_of(c, &c->lane[i])));
    return ncclSuccess;
}

ncclResult_t kl_conn_sleep_on(struct kl_conn *c, int *fd)
{
    KL_TRY(kl_watch_open(&c->epoll));
    *fd = c->epoll;
    if (c->connect_request) return kl_conn_request_watch(c->connect_request, c->epoll);
    if (c->shape.threads) KL_TRY(watch_io_threads(c));
    return watch_lanes(c);
}

ncclResult_t kl_conn_sleep_again(struct kl_conn *c)
{
    return c->epoll < 0 || c->connect_request ? ncclSuccess : watch_lanes(c);
}
