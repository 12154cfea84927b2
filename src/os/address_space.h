/* SPDX-License-Identifier: Apache-2.0 */
/**
 * address_space.h - the size of the address space above a pointer: an upper bound of a buffer's size.
 *
 * Threads: any.
 */
#ifndef KL_OS_ADDRESS_SPACE_H
#define KL_OS_ADDRESS_SPACE_H

#include <stddef.h>

/**
 * Bytes from `at` to the end of user space. The end is the power of two above the process's stack, which Linux places
 * at the top, or above `at` if that is higher still (memory beyond 47 bits, which programs have to request).
 */
size_t kl_address_space_from(const void *at);

#endif
