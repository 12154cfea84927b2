/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/context_machine.h"

void kl_machine_prepare(struct kl_machine_context *c, void *low, size_t bytes, void (*entry)(void))
{
    (void)getcontext(&c->saved);
    c->saved.uc_stack.ss_sp = low;
    c->saved.uc_stack.ss_size = bytes;
    c->saved.uc_link = NULL;
    makecontext(&c->saved, entry, 0);
}

void kl_machine_switch(struct kl_machine_context *from, const struct kl_machine_context *to)
{
    (void)swapcontext(&from->saved, &to->saved);
}

void kl_machine_divert(void *ucontext, const struct kl_machine_context *to)
{
    (void)ucontext;
    (void)setcontext(&to->saved);
}
