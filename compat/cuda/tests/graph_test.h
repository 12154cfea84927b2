/* SPDX-License-Identifier: Apache-2.0 */
/** graph_test.h - shared by tests of captures and graphs: two streams, and functions to run graphs. */
#ifndef KOLO_GRAPH_TEST_H
#define KOLO_GRAPH_TEST_H

#include "cuda_test.h"

static cudaStream_t s, other;

static inline int setup(void **state)
{
    (void)state;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    OK(cudaStreamDestroy(s));
    OK(cudaStreamDestroy(other));
    cudaGetLastError();
    return 0;
}

static inline cudaGraphExec_t instantiate_and_drop(cudaGraph_t graph)
{
    cudaGraphExec_t exec;

    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static inline void launch(cudaGraphExec_t exec)
{
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
}

static inline cudaGraph_t capture_adds(int *count, int times)
{
    cudaGraph_t graph;

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < times; i++) OK(cudaLaunchHostFunc(s, add_one, count));
    OK(cudaStreamEndCapture(s, &graph));
    return graph;
}

static inline size_t count_of(cudaError_t (*ask)(cudaGraph_t, cudaGraphNode_t *, size_t *), cudaGraph_t graph)
{
    size_t n = 99;

    OK(ask(graph, NULL, &n));
    return n;
}

struct turn {
    int *now, seen;
};

static inline void take_turn(void *arg)
{
    struct turn *t = arg;

    t->seen = (*t->now)++;
}

#endif
