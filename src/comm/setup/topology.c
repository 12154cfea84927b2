/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topology.c - the machine that the ranks of this host live on; with the machines of other hosts, if one NVLink domain
 * spans them.
 *
 * The first of these ranks describes it in a document: this machine, or the machine in NCCL_TOPO_FILE, with these ranks
 * as its devices. The other processes get the document from it, so that all see the same machine, and each makes of it
 * the topology of every domain that its ranks are in.
 */
#include "comm/comm.h"

#include "base/file_size_limit.h"
#include "base/log.h"
#include "comm/setup/devices.h"
#include "device/device.h"
#include "os/fault_inject.h"
#include "topo/config.h"
#include "net/net.h"
#include "topo/machine.h"
#include "topo/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1024 };

/* Inputs and results. */
struct work {
    ncclComm_t comm;
    const struct kl_topo_config *config;
    struct kl_topo_options options;
    struct kl_host_device *device; /* fabric_ranks of them */
    struct kl_xml *document;
    int *label;    /* by GPU of the whole machine: the lowest GPU of its domain */
    int *number;   /* by label: the domain's number in the shared state, NOT_MINE or NEW */
    bool *with;    /* by process */
    int32_t *list; /* of leaders */
};
enum { NOT_MINE = -1, NEW = -2 };

static const struct kl_peer *me(ncclComm_t comm)
{
    return &comm->peers[comm->rank];
}

/* ---- the document ---- */

/* Index of this host, in the order of their first ranks; `n` devices are listed. */
static int place_of_host(const struct work *w, int n, const struct kl_peer *p)
{
    int hosts = 0;

    for (int i = 0; i < n; i++) {
        if (w->comm->peers[w->device[i].rank].host == p->host) return w->device[i].host;
        if (w->device[i].host >= hosts) hosts = w->device[i].host + 1;
    }
    return hosts;
}

/* The devices of the machine in rank order; `count` is the process's number of them, 0 where their nodes do not
 * matter. */
static void list_devices(struct work *w, int count)
{
    int nodes[MAX_NODES], nnodes = count ? kl_machine_numa_nodes(NULL, nodes, MAX_NODES) : 0, n = 0;
    ncclComm_t comm = w->comm;

    for (int r = 0; r < comm->nranks; r++) {
        const struct kl_peer *p = &comm->peers[r];
        if (p->fabric != me(comm)->fabric) continue;
        w->device[n] = (struct kl_host_device){
            .rank = r,
            .host = place_of_host(w, n, p),
            .ordinal = p->device,
            .numa = count ? comm->devices->node(p->device, count, nodes, nnodes) : 0,
            .replica = p->replica,
            .shm_id = p->memory,
        };
        n++;
    }
}

static ncclResult_t check_ordinals(const struct work *w, const struct kl_xml *file)
{
    int gpus = file ? kl_machine_file_gpus(file) : 0;
    bool of_file = *w->config->topo_file;

    for (int i = 0; file && i < w->comm->shared->fabric_ranks; i++)
        if (w->device[i].ordinal >= gpus)
            return KL_FAIL(ncclInvalidUsage, "rank %d uses device %d, but %s=%s has %d GPUs", w->device[i].rank,
                           w->device[i].ordinal, of_file ? "NCCL_TOPO_FILE" : "KOLO_MACHINE",
                           of_file ? w->config->topo_file : w->config->machine, gpus);
    return ncclSuccess;
}

/* `gpus`: ranks have memory of GPUs, which the NIC may get at. */
static ncclResult_t describe_nic(const struct kl_net *net, int device, bool gpus, struct kl_net_facts *n)
{
    struct kl_net_properties p;

    KL_TRY(net->properties(device, &p));
    *n = (struct kl_net_facts){.dev = device,
                               .speed_mbps = p.speed_mbps,
                               .port = p.port,
                               .guid = p.guid,
                               .latency_us = p.latency_us,
                               .max_comms = p.max_comms,
                               .gdr = gpus && p.memory & (KL_NET_CUDA | KL_NET_DMABUF),
                               .coll = true,
                               .nmembers = p.nmembers};
    snprintf(n->name, sizeof n->name, "%s", p.name);
    snprintf(n->pci_path, sizeof n->pci_path, "%s", p.pci_path ? p.pci_path : "");
    memcpy(n->member, p.member, sizeof p.member);
    return ncclSuccess;
}
_Static_assert((int)KL_NET_MEMBERS == (int)KL_NET_MAX_MEMBERS, "of one array the other is a copy");

