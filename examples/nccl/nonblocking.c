/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nonblocking.c - communicators whose calls do not wait, for programs that must stay in charge: of time-outs, of failures, of other work.
 *
 * A call may return ncclInProgress. Then ncclCommGetAsyncError says when it is done, and how it went; a communicator that takes too long is
 * ended by ncclCommAbort.
 */
#include "data.h"

#include <time.h>

enum { TIMEOUT_S = 60 /* seconds */ };

static void give_up(ncclComm_t *comm, int n, ncclResult_t why)
{
    fprintf(stderr, "gave up: %s: %s\n", ncclGetErrorString(why), ncclGetLastError(NULL));
    for (int i = 0; i < n; i++) ncclCommAbort(comm[i]);
    exit(1);
}

/* Until the calls before are done for all communicators. */
static void settle(ncclComm_t *comm, int n)
{
    time_t end = time(NULL) + TIMEOUT_S;

    for (int i = 0; i < n; i++) {
        ncclResult_t state = ncclInProgress;

        while (state == ncclInProgress && time(NULL) < end) NCCLCHECK(ncclCommGetAsyncError(comm[i], &state));
        if (state != ncclSuccess) give_up(comm, n, state);
    }
}

/* What a call that may be in progress returned is no error. */
static void begun(ncclResult_t rc)
{
    if (rc != ncclInProgress) NCCLCHECK(rc);
}

int main(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm[MAX_DEVICES];
    cudaStream_t stream[MAX_DEVICES];
    float *data[MAX_DEVICES];
    ncclUniqueId id;
    int devices, wrong = 0;

    CUDACHECK(cudaGetDeviceCount(&devices));
    if (devices > MAX_DEVICES) devices = MAX_DEVICES;
    NCCLCHECK(ncclGetUniqueId(&id));
    config.blocking = 0;

    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        begun(ncclCommInitRankConfig(&comm[d], devices, id, d, &config));
    }
    begun(ncclGroupEnd());
    for (int d = 0; d < devices; d++) { /* meanwhile: */
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamCreate(&stream[d]));
        data[d] = device_data(d + 1);
    }
    settle(comm, devices);

    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++)
        begun(ncclAllReduce(data[d], data[d], COUNT, ncclFloat, ncclSum, comm[d], stream[d]));
    begun(ncclGroupEnd());
    settle(comm, devices); /* it is in the streams now; before, there was nothing to wait for */

    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamSynchronize(stream[d]));
        wrong += wrong_data(data[d], sum_to(devices));
    }

    for (int d = 0; d < devices; d++) begun(ncclCommFinalize(comm[d]));
    settle(comm, devices);
    for (int d = 0; d < devices; d++) {
        NCCLCHECK(ncclCommDestroy(comm[d]));
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaFree(data[d]));
        CUDACHECK(cudaStreamDestroy(stream[d]));
    }
    return report("non-blocking", devices, wrong);
}
