/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kolo.h - Kolo's additions to the NCCL API: host devices, streams, events and memory, and joining a job.
 *
 * A host device is a CPU that emulates a GPU. A host stream is an ordered queue of operations with CUDA's semantics:
 * calls return at once, each stream runs in order. A thread that waits on a stream runs its work; a background thread
 * takes over work that no thread waits for after about 100 microseconds.
 *
 * Errors:   ncclResult_t as in nccl.h. When an operation fails, every later call with its communicator returns the
 *           failure, and so does every wait and query that concerns the operation: koloStreamSynchronize and
 *           koloStreamQuery of its stream, koloEventSynchronize and koloEventQuery of events recorded after it. This
 *           ends with the communicator: after ncclCommDestroy, which returns the failure too, the stream is usable
 *           again; after ncclCommAbort, the first of these calls returns the failure, if none has before, and then the
 *           stream is usable again. A communicator that was destroyed or aborted is ncclInvalidArgument in every call,
 *           a second destroy included.
 * Threads:  every function may be called from any thread; one thread at a time destroys a given object.
 * Fork:     a child may use the library, and creates communicators of its own: any use of its parent's, and the end of
 *           a group that its parent opened, is ncclInvalidUsage. Its parent's streams are empty there, and events done.
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
 * Handles valid in every call: the default stream of the device, like NULL, and a stream of the calling thread, made at
 * its first use for each device, with KOLO_STREAM_BLOCKING. Of the current device; in operations: of the
 * communicator's.
 */
#define koloStreamLegacy    ((koloStream_t)0x1)
#define koloStreamPerThread ((koloStream_t)0x2)

/**
 * Reason why a call of a stream, an event or a graph was ncclInvalidUsage: one for each case for which CUDA has an
 * error, with that error's name and number.
 */
typedef enum {
    koloReasonNone = 0,
    koloReasonCaptureUnsupported = 1, /* cudaErrorStreamCaptureUnsupported, 900: not possible in a capture */
    koloReasonCaptureInvalidated = 2, /* ...Invalidated, 901: an earlier error invalidated the capture */
    koloReasonCaptureMerge = 3,       /* ...Merge, 902: two captures would become one */
    koloReasonCaptureUnmatched = 4,   /* ...Unmatched, 903: ended on another stream than begun */
    koloReasonCaptureUnjoined = 5,    /* ...Unjoined, 904: work that the first stream does not wait for */
    koloReasonCaptureIsolation = 6,   /* ...Isolation, 905: a wait for an event from outside the capture */
    koloReasonCaptureImplicit = 7,    /* ...Implicit, 906: the default stream would wait for a capturing stream */
    koloReasonCapturedEvent = 8,      /* cudaErrorCapturedEvent, 907: a query of an event of a capture */
    koloReasonCaptureWrongThread = 9, /* cudaErrorStreamCaptureWrongThread, 908 */
    koloReasonCaptureState = 10,      /* cudaErrorIllegalState, 401: begun twice, or ended without a begin */
    koloReasonGraphUpdate = 11,       /* cudaErrorGraphExecUpdateFailure, 910 */
    koloReasonEventTime = 12          /* cudaErrorInvalidResourceHandle, 400: an event without time */
} koloReason_t;

/**
 * The reason of the calling thread's last call that was refused for one of these; reading it resets it to
 * koloReasonNone. Other calls do not change it: call this right after a call of a stream, an event or a graph was
 * ncclInvalidUsage.
 */
koloReason_t koloGetLastReason(void);

/* ---- more operations ----
 *
 * For every function that reduces, on integers: bitwise and logical operations (any value but 0 is true, results are
 * 0 or 1). Other types: ncclInvalidArgument. */
#define koloBitAnd     ((ncclRedOp_t)0x7b000000)
#define koloBitOr      ((ncclRedOp_t)0x7b000001)
#define koloBitXor     ((ncclRedOp_t)0x7b000002)
#define koloLogicalAnd ((ncclRedOp_t)0x7b000003)
#define koloLogicalOr  ((ncclRedOp_t)0x7b000004)
#define koloLogicalXor ((ncclRedOp_t)0x7b000005)

