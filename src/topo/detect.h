/* SPDX-License-Identifier: Apache-2.0 */
/**
 * detect.h - place devices in a document by their sysfs path, and fill in missing attributes.
 *
 * Attributes in the document win over sysfs, except for the PCI class, a GPU's rank and a NET's device number. PCI switches
 * appear as their upstream port; root ports do not appear. Without sysfs a device hangs on the cpu with numaid -1.
 * Where there is one NUMA node at most, a missing node or -1 means node 0.
 * Source: the topology specification, 7.
 */
#ifndef KL_TOPO_DETECT_H
#define KL_TOPO_DETECT_H

#include "topo/facts.h"
#include "topo/xml.h"

struct kl_detect {
    struct kl_xml *xml; /* has its root */
    const char *sysfs;
    const struct kl_cpu_facts *cpu;
    uint64_t host_hash; /* written into cpus that detection adds, unless 0 */
    int nccl;           /* the release that is followed */
    int only_numa;      /* the machine's one NUMA node, -1 if it has several */
};

/** The cpu element of a NUMA node, made and completed if need be. */
ncclResult_t kl_detect_cpu(const struct kl_detect *d, int numa, int *elem);

/** Place a GPU and complete everything above it; marks it keep="1". A device number of -1 places nothing. */
ncclResult_t kl_detect_gpu(const struct kl_detect *d, const struct kl_gpu_facts *gpu);

/** Place a NET, below element `parent` unless that is KL_XML_NONE, with keep="1" or "0". */
ncclResult_t kl_detect_net(const struct kl_detect *d, const struct kl_net_facts *net, bool keep, int parent);

/** Let the kernel module of Broadcom switches refresh its data. Harmless without it. */
void kl_detect_refresh(const char *sysfs);

#endif
