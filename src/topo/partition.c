/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/partition.h"

int kl_partition_of(const struct kl_xml *xml, int gpu)
{
    int partition = kl_xml_int(xml, gpu, "mlopart", -1);

    return partition >= 0 && partition < KL_PARTITIONS ? partition : -1;
}

uint64_t kl_partition_id(uint64_t busid, int partition)
{
    return partition < 0 ? busid : busid + 2 * (uint64_t)partition + 1;
}
