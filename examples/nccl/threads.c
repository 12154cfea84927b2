/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - a thread for each device.
 *
 * No groups: each thread makes its own communicator out of the id that all share, and waits for its own work only.
 */
#include "data.h"

#include <pthread.h>

struct rank {
    pthread_t thread;
    ncclUniqueId id;
    int rank, ranks, wrong;
};

static void *run(void *arg)
{
    struct rank *me = arg;
    ncclComm_t comm;
    cudaStream_t stream;
    float *data;

    CUDACHECK(cudaSetDevice(me->rank)); /* for this thread: a new one starts with device 0 */
    NCCLCHECK(ncclCommInitRank(&comm, me->ranks, me->id, me->rank));
    CUDACHECK(cudaStreamCreate(&stream));
    data = device_data(me->rank + 1);

    for (int root = 0; root < me->ranks; root++) /* in place: the root's own data stay */
        NCCLCHECK(ncclBroadcast(data, data, COUNT, ncclFloat, root, comm, stream));
    NCCLCHECK(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDACHECK(cudaStreamSynchronize(stream));
    me->wrong = wrong_data(data, me->ranks); /* after the first broadcast all have what rank 0 had: factor 1 */

    CUDACHECK(cudaFree(data));
    CUDACHECK(cudaStreamDestroy(stream));
    NCCLCHECK(ncclCommDestroy(comm));
    return NULL;
}

int main(void)
{
    struct rank rank[MAX_DEVICES];
    ncclUniqueId id;
    int devices, wrong = 0;

    CUDACHECK(cudaGetDeviceCount(&devices));
    if (devices > MAX_DEVICES) devices = MAX_DEVICES;
    NCCLCHECK(ncclGetUniqueId(&id));
    for (int r = 0; r < devices; r++) {
        rank[r] = (struct rank){.id = id, .rank = r, .ranks = devices};
        if (pthread_create(&rank[r].thread, NULL, run, &rank[r])) return 1;
    }
    for (int r = 0; r < devices; r++) {
        pthread_join(rank[r].thread, NULL);
        wrong += rank[r].wrong;
    }
    return report("threads", devices, wrong);
}
