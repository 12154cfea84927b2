/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/watch.h"

#include "base/error.h"
#include "os/fd_limit.h"

#include <errno.h>

ncclResult_t kl_watch_open(int *epoll)
{
    if (*epoll >= 0) return ncclSuccess;
    do *epoll = epoll_create1(EPOLL_CLOEXEC);
    while (*epoll < 0 && kl_fd_limit_make_room(errno));
    return *epoll < 0 ? KL_FAIL_ERRNO("cannot watch a connection") : ncclSuccess;
}

ncclResult_t kl_watch(int epoll, struct kl_watched *watched, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};

    if (watched->added && watched->events == events) return ncclSuccess;
    if (epoll_ctl(epoll, watched->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event))
        return KL_FAIL_ERRNO("cannot watch a connection");
    *watched = (struct kl_watched){.added = true, .events = events};
    return ncclSuccess;
}
