/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connect.c - the communicator's answers to its connections: the transport between two ranks, the size of fifos.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "device/config.h"
#include "device/host/bulk_copy.h"
#include "device/host/wait.h"
#include "graph/nic.h"
#include "topo/paths.h"
#include "transport/ll.h"
#include "transport/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { SLOTS = 8, MESSAGE_SLOTS = 32, MOST_MESSAGE_PLACES = 512, MESSAGE_SLOT_BYTES = 4096 };
enum { MESSAGES_BYTES = 8 << 20 };       /* of data, of a rank with all others, unless they have MESSAGE_SLOTS each */
enum { DEFAULT_FIFO_BYTES = 512 << 10 }; /* of one connection: eight slots that fit the caches of two cores together */
enum { CELL_BYTES = 32 << 10, MOST_CELLS = 64 };
/* In bytes: for smaller messages, a sender that copies, and goes on, is faster than one that waits until the receiver
 * has its turn. */
enum { ZCOPY_FROM_WHERE_CPUS_ARE_SHARED = 32 << 10 };

/* ---- transport and NIC ---- */

bool kl_comm_needs_net(ncclComm_t comm)
{
    return comm->local_ranks < comm->nranks || !comm->one_memory;
}

static bool is_collnet(const struct kl_edge *edge)
{
    return edge->use >= KL_EDGE_COLLNET_CHAIN && edge->use <= KL_EDGE_COLLNET_NVLS;
}

/** The plan of an edge between hosts. */
struct planned {
    int nic;   /* its number on the emulated machine; -1: it has none */
    int net;   /* its index among NETs of the topology */
    int proxy; /* rank with the proxy that serves it */
};

/* The graph that an edge of collectives belongs to. */
static int graph_of(ncclComm_t comm, const struct kl_edge *edge)
{
    static const int collnet[KL_EDGE_USES] = {[KL_EDGE_COLLNET_CHAIN] = KL_GRAPH_COLLNET_CHAIN,
                                              [KL_EDGE_COLLNET_DIRECT] = KL_GRAPH_COLLNET_DIRECT,
                                              [KL_EDGE_COLLNET_NVLS] = KL_GRAPH_NVLS};

    if (is_collnet(edge)) return collnet[edge->use];
    return kl_graph_of_edge(comm->connect, edge->channel, comm->rank, edge->peer, edge->sends);
}

static ncclResult_t ask_plan(ncclComm_t comm, const struct kl_edge *edge, struct kl_graph_nic *nic)
{
    const struct kl_connect *c = comm->connect;
    int receiver = edge->sends ? edge->peer : comm->rank;
    struct kl_p2p_net message;

    if (edge->use != KL_EDGE_MESSAGES) {
        int graph = graph_of(comm, edge);
        int channel = graph == KL_GRAPH_NVLS ? edge->channel : c->source[edge->channel] % c->base;
        return kl_graph_nic(comm->topo, comm->domain->graphs.graph[graph], c->graph[graph].nchannels, channel,
                            comm->rank, nic);
    }
    KL_TRY(kl_topo_p2p_net(comm->topo, comm->rank, comm->peers[receiver].device, edge->channel, &message));
    *nic = (struct kl_graph_nic){.net = message.net, .proxy = message.proxy};
    return ncclSuccess;
}

/* Where the plan has no answer, as on machines without NICs, any NIC will do. */
static struct planned planned(ncclComm_t comm, const struct kl_edge *edge)
{
    const struct kl_topo *t = comm->topo;
    struct planned none = {.nic = -1, .proxy = comm->rank};
    struct kl_graph_nic nic = {.net = -1};

    if (!t->count[KL_NODE_NET]) return none;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = ask_plan(comm, edge, &nic);
    kl_error_quiet(quiet);
    if (rc || nic.net < 0) return none;
    return (struct planned){
        .nic = t->node[kl_topo_at(t, KL_NODE_NET, nic.net)].net.dev, .net = nic.net, .proxy = nic.proxy};
}

