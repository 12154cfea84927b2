/* SPDX-License-Identifier: Apache-2.0 */
/**
 * communicator.c - version, ids, and the life of communicators.
 */
#include "api/api.h"
#include "api/param_sets.h"
#include "comm/devices.h"
#include "comm/group.h"
#include "device/device.h"

#include <stdlib.h>

KL_PNCCL(ncclGetVersion);
ncclResult_t ncclGetVersion(int *version)
{
    if (!version) return KL_FAIL(ncclInvalidArgument, "ncclGetVersion: the result pointer is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

KL_PNCCL(ncclGetErrorString);
const char *ncclGetErrorString(ncclResult_t result)
{
    return kl_result_text(result);
}

KL_PNCCL(ncclGetLastError);
const char *ncclGetLastError(ncclComm_t comm)
{
    struct ncclComm *c = kl_handle_try(comm);

    if (c) {
        kl_comm_failure(c); /* what it failed of, if it has, is from now on this thread's last sentence */
        kl_handle_leave(c);
    }
    return kl_error_text();
}

KL_PNCCL(ncclGetUniqueId);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    if (!id) return KL_FAIL(ncclInvalidArgument, "ncclGetUniqueId: the result pointer is NULL");
    return kl_bootstrap_id_create(id);
}

/* ---- creation: directly, or at the end of the open group ---- */

struct deferred_init {
    struct kl_deferred call; /* first: the group frees it */
    ncclUniqueId id;
    int nranks, rank, device;
    ncclComm_t *comm;
};

static ncclResult_t run_init(struct kl_deferred *call)
{
    struct deferred_init *d = (struct deferred_init *)call;

    return kl_comm_create(&d->id, d->nranks, d->rank, d->device, d->comm);
}

static ncclResult_t abort_comm(ncclComm_t handle, const char *function)
{
    struct ncclComm *comm;

    KL_TRY(kl_handle_enter(handle, function, &comm));
    bool mine = kl_handle_close(comm);
    if (mine) kl_group_forget(comm);
    kl_handle_leave(comm);
    if (!mine) return KL_FAIL(ncclInvalidArgument, "%s: another thread ends the communicator", function);
    kl_comm_abort(comm);
    return ncclSuccess;
}

static void undo_init(struct kl_deferred *call)
{
    struct deferred_init *d = (struct deferred_init *)call;

    abort_comm(*d->comm, "ncclGroupEnd");
    *d->comm = NULL;
}

static ncclResult_t create(ncclComm_t *comm, int nranks, const ncclUniqueId *id, int rank, int device)
{
    *comm = NULL;
    kl_param_sets_check_names();
    if (!kl_group_open()) return kl_comm_create(id, nranks, rank, device, comm);

    struct deferred_init *d = calloc(1, sizeof *d);
    if (!d) return KL_NOMEM("a communicator's creation");
    *d = (struct deferred_init){.call = {.run = run_init, .undo = undo_init},
                                .id = *id,
                                .nranks = nranks,
                                .rank = rank,
                                .device = device,
                                .comm = comm};
    kl_group_defer(&d->call);
    return ncclSuccess;
}

static ncclResult_t check_ranks(const ncclComm_t *comm, int nranks, int rank)
{
    if (!comm) return KL_FAIL(ncclInvalidArgument, "ncclCommInitRank: the result pointer is NULL");
    if (nranks < 1)
        return KL_FAIL(ncclInvalidArgument, "ncclCommInitRank: %d ranks; there must be at least one", nranks);
    if (rank < 0 || rank >= nranks)
        return KL_FAIL(ncclInvalidArgument, "ncclCommInitRank: rank %d of %d; ranks are 0 to %d", rank, nranks,
                       nranks - 1);
    return ncclSuccess;
}

KL_PNCCL(ncclCommInitRank);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    ncclResult_t rc = check_ranks(comm, nranks, rank);

    /* Several ranks that a thread creates in a group without choosing get a device each, whatever it had before. */
    if (!rc) rc = create(comm, nranks, &id, rank, kl_devices()->chosen(kl_group_open()));
    return kl_group_note(rc);
}

