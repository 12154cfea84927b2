/* SPDX-License-Identifier: Apache-2.0 */
/** context_machine.h - the part of contexts that each architecture has in a file of its own: context_ARCHITECTURE.c. */
#ifndef KL_ENGINE_CONTEXT_MACHINE_H
#define KL_ENGINE_CONTEXT_MACHINE_H

#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)
/** The registers lie on the stack, below this address. */
struct kl_machine_context {
    void *sp;
};
#else
#include <ucontext.h>

struct kl_machine_context {
    ucontext_t saved;
};
#endif

void kl_machine_prepare(struct kl_machine_context *c, void *low, size_t bytes, void (*entry)(void));
void kl_machine_switch(struct kl_machine_context *from, const struct kl_machine_context *to);
void kl_machine_divert(void *ucontext, const struct kl_machine_context *to);

#endif
