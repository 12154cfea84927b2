/* SPDX-License-Identifier: Apache-2.0 */
#include "os/address_space.h"

#include <stdint.h>
#include <sys/auxv.h>

/* The smallest power of two above `at`; 0 if it exceeds 64 bits. */
static uintptr_t end_above(uintptr_t at)
{
    return at >> 63 ? 0 : (uintptr_t)2 << (63 - __builtin_clzll(at | 1));
}

size_t kl_address_space_from(const void *at)
{
    const uintptr_t stack = getauxval(AT_RANDOM), from = (uintptr_t)at;

    return end_above(from > stack ? from : stack) - from;
}
