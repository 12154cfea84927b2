/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nccl_cuda_test.c - programs in the style of NCCL's examples: nccl.h and the CUDA runtime, nothing of Kolo's own.
 */
#include "cuda_test.h"
#include "nccl.h"

#include <pthread.h>
#include <stdlib.h>

#define NCCL(call) assert_int_equal(call, ncclSuccess)

enum { DEVICES = 8, COUNT = 50000 };

static void fill(float *host, int rank)
{
    for (int i = 0; i < COUNT; i++) host[i] = (float)(rank + i % 100);
}

static void check_sum(const float *host, int ranks)
{
    for (int i = 0; i < COUNT; i++)
        if (host[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (i % 100))) fail_msg("element %d is %f", i, host[i]);
}

/* ---- one process, one thread, all devices ---- */

struct devices {
    float *send[DEVICES], *recv[DEVICES], *host;
    cudaStream_t stream[DEVICES];
    ncclComm_t comm[DEVICES];
};

static void make_devices(struct devices *d, unsigned flags)
{
    int ordinals[DEVICES];

    d->host = malloc(COUNT * sizeof *d->host);
    for (int i = 0; i < DEVICES; i++) {
        ordinals[i] = i;
        OK(cudaSetDevice(i));
        OK(cudaMalloc((void **)&d->send[i], COUNT * sizeof(float)));
        OK(cudaMalloc((void **)&d->recv[i], COUNT * sizeof(float)));
        fill(d->host, i);
        OK(cudaMemcpy(d->send[i], d->host, COUNT * sizeof(float), cudaMemcpyHostToDevice));
        OK(cudaStreamCreateWithFlags(&d->stream[i], flags));
    }
    NCCL(ncclCommInitAll(d->comm, DEVICES, ordinals));
}

static void free_devices(struct devices *d)
{
    for (int i = 0; i < DEVICES; i++) {
        OK(cudaFree(d->send[i]));
        OK(cudaFree(d->recv[i]));
        OK(cudaStreamDestroy(d->stream[i]));
        NCCL(ncclCommDestroy(d->comm[i]));
    }
    free(d->host);
}

static void clear_received(const struct devices *d)
{
    for (int i = 0; i < DEVICES; i++) {
        OK(cudaSetDevice(i));
        OK(cudaMemset(d->recv[i], 0, COUNT * sizeof(float)));
        OK(cudaDeviceSynchronize());
    }
}

static void reduce_all(const struct devices *d)
{
    NCCL(ncclGroupStart());
    for (int i = 0; i < DEVICES; i++)
        NCCL(ncclAllReduce(d->send[i], d->recv[i], COUNT, ncclFloat, ncclSum, d->comm[i], d->stream[i]));
    NCCL(ncclGroupEnd());
}

