/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.c - buffers that communicators know.
 */
#include "api/api.h"
#include "comm/job.h"

static ncclResult_t add(struct ncclComm *comm, const void *buff, size_t size, void **handle)
{
    KL_TRY(kl_comm_failure(comm));
    *handle = NULL;
    if (!comm->config.local_register) return ncclSuccess;
    return kl_registry_add(&comm->registry, comm->devices, buff, size, handle);
}

KL_PNCCL(ncclCommRegister);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    struct ncclComm *c;

    if (!handle) return KL_FAIL(ncclInvalidArgument, "ncclCommRegister: the result pointer is NULL");
    if (!buff || !size)
        return KL_FAIL(ncclInvalidArgument, "ncclCommRegister: the buffer is %s", buff ? "empty" : "NULL");
    KL_TRY(kl_comm_enter(comm, "ncclCommRegister", &c));
    ncclResult_t rc = add(c, buff, size, handle);
    kl_handle_leave(c);
    return rc;
}

KL_PNCCL(ncclCommDeregister);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    struct ncclComm *c;

    KL_TRY(kl_comm_enter(comm, "ncclCommDeregister", &c));
    ncclResult_t rc = handle ? kl_registry_remove(&c->registry, c->devices, handle) : ncclSuccess;
    kl_handle_leave(c);
    return rc;
}

/* ---- what a communicator holds ---- */

/* Its connections come and go; what describes the job and the machine is there as long as it lives. */
static uint64_t lasting(const struct ncclComm *comm)
{
    return sizeof *comm + comm->task_room * sizeof *comm->tasks + comm->queued_room * sizeof *comm->queued +
           (uint64_t)comm->nranks * (sizeof *comm->peers + sizeof *comm->rounds);
}

static ncclResult_t measure(const struct ncclComm *comm, ncclCommMemStat_t stat, uint64_t *value)
{
    uint64_t connections = comm->connections ? kl_connections_bytes(comm->connections) : 0;

    switch (stat) {
    case ncclStatGpuMemSuspend:
        *value = connections;
        return ncclSuccess;
    case ncclStatGpuMemSuspended:
        *value = comm->suspended;
        return ncclSuccess;
    case ncclStatGpuMemPersist:
        *value = lasting(comm);
        return ncclSuccess;
    case ncclStatGpuMemTotal:
        *value = connections + lasting(comm);
        return ncclSuccess;
    default:
        return KL_FAIL(ncclInvalidArgument, "ncclCommMemStats: there is no number %d", (int)stat);
    }
}

KL_PNCCL(ncclCommMemStats);
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
    struct ncclComm *c;

    if (!value) return KL_FAIL(ncclInvalidArgument, "ncclCommMemStats: the result pointer is NULL");
    KL_TRY(kl_comm_enter_suspended(comm, "ncclCommMemStats", &c));
    ncclResult_t rc = measure(c, stat, value);
    kl_handle_leave(c);
    return rc;
}