static ncclResult_t check_devices(int ndev, const int *devlist)
{
    int count;

    KL_TRY(kl_devices_count_now(&count));
    for (int i = 0; i < ndev; i++) {
        int device = devlist ? devlist[i] : i;
        if (device < 0 || device >= count)
            return KL_FAIL(ncclInvalidArgument, "ncclCommInitAll: device %d; there are %d (KOLO_HOST_DEVICES)", device,
                           count);
        for (int k = 0; k < i; k++)
            if ((devlist ? devlist[k] : k) == device)
                return KL_FAIL(ncclInvalidUsage, "ncclCommInitAll: device %d is listed twice", device);
    }
    return ncclSuccess;
}

static ncclResult_t create_all(ncclComm_t *comms, int ndev, const int *devlist)
{
    ncclUniqueId id;

    if (!comms) return KL_FAIL(ncclInvalidArgument, "ncclCommInitAll: the result pointer is NULL");
    if (ndev < 1) return KL_FAIL(ncclInvalidArgument, "ncclCommInitAll: %d devices; there must be at least one", ndev);
    KL_TRY(check_devices(ndev, devlist));
    KL_TRY(kl_bootstrap_id_create(&id));
    KL_TRY(kl_group_start());
    for (int i = 0; i < ndev; i++) kl_group_note(create(&comms[i], ndev, &id, i, devlist ? devlist[i] : i));
    return kl_group_end();
}

KL_PNCCL(ncclCommInitAll);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
    return kl_group_note(create_all(comms, ndev, devlist));
}

/* ---- the end ---- */

static ncclResult_t finalize(struct ncclComm *comm)
{
    if (kl_load_relaxed(&comm->finalized))
        return KL_FAIL(ncclInvalidArgument, "ncclCommFinalize: the communicator was finalized before");
    return kl_comm_finalize(comm);
}

KL_PNCCL(ncclCommFinalize);
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    struct ncclComm *c;

    if (!comm) return ncclSuccess;
    KL_TRY(kl_handle_enter(comm, "ncclCommFinalize", &c));
    ncclResult_t rc = finalize(c);
    kl_handle_leave(c);
    return rc;
}

/* An abort from another thread ends the wait for what is queued, and then frees the communicator itself. */
KL_PNCCL(ncclCommDestroy);
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    struct ncclComm *c;

    if (!comm) return ncclSuccess;
    KL_TRY(kl_handle_enter(comm, "ncclCommDestroy", &c));
    kl_group_forget(c);
    ncclResult_t rc = kl_comm_finalize(c); /* perhaps again: an open group may have queued something since */
    bool mine = kl_handle_close(c);
    kl_handle_leave(c);
    if (mine) kl_comm_destroy(c);
    return rc;
}

KL_PNCCL(ncclCommAbort);
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return comm ? abort_comm(comm, "ncclCommAbort") : ncclSuccess;
}

/* ---- questions ---- */

KL_PNCCL(ncclCommGetAsyncError);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    struct ncclComm *c;

    if (!asyncError) return KL_FAIL(ncclInvalidArgument, "ncclCommGetAsyncError: the result pointer is NULL");
    KL_TRY(kl_handle_enter(comm, "ncclCommGetAsyncError", &c));
    *asyncError = kl_comm_failure(c);
    kl_handle_leave(c);
    return ncclSuccess;
}

struct answers {
    int nranks, rank, device;
};

static ncclResult_t ask(ncclComm_t handle, const int *result, const char *function, struct answers *answers)
{
    struct ncclComm *comm;

    if (!result) return KL_FAIL(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    KL_TRY(kl_handle_enter(handle, function, &comm));
    *answers = (struct answers){.nranks = comm->nranks, .rank = comm->rank, .device = comm->device};
    kl_handle_leave(comm);
    return ncclSuccess;
}

KL_PNCCL(ncclCommCount);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    struct answers a;

    KL_TRY(ask(comm, count, "ncclCommCount", &a));
    *count = a.nranks;
    return ncclSuccess;
}

KL_PNCCL(ncclCommCuDevice);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    struct answers a;

    KL_TRY(ask(comm, device, "ncclCommCuDevice", &a));
    *device = a.device;
    return ncclSuccess;
}

KL_PNCCL(ncclCommUserRank);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    struct answers a;

    KL_TRY(ask(comm, rank, "ncclCommUserRank", &a));
    *rank = a.rank;
    return ncclSuccess;
}
