/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netdistance.h - the distance of two NETs of a document. It decides which NETs are merged, and where.
 *
 * Threads: pure.
 * Source:  the topology specification, 7.6.
 */
#ifndef KL_TOPO_NETDISTANCE_H
#define KL_TOPO_NETDISTANCE_H

#include "topo/xml.h"

/** Between two net elements: PORT, PIX, PXB, PHB, SYS or DIS; `common` receives their lowest common ancestor. */
int kl_net_distance(const struct kl_xml *xml, int net_a, int net_b, int *common);

#endif
