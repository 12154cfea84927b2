/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/algorithms/algorithms.h"

const struct kl_algorithm *const kl_algorithms[] = {
    &kl_algorithm_ring_chain, &kl_algorithm_ring,         &kl_algorithm_tree,       &kl_algorithm_nvls,
    &kl_algorithm_nvls_tree,  &kl_algorithm_nvls_network, &kl_algorithm_pat_gather, &kl_algorithm_pat_scatter,
    &kl_algorithm_chain,      &kl_algorithm_direct,       &kl_algorithm_oneshot,    &kl_algorithm_flat,
    &kl_algorithm_ordered,    &kl_algorithm_ordered_ring, &kl_algorithm_mapped,     NULL,
};
_Static_assert(sizeof kl_algorithms / sizeof(void *) <= KL_ALGORITHMS_MAX + 1, "rows are kept in small tables");

int kl_algorithm_find(int func, int algo, int proto, enum kl_peer_connect memory)
{
    for (int i = 0; kl_algorithms[i]; i++) {
        const struct kl_algorithm *a = kl_algorithms[i];
        if (a->memory > memory) continue;
        if ((int)a->algo == algo && a->funcs >> func & 1 && a->protos >> proto & 1) return i;
    }
    return -1;
}
