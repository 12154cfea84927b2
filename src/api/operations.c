/* SPDX-License-Identifier: Apache-2.0 */
/**
 * operations.c - the collectives, send and receive: check, then hand over to the communicator.
 */
#include "api/api.h"
#include "api/call_config.h"
#include "api/check.h"
#include "api/issue.h"
#include "comm/queue/gpus.h"
#include "comm/queue/group.h"
#include "comm/queue/issue.h"
#include "comm/job.h"

#include <limits.h>

/* Inline here and below: in an operation of a few bytes each call costs some 1 %. */
static inline __attribute__((always_inline)) ncclResult_t check(ncclComm_t comm, struct kl_task *task,
                                                                const char *function)
{
    if ((unsigned)task->op >= ncclNumOps) KL_TRY(kl_userop_resolve(comm, task, function));
    KL_TRY(kl_check_task(comm, task, function));
    if (task->func >= KL_FUNC_SEND && task->peer == comm->rank && !kl_load_relaxed(&comm->in_group))
        return KL_FAIL(ncclInvalidUsage, "%s: rank %d with itself needs the opposite call in the same group", function,
                       comm->rank);
    return ncclSuccess;
}

static __attribute__((noinline)) ncclResult_t issue_on_gpus(ncclComm_t comm, const struct kl_op_args *args,
                                                            cudaStream_t stream, const char *function)
{
    struct kl_task *task;

    KL_TRY(kl_group_enter_issuer(comm, function));
    KL_TRY(kl_comm_next_queued(comm, &task));
    kl_task_init(task, args);
    KL_TRY(check(comm, task, function));
    if (!task->count && task->func < KL_FUNC_SEND) return kl_comm_issue_empty_on_gpus(comm, task);
    if (task->send == &comm->barrier) task->count = 0; /* a barrier: the ranks meet, and no data move */
    return kl_comm_issue_on_gpus(comm, stream);
}

/* A task is built in place: nothing is copied. */
static inline __attribute__((always_inline)) ncclResult_t issue(ncclComm_t comm, const struct kl_op_args *args,
                                                                cudaStream_t stream, const char *function)
{
    struct kl_stream *s;
    struct kl_task *task;

    KL_TRY(kl_comm_failure(comm));
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "%s: the communicator was finalized", function);
    if (comm->devices != &kl_host_devices) return issue_on_gpus(comm, args, stream, function);
    KL_TRY(kl_user_stream_of(stream, comm->device, &s));
    KL_TRY(kl_group_enter_issuer(comm, function));
    KL_TRY(kl_comm_next_task(comm, s, &task));
    kl_task_init(task, args);
    KL_TRY(check(comm, task, function));
    if (!task->count && task->func < KL_FUNC_SEND) return kl_comm_issue_empty(comm, task, s);
    return kl_comm_issue(comm, task, s);
}

ncclResult_t kl_api_issue(ncclComm_t handle, const struct kl_op_args *args, cudaStream_t stream, const char *function)
{
    struct ncclComm *comm;
    ncclResult_t rc = kl_comm_enter_as_issuer(handle, function, &comm);

    if (!rc) {
        rc = issue(comm, args, stream, function);
        kl_handle_leave_as_issuer(comm);
    }
    return kl_group_keep_error(rc);
}

/* The communicator's own limit counts before that of a call. */
static ncclResult_t check_limits(ncclComm_t comm, const struct kl_limits *limits, const char *function)
{
    const int most = kl_nccl_config_or(comm->nccl_config.max_ctas, INT_MAX);

    if (limits->max_channels == INT_MAX || limits->max_channels <= most) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s: maxCTAs %d of the configuration of the call exceeds the communicator's %d",
                   function, limits->max_channels, most);
}

static __attribute__((noinline)) ncclResult_t issue_apart(ncclComm_t comm, const struct kl_op_args *args,
                                                          cudaStream_t stream, const char *function)
{
    return issue(comm, args, stream, function);
}

static ncclResult_t check_algorithms(ncclComm_t comm, const struct kl_call_config *config, const char *function)
{
    const bool none = comm->devices != &kl_host_devices && !comm->gpus_use_engine;

    if (!none || !config->selects || !config->limits.force) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "%s: algSelection of the configuration of the call selects among algorithms, and communicators on "
                   "GPUs of one host have none; with forceAlgSelection 0 it is ignored",
                   function);
}

static ncclResult_t issue_within(ncclComm_t comm, const struct kl_op_args *args, const struct kl_call_config *config,
                                 cudaStream_t stream, const char *function)
{
    KL_TRY(check_limits(comm, &config->limits, function));
    KL_TRY(check_algorithms(comm, config, function));
    KL_TRY(kl_call_config_record(config, comm, stream, function));
    kl_exec_limit(comm->exec, &config->limits);
    ncclResult_t rc = issue_apart(comm, args, stream, function);
    kl_exec_limit(comm->exec, NULL);
    return rc;
}

