/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topology.c - the machine that the ranks of this host live on, and the graphs through it.
 */
#include "comm/comm.h"

#include "base/log.h"
#include "comm/devices.h"
#include "device/host/device.h"
#include "graph/config.h"
#include "graph/graph_xml.h"
#include "graph/graphs.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/paths.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1024 };

/* The devices of this host in rank order. `devices` holds local_ranks, `count` is what the process has. */
static void list_devices(ncclComm_t comm, struct kl_host_device *devices, int count)
{
    int nodes[MAX_NODES], nnodes = kl_machine_numa_nodes(NULL, nodes, MAX_NODES), n = 0;
    const struct kl_peer *me = &comm->peers[comm->rank];

    for (int r = 0; r < comm->nranks; r++) {
        const struct kl_peer *p = &comm->peers[r];
        if (p->host != me->host) continue;
        devices[n++] = (struct kl_host_device){
            .rank = r,
            .ordinal = p->device,
            .numa = kl_device_node(p->device, count, nodes, nnodes),
            .replica = p->replica,
            .shm_id = p->memory,
        };
    }
}

static void fill_options(const struct kl_comm_config *config, struct kl_topo_options *options)
{
    if (config->p2p_level >= 0) options->p2p_level = config->p2p_level;
    options->p2p_disable = config->p2p_disable;
    options->shm_disable = config->shm_disable;
}

/* A dump is a convenience: what keeps it from being written is said, and that is all. */
static void dump_document(ncclComm_t comm, const struct kl_xml *document)
{
    const char *path = comm->config.topo_dump_file;

    if (!*path || comm->rank != comm->config.topo_dump_rank) return;
    FILE *to = fopen(path, "we");
    if (!to || kl_xml_write(document, to)) KL_WARN("NCCL_TOPO_DUMP_FILE=%s: cannot write the topology there", path);
    if (to) fclose(to);
}

static ncclResult_t check_ordinals(ncclComm_t comm, const struct kl_xml *file)
{
    int gpus = file ? kl_machine_file_gpus(file) : 0;

    for (int r = 0; file && r < comm->nranks; r++)
        if (comm->peers[r].device >= gpus)
            return KL_FAIL(ncclInvalidUsage, "rank %d uses device %d, but NCCL_TOPO_FILE=%s has %d GPUs", r,
                           comm->peers[r].device, comm->config.topo_file, gpus);
    return ncclSuccess;
}

static ncclResult_t build_from(ncclComm_t comm, const struct kl_xml *file, struct kl_host_device *devices)
{
    struct kl_topo_config config;
    struct kl_topo_options options;
    struct kl_machine machine = {.file = file, .device = devices, .ndevices = comm->local_ranks};
    struct kl_xml *document = NULL;
    struct kl_topo *topo;

    KL_TRY(check_ordinals(comm, file));
    kl_topo_config_load(&config, &options);
    fill_options(&comm->config, &options);
    list_devices(comm, devices, kl_devices_count(&comm->config, file));
    KL_TRY(kl_machine_topo(&machine, &options, comm->rank, comm->nranks, &topo, &document));
    comm->topo = topo;
    dump_document(comm, document);
    kl_xml_free(document);
    return ncclSuccess;
}

static ncclResult_t build_machine(ncclComm_t comm)
{
    struct kl_xml *file;

    KL_TRY(kl_devices_file(&comm->config, &file));
    struct kl_host_device *devices = calloc((size_t)comm->local_ranks, sizeof *devices);
    ncclResult_t rc = devices ? build_from(comm, file, devices) : KL_NOMEM("the list of devices");
    free(devices);
    kl_xml_free(file);
    return rc;
}

/* A graph file that cannot be read, or does not fit, is no reason to fail: it is said, and the search runs. */
static void load_graph_file(const struct kl_comm_config *config, struct kl_xml **file)
{
    *file = NULL;
    if (!*config->graph_file || !kl_xml_load(config->graph_file, kl_xml_graph_schema, file)) return;
    KL_WARN("NCCL_GRAPH_FILE is not used: %s", kl_error_text());
}

static void dump_graphs(ncclComm_t comm, const struct kl_graphs *graphs)
{
    const char *path = comm->config.graph_dump_file;
    struct kl_xml *document = NULL;

    if (!*path || comm->rank != comm->config.graph_dump_rank) return;
    FILE *to = fopen(path, "we");
    if (!to || kl_graphs_to_xml(graphs, comm->topo, &document) || kl_xml_write(document, to))
        KL_WARN("NCCL_GRAPH_DUMP_FILE=%s: cannot write the graphs there", path);
    if (to) fclose(to);
    kl_xml_free(document);
}

static ncclResult_t search(ncclComm_t comm, const struct kl_graph_config *config, const struct kl_xml *file)
{
    struct kl_graphs_request request = {.file = file};
    struct kl_graphs *graphs = calloc(1, sizeof *graphs);

    if (!graphs) return KL_NOMEM("graphs");
    comm->graphs = graphs;
    comm->no_collnet = kl_offload_collnet(comm->topo, kl_graph_config_collnet(config));
    comm->no_nvls = kl_offload_nvls(comm->topo, (int)config->nvls, kl_offload_guess_multicast(comm->topo));
    request.collnet = !comm->no_collnet;
    request.nvls = !comm->no_nvls;
    KL_TRY(kl_graphs_compute(comm->topo, &request, graphs));
    dump_graphs(comm, graphs);
    return ncclSuccess;
}

static ncclResult_t search_graphs(ncclComm_t comm)
{
    struct kl_graph_config config;
    struct kl_xml *file;

    kl_graph_config_load(&config);
    load_graph_file(&comm->config, &file);
    ncclResult_t rc = search(comm, &config, file);
    kl_xml_free(file);
    return rc;
}

static ncclResult_t check_one_host(ncclComm_t comm)
{
    const struct kl_peer *me = &comm->peers[comm->rank];

    for (int r = 0; r < comm->nranks; r++)
        if (comm->peers[r].host != me->host)
            return KL_FAIL(
                ncclSystemError,
                "no transport connects rank %d (%s) and rank %d (%s): they are on different hosts, and P2P and "
                "SHM join ranks of one host",
                comm->rank, me->host_name, r, comm->peers[r].host_name);
    return ncclSuccess;
}

ncclResult_t kl_comm_search_graphs(ncclComm_t comm)
{
    KL_TRY(check_one_host(comm));
    KL_TRY(build_machine(comm));
    return search_graphs(comm);
}

void kl_comm_forget_graphs(ncclComm_t comm)
{
    if (comm->graphs) kl_graphs_fini((struct kl_graphs *)comm->graphs);
    free((void *)comm->graphs);
    kl_topo_free((struct kl_topo *)comm->topo);
    comm->graphs = NULL;
    comm->topo = NULL;
}
