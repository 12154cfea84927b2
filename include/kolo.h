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

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct CUstream_st *koloStream_t; /* a host stream is passed where NCCL takes a cudaStream_t */
typedef struct koloEvent *koloEvent_t;

#define KOLO_STREAM_DEFAULT  0u
#define KOLO_STREAM_INLINE   1u /* operations run inside the call that issues them, as in MPI */
#define KOLO_STREAM_BLOCKING 2u /* in order with its device's default stream, as CUDA's streams are */

/**
 * Handles that every call takes: the default stream of the device, as NULL is, and a stream of the calling thread, made at its first use for each
 * device, with KOLO_STREAM_BLOCKING. Of the current device; in operations: of the communicator's.
 */
#define koloStreamLegacy    ((koloStream_t)0x1)
#define koloStreamPerThread ((koloStream_t)0x2)

/**
 * Why a call of a stream, an event or a graph was ncclInvalidUsage: one for each case that CUDA has an error for, whose name and
 * number are given.
 */
typedef enum {
    koloReasonNone = 0,
    koloReasonCaptureUnsupported = 1, /* cudaErrorStreamCaptureUnsupported, 900: what a capture cannot have */
    koloReasonCaptureInvalidated = 2, /* ...Invalidated, 901: what went wrong before invalidated the capture */
    koloReasonCaptureMerge = 3,       /* ...Merge, 902: two captures would become one */
    koloReasonCaptureUnmatched = 4,   /* ...Unmatched, 903: the end on another stream than the begin */
    koloReasonCaptureUnjoined = 5,    /* ...Unjoined, 904: work that the first stream does not wait for */
    koloReasonCaptureIsolation = 6,   /* ...Isolation, 905: a wait for an event of outside */
    koloReasonCaptureImplicit = 7,    /* ...Implicit, 906: the default stream would wait for a stream that captures */
    koloReasonCapturedEvent = 8,      /* cudaErrorCapturedEvent, 907: a question about an event of a capture */
    koloReasonCaptureWrongThread = 9, /* cudaErrorStreamCaptureWrongThread, 908 */
    koloReasonCaptureState = 10,      /* cudaErrorIllegalState, 401: begun twice, or ended without a begin */
    koloReasonGraphUpdate = 11,       /* cudaErrorGraphExecUpdateFailure, 910 */
    koloReasonEventTime = 12          /* cudaErrorInvalidResourceHandle, 400: an event without time */
} koloReason_t;

/**
 * Of the calling thread's last call that was refused for one of these, once: it is forgotten when it has been read; koloReasonNone before the
 * first. Other calls do not change it: ask right after a call of a stream, an event or a graph was ncclInvalidUsage.
 */
koloReason_t koloGetLastReason(void);

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
 * the CPUs, but at least 8. `kolo topo` shows the same. With CUDA_VISIBLE_DEVICES, read once: those that it lists, in its order, by ordinals
 * or UUIDs, as CUDA reads it; every device of this interface is counted so.
 */
ncclResult_t koloGetDeviceCount(int *count);

/** Number of this host's devices, whatever CUDA_VISIBLE_DEVICES says: ordinals are below it. */
ncclResult_t koloGetHostDeviceCount(int *count);

/** The device's ordinal on its host, which CUDA_VISIBLE_DEVICES does not change. Out of range: ncclInvalidArgument, as below. */
ncclResult_t koloGetDeviceOrdinal(int device, int *ordinal);
/** 16 bytes, which the device has whenever its host (NCCL_HOSTID, or its name) and its ordinal are the same. */
ncclResult_t koloGetDeviceUuid(int device, unsigned char uuid[16]);

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

/* ---- streams ---- */

/**
 * A new stream of the current device. It costs memory, no thread. Unknown flags: ncclInvalidArgument.
 *
 * With KOLO_STREAM_BLOCKING: its work waits for all that the device's default stream was given before, and what that is given waits
 * for all that the device's blocking streams were. Other streams take no part. While one captures, work for the default stream is
 * ncclInvalidUsage. Waits and questions about the default stream are of what it was given, and of the blocking streams.
 */
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
/** Free without waiting: what is queued still runs. From now on the handle is ncclInvalidArgument. */
ncclResult_t koloStreamRelease(koloStream_t stream);
/** Wait for all streams of the current device; returns the first failure. */
ncclResult_t koloDeviceSynchronize(void);
/** What the stream was created with; each result may be NULL. */
ncclResult_t koloStreamGetInfo(koloStream_t stream, int *device, unsigned *flags);

