/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connect.c - make the connectors of a communicator: one per channel and ring neighbour, one per pair and direction for
 * sends and receives.
 *
 * Every rank sets up all its receiving halves, one all-gather carries their records, then every rank connects its
 * sending halves: a fixed number of logarithmic exchanges, whatever the number of connections. A barrier at the end says
 * that everybody has mapped what it needs, so that what was only there for that can go.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "transport/pair.h"

#include <stdlib.h>

/* Records of one rank: of its receiving half of each ring, then of its receiving half from each rank. */
struct exchange {
    struct kl_connect_record *records; /* nranks rows */
    size_t row;                        /* records per rank */
};

static struct kl_connect_record *record_of(const struct exchange *x, int rank, size_t i)
{
    return &x->records[(size_t)rank * x->row + i];
}

static struct kl_fifo_shape fifo_shape(ncclComm_t comm)
{
    enum { SLOTS = 8 };
    uint64_t slot = comm->peers[comm->rank].fifo_bytes / SLOTS / KL_LINE * KL_LINE;

    return (struct kl_fifo_shape){.nslots = SLOTS, .slot_bytes = slot};
}

static ncclResult_t choose(ncclComm_t comm, int peer, const struct kl_transport **transport, uint32_t *index)
{
    struct kl_pair_facts facts = {
        .a = &comm->peers[comm->rank],
        .b = &comm->peers[peer],
    };
    struct kl_pair_why why;

    KL_TRY(kl_pair_ask_topo(comm->topo, false, &facts, &why));
    return kl_transport_choose(&facts, transport, index);
}

static ncclResult_t set_up(ncclComm_t comm, int peer, struct kl_connector *c, struct kl_connect_record *record)
{
    struct kl_fifo_shape shape = fifo_shape(comm);
    const struct kl_transport *transport;
    uint32_t index;

    KL_TRY(choose(comm, peer, &transport, &index));
    *c = (struct kl_connector){.peer = peer, .segment = KL_SEGMENT_NONE};
    KL_TRY(transport->setup(c, &shape, record));
    c->transport = transport;
    record->transport = index;
    return ncclSuccess;
}

static ncclResult_t connect_to(ncclComm_t comm, int peer, struct kl_connector *c,
                               const struct kl_connect_record *record)
{
    const struct kl_transport *transport;
    uint32_t index;

    KL_TRY(choose(comm, peer, &transport, &index));
    if (record->transport != index)
        return KL_FAIL(ncclInternalError,
                       "rank %d chose transport %u for the connection from rank %d, which chose %s: do NCCL_P2P_* and "
                       "NCCL_SHM_* agree on all ranks?",
                       peer, record->transport, comm->rank, transport->name);
    *c = (struct kl_connector){.peer = peer, .sends = true, .segment = KL_SEGMENT_NONE};
    KL_TRY(transport->connect(c, record, kl_deadline_in_ms((uint64_t)comm->config.bootstrap_timeout_s * 1000)));
    c->transport = transport;
    return ncclSuccess;
}

static ncclResult_t set_up_all(ncclComm_t comm, const struct exchange *x)
{
    for (int c = 0; c < comm->nchannels; c++) {
        struct kl_ring *ring = &comm->channels[c].ring;
        KL_TRY(set_up(comm, kl_ring_prev(ring), &ring->from_prev, record_of(x, comm->rank, (size_t)c)));
    }
    for (int r = 0; r < comm->nranks; r++) {
        if (r == comm->rank) continue;
        KL_TRY(set_up(comm, r, &comm->recv_from[r], record_of(x, comm->rank, (size_t)(comm->nchannels + r))));
    }
    return ncclSuccess;
}

/* Each rank begins behind itself, so that not all of them come to the same peer at once. */
static ncclResult_t connect_all(ncclComm_t comm, const struct exchange *x)
{
    for (int c = 0; c < comm->nchannels; c++) {
        struct kl_ring *ring = &comm->channels[c].ring;
        int next = kl_ring_next(ring);
        KL_TRY(connect_to(comm, next, &ring->to_next, record_of(x, next, (size_t)c)));
    }
    for (int i = 1; i < comm->nranks; i++) {
        int r = (comm->rank + i) % comm->nranks;
        KL_TRY(connect_to(comm, r, &comm->send_to[r], record_of(x, r, (size_t)(comm->nchannels + comm->rank))));
    }
    return ncclSuccess;
}

