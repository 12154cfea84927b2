/* SPDX-License-Identifier: Apache-2.0 */
/**
 * smi.h - machines from texts of nvidia-smi, where there is no topology file, in any order and with other text around them:
 *
 *     topo -m                 the matrix, also as a table in Markdown, or with columns that ran into each other
 *     nvlink -s, -L           products, and active links
 *     --query-gpu --format=csv, the overview, -q: products
 *
 * The matrix tells levels, not places: GPUs and NICs that are PIX from each other hang on one switch, those that are PXB on
 * switches below one switch, those that are PHB or NODE on one CPU. NVLinks are those of the matrix: between the GPUs that it
 * names, unless all pairs show as many as the product has in all, or more than one GPU can have. Bus ids are made up. Facts that the
 * texts leave out are noted (assume.h).
 *
 * Errors:  ncclInternalError, FILE:LINE and the expected form, for a matrix that is none; ncclInvalidUsage without one.
 */
#ifndef KL_TOPO_SMI_H
#define KL_TOPO_SMI_H

#include "topo/assume.h"
#include "topo/xml.h"

enum { KL_SMI_GPUS = 64, KL_SMI_DEVICES = 160, KL_SMI_NAME = 64 };

enum kl_smi_level { KL_SMI_NONE, KL_SMI_PIX, KL_SMI_PXB, KL_SMI_PHB, KL_SMI_NODE, KL_SMI_SYS, KL_SMI_NVLINK };

/** Devices are GPUs, then NICs, in the order of the matrix's columns. */
struct kl_smi {
    int ngpus, ndevices;
    char name[KL_SMI_DEVICES][KL_SMI_NAME]; /* of NICs: mlx5_0 */
    int numa[KL_SMI_GPUS];                  /* -1: not told */
    int row[KL_SMI_GPUS];                   /* line of its row in the matrix; 0: there is none */
    char cpus[KL_SMI_GPUS][KL_SMI_NAME];    /* CPU affinity as printed; "": not told */
    unsigned char level[KL_SMI_DEVICES][KL_SMI_DEVICES];
    unsigned char links[KL_SMI_GPUS][KL_SMI_GPUS]; /* of NV# */
    char product[KL_SMI_GPUS][KL_SMI_NAME];        /* "": unknown */
    int active[KL_SMI_GPUS];                       /* NVLinks that are up; -1: unknown */
};

/** Read one text into `smi`, which begins as zeros with kl_smi_init. `file` is for messages. */
void kl_smi_init(struct kl_smi *smi);
ncclResult_t kl_smi_parse(struct kl_smi *smi, const char *file, const char *text);

/** Is the matrix whole: does each GPU have a row? Else ncclInvalidUsage. */
ncclResult_t kl_smi_check(const struct kl_smi *smi, const char *file);

/** The machine as a topology file called `name`. */
ncclResult_t kl_smi_document(const struct kl_smi *smi, const char *name, struct kl_assumed *assumed,
                             struct kl_xml **xml);

/** Both, of one text; `file` names it and the machine. */
ncclResult_t kl_smi_read(const char *file, const char *text, size_t bytes, struct kl_assumed *assumed,
                         struct kl_xml **xml);

/** Both, of files ("-": standard input). */
ncclResult_t kl_smi_load(const char *const *file, int n, struct kl_assumed *assumed, struct kl_xml **xml);

#endif
