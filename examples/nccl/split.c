/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - communicators out of a communicator, as for the rows and columns of a grid of devices.
 *
 * Ranks with the same colour come together, in the order of their keys; the last device, if it has no partner, stays out.
 */
#include "data.h"

struct device {
    ncclComm_t world, half;
    cudaStream_t stream;
    float *data;
};

static void split(struct device *device, int devices)
{
    int paired = devices / 2 * 2;

    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++)
        NCCLCHECK(ncclCommSplit(device[d].world, d < paired ? d % 2 : NCCL_SPLIT_NOCOLOR, -d, &device[d].half, NULL));
    NCCLCHECK(ncclGroupEnd());
}

/* The halves have the even and the odd devices, backwards. */
static int wrong_ranks(const struct device *device, int devices)
{
    int wrong = 0;

    for (int d = 0; d < devices; d++) {
        int rank = -1, ranks = -1;

        if (!device[d].half) {
            wrong += d < devices / 2 * 2;
            continue;
        }
        NCCLCHECK(ncclCommUserRank(device[d].half, &rank));
        NCCLCHECK(ncclCommCount(device[d].half, &ranks));
        wrong += ranks != devices / 2 || rank != ranks - 1 - d / 2;
    }
    return wrong;
}

static void sum_in_halves(struct device *device, int devices)
{
    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++)
        if (device[d].half)
            NCCLCHECK(ncclAllReduce(device[d].data, device[d].data, COUNT, ncclFloat, ncclSum, device[d].half,
                                    device[d].stream));
    NCCLCHECK(ncclGroupEnd());
}

/* Device d's factor after the sum: 1 + 3 + 5 + ... or 2 + 4 + 6 + ..., and its own where it stayed out. */
static int expected(int d, int devices)
{
    int n = devices / 2;

    if (d >= 2 * n) return d + 1;
    return d % 2 ? n * (n + 1) : n * n;
}

int main(void)
{
    struct device device[MAX_DEVICES] = {{0}};
    ncclComm_t world[MAX_DEVICES];
    int devices, wrong;

    CUDACHECK(cudaGetDeviceCount(&devices));
    if (devices > MAX_DEVICES) devices = MAX_DEVICES;
    NCCLCHECK(ncclCommInitAll(world, devices, NULL));
    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamCreate(&device[d].stream));
        device[d].world = world[d];
        device[d].data = device_data(d + 1);
    }

    split(device, devices);
    wrong = wrong_ranks(device, devices);
    sum_in_halves(device, devices);

    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamSynchronize(device[d].stream));
        wrong += wrong_data(device[d].data, expected(d, devices));
        CUDACHECK(cudaFree(device[d].data));
        CUDACHECK(cudaStreamDestroy(device[d].stream));
        if (device[d].half) NCCLCHECK(ncclCommDestroy(device[d].half));
    }
    for (int d = 0; d < devices; d++) NCCLCHECK(ncclCommDestroy(device[d].world));
    return report("split", devices, wrong);
}
