/* SPDX-License-Identifier: Apache-2.0 */
/**
 * proxy.h - the process's proxy: one thread that moves data which other ranks have handed to ranks of this process.
 *
 * The first reference starts it, the last one ends it. Its tasks are duties. The proxy polls all duties in turn; if none has
 * made progress for some microseconds it sleeps, until its wakeup descriptor is signalled or a descriptor that a duty named becomes readable.
 * A thread that waits anyway helps: it runs a round itself, so that nothing has to be handed over.
 *
 *     round:    progress of every duty                     by the proxy or by a helper, one at a time
 *     sleep:    rest of every duty -> one more round -> poll(wakeup, descriptors)
 *
 * At exit:  the process waits up to five seconds for duties that outlived their owner, because other ranks rely on them.
 * Fork:     a child has no proxy until it holds one of its own; its copy of the parent's is dead.
 * Threads:  any thread may call everything; a duty's functions run one at a time, under a lock, without blocking.
 * Errors:   ncclSystemError when threads, descriptors or memory run out.
 * Source:   the runtime specification, 4 and 9.3.
 */
#ifndef KL_PROXY_PROXY_H
#define KL_PROXY_PROXY_H

#include "device/host/stream.h"
#include "include/nccl.h"

#include <stdbool.h>

struct kl_proxy;

/** The conditions that end a sleep. */
struct kl_proxy_sleep;

/** A task. The caller owns it; it must stay in place until it is removed or `end` is called. */
struct kl_proxy_task {
    /** Make progress. DONE: the duty is finished; the proxy forgets it and calls `end`. */
    enum kl_progress (*progress)(struct kl_proxy_task *duty);

    /** Before a sleep: make producers of work ring from now on, and name descriptors. Another `progress` follows. */
    void (*rest)(struct kl_proxy_task *duty, struct kl_proxy_sleep *rest);

    void (*end)(struct kl_proxy_task *duty);

    bool orphan; /* its owner is gone: the process waits for it at exit; under the lock */
    struct kl_proxy_task *next;
};

/** Take a reference to the process's proxy, starting it if there is none. */
ncclResult_t kl_proxy_ref(struct kl_proxy **proxy);

/** Drop the reference. Also in a duty's `end`. NULL is fine. */
void kl_proxy_unref(struct kl_proxy *proxy);

void kl_proxy_add(struct kl_proxy *proxy, struct kl_proxy_task *duty);

/** After the return its functions never run again. Not from a duty's own functions. */
void kl_proxy_remove(struct kl_proxy *proxy, struct kl_proxy_task *duty);

/** No duty runs while the lock is held: take it to change data that duties read. Helpers and the proxy wait. */
void kl_proxy_lock(struct kl_proxy *proxy);
void kl_proxy_unlock(struct kl_proxy *proxy);

/** Announce work. Costs a system call if the proxy sleeps. */
void kl_proxy_wake(struct kl_proxy *proxy);

/** The proxy's wakeup descriptor (os/wakeup_fd.h), which other processes may signal too. */
int kl_proxy_wakeup_fd(const struct kl_proxy *proxy);

/** A round by a thread that waits. STALLED: nothing moved; DONE: another thread is running one. */
enum kl_progress kl_proxy_help(struct kl_proxy *proxy);

/** In `rest`: wake up when `fd` is readable; after `ms` at the latest. */
void kl_proxy_sleep_on(struct kl_proxy_sleep *rest, int fd);
void kl_proxy_sleep_at_most(struct kl_proxy_sleep *rest, int ms);

#endif
