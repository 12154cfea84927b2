/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/context.h"

#ifdef KL_ENGINE_ASAN
#include <sanitizer/common_interface_defs.h>

static __thread struct kl_context *came_from;

static void announce(struct kl_context *from, void **fake, const struct kl_context *to)
{
    came_from = from;
    __sanitizer_start_switch_fiber(fake, to->low, to->bytes);
}

static void arrived(void *fake)
{
    const void *low;
    size_t bytes;

    __sanitizer_finish_switch_fiber(fake, &low, &bytes);
    if (came_from && !came_from->low) { /* an OS thread's own stack, which only the sanitizer knows */
        came_from->low = low;
        came_from->bytes = bytes;
    }
}
#else
static void announce(struct kl_context *from, void **fake, const struct kl_context *to)
{
    (void)from;
    (void)fake;
    (void)to;
}

static void arrived(void *fake)
{
    (void)fake;
}
#endif

void kl_context_prepare(struct kl_context *c, void *low, size_t bytes, void (*entry)(void))
{
    kl_context_place(c, low, bytes);
#ifdef KL_ENGINE_ASAN
    c->fake = NULL;
#endif
    kl_machine_prepare(&c->machine, low, bytes, entry);
}

#ifdef KL_ENGINE_ASAN
void kl_context_switch(struct kl_context *from, struct kl_context *to)
{
    announce(from, &from->fake, to);
    kl_machine_switch(&from->machine, &to->machine);
    arrived(from->fake);
}
#endif

void kl_context_leave(struct kl_context *to)
{
    struct kl_machine_context gone;

    announce(NULL, NULL, to);
    kl_machine_switch(&gone, &to->machine);
    __builtin_unreachable();
}

void kl_context_begin(void)
{
    arrived(NULL);
}

void kl_context_divert(void *ucontext, struct kl_context *to)
{
    announce(NULL, NULL, to);
    kl_machine_divert(ucontext, &to->machine);
}
