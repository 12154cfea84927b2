/* SPDX-License-Identifier: Apache-2.0 */
/**
 * loop.h - the process's event loop: one thread that waits for many descriptors and deadlines, and calls back.
 *
 * The first holder starts it and the last one ends it. While nothing happens it sleeps without a timeout. It is for
 * control traffic: a callback does a little without blocking and returns; until then every other source waits.
 *
 * A source is a descriptor, a deadline, or both, with one callback. The callback gets the events that are there
 * (EPOLLIN, ...; EPOLLERR and EPOLLHUP also unasked), or 0 when the deadline has passed, which is then disarmed.
 * Events are level-triggered: they come again until dealt with or no longer watched.
 *
 * Fork:     a child starts afresh, with a loop of its own once it holds one. What it inherited is dead: the descriptors
 *           of all sources are closed in the child, so that it does not keep the parent's connections alive; its
 *           owners see that by kl_loop_inherited and only free their memory (remove and drop work, and do just that).
 * Threads:  any thread may call everything. One callback runs at a time. Callbacks are called without a lock held.
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

/** Get the process's loop, starting it if there is none. */
ncclResult_t kl_loop_hold(struct kl_loop **loop);

/** Get it if there is one; false: there is none. */
bool kl_loop_hold_existing(struct kl_loop **loop);

/** Give it back; all own sources are removed before. The last holder ends the thread. NULL is fine. */
void kl_loop_drop(struct kl_loop *loop);

/** Is the calling thread the loop's, that is, is this a callback? */
bool kl_loop_inside(const struct kl_loop *loop);

/** Does the loop belong to a process that this one was forked from? */
bool kl_loop_inherited(const struct kl_loop *loop);

/**
 * Add a source: `fd` (-1 for a pure timer) stays the caller's, who removes the source before closing it. The callback may
 * run before this returns; `*source` is set before it does.
 */
ncclResult_t kl_loop_add(struct kl_loop *loop, int fd, uint32_t events, kl_source_fn *fn, void *ctx,
                         struct kl_source **source);

/*
 * At the limit of descriptors a process could not accept connections, and callers would wait in vain. So the loop holds one in
 * reserve, with which it accepts and answers one caller at a time. On the loop's thread only.
 */

/** Nothing could be accepted, with errno `err`. True: that was for lack of descriptors, and now there is room for one. */
bool kl_loop_lend_spare(struct kl_loop *loop, int err);

/** What was accepted is to stay open. True: there is another descriptor for the reserve. False: close it, and then forgo it. */
bool kl_loop_return_spare(struct kl_loop *loop);

/** What was accepted with it is closed, or nothing was. */
void kl_loop_forgo_spare(struct kl_loop *loop);

/** Change what is watched. 0: nothing, not even errors. */
void kl_source_watch(struct kl_source *source, uint32_t events);

/** Change the deadline; KL_NO_DEADLINE disarms it. */
void kl_source_deadline(struct kl_source *source, uint64_t deadline);

/**
 * Remove and free. Afterwards the callback does not run and will not run again, except that a callback which removes
 * its own source goes on to its end. The caller holds no lock that the callback may be waiting for. NULL is fine.
 */
void kl_source_remove(struct kl_source *source);

/**
 * Run `fn(ctx)` on the loop's thread and return what it returns: what belongs to callbacks is begun and ended there without a
 * race. The sentence of a failure becomes the caller's (base/error.h). In a callback, or in a child of fork, it runs at once.
 * The caller holds no lock that a callback may be waiting for.
 */
ncclResult_t kl_loop_run(struct kl_loop *loop, ncclResult_t (*fn)(void *ctx), void *ctx);

#endif
