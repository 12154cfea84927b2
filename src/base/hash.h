/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hash.h - FNV-1a, 64 bits: a quick hash for tables. Not collision-resistant against chosen input.
 *
 * Source: Fowler, Noll, Vo; draft-eastlake-fnv.
 */
#ifndef KL_BASE_HASH_H
#define KL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KL_HASH_START UINT64_C(0xcbf29ce484222325)

/** Continue `hash` (first KL_HASH_START) with `bytes` of `data`. */
static inline uint64_t kl_hash_add(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
