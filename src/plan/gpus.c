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

static void add_link(struct kl_gpu_facts *g, const char *far)
{
    char target[KL_BUSID_TEXT] = "";
    int i = 0;

    kl_sysfs_busid(far, target);
    while (i < g->nnvlinks && strcmp(g->nvlink[i].target, target) != 0) i++;
    if (i == KL_GPU_MAX_NVLINKS) return;
    if (i == g->nnvlinks) memcpy(g->nvlink[g->nnvlinks++].target, target, sizeof target);
    g->nvlink[i].count++;
}

static void describe(const struct kl_nvml_gpu *from, struct kl_gpu_facts *g)
{
    *g = (struct kl_gpu_facts){.dev = from->index,
                               .sm = from->sm,
                               .rank = -1,
                               .gdr = 1,
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
    for (int i = 0; i < from->nlinks; i++) add_link(g, from->link[i]);
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
