/* SPDX-License-Identifier: Apache-2.0 */
/**
 * captured.h - operations on streams that capture (device/host/capture.h): the checked call and its plan are kept in a
 * node of the graph, for one launch of one communicator, and launched from there whenever the graph is.
 *
 * The node holds the communicator's handle: a communicator that was ended meanwhile, or has failed, is detected before
 * a graph's launch queues anything.
 *
 * Threads: the user's.
 */
#ifndef KL_COMM_CAPTURED_H
#define KL_COMM_CAPTURED_H

#include "comm/comm.h"

/** An operation whose stream captures, or has to be put in order (legacy.h). `*captured`: do not launch it. */
ncclResult_t kl_captured_op(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream, bool *captured);

/** A collective without elements, whose stream captures. */
ncclResult_t kl_captured_empty(ncclComm_t comm, const struct kl_task *task, struct kl_stream *stream);

/**
 * As kl_captured_op for the queued operations of a group's communicators: each into the capture of its own streams. One
 * communicator's streams of two captures, or captured and not in one group: ncclInvalidUsage, and no capture changes.
 * Any other failure invalidates all of them.
 */
ncclResult_t kl_captured_group(ncclComm_t comms, bool *captured);

#endif
