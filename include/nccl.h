/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nccl.h - the NCCL API, as Kolo provides it (API level 2.32).
 *
 * Names, enum values, macro values and struct layouts are NCCL's, so that a program compiled against NVIDIA's header
 * runs with Kolo's library and the other way round. Every function has an alias with the prefix `p`, for tools that
 * replace ncclX.
 *
 * Devices:  host devices (CPUs that emulate GPUs) by default; a device pointer is then any host pointer, and a stream
 *           is a host stream of kolo.h, or NULL.
 * Errors:   ncclResult_t; ncclGetLastError() has the sentence that names the failure, the place and the remedy.
 * Threads:  one thread at a time uses a communicator; ncclCommAbort and ncclCommGetAsyncError may come from any.
 * Source:   https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* Programs may rely on NCCL's header to include CUDA's, if the compiler finds those. They are not needed here. */
#ifdef __has_include
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#endif
#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#if defined(__cplusplus) && __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#endif
#endif

#define NCCL_MAJOR  2
#define NCCL_MINOR  32
#define NCCL_PATCH  3
#define NCCL_SUFFIX ""

#define NCCL_VERSION_CODE     23203
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* exported also from libraries compiled with hidden visibility, as Kolo is */
#endif

/* The same declarations as CUDA's own. */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

/* ---- results ---- */

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclTimeout = 8, /* of kernels only */
    ncclNumResults = 9
} ncclResult_t;

/* ---- configuration ---- */

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR    (-1)
#define NCCL_UNDEF_FLOAT      (-1.0f)

#define NCCL_API_MAGIC 0xcafebeef

#define NCCL_WIN_DEFAULT            0x00
#define NCCL_WIN_COLL_SYMMETRIC     0x01
#define NCCL_WIN_STRICT_ORDERING    0x02
#define NCCL_WIN_GIN_ONLY           0x04
#define NCCL_WIN_CFT_COUNTED        0x08 /* ncclInvalidUsage: host devices do not count fabric writes */
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT    0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO       0x02

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT   0x01

#define NCCL_REVOKE_DEFAULT 0x00

#define NCCL_SUSPEND_MEM 0x01

typedef enum {
    ncclHostCftDefault = NCCL_CONFIG_UNDEF_INT,
    ncclHostCftEnable = 1, /* ncclInvalidUsage: host devices do not count fabric writes */
    ncclHostCftDisable = 2,
    ncclHostCftFallback = 3 /* use it where it works */
} ncclHostCftMode_t;

