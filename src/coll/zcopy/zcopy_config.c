/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/zcopy_config.h"

#include "device/host/bulk_copy.h"

bool kl_lending_guess(int nranks, size_t bytes)
{
    return 2 * (size_t)nranks * bytes > kl_cache_share_bytes(nranks);
}
