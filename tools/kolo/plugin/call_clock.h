/* SPDX-License-Identifier: Apache-2.0 */
/**
 * call_clock.h - the time of a call without the time in which its thread was ready to run and had no core
 *
 * A call that sleeps counts whole; one that another program keeps from the core does not. The kernel's account of a
 * thread is read (Linux, /proc/self/task/TID/schedstat, nanoseconds); without it the clock's time counts.
 * A clock belongs to one thread.
 */
#ifndef KOLO_TOOL_PLUGIN_CALL_CLOCK_H
#define KOLO_TOOL_PLUGIN_CALL_CLOCK_H

#include <stdint.h>

struct kl_call_clock {
    int account; /* descriptor of the thread's account; -1: there is none */
    uint64_t begun_ns, waited_ns;
};

/** A clock for the calling thread, and its end. */
void kl_call_clock_open(struct kl_call_clock *clock);
void kl_call_clock_close(struct kl_call_clock *clock);

/** Before a call; after it: how long it took, in ns. */
void kl_call_clock_begin(struct kl_call_clock *clock);
uint64_t kl_call_clock_took(struct kl_call_clock *clock);

#endif
