/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/algorithms/algorithms.h"

#define ADDRESS(name) &kl_algorithm_##name,
const struct kl_algorithm *const kl_algorithms[] = {KL_ALGORITHM_TABLE(ADDRESS) NULL};

bool kl_algorithm_has_rows(int algorithm)
{
    return kl_algorithms[algorithm]->find;
}

int kl_algorithm_find(int func, int algo, int proto, enum kl_peer_connect memory)
{
    for (int i = 0; kl_algorithms[i]; i++) {
        const struct kl_algorithm *a = kl_algorithms[i];
        if (a->memory > memory) continue;
        if ((int)a->algo == algo && a->funcs >> func & 1 && a->protos >> proto & 1) return i;
    }
    return -1;
}