/* All has run on all streams. */
static void check_received(const struct devices *d)
{
    for (int i = 0; i < DEVICES; i++) {
        OK(cudaMemcpy(d->host, d->recv[i], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
        check_sum(d->host, DEVICES);
    }
}

static void one_thread_drives_all_devices(void **state)
{
    struct devices d;
    int count;

    (void)state;
    OK(cudaGetDeviceCount(&count));
    assert_int_equal(count, DEVICES);
    make_devices(&d, cudaStreamDefault);
    clear_received(&d);
    for (int round = 0; round < 3; round++) reduce_all(&d);
    for (int i = 0; i < DEVICES; i++) OK(cudaStreamSynchronize(d.stream[i]));
    check_received(&d);
    free_devices(&d);
}

/* The work of each device is queued in turn; nothing may wait for later work. */
static void copies_around_a_collective_do_not_wait(void **state)
{
    enum { N = 4 };
    float *data[N], *pinned[N];
    cudaStream_t stream[N];
    ncclComm_t comm[N];

    (void)state;
    NCCL(ncclCommInitAll(comm, N, NULL));
    for (int i = 0; i < N; i++) {
        OK(cudaSetDevice(i));
        OK(cudaMalloc((void **)&data[i], COUNT * sizeof(float)));
        OK(cudaMallocHost((void **)&pinned[i], COUNT * sizeof(float)));
        OK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
        fill(pinned[i], i);
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < N; i++) { /* the calls of one rank at a time, so a wait in any would be for ever */
        OK(cudaSetDevice(i));
        OK(cudaMemcpyAsync(data[i], pinned[i], COUNT * sizeof(float), cudaMemcpyHostToDevice, stream[i]));
        NCCL(ncclAllReduce(data[i], data[i], COUNT, ncclFloat, ncclSum, comm[i], stream[i]));
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < N; i++) {
        OK(cudaSetDevice(i));
        NCCL(ncclAllReduce(data[i], data[i], COUNT, ncclFloat, ncclMax, comm[i], stream[i]));
        OK(cudaMemcpyAsync(pinned[i], data[i], COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream[i]));
    }
    for (int i = 0; i < N; i++) {
        OK(cudaSetDevice(i));
        OK(cudaStreamSynchronize(stream[i]));
        check_sum(pinned[i], N);
        OK(cudaFree(data[i]));
        OK(cudaFreeHost(pinned[i]));
        OK(cudaStreamDestroy(stream[i]));
        NCCL(ncclCommDestroy(comm[i]));
    }
}

/* ---- graphs: one thread, a capture for each device, as nccl-tests has with -g and -G ---- */

static void replay(const struct devices *d, const cudaGraphExec_t *exec, int launches)
{
    for (int l = 0; l < launches; l++)
        for (int i = 0; i < DEVICES; i++) OK(cudaGraphLaunch(exec[i], d->stream[i]));
    for (int i = 0; i < DEVICES; i++)
        for (cudaError_t rc = cudaErrorNotReady; rc == cudaErrorNotReady;)
            if ((rc = cudaStreamQuery(d->stream[i])) && rc != cudaErrorNotReady) OK(rc);
}

/* Its iterations of one size; several operations of each communicator are one group where they are aggregated. */
static void capture(const struct devices *d, int aggregated, cudaGraphExec_t *exec)
{
    cudaGraph_t graph;

    for (int i = 0; i < DEVICES; i++) OK(cudaStreamBeginCapture(d->stream[i], cudaStreamCaptureModeThreadLocal));
    for (int iteration = 0; iteration < 5; iteration++) {
        NCCL(ncclGroupStart());
        for (int a = 0; a < aggregated; a++) reduce_all(d);
        NCCL(ncclGroupEnd());
    }
    for (int i = 0; i < DEVICES; i++) {
        OK(cudaStreamEndCapture(d->stream[i], &graph));
        OK(cudaGraphInstantiate(&exec[i], graph, 0));
        OK(cudaGraphDestroy(graph));
    }
}

static void one_thread_captures_all_devices(void **state)
{
    cudaGraphExec_t exec[DEVICES];
    struct devices d;

    (void)state;
    make_devices(&d, cudaStreamNonBlocking);
    for (int aggregated = 1; aggregated <= 2; aggregated++) {
        clear_received(&d);
        capture(&d, aggregated, exec);
        replay(&d, exec, 4);
        check_received(&d);
        for (int i = 0; i < DEVICES; i++) OK(cudaGraphExecDestroy(exec[i]));
    }
    free_devices(&d);
}

/* ---- one thread for each device ---- */

struct rank {
    int rank;
    ncclUniqueId id;
    cudaError_t cuda;
    ncclResult_t nccl;
    float *result;
};

#define CUDA_OR(call)                                                                                                  \
    do {                                                                                                               \
        if ((r->cuda = (call))) return NULL;                                                                           \
    } while (0)
#define NCCL_OR(call)                                                                                                  \
    do {                                                                                                               \
        if ((r->nccl = (call))) return NULL;                                                                           \
    } while (0)

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    float *data;
    cudaStream_t stream;
    cudaEvent_t done;
    ncclComm_t comm;

    CUDA_OR(cudaSetDevice(r->rank));
    NCCL_OR(ncclCommInitRank(&comm, DEVICES, r->id, r->rank));
    CUDA_OR(cudaMalloc((void **)&data, COUNT * sizeof(float)));
    CUDA_OR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OR(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    fill(r->result, r->rank);
    CUDA_OR(cudaMemcpyAsync(data, r->result, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
    NCCL_OR(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA_OR(cudaEventRecord(done, stream));
    CUDA_OR(cudaEventSynchronize(done));
    CUDA_OR(cudaMemcpyAsync(r->result, data, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_OR(cudaStreamSynchronize(stream));
    CUDA_OR(cudaEventDestroy(done));
    CUDA_OR(cudaStreamDestroy(stream));
    CUDA_OR(cudaFree(data));
    NCCL_OR(ncclCommDestroy(comm));
    return NULL;
}

static void one_thread_for_each_device(void **state)
{
    struct rank rank[DEVICES];
    pthread_t thread[DEVICES];
    ncclUniqueId id;

    (void)state;
    NCCL(ncclGetUniqueId(&id));
    for (int i = 0; i < DEVICES; i++) {
        rank[i] = (struct rank){.rank = i, .id = id, .result = malloc(COUNT * sizeof(float))};
        pthread_create(&thread[i], NULL, run_rank, &rank[i]);
    }
    for (int i = 0; i < DEVICES; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(rank[i].cuda, cudaSuccess);
        assert_int_equal(rank[i].nccl, ncclSuccess);
        check_sum(rank[i].result, DEVICES);
        free(rank[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_drives_all_devices),
        cmocka_unit_test(copies_around_a_collective_do_not_wait),
        cmocka_unit_test(one_thread_captures_all_devices),
        cmocka_unit_test(one_thread_for_each_device),
    };

    setenv("KOLO_HOST_DEVICES", "8", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
