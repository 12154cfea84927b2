/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/gpus.h"

#include "base/error.h"
#include "device/nvml.h"
#include "topo/release.h"
#include "topo/sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kl_gpu_link_is_low(const struct kl_gpu_facts *g, int nccl)
{
    if (!kl_nccl_has(nccl, KL_CHANGE_CURRENT_LINK) || !g->pcie_gen) return false;
    return g->pcie_gen < g->pcie_max_gen || g->pcie_width < g->pcie_max_width;
}

_Static_assert((int)KL_NVML_FAR_NPU == (int)KL_FAR_NPU && (int)KL_NVML_FABRIC_READY == (int)KL_FABRIC_READY,
               "the same numbers");

static void add_link(struct kl_gpu_facts *g, const char *far, enum kl_far_end end)
{
    char target[KL_BUSID_TEXT] = "";
    int i = 0;

    kl_sysfs_busid(far, target);
    while (i < g->nnvlinks && (strcmp(g->nvlink[i].target, target) != 0 || g->nvlink[i].far != end)) i++;
    if (i == KL_GPU_MAX_NVLINKS) return;
    if (i == g->nnvlinks) memcpy(g->nvlink[g->nnvlinks++].target, target, sizeof target);
    g->nvlink[i].far = end;
    g->nvlink[i].count++;
}

static void describe(const struct kl_nvml_gpu *from, struct kl_gpu_facts *g)
{
    *g = (struct kl_gpu_facts){.dev = from->index,
                               .sm = from->sm,
                               .rank = -1,
                               .gdr = from->gdr != 0, /* unless the driver says no */
                               .no_p2p = from->no_p2p,
                               .fabric = (enum kl_fabric_state)from->fabric,
                               .clique = from->clique,
                               .c2c_count = from->c2c_links,
                               .c2c_mbps = from->c2c_mbps,
                               .memory = from->memory,
                               .pci_id = from->pci_id,
                               .pci_subsystem = from->pci_subsystem,
                               .pcie_gen = from->pcie_gen,
                               .pcie_width = from->pcie_width,
                               .pcie_max_gen = from->pcie_max_gen,
                               .pcie_max_width = from->pcie_max_width};
    kl_sysfs_busid(from->busid, g->busid);
    snprintf(g->name, sizeof g->name, "%s", from->name);
    snprintf(g->cluster, sizeof g->cluster, "%s", from->cluster);
    for (int i = 0; i < from->nlinks; i++) add_link(g, from->link[i], (enum kl_far_end)from->far[i]);
}

ncclResult_t kl_gpus_read(struct kl_gpu_facts **gpu, int *n, char problem[KL_GPUS_PROBLEM_TEXT])
{
    struct kl_nvml facts;

    KL_TRY(kl_nvml_read(&facts));
    struct kl_gpu_facts *g = calloc((size_t)facts.ngpus + 1, sizeof *g);
    for (int i = 0; g && i < facts.ngpus; i++) describe(&facts.gpu[i], &g[i]);
    snprintf(problem, KL_GPUS_PROBLEM_TEXT, "%s", facts.problem);
    *n = facts.ngpus;
    *gpu = g;
    kl_nvml_fini(&facts);
    return g ? ncclSuccess : KL_NOMEM("GPUs");
}
