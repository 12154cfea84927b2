/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.c - streams that capture, and the graphs that they make.
 */
#include "api/api.h"
#include "base/error.h"
#include "device/host/capture.h"
#include "device/host/refuse.h"
#include "device/host/replay.h"
#include "include/kolo.h"

koloReason_t koloGetLastReason(void)
{
    return kl_refuse_reason();
}

/* ---- capture ---- */

ncclResult_t koloStreamBeginCapture(koloStream_t stream, koloCaptureMode_t mode)
{
    struct kl_stream *s;

    KL_TRY(kl_api_stream(stream, &s));
    return kl_capture_begin(s, mode);
}

ncclResult_t koloStreamEndCapture(koloStream_t stream, koloGraph_t *graph)
{
    struct kl_stream *s;
    struct kl_recording *g;

    if (!graph) return KL_FAIL(ncclInvalidArgument, "koloStreamEndCapture: the result pointer is NULL");
    *graph = NULL;
    KL_TRY(kl_api_stream(stream, &s));
    KL_TRY(kl_capture_end(s, &g));
    *graph = (koloGraph_t)(void *)g;
    return ncclSuccess;
}

ncclResult_t koloStreamGetCaptureInfo(koloStream_t stream, koloCaptureStatus_t *status, uint64_t *id)
{
    struct kl_stream *s;
    uint64_t number;

    if (!status) return KL_FAIL(ncclInvalidArgument, "koloStreamGetCaptureInfo: the result pointer is NULL");
    KL_TRY(kl_api_stream(stream, &s));
    *status = kl_capture_status(s, &number);
    if (id) *id = number;
    return ncclSuccess;
}

ncclResult_t koloStreamCaptureKeep(koloStream_t stream, void (*release)(void *object), void *object)
{
    struct kl_stream *s;

    if (!release) return KL_FAIL(ncclInvalidArgument, "koloStreamCaptureKeep: the function is NULL");
    KL_TRY(kl_api_stream(stream, &s));
    return kl_capture_keep(s, release, object);
}

ncclResult_t koloThreadExchangeCaptureMode(koloCaptureMode_t *mode)
{
    if (!mode || (unsigned)*mode > koloCaptureModeRelaxed)
        return KL_FAIL(ncclInvalidArgument, "koloThreadExchangeCaptureMode: the mode is %s",
                       mode ? "none of the three" : "NULL");
    kl_capture_exchange_mode(mode);
    return ncclSuccess;
}

ncclResult_t koloCaptureUnsafeCall(void)
{
    return kl_capture_unsafe();
}

/* ---- graphs ---- */

static struct kl_recording *graph_of(koloGraph_t handle)
{
    return (struct kl_recording *)(void *)handle;
}

static struct kl_replay *replay_of(koloGraphExec_t handle)
{
    return (struct kl_replay *)(void *)handle;
}

ncclResult_t koloGraphInstantiate(koloGraphExec_t *exec, koloGraph_t graph)
{
    struct kl_replay *r;

    if (!exec) return KL_FAIL(ncclInvalidArgument, "koloGraphInstantiate: the result pointer is NULL");
    *exec = NULL;
    if (!graph) return KL_FAIL(ncclInvalidArgument, "koloGraphInstantiate: the graph is NULL");
    KL_TRY(kl_replay_create(graph_of(graph), &r));
    *exec = (koloGraphExec_t)(void *)r;
    return ncclSuccess;
}

ncclResult_t koloGraphLaunch(koloGraphExec_t exec, koloStream_t stream)
{
    struct kl_stream *s;

    if (!exec) return KL_FAIL(ncclInvalidArgument, "koloGraphLaunch: the graph is NULL");
    KL_TRY(kl_api_stream(stream, &s));
    return kl_replay_launch(replay_of(exec), s);
}

ncclResult_t koloGraphExecUpdate(koloGraphExec_t exec, koloGraph_t graph, koloGraphUpdateResult_t *result, size_t *node)
{
    koloGraphUpdateResult_t why;
    uint32_t where;

    if (!exec || !graph) return KL_FAIL(ncclInvalidArgument, "koloGraphExecUpdate: a graph is NULL");
    ncclResult_t rc = kl_replay_update(replay_of(exec), graph_of(graph), &why, &where);
    if (result) *result = why;
    if (node) *node = where;
    return rc;
}

ncclResult_t koloGraphGetNodeCount(koloGraph_t graph, size_t *nodes)
{
    if (!graph || !nodes)
        return KL_FAIL(ncclInvalidArgument, "koloGraphGetNodeCount: the %s is NULL",
                       graph ? "result pointer" : "graph");
    *nodes = graph_of(graph)->n;
    return ncclSuccess;
}

ncclResult_t koloGraphDestroy(koloGraph_t graph)
{
    kl_recording_unref(graph_of(graph));
    return ncclSuccess;
}

ncclResult_t koloGraphExecDestroy(koloGraphExec_t exec)
{
    kl_replay_destroy(replay_of(exec));
    return ncclSuccess;
}