/* ---- more work for streams ----
 *
 * As asynchronous as a collective: queued, in the stream's order, and run by whoever runs the stream.
 */

/**
 * Call `fn(arg)` when everything queued before has run; what is queued behind it runs when it has returned. It may take long, block,
 * and queue work, but not wait for its own stream. It runs in a thread that waits for this stream, or in one that the library keeps for
 * such functions, one for each that runs: those of different streams may wait for each other, and delay nobody else.
 * fn NULL: ncclInvalidArgument.
 */
ncclResult_t koloStreamLaunch(koloStream_t stream, void (*fn)(void *arg), void *arg);

/** Copy `bytes` when the stream gets there. The ranges may overlap, and are the caller's to keep until then. NULL with bytes: ncclInvalidArgument. */
ncclResult_t koloMemcpyAsync(void *dst, const void *src, size_t bytes, koloStream_t stream);
/** Set `bytes` bytes to the lowest byte of `value`; else as koloMemcpyAsync. */
ncclResult_t koloMemsetAsync(void *dst, int value, size_t bytes, koloStream_t stream);

/* ---- events ---- */

#define KOLO_EVENT_DEFAULT        0u
#define KOLO_EVENT_BLOCKING_SYNC  1u /* as in CUDA; here every wait gives the CPU away when nothing moves */
#define KOLO_EVENT_DISABLE_TIMING 2u /* it has no time; records are some 30 ns faster */

ncclResult_t koloEventCreate(koloEvent_t *event);
/** Unknown flags: ncclInvalidArgument. */
ncclResult_t koloEventCreateWithFlags(koloEvent_t *event, unsigned flags);
/** The event is done when everything queued on `stream` before this call has run. */
ncclResult_t koloEventRecord(koloEvent_t event, koloStream_t stream);

/**
 * For koloEventRecordWithFlags and koloStreamWaitEvent, where the stream captures: the event is none of the capture. Each launch of the graph
 * records it, or waits for what was its last record at that launch. The graph keeps the event, also one that is destroyed. On other
 * streams the flag changes nothing.
 */
#define KOLO_EVENT_EXTERNAL 1u

/** koloEventRecord, with flags: 0 or KOLO_EVENT_EXTERNAL; others: ncclInvalidArgument. */
ncclResult_t koloEventRecordWithFlags(koloEvent_t event, koloStream_t stream, unsigned flags);
/** ncclSuccess, ncclInProgress, or what failed before the event. An event that was never recorded is done. */
ncclResult_t koloEventQuery(koloEvent_t event);
ncclResult_t koloEventSynchronize(koloEvent_t event);
/** It may be pending: whatever waits for it still does. */
ncclResult_t koloEventDestroy(koloEvent_t event);
/**
 * What is queued on `stream` from now on runs after the event's last record before this call, of any device's stream; a later record changes
 * nothing. An event that was never recorded orders nothing. A failure before the event is not this stream's.
 * flags: 0 or KOLO_EVENT_EXTERNAL; others: ncclInvalidArgument.
 */
ncclResult_t koloStreamWaitEvent(koloStream_t stream, koloEvent_t event, unsigned flags);
/**
 * Nanoseconds from when `start` was reached in its stream to when `end` was, negative if it was the other way round. Either was never
 * recorded, made with KOLO_EVENT_DISABLE_TIMING, or pending when this process was forked: ncclInvalidUsage. Either is not done: ncclInProgress.
 */
ncclResult_t koloEventElapsedTime(int64_t *ns, koloEvent_t start, koloEvent_t end);

/* ---- capture and graphs ----
 *
 * A stream that captures runs nothing: what it is given becomes a graph, to be run as often as wanted: collectives and messages, alone
 * and in groups, functions, copies. Events that are recorded meanwhile are marks in the graph; a stream that waits for one joins
 * the capture, and the first stream has to wait for it, by the same means, before the end. Data are read when the graph runs, from
 * the buffers of the capture.
 *
 * Of operations a graph keeps what was checked and chosen for them, and the communicator's handle: one that was destroyed or has
 * failed makes its launches fail, before anything of them is queued. All ranks launch their graphs in the same order, and equally often;
 * other calls may stand between. The streams of a group all capture, or none does; those of one communicator into one graph, those of
 * others perhaps into others: else ncclInvalidUsage.
 *
 * While a stream captures, whoever waits for it, or asks for its work, is refused, and so are one-sided operations, launches of graphs, and
 * communicators with graphUsageMode 0. Unless it is a second begin, or a group that mixes captures, a refusal with a
 * koloReason_t invalidates the capture: all that is left is to end it, which is refused too, with graph NULL.
 */
