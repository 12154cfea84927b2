/* SPDX-License-Identifier: Apache-2.0 */
/**
 * start.h - starts the ranks of a library that has no launcher: forked processes, or threads of one process.
 */
#ifndef KOLO_BENCH_START_H
#define KOLO_BENCH_START_H

#include "bench/collectives/area.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Run `rank(end, context)` in `nranks` processes. Returns the exit status for this one: 0 when all have returned; when one ends
 * otherwise, the others are killed.
 */
int start_processes(int nranks, void (*rank)(struct area_end *, void *context), void *context);
/** The same in threads; one that fails ends the process. */
int start_threads(int nranks, void (*rank)(struct area_end *, void *context), void *context);

#ifdef __cplusplus
}
#endif
#endif
