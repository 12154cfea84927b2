/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order.h - the order in which the search tries the GPUs after another one.
 *
 * Criteria that do not change during a search are sorted by once, at first use: bandwidth from the entry NET, hops from it,
 * bandwidth and hops from the GPU before, and distance of the indices. The bandwidth left on a candidate's PCI link
 * changes, and is sorted in when candidates are listed.
 *
 * Source: the graph specification, 5.5.2.
 */
#ifndef KL_GRAPH_ORDER_H
#define KL_GRAPH_ORDER_H

#include "graph/routes.h"

struct kl_order_entry {
    int32_t gpu;
    int32_t net_bw; /* from the entry NET, whole GB/s */
    int32_t alike;  /* equal for GPUs with the same bandwidth and hops from the GPU before */
};

/** Candidates after a GPU, the preferred first; `n` of them. */
struct kl_order {
    int n;
    bool all_alike;
    struct kl_order_entry entry[];
};

/** Sorted candidates, one list per entry NET (and one without) and GPU; lists are made at first use. */
struct kl_orders {
    struct kl_order **list;
};

ncclResult_t kl_orders_init(const struct kl_routes *routes, struct kl_orders *orders);
void kl_orders_fini(const struct kl_routes *routes, struct kl_orders *orders);

/** The order after GPU `from` of a channel entered through NET `net`, -1: where that does not matter. NULL: no memory. */
const struct kl_order *kl_order_after(const struct kl_routes *routes, struct kl_orders *orders, int from, int net);

#endif
