/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connect.c - what the communicator's connections ask of it: which transport joins two ranks, how large fifos are.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "device/host/backoff.h"
#include "transport/lines.h"
#include "transport/pair.h"

enum { SLOTS = 8, MESSAGE_SLOT_BYTES = 4096 };

static ncclResult_t choose(void *ctx, int peer, const struct kl_transport **transport, uint32_t *index)
{
    ncclComm_t comm = ctx;
    struct kl_pair_facts facts = {
        .a = &comm->peers[comm->rank], .b = &comm->peers[peer], .mappable = comm->devices->mappable};

    KL_TRY(kl_pair_ask_topo(comm->topo, false, &facts));
    return kl_transport_choose(&facts, transport, index);
}

static void log_connection(void *ctx, const struct kl_edge *edge, const struct kl_connector *connector)
{
    ncclComm_t comm = ctx;

    if (edge->sends)
        KL_INFO(KL_INIT | KL_P2P, "Channel %02d/%d : %d[%d] -> %d[%d] via %s", edge->channel, edge->use, comm->rank,
                comm->device, edge->peer, comm->peers[edge->peer].device, connector->transport->via);
}

ncclResult_t kl_comm_connect(ncclComm_t comm)
{
    uint64_t slot = comm->peers[comm->rank].fifo_bytes / SLOTS / KL_LINE * KL_LINE;
    struct kl_connections_config config = {
        .bootstrap = comm->bootstrap,
        .rank = comm->rank,
        .nranks = comm->nranks,
        .shape = {[KL_EDGE_COLL] = {.nslots = SLOTS, .ll_bytes = KL_LINES_LL_BYTES, .slot_bytes = slot},
                  [KL_EDGE_MESSAGES] = {.nslots = SLOTS, .slot_bytes = MESSAGE_SLOT_BYTES}},
        .round_peers = (int)comm->config.round_peers,
        .patience_ms = (uint64_t)comm->config.bootstrap_timeout_s * 1000,
        .choose = choose,
        .tell = log_connection,
        .ctx = comm,
    };

    return kl_connections_create(&config, &comm->connections);
}

/* Nothing else happens meanwhile, so this waits. The bootstrap's failures end it, and its deadline. */
ncclResult_t kl_comm_connect_early(ncclComm_t comm)
{
    uint64_t deadline = kl_deadline_in_ms((uint64_t)comm->config.bootstrap_timeout_s * 1000);
    struct kl_backoff wait = KL_BACKOFF_START;
    ncclResult_t rc = ncclSuccess;
    char who[128];

    while (!comm->config.runtime_connect) {
        enum kl_progress got = kl_exec_connect_all(comm->exec, &rc);
        if (rc || got == KL_DONE) break;
        if (got == KL_MOVED) {
            kl_backoff_reset(&wait);
        } else if (kl_deadline_passed(deadline)) {
            return KL_FAIL(ncclRemoteError, "no connection with %s within %lld s (KOLO_BOOTSTRAP_TIMEOUT)",
                           kl_comm_describe(comm, kl_exec_blocked_on(comm->exec, false), who, sizeof who),
                           (long long)comm->config.bootstrap_timeout_s);
        } else {
            kl_backoff_pause(&wait, comm->spin);
        }
    }
    return rc;
}

void kl_comm_disconnect(ncclComm_t comm)
{
    if (!comm->connections) return;
    /* A failure is told to all by the bootstrap, with its cause; a mark of leaving would only hide that cause. */
    if (!kl_load_acquire(&comm->failed)) kl_connections_leave(comm->connections);
    kl_connections_free(comm->connections);
    comm->connections = NULL;
}
