/* SPDX-License-Identifier: Apache-2.0 */
/**
 * check.h - the arguments of operations: what is wrong with them, said once, before anything is queued.
 */
#ifndef KL_API_CHECK_H
#define KL_API_CHECK_H

#include "comm/comm.h"

/** Type, operation, root or peer, size and buffers of a task; `function` is named in texts. */
ncclResult_t kl_check_task(ncclComm_t comm, const struct kl_task *task, const char *function);

/** Are `parts` times `count` elements fewer bytes than an address space has? */
ncclResult_t kl_check_size(const char *function, size_t count, size_t elem_bytes, int parts);

#endif
