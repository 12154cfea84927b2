/* SPDX-License-Identifier: Apache-2.0 */
/** issue.h - the call, or calls, of an operation. */
#ifndef KOLO_SOAK_ISSUE_H
#define KOLO_SOAK_ISSUE_H

#include "tests/soak/buffers.h"

/** As rank `me` of the n of `comm`. The first failure; ncclInProgress where the communicator is not blocking. */
ncclResult_t soak_issue(const struct soak_operation *o, int n, int me, const struct soak_buffers *b, ncclComm_t comm,
                        koloStream_t stream);

/** The worse of two results: a failure, or else ncclInProgress. */
static inline ncclResult_t soak_worse(ncclResult_t a, ncclResult_t b)
{
    return a && a != ncclInProgress ? a : b ? b : a;
}

#endif
