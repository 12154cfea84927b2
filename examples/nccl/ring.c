/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - messages: each device sends what it has to the next one and receives from the one before, until everything is where it came from.
 *
 * A send and a receive that wait for each other belong in one group.
 */
#include "data.h"

struct device {
    ncclComm_t comm;
    cudaStream_t stream;
    float *have, *next;
};

static void pass_on(struct device *device, int devices)
{
    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++) {
        struct device *me = &device[d];

        NCCLCHECK(ncclSend(me->have, COUNT, ncclFloat, (d + 1) % devices, me->comm, me->stream));
        NCCLCHECK(ncclRecv(me->next, COUNT, ncclFloat, (d + devices - 1) % devices, me->comm, me->stream));
    }
    NCCLCHECK(ncclGroupEnd());
    for (int d = 0; d < devices; d++) {
        float *sent = device[d].have;

        device[d].have = device[d].next;
        device[d].next = sent;
    }
}

int main(void)
{
    struct device device[MAX_DEVICES];
    ncclComm_t comm[MAX_DEVICES];
    int devices, wrong = 0;

    CUDACHECK(cudaGetDeviceCount(&devices));
    if (devices > MAX_DEVICES) devices = MAX_DEVICES;
    NCCLCHECK(ncclCommInitAll(comm, devices, NULL));
    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        device[d] = (struct device){.comm = comm[d], .have = device_data(d + 1), .next = device_data(0)};
        CUDACHECK(cudaStreamCreate(&device[d].stream));
    }

    for (int step = 1; step <= devices; step++) {
        pass_on(device, devices);
        for (int d = 0; d < devices; d++) {
            CUDACHECK(cudaSetDevice(d));
            CUDACHECK(cudaStreamSynchronize(device[d].stream));
            wrong += wrong_data(device[d].have, (d + step * (devices - 1)) % devices + 1);
        }
    }

    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaFree(device[d].have));
        CUDACHECK(cudaFree(device[d].next));
        CUDACHECK(cudaStreamDestroy(device[d].stream));
        NCCLCHECK(ncclCommDestroy(comm[d]));
    }
    return report("ring of messages", devices, wrong);
}
