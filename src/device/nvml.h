/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvml.h - facts about the GPUs of this machine from NVIDIA's management library: opened at run time, so that one build
 * serves all machines. It only reads: no GPU is used, and no setting changed.
 *
 * The library that `kolo run --cuda` substitutes reports the topology, and so is no source of one: it counts as absent.
 *
 * Units:    MB/s, bytes.
 * Threads:  any.
 * Source:   NVML's API reference; the topology specification, 7.4; the specification of differences between versions,
 *           3.8.
 */
#ifndef KL_DEVICE_NVML_H
#define KL_DEVICE_NVML_H

#include "include/nccl.h"

#include <stdint.h>

enum { KL_NVML_LINKS = 18, KL_NVML_BUSID = 32, KL_NVML_NAME = 96, KL_NVML_PROBLEM = 256, KL_NVML_CLUSTER = 33 };

/** The far end of an NVLink. */
enum kl_nvml_far { KL_NVML_FAR_UNASKED, KL_NVML_FAR_UNREADABLE, KL_NVML_FAR_SWITCH, KL_NVML_FAR_GPU, KL_NVML_FAR_NPU };

/** A GPU's part in an NVLink domain of several hosts, as NVML numbers it. */
enum kl_nvml_fabric { KL_NVML_FABRIC_NONE, KL_NVML_FABRIC_NOT_STARTED, KL_NVML_FABRIC_STARTING, KL_NVML_FABRIC_READY };

struct kl_nvml_gpu {
    char busid[KL_NVML_BUSID]; /* as NVML writes it: 00000000:17:00.0 */
    char name[KL_NVML_NAME];
    int index;
    int sm; /* compute capability, major * 10 + minor */
    uint64_t memory;
    uint32_t pci_id, pci_subsystem; /* device in the upper half, vendor in the lower; 0: unknown */
    int pcie_gen, pcie_width;       /* current ones; 0: unknown */
    int pcie_max_gen, pcie_max_width;
    int nlinks; /* active NVLinks for peer access, and the bus id of the far end of each */
    char link[KL_NVML_LINKS][KL_NVML_BUSID];
    enum kl_nvml_far far[KL_NVML_LINKS];
    enum kl_nvml_fabric fabric;
    char cluster[KL_NVML_CLUSTER]; /* of a ready fabric: identity in hexadecimal, and clique */
    unsigned clique;
    uint64_t no_p2p;         /* bit i: the driver allows no reads or no writes between it and the GPU of index i */
    int gdr;                 /* may NICs access its memory: 0, 1; -1: the driver does not say */
    int c2c_links, c2c_mbps; /* active chip-to-chip links, and the speed of one */
};

struct kl_nvml {
    struct kl_nvml_gpu *gpu; /* in NVML's order */
    int ngpus;
    char problem[KL_NVML_PROBLEM]; /* a sentence if the library exists but does not work; otherwise "" */
};

/**
 * Read all facts. Without library or GPU ngpus is 0, which is not a failure; only memory can be short. Free with
 * kl_nvml_fini.
 */
ncclResult_t kl_nvml_read(struct kl_nvml *facts);
void kl_nvml_fini(struct kl_nvml *facts);

#endif
