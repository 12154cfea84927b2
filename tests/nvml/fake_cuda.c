/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.c - a libcuda.so.1 for tests: on the machine "fabric" the second GPU has no GPUDirect RDMA, all others have it. */
#include <stdlib.h>
#include <string.h>

#define FAKE __attribute__((visibility("default")))

FAKE int cuInit(unsigned flags);
FAKE int cuDeviceGetByPCIBusId(int *device, const char *busid);
FAKE int cuDeviceGetAttribute(int *value, int attribute, int device);

FAKE int cuInit(unsigned flags)
{
    return (int)flags;
}

FAKE int cuDeviceGetByPCIBusId(int *device, const char *busid)
{
    *device = strstr(busid, "AB:00") != NULL;
    return 0;
}

FAKE int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *machine = getenv("FAKE_NVML");

    if (attribute != 116) return 1; /* an older driver, which does not know DMA-BUF */
    *value = !(machine && !strcmp(machine, "fabric") && device == 1);
    return 0;
}
