// SPDX-License-Identifier: Apache-2.0
// A program that has kernels for NCCL's device API, asks whether there is one, and does without.
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>

#include <cstdio>

template <typename T> __global__ void exchange(ncclWindow_t window, T *out, ncclDevComm comm)
{
    ncclLsaBarrierSession<ncclCoopCta> barrier{ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x, true};
    ncclGin gin{comm, 0};

    barrier.sync(ncclCoopCta(), cuda::memory_order_relaxed);
    out[threadIdx.x] = ((T *)ncclGetLsaPointer(window, 0, ncclTeamLsa(comm).rank))[threadIdx.x];
    gin.put(ncclTeamWorld(comm), 0, window, 0, window, 0, 8, ncclGin_SignalInc{0});
    gin.waitSignal(ncclCoopCta(), 0, gin.readSignal(0) + comm.nRanks);
    gin.flush(ncclCoopCta());
}

int main()
{
    ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevComm_t device_comm;
    ncclComm_t comm;
    int device = 0;

    wanted.lsaBarrierCount = 4;
    if (ncclCommInitAll(&comm, 1, &device) || ncclCommQueryProperties(comm, &properties)) return 1;
    if (properties.deviceApiSupport) exchange<float><<<1, 32>>>(nullptr, nullptr, device_comm);
    int created = ncclDevCommCreate(comm, &wanted, &device_comm), destroyed = ncclDevCommDestroy(comm, &device_comm);
    printf("device API %d, create %d, destroy %d\n", properties.deviceApiSupport, created, destroyed);
    return ncclCommDestroy(comm);
}
