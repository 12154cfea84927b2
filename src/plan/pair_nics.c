/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pair_make.h"

#include "base/error.h"
#include "graph/nic.h"
#include "plan/net_name.h"
#include "plan/pair_make.h"

#include <stdio.h>
#include <stdlib.h>

struct question {
    const struct kl_plan *plan;
    const struct kl_xml *document;
};

/* ---- one side ---- */

/* The NIC is known; `proxy` as the topology numbers ranks. */
static ncclResult_t set_side(const struct question *q, const struct kl_pair_end *end, int net, int proxy, bool sends,
                             struct kl_pair_side *side)
{
    const struct kl_topo *t = kl_pair_topo(q->plan, end);
    int gpu = kl_topo_gpu_of_rank(t, end->local);
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net);

    side->rank = end->rank;
    side->dev = t->node[kl_topo_at(t, KL_NODE_NET, net)].net.dev;
    snprintf(side->label, sizeof side->label, "%s", kl_net_name(q->document, side->dev));
    side->type = p->type;
    side->bw = p->bw;
    side->proxy = proxy + end->shift;
    KL_TRY(kl_topo_gdr(t, end->local, net, sends, &side->gdr));
    side->gdr.rank += end->shift;
    return ncclSuccess;
}

static void no_side(const struct kl_pair_end *end, struct kl_pair_side *side)
{
    side->rank = side->proxy = end->rank;
    side->dev = -1;
    side->type = KL_PATH_DIS;
    side->why.from = KL_PAIR_NIC_NONE;
    snprintf(side->why.error, sizeof side->why.error, "%.500s", kl_error_text());
}

/* A receiver asks for its own rail. */
static void find_sendrecv(const struct question *q, const struct kl_pair_end *end, int peer_dev, bool sends,
                          int channel, struct kl_pair_side *side)
{
    const struct kl_topo *t = kl_pair_topo(q->plan, end);
    struct kl_p2p_net p;
    int quiet = kl_error_quiet(1);

    if (kl_topo_p2p_net(t, end->local, sends ? peer_dev : end->dev, channel, &p) ||
        set_side(q, end, p.net, sends ? p.proxy : end->local, sends, side)) {
        no_side(end, side);
    } else {
        side->why.from = sends ? KL_PAIR_NIC_SENDER : KL_PAIR_NIC_RECEIVER;
        side->why.rule = p.why;
        side->why.own = (p.why != KL_P2P_NET_RAIL || !sends) &&
                        !kl_topo_net_choice(t, kl_topo_gpu_of_rank(t, end->local), channel, &side->why.choice);
    }
    kl_error_quiet(quiet);
}

static void find_planned(const struct question *q, const struct kl_pair_end *end, int graph, bool sends, int channel,
                         struct kl_pair_side *side)
{
    int shift, quiet = kl_error_quiet(1);
    const struct kl_plan_domain *d = kl_plan_domain_of(q->plan, end->rank, &shift);
    struct kl_graph_nic nic;

    if (kl_graph_nic(d->topo, d->graphs.graph[graph], q->plan->connect->graph[graph].nchannels, channel, end->local,
                     &nic) ||
        set_side(q, end, nic.net, sends ? nic.proxy : end->local, sends, side))
        no_side(end, side);
    else
        side->why.from = KL_PAIR_NIC_SEARCH;
    kl_error_quiet(quiet);
}

/* ---- channels ---- */

static bool same_side(const struct kl_pair_side *a, const struct kl_pair_side *b)
{
    return a->dev == b->dev && a->proxy == b->proxy && a->why.from == b->why.from &&
           (a->why.from != KL_PAIR_NIC_SENDER || a->why.rule == b->why.rule);
}

/* Add a channel to the NICs equal to `one`, or append them. */
static ncclResult_t add_channel(struct kl_pair_route *r, const struct kl_pair_nics *one, int channel)
{
    struct kl_pair_nics *grown;

    for (int i = 0; i < r->nnics; i++) {
        struct kl_pair_nics *x = &r->nics[i];

        if (x->traffic != one->traffic || !same_side(&x->send, &one->send) || !same_side(&x->recv, &one->recv))
            continue;
        x->channels |= (uint64_t)1 << channel;
        return ncclSuccess;
    }
    grown = realloc(r->nics, (size_t)(r->nnics + 1) * sizeof *grown);
    if (!grown) return KL_NOMEM("NICs");
    r->nics = grown;
    grown[r->nnics] = *one;
    grown[r->nnics++].channels = (uint64_t)1 << channel;
    return ncclSuccess;
}

