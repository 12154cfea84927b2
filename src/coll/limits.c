/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/limits.h"

#include "base/hash.h"

uint16_t kl_limits_hash(const struct kl_limits *l)
{
    const int64_t decides[] = {l->algorithms, l->force, l->min_channels, l->max_channels, l->nvls_channels};
    const uint64_t hash = kl_hash_add(KL_HASH_START, decides, sizeof decides);

    return (uint16_t)(1 + hash % UINT16_MAX);
}