/* Flags, which may be combined. */
typedef enum {
    ncclNvlsHostModeDefault = NCCL_CONFIG_UNDEF_INT,
    ncclNvlsHostModeEnable = 0,
    ncclNvlsHostModeDisableTransport = 1,         /* no NVLS, NVLSTree in this communicator */
    ncclNvlsHostModeDisableSymmetricMultimem = 2, /* no effect: host devices have no such kernels */
    ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

typedef struct ncclConfig_v23100 {
    size_t size;        /* first three: set by NCCL_CONFIG_INITIALIZER */
    unsigned int magic; /* 0xcafebeef */
    unsigned int version;
    int blocking; /* below: set by the user, or left undefined */
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
    int nChannelsPerNetPeer;
    int nvlinkCentricSched;
    int graphUsageMode;
    int numRmaCtx;
    int maxP2pPeers;
    int graphStreamOrdering;
    int launchOrderImplicit;
    int numRmaSig;
    int rmaEagerInit;
    int hostCftMode;  /* ncclHostCftMode_t */
    int nvlsHostMode; /* ncclNvlsHostMode_t */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                                        \
    {                                                                                                                  \
        sizeof(ncclConfig_t),                                 /* size */                                               \
            NCCL_API_MAGIC,                                   /* magic */                                              \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), /* version */                                            \
            NCCL_CONFIG_UNDEF_INT,                            /* blocking */                                           \
            NCCL_CONFIG_UNDEF_INT,                            /* cgaClusterSize */                                     \
            NCCL_CONFIG_UNDEF_INT,                            /* minCTAs */                                            \
            NCCL_CONFIG_UNDEF_INT,                            /* maxCTAs */                                            \
            NCCL_CONFIG_UNDEF_PTR,                            /* netName */                                            \
            NCCL_CONFIG_UNDEF_INT,                            /* splitShare */                                         \
            NCCL_CONFIG_UNDEF_INT,                            /* trafficClass */                                       \
            NCCL_CONFIG_UNDEF_PTR,                            /* commName */                                           \
            NCCL_CONFIG_UNDEF_INT,                            /* collnetEnable */                                      \
            NCCL_CONFIG_UNDEF_INT,                            /* CTAPolicy */                                          \
            NCCL_CONFIG_UNDEF_INT,                            /* shrinkShare */                                        \
            NCCL_CONFIG_UNDEF_INT,                            /* nvlsCTAs */                                           \
            NCCL_CONFIG_UNDEF_INT,                            /* nChannelsPerNetPeer */                                \
            NCCL_CONFIG_UNDEF_INT,                            /* nvlinkCentricSched */                                 \
            NCCL_CONFIG_UNDEF_INT,                            /* graphUsageMode */                                     \
            NCCL_CONFIG_UNDEF_INT,                            /* numRmaCtx */                                          \
            NCCL_CONFIG_UNDEF_INT,                            /* maxP2pPeers */                                        \
            NCCL_CONFIG_UNDEF_INT,                            /* graphStreamOrdering */                                \
            NCCL_CONFIG_UNDEF_INT,                            /* launchOrderImplicit */                                \
            NCCL_CONFIG_UNDEF_INT,                            /* numRmaSig */                                          \
            NCCL_CONFIG_UNDEF_INT,                            /* rmaEagerInit */                                       \
            NCCL_CONFIG_UNDEF_INT,                            /* hostCftMode */                                        \
            NCCL_CONFIG_UNDEF_INT                             /* nvlsHostMode */                                       \
    }

/* An option of one vendor's library, in a list without cycles; Kolo has none, and ignores them, as NCCL does. */
typedef struct ncclConfigExt {
    struct ncclConfigExt *next;
    struct {
        int vendorId, optionId;
    } key;
    union {
        int i;
        const char *s;
        void *raw;
    } val;
} ncclConfigExt_t;

/*
 * How one collective is done; for the nccl...Config functions. All ranks give the same; of those that do not, the calls differ,
 * and fail as calls with different arguments do.
 */
typedef struct ncclCollConfig_v23200 {
    size_t size; /* first three: set by NCCL_COLLCONFIG_INITIALIZER */
    unsigned int magic;
    unsigned int version;
    ncclConfigExt_t *ext;
    int minCTAs; /* limits of the number of channels; maxCTAs: at most the communicator's */
    int maxCTAs;
    int nvlsCTAs;       /* the same for NVLS */
    int cgaClusterSize; /* checked; no effect on host devices */
    /* Which algorithms may be used, in the form of NCCL_ALGO's value without functions: "ring,tree", "^nvls"; NULL or "": all. */
    const char *algSelection;
    int forceAlgSelection; /* 1: an algSelection that leaves nothing is ncclInvalidUsage; 0: it is ignored */
    int CTAPolicy;         /* checked; no effect on host devices */
    uint64_t userProfilerTag;
    /*
     * NULL, or an event that is recorded on the call's stream before the operation: one of kolo.h, or, in a process that has
     * CUDA's runtime, one of that. The caller keeps it until the call is done.
     */
    cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                                                                                    \
    {                                                                                                                  \
        sizeof(ncclCollConfig_t),                             /* size */                                               \
            NCCL_API_MAGIC,                                   /* magic */                                              \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), /* version */                                            \
            NCCL_CONFIG_UNDEF_PTR,                            /* ext */                                                \
            NCCL_CONFIG_UNDEF_INT,                            /* minCTAs */                                            \
            NCCL_CONFIG_UNDEF_INT,                            /* maxCTAs */                                            \
            NCCL_CONFIG_UNDEF_INT,                            /* nvlsCTAs */                                           \
            NCCL_CONFIG_UNDEF_INT,                            /* cgaClusterSize */                                     \
            NCCL_CONFIG_UNDEF_PTR,                            /* algSelection */                                       \
            1,                                                /* forceAlgSelection */                                  \
            NCCL_CONFIG_UNDEF_INT,                            /* CTAPolicy */                                          \
            0,                                                /* userProfilerTag */                                    \
            NCCL_CONFIG_UNDEF_PTR                             /* launchCompletionEvent */                              \
    }

typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic; /* 0x74685283 */
    unsigned int version;
    float estimatedTime; /* microseconds */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                                                      \
    {                                                                                                                  \
        sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT          \
    }

/* ---- handles, types, operations ---- */

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef struct ncclComm *ncclComm_t;
#define NCCL_COMM_NULL NULL
typedef struct ncclWindow_vidmem *ncclWindow_t;

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t)) /* makes the enum an int everywhere */
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

