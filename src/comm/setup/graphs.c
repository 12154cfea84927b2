/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graphs.c - the graphs through the machine: its first rank searches each domain, and sends them to the other
 * processes.
 */
#include "comm/comm.h"

#include "base/file_size_limit.h"
#include "base/log.h"
#include "comm/setup/graph_wire.h"
#include "graph/config.h"
#include "graph/graph_xml.h"
#include "graph/graphs.h"

#include <stdlib.h>

/* A graph file that cannot be read, or does not fit, is no reason to fail: it is logged, and the search runs. */
static void load_graph_file(const struct kl_graph_config *config, struct kl_xml **file)
{
    *file = NULL;
    if (!*config->graph_file || !kl_xml_load(config->graph_file, kl_xml_graph_schema, file)) return;
    KL_WARN("NCCL_GRAPH_FILE is not used: %s", kl_error_text());
}

static ncclResult_t search(const struct kl_graph_config *config, struct kl_domain *d)
{
    struct kl_graphs_request request = {.collnet = !d->no_collnet, .nvls = !d->no_nvls};
    struct kl_xml *file;

    load_graph_file(config, &file);
    request.file = file;
    ncclResult_t rc = kl_graphs_compute(d->topo, &request, &d->graphs);
    kl_xml_free(file);
    return rc;
}

/* ---- among the processes that have ranks in the domain ---- */

static struct kl_subgroup processes_of(ncclComm_t comm, const struct kl_domain *d, bool *with, int32_t *list)
{
    const struct kl_process_shared *w = comm->shared;

    for (int p = 0; p < w->rank_map.nprocesses; p++) with[p] = false;
    for (int r = 0; r < comm->nranks; r++)
        if (w->domain_of[r] == d - w->domain) with[w->rank_map.process[r]] = true;
    return kl_process_shared_leaders(comm, with, list);
}

/* Place in the list of the leader of the domain's first rank. */
static int place_of_first(ncclComm_t comm, const struct kl_domain *d, const struct kl_subgroup *subgroup)
{
    const struct kl_rank_map *rank_map = &comm->shared->rank_map;
    int leader = kl_rank_map_leader(rank_map, rank_map->process[d->first]), i = 0;

    while (subgroup->rank[i] != leader) i++;
    return i;
}

static ncclResult_t tell(const struct kl_subgroup *subgroup, struct kl_domain *d)
{
    void *bytes;
    size_t size;

    KL_TRY(kl_graphs_pack(&d->graphs, &bytes, &size));
    ncclResult_t rc = kl_subgroup_broadcast(subgroup, subgroup->own, &bytes, &size);
    free(bytes);
    return rc;
}

static ncclResult_t receive(const struct kl_subgroup *subgroup, int from, struct kl_domain *d)
{
    void *bytes;
    size_t size;

    KL_TRY(kl_subgroup_broadcast(subgroup, from, &bytes, &size));
    ncclResult_t rc = kl_graphs_unpack(bytes, size, d->topo, &d->graphs);
    free(bytes);
    return rc;
}

static ncclResult_t search_or_receive(ncclComm_t comm, const struct kl_graph_config *config,
                                      const struct kl_subgroup *subgroup, struct kl_domain *d)
{
    int first = place_of_first(comm, d, subgroup);

    if (subgroup->own != first) return receive(subgroup, first, d);
    KL_TRY(search(config, d));
    return subgroup->n > 1 ? tell(subgroup, d) : ncclSuccess;
}

static ncclResult_t get_graphs(ncclComm_t comm, const struct kl_graph_config *config, struct kl_domain *d)
{
    size_t n = (size_t)comm->shared->rank_map.nprocesses;
    int32_t *list = malloc(n * sizeof *list);
    bool *with = malloc(n * sizeof *with);
    ncclResult_t rc = list && with ? ncclSuccess : KL_NOMEM("graphs");

    if (!rc) {
        struct kl_subgroup subgroup = processes_of(comm, d, with, list);
        rc = search_or_receive(comm, config, &subgroup, d);
    }
    free(list);
    free(with);
    return rc;
}

/* ---- the phase ---- */

static void dump_graphs(ncclComm_t comm, const struct kl_graph_config *config)
{
    const struct kl_process_shared *w = comm->shared;
    const char *path = config->graph_dump_file;
    struct kl_xml *document = NULL;

    if (!*path || !kl_process_shared_has_rank(w, config->graph_dump_rank)) return;
    const struct kl_domain *d = &w->domain[w->domain_of[config->graph_dump_rank]];
    struct kl_file_size_limit_guard guard;
    kl_file_size_limit_begin(&guard);
    FILE *to = fopen(path, "we");
    bool failed = !to || kl_graphs_to_xml(&d->graphs, d->topo, &document) || kl_xml_write(document, to);
    if (to) failed |= fclose(to) != 0;
    kl_file_size_limit_end(&guard);
    if (failed) KL_WARN("NCCL_GRAPH_DUMP_FILE=%s: cannot write the graphs there", path);
    kl_xml_free(document);
}

/* The user's setting overrides the program's. */
static bool wants_collnet(ncclComm_t comm, const struct kl_graph_config *config)
{
    return *config->collnet ? kl_graph_config_collnet(config) : kl_nccl_config_or(comm->nccl_config.collnet, 0) == 1;
}

static ncclResult_t find_graphs(ncclComm_t comm)
{
    struct kl_graph_config config;
    struct kl_process_shared *w = comm->shared;

    kl_graph_config_load(&config);
    w->record = calloc((size_t)comm->nranks, sizeof *w->record);
    if (!w->record) return KL_NOMEM("graph records");
    for (int i = 0; i < w->ndomains; i++) {
        struct kl_domain *d = &w->domain[i];

        d->no_collnet = kl_offload_collnet(d->topo, wants_collnet(comm, &config), comm->nranks);
        d->no_nvls = kl_offload_nvls(d->topo, (int)config.nvls, kl_offload_guess_multicast(d->topo));
        if (!d->no_nvls && kl_nccl_config_forbids_nvls(&comm->nccl_config)) d->no_nvls = KL_OFFLOAD_FORBIDDEN;
        KL_TRY(get_graphs(comm, &config, d));
    }
    dump_graphs(comm, &config);
    return ncclSuccess;
}

ncclResult_t kl_comm_search_graphs(ncclComm_t comm)
{
    return kl_process_shared_stage(comm, KL_PROCESS_SHARED_GRAPHS, find_graphs);
}
