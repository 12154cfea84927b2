/* SPDX-License-Identifier: Apache-2.0 */
/* Processors trap on a division by zero, and of the smallest integer by -1; GPUs return all bits set, and the smallest integer.
 * The handler decodes the instruction, stores its result, and the thread continues behind it.
 * Source: Intel SDM volume 2, DIV and IDIV: F6 and F7, /6 and /7. */
#include "compat/cuda/engine/fault.h"

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* Registers in the order of their numbers in instructions. */
static const int registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct division {
    const uint8_t *at; /* the next byte to decode */
    greg_t *gregs;
    unsigned rex;
    bool thread_local_memory; /* relative to FS */
    unsigned bytes;           /* of the divisor: 1, 2, 4, 8 */
    bool is_signed;
    uint64_t divisor;
};

static uint64_t value_of(const struct division *d, unsigned number)
{
    return (uint64_t)d->gregs[registers[number]];
}

static int64_t take_displacement(struct division *d, unsigned bytes)
{
    int8_t small;
    int32_t large;

    if (bytes == 1) {
        memcpy(&small, d->at, 1);
        d->at += 1;
        return small;
    }
    memcpy(&large, d->at, 4);
    d->at += 4;
    return large;
}

/* Prefixes and opcode. False: not a division. */
static bool take_opcode(struct division *d)
{
    bool small = false;

    for (;; d->at++) {
        if (*d->at == 0x66)
            small = true;
        else if (*d->at == 0x64)
            d->thread_local_memory = true;
        else if (*d->at != 0x2e && *d->at != 0x36 && *d->at != 0x3e && *d->at != 0x26)
            break;
    }
    if ((*d->at & 0xf0) == 0x40) d->rex = *d->at++;
    if (*d->at != 0xf6 && *d->at != 0xf7) return false;
    d->bytes = *d->at == 0xf6 ? 1 : d->rex & 8 ? 8 : small ? 2 : 4;
    d->at++;
    return true;
}

static uint64_t base_and_index(struct division *d, unsigned mode)
{
    uint8_t sib = *d->at++;
    unsigned base = sib & 7U, index = (sib >> 3 & 7U) | (d->rex & 2U ? 8U : 0);
    uint64_t address = 0;

    if (base == 5 && mode == 0)
        address = (uint64_t)take_displacement(d, 4);
    else
        address = value_of(d, base | (d->rex & 1U ? 8U : 0));
    if (index != 4) address += value_of(d, index) << (sib >> 6);
    return address;
}

static uint64_t segment_base(const struct division *d)
{
    uint64_t base = 0;

    if (d->thread_local_memory)
        __asm__("movq %%fs:0, %0" : "=r"(base)); /* the thread's control block begins with its own address */
    return base;
}

static uint64_t memory_operand(struct division *d, unsigned mode, unsigned rm)
{
    uint64_t address;

    if (rm == 4) {
        address = base_and_index(d, mode);
    } else if (rm == 5 && mode == 0) {
        address = (uint64_t)take_displacement(d, 4);
        address += (uint64_t)(uintptr_t)
                       d->at; /* relative to the next instruction, which follows: a division has no immediate */
    } else {
        address = value_of(d, rm | (d->rex & 1U ? 8U : 0));
    }
    if (mode == 1) address += (uint64_t)take_displacement(d, 1);
    if (mode == 2) address += (uint64_t)take_displacement(d, 4);
    return address + segment_base(d);
}

static bool take_operand(struct division *d)
{
    uint8_t modrm = *d->at++;
    unsigned mode = modrm >> 6, extension = modrm >> 3 & 7U, rm = modrm & 7U;

    if (extension < 6) return false;
    d->is_signed = extension == 7;
    if (mode == 3 && d->bytes == 1 && !d->rex && rm >= 4) {
        d->divisor = value_of(d, rm - 4) >> 8 & 0xff; /* AH, CH, DH, BH */
    } else if (mode == 3) {
        d->divisor = value_of(d, rm | (d->rex & 1U ? 8U : 0));
    } else {
        uint64_t address = memory_operand(d, mode, rm);
        memcpy(&d->divisor, (const void *)(uintptr_t)address,
               d->bytes); /* NOLINT: the instruction has read it before */
    }
    if (d->bytes < 8) d->divisor &= (1ULL << 8 * d->bytes) - 1;
    return true;
}

/* Write the lower part of a register as instructions of that size do. */
static void put(greg_t *to, uint64_t value, unsigned bytes)
{
    uint64_t mask = bytes == 2 ? 0xffff : UINT32_MAX;

    if (bytes == 8)
        *to = (greg_t)value;
    else if (bytes == 4)
        *to = (greg_t)(value & mask); /* the upper half becomes zero */
    else
        *to = (greg_t)(((uint64_t)*to & ~mask) | (value & mask));
}

static void put_results(struct division *d, uint64_t quotient, uint64_t remainder)
{
    if (d->bytes == 1) {
        put(&d->gregs[REG_RAX], (quotient & 0xff) | (remainder & 0xff) << 8, 2);
        return;
    }
    put(&d->gregs[REG_RAX], quotient, d->bytes);
    put(&d->gregs[REG_RDX], remainder, d->bytes);
}

bool kl_divide_step(void *ucontext)
{
    greg_t *gregs = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
    struct division d = {.at = (const uint8_t *)(uintptr_t)gregs[REG_RIP], .gregs = gregs};
    uint64_t minus_one;

    if (!take_opcode(&d) || !take_operand(&d)) return false;
    minus_one = d.bytes == 8 ? UINT64_MAX : (1ULL << 8 * d.bytes) - 1;
    if (d.divisor == 0)
        put_results(&d, UINT64_MAX, UINT64_MAX);
    else if (d.is_signed && d.divisor == minus_one)
        put_results(&d, 1ULL << (8 * d.bytes - 1), 0);
    else
        return false; /* a quotient that does not fit: no compiler's division */
    gregs[REG_RIP] = (greg_t)(uintptr_t)d.at;
    return true;
}
