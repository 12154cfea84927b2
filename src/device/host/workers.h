/* SPDX-License-Identifier: Apache-2.0 */
/**
 * workers.h - threads for functions that may take long or block: one for each, as many at a time as needed.
 *
 * Functions may wait for each other, so none is queued behind another. A worker that is idle for a second ends; a
 * process without such functions has none.
 *
 * Threads: any. A forked child has none of its parent's.
 */
#ifndef KL_DEVICE_HOST_WORKERS_H
#define KL_DEVICE_HOST_WORKERS_H

#include <stdbool.h>

/** Call `run(arg)` in a worker. False: no thread could be created. */
bool kl_workers_run(void (*run)(void *arg), void *arg);

/** A function that waits for no other. Its memory is the caller's, until it runs. */
struct kl_worker_errand {
    void (*run)(struct kl_worker_errand *errand);
    struct kl_worker_errand *next;
};

/** Have one worker run all errands of the process, in order. If no thread can be created they run here. */
void kl_workers_send(struct kl_worker_errand *errand);

#endif