/* ---- more collectives ----
 *
 * As the collectives of nccl.h, but the number of elements may differ from rank to rank. Arrays have one entry for
 * each rank, and are not read after the call; offsets and counts are elements. The count that a rank sends to
 * another one equals the count that the other receives from it; a count of 0 moves no data. */

/**
 * recvbuff[displs[r] ...] = the recvcounts[r] elements of rank r. sendcount is this rank's entry. In place: sendbuff
 * there.
 */
ncclResult_t koloAllGatherV(const void *sendbuff, size_t sendcount, void *recvbuff, const size_t *recvcounts,
                            const size_t *displs, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/**
 * sendbuff has recvcounts[0] elements for rank 0, then those for rank 1, ...: recvbuff = op over ranks of the own part.
 */
ncclResult_t koloReduceScatterV(const void *sendbuff, void *recvbuff, const size_t *recvcounts, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/** To rank r go sendcounts[r] elements at sdispls[r], from it come recvcounts[r] to rdispls[r]. Not in place. */
ncclResult_t koloAllToAllV(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                           const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);

/** Work queued on `stream` behind it runs when every rank has reached the barrier. */
ncclResult_t koloBarrier(ncclComm_t comm, cudaStream_t stream);

/**
 * Number of host devices of this process: KOLO_HOST_DEVICES, else the topology file's GPUs, else the job's local size,
 * else the CPUs, but at least 8. `kolo topo` shows the same. With CUDA_VISIBLE_DEVICES, read once: the devices that it
 * lists, in its order, by ordinals or UUIDs, as in CUDA; all device numbers in this interface refer to that order.
 */
ncclResult_t koloGetDeviceCount(int *count);

/** Number of this host's devices, independent of CUDA_VISIBLE_DEVICES: ordinals are below it. */
ncclResult_t koloGetHostDeviceCount(int *count);

/**
 * The device's ordinal on its host, independent of CUDA_VISIBLE_DEVICES. Out of range: ncclInvalidArgument, as below.
 */
ncclResult_t koloGetDeviceOrdinal(int device, int *ordinal);
/** 16 bytes, the same whenever host (NCCL_HOSTID, or its name) and ordinal are the same. */
ncclResult_t koloGetDeviceUuid(int device, unsigned char uuid[16]);

/** Choose the device that this thread's next communicators use. Out of range: ncclInvalidArgument. */
ncclResult_t koloSetDevice(int device);

/** The thread's current device; 0 if neither it nor a communicator of it has chosen one. */
ncclResult_t koloGetDevice(int *device);

/**
 * Page-aligned memory of the current device. All calls accept any other host memory as well. bytes 0: *ptr = NULL. More
 * than the machine has: ncclInvalidArgument.
 */
ncclResult_t koloMalloc(void **ptr, size_t bytes);
/** Free memory of koloMalloc or ncclMemAlloc; other pointers, or a second time: ncclInvalidArgument. NULL is fine. */
ncclResult_t koloFree(void *ptr);

/* ---- streams ---- */

/**
 * A new stream of the current device. It costs memory, no thread. Unknown flags: ncclInvalidArgument.
 *
 * With KOLO_STREAM_BLOCKING: its work waits for all work queued before on the device's default stream, and work of the
 * default stream waits for all work queued before on the device's blocking streams. Other streams take no part. While a
 * blocking stream captures, work for the default stream is ncclInvalidUsage. Waits and queries of the default stream
 * include the work of blocking streams.
 */
ncclResult_t koloStreamCreate(koloStream_t *stream, unsigned flags);
/**
 * Wait until everything queued so far has run, running it here where possible. NULL: the device's default stream.
 * Returns the first failure (Errors, above).
 */
ncclResult_t koloStreamSynchronize(koloStream_t stream);
/** ncclSuccess when everything queued has run, ncclInProgress before, or a failure; a call also advances the work. */
ncclResult_t koloStreamQuery(koloStream_t stream);
/**
 * Finish all queued work, then free. An open group with operations on it fails when it ends, with ncclInvalidUsage.
 */
ncclResult_t koloStreamDestroy(koloStream_t stream);
/** Free without waiting: queued work still runs. From now on the handle is ncclInvalidArgument. */
ncclResult_t koloStreamRelease(koloStream_t stream);
/** Wait for all streams of the current device; returns the first failure. */
ncclResult_t koloDeviceSynchronize(void);
/** Device and flags of a stream; each result may be NULL. */
ncclResult_t koloStreamGetInfo(koloStream_t stream, int *device, unsigned *flags);

/* ---- more work for streams ----
 *
 * As asynchronous as a collective: queued, in the stream's order, and run as the stream's other work. */

/**
 * Call `fn(arg)` when everything queued before has run; later work of the stream runs when it has returned. It may take
 * long, block, and queue work, but must not wait for its own stream. It runs in a thread that waits for this stream, or
 * in a worker thread of the library, one for each running function: functions of different streams may wait for each
 * other, and do not delay other streams. fn NULL: ncclInvalidArgument.
 */
ncclResult_t koloStreamLaunch(koloStream_t stream, void (*fn)(void *arg), void *arg);

/**
 * Copy `bytes` in stream order. The ranges may overlap, and must stay valid until then. NULL with bytes:
 * ncclInvalidArgument.
 */
ncclResult_t koloMemcpyAsync(void *dst, const void *src, size_t bytes, koloStream_t stream);
/** Set `bytes` bytes to the lowest byte of `value`; otherwise as koloMemcpyAsync. */
ncclResult_t koloMemsetAsync(void *dst, int value, size_t bytes, koloStream_t stream);

/* ---- events ---- */

#define KOLO_EVENT_DEFAULT        0u
#define KOLO_EVENT_BLOCKING_SYNC  1u /* as in CUDA; here every wait gives up the CPU when there is no progress */
#define KOLO_EVENT_DISABLE_TIMING 2u /* it has no time; records are some 30 ns faster */

ncclResult_t koloEventCreate(koloEvent_t *event);
/** Unknown flags: ncclInvalidArgument. */
ncclResult_t koloEventCreateWithFlags(koloEvent_t *event, unsigned flags);
/** The event is done when everything queued on `stream` before this call has run. */
ncclResult_t koloEventRecord(koloEvent_t event, koloStream_t stream);

/**
 * For koloEventRecordWithFlags and koloStreamWaitEvent, where the stream captures: the event is not part of the
 * capture. Each launch of the graph records it, or waits for its last record at the time of that launch. The graph
 * keeps the event, also if it is destroyed. On other streams the flag has no effect.
 */
#define KOLO_EVENT_EXTERNAL 1u

/** koloEventRecord, with flags: 0 or KOLO_EVENT_EXTERNAL; others: ncclInvalidArgument. */
ncclResult_t koloEventRecordWithFlags(koloEvent_t event, koloStream_t stream, unsigned flags);
/** ncclSuccess, ncclInProgress, or the failure of work before the event. An event that was never recorded is done. */
ncclResult_t koloEventQuery(koloEvent_t event);
ncclResult_t koloEventSynchronize(koloEvent_t event);
/** The event may be pending: waits for it are not affected. */
ncclResult_t koloEventDestroy(koloEvent_t event);
/**
 * Work queued on `stream` from now on runs after the event's last record before this call, on a stream of any device; a
 * later record changes nothing. An event that was never recorded has no effect. A failure before the event does not
 * affect this stream. flags: 0 or KOLO_EVENT_EXTERNAL; others: ncclInvalidArgument.
 */
ncclResult_t koloStreamWaitEvent(koloStream_t stream, koloEvent_t event, unsigned flags);
/**
 * Nanoseconds from the time when `start` was reached in its stream to the same for `end`, possibly negative. If either
 * was never recorded, was made with KOLO_EVENT_DISABLE_TIMING, or was pending when this process was forked:
 * ncclInvalidUsage. If either is not done: ncclInProgress.
 */
ncclResult_t koloEventElapsedTime(int64_t *ns, koloEvent_t start, koloEvent_t end);

/* ---- capture and graphs ----
 *
 * A capturing stream runs nothing: its work becomes a graph, which can be run repeatedly: collectives and messages,
 * alone and in groups, functions, copies. Events recorded meanwhile are marks in the graph; a stream that waits for
 * one joins the capture, and the first stream has to wait for it, by the same means, before the end. Data is read
 * when the graph runs, from the buffers of the capture.
 *
 * A graph keeps the checks and choices made for its operations, and the communicators' handles: if one was destroyed
 * or has failed, launches fail before any of their work is queued. All ranks launch their graphs in the same order,
 * and equally often; other calls may come between. The streams of a group all capture, or none does; the streams of
 * one communicator into one graph, others possibly into other graphs: else ncclInvalidUsage.
 *
 * While a stream captures, waits for it and queries of it are refused, and so are one-sided operations, launches of
 * graphs, and communicators with graphUsageMode 0. Except for a second begin, or a group that mixes captures, a
 * refusal with a koloReason_t invalidates the capture: it can only be ended then, which is refused too, with graph
 * NULL. */
typedef struct koloGraph *koloGraph_t;
typedef struct koloGraphExec *koloGraphExec_t;

typedef enum {
    koloCaptureModeGlobal = 0,      /* until it ends no thread may make an unsafe call (koloCaptureUnsafeCall) */
    koloCaptureModeThreadLocal = 1, /* until it ends this thread may not */
    koloCaptureModeRelaxed = 2      /* unsafe calls are allowed, and any thread may end it */
} koloCaptureMode_t;

typedef enum {
    koloCaptureStatusNone = 0,
    koloCaptureStatusActive = 1,
    koloCaptureStatusInvalidated = 2
} koloCaptureStatus_t;

/** The default stream, or one that captures already: ncclInvalidUsage. Unknown mode: ncclInvalidArgument. */
ncclResult_t koloStreamBeginCapture(koloStream_t stream, koloCaptureMode_t mode);
/** On the stream that began it, and unless relaxed in the same thread. On failure *graph is NULL. */
ncclResult_t koloStreamEndCapture(koloStream_t stream, koloGraph_t *graph);
/** Allowed at any time. `id`, which may be NULL, is unique for each capture of the process; 0: it does not capture. */
ncclResult_t koloStreamGetCaptureInfo(koloStream_t stream, koloCaptureStatus_t *status, uint64_t *id);
/**
 * Call `release(object)` when the graph that `stream` captures into has been freed, with all its executables and
 * launches: in the thread that frees the last of them, or as a function of a stream (koloStreamLaunch). It may call any
 * function of this library, and take long.
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
 * Queue the graph on `stream`, in order with the stream's other work. Launches of one `exec` run one after the other.
 * Any thread may launch; it counts as a call on each communicator in the graph.
 */
ncclResult_t koloGraphLaunch(koloGraphExec_t exec, koloStream_t stream);

typedef enum {
    koloGraphUpdateSuccess = 0, /* numbers as cudaGraphExecUpdateResult */
    koloGraphUpdateTopologyChanged = 2,
    koloGraphUpdateNodeTypeChanged = 3,
    koloGraphUpdateParametersChanged = 5 /* an operation has another communicator or function */
} koloGraphUpdateResult_t;

/**
 * Later launches of `exec` use `graph`, captured in the same shape: other buffers, sizes, functions of the program.
 * Otherwise ncclInvalidUsage, `exec` is unchanged, and *result and *node (may be NULL) have the reason, and the node,
 * in the order of capture.
 */
ncclResult_t koloGraphExecUpdate(koloGraphExec_t exec, koloGraph_t graph, koloGraphUpdateResult_t *result,
                                 size_t *node);
/** Number of nodes; waits between streams count. */
ncclResult_t koloGraphGetNodeCount(koloGraph_t graph, size_t *nodes);
/** Graph and executable may be destroyed in any order, also while launches run. NULL is fine. */
ncclResult_t koloGraphDestroy(koloGraph_t graph);
ncclResult_t koloGraphExecDestroy(koloGraphExec_t exec);

/**
 * Join the job that the environment describes, and get its communicator: rank, size and rendezvous from KOLO_RANK,
 * KOLO_SIZE, KOLO_COMM_ID (`kolo run` sets them), or torchrun's RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or the
 * ranks of Open MPI's, MPICH's and Slurm's launchers, which on one host need no rendezvous: rank 0 leaves its id in a
 * file, and the others wait for it (KOLO_BOOTSTRAP_TIMEOUT). Without any of them: one rank. An incomplete description:
 * ncclInvalidUsage.
 */
ncclResult_t koloInitFromEnv(ncclComm_t *comm);

/**
 * Limit for operations that this rank calls from now on to be without progress, in milliseconds; 0: none. Initially
 * KOLO_TIMEOUT, also in communicators made from this one. The first rank whose limit passes queries all ranks (2
 * seconds more if one is silent), and the operation fails on all with the result: ncclRemoteError. Set around one
 * operation it applies to that only. Like the operations, from one thread at a time. More than a year:
 * ncclInvalidArgument.
 */
ncclResult_t koloSetTimeout(ncclComm_t comm, unsigned long long milliseconds);

/**
 * Write the communicator's flight record to a file, as JSON: its state, the awaited ranks, and its last 1,024
 * operations with function, type, operator, root, bytes, stream, algorithm, state and times. The record is always kept;
 * the same document is written automatically when the communicator fails, if KOLO_FLIGHT_RECORDER names a file
 * (docs/debugging.md).
 *
 * `file` is a pattern: %h stands for the host, %p for the process, %r for the rank, %c for the communicator, %% for %;
 * one without %r gets ".%r" at its end. NULL: the pattern in KOLO_FLIGHT_RECORDER; ncclInvalidArgument if it is not
 * set. An existing file is replaced.
 * Errors: ncclSystemError, the file cannot be written. Works also when the communicator has failed.
 */
ncclResult_t koloFlightRecorder(ncclComm_t comm, const char *file);

/* ---- messages with tags ----
 *
 * As in MPI, beside ncclSend and ncclRecv: they take no part in the order of a communicator's operations, groups or
 * streams, and proceed while the program computes or waits. A receive takes the first message that fits its source and
 * its tag, and messages of one sender that both fit in the order in which they were sent. Host memory only. Any number
 * of threads may send and receive at a time. Tags are 0 to INT_MAX.
 *
 * A failure of the communicator ends all requests, and so does its timeout (koloSetTimeout) for one without progress;
 * when a rank has destroyed its communicator, requests of others that need it are ncclRemoteError. Handles of requests
 * end with the communicator. A request that is not over uses its buffer. */
#define KOLO_ANY (-1) /* as source or tag of a receive */

typedef struct koloRequest *koloRequest_t;

typedef struct {
    int source; /* of the message; of a send: its destination */
    int tag;
    size_t bytes; /* of the message */
} koloMessageStatus_t;

/** Send `bytes` bytes to `peer`, which may be this rank. Returns at once. */
ncclResult_t koloMessageSend(const void *buf, size_t bytes, int peer, int tag, ncclComm_t comm, koloRequest_t *request);
/**
 * Receive a message of at most `bytes` bytes. Returns at once. A longer one is taken, and the request ends with
 * ncclInvalidUsage. Of KOLO_ANY: when all other ranks have left, it ends with ncclRemoteError.
 */
ncclResult_t koloMessageRecv(void *buf, size_t bytes, int peer, int tag, ncclComm_t comm, koloRequest_t *request);
/** The message that a receive would take now. ncclInProgress: none; *status is unchanged. */
ncclResult_t koloMessageProbe(int peer, int tag, ncclComm_t comm, koloMessageStatus_t *status);

/** ncclInProgress, or the request's result, any number of times; then *status, which may be NULL, is filled in. */
ncclResult_t koloRequestTest(koloRequest_t request, koloMessageStatus_t *status);
/** The same when the request is over, or after `milliseconds`: ncclInProgress. 0: no limit. */
ncclResult_t koloRequestWait(koloRequest_t request, unsigned long long milliseconds, koloMessageStatus_t *status);
/** Withdraw and free a receive that no message has reached, or free a request that is over. Others: ncclInProgress. */
ncclResult_t koloRequestCancel(koloRequest_t request);
/** Free a request that is over; others: ncclInvalidUsage. NULL is fine. */
ncclResult_t koloRequestFree(koloRequest_t request);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
