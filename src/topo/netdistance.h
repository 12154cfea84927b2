/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netdistance.h - how far apart two NETs of a document stand: what decides which of them are merged, and where.
 *
 * Threads: pure.
 * Source:  the topology specification, 7.6.
 */
#ifndef KL_TOPO_NETDISTANCE_H
#define KL_TOPO_NETDISTANCE_H

#include "topo/xml.h"

/** Between two net elements: PORT, PIX, PXB, PHB, SYS or DIS; `common` receives what is above both. */
int kl_net_distance(const struct kl_xml *xml, int net_a, int net_b, int *common);

#endif