static ncclResult_t read_and_issue(ncclComm_t handle, const struct kl_op_args *args, const ncclCollConfig_t *config,
                                   cudaStream_t stream, const char *function)
{
    struct kl_call_config read;
    struct ncclComm *comm;

    KL_TRY(kl_call_config_read(config, args->func, function, &read));
    KL_TRY(kl_comm_enter_as_issuer(handle, function, &comm));
    ncclResult_t rc = issue_within(comm, args, &read, stream, function);
    kl_handle_leave_as_issuer(comm);
    return rc;
}

ncclResult_t kl_api_issue_configured(ncclComm_t handle, const struct kl_op_args *args, const ncclCollConfig_t *config,
                                     cudaStream_t stream, const char *function)
{
    if (!config) return kl_api_issue(handle, args, stream, function);
    return kl_group_keep_error(read_and_issue(handle, args, config, stream, function));
}

KL_PNCCL(ncclAllReduce);
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_ALL_REDUCE, .send = sendbuff, .recv = recvbuff, .count = count, .type = datatype, .op = op};

    return kl_api_issue(comm, &args, stream, "ncclAllReduce");
}

KL_PNCCL(ncclReduce);
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    const struct kl_op_args args = {.func = KL_FUNC_REDUCE,
                                    .send = sendbuff,
                                    .recv = recvbuff,
                                    .count = count,
                                    .type = datatype,
                                    .op = op,
                                    .peer = root};

    return kl_api_issue(comm, &args, stream, "ncclReduce");
}

KL_PNCCL(ncclBroadcast);
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_BROADCAST, .send = sendbuff, .recv = recvbuff, .count = count, .type = datatype, .peer = root};

    return kl_api_issue(comm, &args, stream, "ncclBroadcast");
}

KL_PNCCL(ncclBcast);
ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_BROADCAST, .send = buff, .recv = buff, .count = count, .type = datatype, .peer = root};

    return kl_api_issue(comm, &args, stream, "ncclBcast");
}

KL_PNCCL(ncclAllGather);
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_ALL_GATHER, .send = sendbuff, .recv = recvbuff, .count = sendcount, .type = datatype};

    return kl_api_issue(comm, &args, stream, "ncclAllGather");
}

KL_PNCCL(ncclReduceScatter);
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    const struct kl_op_args args = {.func = KL_FUNC_REDUCE_SCATTER,
                                    .send = sendbuff,
                                    .recv = recvbuff,
                                    .count = recvcount,
                                    .type = datatype,
                                    .op = op};

    return kl_api_issue(comm, &args, stream, "ncclReduceScatter");
}

KL_PNCCL(ncclSend);
ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_SEND, .send = sendbuff, .count = count, .type = datatype, .peer = peer};

    return kl_api_issue(comm, &args, stream, "ncclSend");
}

KL_PNCCL(ncclRecv);
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_RECV, .recv = recvbuff, .count = count, .type = datatype, .peer = peer};

    return kl_api_issue(comm, &args, stream, "ncclRecv");
}

KL_PNCCL(ncclRedOpCreatePreMulSum);
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    struct ncclComm *c;

    if (!op || !scalar)
        return KL_FAIL(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: the %s is NULL",
                       op ? "scalar" : "result pointer");
    if ((unsigned)residence > ncclScalarHostImmediate)
        return KL_FAIL(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: residence %d, there are %d and %d",
                       (int)residence, ncclScalarDevice, ncclScalarHostImmediate);
    KL_TRY(kl_comm_enter_as_issuer(comm, "ncclRedOpCreatePreMulSum", &c));
    ncclResult_t rc = kl_userop_create(c, datatype, scalar, residence == ncclScalarDevice, op);
    kl_handle_leave_as_issuer(c);
    return rc;
}

KL_PNCCL(ncclRedOpDestroy);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    struct ncclComm *c;

    KL_TRY(kl_comm_enter_as_issuer(comm, "ncclRedOpDestroy", &c));
    ncclResult_t rc = kl_userop_destroy(c, op);
    kl_handle_leave_as_issuer(c);
    return rc;
}

KL_PNCCL(ncclGroupStart);
ncclResult_t ncclGroupStart(void)
{
    return kl_group_start();
}

KL_PNCCL(ncclGroupEnd);
ncclResult_t ncclGroupEnd(void)
{
    return kl_group_end();
}

/* Read only the fields that the program's version of the struct has. */
KL_PNCCL(ncclGroupSimulateEnd);
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    enum { MAGIC = 0x74685283 };
    float time_us = NCCL_UNDEF_FLOAT;
    bool right = simInfo && simInfo->size >= offsetof(ncclSimInfo_t, estimatedTime) && simInfo->magic == MAGIC;

    ncclResult_t rc = kl_group_simulate_end(&time_us);
    if (rc) return rc;
    if (!right)
        return KL_FAIL(ncclInvalidArgument,
                       "ncclGroupSimulateEnd: the struct is NULL or was not started with NCCL_SIM_INFO_INITIALIZER");
    if (simInfo->size >= offsetof(ncclSimInfo_t, estimatedTime) + sizeof time_us) simInfo->estimatedTime = time_us;
    return ncclSuccess;
}
