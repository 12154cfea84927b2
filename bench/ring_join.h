/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring_join.h - a linear bootstrap to compare with, as NCCL's is: each rank tells the root where it listens and hears from it where
 * the next one does; an all-gather goes round the ring, and each rank sends n - 1 times. Plain sockets, one thread per rank, no
 * secret, no care for failures: what it takes is what it has to take.
 */
#ifndef RING_JOIN_H
#define RING_JOIN_H

#include "os/address.h"

#include <stddef.h>
#include <stdint.h>

struct ring;

/** What a rank tells the others of itself when it joins: as much as a card of bootstrap/record.h. */
extern const size_t ring_card_bytes;

/** Listen on the loopback interface, and serve `nranks` ranks once in a thread of its own. */
ncclResult_t ring_root_start(union kl_address *root, int nranks);

ncclResult_t ring_join(const union kl_address *root, int rank, int nranks, struct ring **ring);

/** `all` holds nranks records of `bytes`; the own one is in place. */
ncclResult_t ring_allgather(struct ring *ring, void *all, size_t bytes);

/** Sent so far, to the root as well. */
uint64_t ring_messages(const struct ring *ring);

void ring_leave(struct ring *ring);

#endif
