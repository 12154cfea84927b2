/* SPDX-License-Identifier: Apache-2.0 */
/**
 * agree.c - what all ranks agree on: their graphs joined to rings and trees over everybody, how many channels there are,
 * who meets whom in which round, and how long an operation would take.
 *
 * One all-gather carries a record of every rank; all else is computed from it, by the same functions that plan offline.
 */
#include "comm/comm.h"

#include "graph/config.h"

#include <stdlib.h>

/* ---- records ---- */

static int own_sm(ncclComm_t comm)
{
    int gpu = kl_topo_gpu_of_rank(comm->topo, comm->rank);

    return comm->topo->node[kl_topo_at(comm->topo, KL_NODE_GPU, gpu)].gpu.sm;
}

static void describe_graphs(ncclComm_t comm, struct kl_rank_record *me)
{
    const struct kl_node *cpu = kl_topo_first_cpu(comm->topo);

    kl_connect_record(comm->graphs, comm->rank, cpu ? cpu->cpu.arch : -1, cpu ? cpu->cpu.vendor : -1, me);
    me->sm = own_sm(comm);
}

static ncclResult_t gather_records(ncclComm_t comm)
{
    struct kl_rank_record *records = calloc((size_t)comm->nranks, sizeof *records);

    if (!records) return KL_NOMEM("graph records");
    comm->records = records;
    describe_graphs(comm, &records[comm->rank]);
    return kl_bootstrap_allgather(comm->bootstrap, records, sizeof *records);
}

static void sm_range(ncclComm_t comm, int *min, int *max)
{
    *min = INT32_MAX;
    *max = 0;
    for (int r = 0; r < comm->nranks; r++) {
        if (comm->records[r].sm < *min) *min = comm->records[r].sm;
        if (comm->records[r].sm > *max) *max = comm->records[r].sm;
    }
}

/* ---- rings, trees, channels ---- */

static ncclResult_t join_graphs(ncclComm_t comm, const struct kl_graph_config *config)
{
    struct kl_ranks ranks = {.nranks = comm->nranks, .nrecords = comm->nranks, .record = comm->records};
    struct kl_connect_request request = {.rank = comm->rank,
                                         .collnet = comm->graphs->graph[KL_GRAPH_COLLNET_CHAIN] != NULL,
                                         .nvls = comm->graphs->graph[KL_GRAPH_NVLS] != NULL,
                                         .no_collnet = comm->no_collnet,
                                         .no_nvls = comm->no_nvls,
                                         .min_ctas = 1,
                                         .max_ctas = KL_MAX_CHANNELS,
                                         .params = config->channels};
    int max_sm;

    sm_range(comm, &request.min_sm, &max_sm);
    request.nvls_channels = kl_nvls_channels(own_sm(comm), &request);
    KL_TRY(kl_connect_create(&ranks, &request, &comm->connect));
    comm->p2p = kl_p2p_channels_of(comm->topo, comm->connect, &config->channels, 0);
    return ncclSuccess;
}

/* Following each ring finds out whether all ranks' graphs fit together. */
static ncclResult_t take_rings(ncclComm_t comm)
{
    size_t n = (size_t)comm->nranks;

    comm->nchannels = comm->connect->base;
    comm->ring_order = malloc((size_t)comm->nchannels * n * sizeof *comm->ring_order);
    if (!comm->ring_order) return KL_NOMEM("rings");
    for (int c = 0; c < comm->nchannels; c++)
        KL_TRY(kl_connect_ring_order(comm->connect, c, 0, &comm->ring_order[(size_t)c * n]));
    return ncclSuccess;
}

static ncclResult_t plan_rounds(ncclComm_t comm)
{
    comm->rounds = calloc((size_t)comm->nranks, sizeof *comm->rounds);
    if (!comm->rounds) return KL_NOMEM("rounds");
    return kl_p2p_schedule(comm->connect, comm->rounds);
}

/* ---- tuning ---- */

static int count_collnet_heads(ncclComm_t comm)
{
    struct kl_collnet_links links;

    if (!comm->connect->collnet) return 0;
    return kl_connect_collnet(comm->connect, comm->graphs, 0, 0, comm->rank, &links) ? 0 : links.nheads;
}

static ncclResult_t tune(ncclComm_t comm, const struct kl_graph_config *config)
{
    const struct kl_connect *c = comm->connect;
    struct kl_tuning_params params = config->tuning;
    struct kl_tuning_input in = {.nranks = comm->nranks,
                                 .nnodes = c->nodes.nnodes,
                                 .max_local_ranks = c->nodes.max_local,
                                 .nchannels = c->nchannels,
                                 .nvls_channels = c->nvls_channels,
                                 .cpu_arch = c->cpu_arch,
                                 .cpu_vendor = c->cpu_vendor,
                                 .max_tree_pattern = c->max_tree_pattern,
                                 .nvs = comm->topo->count[KL_NODE_NVS] > 0,
                                 .nvls = c->nvls,
                                 .collnet = c->collnet,
                                 .no_nvls = c->no_nvls,
                                 .no_collnet = c->no_collnet,
                                 .collnet_heads = count_collnet_heads(comm),
                                 .net_is_host = true};

    for (int g = 0; g < KL_GRAPHS; g++) in.graph[g] = c->graph[g];
    sm_range(comm, &in.min_sm, &in.max_sm);
    params.algo = comm->config.algo;
    params.proto = comm->config.proto;
    return kl_tuning_compute(&kl_tuning_host, &in, &params, &comm->tuning);
}

/* ---- the phase ---- */

ncclResult_t kl_comm_agree(ncclComm_t comm)
{
    struct kl_graph_config config;

    kl_graph_config_load(&config);
    KL_TRY(gather_records(comm));
    KL_TRY(join_graphs(comm, &config));
    KL_TRY(take_rings(comm));
    KL_TRY(plan_rounds(comm));
    KL_TRY(tune(comm, &config));
    kl_comm_log_channels(comm);
    return ncclSuccess;
}

void kl_comm_forget_agreement(ncclComm_t comm)
{
    kl_connect_free(comm->connect);
    free(comm->rounds);
    free(comm->ring_order);
    free((void *)comm->records);
    comm->connect = NULL;
    comm->rounds = NULL;
    comm->ring_order = NULL;
    comm->records = NULL;
}
