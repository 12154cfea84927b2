/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netmerge.h - place a machine's NETs, and replace groups of them by virtual ones.
 *
 * Groups are those that NCCL_NET_FORCE_MERGE names (`name[:port],...;...`), then NETs no farther apart than
 * NCCL_NET_MERGE_LEVEL, as NCCL_NET_MERGE_POLICY lets them be joined. Each group gets a virtual NET (netplace.h), which the
 * machine uses instead of its members; in older releases also a group of one. If the plugin refuses a
 * group, its members stay apart.
 *
 * Source: the topology specification, 7.6; the specification of differences between versions, 2.6, 3.4, 3.9 and 3.11.
 */
#ifndef KL_TOPO_NETMERGE_H
#define KL_TOPO_NETMERGE_H

#include "topo/detect.h"
#include "topo/options.h"

/**
 * Place all NETs of the machine in the document. ncclInvalidUsage for a forced group that cannot be made, ncclInvalidArgument for
 * one of several sockets where the release refuses that.
 */
ncclResult_t kl_net_merge_place(const struct kl_detect *d, const struct kl_machine *m,
                                const struct kl_topo_options *options);

/** Are near NETs merged on this machine? */
enum kl_merge_why {
    KL_MERGE_POSSIBLE,
    KL_MERGE_FROM_FILE, /* host devices emulate a file: its NETs stay as written */
    KL_MERGE_GIVEN,     /* the network lists virtual NETs itself */
    KL_MERGE_NO_PLUGIN  /* the network cannot */
};
enum kl_merge_why kl_net_merge_why(const struct kl_machine *m);
const char *kl_merge_why_name(enum kl_merge_why why);
const char *kl_merge_why_text(enum kl_merge_why why);

#endif
