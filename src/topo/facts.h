/* SPDX-License-Identifier: Apache-2.0 */
/**
 * facts.h - the inputs of a topology: plain records about a machine, filled by the code that talks to the hardware.
 *
 * GPUs come from device/ (NVML and the driver for CUDA, the emulated machine for the host device), NICs from net/;
 * comm/ passes both on. Nothing here is opened, probed or owned: texts are copied, and a record can be written down
 * and replayed (record.h). detect.h reads the PCI tree, link speeds and NUMA nodes from sysfs instead.
 *
 * Source: the topology specification, 7.4 and 7.5.
 */
#ifndef KL_TOPO_FACTS_H
#define KL_TOPO_FACTS_H

#include "topo/xml.h"
#include "topo/types.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KL_NET_NAME_TEXT = 128, /* fused names are "mlx5_0+mlx5_1+..." */
    KL_SYSFS_PATH_TEXT = 512,
    KL_GPU_NAME_TEXT = 96,
    KL_CLUSTER_TEXT = 33,
    KL_GPU_MAX_NVLINKS = 36, /* 18 today */
    KL_NET_MAX_MEMBERS = 8   /* devices fused into a virtual one */
};

/** The far end of an NVLink, as NVML names it. */
enum kl_far_end { KL_FAR_UNASKED, KL_FAR_UNREADABLE, KL_FAR_SWITCH, KL_FAR_GPU, KL_FAR_NPU, KL_FAR_ENDS };
enum kl_fabric_state { KL_FABRIC_NONE, KL_FABRIC_NOT_STARTED, KL_FABRIC_STARTING, KL_FABRIC_READY, KL_FABRIC_STATES };

/** The NVLinks of a GPU that lead to the same place. */
struct kl_nvlink_facts {
    char target[KL_BUSID_TEXT]; /* bus id of the far end, "fffffff:ffff:ff" when it cannot be seen */
    int count;
    enum kl_far_end far; /* used by newer releases of NCCL (KL_CHANGE_NVLINK_FAR) */
};

struct kl_gpu_facts {
    char busid[KL_BUSID_TEXT];
    int dev;  /* NVML index; ordinal for host devices. -1: not usable here, skipped */
    int sm;   /* compute capability, major * 10 + minor */
    int rank; /* in the communicator, -1: none */
    int gdr;  /* may NICs read and write its memory */
    int nnvlinks;
    struct kl_nvlink_facts nvlink[KL_GPU_MAX_NVLINKS];
    int c2c_count;                 /* active chip-to-chip links to a CPU */
    int c2c_mbps;                  /* MB/s of one of them */
    uint64_t no_p2p;               /* bit i: the driver lets it not read or not write the memory of device i */
    enum kl_fabric_state fabric;   /* its NVLink domain of several hosts */
    char cluster[KL_CLUSTER_TEXT]; /* identity of that domain, hexadecimal; "" unless ready */
    uint32_t clique;               /* the part of the domain whose GPUs reach each other */
    uint64_t shm_id; /* identity of its process's /dev/shm: ranks with different ones cannot share memory */

    /* For people and for records; "" and 0: not known. */
    char name[KL_GPU_NAME_TEXT];
    uint64_t memory;                /* bytes */
    uint32_t pci_id, pci_subsystem; /* device in the upper half, vendor in the lower */
    int pcie_gen, pcie_width;       /* current link; used by newer releases of NCCL (KL_CHANGE_CURRENT_LINK) */
    int pcie_max_gen, pcie_max_width;
};

/** "ready"; stable, for records and documents. */
extern const char *const kl_fabric_state_name[KL_FABRIC_STATES];
extern const char *const kl_far_end_name[KL_FAR_ENDS];

/** One device of a network, as the net plugin describes it. */
struct kl_net_facts {
    char name[KL_NET_NAME_TEXT];
    char pci_path[KL_SYSFS_PATH_TEXT]; /* its directory below /sys, "" for none; only .../pci... devices are placed */
    int dev;                           /* the plugin's index */
    int speed_mbps;
    int port;
    uint64_t guid; /* ports of one chip have the same */
    float latency_us;
    int max_comms;
    bool gdr;                       /* may access GPU memory directly */
    bool coll;                      /* offers collective offload */
    bool roce;                      /* an RDMA port on Ethernet */
    int nmembers;                   /* of a virtual device: how many physical ones it fuses; 0 for a physical device */
    int member[KL_NET_MAX_MEMBERS]; /* their indices */
};

/** A CPU that emulates a GPU. */
struct kl_host_device {
    int rank;
    int ordinal;
    int numa;    /* node it lives on; -1 counts as 0 */
    int host;    /* index among the hosts of one NVLink domain: a host of the file, or a copy of the one it describes */
    int replica; /* 0, or k when this is the k-th further rank on the same device: it gets a function of its own */
    uint64_t shm_id;
};

/** Facts about the processors, from CPUID and uname or from a record. */
struct kl_cpu_facts {
    char arch[16];   /* "x86_64", "arm64", "ppc64", or as uname reports it */
    char vendor[16]; /* x86 only: the 12 characters of CPUID leaf 0 */
    int family;      /* as in topology files: base + (extended << 4), so AMD family 17h is 143 */
    int model;
    bool hypervisor; /* a virtual machine */
};

/**
 * Description of a host. Three kinds, told apart by which fields are set:
 *
 *     file and devices   host devices emulate the GPUs of the file. Its missing attributes get the defaults of
 *                        kl_machine_complete, nothing is asked of this machine; devices without a rank are left out.
 *     devices            host devices on this machine's NUMA nodes, one virtual PCI switch per node.
 *     gpus               CUDA devices: sysfs and the facts complete the file, if there is one.
 */
struct kl_machine {
    const struct kl_xml *file; /* NCCL_TOPO_FILE, loaded; NULL for none. Not changed */

    const struct kl_host_device *device; /* host devices with a rank, in ascending rank order */
    int ndevices;

    const struct kl_gpu_facts *gpu; /* or CUDA devices with a rank, in ascending rank order */
    int ngpus;

    const struct kl_net_facts *net; /* NICs; unused when host devices emulate a file */
    int nnets;

    const char *sysfs;              /* root of sysfs, NULL: "/sys" */
    const struct kl_cpu_facts *cpu; /* NULL: read from the processor (kl_cpu_facts_read) */
    uint64_t host_hash;             /* written into detected cpus when not 0 */

    /**
     * Describe the virtual NET of the given NETs (indices): NICs of one card, or a group of NCCL_NET_FORCE_MERGE.
     * NULL: the plugin cannot merge. Not needed when `net` already holds virtual NETs.
     */
    ncclResult_t (*merge_nets)(void *ctx, const int *member, int nmembers, struct kl_net_facts *net);
    void *merge_ctx;

    int hosts; /* identical hosts in one NVLink domain (offline MNNVL): host h has the ranks of host 0, each
                  increased by h * (number of devices). 0 and 1: this host alone */
};

/** Do host devices emulate the GPUs of a file? Then no other data of this machine are used. */
static inline bool kl_machine_emulates_file(const struct kl_machine *machine)
{
    return machine->file && !machine->ngpus;
}

#endif
