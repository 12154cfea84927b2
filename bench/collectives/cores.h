/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cores.h - the cores that ranks run on: one in turn for each, and how far those of ranks 0 and 1 are apart.
 *
 * A virtual machine's cores are moved by its host. Two of them then share a cache or do not, for seconds or minutes, and what passes a
 * cache line takes several times as long: times compare only where the cores were equally far apart.
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
