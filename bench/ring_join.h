/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring_join.h - a linear bootstrap to compare with, like NCCL's: each rank sends its address to the root and receives the next
 * rank's; an all-gather goes round the ring, and each rank sends n - 1 times. Plain sockets, one thread per rank, no
 * secret, no handling of failures: a lower bound of the cost.
 */
#ifndef RING_JOIN_H
#define RING_JOIN_H

#include "os/address.h"

#include <stddef.h>
#include <stdint.h>

struct ring;

/** Bytes of a rank's record when it joins: as many as an address record of bootstrap/record.h. */
extern const size_t ring_record_bytes;

/** Listen on the loopback interface, and serve `nranks` ranks once in a thread of its own. */
ncclResult_t ring_root_start(union kl_address *root, int nranks);

ncclResult_t ring_join(const union kl_address *root, int rank, int nranks, struct ring **ring);

/** `all` holds nranks records of `bytes`; the own one is in place. */
ncclResult_t ring_allgather(struct ring *ring, void *all, size_t bytes);

/** Sent so far, to the root as well. */
uint64_t ring_messages(const struct ring *ring);

void ring_leave(struct ring *ring);

#endif
