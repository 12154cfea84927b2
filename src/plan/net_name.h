/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net_name.h - the displayed name of a NET: its name in the document of the machine, as "mlx5_0".
 */
#ifndef KL_PLAN_NET_NAME_H
#define KL_PLAN_NET_NAME_H

#include "topo/xml.h"

/** The first net element with this device number; KL_XML_NONE if there is none. */
int kl_net_elem(const struct kl_xml *document, int dev);

/** Its name; "" if it has none. The text is the document's. */
const char *kl_net_name(const struct kl_xml *document, int dev);

/** The device number of the first NET of this name; -1 if there is none. */
int kl_net_named(const struct kl_xml *document, const char *name);

#endif
