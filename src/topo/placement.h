/* SPDX-License-Identifier: Apache-2.0 */
/**
 * placement.h - files that say where devices are, but not which: completed as the machine itself would complete them.
 *
 * NCCL fills such a file from the running system: ids and speeds from sysfs, GPUs and NVLinks from NVML, nets from the plugin.
 * Without that machine, PCI class, vendor and device id tell the product (product.h), and the machine (known.h) the rest:
 * the one that is named, or that a provider's file looks like, or, of several alike, that the file's name means.
 *
 * Nothing is added that the file contradicts, a speed that is stated stays even where it is wrong, and whatever is added is
 * noted (assume.h). NVLinks are never added to a file that has <gpu> elements.
 *
 * Source:  the machine specification, 6.
 */
#ifndef KL_TOPO_PLACEMENT_H
#define KL_TOPO_PLACEMENT_H

#include "topo/assume.h"

/**
 * Complete `xml`. Of a file with <gpu> elements only its AMD GPUs are translated, and products noted that ids do not
 * tell. `machine`: what it is said to be, or NULL. ncclInvalidUsage, saying what is missing, where GPUs cannot be told;
 * a file without any device is left as it is.
 */
ncclResult_t kl_placement_complete(struct kl_xml *xml, const struct kl_known *machine, struct kl_assumed *assumed);

/** The product of the GPU whose pci element this is, by its ids; NULL if they do not tell. */
const struct kl_gpu_product *kl_placement_product(const struct kl_xml *xml, int pci);

#endif
