/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kolo.h - what Kolo adds to the NCCL API: host devices, streams, events and memory, and joining a job.
 *
 * A host device is a CPU that plays a GPU. A host stream is an ordered queue of operations with CUDA's semantics: calls
 * return at once, each stream runs in order. Whoever waits on a stream runs it; what nobody waits for is taken over by a
 * background thread after about 100 microseconds.
 *
 * Errors:   ncclResult_t as in nccl.h. When an operation fails, every later call with its communicator returns the failure,
 *           and so does every wait and query that concerns the operation: koloStreamSynchronize and koloStreamQuery of its
 *           stream, koloEventSynchronize and koloEventQuery of events recorded behind it. That ends with the communicator:
 *           after ncclCommDestroy, which returns the failure too, the stream is as new; after ncclCommAbort, the first of
 *           these calls returns what the abort took back, if none has before, and then the stream is as new.
 *           A communicator that was destroyed or aborted is ncclInvalidArgument in every call, a second destroy included.
 * Threads:  every function may be called from any thread; one thread at a time destroys a given object.
 * Fork:     a child may use the library, and creates communicators of its own: any use of its parent's, and the end of a
 *           group that its parent opened, is ncclInvalidUsage. Its parent's streams are empty there, and events done.
 */
#ifndef KOLO_H_
#define KOLO_H_

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct CUstream_st *koloStream_t; /* a host stream is passed where NCCL takes a cudaStream_t */
typedef struct koloEvent *koloEvent_t;

#define KOLO_STREAM_DEFAULT 0u
#define KOLO_STREAM_INLINE  1u /* operations run inside the call that issues them, as in MPI */

/* ---- more operations ----
 *
 * For every function that reduces, on integers: of their bits, and of truth values (what is not 0 is true, results are 0 or 1). Other
 * types: ncclInvalidArgument.
 */
#define koloBitAnd     ((ncclRedOp_t)0x7b000000)
#define koloBitOr      ((ncclRedOp_t)0x7b000001)
#define koloBitXor     ((ncclRedOp_t)0x7b000002)
#define koloLogicalAnd ((ncclRedOp_t)0x7b000003)
#define koloLogicalOr  ((ncclRedOp_t)0x7b000004)
#define koloLogicalXor ((ncclRedOp_t)0x7b000005)

/* ---- more collectives ----
 *
 * As those of nccl.h, but for the number of elements, which may differ from rank to rank. Arrays have one entry for each rank, and are
 * not looked at after the call; offsets and counts are elements. What a rank sends to another one is as much as that receives from it;
 * where that is nothing, nothing moves.
 */

/** recvbuff[displs[r] ...] = the recvcounts[r] elements of rank r. sendcount is the own one of these. In place: sendbuff there. */
ncclResult_t koloAllGatherV(const void *sendbuff, size_t sendcount, void *recvbuff, const size_t *recvcounts,
                            const size_t *displs, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/** sendbuff has recvcounts[0] elements for rank 0, then those for rank 1, ...: recvbuff = op over ranks of the own part. */
ncclResult_t koloReduceScatterV(const void *sendbuff, void *recvbuff, const size_t *recvcounts, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/** To rank r go sendcounts[r] elements at sdispls[r], from it come recvcounts[r] to rdispls[r]. Not in place. */
ncclResult_t koloAllToAllV(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                           const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);

/** What is behind it on `stream` runs when every rank has come so far. */
ncclResult_t koloBarrier(ncclComm_t comm, cudaStream_t stream);

/**
 * Number of host devices of this process: KOLO_HOST_DEVICES, else the topology file's GPUs, else the job's local size, else
 * the CPUs, but at least 8. `kolo topo` shows the same.
 */
ncclResult_t koloGetDeviceCount(int *count);

/** Choose the device that this thread's next communicators use. Out of range: ncclInvalidArgument. */
ncclResult_t koloSetDevice(int device);

/** The thread's current device; 0 when it never chose one and no communicator did for it. */
ncclResult_t koloGetDevice(int *device);

/**
 * Page-aligned memory of the current device. Any other host memory is as legal in every call. bytes 0: *ptr = NULL. More than
 * the machine has: ncclInvalidArgument.
 */
ncclResult_t koloMalloc(void **ptr, size_t bytes);
/** Free memory of koloMalloc or ncclMemAlloc; anything else, or a second time: ncclInvalidArgument. NULL is fine. */
ncclResult_t koloFree(void *ptr);

/** A new stream of the current device. Unknown flags: ncclInvalidArgument. */
ncclResult_t koloStreamCreate(koloStream_t *stream, unsigned flags);
/**
 * Wait until everything queued so far has run, running it here where possible. NULL: the device's default stream. Returns
 * what failed of it (Errors, above).
 */
ncclResult_t koloStreamSynchronize(koloStream_t stream);
/** ncclSuccess when everything queued has run, ncclInProgress while not, or what failed; a call also advances the work. */
ncclResult_t koloStreamQuery(koloStream_t stream);
/** Finish what is queued, then free. An open group with operations on it fails when it ends, with ncclInvalidUsage. */
ncclResult_t koloStreamDestroy(koloStream_t stream);

ncclResult_t koloEventCreate(koloEvent_t *event);
/** The event is done when everything queued on `stream` before this call has run. */
ncclResult_t koloEventRecord(koloEvent_t event, koloStream_t stream);
/** ncclSuccess, ncclInProgress, or what failed before the event. An event that was never recorded is done. */
ncclResult_t koloEventQuery(koloEvent_t event);
ncclResult_t koloEventSynchronize(koloEvent_t event);
ncclResult_t koloEventDestroy(koloEvent_t event);

/**
 * Join the job that the environment describes, and get its communicator: rank, size and rendezvous from KOLO_RANK,
 * KOLO_SIZE, KOLO_COMM_ID (`kolo run` sets them), or torchrun's RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or the
 * ranks of Open MPI's and MPICH's launchers. Without any of them: one rank. Half a description: ncclInvalidUsage.
 */
ncclResult_t koloInitFromEnv(ncclComm_t *comm);

/**
 * How long operations that this rank calls from now on may stand still, in milliseconds; 0: for ever. It begins with what KOLO_TIMEOUT
 * says, also in communicators that are made from this one. The first rank whose patience ends asks all where they are (2
 * seconds more where one is silent), and the operation fails on all with that: ncclRemoteError. Between two calls it is a
 * timeout for one operation. Like the operations, from one thread at a time. More than a year: ncclInvalidArgument.
 */
ncclResult_t koloSetTimeout(ncclComm_t comm, unsigned long long milliseconds);

/**
 * Write the communicator's flight record to a file, as JSON: its state, what it waits for, and its last 1,024 operations with
 * function, type, operator, root, bytes, stream, algorithm, state and times. The record is always kept; the same document is
 * written by itself when the communicator fails, if KOLO_FLIGHT_RECORDER names a file (docs/debugging.md).
 *
 * `file` is a pattern: %h stands for the host, %p for the process, %r for the rank, %c for the communicator, %% for %; one
 * without %r gets ".%r" at its end. NULL: that of KOLO_FLIGHT_RECORDER; ncclInvalidArgument if it is not set. A file that is
 * there is replaced. Errors: ncclSystemError, the file cannot be written. Works also when the communicator has failed.
 */
ncclResult_t koloFlightRecorder(ncclComm_t comm, const char *file);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
