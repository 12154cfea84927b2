/* SPDX-License-Identifier: Apache-2.0 */
/**
 * agree.c - the plan that all ranks agree on: their graphs joined to rings and trees over all ranks, the number of
 * channels, the partners of each round, and how long an operation would take.
 *
 * Every rank describes its findings in a record; the leaders of the processes exchange them. Everything else is
 * computed from these by the functions that plan offline.
 */
#include "comm/comm.h"

#include "base/hash.h"
#include "bootstrap/bootstrap.h"
#include "graph/config.h"
#include "graph/tuner.h"
#include "graph/tuning_file.h"
#include "net/collnet.h"
#include "topo/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

static int own_sm(ncclComm_t comm)
{
    int gpu = kl_topo_gpu_of_rank(comm->topo, comm->rank);

    return comm->topo->node[kl_topo_at(comm->topo, KL_NODE_GPU, gpu)].gpu.sm;
}

enum { NET_NAME = 132 };

/* "Fabric", or "Fabric+Reducer", if its plugin reduces as well. */
static const char *name_of_net(const struct kl_net *net, char name[NET_NAME])
{
    const struct kl_collnet *collnet = kl_collnet_of(net);
    const bool own = collnet == &kl_collnet_plugin;

    snprintf(name, NET_NAME, "%s%s%s", net->name, own ? "+" : "", own ? collnet->name : "");
    return name;
}

static uint32_t hash_of_net(const struct kl_net *net)
{
    char name[NET_NAME];

    name_of_net(net, name);
    return (uint32_t)kl_hash_add(KL_HASH_START, name, strlen(name));
}

static ncclResult_t describe_graphs(ncclComm_t comm, const struct kl_graph_config *config)
{
    const struct kl_node *cpu = kl_topo_first_cpu(comm->topo);
    struct kl_rank_record *me = &comm->shared->record[comm->rank];

    kl_connect_record(&comm->domain->graphs, comm->rank, cpu ? cpu->cpu.arch : -1, cpu ? cpu->cpu.vendor : -1, me);
    me->sm = own_sm(comm);
    const struct kl_tuning_measured *measured = kl_tuning_file_known(config->tuning_file);
    me->measured = measured ? kl_tuning_measured_mark(measured) : 0;
    if (kl_comm_needs_net(comm)) {
        KL_TRY(kl_comm_find_net(comm));
        me->net = hash_of_net(comm->net);
    }
    kl_comm_describe_facts(comm, me);
    KL_TRY(kl_p2p_record(comm->topo, comm->rank, comm->nranks, &config->channels, me));
    kl_process_shared_record_ready(comm->shared);
    return ncclSuccess;
}

/* The data that the leaders need to exchange their processes' records. */
struct parcels {
    struct kl_rank_record *record; /* of all ranks, by process */
    size_t *bytes;                 /* by process */
    int32_t *list;
};

static ncclResult_t exchange(ncclComm_t comm, const struct parcels *p)
{
    struct kl_process_shared *w = comm->shared;
    const struct kl_rank_map *rank_map = &w->rank_map;
    struct kl_subgroup subgroup = kl_process_shared_leaders(comm, NULL, p->list);

    for (int i = rank_map->first[w->process]; i < rank_map->first[w->process + 1]; i++)
        p->record[i] = w->record[rank_map->rank[i]];
    for (int i = 0; i < rank_map->nprocesses; i++)
        p->bytes[i] = (size_t)kl_rank_map_members(rank_map, i) * sizeof *p->record;
    KL_TRY(kl_subgroup_allgather(&subgroup, p->record, p->bytes));
    for (int i = 0; i < rank_map->nranks; i++) w->record[rank_map->rank[i]] = p->record[i];
    return ncclSuccess;
}

static void note_sm_range(struct kl_process_shared *w)
{
    w->min_sm = INT32_MAX;
    w->max_sm = 0;
    for (int r = 0; r < w->rank_map.nranks; r++) {
        if (w->record[r].sm < w->min_sm) w->min_sm = w->record[r].sm;
        if (w->record[r].sm > w->max_sm) w->max_sm = w->record[r].sm;
    }
}

