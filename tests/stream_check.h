/* SPDX-License-Identifier: Apache-2.0 */
/** stream_check.h - for tests of streams and graphs: the work queued on them, and captures. */
#ifndef KOLO_STREAM_CHECK_H
#define KOLO_STREAM_CHECK_H

#include "base/atomic.h"
#include "tests/api_check.h"

typedef _Atomic uint32_t flag;

static inline koloStream_t make_stream(unsigned flags)
{
    koloStream_t s;

    ok(koloStreamCreate(&s, flags));
    return s;
}

static inline koloEvent_t make_event(unsigned flags)
{
    koloEvent_t e;

    ok(koloEventCreateWithFlags(&e, flags));
    return e;
}

static inline void expect_reason(ncclResult_t rc, koloReason_t reason)
{
    assert_int_equal(rc, ncclInvalidUsage);
    assert_int_equal(koloGetLastReason(), reason);
    assert_true(*ncclGetLastError(NULL));
}

/* ---- functions of the program ---- */

static inline void await_flag(void *f)
{
    while (!kl_load_acquire((flag *)f)) sched_yield();
}

static inline void raise_flag(void *f)
{
    kl_store_release((flag *)f, 1);
}

static inline void increment(void *n)
{
    ++*(int *)n;
}

/* ---- captures ---- */

static inline koloStream_t begin(koloCaptureMode_t mode)
{
    koloStream_t s = make_stream(KOLO_STREAM_DEFAULT);

    ok(koloStreamBeginCapture(s, mode));
    return s;
}

static inline koloGraphExec_t instantiate(koloGraph_t graph)
{
    koloGraphExec_t exec;

    ok(koloGraphInstantiate(&exec, graph));
    ok(koloGraphDestroy(graph));
    return exec;
}

static inline koloGraphExec_t end(koloStream_t s)
{
    koloGraph_t graph;

    ok(koloStreamEndCapture(s, &graph));
    return instantiate(graph);
}

/** A capture that is invalidated can only be ended; the stream is destroyed. */
static inline void expect_invalidated(koloStream_t s)
{
    koloCaptureStatus_t status;
    koloGraph_t graph = (koloGraph_t)(void *)s;
    char a = 0;

    ok(koloStreamGetCaptureInfo(s, &status, NULL));
    assert_int_equal(status, koloCaptureStatusInvalidated);
    expect_reason(koloMemsetAsync(&a, 1, 1, s), koloReasonCaptureInvalidated);
    expect_reason(koloStreamEndCapture(s, &graph), koloReasonCaptureInvalidated);
    assert_null(graph);
    ok(koloStreamGetCaptureInfo(s, &status, NULL));
    assert_int_equal(status, koloCaptureStatusNone);
    ok(koloMemsetAsync(&a, 1, 1, s)); /* as if there had been no capture */
    ok(koloStreamDestroy(s));
    assert_int_equal(a, 1);
}

#endif
