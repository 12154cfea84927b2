/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/pipeline/edges.h"

#include "base/error.h"

#include <stdlib.h>

static ncclResult_t ask(struct kl_connections *cs, const struct kl_edge *edge, struct kl_connector **connector)
{
    return edge->peer < 0 ? ncclSuccess : kl_connections_get(cs, edge, connector);
}

static ncclResult_t ask_recv(struct kl_edges *edges, struct kl_connections *cs, int number, const struct kl_edge *edge)
{
    if (number >= edges->nrecv) edges->nrecv = number + 1;
    return ask(cs, edge, &edges->recv[number]);
}

static ncclResult_t ask_send(struct kl_edges *edges, struct kl_connections *cs, int number, const struct kl_edge *edge)
{
    if (number >= edges->nsend) edges->nsend = number + 1;
    return ask(cs, edge, &edges->send[number]);
}

static struct kl_edge edge_of(enum kl_edge_use use, int channel, int peer, bool sends)
{
    return (struct kl_edge){.peer = peer, .channel = (uint8_t)channel, .use = (uint8_t)use, .sends = sends};
}

ncclResult_t kl_edges_recv(struct kl_edges *edges, struct kl_connections *cs, int channel, int number, int peer)
{
    const struct kl_edge edge = edge_of(KL_EDGE_COLL, channel, peer, false);

    return ask_recv(edges, cs, number, &edge);
}

ncclResult_t kl_edges_send(struct kl_edges *edges, struct kl_connections *cs, int channel, int number, int peer)
{
    const struct kl_edge edge = edge_of(KL_EDGE_COLL, channel, peer, true);

    return ask_send(edges, cs, number, &edge);
}

ncclResult_t kl_edges_link(const struct kl_algorithm *a, const struct kl_connect *graph, struct kl_connections *cs,
                           int channel, struct kl_edges *edges)
{
    struct kl_neighbours n;

    edges->order = malloc((size_t)graph->ranks.nranks * sizeof *edges->order);
    if (!edges->order) return KL_NOMEM("the order of an algorithm's ranks");
    const struct kl_neighbours_request request = {.graph = graph,
                                                  .rank = graph->rank,
                                                  .channel = channel,
                                                  .steps = kl_connections_steps(cs),
                                                  .order = edges->order};
    KL_TRY(a->find(&request, &n));
    edges->position = n.position;
    for (int i = 0; i < n.nrecv || i < n.nsend; i++) {
        if (i < n.nrecv) KL_TRY(kl_edges_recv(edges, cs, channel, i, n.recv[i]));
        if (i < n.nsend) KL_TRY(kl_edges_send(edges, cs, channel, i, n.send[i]));
    }
    return ncclSuccess;
}

ncclResult_t kl_edges_recv_scatter(struct kl_edges *edges, struct kl_connections *cs, int channel, int number, int peer)
{
    const struct kl_edge edge = edge_of(KL_EDGE_SCATTER, channel, peer, false);

    return ask_recv(edges, cs, number, &edge);
}

ncclResult_t kl_edges_send_scatter(struct kl_edges *edges, struct kl_connections *cs, int channel, int number, int peer)
{
    const struct kl_edge edge = edge_of(KL_EDGE_SCATTER, channel, peer, true);

    return ask_send(edges, cs, number, &edge);
}

static ncclResult_t find_heads(const struct kl_connect *graph, const struct kl_network_edge *m, int32_t **heads)
{
    int nnodes = graph->nodes.nnodes;

    *heads = malloc((size_t)nnodes * sizeof **heads);
    if (!*heads) return KL_NOMEM("heads of CollNet");
    for (int node = 0; node < nnodes; node++) (*heads)[node] = m->head(graph, m->of, node);
    return ncclSuccess;
}

ncclResult_t kl_edges_join_network(struct kl_edges *edges, const struct kl_connect *graph, struct kl_connections *cs,
                                   const struct kl_network_edge *m, struct kl_collnet_link **link)
{
    const struct kl_nodes *nodes = &graph->nodes;
    int32_t *heads;

    KL_TRY(find_heads(graph, m, &heads));
    ncclResult_t rc =
        kl_connections_get_reducer(cs, m->use, m->channel, heads, nodes->nnodes, nodes->of_rank[graph->rank], link);
    free(heads);
    KL_TRY(rc);
    if (m->edge >= edges->nrecv) edges->nrecv = m->edge + 1;
    if (m->edge >= edges->nsend) edges->nsend = m->edge + 1;
    edges->recv[m->edge] = &(*link)->recv;
    edges->send[m->edge] = &(*link)->send;
    return ncclSuccess;
}

static bool is_moved_here(const struct kl_connector *c)
{
    return c && c->transport->progress;
}

ncclResult_t kl_edges_get_arena(struct kl_edges *edges, const struct kl_connect *graph, struct kl_connections *cs,
                                int32_t *ranks, size_t bytes)
{
    const int n = graph->ranks.nranks;

    for (int r = 0; r < n; r++) ranks[r] = r;
    return kl_connections_get_arena(cs, ranks, n, graph->rank, bytes, &edges->arena);
}

bool kl_edges_ready(struct kl_edges *edges)
{
    bool ready = true;

    if (edges->ready) return true;
    for (int i = 0; i < edges->nrecv; i++) ready = ready && (!edges->recv[i] || edges->recv[i]->ready);
    for (int i = 0; i < edges->nsend; i++) ready = ready && (!edges->send[i] || edges->send[i]->ready);
    edges->ready = ready && (!edges->arena || edges->arena->ready);
    for (int i = 0; i < edges->nrecv; i++) edges->moved_here |= edges->ready && is_moved_here(edges->recv[i]);
    for (int i = 0; i < edges->nsend; i++) edges->moved_here |= edges->ready && is_moved_here(edges->send[i]);
    return edges->ready;
}

static bool progress(struct kl_connector *c, ncclResult_t *rc)
{
    return is_moved_here(c) && !*rc && c->transport->progress(c, rc) == KL_MOVED;
}

bool kl_edges_progress_receive(struct kl_edges *edges, ncclResult_t *rc)
{
    bool moved = false;

    for (int i = 0; i < edges->nrecv; i++) moved |= progress(edges->recv[i], rc);
    return moved;
}

bool kl_edges_progress_send(struct kl_edges *edges, ncclResult_t *rc)
{
    bool moved = false;

    for (int i = 0; i < edges->nsend; i++) moved |= progress(edges->send[i], rc);
    return moved;
}

bool kl_edges_sleep_on(struct kl_connector *c)
{
    return c->transport->sleep_on && c->transport->sleep_on(c);
}

bool kl_edges_drained(const struct kl_edges *edges)
{
    for (int i = 0; i < edges->nsend; i++)
        if (edges->send[i] && !kl_fifo_drained(&edges->send[i]->tx)) return false;
    return true;
}

int kl_edges_waits_for_room(const struct kl_edges *edges, uint32_t set, bool gone)
{
    for (int i = 0; i < edges->nsend; i++) {
        struct kl_connector *c = edges->send[i];
        bool wants_room = set >> i & 1;
        if (!c) continue;
        if (gone ? kl_fifo_receiver_gone(&c->tx, wants_room ? c->tx.shape.nslots : 0)
                 : (wants_room ? !kl_fifo_can_send(&c->tx) : !kl_fifo_drained(&c->tx)))
            return c->peer;
    }
    return -1;
}

void kl_edges_fini(struct kl_edges *edges)
{
    free(edges->order);
    edges->order = NULL;
}