/* ---- version, errors ---- */

/** The version of the library, 23203 for 2.32.3. NULL: ncclInvalidArgument. Any thread. */
ncclResult_t ncclGetVersion(int *version);
ncclResult_t pncclGetVersion(int *version);

/** The general meaning of a code. Constant text; never NULL. Any thread. */
const char *ncclGetErrorString(ncclResult_t result);
const char *pncclGetErrorString(ncclResult_t result);

/**
 * The sentence of the last failure: of `comm` if it has failed, else of the process's last call that failed, in any
 * thread. Empty if there was none. Valid until the calling thread's next call.
 */
const char *ncclGetLastError(ncclComm_t comm);
const char *pncclGetLastError(ncclComm_t comm);

/** Read NCCL_DEBUG and its companion variables again. NCCL keeps it for old programs only. */
#ifdef __GNUC__
__attribute__((deprecated("ncclResetDebugInit will be removed from the NCCL API")))
#endif
void ncclResetDebugInit(void);
#ifdef __GNUC__
__attribute__((deprecated("pncclResetDebugInit will be removed from the NCCL API")))
#endif
void pncclResetDebugInit(void);

/* ---- life of a communicator ---- */

/**
 * Make the id that the ranks of one communicator share; send it to all of them by any means. Starts the rendezvous in
 * this process, which has to live until every rank has joined. With NCCL_COMM_ID=host:port the id names that address
 * and rank 0 opens it.
 * Errors: ncclSystemError (no interface, port taken), ncclInvalidArgument.
 */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t pncclGetUniqueId(ncclUniqueId *id);

/**
 * Join communicator `id` as `rank` of `nranks`; returns when all ranks have. The device is the thread's current one, else
 * the next free of its host. Errors: ncclInvalidArgument; ncclRemoteError when a rank is missing, dead or has another
 * secret within KOLO_BOOTSTRAP_TIMEOUT; ncclSystemError. `*comm` is set before ranks are waited for, so that another
 * thread can abort; it is NULL again when the call fails.
 */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);

/**
 * The same with a configuration, NULL for none: started with NCCL_CONFIG_INITIALIZER, of this or any other version of
 * NCCL. With `blocking` 0 it returns ncclInProgress at once, and so do later calls that take long: until
 * ncclCommGetAsyncError returns another code, all other calls but ncclCommAbort are ncclInvalidArgument. `*comm` is set
 * at once in either case, for an abort by another thread. All ranks must request the same channels.
 *
 *     minCTAs, maxCTAs, nvlsCTAs, nChannelsPerNetPeer   numbers of channels
 *     collnetEnable, nvlsHostMode                       reductions in the network, NVLS
 *     numRmaCtx, numRmaSig                              contexts of one-sided operations, signals of each
 *     netName                                           a network by its name; an unknown one: ncclInvalidUsage
 *     commName                                          appears in the log
 *     the others                                        are checked, and have no effect on host devices
 */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config);

/**
 * The same with `nId` ids (1 to nranks), in the same order on all ranks: each has a root, which serves a share of the
 * ranks. Useful with thousands of ranks. Ids of one address (NCCL_COMM_ID) count as one.
 */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                                      ncclConfig_t *config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                                       ncclConfig_t *config);

/**
 * One process, `ndev` ranks: comms[i] is rank i on device devlist[i] (NULL: i). A device twice: ncclInvalidUsage; one
 * that does not exist: ncclInvalidArgument; without a list, more than exist: ncclUnhandledCudaError.
 */
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist);
ncclResult_t pncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist);

/**
 * Every rank of `comm` calls it: ranks with the same `color` (at least 0) become a communicator, ordered by `key` and
 * then by rank; with NCCL_SPLIT_NOCOLOR a rank gets NULL. `config` NULL: the one of `comm`. `*newcomm` is written when
 * it is complete; `comm`, if it is not blocking, is in progress until then, and aborting it aborts this. Children have
 * connections of their own (splitShare has no effect). In a group: deferred to its end.
 */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config);

