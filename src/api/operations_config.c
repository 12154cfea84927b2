/* SPDX-License-Identifier: Apache-2.0 */
/**
 * operations_config.c - the collectives with a configuration of the call (ncclCollConfig_t).
 */
#include "api/api.h"
#include "api/call_config.h"
#include "api/issue.h"
#include "comm/job.h"
#include "comm/queue/group.h"

KL_PNCCL(ncclAllReduceConfig);
ncclResult_t ncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_ALL_REDUCE, .send = sendbuff, .recv = recvbuff, .count = count, .type = datatype, .op = op};

    return kl_api_issue_configured(comm, &args, config, stream, "ncclAllReduceConfig");
}

KL_PNCCL(ncclBroadcastConfig);
ncclResult_t ncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_BROADCAST, .send = sendbuff, .recv = recvbuff, .count = count, .type = datatype, .peer = root};

    return kl_api_issue_configured(comm, &args, config, stream, "ncclBroadcastConfig");
}

KL_PNCCL(ncclReduceConfig);
ncclResult_t ncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config)
{
    const struct kl_op_args args = {.func = KL_FUNC_REDUCE,
                                    .send = sendbuff,
                                    .recv = recvbuff,
                                    .count = count,
                                    .type = datatype,
                                    .op = op,
                                    .peer = root};

    return kl_api_issue_configured(comm, &args, config, stream, "ncclReduceConfig");
}

KL_PNCCL(ncclAllGatherConfig);
ncclResult_t ncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_ALL_GATHER, .send = sendbuff, .recv = recvbuff, .count = sendcount, .type = datatype};

    return kl_api_issue_configured(comm, &args, config, stream, "ncclAllGatherConfig");
}

KL_PNCCL(ncclReduceScatterConfig);
ncclResult_t ncclReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                     const ncclCollConfig_t *config)
{
    const struct kl_op_args args = {.func = KL_FUNC_REDUCE_SCATTER,
                                    .send = sendbuff,
                                    .recv = recvbuff,
                                    .count = recvcount,
                                    .type = datatype,
                                    .op = op};

    return kl_api_issue_configured(comm, &args, config, stream, "ncclReduceScatterConfig");
}

/* ---- made of messages: no algorithm, no channels of their own ---- */

static ncclResult_t begin_messages(ncclComm_t handle, const ncclCollConfig_t *config, cudaStream_t stream,
                                   const char *function)
{
    struct kl_call_config read;
    struct ncclComm *comm;

    if (!config) return ncclSuccess;
    KL_TRY(kl_call_config_read(config, KL_FUNC_ALL_TO_ALL, function, &read));
    if (!read.event) return ncclSuccess;
    KL_TRY(kl_comm_enter(handle, function, &comm));
    ncclResult_t rc = kl_call_config_record(&read, comm, stream, function);
    kl_handle_leave(comm);
    return rc;
}

KL_PNCCL(ncclAlltoAllConfig);
ncclResult_t ncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    ncclResult_t rc = begin_messages(comm, config, stream, "ncclAlltoAllConfig");

    return rc ? kl_group_keep_error(rc)
              : kl_api_all_to_all(sendbuff, recvbuff, count, datatype, comm, stream, "ncclAlltoAllConfig");
}

KL_PNCCL(ncclGatherConfig);
ncclResult_t ncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                              ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    ncclResult_t rc = begin_messages(comm, config, stream, "ncclGatherConfig");

    return rc ? kl_group_keep_error(rc)
              : kl_api_gather(sendbuff, recvbuff, count, datatype, root, comm, stream, "ncclGatherConfig");
}

KL_PNCCL(ncclScatterConfig);
ncclResult_t ncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    ncclResult_t rc = begin_messages(comm, config, stream, "ncclScatterConfig");

    return rc ? kl_group_keep_error(rc)
              : kl_api_scatter(sendbuff, recvbuff, count, datatype, root, comm, stream, "ncclScatterConfig");
}
