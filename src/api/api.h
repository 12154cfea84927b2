/* SPDX-License-Identifier: Apache-2.0 */
/**
 * api.h - the other name of a public function: pncclX, the same body under a name that nobody replaces.
 *
 * A tool that watches calls defines its own ncclX, which is weak here, and calls pncclX.
 */
#ifndef KL_API_API_H
#define KL_API_API_H

/** Stands before the definition of `function`, which is in the same file. */
#define KL_PNCCL(function)                                                                                             \
    extern __typeof__(function) function __attribute__((weak));                                                        \
    extern __typeof__(function) p##function __attribute__((alias(#function)))

#endif
