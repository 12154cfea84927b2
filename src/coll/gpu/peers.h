/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peers.h - do the GPUs of a team reach each other's memory (P2P)? Each path from one GPU to another is tested: a copy
 * engine reads a pattern there, and a kernel writes one, which the other GPU's process reads back. An IOMMU may drop writes while all calls
 * succeed.
 *
 * Blocking: until all processes have tested their paths; KL_GPU_PEERS_MS at most for a path.
 * Threads:  during init, the leaders of all processes.
 */
#ifndef KL_COLL_GPU_PEERS_H
#define KL_COLL_GPU_PEERS_H

#include "coll/gpu/team.h"

enum { KL_GPU_PEERS_MS = 10000 };

/** Bytes of memory that the processes share for the test; zeroed at first. */
size_t kl_gpu_peers_bytes(void);

/**
 * Do all paths work? The same answer in all processes. `board`: the common memory; NULL: there is one process. The log
 * names the paths that do not work. An error is of an own GPU.
 */
ncclResult_t kl_gpu_peers_test(struct kl_gpu_team *team, int nprocesses, void *board, bool *work);

/** This process takes no part in the test: it has failed. */
void kl_gpu_peers_leave(void *board);

#endif