/**
 * A communicator without the ranks listed, which need not call this, nor be alive; the others do, with the same list,
 * and keep their order. NCCL_SHRINK_ABORT: operations of `comm` in progress are aborted first, and `comm`, also one
 * that has failed, can only be ended afterwards. NCCL_SHRINK_DEFAULT: `comm` must not have failed, and stays usable.
 * Otherwise as ncclCommSplit.
 */
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                            ncclConfig_t *config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                             ncclConfig_t *config, int shrinkFlags);

/** An id with which new ranks join the next communicator that ncclCommGrow makes of `comm`; one rank calls it. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);

/**
 * A communicator of `nRanks`: all ranks of `comm`, which call it with rank -1 and keep theirs (`uniqueId` may be NULL
 * except where it was made), and new ones, which call it with `comm` NULL, the id, and ranks from the size of `comm`
 * on. Otherwise as ncclCommSplit.
 */
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                          ncclConfig_t *config);
ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                           ncclConfig_t *config);

/**
 * Abort operations in progress, on this rank: waits for them end with ncclInternalError. Afterwards `comm` accepts no
 * operations, but may be split, shrunk (also if it has failed) and grown, and is destroyed. Flags: NCCL_REVOKE_DEFAULT.
 */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/**
 * Every rank calls it: finish all issued operations, and free the memory of connections (flags: NCCL_SUSPEND_MEM).
 * Until ncclCommResume, which every rank calls too, all operations are ncclInvalidUsage. In a group: deferred to its
 * end.
 */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t pncclCommResume(ncclComm_t comm);

/**
 * Finish all issued operations; afterwards only destroy, abort and queries are allowed. Not blocking: ncclInProgress.
 * Waits for own operations only, even if other ranks have left. In a group: after the group's operations.
 */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/** Finalize if that was not done, then free. Waits for own operations, never for the destroy of another rank. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/**
 * Stop all operations, here and on every other rank (they get ncclRemoteError naming this rank), and free. Any thread.
 */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/**
 * The state: the first asynchronous failure, which stays; ncclInProgress while a non-blocking call is in progress;
 * afterwards the result of the last one. Any thread.
 */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank);

/* ---- operations ----
 *
 * All are queued on `stream` and return at once; counts are elements. Every rank of the communicator issues the same
 * collectives in the same order. In place where the buffers coincide as noted. Unknown type, operation or root, and
 * count * size beyond the address space: ncclInvalidArgument. An earlier asynchronous failure is returned again. */

/** recvbuff[i] = op over ranks of sendbuff[i], everywhere. In place: sendbuff == recvbuff. */
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream);

/** As all-reduce, the result on `root` only; recvbuff may be NULL elsewhere. */
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                         int root, ncclComm_t comm, cudaStream_t stream);

/** recvbuff = sendbuff of `root`, everywhere; sendbuff may be NULL elsewhere. In place: sendbuff == recvbuff. */
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream);

/** The in-place form of ncclBroadcast. */
ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream);

/** recvbuff[r * sendcount ...] = sendbuff of rank r. In place: sendbuff == recvbuff + rank * sendcount. */
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream);

/** recvbuff = op over ranks of sendbuff[rank * recvcount ...]. In place: recvbuff == sendbuff + rank * recvcount. */
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/**
 * recvbuff[r * count ...] = sendbuff[rank * count ...] of rank r. In place it is no error, and has the result of a group of sends and
 * receives: parts that arrive may overwrite some that are still to be sent.
 */
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);

/** recvbuff[r * count ...] = sendbuff of rank r, on `root`; recvbuff may be NULL elsewhere. In place: sendbuff there. */
ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream);

/** recvbuff = sendbuff[rank * count ...] of `root`; sendbuff may be NULL elsewhere. In place: recvbuff there. */
ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                          ncclComm_t comm, cudaStream_t stream);

/* ---- operations with a configuration ----
 *
 * As the functions without Config; `config` NULL: exactly as these. It is read before the call returns. Errors as theirs, and
 * ncclInvalidArgument: a config that does not begin with NCCL_COLLCONFIG_INITIALIZER, or a value out of its range, which is named;
 * ncclInvalidUsage: maxCTAs above the communicator's, or an algSelection that leaves no algorithm.
 */
