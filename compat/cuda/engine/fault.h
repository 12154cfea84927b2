/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fault.h - what processors raise in kernels: bad accesses end the grid, divisions by zero have a result.
 *
 * Outside of kernels signals go to whoever had them before.
 */
#ifndef KL_ENGINE_FAULT_H
#define KL_ENGINE_FAULT_H

#include <signal.h>
#include <stdbool.h>

/** Bytes of the stack that signals of a worker are handled on. */
#define KL_SIGNAL_STACK (64 << 10)

struct kl_fault_guard {
    stack_t before;
};

/** The process's handlers are ours, if somebody has taken them since. */
void kl_fault_watch(void);

/** While this thread runs kernels its signals are handled on `stack`, since that of a fibre may be what is full. */
void kl_fault_enter(struct kl_fault_guard *guard, void *stack);
void kl_fault_leave(const struct kl_fault_guard *guard);

/** In a handler of SIGFPE: give the division its result and step over it. False: it is none that this can do. */
bool kl_divide_step(void *ucontext);

#endif
