/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fault.h - processor exceptions in kernels: bad accesses end the grid, divisions by zero have a result.
 *
 * Outside of kernels signals go to their previous handlers.
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

/** Install our handlers again, if they were replaced. */
void kl_fault_watch(void);

/** While this thread runs kernels its signals are handled on `stack`, because a fibre's stack may be full. */
void kl_fault_enter(struct kl_fault_guard *guard, void *stack);
void kl_fault_leave(const struct kl_fault_guard *guard);

/** In a handler of SIGFPE: give the division its result and step over it. False: it is none that this can do. */
bool kl_divide_step(void *ucontext);

#endif
