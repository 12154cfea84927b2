/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order.h"

#include "base/error.h"

ncclResult_t kl_order_find(const struct kl_order_request *q, const struct kl_cluster *cluster,
                           const struct kl_planned *planned, struct kl_order_sums *sums, struct kl_order *o)
{
    KL_TRY(kl_order_derive(q, cluster, planned, sums, o));
    kl_order_judge(o, planned);
    return ncclSuccess;
}
