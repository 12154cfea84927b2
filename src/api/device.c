/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.c - the host's part of NCCL's device API: teams, and why there are no device communicators.
 */
#include "api/api.h"
#include "comm/job.h"
#include "comm/window.h"
#include "include/nccl_device.h"

#include <string.h>

/* ---- functions that need kernels ---- */

static ncclResult_t no_kernels(const char *function)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: device communicators are for kernels of GPUs, and host devices run none: use the collectives "
                   "of the host",
                   function);
}

static ncclResult_t refuse(ncclComm_t handle, const char *function)
{
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter(handle, function, &comm));
    kl_handle_leave(comm);
    return no_kernels(function);
}

KL_PNCCL(ncclDevCommCreate);
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *devComm)
{
    (void)requirements;
    if (devComm) *devComm = (ncclDevComm_t){0};
    return refuse(comm, "ncclDevCommCreate");
}

KL_PNCCL(ncclDevCommDestroy);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm)
{
    if (devComm && !devComm->nRanks) return ncclSuccess; /* left by a refused create */
    return refuse(comm, "ncclDevCommDestroy");
}

KL_PNCCL(ncclLsaBarrierCreateRequirement);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *handle,
                                             ncclDevResourceRequirements_t *requirements)
{
    (void)team;
    (void)nBarriers;
    (void)handle;
    (void)requirements;
    return no_kernels("ncclLsaBarrierCreateRequirement");
}

KL_PNCCL(ncclGinBarrierCreateRequirement);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t *handle,
                                             ncclDevResourceRequirements_t *requirements)
{
    (void)team;
    (void)nBarriers;
    (void)handle;
    (void)requirements;
    return refuse(comm, "ncclGinBarrierCreateRequirement");
}

KL_PNCCL(ncclLLA2ACreateRequirement);
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *handle,
                                        ncclDevResourceRequirements_t *requirements)
{
    (void)nBlocks;
    (void)nSlots;
    (void)handle;
    (void)requirements;
    return no_kernels("ncclLLA2ACreateRequirement");
}

/* ---- properties ---- */

static ncclCommProperties_t properties_of(const struct ncclComm *comm)
{
    return (ncclCommProperties_t){.rank = comm->rank,
                                  .nRanks = comm->nranks,
                                  .cudaDev = comm->device,
                                  .nvmlDev = comm->peers[comm->rank].device,
                                  .nLsaTeams = comm->nranks,
                                  .hostRmaSupport = comm->devices == &kl_host_devices};
}

/* The head is the program's. */
KL_PNCCL(ncclCommQueryProperties);
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties)
{
    enum { MAGIC = 0xcafebeef };
    const size_t head = offsetof(ncclCommProperties_t, rank);
    struct ncclComm *c;

    if (!properties || properties->magic != MAGIC || properties->size < head)
        return KL_FAIL(ncclInvalidArgument, "ncclCommQueryProperties: the struct is NULL or was not started with "
                                            "NCCL_COMM_PROPERTIES_INITIALIZER");
    KL_TRY(kl_comm_enter(comm, "ncclCommQueryProperties", &c));
    const ncclCommProperties_t all = properties_of(c);
    size_t size = properties->size < sizeof all ? properties->size : sizeof all;
    memcpy((char *)properties + head, (const char *)&all + head, size - head);
    kl_handle_leave(c);
    return ncclSuccess;
}

/* ---- teams ---- */

struct place {
    int rank, nranks;
};

static bool find(ncclComm_t handle, const char *function, struct place *place)
{
    struct ncclComm *comm;

    *place = (struct place){0};
    if (kl_comm_enter(handle, function, &comm)) return false;
    *place = (struct place){.rank = comm->rank, .nranks = comm->nranks};
    kl_handle_leave(comm);
    return true;
}

static ncclTeam_t everybody(ncclComm_t comm, const char *function)
{
    struct place p;

    if (!find(comm, function, &p)) return (ncclTeam_t){0};
    return (ncclTeam_t){.nRanks = p.nranks, .rank = p.rank, .stride = 1};
}