typedef struct koloGraph *koloGraph_t;
typedef struct koloGraphExec *koloGraphExec_t;

typedef enum {
    koloCaptureModeGlobal = 0,      /* until it ends no thread makes an unsafe call (koloCaptureUnsafeCall) */
    koloCaptureModeThreadLocal = 1, /* nor does this thread */
    koloCaptureModeRelaxed = 2      /* any does, and any thread may end it */
} koloCaptureMode_t;

typedef enum {
    koloCaptureStatusNone = 0,
    koloCaptureStatusActive = 1,
    koloCaptureStatusInvalidated = 2
} koloCaptureStatus_t;

/** Not the default stream, nor one that captures: ncclInvalidUsage. Unknown mode: ncclInvalidArgument. */
ncclResult_t koloStreamBeginCapture(koloStream_t stream, koloCaptureMode_t mode);
/** On the stream, and unless relaxed by the thread, that began it. On failure *graph is NULL. */
ncclResult_t koloStreamEndCapture(koloStream_t stream, koloGraph_t *graph);
/** Legal at any time. `id`, which may be NULL, is another one for each capture of the process; 0: it does not capture. */
ncclResult_t koloStreamGetCaptureInfo(koloStream_t stream, koloCaptureStatus_t *status, uint64_t *id);
/**
 * Call `release(object)` when the graph that `stream` captures into, and all that was made of it, is gone and has run: in the thread that ends the
 * last of it, or as a function of a stream (koloStreamLaunch). It may call any function of this library, and take long.
 */
ncclResult_t koloStreamCaptureKeep(koloStream_t stream, void (*release)(void *object), void *object);

/**
 * Exchange the calling thread's mode (initially global) with *mode. Relaxed: no call of this thread is unsafe. Thread-local: only this
 * thread's own captures make its calls unsafe.
 */
ncclResult_t koloThreadExchangeCaptureMode(koloCaptureMode_t *mode);
/**
 * For emulations of calls that a capture cannot record, such as allocations. If a capture forbids them now: ncclInvalidUsage, and that
 * capture is invalidated.
 */
ncclResult_t koloCaptureUnsafeCall(void);

/** Make a graph ready to be launched; the graph may be destroyed at once. */
ncclResult_t koloGraphInstantiate(koloGraphExec_t *exec, koloGraph_t graph);
/**
 * Queue all of it on `stream`, in order with what else that is given. Launches of one `exec` run one after the other. Any thread may launch;
 * it counts as a call on each communicator in the graph.
 */
ncclResult_t koloGraphLaunch(koloGraphExec_t exec, koloStream_t stream);

typedef enum {
    koloGraphUpdateSuccess = 0, /* numbers as cudaGraphExecUpdateResult */
    koloGraphUpdateTopologyChanged = 2,
    koloGraphUpdateNodeTypeChanged = 3,
    koloGraphUpdateParametersChanged = 5 /* of an operation: another communicator or function */
} koloGraphUpdateResult_t;

/**
 * Later launches of `exec` are of `graph`, which was captured in the same shape: other buffers, sizes, functions of the program. Else
 * ncclInvalidUsage, `exec` is as before, and *result and *node (NULL: not wanted) say why, and at which node, in the order of capture.
 */
ncclResult_t koloGraphExecUpdate(koloGraphExec_t exec, koloGraph_t graph, koloGraphUpdateResult_t *result,
                                 size_t *node);
/** Number of nodes; waits between streams count. */
ncclResult_t koloGraphGetNodeCount(koloGraph_t graph, size_t *nodes);
/** Either in any order, also while launches run. NULL is fine. */
ncclResult_t koloGraphDestroy(koloGraph_t graph);
ncclResult_t koloGraphExecDestroy(koloGraphExec_t exec);

/**
 * Join the job that the environment describes, and get its communicator: rank, size and rendezvous from KOLO_RANK,
 * KOLO_SIZE, KOLO_COMM_ID (`kolo run` sets them), or torchrun's RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or the
 * ranks of Open MPI's, MPICH's and Slurm's launchers, which on one host need no rendezvous: rank 0 leaves its id in a file there, and
 * the others wait for it (KOLO_BOOTSTRAP_TIMEOUT). Without any of them: one rank. Half a description: ncclInvalidUsage.
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
