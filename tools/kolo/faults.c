/* SPDX-License-Identifier: Apache-2.0 */
/**
 * faults.c - a library that errs on purpose, to test the checks that should notice. Never part of the tool.
 *
 * Linked in front of the library (ld --wrap). FAULT=KIND:RANK is an error of that rank in all-reduces of float:
 *   absent   contributes nothing
 *   spoil    changes one element of its result
 *   overrun  writes one byte behind its result
 *   hang     does not return from the third one
 */
#include "include/kolo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 16 };

/* Names by ld --wrap: the functions below, and the wrapped ones. */
ncclResult_t __wrap_ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream);
ncclResult_t __real_ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream);
ncclResult_t __wrap_koloStreamSynchronize(koloStream_t stream);
ncclResult_t __real_koloStreamSynchronize(koloStream_t stream);

static _Thread_local char *received; /* by the last faulty operation; NULL: none */
static _Thread_local size_t received_bytes;

/* Is this rank to err in this way? */
static int errs(ncclComm_t comm, const char *kind)
{
    const char *fault = getenv("FAULT");
    char want[64];
    int rank = -1;

    ncclCommUserRank(comm, &rank);
    snprintf(want, sizeof want, "%s:%d", kind, rank);
    return fault && !strcmp(fault, want);
}

ncclResult_t __wrap_ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream)
{
    static const char nothing[MAX_BYTES];
    static int calls;

    if (type != ncclFloat || count * sizeof(float) > MAX_BYTES)
        return __real_ncclAllReduce(send, recv, count, type, op, comm, stream);
    if (errs(comm, "hang") && ++calls == 3)
        for (;;) pause();
    if (errs(comm, "absent")) send = nothing;
    if (errs(comm, "spoil") || errs(comm, "overrun")) {
        received = recv;
        received_bytes = count * sizeof(float);
    }
    return __real_ncclAllReduce(send, recv, count, type, op, comm, stream);
}

ncclResult_t __wrap_koloStreamSynchronize(koloStream_t stream)
{
    const char *fault = getenv("FAULT");
    ncclResult_t rc = __real_koloStreamSynchronize(stream);

    if (!received) return rc;
    received[fault[0] == 's' ? 0 : received_bytes] ^= 1;
    received = NULL;
    return rc;
}
