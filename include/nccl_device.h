/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nccl_device.h - NCCL's device API: its host part, and declarations with which kernels that use the device part
 * compile.
 *
 * Device communicators are for kernels of GPUs, which access the memory of other ranks and start operations themselves.
 * Host devices have none: requests for one, or for resources of kernels, return ncclInvalidUsage with the reason. Teams
 * are supported: a rank reaches only its own memory by loads and stores, so its LSA team is itself, and its rail team
 * is all ranks.
 *
 * Threads: any.
 */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef uint32_t ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;

/** Memory that a switch multicasts to; there is none here. */
typedef struct ncclMultimemHandle {
    void *mcBasePtr;
} ncclMultimemHandle_t;

/** Ranks of a communicator at equal distances; `rank` is the own position among them. */
typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

typedef struct ncclLsaBarrierHandle {
    ncclDevResourceHandle_t bufHandle;
    int nBarriers;
} ncclLsaBarrierHandle_t;

typedef struct ncclGinBarrierHandle {
    ncclGinSignal_t signal0;
    ncclDevResourceHandle_t bufHandle;
} ncclGinBarrierHandle_t;

typedef struct ncclLLA2AHandle {
    ncclDevResourceHandle_t bufHandle;
    uint32_t nSlots;
} ncclLLA2AHandle_t;

/** A device communicator. */
typedef struct ncclDevComm {
    int rank, nRanks, lsaRank, lsaSize;
    ncclMultimemHandle_t lsaMultimem;
    ncclLsaBarrierHandle_t lsaBarrier;
    ncclGinBarrierHandle_t railGinBarrier;
    int ginContextCount, ginSignalCount, ginCounterCount;
} ncclDevComm_t;

typedef struct ncclDevResourceRequirements {
    struct ncclDevResourceRequirements *next;
    size_t bufferSize, bufferAlign;
    ncclDevResourceHandle_t *outBufferHandle;
    int ginSignalCount, ginCounterCount;
    ncclGinSignal_t *outGinSignalStart;
    ncclGinCounter_t *outGinCounterStart;
} ncclDevResourceRequirements_t;

typedef struct ncclTeamRequirements {
    struct ncclTeamRequirements *next;
    ncclTeam_t team;
    bool multimem;
    ncclMultimemHandle_t *outMultimemHandle;
} ncclTeamRequirements_t;

/** Requirements for a device communicator. Started with NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER. */
typedef struct ncclDevCommRequirements {
    size_t size;
    unsigned int magic; /* 0xcafebeef */
    unsigned int version;
    ncclDevResourceRequirements_t *resourceRequirementsList;
    ncclTeamRequirements_t *teamRequirementsList;
    bool lsaMultimem;
    int barrierCount, lsaBarrierCount, railGinBarrierCount;
    int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
    bool ginForceEnable;
    int ginContextCount, ginSignalCount, ginCounterCount;
} ncclDevCommRequirements_t;

#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                                                         \
    {                                                                                                                  \
        sizeof(ncclDevCommRequirements_t), 0xcafebeef, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NULL, NULL,   \
            false, 0, 0, 0, 0, 0, false, 0, 0, 0                                                                       \
    }

/** Capabilities of a communicator. Started with NCCL_COMM_PROPERTIES_INITIALIZER. */
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

/** Fills as much as the program's struct has. Not initialised with the macro: ncclInvalidArgument. */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties);
ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties);

/** ncclInvalidUsage, and *devComm is zeroed, which can be destroyed. An invalid communicator: ncclInvalidArgument. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *devComm);
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *devComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);

/** ncclInvalidUsage: these reserve resources of kernels. */
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

/** For an invalid communicator, teams without ranks. */
ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t pncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t pncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);
ncclTeam_t pncclTeamRail(ncclComm_t comm);

/** The rank in the communicator, or in the LSA team, of rank `rank` of `team`; -1 for an invalid communicator. */
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

