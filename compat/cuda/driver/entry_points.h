/* SPDX-License-Identifier: Apache-2.0 */
/** entry_points.h - the driver's functions as a table: name, the version of CUDA that had it first, the function. By name, then version. */
#ifndef KL_CU_ENTRY_POINTS_H
#define KL_CU_ENTRY_POINTS_H

#include <stddef.h>

struct kl_cu_entry {
    const char *name;
    int version;
    int (*function)(void); /* of another type */
};

extern const struct kl_cu_entry kl_cu_entries[];
extern const size_t kl_cu_entry_count;

#endif
