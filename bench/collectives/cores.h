/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cores.h - the cores that ranks run on: one in turn for each, and the distance of the cores of ranks 0 and 1.
 *
 * A virtual machine's cores are moved by its host. Two of them then share a cache or do not, for seconds or minutes, and a transfer of a
 * cache line takes several times as long if they do not: times only compare at equal distances of the cores.
 */
#ifndef KOLO_BENCH_CORES_H
#define KOLO_BENCH_CORES_H

#include "bench/collectives/area.h"

/** Binds the calling thread to CPU `rank` modulo their number. */
void cores_bind(int rank);

/**
 * Nanoseconds that a cache line takes from rank 0 to rank 1 or back, the least of some tries, the same on all ranks; 0: not known, since
 * there is one rank only, or the two never ran at the same time. All ranks call it, and those that are not bound are so meanwhile.
 * Takes 0.03 to 0.15 ms, and some time slices more where ranks share cores.
 */
double cores_apart_ns(struct area_end *end);

#endif
