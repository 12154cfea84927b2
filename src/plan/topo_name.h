/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topo_name.h - names of nodes: GPU/<rank>, NET/<dev>, and TYPE/<system>-<hex id>, which all have. GPUs and NICs are
 * found by their PCI address as well: 0000:17:00.0, or 17:00.0.
 */
#ifndef KL_PLAN_TOPO_NAME_H
#define KL_PLAN_TOPO_NAME_H

#include "topo/topo.h"

/** The short name; NETs of machines with several hosts have the long one. Returns `text`. */
char *kl_topo_name(const struct kl_topo *t, int node, char text[KL_NODE_TEXT]);

/** The node of a short or long name, or a PCI address; -1 if there is none. */
int kl_topo_named(const struct kl_topo *t, const char *name);

#endif
