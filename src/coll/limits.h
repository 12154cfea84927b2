/* SPDX-License-Identifier: Apache-2.0 */
/**
 * limits.h - limits that one call sets to how its collective is done (ncclCollConfig_t). All ranks set the same.
 *
 * Threads: constant once made.
 */
#ifndef KL_COLL_LIMITS_H
#define KL_COLL_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct kl_limits {
    uint32_t algorithms;            /* a bit per enum kl_algo that may be used; 0: all may */
    bool force;                     /* it is an error if none of them serves the call; else all may be used then */
    int min_channels, max_channels; /* at least 1; INT_MAX: no limit */
    int nvls_channels;              /* most of NVLS; INT_MAX: no limit */
    uint64_t tag;                   /* of the program, for logs; decides nothing */
};

/** A number of all fields that decide; never 0. Limits that differ have different ones, but for one in 65,535. */
uint16_t kl_limits_hash(const struct kl_limits *limits);

#endif
