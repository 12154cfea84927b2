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
