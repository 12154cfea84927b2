/* SPDX-License-Identifier: Apache-2.0 */
/** ll_wide.h - flagged lines written with one store of 64 bytes each: for lines.c. */
#ifndef KL_TRANSPORT_LL_WIDE_H
#define KL_TRANSPORT_LL_WIDE_H

#include <stddef.h>
#include <stdint.h>

/** Write `bytes` of data to lines with `flag`. Only where kl_ll_wide_works. */
void kl_ll_store_wide(void *lines, const unsigned char *data, size_t bytes, uint64_t flag);

#endif
