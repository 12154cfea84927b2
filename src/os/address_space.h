/* SPDX-License-Identifier: Apache-2.0 */
/**
 * address_space.h - how far pointers reach: the memory that a buffer can have at most.
 *
 * Threads: any.
 */
#ifndef KL_OS_ADDRESS_SPACE_H
#define KL_OS_ADDRESS_SPACE_H

#include <stddef.h>

/**
 * Bytes from `at` to the end of what user space addresses. The end is the power of two above the process's stack, which Linux
 * places at the top, or above `at` where that is higher still (memory beyond 47 bits, which programs have to ask for).
 */
size_t kl_address_space_from(const void *at);

#endif
