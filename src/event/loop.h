/* SPDX-License-Identifier: Apache-2.0 */
/**
 * loop.h - the process's event loop: one thread that waits for many descriptors and deadlines, and calls back.
 *
 * It is reference-counted, and sleeps without a timeout while there are no events. It is for control traffic: a
 * callback must return soon and not block, as every other source waits meanwhile.
 *
 * A source is a descriptor, a deadline, or both, with one callback. The callback gets the events (EPOLLIN, ...;
 * EPOLLERR and EPOLLHUP also unasked), or 0 when the deadline has passed, which is then disarmed. Events are
 * level-triggered.
 *
 * Fork:     a child gets a loop of its own once it holds one. The inherited loop is dead, and the descriptors of all
 *           its sources are closed in the child, so that the parent's connections do not stay open. Owners check
 *           kl_loop_inherited and only free their memory (remove and drop do just that).
 * Threads:  any thread may call everything. One callback runs at a time, without a lock held.
 * Errors:   ncclSystemError when descriptors, threads or memory run out.
 * Source:   epoll(7); pthread_atfork(3).
 */
#ifndef KL_EVENT_LOOP_H
#define KL_EVENT_LOOP_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct kl_loop;
struct kl_source;

typedef void kl_source_fn(void *ctx, uint32_t events);

/** Take a reference to the process's loop; the first one starts it. */
ncclResult_t kl_loop_ref(struct kl_loop **loop);

/** Take a reference to the loop if it runs; false: it does not. */
bool kl_loop_ref_existing(struct kl_loop **loop);

/** Drop a reference; all own sources have been removed. The last one ends the thread. NULL is fine. */
void kl_loop_unref(struct kl_loop *loop);

/** Is the calling thread the loop's, that is, is this a callback? */
bool kl_loop_inside(const struct kl_loop *loop);

/** Does the loop belong to a process that this one was forked from? */
bool kl_loop_inherited(const struct kl_loop *loop);

/**
 * Add a source. `fd` (-1 for a pure timer) stays the caller's, which removes the source before closing it. The callback
 * may run before this returns; `*source` is set before it does.
 */
ncclResult_t kl_loop_add(struct kl_loop *loop, int fd, uint32_t events, kl_source_fn *fn, void *ctx,
                         struct kl_source **source);

/* At the limit of descriptors a process cannot accept connections, and clients would wait until they time out. So the
 * loop keeps one descriptor in reserve, to accept and answer one client at a time. On the loop's thread only. */

/**
 * accept(2) failed with errno `err`. True: no descriptor was left, and the reserve has been freed for one: accept
 * again.
 */
bool kl_loop_use_reserve_fd(struct kl_loop *loop, int err);

/**
 * The accepted connection is to stay open. True: another reserve was opened. False: close the connection, then call
 * kl_loop_release_reserve_fd.
 */
bool kl_loop_restore_reserve_fd(struct kl_loop *loop);

/** The connection accepted with the reserve has been closed, or none was accepted. */
void kl_loop_release_reserve_fd(struct kl_loop *loop);

/** Change the watched events. 0: none, not even errors. */
void kl_source_watch(struct kl_source *source, uint32_t events);

/** Change the deadline; KL_NO_DEADLINE disarms it. */
void kl_source_deadline(struct kl_source *source, uint64_t deadline);

/**
 * Remove and free. Afterwards the callback does not run and will not run again, except that a callback which removes
 * its own source goes on to its end. The caller holds no lock that the callback may be waiting for. NULL is fine.
 */
void kl_source_remove(struct kl_source *source);

/**
 * Run `fn(ctx)` on the loop's thread, wait for it and return its result: so data of callbacks is created and destroyed
 * without races. The error text of a failure is passed to the caller's thread (base/error.h). In a callback, or in a
 * child of fork, it runs at once. The caller holds no lock that a callback may be waiting for.
 */
ncclResult_t kl_loop_run(struct kl_loop *loop, ncclResult_t (*fn)(void *ctx), void *ctx);

#endif
