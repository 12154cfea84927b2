/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.c - the host's part of NCCL's device API: teams, and why there are no device communicators.
 */
#include "api/api.h"
#include "comm/job.h"
#include "include/nccl_device.h"

#include <string.h>

/* ---- what needs kernels ---- */

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
    (void)devComm;
    return refuse(comm, "ncclDevCommCreate");
}

KL_PNCCL(ncclDevCommDestroy);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm)
{
    (void)devComm;
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
                                  .hostRmaSupport = true};
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

/* The team is this rank alone, its rank 0: others are that far from it. */
KL_PNCCL(ncclTeamRankToLsa);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
    struct place p;

    return find(comm, "ncclTeamRankToLsa", &p) ? to_world(&p, team, rank) - p.rank : -1;
}
