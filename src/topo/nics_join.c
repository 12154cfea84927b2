/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/text.h"
#include "topo/nics.h"

static ncclResult_t join_names(const struct kl_net_facts *all, const int *member, int n, char name[KL_NET_NAME_TEXT])
{
    struct kl_text text = kl_text_in(name, KL_NET_NAME_TEXT);

    for (int i = 0; i < n; i++) kl_text_add(&text, "%s%s", i ? "+" : "", all[member[i]].name);
    if (!text.cut) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s and others: their names together are too long for one NIC",
                   all[member[0]].name);
}

/* Like the first one, as fast as all. */
ncclResult_t kl_nics_join(void *nics, const int *member, int n, struct kl_net_facts *joined)
{
    const struct kl_net_facts *all = nics, *first = &all[member[0]];
    int64_t mbps = 0;

    *joined = *first;
    for (int i = 0; i < n; i++) {
        if (all[member[i]].roce != first->roce)
            return KL_FAIL(ncclInvalidUsage, "%s and %s cannot be one NIC: one is on InfiniBand, the other on Ethernet",
                           first->name, all[member[i]].name);
        mbps += all[member[i]].speed_mbps;
    }
    joined->speed_mbps = mbps > INT32_MAX ? INT32_MAX : (int)mbps;
    return join_names(all, member, n, joined->name);
}

ncclResult_t kl_nics_join_none(void *nics, const int *member, int n, struct kl_net_facts *joined)
{
    if (n > 1) return KL_FAIL(ncclInvalidUsage, "NCCL_IB_MERGE_NICS=0 keeps NICs apart");
    return kl_nics_join(nics, member, n, joined);
}