static bool has_gpus(const struct ncclComm *comm)
{
    return comm->devices != &kl_host_devices;
}

/* A NIC of several, by the net. */
static ncclResult_t merge_nics(void *ctx, const int *member, int n, struct kl_net_facts *merged)
{
    const struct ncclComm *comm = ctx;
    int device;

    KL_TRY(comm->net->merge(member, n, &device));
    return describe_nic(comm->net, device, has_gpus(comm), merged);
}

/* The NICs of this machine as the net reports them, for traffic between hosts. */
static ncclResult_t list_nics(ncclComm_t comm, struct kl_machine *machine, struct kl_net_facts **nics)
{
    KL_TRY(kl_comm_find_net(comm));
    const struct kl_net *net = comm->net;
    const int n = net->devices();
    *nics = kl_inject_calloc((size_t)n, sizeof **nics);
    if (!*nics) return KL_NOMEM("the NICs of this machine");
    for (int i = 0; i < n; i++) {
        KL_TRY(describe_nic(net, i, has_gpus(comm), &(*nics)[i]));
        machine->nnets = i + 1;
    }
    machine->net = *nics;
    if (net->merge) {
        machine->merge_nets = merge_nics;
        machine->merge_ctx = comm;
    }
    return ncclSuccess;
}

/* A user with one host wonders why a network is needed. */
static ncclResult_t explain(ncclComm_t comm, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];

    if (!rc || comm->local_ranks < comm->nranks) return rc;
    snprintf(
        text, sizeof text,
        "ranks of this host reach each other over the network only, as NCCL_SHM_DISABLE=1 is set, or their containers "
        "share no memory: %.700s",
        kl_error_text());
    kl_error_adopt(text);
    return rc;
}

static ncclResult_t describe_machine(struct work *w)
{
    struct kl_machine machine = {.device = w->device, .ndevices = w->comm->shared->fabric_ranks};
    bool leaves = w->comm->shared->fabric_ranks < w->comm->nranks || !w->comm->shared->one_memory;
    struct kl_net_facts *nics = NULL;
    struct kl_xml *file;

    KL_TRY(kl_machine_read_file(w->config->topo_file, w->config->machine, NULL, &file));
    machine.file = file;
    list_devices(w, kl_devices_count(file));
    ncclResult_t rc = check_ordinals(w, file);
    if (!rc && leaves && !file) rc = explain(w->comm, list_nics(w->comm, &machine, &nics));
    if (!rc) rc = kl_machine_document(&machine, &w->options, &w->document);
    free(nics);
    kl_xml_free(file);
    return rc;
}

static struct kl_subgroup processes_of_machine(struct work *w)
{
    const struct kl_rank_map *rank_map = &w->comm->shared->rank_map;

    for (int p = 0; p < rank_map->nprocesses; p++)
        w->with[p] = rank_map->peer[kl_rank_map_leader(rank_map, p)].fabric == me(w->comm)->fabric;
    return kl_process_shared_leaders(w->comm, w->with, w->list);
}

static ncclResult_t broadcast_document(struct work *w, const struct kl_subgroup *subgroup)
{
    char *text = NULL;
    size_t bytes = 0;

    if (subgroup->n == 1) return ncclSuccess;
    if (!subgroup->own) KL_TRY(kl_xml_text(w->document, &text, &bytes));
    void *data = text;
    ncclResult_t rc = kl_subgroup_broadcast(subgroup, 0, &data, &bytes);
    if (!rc && subgroup->own) rc = kl_xml_parse("the topology", data, bytes, kl_xml_topo_schema, &w->document);
    free(data);
    return rc;
}

/* ---- merged NICs in the other processes of the machine ---- */

