/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trim.c - trim a topology to the GPUs that a rank reaches without the network.
 */
#include "base/error.h"
#include "topo/builder.h"
#include "topo/paths_make.h"

#include <stdlib.h>

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
    trim->nets =
        ngpus - trim->ngpus == nranks && t->count[KL_NODE_NET] && !kl_nccl_has(t->options.nccl, KL_CHANGE_KEEP_NETS);
    free(domain);
    return ncclSuccess;
}

/* Where ranks and devices are nodes of their own, only the rank goes. */
static void drop_gpu(const struct kl_topo *t, struct kl_builder_node *node)
{
    if (kl_nccl_has(t->options.nccl, KL_CHANGE_DEVICE_NODES))
        node->node.type = KL_NODE_DEV;
    else
        node->deleted = true;
}

static ncclResult_t drop(const struct trimming *trim, const struct kl_topo *t, struct kl_topo **trimmed)
{
    struct kl_builder b = {0};
    ncclResult_t rc = kl_builder_reopen(&b, t);

    for (int g = 0; !rc && g < t->count[KL_NODE_GPU]; g++)
        if (trim->gpu[g]) drop_gpu(t, &b.node[kl_topo_at(t, KL_NODE_GPU, g)]);
    for (int i = 0; !rc && trim->nets && i < t->count[KL_NODE_NET]; i++)
        b.node[kl_topo_at(t, KL_NODE_NET, i)].deleted = true;
    if (!rc) rc = kl_builder_finish(&b, trimmed);
    if (!rc) (*trimmed)->options = t->options;
    kl_builder_fini(&b);
    return rc;
}

/* Is there more than this machine? Older releases take NETs for the answer. */
static bool is_inter(const struct kl_topo *t, int nranks)
{
    if (!kl_nccl_has(t->options.nccl, KL_CHANGE_KEEP_NETS)) return t->count[KL_NODE_NET] > 0;
    return t->count[KL_NODE_GPU] != nranks;
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
    trimmed->trimmed = true;
    trimmed->inter = is_inter(trimmed, nranks);
    if (trimmed != t) kl_topo_free(t);
    if (kl_topo_has_paths(trimmed)) kl_path_set_bounds(trimmed);
    *topo = trimmed;
out:
    free(trim.gpu);
    return rc;
}
