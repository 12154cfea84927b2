/* SPDX-License-Identifier: Apache-2.0 */
#include "device/gdr.h"

#include "device/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

enum { SUCCESS = 0, GPU_DIRECT_RDMA = 116, DMA_BUF = 124 };

struct driver {
    int (*init)(unsigned flags);
    int (*by_busid)(int *device, const char *busid);
    int (*attribute)(int *value, int attribute, int device);
};

static bool look_up(void *from, struct driver *d)
{
    void *init = dlsym(from, "cuInit"), *by_busid = dlsym(from, "cuDeviceGetByPCIBusId");
    void *attribute = dlsym(from, "cuDeviceGetAttribute");

    memcpy(&d->init, &init, sizeof init);
    memcpy(&d->by_busid, &by_busid, sizeof by_busid);
    memcpy(&d->attribute, &attribute, sizeof attribute);
    return init && by_busid && attribute;
}

/* An attribute that an older driver does not know is reported as unknown. */
static int ask(const struct driver *d, const char *busid)
{
    int device, rdma = 0, dma_buf = 0;

    if (d->by_busid(&device, busid) != SUCCESS) return -1;
    bool known = d->attribute(&rdma, GPU_DIRECT_RDMA, device) == SUCCESS;
    known |= d->attribute(&dma_buf, DMA_BUF, device) == SUCCESS;
    return known ? rdma || dma_buf : -1;
}

/* The library stays open: a driver that was started is not to be unloaded. */
void kl_gdr_read(struct kl_nvml_gpu *gpu, int n)
{
    void *from = n ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    struct driver d = {0};
    bool works = from && look_up(from, &d) && d.init(0) == SUCCESS;

    for (int i = 0; i < n; i++) gpu[i].gdr = works ? ask(&d, gpu[i].busid) : -1;
}
