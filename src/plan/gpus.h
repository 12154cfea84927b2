/* SPDX-License-Identifier: Apache-2.0 */
/** gpus.h - the GPUs of this machine, as NVML describes them, as facts for a topology. */
#ifndef KL_PLAN_GPUS_H
#define KL_PLAN_GPUS_H

#include "include/nccl.h"
#include "topo/facts.h"

enum { KL_GPUS_PROBLEM_TEXT = 256 };

/**
 * Fresh memory in `gpu` (free() it), in NVML's order, with no rank. No GPUs are no failure; `problem` then describes an
 * error of NVML, or is "". GPUDirect RDMA is assumed to work: NVML does not report it.
 */
ncclResult_t kl_gpus_read(struct kl_gpu_facts **gpu, int *n, char problem[KL_GPUS_PROBLEM_TEXT]);

/** Is its PCI link slower or narrower at the moment than its maximum, and does a release of NCCL use the current
 * speed? */
bool kl_gpu_link_is_low(const struct kl_gpu_facts *gpu, int nccl);

#endif
