/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pair_make.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/net_name.h"
#include "plan/topo_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "3" and "GPU/3": the rank, else -1. */
static long rank_named(const char *word)
{
    const char *digits = strncmp(word, "GPU/", 4) ? word : word + 4;
    char *end;
    long rank = isdigit((unsigned char)*digits) ? strtol(digits, &end, 10) : -1;

    return rank < 0 || *end ? -1 : rank;
}

static ncclResult_t set_gpu(const struct kl_cluster *c, const struct kl_topo *whole, long rank, struct kl_pair_end *end)
{
    int nranks = c->hosts * c->gpus, together = c->machine.hosts > 1 ? nranks : c->gpus;

    if (rank >= nranks)
        return KL_FAIL(ncclInvalidUsage, "GPU/%ld: %s %d GPU%s%s", rank,
                       c->hosts > 1 ? "these hosts have" : "this host has", nranks, kl_plural(nranks),
                       "; --hosts N adds hosts, whose GPUs continue the numbers");
    end->type = KL_NODE_GPU;
    end->rank = (int)rank;
    end->host = (int)rank / c->gpus;
    end->local = (int)rank % together;
    end->shift = (int)rank - end->local;
    end->dev = whole->node[kl_topo_at(whole, KL_NODE_GPU, kl_topo_gpu_of_rank(whole, end->local))].gpu.dev;
    snprintf(end->name, sizeof end->name, "GPU/%d", end->rank);
    return ncclSuccess;
}

static int net_with_dev(const struct kl_topo *t, int dev)
{
    for (int i = 0; i < t->count[KL_NODE_NET]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_NET, i)].net.dev == dev) return kl_topo_at(t, KL_NODE_NET, i);
    return -1;
}

static ncclResult_t set_node(const struct kl_topo *t, const struct kl_xml *document, const char *word, int node,
                             struct kl_pair_end *end)
{
    enum kl_node_type type = node < 0 ? KL_NODE_PCI : t->node[node].type;
    char nic[KL_NODE_TEXT] = "NET/3";

    if (t->count[KL_NODE_NET]) kl_topo_name(t, kl_topo_at(t, KL_NODE_NET, 0), nic);
    if (type == KL_NODE_PCI || type == KL_NODE_NIC)
        return KL_FAIL(
            ncclInvalidUsage,
            "%s: %s; ends are GPUs by rank (3, GPU/3), NICs (%s, or by name), either by PCI address, CPU and NVS nodes",
            word, node < 0 ? "no such end" : "no path is kept for switches and cards", nic);
    end->type = type;
    end->rank = end->dev = -1;
    end->local = kl_topo_index(t, node);
    kl_topo_name(t, node, end->name);
    if (type == KL_NODE_NET)
        snprintf(end->label, sizeof end->label, "%s", kl_net_name(document, t->node[node].net.dev));
    return ncclSuccess;
}

ncclResult_t kl_pair_end_find(const struct kl_cluster *c, const struct kl_topo *whole, const struct kl_xml *document,
                              const char *word, struct kl_pair_end *end)
{
    long rank = rank_named(word);
    int node = -1;

    if (rank >= 0) return set_gpu(c, whole, rank, end);
    node = kl_topo_named(whole, word);
    if (node >= 0 && whole->node[node].type == KL_NODE_GPU) return set_gpu(c, whole, whole->node[node].gpu.rank, end);
    if (node < 0 && kl_net_named(document, word) >= 0) node = net_with_dev(whole, kl_net_named(document, word));
    return set_node(whole, document, word, node, end);
}
