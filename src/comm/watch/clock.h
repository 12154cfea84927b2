/* SPDX-License-Identifier: Apache-2.0 */
/**
 * clock.h - the offset of this rank's clock from rank 0's: measured at init, if there will be a trace.
 *
 *     we      t0 --\              /--> t1        offset = T - (t0 + t1) / 2, wrong by at most (t1 - t0) / 2
 *     rank 0        \---> T -----/
 *
 * Of some round trips, the fastest counts. Rank 0 answers from its event loop, whether it writes a trace or not. Later
 * drift is not noticed: some ten microseconds in a second, between hosts without a common clock.
 *
 * Threads: kl_clock_measure by the thread of init; kl_clock_hear by the event loop.
 * Source:  Cristian, Probabilistic clock synchronization (Distributed Computing 1989).
 */
#ifndef KL_COMM_WATCH_CLOCK_H
#define KL_COMM_WATCH_CLOCK_H

#include "comm/watch/trace.h"

#include <pthread.h>

struct kl_bootstrap;

struct kl_clock {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* waits by the monotonic clock */
    int answers;            /* under lock, as the next */
    struct kl_trace_clock best;
};

void kl_clock_init(struct kl_clock *clock);
void kl_clock_fini(struct kl_clock *clock);

/** The two have one clock. */
void kl_clock_same(struct kl_clock *clock);

/** Ask rank 0 over the bootstrap. Waits for two seconds at most; without an answer the clock stays unknown. */
ncclResult_t kl_clock_measure(struct kl_clock *clock, struct kl_bootstrap *bootstrap);

/** A control message about clocks has arrived: a question, which is answered, or an answer. */
void kl_clock_hear(struct kl_clock *clock, struct kl_bootstrap *bootstrap, int from, const void *data, size_t bytes);

struct kl_trace_clock kl_clock_best(struct kl_clock *clock);

#endif
