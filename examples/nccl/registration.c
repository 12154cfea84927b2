/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration.c - memory that NCCL knows beforehand, so that it need not copy into buffers of its own.
 *
 * ncclMemAlloc gives memory that can be registered: with one communicator by ncclCommRegister, with all ranks at the same offset by
 * ncclCommWindowRegister. The calls of collectives stay the same.
 */
#include "data.h"

struct device {
    ncclComm_t comm;
    cudaStream_t stream;
    float *in, *out;     /* of ncclMemAlloc */
    void *handle;        /* in is registered */
    ncclWindow_t window; /* out is a window */
};

static void open_device(struct device *me, int rank)
{
    float *data;

    CUDACHECK(cudaSetDevice(rank));
    CUDACHECK(cudaStreamCreate(&me->stream));
    NCCLCHECK(ncclMemAlloc((void **)&me->in, COUNT * sizeof(float)));
    NCCLCHECK(ncclMemAlloc((void **)&me->out, COUNT * sizeof(float)));
    data = device_data(rank + 1);
    CUDACHECK(cudaMemcpy(me->in, data, COUNT * sizeof(float), cudaMemcpyDeviceToDevice));
    CUDACHECK(cudaFree(data));
    NCCLCHECK(ncclCommRegister(me->comm, me->in, COUNT * sizeof(float), &me->handle));
}

static void close_device(struct device *me, int rank)
{
    CUDACHECK(cudaSetDevice(rank));
    NCCLCHECK(ncclCommWindowDeregister(me->comm, me->window));
    NCCLCHECK(ncclCommDeregister(me->comm, me->handle));
    NCCLCHECK(ncclMemFree(me->in));
    NCCLCHECK(ncclMemFree(me->out));
    CUDACHECK(cudaStreamDestroy(me->stream));
}

int main(void)
{
    struct device device[MAX_DEVICES] = {{0}};
    ncclComm_t comm[MAX_DEVICES];
    int devices, wrong = 0;

    CUDACHECK(cudaGetDeviceCount(&devices));
    if (devices > MAX_DEVICES) devices = MAX_DEVICES;
    NCCLCHECK(ncclCommInitAll(comm, devices, NULL));
    for (int d = 0; d < devices; d++) {
        device[d].comm = comm[d];
        open_device(&device[d], d);
    }
    NCCLCHECK(ncclGroupStart()); /* all ranks make the window together */
    for (int d = 0; d < devices; d++)
        NCCLCHECK(ncclCommWindowRegister(comm[d], device[d].out, COUNT * sizeof(float), &device[d].window,
                                         NCCL_WIN_COLL_SYMMETRIC));
    NCCLCHECK(ncclGroupEnd());

    NCCLCHECK(ncclGroupStart());
    for (int d = 0; d < devices; d++)
        NCCLCHECK(ncclAllReduce(device[d].in, device[d].out, COUNT, ncclFloat, ncclSum, comm[d], device[d].stream));
    NCCLCHECK(ncclGroupEnd());

    for (int d = 0; d < devices; d++) {
        CUDACHECK(cudaSetDevice(d));
        CUDACHECK(cudaStreamSynchronize(device[d].stream));
        wrong += wrong_data(device[d].in, d + 1) + wrong_data(device[d].out, sum_to(devices));
    }
    for (int d = 0; d < devices; d++) close_device(&device[d], d);
    for (int d = 0; d < devices; d++) NCCLCHECK(ncclCommDestroy(comm[d]));
    return report("registration", devices, wrong);
}
