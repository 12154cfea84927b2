/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topology.c - the machine that the ranks of this host live on, and the rings through it.
 */
#include "comm/comm.h"

#include "base/log.h"
#include "device/host/device.h"
#include "graph/graph.h"
#include "topo/machine.h"
#include "topo/paths.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1024 };

/* The devices of this host in rank order. `devices` holds local_ranks. */
static void list_devices(ncclComm_t comm, struct kl_host_device *devices)
{
    int nodes[MAX_NODES], nnodes = kl_machine_numa_nodes(NULL, nodes, MAX_NODES), n = 0;
    const struct kl_peer *me = &comm->peers[comm->rank];

    for (int r = 0; r < comm->nranks; r++) {
        const struct kl_peer *p = &comm->peers[r];
        if (p->host != me->host) continue;
        devices[n++] = (struct kl_host_device){
            .rank = r,
            .ordinal = p->device,
            .numa = kl_device_node(p->device, comm->device_count, nodes, nnodes),
            .replica = p->replica,
            .shm_id = p->memory,
        };
    }
}

static void fill_options(const struct kl_comm_config *config, struct kl_topo_options *options)
{
    *options = KL_TOPO_OPTIONS;
    if (config->p2p_level >= 0) options->p2p_level = config->p2p_level;
    if (config->p2p_disable) options->p2p_level = KL_PATH_LOC;
    options->shm_disable = config->shm_disable;
}

static ncclResult_t build_machine(ncclComm_t comm)
{
    ncclResult_t rc;
    struct kl_topo_options options;
    struct kl_host_device *devices = calloc((size_t)comm->local_ranks, sizeof *devices);

    if (!devices) return KL_NOMEM("the list of devices");
    list_devices(comm, devices);
    fill_options(&comm->config, &options);
    struct kl_machine machine = {.device = devices, .ndevices = comm->local_ranks};
    KL_TRY_OR(rc, out, kl_machine_topo(&machine, &options, comm->rank, comm->nranks, &comm->topo, NULL));
out:
    free(devices);
    return rc;
}

static ncclResult_t search_rings(ncclComm_t comm)
{
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_RING);
    struct kl_graph *graph;

    KL_TRY(kl_graph_search(comm->topo, &request, &graph, NULL));
    size_t entries = (size_t)graph->nchannels * (size_t)graph->ngpus;
    comm->ring_order = malloc(entries * sizeof *comm->ring_order);
    if (comm->ring_order)
        for (size_t i = 0; i < entries; i++) comm->ring_order[i] = graph->intra[i];
    comm->nchannels = graph->nchannels;
    KL_INFO(KL_GRAPH, "Ring: %d channels of %.1f GB/s, %s paths", graph->nchannels, (double)graph->bw_intra,
            kl_path_type_name[graph->type_intra]);
    kl_graph_free(graph);
    return comm->ring_order ? ncclSuccess : KL_NOMEM("rings");
}

ncclResult_t kl_comm_find_rings(ncclComm_t comm)
{
    if (comm->local_ranks != comm->nranks) {
        int other = 0;
        while (comm->peers[other].host == comm->peers[comm->rank].host) other++;
        return KL_FAIL(
            ncclSystemError,
            "no transport connects rank %d (%s) and rank %d (%s): they are on different hosts, and this version "
            "connects ranks of one host",
            comm->rank, comm->peers[comm->rank].host_name, other, comm->peers[other].host_name);
    }
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
