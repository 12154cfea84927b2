/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pair.h"

#include "base/error.h"

ncclResult_t kl_pair_ask_topo(const struct kl_topo *t, bool network, struct kl_pair_facts *facts)
{
    int a = facts->a->rank, b = facts->b->rank;
    struct kl_pair_why *why = &facts->why;

    KL_TRY(network ? kl_topo_p2p_transport(t, a, b, &why->p2p) : kl_topo_p2p(t, a, b, &why->p2p));
    why->shm = kl_topo_shm(t, a, b);
    if (!network && why->shm != KL_SHM_DISABLED) why->shm = KL_SHM_ALLOWED; /* the transport checks the rest itself */
    facts->ruled = true;
    return ncclSuccess;
}