/* A NIC of several others, which has number `device`. */
struct group {
    int32_t device, n, member[KL_NET_MEMBERS];
};

static ncclResult_t list_groups(ncclComm_t comm, void **data, size_t *bytes)
{
    const int n = comm->net && comm->net->merge ? comm->net->devices() : 0;
    struct group *groups = calloc((size_t)n + 1, sizeof *groups); /* the last one is empty */
    struct kl_net_properties p;
    int found = 0;

    if (!groups) return KL_NOMEM("the NICs of this machine");
    for (int i = 0; i < n; i++) {
        if (comm->net->properties(i, &p) || !p.nmembers) continue;
        groups[found] = (struct group){.device = i, .n = p.nmembers};
        memcpy(groups[found++].member, p.member, sizeof p.member);
    }
    *data = groups;
    *bytes = ((size_t)found + 1) * sizeof *groups;
    return ncclSuccess;
}

static ncclResult_t merge_alike(ncclComm_t comm, const struct group *groups, size_t n)
{
    for (size_t i = 0; i < n && groups[i].n; i++) {
        const struct group *g = &groups[i];
        int device = -1;
        KL_TRY(kl_comm_find_net(comm));
        if (g->n < 0 || g->n > KL_NET_MEMBERS || !comm->net->merge || comm->net->merge(g->member, g->n, &device) ||
            device != g->device)
            return KL_FAIL(ncclSystemError,
                           "NET/%s cannot merge %d NICs to device %d at rank %d, as another process of this host did",
                           comm->net->name, g->n, g->device, comm->rank);
    }
    return ncclSuccess;
}

/* The document names merged NICs by their number, so that each process makes the same. */
static ncclResult_t broadcast_groups(struct work *w, const struct kl_subgroup *subgroup)
{
    void *data = NULL;
    size_t bytes = 0;

    if (subgroup->n == 1) return ncclSuccess;
    if (!subgroup->own) KL_TRY(list_groups(w->comm, &data, &bytes));
    ncclResult_t rc = kl_subgroup_broadcast(subgroup, 0, &data, &bytes);
    if (!rc && subgroup->own) rc = merge_alike(w->comm, data, bytes / sizeof(struct group));
    free(data);
    return rc;
}

static ncclResult_t get_document(struct work *w)
{
    struct kl_subgroup subgroup = processes_of_machine(w);

    if (subgroup.own)
        list_devices(w, 0);
    else
        KL_TRY(describe_machine(w));
    KL_TRY(broadcast_document(w, &subgroup));
    return broadcast_groups(w, &subgroup);
}

/* A dump is a convenience: a failure to write it is only reported. */
static void dump_document(const struct work *w)
{
    const struct kl_process_shared *shared = w->comm->shared;
    const struct kl_topo_config *config = w->config;

    if (!*config->topo_dump_file || !kl_process_shared_has_rank(shared, config->topo_dump_rank)) return;
    struct kl_file_size_limit_guard guard;
    kl_file_size_limit_begin(&guard);
    FILE *to = fopen(config->topo_dump_file, "we");
    bool failed = !to || kl_xml_write(w->document, to);
    if (to) failed |= fclose(to) != 0;
    kl_file_size_limit_end(&guard);
    if (failed) KL_WARN("NCCL_TOPO_DUMP_FILE=%s: cannot write the topology there", config->topo_dump_file);
}

/* ---- its domains ---- */

static int label_of_rank(const struct work *w, const struct kl_topo *whole, int rank)
{
    return w->label[kl_topo_gpu_of_rank(whole, rank)];
}

/* Number the domains of this process's ranks, by ascending first rank. */
static void number_domains(struct work *w, const struct kl_topo *whole)
{
    struct kl_process_shared *shared = w->comm->shared;
    const struct kl_rank_map *rank_map = &shared->rank_map;

    kl_topo_domains(whole, w->label);
    for (int g = 0; g < whole->count[KL_NODE_GPU]; g++) w->number[g] = NOT_MINE;
    for (int i = rank_map->first[shared->process]; i < rank_map->first[shared->process + 1]; i++)
        w->number[label_of_rank(w, whole, rank_map->rank[i])] = NEW;
    for (int r = 0; r < rank_map->nranks; r++) {
        shared->domain_of[r] = NOT_MINE;
        if (rank_map->peer[r].fabric != me(w->comm)->fabric) continue;
        int *number = &w->number[label_of_rank(w, whole, r)];
        if (*number == NEW) {
            *number = shared->ndomains++;
            shared->domain[*number].first = r;
        }
        shared->domain_of[r] = *number;
    }
}

