/* SPDX-License-Identifier: Apache-2.0 */
/**
 * chaos.h - faults injected on purpose, for tests: KOLO_CHAOS=SEED, or SEED:delay,short,... for some kinds of them only;
 * KIND@N strikes the Nth time that it could, and only then.
 *
 * System calls that can fail in ways that seldom happen are made through here. Whether one does now follows from the seed, the process's
 * rank (KOLO_RANK), the kind, and how many times that kind could have struck before: what a single thread does repeats exactly.
 * Without the variable a call costs one relaxed load and a branch more. Programs that run with others' rights ignore it.
 *
 * Threads: any.
 */
#ifndef KL_OS_CHAOS_H
#define KL_OS_CHAOS_H

#include "base/atomic.h"
#include "base/param.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum kl_chaos_kind {
    KL_CHAOS_DELAY,       /* a call begins up to 3 ms late */
    KL_CHAOS_SHORT,       /* a part of what could be sent or received now is */
    KL_CHAOS_DESCRIPTORS, /* there is no descriptor to be had */
    KL_CHAOS_MEMORY,      /* there is no memory to be had */
    KL_CHAOS_DROP,        /* a connection breaks */
    KL_CHAOS_KILL,        /* the process dies */
    KL_CHAOS_STOP,        /* it stops, and never goes on */
    KL_CHAOS_KINDS
};

struct kl_chaos_config {
    char chaos[64];
};

extern const struct kl_param_set kl_chaos_param_set;

/** 0: not known yet; 1: off; 2: on. */
extern _Atomic uint32_t kl_chaos_state;

/** Behind kl_chaos_is_on: reads the variable at first use. */
bool kl_chaos_first_use(void);

/** Whatever the variable says: nothing strikes in this process, which is no rank but keeps watch over some. Before they are started. */
void kl_chaos_spare(void);

static inline bool kl_chaos_is_on(void)
{
    return kl_load_relaxed(&kl_chaos_state) != 1 && kl_chaos_first_use();
}

/** An allocation may fail here: true, with errno. */
bool kl_chaos_fail_allocation(void);
static inline bool kl_chaos_no_memory(void)
{
    return kl_chaos_is_on() && kl_chaos_fail_allocation();
}

static inline void *kl_chaos_malloc(size_t bytes)
{
    return kl_chaos_no_memory() ? NULL : malloc(bytes);
}

static inline void *kl_chaos_calloc(size_t n, size_t bytes)
{
    return kl_chaos_no_memory() ? NULL : calloc(n, bytes);
}

static inline void *kl_chaos_aligned_alloc(size_t alignment, size_t bytes)
{
    return kl_chaos_no_memory() ? NULL : aligned_alloc(alignment, bytes);
}

/** A descriptor may be refused here: true, with errno. */
bool kl_chaos_refuse(void);
static inline bool kl_chaos_no_descriptor(void)
{
    return kl_chaos_is_on() && kl_chaos_refuse();
}

/** Before something is sent or received on `fd`, at most `bytes`, more than 0: how much of it to ask for. */
size_t kl_chaos_before_io(int fd, size_t bytes);

/** The same for parts that are sent or received together. */
void kl_chaos_before_io_of(int fd, struct iovec *part, size_t *parts);

/* ---- the calls ---- */

static inline ssize_t kl_chaos_send(int fd, const void *data, size_t bytes, int flags)
{
    return send(fd, data, kl_chaos_is_on() ? kl_chaos_before_io(fd, bytes) : bytes, flags);
}

static inline ssize_t kl_chaos_recv(int fd, void *data, size_t bytes, int flags)
{
    return recv(fd, data, kl_chaos_is_on() ? kl_chaos_before_io(fd, bytes) : bytes, flags);
}

/* What stands in the message's parts may be changed. */
static inline ssize_t kl_chaos_sendmsg(int fd, struct msghdr *message, int flags)
{
    if (kl_chaos_is_on()) kl_chaos_before_io_of(fd, message->msg_iov, &message->msg_iovlen);
    return sendmsg(fd, message, flags);
}

static inline ssize_t kl_chaos_recvmsg(int fd, struct msghdr *message, int flags)
{
    if (kl_chaos_is_on()) kl_chaos_before_io_of(fd, message->msg_iov, &message->msg_iovlen);
    return recvmsg(fd, message, flags);
}

static inline ssize_t kl_chaos_readv(int fd, struct iovec *part, size_t parts)
{
    if (kl_chaos_is_on()) kl_chaos_before_io_of(fd, part, &parts);
    return readv(fd, part, (int)parts);
}

static inline int kl_chaos_socket(int family, int type)
{
    return kl_chaos_no_descriptor() ? -1 : socket(family, type, 0);
}

static inline int kl_chaos_accept(int listener, int flags)
{
    return kl_chaos_no_descriptor() ? -1 : accept4(listener, NULL, NULL, flags);
}

#endif
