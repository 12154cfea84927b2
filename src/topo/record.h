/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.h - a machine as files, for analysis elsewhere and for tests.
 *
 * A record is a directory: the parts of sysfs that topologies read, with their links, and a file `kolo-facts` with the other
 * facts, one line per device, `key=value` separated by blanks:
 *
 *     cpu arch=x86_64 vendor=GenuineIntel family=6 model=85 hypervisor=0
 *     gpu busid=0000:17:00.0 dev=0 sm=80 gdr=1 nvlink=0000:c4:00.0*2,0000:c5:00.0*2 c2c=44712*5
         name=NVIDIA_A100-SXM4-80GB memory=85899345920 id=20b210de subsystem=147f10de pcie=4x16 pciemax=4x16
 *     net name=mlx5_0 dev=0 path=/sys/devices/... speed=200000 port=1 guid=0x1 latency=0 maxconn=131072 gdr=1 coll=0
 *
 * (each in one line). More of a gpu: nvlink=BUSID*N/switch (or gpu, npu, unreadable: the far end), fabric=ready,CLUSTER,CLIQUE
 * and nop2p=MASK, devices without peer access in hexadecimal. In names _ stands for a blank; `pcie` is generation and width of the link as it was.
 *
 * Comments (lines that begin with #) and unknown words are skipped.
 *
 * Errors:  ncclInternalError with FILE:LINE for any other line; ncclSystemError when something cannot be
 *          read or written. The file may be missing: then sysfs alone counts.
 */
#ifndef KL_TOPO_RECORD_H
#define KL_TOPO_RECORD_H

#include "include/nccl.h"
#include "topo/facts.h"

struct kl_recorded {
    bool has_cpu;
    struct kl_cpu_facts cpu;
    struct kl_gpu_facts *gpu;
    struct kl_net_facts *net;
    int ngpus, nnets;
};

/** Is `dir` sysfs, or a record? Else ncclInvalidUsage: any other folder would yield a made-up machine. */
ncclResult_t kl_record_check(const char *dir);

/** Read DIR/kolo-facts. */
ncclResult_t kl_record_load(const char *dir, struct kl_recorded *facts);
void kl_record_free(struct kl_recorded *facts);

/** Write DIR/kolo-facts. */
ncclResult_t kl_record_save(const char *dir, const struct kl_recorded *facts);

/** Copy the parts of `sysfs` that topologies read into the directory `dir`, which is created if it is missing. */
ncclResult_t kl_record_sysfs(const char *sysfs, const char *dir);

#endif
