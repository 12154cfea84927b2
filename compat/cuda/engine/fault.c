/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/fault.h"
#include "compat/cuda/engine/worker.h"

#include <pthread.h>
#include <string.h>

static const int watched[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[WATCHED];

/* Nothing of ours: the program's own handler has it, or the default, which meets the same instruction again. */
static void pass_on(int number, siginfo_t *info, void *ucontext)
{
    const struct sigaction *old = before;

    for (int i = 0; i < WATCHED; i++)
        if (watched[i] == number) old = &before[i];
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(number, info, ucontext);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(number);
    } else {
        (void)sigaction(number, old, NULL);
        if (info->si_code <= 0) (void)raise(number); /* sent by a process: no instruction will raise it again */
    }
}

static void on_fault(int number, siginfo_t *info, void *ucontext)
{
    struct kl_worker *w = kl_worker_here;

    if (!w || info->si_code <= 0) {
        pass_on(number, info, ucontext);
        return;
    }
    if (number == SIGFPE && kl_divide_step(ucontext)) return;
    w->fault = number == SIGFPE ? KL_CUDA_LAUNCH : number == SIGILL ? KL_CUDA_INSTRUCTION : KL_CUDA_ADDRESS;
    w->fault_signal = number;
    w->fault_address = info->si_addr;
    kl_context_divert(ucontext, &w->home);
}

void kl_fault_watch(void)
{
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;

    (void)sigemptyset(&ours.sa_mask);
    for (int i = 0; i < WATCHED; i++) {
        (void)sigaction(watched[i], NULL, &now);
        if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault) continue;
        (void)pthread_mutex_lock(&lock);
        (void)sigaction(watched[i], NULL, &now);
        if (!(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)) {
            before[i] = now;
            (void)sigaction(watched[i], &ours, NULL);
        }
        (void)pthread_mutex_unlock(&lock);
    }
}

void kl_fault_enter(struct kl_fault_guard *guard, void *stack)
{
    stack_t mine = {.ss_sp = stack, .ss_size = KL_SIGNAL_STACK};

    (void)sigaltstack(&mine, &guard->before);
}

void kl_fault_leave(const struct kl_fault_guard *guard)
{
    (void)sigaltstack(&guard->before, NULL);
}