ncclResult_t ncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config);
ncclResult_t pncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t *config);
ncclResult_t ncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                     const ncclCollConfig_t *config);
ncclResult_t pncclReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                      const ncclCollConfig_t *config);
ncclResult_t ncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                              ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);

/** Send to `peer`, which calls ncclRecv with the same count and type. Sends and receives that need each other: group. */
ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/** Receive from `peer`; the k-th receive from a peer gets its k-th send to this rank. */
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/**
 * An operation for `comm` and `datatype`: each rank multiplies its contribution by its own `*scalar`, and the products
 * are summed. ncclScalarHostImmediate: the scalar is read now; ncclScalarDevice: whenever an operation begins.
 * Errors: ncclInvalidArgument.
 */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm);

/** Operations already issued with it are not affected. Built-in, or not of `comm`: ncclInvalidArgument. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* ---- encryption ---- */

typedef enum {
    NCCL_ENCRYPTION_MODE_NONE = 0,
    NCCL_ENCRYPTION_MODE_PSK =
        1 /* all that goes over sockets is encrypted, and only ranks with the same key can join */
} ncclEncryptionMode_t;

typedef struct ncclEncryptionConfig_v23200 {
    size_t size; /* first three: set by NCCL_ENCRYPTION_CONFIG_INITIALIZER */
    unsigned int magic;
    unsigned int version;
    int mode;        /* ncclEncryptionMode_t */
    const char *psk; /* at least 32 bytes before its zero; copied */
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                                                             \
    {                                                                                                                  \
        sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),              \
            NCCL_ENCRYPTION_MODE_NONE, NCCL_CONFIG_UNDEF_PTR                                                           \
    }

/**
 * For the unique ids and communicators that this process makes from now on; the user's settings (KOLO_PSK, KOLO_NET_CRYPT)
 * take precedence. Errors: ncclInvalidArgument: not initialised, another mode, no key, or one that is too short or has more than 1,023 bytes.
 */
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config);
ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *config);

/* ---- memory ---- */

/**
 * Page-aligned memory of the thread's current device that other processes can map. It takes a file descriptor until it is
 * freed, and a forked child shares it with its parent. size 0: *ptr = NULL. More than the machine has: ncclInvalidArgument.
 */
ncclResult_t ncclMemAlloc(void **ptr, size_t size);
ncclResult_t pncclMemAlloc(void **ptr, size_t size);

/** Free it, from any thread. Other pointers, or a second time: ncclInvalidArgument. NULL is fine. */
ncclResult_t ncclMemFree(void *ptr);
ncclResult_t pncclMemFree(void *ptr);

/**
 * Register a buffer that will be used repeatedly; `*handle` is for ncclCommDeregister. On host devices it is no faster;
 * a registered range stays mapped until it is deregistered, or the communicator ends. NCCL_LOCAL_REGISTER=0: no effect,
 * and the handle is NULL.
 */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle);

/** NULL is fine; any other value that is not a handle of this communicator: ncclInvalidUsage. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle);

/**
 * Every rank calls it with its buffer (aligned to NCCL_WIN_REQUIRED_ALIGNMENT) and the same flags; `*win` is written
 * when all have. On host devices collectives gain nothing from it; one-sided operations need it. In a group: deferred
 * to its end.
 * Errors: ncclInvalidArgument; ncclInvalidUsage: flags that differ; ncclRemoteError: it failed on another rank.
 */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags);

/** On this rank only. NULL is fine; not a window of `comm`: ncclInvalidUsage. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/** The buffer that this rank registered. Not a window of `comm`: ncclInvalidArgument. */
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);
ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

/* ---- one-sided operations: writes into other ranks' windows, and signals ----
 *
 * Work of `stream`, in its order. In a group: queued at its end; those called before the communicator's first
 * collective or message run before all of these, the others after all of them. They cannot be captured. The target
 * takes no part except to wait for signals: it may be in other operations, or in none. Signals have a context (below
 * numRmaCtx of the configuration, 1 by default), a number (0 to 15) and a source, and are counted. Invalid contexts,
 * numbers, windows and ranges, and flags other than 0: ncclInvalidArgument. Before the first window:
 * ncclInvalidUsage. Memory of ncclMemAlloc can be written by all processes of a host directly; other memory, and
 * memory of other hosts, over the network. */

