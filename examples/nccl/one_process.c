/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_process.c - one process, one thread, all devices of the machine.
 *
 * ncclCommInitAll makes a communicator for each. Calls for several of them belong in a group, or the first would wait for the second.
 */
#include "data.h"

int main(void)
{
    ncclComm_t comm[MAX_DEVICES];
    cudaStream_t stream[MAX_DEVICES];
    float *data[MAX_DEVICES];
    int devices, wrong = 0;

    CUDACHECK(cudaGetDeviceCount(&devices));
    if (devices > MAX_DEVICES) devices = MAX_DEVICES;
    NCCLCHECK(ncclCommInitAll(comm, devices, NULL));
    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamCreate(&stream[d]));
        data[d] = device_data(d + 1);
    }

    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++)
        NCCLCHECK(ncclAllReduce(data[d], data[d], COUNT, ncclFloat, ncclSum, comm[d], stream[d]));
    NCCLCHECK(ncclGroupEnd());

    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamSynchronize(stream[d]));
        wrong += wrong_data(data[d], sum_to(devices));
        CUDACHECK(cudaFree(data[d]));
        CUDACHECK(cudaStreamDestroy(stream[d]));
    }
    for (int d = 0; d < devices; d++) NCCLCHECK(ncclCommDestroy(comm[d]));
    return report("one process", devices, wrong);
}
