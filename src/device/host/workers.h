/* SPDX-License-Identifier: Apache-2.0 */
/**
 * workers.h - threads for what may take long or block: one for each piece, as many at a time as there are pieces.
 *
 * Pieces may wait for each other, so none waits for a thread that another one has. A worker that has nothing to do for a second
 * ends; a process that gives them nothing has none.
 *
 * Threads: any. A forked child has none of its parent's.
 */
#ifndef KL_DEVICE_HOST_WORKERS_H
#define KL_DEVICE_HOST_WORKERS_H

#include <stdbool.h>

/** Call `run(arg)` in a worker. False: there is no thread to be had. */
bool kl_workers_run(void (*run)(void *arg), void *arg);

/** A piece that waits for no other. Its memory is the caller's, until it runs. */
struct kl_worker_errand {
    void (*run)(struct kl_worker_errand *errand);
    struct kl_worker_errand *next;
};

/** Have one worker run all errands of the process, in turn. Where there is no thread to be had they run here. */
void kl_workers_send(struct kl_worker_errand *errand);

#endif
