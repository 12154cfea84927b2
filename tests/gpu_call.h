/* SPDX-License-Identifier: Apache-2.0 */
/** gpu_call.h - calls of collectives by number, and their operators, for tests of collectives on GPUs. */
#ifndef KOLO_TEST_GPU_CALL_H
#define KOLO_TEST_GPU_CALL_H

#include "device/device.h"
#include "include/kolo.h"
#include "tests/kolo_test.h"

enum func { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, FUNCS };
enum { PREMUL_HOST = ncclNumOps, PREMUL_DEVICE, BITS, OPS = BITS + KL_BITS_OPS };

/** The operator of this number; a pre-multiplied sum takes `factor` in host memory, or in memory of the GPU. */
static inline ncclRedOp_t gpu_op(int number, ncclDataType_t type, void *factor, void *factor_there, ncclComm_t comm)
{
    ncclRedOp_t op = (ncclRedOp_t)number;

    if (number >= BITS) return (ncclRedOp_t)(koloBitAnd + number - BITS);
    if (number == PREMUL_HOST)
        assert_int_equal(ncclRedOpCreatePreMulSum(&op, factor, type, ncclScalarHostImmediate, comm), ncclSuccess);
    if (number == PREMUL_DEVICE)
        assert_int_equal(ncclRedOpCreatePreMulSum(&op, factor_there, type, ncclScalarDevice, comm), ncclSuccess);
    return op;
}

static inline void gpu_drop_op(int number, ncclRedOp_t op, ncclComm_t comm)
{
    if (number == PREMUL_HOST || number == PREMUL_DEVICE) assert_int_equal(ncclRedOpDestroy(op, comm), ncclSuccess);
}

static inline ncclResult_t gpu_call(enum func func, const void *send, void *recv, size_t count, ncclDataType_t type,
                                    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    switch (func) {
    case ALL_REDUCE:
        return ncclAllReduce(send, recv, count, type, op, comm, stream);
    case REDUCE:
        return ncclReduce(send, recv, count, type, op, root, comm, stream);
    case REDUCE_SCATTER:
        return ncclReduceScatter(send, recv, count, type, op, comm, stream);
    case BROADCAST:
        return ncclBroadcast(send, recv, count, type, root, comm, stream);
    default:
        return ncclAllGather(send, recv, count, type, comm, stream);
    }
}

#endif
