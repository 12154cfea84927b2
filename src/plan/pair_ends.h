/* SPDX-License-Identifier: Apache-2.0 */
/** pair_ends.h - which ends of a cluster are meant. Private to the pair*.c. */
#ifndef KL_PLAN_PAIR_ENDS_H
#define KL_PLAN_PAIR_ENDS_H

#include "plan/pair.h"

/** `whole`, `document`: host 0 untrimmed (kl_cluster_whole). ncclInvalidUsage for what is not there. */
ncclResult_t kl_pair_end_find(const struct kl_cluster *cluster, const struct kl_topo *whole,
                              const struct kl_xml *document, const char *word, struct kl_pair_end *end);

#endif