static ncclResult_t make_domains(struct work *w)
{
    struct kl_machine machine = {.device = w->device, .ndevices = w->comm->shared->fabric_ranks};
    struct kl_process_shared *shared = w->comm->shared;
    struct kl_topo *whole;

    KL_TRY(kl_machine_graph(&machine, w->document, &w->options, &whole));
    if (whole->count[KL_NODE_GPU] != machine.ndevices) {
        kl_topo_free(whole);
        return KL_FAIL(ncclInternalError, "the topology of this host does not have one GPU for each of its %d ranks",
                       machine.ndevices);
    }
    number_domains(w, whole);
    for (int d = 0; d < shared->ndomains; d++) {
        if (d) KL_TRY(kl_machine_graph(&machine, w->document, &w->options, &whole));
        shared->domain[d].topo = whole;
        KL_TRY(kl_machine_trim(&shared->domain[d].topo, shared->domain[d].first, w->comm->nranks));
    }
    return ncclSuccess;
}

/* ---- the stage ---- */

static ncclResult_t allocate(struct work *w)
{
    struct kl_process_shared *shared = w->comm->shared;
    size_t local = (size_t)w->comm->shared->fabric_ranks, processes = (size_t)shared->rank_map.nprocesses;

    shared->domain = kl_inject_calloc(local, sizeof *shared->domain);
    shared->domain_of = kl_inject_malloc((size_t)w->comm->nranks * sizeof *shared->domain_of);
    w->device = kl_inject_calloc(local, sizeof *w->device);
    w->label = kl_inject_malloc(2 * local * sizeof *w->label);
    w->with = kl_inject_malloc(processes * sizeof *w->with);
    w->list = kl_inject_malloc(processes * sizeof *w->list);
    if (!shared->domain || !shared->domain_of || !w->device || !w->label || !w->with || !w->list)
        return KL_NOMEM("the machine");
    w->number = w->label + local;
    return ncclSuccess;
}

static ncclResult_t find_machine(ncclComm_t comm)
{
    struct kl_topo_config config;
    struct work w = {.comm = comm, .config = &config};
    ncclResult_t rc;

    kl_topo_config_load(&config, &w.options);
    KL_TRY_OR(rc, out, allocate(&w));
    KL_TRY_OR(rc, out, get_document(&w));
    dump_document(&w);
    w.options.force_merge = NULL; /* belongs to `config`; the document holds the merged NICs */
    w.options.mnnvl = kl_machine_file_multihost(w.document);
    rc = make_domains(&w);
out:
    kl_xml_free(w.document);
    free(w.device);
    free(w.label);
    free(w.with);
    free(w.list);
    return rc;
}

/* ---- the phase ---- */

/* Ranks of a process without SHM have P2P, where its level allows that. The others use the network. */
static bool lacks_p2p(const struct kl_topo *t, int nranks)
{
    if (!t->options.shm_disable) return false;
    return t->count[KL_NODE_GPU] < nranks || kl_path_max_type(t, KL_NODE_GPU) >= KL_PATH_NET;
}

ncclResult_t kl_comm_build_topology(ncclComm_t comm)
{
    KL_TRY(kl_process_shared_stage(comm, KL_PROCESS_SHARED_MACHINE, find_machine));
    comm->domain = &comm->shared->domain[comm->shared->domain_of[comm->rank]];
    comm->topo = comm->domain->topo;
    comm->one_memory = comm->shared->one_memory && !lacks_p2p(comm->topo, comm->nranks);
    return ncclSuccess;
}

void kl_comm_free_topology(ncclComm_t comm)
{
    comm->domain = NULL;
    comm->topo = NULL;
}
