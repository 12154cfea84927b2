/* SPDX-License-Identifier: Apache-2.0 */
/**
 * context.h - saved execution contexts, for cheap fibres.
 *
 * A switch saves the registers that a call preserves and changes the stack: no system call, no signal mask. A context belongs to one OS
 * thread for good, so that compilers may keep addresses of thread-local variables.
 */
#ifndef KL_ENGINE_CONTEXT_H
#define KL_ENGINE_CONTEXT_H

#include "compat/cuda/engine/context_machine.h"

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define KL_ENGINE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KL_ENGINE_ASAN 1
#endif
#endif

/** Where to continue. `low` and `bytes` are the stack, for sanitizers; NULL and 0 until a thread's own is known. */
struct kl_context {
    struct kl_machine_context machine;
#ifdef KL_ENGINE_ASAN
    const void *low;
    size_t bytes;
    void *fake;
#endif
};

/** The running context, which is to be saved in `c`, has this stack. */
static inline void kl_context_place(struct kl_context *c, const void *low, size_t bytes)
{
#ifdef KL_ENGINE_ASAN
    c->low = low;
    c->bytes = bytes;
#else
    (void)c;
    (void)low;
    (void)bytes;
#endif
}

/** Let `c` begin with `entry`, which never returns, on a stack of `bytes` at `low`. */
void kl_context_prepare(struct kl_context *c, void *low, size_t bytes, void (*entry)(void));

/** Save the context in `from` and continue in `to`; returns when a later switch continues `from`. */
#ifdef KL_ENGINE_ASAN
void kl_context_switch(struct kl_context *from, struct kl_context *to);
#else
static inline void kl_context_switch(struct kl_context *from, struct kl_context *to)
{
    kl_machine_switch(&from->machine, &to->machine);
}
#endif

/** Continue in `to`, and never come back. */
void kl_context_leave(struct kl_context *to) __attribute__((noreturn));

/** To be called first by an entry function. */
void kl_context_begin(void);

/** In a signal handler: when it returns, the thread continues in `to`, not where the signal met it. */
void kl_context_divert(void *ucontext, struct kl_context *to);

#endif
