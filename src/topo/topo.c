/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/topo.h"

#include "base/error.h"
#include "topo/builder.h"
#include "topo/paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kl_topo_free(struct kl_topo *t)
{
    if (!t) return;
    kl_topo_drop_paths(t);
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

void kl_topo_link_bw(const struct kl_topo *t, float *bw)
{
    for (int i = 0; i < t->nlinks; i++) bw[i] = t->link[i].bw;
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

/* ---- trim ---- */

/* Label every GPU with the lowest one that it reaches better than through the network, directly or through others. */
void kl_topo_domains(const struct kl_topo *t, int *domain)
{
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        domain[g] = g;
        for (int p = 0; p < g; p++)
            if (kl_path_between(t, KL_NODE_GPU, g, KL_NODE_GPU, p)->type < KL_PATH_NET && domain[p] < domain[g])
                domain[g] = domain[p];
    }
}

/* Which GPUs and NETs go, by index among them. */
struct trimming {
    bool *gpu;
    int ngpus;
    bool nets; /* all of them */
};

static ncclResult_t judge(const struct kl_topo *t, int own, int nranks, struct trimming *trim)
{
    int ngpus = t->count[KL_NODE_GPU];
    int *domain = malloc((size_t)ngpus * sizeof *domain);

    trim->gpu = calloc((size_t)ngpus, sizeof *trim->gpu);
    if (!domain || !trim->gpu) {
        free(domain);
        return KL_NOMEM("a topology");
    }
    kl_topo_domains(t, domain);
    for (int g = 0; g < ngpus; g++) trim->ngpus += trim->gpu[g] = domain[g] != domain[own];
    trim->nets = ngpus - trim->ngpus == nranks && t->count[KL_NODE_NET];
    free(domain);
    return ncclSuccess;
}

static ncclResult_t drop(const struct trimming *trim, const struct kl_topo *t, struct kl_topo **trimmed)
{
    struct kl_builder b = {0};
    ncclResult_t rc = kl_builder_reopen(&b, t);

    for (int g = 0; !rc && g < t->count[KL_NODE_GPU]; g++)
        if (trim->gpu[g]) b.node[kl_topo_at(t, KL_NODE_GPU, g)].deleted = true;
    for (int i = 0; !rc && trim->nets && i < t->count[KL_NODE_NET]; i++)
        b.node[kl_topo_at(t, KL_NODE_NET, i)].deleted = true;
    if (!rc) rc = kl_builder_finish(&b, trimmed);
    if (!rc) (*trimmed)->options = t->options;
    kl_builder_fini(&b);
    return rc;
}

ncclResult_t kl_topo_trim(struct kl_topo **topo, int own_rank, int nranks)
{
    struct kl_topo *t = *topo, *trimmed = t;
    struct trimming trim = {0};
    ncclResult_t rc;
    int own = kl_topo_gpu_of_rank(t, own_rank);

    if (own < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", own_rank);
    KL_TRY_OR(rc, out, judge(t, own, nranks, &trim));
    if (trim.ngpus || trim.nets) KL_TRY_OR(rc, out, drop(&trim, t, &trimmed));
    trimmed->own_host = kl_id_host(t->node[kl_topo_at(t, KL_NODE_GPU, own)].id);
    if (trimmed != t) kl_topo_free(t);
    *topo = trimmed;
out:
    free(trim.gpu);
    return rc;
}

/* ---- search bounds ---- */

static float widest_path(const struct kl_topo *t, int gpu)
{
    enum kl_node_type to = t->count[KL_NODE_NET] ? KL_NODE_NET : KL_NODE_GPU;
    float bw = 0;

    for (int i = 0; i < t->count[to]; i++) {
        const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, to, i);
        if (p->hops && p->bw > bw) bw = p->bw;
    }
    return bw;
}

/* What a GPU can move at all: all its NVLinks, or its PCI link (the last one counts). */
static float own_links(const struct kl_topo *t, const struct kl_node *gpu)
{
    float nvlink = 0, pci = 0;

    for (int k = gpu->first_link; k < gpu->first_link + gpu->nlinks; k++) {
        if (t->link[k].type == KL_PATH_NVL) nvlink += t->link[k].bw;
        if (t->link[k].type == KL_PATH_PCI) pci = t->link[k].bw;
    }
    return nvlink > pci ? nvlink : pci;
}

void kl_topo_search_init(struct kl_topo *t)
{
    t->max_bw = t->total_bw = 0;
    if (!t->count[KL_NODE_NET] && t->count[KL_NODE_GPU] == 1) {
        t->max_bw = t->total_bw = KL_BW_LOCAL;
        return;
    }
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        float path = widest_path(t, g), links = own_links(t, &t->node[kl_topo_at(t, KL_NODE_GPU, g)]);

        if (path > t->max_bw) t->max_bw = path;
        if (links > t->total_bw) t->total_bw = links;
    }
}
