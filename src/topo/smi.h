/* SPDX-License-Identifier: Apache-2.0 */
/**
 * smi.h - machines from the output of nvidia-smi, if there is no topology file: the matrix of `nvidia-smi topo -m`, and the
 * products and active links of `nvidia-smi nvlink -s` (or -L), in any order, with other text around them.
 *
 * The matrix has levels, not places: devices at PIX from each other get one switch, at PXB switches below one switch, at PHB
 * or NODE one CPU. Bus ids are made up. Missing values are assumed and noted (assume.h).
 *
 * Errors:  ncclInternalError for a malformed matrix, with FILE:LINE and the expected text; ncclInvalidUsage without one.
 */
#ifndef KL_TOPO_SMI_H
#define KL_TOPO_SMI_H

#include "topo/assume.h"
#include "topo/xml.h"

enum { KL_SMI_GPUS = 64, KL_SMI_DEVICES = 160, KL_SMI_NAME = 64 };

enum kl_smi_level { KL_SMI_NONE, KL_SMI_PIX, KL_SMI_PXB, KL_SMI_PHB, KL_SMI_NODE, KL_SMI_SYS, KL_SMI_NVLINK };

/** The parsed texts. Devices are GPUs, then NICs, in the order of the matrix's columns. */
struct kl_smi {
    int ngpus, ndevices;
    char name[KL_SMI_DEVICES][KL_SMI_NAME]; /* of NICs: mlx5_0 */
    int numa[KL_SMI_GPUS];                  /* -1: unknown */
    unsigned char level[KL_SMI_DEVICES][KL_SMI_DEVICES];
    unsigned char links[KL_SMI_GPUS][KL_SMI_GPUS]; /* of NV# */
    char product[KL_SMI_GPUS][KL_SMI_NAME];        /* "": unknown */
    int active[KL_SMI_GPUS];                       /* NVLinks that are up; -1: unknown */
};

/** Read one text into `smi`, which begins as zeros with kl_smi_init. `file` is for messages. */
void kl_smi_init(struct kl_smi *smi);
ncclResult_t kl_smi_parse(struct kl_smi *smi, const char *file, const char *text);

/** The machine as a topology file. */
ncclResult_t kl_smi_document(const struct kl_smi *smi, struct kl_assumed *assumed, struct kl_xml **xml);

/** Both, of files ("-": standard input). */
ncclResult_t kl_smi_load(const char *const *file, int n, struct kl_assumed *assumed, struct kl_xml **xml);

#endif