/**
 * Write `count` elements at byte `peerWinOffset` of the window of `peer` (which `peerWin` names on this rank), then signal it. Done
 * when the buffer may be reused. Puts to one peer arrive in the order of their streams, and before their signals.
 */
ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
                           size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                            ncclComm_t comm, cudaStream_t stream);

/** Signal `peer`, after earlier puts to it on this stream. */
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);

/** A number of signals of one source. */
typedef struct {
    int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;

/**
 * Later work of `stream` runs when all these have come, beyond those that were waited for before; earlier puts of their
 * sources have arrived then. `signalDescs` is not needed after the call.
 */
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream);

typedef enum {
    ncclStatGpuMemSuspend = 0,   /* bytes that suspending frees */
    ncclStatGpuMemSuspended = 1, /* 1 if it is suspended */
    ncclStatGpuMemPersist = 2,   /* bytes that stay */
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

/** Memory of the communicator on this rank. */
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

/* ---- groups ---- */

/** Open a group: calls until the matching ncclGroupEnd are collected. Nests; per thread. */
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);

/**
 * Close it; the outermost queues everything at once, or returns the first error and drops all. Without start:
 * ncclInvalidUsage.
 */
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/**
 * Close it without running anything: the collected calls are dropped, and `simInfo` (started with
 * NCCL_SIM_INFO_INITIALIZER) gets the microseconds that the collectives would take, by the cost model that chooses
 * their algorithms. Only the end of the outermost group writes it.
 */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo);

/* ---- parameters ----
 *
 * The values in force, as `kolo env` shows them: set for the process, or defaults. Any thread. */

typedef struct ncclParamHandle *ncclParamHandle_t;

/** A parameter by its name, such as "NCCL_DEBUG". Unknown: ncclInvalidArgument. */
ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key);
ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key);

/** Its number; of a choice, its index. A text, or a number that does not fit: ncclInvalidArgument. */
ncclResult_t ncclParamGetI8(ncclParamHandle_t handle, int8_t *out);
ncclResult_t pncclParamGetI8(ncclParamHandle_t handle, int8_t *out);
ncclResult_t ncclParamGetI16(ncclParamHandle_t handle, int16_t *out);
ncclResult_t pncclParamGetI16(ncclParamHandle_t handle, int16_t *out);
ncclResult_t ncclParamGetI32(ncclParamHandle_t handle, int32_t *out);
ncclResult_t pncclParamGetI32(ncclParamHandle_t handle, int32_t *out);
ncclResult_t ncclParamGetI64(ncclParamHandle_t handle, int64_t *out);
ncclResult_t pncclParamGetI64(ncclParamHandle_t handle, int64_t *out);
ncclResult_t ncclParamGetU8(ncclParamHandle_t handle, uint8_t *out);
ncclResult_t pncclParamGetU8(ncclParamHandle_t handle, uint8_t *out);
ncclResult_t ncclParamGetU16(ncclParamHandle_t handle, uint16_t *out);
ncclResult_t pncclParamGetU16(ncclParamHandle_t handle, uint16_t *out);
ncclResult_t ncclParamGetU32(ncclParamHandle_t handle, uint32_t *out);
ncclResult_t pncclParamGetU32(ncclParamHandle_t handle, uint32_t *out);
ncclResult_t ncclParamGetU64(ncclParamHandle_t handle, uint64_t *out);
ncclResult_t pncclParamGetU64(ncclParamHandle_t handle, uint64_t *out);

/** Its text; "(set)" for a secret. Valid until the thread's next call of these functions. */
ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char **out);
ncclResult_t pncclParamGetStr(ncclParamHandle_t handle, const char **out);

/** Its bytes: 8 of a number, or a text with its zero. More than maxLen: ncclInvalidArgument. */
ncclResult_t ncclParamGet(ncclParamHandle_t handle, void *out, int maxLen, int *len);
ncclResult_t pncclParamGet(ncclParamHandle_t handle, void *out, int maxLen, int *len);

/** ncclParamBind and ncclParamGetStr in one; the length is without the zero. */
ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *valueLen);
ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *valueLen);

/** The names of all; the table stays. */
ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *tableLen);
ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *tableLen);

/** Log all (NCCL_DEBUG=INFO, subsystem ENV). */
void ncclParamDumpAll(void);
void pncclParamDumpAll(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
