/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topology.c - the machine that the ranks of this host live on, and the rings through it.
 */
#include "comm/comm.h"

#include "base/log.h"
#include "comm/devices.h"
#include "device/host/device.h"
#include "graph/graph.h"
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
    if (config->p2p_disable) options->p2p_level = KL_PATH_LOC;
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

    KL_TRY(check_ordinals(comm, file));
    kl_topo_config_load(&config, &options);
    fill_options(&comm->config, &options);
    list_devices(comm, devices, kl_devices_count(&comm->config, file));
    KL_TRY(kl_machine_topo(&machine, &options, comm->rank, comm->nranks, &comm->topo, &document));
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

static ncclResult_t search_rings(ncclComm_t comm)
{
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_RING);
    struct kl_graph *graph;

    KL_TRY(kl_graph_search(comm->topo, &request, &graph, NULL));
    size_t entries = (size_t)graph->nchannels * (size_t)graph->ngpus;
    comm->ring_order = malloc((entries ? entries : 1) * sizeof *comm->ring_order);
    if (comm->ring_order)
        for (size_t i = 0; i < entries; i++) comm->ring_order[i] = graph->intra[i];
    comm->nchannels = graph->nchannels;
    KL_INFO(KL_GRAPH, "Ring: %d channels of %.1f GB/s, %s paths", graph->nchannels, (double)graph->bw_intra,
            kl_path_type_name[graph->type_intra]);
    kl_graph_free(graph);
    if (!comm->ring_order) return KL_NOMEM("rings");
    return comm->nchannels ? ncclSuccess : KL_FAIL(ncclInternalError, "no ring joins the devices of this host");
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

ncclResult_t kl_comm_find_rings(ncclComm_t comm)
{
    KL_TRY(check_one_host(comm));
    KL_TRY(build_machine(comm));
    return search_rings(comm);
}

void kl_comm_forget_rings(ncclComm_t comm)
{
    kl_topo_free(comm->topo);
    free(comm->ring_order);
    comm->topo = NULL;
    comm->ring_order = NULL;
}

const char *kl_comm_p2p_refusal(ncclComm_t comm, int peer)
{
    struct kl_p2p p2p;

    if (comm->config.p2p_disable) return "NCCL_P2P_DISABLE=1";
    if (kl_topo_p2p(comm->topo, comm->rank, peer, &p2p)) return "the machine's topology has no path";
    return p2p.p2p ? NULL : "the topology refuses it (NCCL_P2P_LEVEL can allow longer paths)";
}
