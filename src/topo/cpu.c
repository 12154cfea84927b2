/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* The extended family is shifted as in NCCL's files, not added as the processors' manuals say. */
static void read_vendor(struct kl_cpu_facts *cpu)
{
    unsigned eax, ebx, ecx, edx;

    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx)) {
        unsigned text[3] = {ebx, edx, ecx};
        memcpy(cpu->vendor, text, sizeof text);
    }
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return;
    cpu->family = (int)((eax >> 8 & 0xf) + ((eax >> 20 & 0xff) << 4));
    cpu->hypervisor = ecx >> 31 & 1;
    cpu->model = (int)((eax >> 4 & 0xf) + ((eax >> 16 & 0xf) << 4));
}
#else
static void read_vendor(struct kl_cpu_facts *cpu)
{
    (void)cpu;
}
#endif

void kl_cpu_facts_read(struct kl_cpu_facts *cpu)
{
    struct utsname machine;

    *cpu = (struct kl_cpu_facts){0};
    if (uname(&machine)) return;
    const char *arch = machine.machine;
    if (!strcmp(arch, "aarch64")) arch = "arm64";
    if (!strncmp(arch, "ppc64", 5)) arch = "ppc64";
    snprintf(cpu->arch, sizeof cpu->arch, "%.15s", arch);
    read_vendor(cpu);
}
