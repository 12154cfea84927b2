/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netplace.h - where a virtual NET stands in a document, and how wide its PCI link is.
 *
 * It hangs on a card of its own below the switch that its members share. Releases differ in which other NETs get such a card,
 * and in whether its link has the members' combined bandwidth.
 *
 * Source: the topology specification, 7.6; the specification of differences between versions, 3.5 to 3.7.
 */
#ifndef KL_TOPO_NETPLACE_H
#define KL_TOPO_NETPLACE_H

#include "topo/detect.h"

/**
 * Place a virtual NET of several members, or find it where it is; `elem`: the element of each NET. ncclInvalidArgument for
 * members on different sockets, where the release refuses that.
 */
ncclResult_t kl_net_place_virtual(const struct kl_detect *d, const struct kl_net_facts *net, const int *elem);

#endif
