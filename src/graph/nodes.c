/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/connect.h"

#include "base/error.h"
#include "graph/records.h"

#include <stdlib.h>

/* The first rank of a rank's first ring: the key that ranks of one node have in common. */
static int key_of(const struct kl_ranks *ranks, int rank)
{
    return kl_shifted_rank(kl_record(ranks, rank)->channel[0].ring_recv, kl_record_shift(ranks, rank));
}

/* Give every rank a node; `node_of_key` is indexed by rank, as keys are ranks. */
static ncclResult_t number_nodes(const struct kl_ranks *ranks, struct kl_nodes *n, int32_t *node_of_key)
{
    for (int r = 0; r < ranks->nranks; r++) node_of_key[r] = -1;
    for (int r = 0; r < ranks->nranks; r++) {
        int key = key_of(ranks, r);

        if (key < 0 || key >= ranks->nranks)
            return KL_FAIL(ncclInternalError, "rank %d says that its first ring starts at rank %d of %d", r, key,
                           ranks->nranks);
        if (node_of_key[key] < 0) {
            n->head[n->nnodes] = key;
            node_of_key[key] = n->nnodes++;
        }
        n->of_rank[r] = node_of_key[key];
    }
    return ncclSuccess;
}

static void list_ranks(struct kl_nodes *n, int nranks)
{
    for (int r = 0; r < nranks; r++) n->local_rank[r] = n->first[n->of_rank[r] + 1]++;
    for (int i = 0; i < n->nnodes; i++) {
        if (n->first[i + 1] > n->max_local) n->max_local = n->first[i + 1];
        n->first[i + 1] += n->first[i];
    }
    for (int r = 0; r < nranks; r++) n->rank[n->first[n->of_rank[r]] + n->local_rank[r]] = r;
}

ncclResult_t kl_nodes_create(const struct kl_ranks *ranks, struct kl_nodes *nodes)
{
    size_t n = (size_t)ranks->nranks;
    int32_t *block = calloc(5 * n + 1, sizeof *block);
    int32_t *node_of_key = malloc(n * sizeof *node_of_key);
    struct kl_nodes made = {.of_rank = block,
                            .local_rank = block + n,
                            .head = block + 2 * n,
                            .rank = block + 3 * n,
                            .first = block + 4 * n};
    ncclResult_t rc;

    if (!block || !node_of_key) {
        rc = KL_NOMEM("the nodes of a communicator");
        goto out;
    }
    KL_TRY_OR(rc, out, number_nodes(ranks, &made, node_of_key));
    list_ranks(&made, ranks->nranks);
    *nodes = made;
    block = NULL;
out:
    free(block);
    free(node_of_key);
    return rc;
}

void kl_nodes_fini(struct kl_nodes *nodes)
{
    free(nodes->of_rank); /* one block */
    nodes->of_rank = NULL;
}

int kl_nodes_fewest(const struct kl_nodes *nodes)
{
    int fewest = nodes->max_local;

    for (int i = 0; i < nodes->nnodes; i++)
        if (kl_nodes_size(nodes, i) < fewest) fewest = kl_nodes_size(nodes, i);
    return fewest;
}
