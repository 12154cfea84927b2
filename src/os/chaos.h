/* SPDX-License-Identifier: Apache-2.0 */
/**
 * chaos.h - fault injection for tests: KOLO_CHAOS=SEED, or SEED:delay,short,... for some kinds of faults only; KIND@N
 * injects the fault at its Nth opportunity, and only then.
 *
 * System calls whose failures are rare are made through the wrappers here. Whether a fault is injected follows from the
 * seed, the process's rank (KOLO_RANK), the kind, and the number of earlier opportunities: a single-threaded run
 * repeats exactly. Without the variable a call costs one relaxed load and a branch more. Programs with elevated rights
 * (setuid) ignore it.
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
    KL_CHAOS_SHORT,       /* transfer only a part of the bytes that could be sent or received */
    KL_CHAOS_DESCRIPTORS, /* the call fails for lack of descriptors */
    KL_CHAOS_MEMORY,      /* the call fails for lack of memory */
    KL_CHAOS_DROP,        /* a connection breaks */
    KL_CHAOS_KILL,        /* the process dies */
    KL_CHAOS_STOP,        /* the process stops (SIGSTOP) for good */
    KL_CHAOS_KINDS
};

struct kl_chaos_config {
    char chaos[64];
};

extern const struct kl_param_set kl_chaos_param_set;

/** 0: not read yet; 1: off; 2: on. */
extern _Atomic uint32_t kl_chaos_state;

/** Slow path of kl_chaos_is_on: reads the variable at first use. */
bool kl_chaos_first_use(void);

/**
 * Disable fault injection in this process, whatever the variable's value: for a launcher, before it starts its ranks.
 */
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

/** Before at most `bytes` (> 0) are sent or received on `fd`: returns how many to request. */
size_t kl_chaos_before_io(int fd, size_t bytes);

/** The same for a vector of buffers. */
void kl_chaos_before_io_of(int fd, struct iovec *part, size_t *parts);

/* ---- wrappers of system calls ---- */

static inline ssize_t kl_chaos_send(int fd, const void *data, size_t bytes, int flags)
{
    return send(fd, data, kl_chaos_is_on() ? kl_chaos_before_io(fd, bytes) : bytes, flags);
}

static inline ssize_t kl_chaos_recv(int fd, void *data, size_t bytes, int flags)
{
    return recv(fd, data, kl_chaos_is_on() ? kl_chaos_before_io(fd, bytes) : bytes, flags);
}

/* The message's vector may be modified. */
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