/** Slots for `maxElts` elements of `maxEltSize` bytes, 8 bytes each. */
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);
int pncclLLA2ACalcSlots(int maxElts, int maxEltSize);

/* ---- addresses of windows ---- */

/**
 * Byte `offset` of the part of a rank of the LSA team, which is this rank alone: rank 0. Other ranks, an invalid
 * window, or an offset beyond the window: ncclInvalidArgument.
 */
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void **outPtr);
ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void **outPtr);

/** The same in the part of rank `peer` of the communicator: NULL if that is not this rank. */
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr);
ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr);

/** NULL: there is no multicast. */
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr);
ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem,
                                          void **outPtr);
ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem,
                                           void **outPtr);

/* ---- arithmetic of teams ---- */

#ifdef __CUDACC__
#define NCCL_TEAM_INLINE static inline __host__ __device__
#else
#define NCCL_TEAM_INLINE static inline
#endif

/** Is rank `rank` of team `b` in team `a`? */
NCCL_TEAM_INLINE bool ncclTeamRankIsMember(ncclTeam_t a, ncclTeam_t b, int rank)
{
    int distance = (rank - b.rank) * b.stride, place = a.rank + distance / a.stride;

    return distance % a.stride == 0 && place >= 0 && place < a.nRanks;
}

/** Its rank in team `a`, of which it is a member. */
NCCL_TEAM_INLINE int ncclTeamRankToTeam(ncclTeam_t a, ncclTeam_t b, int rank)
{
    return a.rank + (rank - b.rank) * b.stride / a.stride;
}

/** The ranks of `parent` in blocks of `innerSize`: the own block, or the ranks at the own position in all blocks. */
NCCL_TEAM_INLINE ncclTeam_t ncclTeamInnerFactor(ncclTeam_t parent, int innerSize)
{
    ncclTeam_t team = {innerSize, parent.rank % innerSize, parent.stride};

    return team;
}

NCCL_TEAM_INLINE ncclTeam_t ncclTeamOuterFactor(ncclTeam_t parent, int innerSize)
{
    ncclTeam_t team = {parent.nRanks / innerSize, parent.rank / innerSize, parent.stride * innerSize};

    return team;
}

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__CUDACC__)

/* ---- device-side declarations ----
 *
 * No kernel can get a device communicator, so none of this code runs; if it does, it traps. */
#include <cuda/atomic>

struct ncclTeamTagWorld {
};
struct ncclTeamTagLsa {
};
struct ncclTeamTagRail {
};

static inline __host__ __device__ ncclTeam ncclTeamWorld(const ncclDevComm &comm)
{
    return ncclTeam{comm.nRanks, comm.rank, 1};
}

static inline __host__ __device__ ncclTeam ncclTeamLsa(const ncclDevComm &comm)
{
    return ncclTeam{comm.lsaSize, comm.lsaRank, 1};
}

static inline __host__ __device__ ncclTeam ncclTeamRail(const ncclDevComm &comm)
{
    return ncclTeam{comm.nRanks / comm.lsaSize, comm.rank / comm.lsaSize, comm.lsaSize};
}

static inline __host__ __device__ int ncclTeamRankToWorld(const ncclDevComm &comm, ncclTeam team, int rank)
{
    return comm.rank + (rank - team.rank) * team.stride;
}

static inline __host__ __device__ int ncclTeamRankToLsa(const ncclDevComm &comm, ncclTeam team, int rank)
{
    return comm.lsaRank + (rank - team.rank) * team.stride;
}

/* Sets of threads. */
template <int THREADS> struct ncclCoopTile {
    __device__ int thread_rank() const
    {
        return (int)threadIdx.x % THREADS;
    }
    __device__ int size() const
    {
        return THREADS;
    }
    __device__ int num_threads() const
    {
        return THREADS;
    }
    __device__ void sync()
    {
        __trap();
    }
};
typedef ncclCoopTile<1> ncclCoopThread;
typedef ncclCoopTile<32> ncclCoopWarp;

