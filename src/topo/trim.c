/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trim.c - what a rank's machine is: the GPUs it reaches without the network.
 */
#include "base/error.h"
#include "topo/builder.h"
#include "topo/paths.h"

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

static ncclResult_t mark_trimmed(struct kl_builder *b, const struct kl_topo *t, int own, int nranks)
{
    int ngpus = t->count[KL_NODE_GPU], left = ngpus;
    int *domain = malloc((size_t)ngpus * sizeof *domain);

    if (!domain) return KL_NOMEM("a topology");
    kl_topo_domains(t, domain);
    for (int g = 0; g < ngpus; g++) {
        if (domain[g] == domain[own]) continue;
        b->node[kl_topo_at(t, KL_NODE_GPU, g)].deleted = true;
        left--;
    }
    free(domain);
    for (int i = 0; left == nranks && i < t->count[KL_NODE_NET]; i++)
        b->node[kl_topo_at(t, KL_NODE_NET, i)].deleted = true;
    return ncclSuccess;
}

ncclResult_t kl_topo_trim(struct kl_topo **topo, int own_rank, int nranks)
{
    struct kl_topo *t = *topo, *trimmed = NULL;
    struct kl_builder b = {0};
    ncclResult_t rc;
    int own = kl_topo_gpu_of_rank(t, own_rank);

    if (own < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", own_rank);
    KL_TRY_OR(rc, out, kl_builder_reopen(&b, t));
    KL_TRY_OR(rc, out, mark_trimmed(&b, t, own, nranks));
    KL_TRY_OR(rc, out, kl_builder_finish(&b, &trimmed));
    trimmed->options = t->options;
    trimmed->own_host = kl_id_host(t->node[kl_topo_at(t, KL_NODE_GPU, own)].id);
    kl_topo_free(t);
    *topo = trimmed;
out:
    kl_builder_fini(&b);
    return rc;
}
