/* SPDX-License-Identifier: Apache-2.0 */
/**
 * plan.h - the plan of a whole cluster: N identical hosts, from topology to tuning, without devices or a network.
 *
 * Hosts are alike, so one host is searched, once for each of its *domains* (GPUs that reach each other faster than
 * the network does; usually there is one), and its records are shifted for the others. Cost and memory grow with the number of
 * ranks only by a few words each.
 *
 * Threads: const once made.
 */
#ifndef KL_PLAN_PLAN_H
#define KL_PLAN_PLAN_H

#include "graph/config.h"
#include "graph/graphs.h"
#include "graph/p2p.h"
#include "topo/machine.h"

struct kl_plan_request {
    const struct kl_machine *machine; /* host 0; ranks of its devices are 0, 1, ... */
    const struct kl_topo_options *options;
    const struct kl_graph_config *config;
    const struct kl_tuning_constants *constants; /* of the tuning model; NULL: kl_tuning_reference */
    const struct kl_xml *file;                   /* graph file, NULL for none */
    int hosts; /* joined by the network; several hosts in one NVLink domain are one machine and count as one */
};

/** GPUs of a host that share a system, and the results for them. */
struct kl_plan_domain {
    int rank; /* the lowest of host 0; the numbers below are seen from this rank */
    struct kl_topo *topo;
    struct kl_graphs graphs;
    enum kl_offload no_collnet, no_nvls; /* why their graphs were not searched */
};

struct kl_plan {
    int hosts, ranks_per_host, nranks;
    struct kl_plan_domain *domain;
    int ndomains;
    int32_t *domain_of; /* by rank of host 0 */
    struct kl_rank_record *record;
    int32_t *which, *shift;     /* by rank */
    struct kl_connect *connect; /* seen from rank 0 */
    struct kl_p2p_channels p2p;
    struct kl_tuning tuning;
};

ncclResult_t kl_plan_create(const struct kl_plan_request *request, struct kl_plan **plan);
void kl_plan_free(struct kl_plan *plan);

/** The domain of a rank, and the shift of ranks in its graphs for it. */
const struct kl_plan_domain *kl_plan_domain_of(const struct kl_plan *plan, int rank, int *shift);

#endif
