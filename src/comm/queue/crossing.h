/* SPDX-License-Identifier: Apache-2.0 */
/**
 * crossing.h - operations of a communicator on GPUs of several hosts, or whose ranks may not share memory.
 *
 * They are the engine's, in host memory: it chooses, connects, moves, times out and reports as for host devices. Each rank
 * has a stage there and a stream of the engine; of each round that stream waits until the rank's GPU has copied its data to
 * the stage, runs the operation, and lets the GPU copy the results (coll/gpu/gate.h, coll/gpu/hosts.h).
 *
 * Graphs:  from the first call that is captured on, the engine learns of rounds when their data are there (coll/gpu/notice.h),
 *          of each replay anew. It records and numbers them then, in the order of the streams, on all ranks alike.
 *
 * NICs:    messages over a network that reaches the GPU's memory (kl_net_reach) have no stage: the NIC reads and writes the
 *          program's memory; not where calls are captured, or were: until a replay, memory may be freed. Each rank decides
 *          for itself. After a failure streams wait until the NIC has stopped.
 *
 * Errors:  as gpus.h.
 * Threads: the user's.
 */
#ifndef KL_COMM_QUEUE_CROSSING_H
#define KL_COMM_QUEUE_CROSSING_H

#include "coll/gpu/hosts.h"
#include "comm/comm.h"

struct kl_crossing;

/** Do the ranks need one? All ranks answer alike. */
bool kl_crossing_is_needed(const struct ncclComm *comm);

/** For the process's leader: its ranks are at these places. */
ncclResult_t kl_crossing_lead(ncclComm_t comm, const struct kl_gpu_place *place);

/** Join it. */
ncclResult_t kl_crossing_create(ncclComm_t comm, struct kl_crossing **crossing);

/** The communicator has failed: no stream waits any longer. Any thread. */
void kl_crossing_release(struct kl_crossing *crossing);

/** The engine does nothing any more, and no NIC uses the program's memory. */
void kl_crossing_settle(struct kl_crossing *crossing);

/** No operation is under way, or the communicator has `failed`. NULL is fine. */
void kl_crossing_free(ncclComm_t comm, struct kl_crossing *crossing, bool failed);

/** Are rounds recorded when their data are there, so that collectives without elements do not count? */
bool kl_crossing_records_late(const struct kl_crossing *crossing);

ncclResult_t kl_crossing_synchronize(const struct kl_crossing *crossing);

/** A call's steps, as of coll/gpu/team.h: check; begin; the collectives, then the messages arrive, and are waited for; end. */
ncclResult_t kl_crossing_prepare(ncclComm_t comm, struct kl_crossing *crossing, struct kl_gpu_call *call);
ncclResult_t kl_crossing_begin(ncclComm_t comm, struct kl_crossing *crossing, const struct kl_gpu_call *call);
void kl_crossing_arrive(struct kl_crossing *crossing, const struct kl_gpu_call *call, bool messages);
ncclResult_t kl_crossing_wait(ncclComm_t comm, struct kl_crossing *crossing, const struct kl_gpu_limits *limits);
ncclResult_t kl_crossing_end(struct kl_crossing *crossing, const struct kl_gpu_call *call);

#endif
