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

/** With a default stream of each thread `own` takes the place of `function`. */
struct kl_cu_own_entry {
    int (*function)(void), (*own)(void);
};

extern const struct kl_cu_own_entry kl_cu_own_entries[];
extern const size_t kl_cu_own_count;

extern const struct kl_cu_entry kl_cu_entries[];
extern const size_t kl_cu_entry_count;

#endif