static int device_of(ncclComm_t comm, struct planned plan)
{
    return (plan.nic < 0 ? 0 : plan.nic) % comm->net->devices();
}

static struct planned use_planned_nic(ncclComm_t comm, const struct kl_edge *edge, struct kl_connector *connector)
{
    struct planned plan = planned(comm, edge);

    connector->route.planned = plan.nic;
    connector->route.device = device_of(comm, plan);
    return plan;
}

int kl_comm_net_device(ncclComm_t comm)
{
    const struct kl_edge edge = {.use = KL_EDGE_MESSAGES, .peer = comm->rank};
    return device_of(comm, planned(comm, &edge));
}

/* Can a rank hand data over to another one? Both ranks evaluate this and have to agree: one to request it, the other to
 * listen. */
static bool may_relay(ncclComm_t comm, int sender, int relay)
{
    const struct kl_pair_facts facts = {.a = &comm->peers[sender], .b = &comm->peers[relay]};
    int from = kl_topo_gpu_of_rank(comm->topo, sender), by = kl_topo_gpu_of_rank(comm->topo, relay);

    return sender != relay && from >= 0 && by >= 0 && !kl_transport_shm.refuses(&facts) &&
           kl_path_between(comm->topo, KL_NODE_GPU, from, KL_NODE_GPU, by)->type <= KL_PATH_NVL;
}

/* ---- messages in memory of GPUs ---- */

/* Does the plan let the NIC at the rank's GPU, and want a flush? */
static ncclResult_t ask_plan_for_rdma(ncclComm_t comm, int net, bool sends, bool *allowed, enum kl_flush *wanted)
{
    struct kl_gdr gdr;

    KL_TRY(kl_topo_gdr(comm->topo, comm->rank, net, sends, &gdr));
    *allowed = gdr.mode != KL_GDR_OFF && gdr.rank == comm->rank;
    return kl_topo_need_flush(comm->topo, comm->rank, net, wanted);
}

static unsigned memory_of(const struct kl_net_properties *nic, const struct kl_cuda_rdma *gpu)
{
    struct kl_device_config config;
    unsigned memory = 0;

    kl_param_load(&kl_device_param_set, &config);
    if (nic->memory & KL_NET_DMABUF && gpu->by_dma_buf && config.dma_buf) memory |= KL_NET_DMABUF;
    if (nic->memory & KL_NET_CUDA && gpu->by_address) memory |= KL_NET_CUDA;
    return memory;
}

/* The GPU's own ordering of a NIC's writes counts, unless the NIC, a setting or the way over C2C asks for a flush. */
static bool needs_flush(const ncclComm_t comm, enum kl_flush wanted, const struct kl_net_properties *nic,
                        const struct kl_cuda_rdma *gpu)
{
    if (nic->force_flush || comm->topo->options.net_force_flush || wanted == KL_FLUSH_C2C) return true;
    return wanted != KL_FLUSH_NONE && !gpu->ordered;
}

/* False: nothing makes received data visible. */
static bool find_flush(const struct kl_net_properties *nic, const struct kl_cuda_rdma *gpu, bool needed,
                       enum kl_net_flush *flush)
{
    *flush = KL_NET_FLUSH_NONE;
    if (!needed) return true;
    *flush = nic->flushes ? KL_NET_FLUSH_BY_NET : KL_NET_FLUSH_BY_CUDA;
    return nic->flushes || gpu->can_flush;
}

static ncclResult_t find_reach(ncclComm_t comm, struct planned plan, bool sends, struct kl_net_reach *reach)
{
    struct kl_net_properties nic;
    struct kl_cuda_rdma gpu;
    enum kl_net_flush flush;
    enum kl_flush wanted;
    bool allowed;

    KL_TRY(ask_plan_for_rdma(comm, plan.net, sends, &allowed, &wanted));
    KL_TRY(comm->net->properties(device_of(comm, plan), &nic));
    KL_TRY(kl_cuda_rdma_of(comm->device, &gpu));
    const unsigned memory = memory_of(&nic, &gpu);
    const bool visible = find_flush(&nic, &gpu, needs_flush(comm, wanted, &nic, &gpu), &flush);
    if (!allowed || !memory || (!visible && !sends)) return ncclSuccess;
    *reach = (struct kl_net_reach){.memory = memory, .flush = flush, .device = comm->device};
    return ncclSuccess;
}

