/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/context_machine.h"

#include <stdint.h>
#include <ucontext.h>

/* Six registers and the return address: the callee-saved state of the System V ABI. The control words of the floating-point
 * units are the same in all fibres of a thread. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl kl_machine_switch\n"
        ".hidden kl_machine_switch\n"
        ".type kl_machine_switch, @function\n"
        "kl_machine_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        ".globl kl_machine_resume\n"
        ".hidden kl_machine_resume\n"
        "kl_machine_resume:\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    retq\n"
        ".size kl_machine_switch, . - kl_machine_switch\n");

extern const char kl_machine_resume[] __attribute__((visibility("hidden")));

void kl_machine_prepare(struct kl_machine_context *c, void *low, size_t bytes, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)low + bytes) & ~(uintptr_t)15;
    uintptr_t *sp =
        (uintptr_t *)top - 8; /* the entry function finds the stack as after a call: 8 below a multiple of 16 */

    for (int i = 0; i < 6; i++) sp[i] = 0;
    sp[6] = (uintptr_t)entry;
    sp[7] = 0; /* where it would return to */
    c->sp = sp;
}

void kl_machine_divert(void *ucontext, const struct kl_machine_context *to)
{
    greg_t *registers = ((ucontext_t *)ucontext)->uc_mcontext.gregs;

    registers[REG_RSP] = (greg_t)to->sp;
    registers[REG_RIP] = (greg_t)kl_machine_resume;
}