struct ncclCoopCta {
    __device__ int thread_rank() const
    {
        return (int)threadIdx.x;
    }
    __device__ int size() const
    {
        return (int)blockDim.x;
    }
    __device__ int num_threads() const
    {
        return (int)blockDim.x;
    }
    __device__ void sync()
    {
        __syncthreads();
    }
};

#define KOLO_NO_DEVICE_COMM(type, ...)                                                                                 \
    static inline __device__ type __VA_ARGS__                                                                          \
    {                                                                                                                  \
        __trap();                                                                                                      \
        return nullptr;                                                                                                \
    }
KOLO_NO_DEVICE_COMM(void *, ncclGetLocalPointer(ncclWindow_t, size_t))
KOLO_NO_DEVICE_COMM(void *, ncclGetLsaPointer(ncclWindow_t, size_t, int))
KOLO_NO_DEVICE_COMM(void *, ncclGetPeerPointer(ncclWindow_t, size_t, int))
KOLO_NO_DEVICE_COMM(void *, ncclGetPeerPointer(ncclWindow_t, size_t, ncclTeam, int))
KOLO_NO_DEVICE_COMM(void *, ncclGetMultimemPointer(ncclWindow_t, size_t, ncclMultimemHandle))
KOLO_NO_DEVICE_COMM(void *, ncclGetLsaMultimemPointer(ncclWindow_t, size_t, const ncclDevComm &))
#undef KOLO_NO_DEVICE_COMM

/* Network operations by kernels. */
enum class ncclGinFenceLevel { Relaxed };
struct ncclGin_None {
};
struct ncclGin_SignalInc {
    ncclGinSignal_t signal;
};
struct ncclGin_SignalAdd {
    ncclGinSignal_t signal;
    uint64_t value;
};
struct ncclGin_CounterInc {
    ncclGinCounter_t counter;
};

struct ncclGin {
    const ncclDevComm &comm;

    __device__ ncclGin(const ncclDevComm &devComm, int) : comm(devComm)
    {
    }
    template <typename... Actions>
    __device__ void put(ncclTeam, int, ncclWindow_t, size_t, ncclWindow_t, size_t, size_t, Actions...) const
    {
        __trap();
    }
    template <typename... Actions> __device__ void signal(ncclTeam, int, Actions...) const
    {
        __trap();
    }
    template <typename Coop> __device__ void flush(Coop) const
    {
        __trap();
    }
    template <typename Coop> __device__ void waitSignal(Coop, ncclGinSignal_t, uint64_t) const
    {
        __trap();
    }
    __device__ uint64_t readSignal(ncclGinSignal_t) const
    {
        __trap();
        return 0;
    }
};

/* Barriers among ranks. */
template <typename Coop> struct ncclLsaBarrierSession {
    template <typename... Arguments> __device__ ncclLsaBarrierSession(Coop, const ncclDevComm &, Arguments...)
    {
    }
    ncclLsaBarrierSession(const ncclLsaBarrierSession &) = delete;
    __device__ void arrive(Coop, cuda::memory_order)
    {
        __trap();
    }
    __device__ void wait(Coop, cuda::memory_order)
    {
        __trap();
    }
    __device__ void sync(Coop, cuda::memory_order)
    {
        __trap();
    }
};

template <typename Coop> struct ncclGinBarrierSession {
    template <typename... Arguments> __device__ ncclGinBarrierSession(Coop, const ncclGin &, Arguments...)
    {
    }
    ncclGinBarrierSession(const ncclGinBarrierSession &) = delete;
    __device__ void sync(Coop, cuda::memory_order, ncclGinFenceLevel)
    {
        __trap();
    }
};

template <typename Coop> struct ncclBarrierSession {
    template <typename Tag, typename... Arguments> __device__ ncclBarrierSession(Coop, Tag, Arguments &&...)
    {
    }
    ncclBarrierSession(const ncclBarrierSession &) = delete;
    __device__ void sync(Coop, cuda::memory_order, ncclGinFenceLevel)
    {
        __trap();
    }
};

#endif /* kernels */

#endif