static void set_reach(ncclComm_t comm, const struct kl_edge *edge, struct planned plan, struct kl_nic_route *route)
{
    route->reach = (struct kl_net_reach){.memory = 0};
    if (edge->use != KL_EDGE_MESSAGES || comm->devices == &kl_host_devices || plan.nic < 0 || route->relayed) return;
    int quiet = kl_error_quiet(1); /* without an answer data are staged */
    (void)find_reach(comm, plan, edge->sends, &route->reach);
    kl_error_quiet(quiet);
}

static ncclResult_t choose_transport(ncclComm_t comm, const struct kl_edge *edge, struct kl_connector *connector,
                                     uint32_t *index)
{
    struct kl_pair_facts facts = {
        .a = &comm->peers[comm->rank],
        .b = &comm->peers[edge->peer],
        .mappable = comm->devices->mappable,
        .network = kl_comm_needs_net(comm),
    };

    KL_TRY(kl_pair_apply_topo(comm->topo, false, &facts));
    if (kl_process_shared_is_oversubscribed(comm->shared)) connector->zcopy_from = ZCOPY_FROM_WHERE_CPUS_ARE_SHARED;
    KL_TRY(kl_transport_choose(&facts, &connector->transport, index));
    if (connector->transport != &kl_transport_net) return ncclSuccess;
    const struct planned plan = use_planned_nic(comm, edge, connector);
    connector->route.proxy = plan.proxy;
    connector->route.relayed = edge->sends && may_relay(comm, comm->rank, connector->route.proxy);
    connector->route.proxy_here = kl_process_shared_has_rank(comm->shared, connector->route.proxy);
    set_reach(comm, edge, plan, &connector->route);
    return ncclSuccess;
}

void kl_comm_find_reach(ncclComm_t comm, int peer, bool sends, struct kl_net_reach *reach)
{
    const struct kl_edge edge = {.use = KL_EDGE_MESSAGES, .peer = peer, .sends = sends};
    struct kl_connector connector = {.peer = peer};
    uint32_t index;

    *reach = (struct kl_net_reach){.memory = 0};
    if (choose_transport(comm, &edge, &connector, &index) || connector.transport != &kl_transport_net) return;
    *reach = connector.route.reach;
}

/* A link into a network that reduces has its own heads, and needs a NIC only. */
static ncclResult_t choose(void *ctx, const struct kl_edge *edge, struct kl_connector *connector, uint32_t *index)
{
    if (!is_collnet(edge)) return choose_transport(ctx, edge, connector, index);
    use_planned_nic(ctx, edge, connector);
    return ncclSuccess;
}

/* ---- the log ---- */

static void log_collnet(ncclComm_t comm, const struct kl_edge *edge, const struct kl_connector *c)
{
    KL_INFO(KL_INIT | KL_NET, "CollNet %02d/%d : %d [%s] via COLLNET/%s/%d", edge->channel,
            edge->use - KL_EDGE_COLLNET_CHAIN, comm->rank, edge->sends ? "send" : "receive",
            kl_collnet_of(comm->net)->name, c->route.planned < 0 ? c->route.device : c->route.planned);
}

static void log_network(ncclComm_t comm, const struct kl_edge *edge, const struct kl_connector *c)
{
    int from = edge->sends ? comm->rank : edge->peer, to = edge->sends ? edge->peer : comm->rank;
    char proxy[32] = "";

    if (c->route.relayed) snprintf(proxy, sizeof proxy, "(%d)/PXN", c->route.proxy);
    KL_INFO(KL_INIT | KL_NET, "Channel %02d/%d : %d[%d] -> %d[%d] [%s] via NET/%s/%d%s%s", edge->channel, edge->use,
            from, comm->peers[from].device, to, comm->peers[to].device, edge->sends ? "send" : "receive",
            c->common->net.net->name, c->route.planned < 0 ? c->route.device : c->route.planned, proxy,
            c->route.reach.memory ? "/GDRDMA" : "");
}

