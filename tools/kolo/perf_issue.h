/* SPDX-License-Identifier: Apache-2.0 */
/** perf_issue.h - put one operation of a collective on a stream, with the calls that nccl-tests uses for it. */
#ifndef KOLO_TOOL_PERF_ISSUE_H
#define KOLO_TOOL_PERF_ISSUE_H

#include "include/nccl.h"
#include "plan/collective.h"

struct kl_perf_op {
    struct kl_coll_shape shape;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t element_bytes;
    int rank;
    ncclComm_t comm;
    cudaStream_t stream;
    const char *send; /* where this operation's buffers begin; in place they lie in one */
    char *recv;
    const struct kl_coll_piece *to, *from; /* alltoallv: per peer */
};

/** Issue step `step` of kl_coll_steps. Where a thread has several ranks, the caller puts a group around their steps. */
ncclResult_t kl_perf_issue(const struct kl_perf_op *op, int step);

#endif