static ncclResult_t add_planned(const struct question *q, struct kl_pair_route *r, int graph, int channel)
{
    struct kl_pair_nics one = {.traffic = graph == KL_GRAPH_RING ? KL_TRAFFIC_RING : KL_TRAFFIC_TREE};

    find_planned(q, &r->a, graph, true, channel, &one.send);
    find_planned(q, &r->b, graph, false, channel, &one.recv);
    return add_channel(r, &one, channel);
}

static bool tree_neighbours(const struct kl_connect *c, int channel, int a, int b)
{
    struct kl_tree_neighbours t = kl_connect_tree(c, channel, a);

    return t.up == b || t.down[0] == b || t.down[1] == b || t.down[2] == b;
}

static ncclResult_t add_collectives(const struct question *q, struct kl_pair_route *r)
{
    const struct kl_connect *c = q->plan->connect;

    for (int i = 0; i < c->nchannels; i++)
        if (kl_connect_ring(c, i, r->a.rank).next == r->b.rank) KL_TRY(add_planned(q, r, KL_GRAPH_RING, i));
    for (int i = 0; i < c->nchannels; i++)
        if (tree_neighbours(c, i, r->a.rank, r->b.rank)) KL_TRY(add_planned(q, r, KL_GRAPH_TREE, i));
    return ncclSuccess;
}

/* The round of its schedule in which the sender meets the receiver. */
static ncclResult_t round_of(const struct kl_connect *c, int from, int to, int *round)
{
    struct kl_connect own = *c; /* the schedule of its own rank */
    struct kl_p2p_round *rounds = calloc((size_t)c->ranks.nranks, sizeof *rounds);
    ncclResult_t rc;

    if (!rounds) return KL_NOMEM("a schedule");
    own.rank = from;
    rc = kl_p2p_schedule(&own, rounds);
    for (*round = 0; !rc && *round < c->ranks.nranks - 1 && rounds[*round].send != to;) ++*round;
    free(rounds);
    return rc;
}

static ncclResult_t add_sendrecv(const struct question *q, struct kl_pair_route *r)
{
    const struct kl_p2p_channels *channels = &q->plan->p2p;
    int round;

    KL_TRY(round_of(q->plan->connect, r->a.rank, r->b.rank, &round));
    for (int part = 0; part < channels->per_peer; part++) {
        int channel = kl_p2p_channel(kl_p2p_base(q->plan->connect, round), part, channels->n, channels->nccl);
        struct kl_pair_nics one = {.traffic = KL_TRAFFIC_SENDRECV};

        find_sendrecv(q, &r->a, r->b.dev, true, channel, &one.send);
        find_sendrecv(q, &r->b, r->a.dev, false, channel, &one.recv);
        KL_TRY(add_channel(r, &one, channel));
    }
    return ncclSuccess;
}

/* ---- the ways to the NICs ---- */

static int net_of_dev(const struct kl_topo *t, int dev)
{
    for (int i = 0; i < t->count[KL_NODE_NET]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_NET, i)].net.dev == dev) return kl_topo_at(t, KL_NODE_NET, i);
    return -1;
}

static ncclResult_t add_way(const struct question *q, struct kl_pair_route *r, const struct kl_pair_end *end,
                            const struct kl_pair_side *side)
{
    const struct kl_topo *t = kl_pair_topo(q->plan, end);
    int gpu = kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, end->local)), net = net_of_dev(t, side->dev);

    if (net < 0) return ncclSuccess;
    return end == &r->a ? kl_pair_path_add(r, t, gpu, net, end->shift) : kl_pair_path_add(r, t, net, gpu, end->shift);
}

ncclResult_t kl_pair_nics_find(const struct kl_plan *plan, const struct kl_xml *document, struct kl_pair_route *r)
{
    const struct question q = {plan, document};

    KL_TRY(add_sendrecv(&q, r));
    KL_TRY(add_collectives(&q, r));
    KL_TRY(add_way(&q, r, &r->a, &r->nics[0].send));
    KL_TRY(add_way(&q, r, &r->b, &r->nics[0].recv));
    for (int i = 0; i < r->nsegments; i++)
        if (!i || r->segment[i].narrowest < r->bw) r->bw = r->segment[i].narrowest;
    return ncclSuccess;
}
