/* SPDX-License-Identifier: Apache-2.0 */
/** lines_wide.h - flagged lines written with one store of 64 bytes each: for lines.c. */
#ifndef KL_TRANSPORT_LINES_WIDE_H
#define KL_TRANSPORT_LINES_WIDE_H

#include <stddef.h>
#include <stdint.h>

/** Write `bytes` of data to lines with `flag`. Only where kl_lines_wide_works. */
void kl_lines_store_wide(void *lines, const unsigned char *data, size_t bytes, uint64_t flag);

#endif
