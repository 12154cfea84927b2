/* SPDX-License-Identifier: Apache-2.0 */
/** profiler_abi.h - the layouts of ncclProfiler_v1 to v7: the table, and descriptors of events (profiler_abi.c). */
#ifndef KL_OS_PROFILER_ABI_H
#define KL_OS_PROFILER_ABI_H

#include "os/profiler.h"

enum { KL_PROFILER_OLDEST = 1, KL_PROFILER_NEWEST = 7, KL_PROFILER_DESCR = 136 }; /* bytes of the largest descriptor */

typedef void kl_profiler_fn(void);

struct kl_profiler_table {
    const char *name;
    kl_profiler_fn *init;
    int (*start)(void *context, void **handle, void *descr);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, void *args);
    int (*finalize)(void *context);
};

/** The bits of the mask that a version knows. */
uint64_t kl_profiler_known(int version);

/** Write the descriptor of a version, whose rank is `rank`; `comm_name` and `comm` for v1 to v3. */
void kl_profiler_describe(int version, const struct kl_profile_descr *d, const struct kl_profiler_place *place,
                          unsigned char descr[KL_PROFILER_DESCR]);

/** Call init. `mask`: the process's. */
int kl_profiler_call_init(int version, const struct kl_profiler_table *t, const struct kl_profiler_place *place,
                          void **context, int *mask);

/** The arguments of a state, 16 bytes. */
void kl_profiler_state_args(int version, enum kl_profile_state state, uint64_t value, unsigned char args[16]);

#endif
