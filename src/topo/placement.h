/* SPDX-License-Identifier: Apache-2.0 */
/**
 * placement.h - files that only give the places of devices: completed as on the machine itself.
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
 * Complete `xml`. In a file with <gpu> elements only AMD GPUs are translated, and products without ids noted. `machine`:
 * the user's name for it, or NULL. ncclInvalidUsage, naming the missing part, if GPUs cannot be identified; a file
 * without any device stays as it is.
 */
ncclResult_t kl_placement_complete(struct kl_xml *xml, const struct kl_known *machine, struct kl_assumed *assumed);

/** The product of the GPU of this pci element, by its ids; NULL if they are unknown. */
const struct kl_gpu_product *kl_placement_product(const struct kl_xml *xml, int pci);

#endif
