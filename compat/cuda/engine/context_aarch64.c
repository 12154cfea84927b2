/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/context_machine.h"

#include <stdint.h>
#include <ucontext.h>

/* x19 to x30 and d8 to d15: the callee-saved registers of AAPCS64. The switch returns to x30. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl kl_machine_switch\n"
        ".hidden kl_machine_switch\n"
        ".type kl_machine_switch, %function\n"
        "kl_machine_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    ldr x9, [x1]\n"
        "    mov sp, x9\n"
        ".globl kl_machine_resume\n"
        ".hidden kl_machine_resume\n"
        "kl_machine_resume:\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size kl_machine_switch, . - kl_machine_switch\n");

extern const char kl_machine_resume[] __attribute__((visibility("hidden")));

void kl_machine_prepare(struct kl_machine_context *c, void *low, size_t bytes, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)low + bytes) & ~(uintptr_t)15;
    uintptr_t *sp = (uintptr_t *)(top - 160);

    for (int i = 0; i < 20; i++) sp[i] = 0;
    sp[11] = (uintptr_t)entry; /* x30 */
    c->sp = sp;
}

void kl_machine_divert(void *ucontext, const struct kl_machine_context *to)
{
    mcontext_t *registers = &((ucontext_t *)ucontext)->uc_mcontext;

    registers->sp = (uintptr_t)to->sp;
    registers->pc = (uintptr_t)kl_machine_resume;
}
