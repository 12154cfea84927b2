/* SPDX-License-Identifier: Apache-2.0 */
/** virtual.h - memory of cuMemCreate behind an address, for other files of the driver. Threads: any. */
#ifndef KL_CU_VIRTUAL_H
#define KL_CU_VIRTUAL_H

#include "compat/cuda/include/cuda.h"

/**
 * The segment behind `bytes` from an address that cuMemMap gave, and their offset in it. The descriptor stays the allocation's.
 * Errors: 1 not mapped, or not all of it in one call; 801 it is memory of the host.
 */
CUresult kl_cu_mapped_segment(const void *address, size_t bytes, int *fd, size_t *offset);

#endif