static ncclResult_t gather_records(ncclComm_t comm)
{
    size_t ranks = (size_t)comm->nranks, processes = (size_t)comm->shared->rank_map.nprocesses;
    struct parcels p = {.record = calloc(ranks, sizeof *p.record),
                        .bytes = calloc(processes, sizeof *p.bytes),
                        .list = calloc(processes, sizeof *p.list)};
    ncclResult_t rc = p.record && p.bytes && p.list ? kl_process_shared_await_records(comm) : KL_NOMEM("graph records");

    if (!rc) rc = exchange(comm, &p);
    if (!rc) note_sm_range(comm->shared);
    free(p.record);
    free(p.bytes);
    free(p.list);
    return rc;
}

/* ---- one network ---- */

static ncclResult_t name_difference(ncclComm_t comm, char (*name)[NET_NAME], int other)
{
    const struct kl_peer *p = comm->peers;

    name_of_net(comm->net, name[comm->rank]);
    KL_TRY(kl_bootstrap_allgather(comm->bootstrap, name, NET_NAME));
    return KL_FAIL(ncclInvalidUsage,
                   "rank 0 (host %.*s) uses the network %.*s, but rank %d (host %.*s) %.*s: all need the same; see "
                   "NCCL_NET, NCCL_NET_PLUGIN and the libraries that each host has",
                   KL_PEER_HOST_TEXT, p[0].host_name, NET_NAME, name[0], other, KL_PEER_HOST_TEXT, p[other].host_name,
                   NET_NAME, name[other]);
}

/* Libraries of plugins may be on some hosts only. All ranks look at the same records, and so come to the same. */
static ncclResult_t check_one_net(ncclComm_t comm)
{
    const struct kl_rank_record *record = comm->shared->record;
    int other = 1;

    while (other < comm->nranks && record[other].net == record[0].net) other++;
    if (other >= comm->nranks || !comm->net) return ncclSuccess;
    char(*name)[NET_NAME] = calloc((size_t)comm->nranks, NET_NAME);
    if (!name) return KL_NOMEM("the names of networks");
    ncclResult_t rc = name_difference(comm, name, other);
    free(name);
    return rc;
}

/* ---- rings, trees, channels ---- */

/* Are all devices CPUs of this machine, without emulated hosts? */
static bool are_own_cpus(const struct kl_topo *t)
{
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++)
        if (!kl_host_device_is_own(kl_id_local(t->node[kl_topo_at(t, KL_NODE_GPU, g)].id))) return false;
    return true;
}

/* The ranks that share CPUs, if some do and all of them share memory on one host. All ranks compute the same. The
 * caller frees it. */
static ncclResult_t find_cores(ncclComm_t comm, int32_t **core)
{
    *core = NULL;
    if (comm->shared->local_ranks < comm->nranks || !comm->one_memory ||
        !kl_process_shared_is_any_oversubscribed(comm->shared))
        return ncclSuccess;
    if (!are_own_cpus(comm->topo)) return ncclSuccess;
    *core = malloc((size_t)comm->nranks * sizeof **core);
    return *core ? kl_rank_map_cores(&comm->shared->rank_map, *core) : KL_NOMEM("the ranks of each core");
}

static ncclResult_t join_graphs(ncclComm_t comm, const struct kl_graph_config *config)
{
    const struct kl_domain *d = comm->domain;
    struct kl_ranks ranks = {.nranks = comm->nranks, .nrecords = comm->nranks, .record = comm->shared->record};
    struct kl_connect_request request = {.rank = comm->rank,
                                         .min_sm = comm->shared->min_sm,
                                         .collnet = d->graphs.graph[KL_GRAPH_COLLNET_CHAIN] != NULL,
                                         .nvls = d->graphs.graph[KL_GRAPH_NVLS] != NULL,
                                         .no_collnet = d->no_collnet,
                                         .no_nvls = d->no_nvls,
                                         .min_ctas = kl_nccl_config_or(comm->nccl_config.min_ctas, 1),
                                         .max_ctas = kl_nccl_config_or(comm->nccl_config.max_ctas, KL_MAX_CHANNELS),
                                         .params = config->channels};

    int32_t *core;
    ncclResult_t rc = find_cores(comm, &core);

    request.core = core;
    request.oversubscribed = kl_process_shared_is_any_oversubscribed(comm->shared);
    request.nvls_channels = kl_nvls_channels(own_sm(comm), comm->nranks > comm->topo->count[KL_NODE_GPU],
                                             comm->topo->options.nccl, &request);
    if (!rc) rc = kl_connect_create(&ranks, &request, &comm->connect);
    free(core);
    return rc;
}