KL_PNCCL(ncclTeamWorld);
ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
    return everybody(comm, "ncclTeamWorld");
}

KL_PNCCL(ncclTeamLsa);
ncclTeam_t ncclTeamLsa(ncclComm_t comm)
{
    struct place p;

    return find(comm, "ncclTeamLsa", &p) ? (ncclTeam_t){.nRanks = 1, .rank = 0, .stride = 1} : (ncclTeam_t){0};
}

KL_PNCCL(ncclTeamRail);
ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
    return everybody(comm, "ncclTeamRail");
}

static int to_world(const struct place *p, ncclTeam_t team, int rank)
{
    return p->rank + (rank - team.rank) * team.stride;
}

KL_PNCCL(ncclTeamRankToWorld);
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
    struct place p;

    return find(comm, "ncclTeamRankToWorld", &p) ? to_world(&p, team, rank) : -1;
}

/* The team is this rank alone, its rank 0: others count from it. */
KL_PNCCL(ncclTeamRankToLsa);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
    struct place p;

    return find(comm, "ncclTeamRankToLsa", &p) ? to_world(&p, team, rank) - p.rank : -1;
}

/* ---- the memory of windows ---- */

struct part {
    char *at;
    int rank, nranks;
};

static ncclResult_t look_up(const struct ncclComm *comm, ncclWindow_t window, size_t offset, struct part *part)
{
    const struct kl_registered *entry = kl_registry_find(&comm->windows, (uintptr_t)window);
    const struct kl_rma_window *memory = kl_rma_find(comm->rma, (uintptr_t)window);

    if (!entry || !memory || offset > kl_rma_bytes(memory, comm->rank)) return ncclInvalidArgument;
    *part = (struct part){.at = (char *)entry->ptr + offset, .rank = comm->rank, .nranks = comm->nranks};
    return ncclSuccess;
}

/* The window names its communicator. */
static ncclResult_t find_part(ncclWindow_t window, size_t offset, const char *function, void **out, struct part *part)
{
    struct ncclComm *comm = kl_handle_try_number((unsigned)((uintptr_t)window & UINT16_MAX));
    ncclResult_t rc = ncclInvalidArgument;

    if (comm) {
        rc = look_up(comm, window, offset, part);
        kl_handle_leave(comm);
    }
    if (rc) return KL_FAIL(rc, "%s: %p is no window, or has no byte %zu", function, (void *)window, offset);
    if (!out) return KL_FAIL(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    *out = NULL;
    return ncclSuccess;
}

KL_PNCCL(ncclGetLsaDevicePointer);
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void **outPtr)
{
    struct part part;

    KL_TRY(find_part(window, offset, "ncclGetLsaDevicePointer", outPtr, &part));
    if (lsaRank)
        return KL_FAIL(ncclInvalidArgument, "ncclGetLsaDevicePointer: rank %d, the LSA team has rank 0 alone", lsaRank);
    *outPtr = part.at;
    return ncclSuccess;
}

KL_PNCCL(ncclGetPeerDevicePointer);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr)
{
    struct part part;

    KL_TRY(find_part(window, offset, "ncclGetPeerDevicePointer", outPtr, &part));
    if (peer < 0 || peer >= part.nranks)
        return KL_FAIL(ncclInvalidArgument, "ncclGetPeerDevicePointer: rank %d, the communicator has ranks 0 to %d",
                       peer, part.nranks - 1);
    if (peer == part.rank) *outPtr = part.at;
    return ncclSuccess;
}

KL_PNCCL(ncclGetLsaMultimemDevicePointer);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr)
{
    struct part part;

    return find_part(window, offset, "ncclGetLsaMultimemDevicePointer", outPtr, &part);
}

KL_PNCCL(ncclGetMultimemDevicePointer);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem,
                                          void **outPtr)
{
    struct part part;

    (void)multimem;
    return find_part(window, offset, "ncclGetMultimemDevicePointer", outPtr, &part);
}

/* ---- slots ---- */

KL_PNCCL(ncclLLA2ACalcSlots);
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize)
{
    return maxElts * ((maxEltSize + 7) / 8);
}
