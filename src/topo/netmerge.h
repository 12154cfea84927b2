/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netmerge.h - place a machine's NETs, and let virtual ones stand for groups of them.
 *
 * Groups are those that NCCL_NET_FORCE_MERGE names (`name[:port],...;...`), then NETs no farther apart than
 * NCCL_NET_MERGE_LEVEL, at most 4 each. Every NET ends up in one group, and each group gets a virtual NET, which is what
 * the machine uses from then on; the plugin may refuse a group, whose members then stay apart.
 * Source: the topology specification, 7.6.
 */
#ifndef KL_TOPO_NETMERGE_H
#define KL_TOPO_NETMERGE_H

#include "topo/detect.h"
#include "topo/options.h"

/** Place all NETs of the machine in the document. ncclInvalidUsage for a forced group that cannot be made. */
ncclResult_t kl_net_merge_place(const struct kl_detect *d, const struct kl_machine *m,
                                const struct kl_topo_options *options);

/** Are NETs that are near enough merged on this machine? */
enum kl_merge_why {
    KL_MERGE_POSSIBLE,
    KL_MERGE_FROM_FILE, /* host devices play a file, whose NETs stand as they are written */
    KL_MERGE_GIVEN,     /* the network lists virtual NETs itself */
    KL_MERGE_NO_PLUGIN  /* the network cannot */
};
enum kl_merge_why kl_net_merge_why(const struct kl_machine *m);
const char *kl_merge_why_name(enum kl_merge_why why);
const char *kl_merge_why_text(enum kl_merge_why why);

/** How far apart two net elements are: PORT, PIX, PXB, PHB, SYS or DIS; `common` receives what is above both. */
int kl_net_merge_distance(const struct kl_xml *xml, int net_a, int net_b, int *common);

#endif
