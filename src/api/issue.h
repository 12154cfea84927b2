/* SPDX-License-Identifier: Apache-2.0 */
/** issue.h - the path of every operation of the interface to its communicator. */
#ifndef KL_API_ISSUE_H
#define KL_API_ISSUE_H

#include "coll/limits.h"
#include "coll/task.h"

/** Check it, and queue it or add it to the open group; `function` is for error texts. */
ncclResult_t kl_api_issue(ncclComm_t handle, const struct kl_op_args *args, cudaStream_t stream, const char *function);

/** kl_api_issue of a collective with a configuration, which may be NULL; of the communicator's choice are only its limits. */
ncclResult_t kl_api_issue_configured(ncclComm_t handle, const struct kl_op_args *args, const ncclCollConfig_t *config,
                                     cudaStream_t stream, const char *function);

/** kl_group_note of an all-to-all, gather, scatter, whose function is named: for their twins with a configuration. */
ncclResult_t kl_api_all_to_all(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream, const char *function);
ncclResult_t kl_api_gather(const void *part, void *whole, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream, const char *function);
ncclResult_t kl_api_scatter(const void *whole, void *part, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream, const char *function);

#endif
