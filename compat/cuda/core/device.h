/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.h - the emulated devices: their properties, and how they are joined.
 *
 * Sources: the topology file, or this machine's host devices, and a table of models (model.h) for missing properties. Read
 * once; constant then. NVML counts the host's devices; the runtime and the driver count the ones of CUDA_VISIBLE_DEVICES.
 *
 * Threads: any.
 */
#ifndef KL_CUDA_DEVICE_H
#define KL_CUDA_DEVICE_H

#include "compat/cuda/core/model.h"
#include "compat/cuda/core/place.h"
#include "compat/cuda/core/result.h"
#include "include/kolo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_CUDA_NVLINKS = 36, KL_CUDA_SWITCHES = 8 };

enum kl_cuda_link_end { KL_CUDA_LINK_GPU, KL_CUDA_LINK_SWITCH, KL_CUDA_LINK_CPU };

/** One NVLink. */
struct kl_cuda_link {
    enum kl_cuda_link_end end;
    struct kl_cuda_place at; /* of its far end */
};

struct kl_cuda_device {
    int ordinal; /* on its host */
    unsigned char uuid[16];
    struct kl_cuda_place at; /* its PCI address */
    unsigned pci_device, pci_subsystem;
    unsigned pcie_width, pcie_generation;
    int sm, numa;
    size_t memory; /* bytes of its memory */
    const struct kl_cuda_model *model;
    uint64_t above[KL_CUDA_SWITCHES]; /* PCI ids of the switches that it hangs on, nearest first; 0: no more */
    int nc2c;                         /* links to the CPU's own fabric, as Grace Hopper has them */
    int nlinks;
    struct kl_cuda_link link[KL_CUDA_NVLINKS];
};

/** Devices of the host, by ordinal. Errors: 999 when the topology cannot be read. */
cudaError_t kl_cuda_host_devices(const struct kl_cuda_device **list, int *count);

/** The number of visible devices of this process, at most KL_CUDA_DEVICES. */
cudaError_t kl_cuda_device_count(int *count);

/** May calls be made? 0, 3 in a forked child, 100 without devices. */
cudaError_t kl_cuda_ready(void);

/** A visible device; 101 if there is none with this number. */
cudaError_t kl_cuda_device(int device, const struct kl_cuda_device **out);

/** The visible device at a PCI address. Errors: 1 invalid address, 101 none there. */
cudaError_t kl_cuda_device_at(const char *place, int *device);

/** "GPU-..." */
void kl_cuda_uuid_text(const unsigned char uuid[16], char text[41]);

/** A visible device's ordinal on the host; -1: there is no such device. */
int kl_cuda_ordinal(int device);

/** The connection of two devices of the host, by ordinal. */
struct kl_cuda_path {
    bool p2p; /* may one read and write the other's memory directly? */
    int type; /* enum kl_path_type */
    float bw; /* GB/s */
};
struct kl_cuda_path kl_cuda_path(int from, int to);

/** An attribute by CUDA's number. Unknown: 1. */
cudaError_t kl_cuda_attribute(const struct kl_cuda_device *device, int attribute, int *value);

#endif
