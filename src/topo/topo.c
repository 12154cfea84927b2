/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/topo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void kl_topo_free_paths(struct kl_topo *t)
{
    for (int from = 0; from < KL_NODE_TYPES; from++)
        for (int to = 0; to < KL_NODE_TYPES; to++) {
            free(t->path[from][to]);
            t->path[from][to] = NULL;
        }
    free(t->touched);
    free(t->near_net);
    free(t->pxn);
    free(t->hop);
    t->touched = NULL;
    t->near_net = NULL;
    t->pxn = NULL;
    t->hop = NULL;
    t->nhops = t->max_hops = 0;
}

void kl_topo_free(struct kl_topo *t)
{
    if (!t) return;
    kl_topo_free_paths(t);
    free(t->node);
    free(t->link);
    free(t->cpuset);
    free(t->by_rank);
    free(t->host_hash);
    free(t);
}

/* ---- finding ---- */

int kl_topo_gpu_of_rank(const struct kl_topo *t, int rank)
{
    int low = 0, high = t->count[KL_NODE_GPU];

    /* Ranks are mostly 0, 1, 2, ...: then the first guess is right. */
    if (rank >= 0 && rank < high && t->node[kl_topo_at(t, KL_NODE_GPU, t->by_rank[rank])].gpu.rank >= rank)
        high = rank + 1;
    if (rank > 0 && rank < high && t->node[kl_topo_at(t, KL_NODE_GPU, t->by_rank[rank - 1])].gpu.rank < rank)
        low = rank;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (t->node[kl_topo_at(t, KL_NODE_GPU, t->by_rank[middle])].gpu.rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->count[KL_NODE_GPU]) return -1;
    return t->node[kl_topo_at(t, KL_NODE_GPU, t->by_rank[low])].gpu.rank == rank ? t->by_rank[low] : -1;
}

int kl_topo_find(const struct kl_topo *t, enum kl_node_type type, uint64_t id)
{
    for (int i = 0; i < t->count[type]; i++)
        if (t->node[kl_topo_at(t, type, i)].id == id) return kl_topo_at(t, type, i);
    return -1;
}

const struct kl_node *kl_topo_first_cpu(const struct kl_topo *t)
{
    return t->count[KL_NODE_CPU] ? &t->node[t->first[KL_NODE_CPU]] : NULL;
}

char *kl_node_text(const struct kl_node *node, char text[KL_NODE_TEXT])
{
    snprintf(text, KL_NODE_TEXT, "%s/%x-%" PRIx64, kl_node_type_name[node->type], (unsigned)kl_id_host(node->id),
             kl_id_local(node->id));
    return text;
}
