/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pair.h"

#include "base/error.h"

ncclResult_t kl_pair_ask_topo(const struct kl_topo *t, bool network, struct kl_pair_facts *facts,
                              struct kl_pair_why *why)
{
    int a = facts->a->rank, b = facts->b->rank;

    KL_TRY(network ? kl_topo_p2p_transport(t, a, b, &why->p2p) : kl_topo_p2p(t, a, b, &why->p2p));
    facts->p2p_refusal = why->p2p.p2p ? NULL : kl_p2p_why_text(&why->p2p, why->p2p_text);
    why->shm = kl_topo_shm(t, a, b);
    if (!network && why->shm != KL_SHM_DISABLED) why->shm = KL_SHM_ALLOWED; /* the transport knows the rest better */
    facts->shm_refusal = why->shm == KL_SHM_ALLOWED ? NULL : kl_shm_why_text(why->shm);
    return ncclSuccess;
}