static void log_connection(void *ctx, const struct kl_edge *edge, const struct kl_connector *connector)
{
    ncclComm_t comm = ctx;

    if (is_collnet(edge))
        log_collnet(comm, edge, connector);
    else if (connector->transport == &kl_transport_net)
        log_network(comm, edge, connector);
    else if (edge->sends)
        KL_INFO(KL_INIT | KL_P2P, "Channel %02d/%d : %d[%d] -> %d[%d] via %s", edge->channel, edge->use, comm->rank,
                comm->peers[comm->rank].device, edge->peer, comm->peers[edge->peer].device, connector->transport->via);
}

/* ---- life ---- */

static int list_senders(ncclComm_t comm, int32_t *senders)
{
    const struct kl_topo *t = comm->topo;
    int n = 0;

    if (!kl_topo_needs_net(t) || t->options.pxn_disable) return 0;
    for (int gpu = 0; gpu < t->count[KL_NODE_GPU]; gpu++) {
        int rank = t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.rank;
        if (may_relay(comm, rank, comm->rank)) senders[n++] = rank;
    }
    return n;
}

static void relaying_failed(void *ctx, int culprit, ncclResult_t rc, const char *text)
{
    kl_comm_fail(ctx, culprit, rc, text, true);
}

static ncclResult_t use_net(ncclComm_t comm, struct kl_connections_config *config, int32_t *senders)
{
    KL_TRY(kl_comm_find_net(comm));
    config->net = comm->net;
    config->collnet = kl_collnet_of(comm->net);
    config->net_key = kl_bootstrap_key(comm->bootstrap, "kolo net");
    config->senders = senders;
    config->nsenders = list_senders(comm, senders);
    return ncclSuccess;
}

ncclResult_t kl_comm_find_net(ncclComm_t comm)
{
    if (comm->net) return ncclSuccess;
    return kl_net_ref(kl_comm_config_net(&comm->config, &comm->nccl_config), &comm->net);
}

/* A network is chosen by its name, case-insensitively, also where no rank needs one. */
static ncclResult_t check_net(ncclComm_t comm)
{
    const char *name = kl_comm_config_net(&comm->config, &comm->nccl_config);

    return !*name || !strcasecmp(name, kl_net_socket.name) ? ncclSuccess : kl_comm_find_net(comm);
}

/* Ranks that share the caches of this machine, also ranks of other hosts that it emulates. */
static int cache_ranks(ncclComm_t comm)
{
    const unsigned shared = comm->shared->ranks_per_cpu;
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int all = shared > 1 && cpus > 0 ? (int)shared * (int)cpus : 0;

    return all > comm->local_ranks ? all : comm->local_ranks;
}

/* Cells in turn, so that all channels together go through a cycle of the caches; 0: slots are enough. */
static uint32_t cells_in_turn(ncclComm_t comm, int ranks)
{
    const size_t cycle = kl_cache_cycle(ranks) / (size_t)comm->connect->coll_channels;
    uint32_t n = SLOTS;

    while (n < MOST_CELLS && n * CELL_BYTES < cycle) n *= 2;
    return n * CELL_BYTES > cycle ? 0 : n;
}

size_t kl_comm_chain_bytes(ncclComm_t comm)
{
    return !kl_comm_needs_net(comm) && cells_in_turn(comm, comm->nranks) > SLOTS ? CELL_BYTES : 0;
}

static struct kl_fifo_shape coll_shape(ncclComm_t comm)
{
    const int64_t asked = comm->config.buffer_bytes;
    const uint64_t slot = (asked > 0 ? (uint64_t)asked : DEFAULT_FIFO_BYTES) / SLOTS / KL_LINE * KL_LINE;
    struct kl_fifo_shape s = {.nslots = SLOTS, .ll_bytes = KL_LL_LINES_BYTES, .slot_bytes = slot};