/* Queries all pairs of the machine: once, by the first rank of a domain. */
static void count_p2p_channels(ncclComm_t comm, const struct kl_graph_config *config)
{
    struct kl_domain *d = comm->domain;

    pthread_mutex_lock(&comm->shared->lock);
    if (d->counted != comm->connect->nchannels) {
        d->p2p = kl_p2p_channels_of(d->topo, comm->connect, &config->channels, 0);
        d->counted = comm->connect->nchannels;
    }
    comm->p2p = d->p2p;
    pthread_mutex_unlock(&comm->shared->lock);
}

static ncclResult_t plan_rounds(ncclComm_t comm)
{
    comm->rounds = calloc((size_t)comm->nranks, sizeof *comm->rounds);
    if (!comm->rounds) return KL_NOMEM("rounds");
    return kl_p2p_schedule(comm->connect, comm->rounds);
}

/* ---- tuning ---- */

/* Measured times count where all ranks have the same. */
static const struct kl_tuning_measured *agreed_times(ncclComm_t comm, const struct kl_graph_config *config)
{
    const struct kl_rank_record *record = comm->shared->record;

    for (int r = 0; r < comm->nranks; r++)
        if (!record[r].measured || record[r].measured != record[0].measured) return NULL;
    return kl_tuning_file_known(config->tuning_file);
}

static ncclResult_t tune(ncclComm_t comm, const struct kl_graph_config *config)
{
    struct kl_tuning_input in = kl_tuning_input_of(comm->connect, comm->topo);

    if (in.nnodes == 1) in.ranks_per_cpu = (int)comm->shared->most_ranks_per_cpu;
    in.min_sm = comm->shared->min_sm;
    in.max_sm = comm->shared->max_sm;
    in.measured = agreed_times(comm, config);
    const struct kl_tuner_place place = {.comm = kl_load_relaxed(&comm->name),
                                         .nranks = comm->nranks,
                                         .nnodes = in.nnodes,
                                         .net_library = kl_net_plugin_library};
    if (comm->nranks > 1) KL_TRY(kl_tuner_open(&place, &kl_tuning_host, &comm->tuner));
    if (comm->tuner) snprintf(comm->tuner_name, sizeof comm->tuner_name, "%s", kl_tuner_name(comm->tuner));
    return kl_tuning_compute(comm->tuner ? kl_tuner_constants(comm->tuner) : &kl_tuning_host, &in, &config->tuning,
                             &comm->tuning);
}

/* ---- the phase ---- */

/* A setting of the program counts where the user has set nothing. */
static void apply_nccl_config(const struct kl_nccl_config *nccl_config, struct kl_channel_params *params)
{
    if (params->nvls_channels < 0)
        params->nvls_channels = kl_nccl_config_or(nccl_config->nvls_ctas, (int)params->nvls_channels);
    if (params->per_net_peer < 0)
        params->per_net_peer = kl_nccl_config_or(nccl_config->per_net_peer, (int)params->per_net_peer);
}

ncclResult_t kl_comm_agree_plan(ncclComm_t comm)
{
    struct kl_graph_config config;

    kl_graph_config_load(&config);
    apply_nccl_config(&comm->nccl_config, &config.channels);
    KL_TRY(describe_graphs(comm, &config));
    KL_TRY(kl_process_shared_stage(comm, KL_PROCESS_SHARED_RECORDS, gather_records));
    KL_TRY(check_one_net(comm));
    KL_TRY(join_graphs(comm, &config));
    count_p2p_channels(comm, &config);
    KL_TRY(plan_rounds(comm));
    KL_TRY(tune(comm, &config));
    KL_TRY(kl_comm_profile_open(comm));
    kl_comm_derive_facts(comm);
    kl_comm_log_channels(comm);
    kl_comm_log_facts(comm);
    return ncclSuccess;
}

void kl_comm_free_plan(ncclComm_t comm)
{
    kl_comm_profile_close(comm);
    kl_tuner_close(comm->tuner);
    comm->tuner = NULL;
    kl_connect_free(comm->connect);
    free(comm->rounds);
    comm->connect = NULL;
    comm->rounds = NULL;
}
