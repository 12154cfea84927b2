/* SPDX-License-Identifier: Apache-2.0 */
/**
 * host_list.h - names of hosts or switches as Slurm writes them: "n[1-8,12],gpu-[001-004]-[a,b]"; several brackets multiply.
 *
 * Order:   as in the list. Numbers keep their leading zeros.
 * Bounds:  KL_HOST_NAME bytes a name, KL_HOSTS names a list.
 * Errors:  ncclInvalidUsage with the reason as a clause, for the caller to name the place.
 * Threads: pure.
 */
#ifndef KL_PLAN_HOST_LIST_H
#define KL_PLAN_HOST_LIST_H

#include "include/nccl.h"

#include <stddef.h>

enum { KL_HOST_NAME = 256, KL_HOSTS = 100000 };

typedef ncclResult_t kl_host_take(void *ctx, const char *name);

/** Call `take` for each name; its failure ends the list and is returned. `place` begins messages: "FILE:LINE". */
ncclResult_t kl_host_list(const char *place, const char *list, kl_host_take *take, void *ctx);

/** Compare names as people count: n2 comes before n10. As strcmp. */
int kl_host_compare(const char *a, const char *b);

#endif