    if (slot > CELL_BYTES) s.cells = cells_in_turn(comm, cache_ranks(comm));
    if (s.cells) s.cell_bytes = CELL_BYTES;
    return s;
}

/*
 * Places for a cycle of the caches: in a ring each rank sends to one other. Steps for messages sent before their turn
 * (comm/queue/prepost.h), two each; more where several ranks share a core: a rank has to yield it when there are no more.
 */
static struct kl_fifo_shape message_shape(ncclComm_t comm)
{
    const size_t cycle = kl_cache_cycle(cache_ranks(comm)), room = MESSAGES_BYTES / (size_t)comm->nranks;
    const size_t bytes = cycle < room ? cycle : room;
    const uint32_t most = comm->shared->ranks_per_cpu > 2 ? 4 * MESSAGE_SLOTS : 2 * MESSAGE_SLOTS;
    uint32_t n = MESSAGE_SLOTS;

    while (n < MOST_MESSAGE_PLACES && n * MESSAGE_SLOT_BYTES < bytes) n *= 2;
    return (struct kl_fifo_shape){.nslots = n < most ? n : most, .slot_bytes = MESSAGE_SLOT_BYTES, .places = n};
}

ncclResult_t kl_comm_connect(ncclComm_t comm)
{
    const struct kl_fifo_shape coll = coll_shape(comm);
    struct kl_connections_config config = {
        .bootstrap = comm->bootstrap,
        .rank = comm->rank,
        .nranks = comm->nranks,
        .cache_ranks = cache_ranks(comm),
        .shape = {[KL_EDGE_COLL] = coll, [KL_EDGE_SCATTER] = coll, [KL_EDGE_MESSAGES] = message_shape(comm)},
        .round_peers = (int)comm->config.round_peers,
        .timeout_ms = (uint64_t)comm->config.bootstrap_timeout_s * 1000,
        .choose = choose,
        .tell = log_connection,
        .fail = relaying_failed,
        .ctx = comm,
    };
    KL_TRY(check_net(comm));
    int32_t *senders = malloc((size_t)comm->topo->count[KL_NODE_GPU] * sizeof *senders + 1);
    if (!senders) return KL_NOMEM("connections");
    bool uses_net = kl_comm_needs_net(comm) || comm->connect->collnet;
    ncclResult_t rc = uses_net ? use_net(comm, &config, senders) : ncclSuccess;
    if (!rc) rc = kl_connections_create(&config, &comm->connections);
    kl_key_wipe(&config.net_key);
    free(senders);
    return rc;
}

/* Nothing else happens meanwhile, so this blocks. The bootstrap's failures end it, and its deadline. */
ncclResult_t kl_comm_connect_early(ncclComm_t comm)
{
    uint64_t deadline = kl_deadline_in_ms((uint64_t)comm->config.bootstrap_timeout_s * 1000);
    struct kl_poll_wait wait = KL_WAIT_START;
    ncclResult_t rc = ncclSuccess;
    char who[128];

    while (!comm->config.runtime_connect) {
        enum kl_progress got = kl_exec_connect_all(comm->exec, &rc);
        if (rc || got == KL_DONE) break;
        if (got == KL_MOVED) {
            kl_wait_reset(&wait);
        } else if (kl_deadline_passed(deadline)) {
            return KL_FAIL(ncclRemoteError, "no connection with %s within %lld s (KOLO_BOOTSTRAP_TIMEOUT)",
                           kl_comm_describe(comm, kl_exec_blocked_on(comm->exec, false), who, sizeof who),
                           (long long)comm->config.bootstrap_timeout_s);
        } else {
            kl_wait_pause(&wait, comm->cores);
        }
    }
    return rc;
}

void kl_comm_disconnect(ncclComm_t comm)
{
    if (!comm->connections) return;
    bool failed = kl_load_acquire(&comm->failed);
    /* The bootstrap reports a failure to all, with its cause; a leave mark would only hide that cause. */
    if (!failed) kl_connections_leave(comm->connections);
    kl_connections_free(comm->connections, failed);
    comm->connections = NULL;
}
