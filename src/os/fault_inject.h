/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fault_inject.h - fault injection for tests: KOLO_CHAOS=SEED, or SEED:delay,short,... for some kinds of faults only; KIND@N
 * injects the fault at its Nth opportunity, and only then.
 *
 * System calls whose failures are rare are made through the wrappers here. Whether a fault is injected follows from the
 * seed, the process's rank (KOLO_RANK), the kind, and the number of earlier opportunities: a single-threaded run
 * repeats exactly. Without the variable a call costs one relaxed load and a branch more. Programs with elevated rights
 * (setuid) ignore it.
 *
 * Threads: any.
 */
#ifndef KL_OS_FAULT_INJECT_H
#define KL_OS_FAULT_INJECT_H

#include "base/atomic.h"
#include "base/param.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum kl_inject_kind {
    KL_INJECT_DELAY,       /* a call begins up to 3 ms late */
    KL_INJECT_SHORT,       /* transfer only a part of the bytes that could be sent or received */
    KL_INJECT_DESCRIPTORS, /* the call fails for lack of descriptors */
    KL_INJECT_MEMORY,      /* the call fails for lack of memory */
    KL_INJECT_DROP,        /* a connection breaks */
    KL_INJECT_KILL,        /* the process dies */
    KL_INJECT_STOP,        /* the process stops (SIGSTOP) for good */
    KL_INJECT_KINDS
};

struct kl_inject_config {
    char chaos[64];
};

extern const struct kl_param_set kl_inject_param_set;

/** 0: not read yet; 1: off; 2: on. */
extern _Atomic uint32_t kl_inject_state;

/** Slow path of kl_inject_is_on: reads the variable at first use. */
bool kl_inject_read_config(void);

/**
 * Disable fault injection in this process, whatever the variable's value: for a launcher, before it starts its ranks.
 */
void kl_inject_disable(void);

static inline bool kl_inject_is_on(void)
{
    return kl_load_relaxed(&kl_inject_state) != 1 && kl_inject_read_config();
}

/** An allocation may fail here: true, with errno. */
bool kl_inject_fail_allocation(void);
static inline bool kl_inject_no_memory(void)
{
    return kl_inject_is_on() && kl_inject_fail_allocation();
}

static inline void *kl_inject_malloc(size_t bytes)
{
    return kl_inject_no_memory() ? NULL : malloc(bytes);
}

static inline void *kl_inject_calloc(size_t n, size_t bytes)
{
    return kl_inject_no_memory() ? NULL : calloc(n, bytes);
}

static inline void *kl_inject_aligned_alloc(size_t alignment, size_t bytes)
{
    return kl_inject_no_memory() ? NULL : aligned_alloc(alignment, bytes);
}

/** A descriptor may be refused here: true, with errno. */
bool kl_inject_refuse_descriptor(void);
static inline bool kl_inject_no_descriptor(void)
{
    return kl_inject_is_on() && kl_inject_refuse_descriptor();
}

/** Before at most `bytes` (> 0) are sent or received on `fd`: returns how many to request. */
size_t kl_inject_before_io(int fd, size_t bytes);

/** The same for a vector of buffers. */
void kl_inject_before_iov(int fd, struct iovec *part, size_t *parts);

/* ---- wrappers of system calls ---- */

static inline ssize_t kl_inject_send(int fd, const void *data, size_t bytes, int flags)
{
    return send(fd, data, kl_inject_is_on() ? kl_inject_before_io(fd, bytes) : bytes, flags);
}

static inline ssize_t kl_inject_recv(int fd, void *data, size_t bytes, int flags)
{
    return recv(fd, data, kl_inject_is_on() ? kl_inject_before_io(fd, bytes) : bytes, flags);
}

/* The message's vector may be modified. */
static inline ssize_t kl_inject_sendmsg(int fd, struct msghdr *message, int flags)
{
    if (kl_inject_is_on()) kl_inject_before_iov(fd, message->msg_iov, &message->msg_iovlen);
    return sendmsg(fd, message, flags);
}

static inline ssize_t kl_inject_recvmsg(int fd, struct msghdr *message, int flags)
{
    if (kl_inject_is_on()) kl_inject_before_iov(fd, message->msg_iov, &message->msg_iovlen);
    return recvmsg(fd, message, flags);
}

static inline ssize_t kl_inject_readv(int fd, struct iovec *part, size_t parts)
{
    if (kl_inject_is_on()) kl_inject_before_iov(fd, part, &parts);
    return readv(fd, part, (int)parts);
}

static inline int kl_inject_socket(int family, int type)
{
    return kl_inject_no_descriptor() ? -1 : socket(family, type, 0);
}

static inline int kl_inject_accept(int listener, int flags)
{
    return kl_inject_no_descriptor() ? -1 : accept4(listener, NULL, NULL, flags);
}

#endif