static void settle(struct kl_connector *c)
{
    if (c->transport) c->transport->settle(c);
}

static void settle_all(ncclComm_t comm)
{
    for (int c = 0; c < comm->nchannels; c++) settle(&comm->channels[c].ring.from_prev);
    for (int r = 0; r < comm->nranks; r++) settle(&comm->recv_from[r]);
}

static ncclResult_t allocate(ncclComm_t comm)
{
    size_t n = (size_t)comm->nranks;

    comm->channels = calloc((size_t)comm->nchannels, sizeof *comm->channels);
    comm->send_to = calloc(n, sizeof *comm->send_to);
    comm->recv_from = calloc(n, sizeof *comm->recv_from);
    if (!comm->channels || !comm->send_to || !comm->recv_from) return KL_NOMEM("channels");
    for (int c = 0; c < comm->nchannels; c++)
        KL_TRY(kl_ring_init(&comm->channels[c].ring, &comm->ring_order[(size_t)c * n], comm->nranks, comm->rank));
    return ncclSuccess;
}

static void log_connections(ncclComm_t comm)
{
    for (int c = 0; c < comm->nchannels; c++) {
        const struct kl_ring *ring = &comm->channels[c].ring;
        KL_INFO(KL_INIT, "Channel %02d : %d[%d] -> %d[%d] via %s", c, comm->rank, comm->device, kl_ring_next(ring),
                comm->peers[kl_ring_next(ring)].device, ring->to_next.transport->name);
    }
}

ncclResult_t kl_comm_connect(ncclComm_t comm)
{
    ncclResult_t rc;
    struct exchange x = {.row = (size_t)(comm->nchannels + comm->nranks)};

    KL_TRY(allocate(comm));
    if (comm->nranks == 1) return ncclSuccess;
    x.records = calloc((size_t)comm->nranks * x.row, sizeof *x.records);
    if (!x.records) return KL_NOMEM("connection records");
    KL_TRY_OR(rc, out, set_up_all(comm, &x));
    KL_TRY_OR(rc, out, kl_bootstrap_allgather(comm->bootstrap, x.records, x.row * sizeof *x.records));
    KL_TRY_OR(rc, out, connect_all(comm, &x));
    KL_TRY_OR(rc, out, kl_bootstrap_barrier(comm->bootstrap));
    settle_all(comm);
    log_connections(comm);
out:
    free(x.records);
    return rc;
}

static void leave_all(ncclComm_t comm)
{
    for (int c = 0; comm->channels && c < comm->nchannels; c++) {
        kl_connector_leave(&comm->channels[c].ring.from_prev);
        kl_connector_leave(&comm->channels[c].ring.to_next);
    }
    for (int r = 0; comm->send_to && r < comm->nranks; r++) kl_connector_leave(&comm->send_to[r]);
    for (int r = 0; comm->recv_from && r < comm->nranks; r++) kl_connector_leave(&comm->recv_from[r]);
}

void kl_comm_disconnect(ncclComm_t comm)
{
    /* A failure is told to all by the bootstrap, with its cause; a mark of leaving would only hide that cause. */
    if (!kl_load_acquire(&comm->failed)) leave_all(comm);
    for (int c = 0; comm->channels && c < comm->nchannels; c++) kl_ring_free(&comm->channels[c].ring);
    for (int r = 0; comm->send_to && r < comm->nranks; r++) kl_connector_free(&comm->send_to[r]);
    for (int r = 0; comm->recv_from && r < comm->nranks; r++) kl_connector_free(&comm->recv_from[r]);
    free(comm->channels);
    free(comm->send_to);
    free(comm->recv_from);
    comm->channels = NULL;
    comm->send_to = comm->recv_from = NULL;
}
