/* SPDX-License-Identifier: Apache-2.0 */
/** issue.h - the path of every operation of the interface to its communicator. */
#ifndef KL_API_ISSUE_H
#define KL_API_ISSUE_H

#include "coll/task.h"

/** Check it, and queue it or add it to the open group; `function` is for error texts. */
ncclResult_t kl_api_issue(ncclComm_t handle, const struct kl_op_args *args, cudaStream_t stream, const char *function);

#endif
