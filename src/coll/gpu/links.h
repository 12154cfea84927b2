/* SPDX-License-Identifier: Apache-2.0 */
/**
 * links.h - how the GPUs of a team are joined, as far as LL128 depends on it: a store of 128 bytes by a warp has to arrive as
 * a whole. That is so from compute capability 7.0 on, within a GPU and over NVLink, not over PCIe; and NCCL's rule for GPUs of
 * several generations is followed.
 *
 * Source: the GPU specification, 1.7.
 */
#ifndef KL_COLL_GPU_LINKS_H
#define KL_COLL_GPU_LINKS_H

#include "coll/gpu/offers.h"

/** The facts of an own worker's GPU: its capability, and NVLink. */
ncclResult_t kl_gpu_links_find(const struct kl_gpu_team *team, int worker, struct kl_gpu_facts *facts);

/** Is LL128 safe between GPUs with these facts? */
bool kl_gpu_links_have_ll128(const struct kl_gpu_facts *facts, int nworkers);

#endif
