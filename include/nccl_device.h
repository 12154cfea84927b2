/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nccl_device.h - what the host calls of NCCL's device API.
 *
 * Device communicators are for kernels of GPUs, which reach the memory of other ranks and start operations by themselves. Host
 * devices run no kernels: who asks for one, or for what kernels need, gets ncclInvalidUsage and the reason. Teams are answered
 * for: a rank reaches only its own memory by loads and stores, so its LSA team is itself, and its rail is everybody.
 *
 * Threads: any.
 */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;

/** Ranks of a communicator at equal distances: `rank` is the own one's place among them. */
typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

/** What a communicator can do. Started with NCCL_COMM_PROPERTIES_INITIALIZER. */
typedef struct ncclCommProperties {
    size_t size;
    unsigned int magic; /* 0xcafebeef */
    unsigned int version;
    int rank, nRanks;
    int cudaDev, nvmlDev;
    bool deviceApiSupport; /* these are false, and the types 0: none */
    bool multimemSupport;
    int ginType;
    int nLsaTeams;
    bool hostRmaSupport;
    int railedGinType;
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER                                                                               \
    {                                                                                                                  \
        sizeof(ncclCommProperties_t), 0xcafebeef, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), 0, 0, 0, 0, false, \
            false, 0, 0, false, 0                                                                                      \
    }

/** As far as the program's struct goes. Not started so: ncclInvalidArgument. */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties);
ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties);

/** ncclInvalidUsage; a communicator that is none: ncclInvalidArgument. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *devComm);
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *devComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);

/** ncclInvalidUsage: these reserve what kernels use. */
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *handle,
                                             ncclDevResourceRequirements_t *requirements);
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *handle,
                                              ncclDevResourceRequirements_t *requirements);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t *handle,
                                             ncclDevResourceRequirements_t *requirements);
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                              ncclGinBarrierHandle_t *handle,
                                              ncclDevResourceRequirements_t *requirements);
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *handle,
                                        ncclDevResourceRequirements_t *requirements);
ncclResult_t pncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *handle,
                                         ncclDevResourceRequirements_t *requirements);

/** Teams of no ranks for a communicator that is none. */
ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t pncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t pncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);
ncclTeam_t pncclTeamRail(ncclComm_t comm);

/** The rank in the communicator, or in the LSA team, of rank `rank` of `team`; -1 for a communicator that is none. */
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
