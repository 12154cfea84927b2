/* SPDX-License-Identifier: Apache-2.0 */
/**
 * memory.c - registered buffers and windows.
 */
#include "api/api.h"
#include "api/check.h"
#include "comm/queue/group.h"
#include "comm/window.h"

#include <stdlib.h>

static ncclResult_t add(struct ncclComm *comm, void *buff, size_t size, void **handle)
{
    uintptr_t number = 0;

    KL_TRY(kl_comm_failure(comm));
    *handle = NULL;
    if (!comm->config.local_register) return ncclSuccess;
    KL_TRY(kl_registry_add(&comm->registry, kl_handle_number(comm), comm->devices, buff, size, &number));
    *handle = (void *)number;
    return ncclSuccess;
}

static ncclResult_t take_out(struct ncclComm *comm, uintptr_t handle)
{
    const struct kl_registered *entry;

    KL_TRY(kl_registry_get(&comm->registry, handle, "ncclCommDeregister", &entry));
    return kl_registry_remove(&comm->registry, comm->devices, entry);
}

KL_PNCCL(ncclCommRegister);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    struct ncclComm *c;

    if (!handle) return KL_FAIL(ncclInvalidArgument, "ncclCommRegister: the result pointer is NULL");
    if (!buff || !size)
        return KL_FAIL(ncclInvalidArgument, "ncclCommRegister: the buffer is %s", buff ? "empty" : "NULL");
    KL_TRY(kl_check_reach("ncclCommRegister", "size", "buffer", buff, size, 1, 1));
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
    ncclResult_t rc = handle ? take_out(c, (uintptr_t)handle) : ncclSuccess;
    kl_handle_leave(c);
    return rc;
}

/* ---- windows ---- */

struct opening {
    struct kl_deferred call; /* first: the group frees it */
    void *buff;
    size_t size;
    int flags;
    ncclWindow_t *win;
};

static ncclResult_t run_opening(struct kl_deferred *call)
{
    struct opening *o = (struct opening *)call;

    return kl_comm_open_window(call->comm, o->buff, o->size, o->flags, o->win);
}

static void drop_opening(struct kl_deferred *call)
{
    kl_job_cancel(call->comm);
}

static ncclResult_t check_window(const void *buff, size_t size, const ncclWindow_t *win, int flags)
{
    if (!win) return KL_FAIL(ncclInvalidArgument, "ncclCommWindowRegister: the result pointer is NULL");
    if (!buff || !size)
        return KL_FAIL(ncclInvalidArgument, "ncclCommWindowRegister: the buffer is %s", buff ? "empty" : "NULL");
    KL_TRY(kl_check_reach("ncclCommWindowRegister", "size", "buffer", buff, size, 1, 1));
    if ((uintptr_t)buff % NCCL_WIN_REQUIRED_ALIGNMENT)
        return KL_FAIL(ncclInvalidArgument, "ncclCommWindowRegister: the buffer at %p is not aligned to %d bytes", buff,
                       NCCL_WIN_REQUIRED_ALIGNMENT);
    if (flags & NCCL_WIN_CFT_COUNTED)
        return KL_FAIL(ncclInvalidUsage, "ncclCommWindowRegister: NCCL_WIN_CFT_COUNTED asks for counted fabric writes, "
                                         "which host devices do not have");
    if (flags & ~(NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING | NCCL_WIN_GIN_ONLY))
        return KL_FAIL(ncclInvalidArgument,
                       "ncclCommWindowRegister: flags %d; there are NCCL_WIN_COLL_SYMMETRIC, NCCL_WIN_STRICT_ORDERING "
                       "and NCCL_WIN_GIN_ONLY",
                       flags);
    return ncclSuccess;
}

static ncclResult_t open_window(ncclComm_t handle, void *buff, size_t size, ncclWindow_t *win, int flags)
{
    struct ncclComm *comm;

    KL_TRY(check_window(buff, size, win, flags));
    *win = NULL;
    KL_TRY(kl_job_begin(handle, KL_BUSY_WINDOW, "ncclCommWindowRegister", &comm));
    ncclResult_t rc = kl_comm_failure(comm);
    if (!rc && comm->gpus)
        rc = KL_FAIL(ncclInvalidUsage,
                     "ncclCommWindowRegister: so far, communicators on GPUs have no windows; KOLO_DEVICES=host has");
    struct opening *o = rc ? NULL : calloc(1, sizeof *o);
    if (!o) {
        kl_job_cancel(comm);
        return rc ? rc : KL_NOMEM("a window");
    }
    o->call =
        (struct kl_deferred){.run = run_opening, .drop = drop_opening, .comm = comm, .background = !comm->blocking};
    o->buff = buff;
    o->size = size;
    o->flags = flags;
    o->win = win;
    return kl_group_call(&o->call);
}

KL_PNCCL(ncclCommWindowRegister);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
    return kl_group_keep_error(open_window(comm, buff, size, win, winFlags));
}

KL_PNCCL(ncclCommWindowDeregister);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    struct ncclComm *c;

    KL_TRY(kl_comm_enter(comm, "ncclCommWindowDeregister", &c));
    ncclResult_t rc = win ? kl_comm_close_window(c, win) : ncclSuccess;
    kl_handle_leave(c);
    return rc;
}

static ncclResult_t find_buffer(const struct ncclComm *comm, ncclWindow_t win, void **ptr)
{
    const struct kl_registered *entry = kl_registry_find(&comm->windows, (uintptr_t)win);

    if (!entry)
        return KL_FAIL(ncclInvalidArgument, "ncclWinGetUserPtr: %p is no window of this communicator", (void *)win);
    *ptr = entry->ptr;
    return ncclSuccess;
}

KL_PNCCL(ncclWinGetUserPtr);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
    struct ncclComm *c;

    if (!outUserPtr) return KL_FAIL(ncclInvalidArgument, "ncclWinGetUserPtr: the result pointer is NULL");
    KL_TRY(kl_comm_enter(comm, "ncclWinGetUserPtr", &c));
    ncclResult_t rc = find_buffer(c, win, outUserPtr);
    kl_handle_leave(c);
    return rc;
}

/* ---- the memory of a communicator ---- */

/* Its connections come and go; the descriptions of the job and the machine stay as long as it lives. */
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
