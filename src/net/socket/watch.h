/* SPDX-License-Identifier: Apache-2.0 */
/**
 * watch.h - the descriptor to sleep on: an epoll instance over the sources of progress, updated before each sleep.
 * Events are level-triggered, so that earlier ones are not missed.
 *
 * Threads:  one at a time, except for sleeping on the descriptor.
 */
#ifndef KL_NET_SOCKET_WATCH_H
#define KL_NET_SOCKET_WATCH_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/** State of one descriptor in an epoll instance. Zero it when the descriptor is closed. */
struct kl_watched {
    bool added;
    uint32_t events;
};

/** Open the instance unless it is (`*epoll` is then not -1). */
ncclResult_t kl_watch_open(int *epoll);

/** Watch `fd` for `events`; errors and hang-ups come in any case. */
ncclResult_t kl_watch(int epoll, struct kl_watched *watched, int fd, uint32_t events);

#endif
