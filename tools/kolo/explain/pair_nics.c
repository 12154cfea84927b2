/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/pair.h"

#include "base/error.h"
#include "graph/nic.h"
#include "plan/net_name.h"

#include <stdlib.h>
#include <string.h>

const char *kl_talk_use_name(enum kl_talk_use use)
{
    static const char *const names[] = {
        [KL_TALK_SENDRECV] = "send/recv", [KL_TALK_RING] = "ring", [KL_TALK_TREE] = "tree"};

    return names[use];
}

/* ---- one side ---- */

static ncclResult_t set_gdr(const struct kl_topo *t, const struct kl_talk_end *end, int net, bool read,
                            struct kl_talk_side *side)
{
    struct kl_gdr gdr;

    KL_TRY(kl_topo_gdr(t, end->local, net, read, &gdr));
    side->gdr = gdr.mode != KL_GDR_OFF;
    gdr.rank += end->shift;
    side->gdr_why.code = kl_gdr_why_name(gdr.why);
    kl_gdr_why_text(&gdr, side->gdr_why.text);
    return ncclSuccess;
}

/* The NIC is known; `proxy` as the topology numbers ranks. */
static ncclResult_t set_side(const struct kl_talk_request *q, const struct kl_talk_end *end, int net, int proxy,
                             bool sends, struct kl_talk_side *side)
{
    const struct kl_topo *t = kl_talk_topo(q->plan, end);
    int gpu = kl_topo_gpu_of_rank(t, end->local);
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net);

    side->rank = end->rank;
    side->dev = t->node[kl_topo_at(t, KL_NODE_NET, net)].net.dev;
    snprintf(side->label, sizeof side->label, "%s", kl_net_name(q->document, side->dev));
    side->type = p->type;
    side->bw = p->bw;
    side->proxy = proxy + end->shift;
    return set_gdr(t, end, net, sends, side);
}

static void no_side(const struct kl_talk_end *end, struct kl_talk_side *side)
{
    side->rank = side->proxy = end->rank;
    side->dev = -1;
    side->type = KL_PATH_DIS;
    side->gdr_why.code = side->why.code = "no_nic";
    snprintf(side->why.text, sizeof side->why.text, "%s", kl_error_text());
}

/* What an own NIC was chosen from. */
static void add_choice(const struct kl_topo *t, const struct kl_talk_end *end, int channel, struct kl_reason *why)
{
    struct kl_net_choice choice;
    char text[KL_WHY_TEXT];
    size_t used = strlen(why->text);

    if (kl_topo_net_choice(t, kl_topo_gpu_of_rank(t, end->local), channel, &choice)) return;
    snprintf(why->text + used, sizeof why->text - used, "; it is %s", kl_net_choice_text(&choice, text));
}

/* A receiver asks for the rail that it is on itself. */
static void find_sendrecv(const struct kl_talk_request *q, const struct kl_talk_end *end, int peer_dev, bool sends,
                          int channel, struct kl_talk_side *side)
{
    const struct kl_topo *t = kl_talk_topo(q->plan, end);
    struct kl_p2p_net p;
    int quiet = kl_error_quiet(1);

    if (kl_topo_p2p_net(t, end->local, sends ? peer_dev : end->dev, channel, &p) ||
        set_side(q, end, p.net, sends ? p.proxy : end->local, sends, side)) {
        no_side(end, side);
    } else {
        side->why.code = sends ? kl_p2p_net_why_name(p.why) : "own_nic";
        snprintf(side->why.text, sizeof side->why.text, "%s",
                 sends ? kl_p2p_net_why_text(p.why) : "the receiver's own");
        if (p.why != KL_P2P_NET_RAIL || !sends) add_choice(t, end, channel, &side->why);
    }
    kl_error_quiet(quiet);
}

static void find_planned(const struct kl_talk_request *q, const struct kl_talk_end *end, int graph, bool sends,
                         int channel, struct kl_talk_side *side)
{
    int shift, quiet = kl_error_quiet(1);
    const struct kl_plan_domain *d = kl_plan_domain_of(q->plan, end->rank, &shift);
    struct kl_graph_nic nic;

    if (kl_graph_nic(d->topo, d->graphs.graph[graph], q->plan->connect->graph[graph].nchannels, channel, end->local,
                     &nic) ||
        set_side(q, end, nic.net, sends ? nic.proxy : end->local, sends, side)) {
        no_side(end, side);
    } else {
        side->why.code = "search";
        snprintf(side->why.text, sizeof side->why.text, "the search gave it to these channels");
    }
    kl_error_quiet(quiet);
}

/* ---- channels ---- */

static bool same_side(const struct kl_talk_side *a, const struct kl_talk_side *b)
{
    return a->dev == b->dev && a->proxy == b->proxy && !strcmp(a->why.code, b->why.code);
}

/* Add a channel to the route that is like `r`, or make that one. */
static ncclResult_t add_route(struct kl_talk *talk, const struct kl_talk_route *r, int channel)
{
    struct kl_talk_route *grown;

    for (int i = 0; i < talk->nroutes; i++) {
        struct kl_talk_route *x = &talk->route[i];

        if (x->use != r->use || !same_side(&x->send, &r->send) || !same_side(&x->recv, &r->recv)) continue;
        x->channels |= (uint64_t)1 << channel;
        return ncclSuccess;
    }
    grown = realloc(talk->route, (size_t)(talk->nroutes + 1) * sizeof *grown);
    if (!grown) return KL_NOMEM("routes");
    talk->route = grown;
    grown[talk->nroutes] = *r;
    grown[talk->nroutes++].channels = (uint64_t)1 << channel;
    return ncclSuccess;
}

static ncclResult_t add_planned(const struct kl_talk_request *q, struct kl_talk *talk, int graph, int channel)
{
    struct kl_talk_route r = {.use = graph == KL_GRAPH_RING ? KL_TALK_RING : KL_TALK_TREE};

    find_planned(q, &talk->a, graph, true, channel, &r.send);
    find_planned(q, &talk->b, graph, false, channel, &r.recv);
    return add_route(talk, &r, channel);
}

static bool tree_neighbours(const struct kl_connect *c, int channel, int a, int b)
{
    struct kl_tree_neighbours t = kl_connect_tree(c, channel, a);

    return t.up == b || t.down[0] == b || t.down[1] == b || t.down[2] == b;
}

static ncclResult_t add_collectives(const struct kl_talk_request *q, struct kl_talk *talk)
{
    const struct kl_connect *c = q->plan->connect;

    for (int i = 0; i < c->nchannels; i++)
        if (kl_connect_ring(c, i, talk->a.rank).next == talk->b.rank) KL_TRY(add_planned(q, talk, KL_GRAPH_RING, i));
    for (int i = 0; i < c->nchannels; i++)
        if (tree_neighbours(c, i, talk->a.rank, talk->b.rank)) KL_TRY(add_planned(q, talk, KL_GRAPH_TREE, i));
    return ncclSuccess;
}

/* In which round of its schedule the sender meets the receiver. */
static ncclResult_t round_of(const struct kl_connect *c, int from, int to, int *round)
{
    struct kl_connect own = *c; /* the schedule is that of its rank */
    struct kl_p2p_round *rounds = calloc((size_t)c->ranks.nranks, sizeof *rounds);
    ncclResult_t rc;

    if (!rounds) return KL_NOMEM("a schedule");
    own.rank = from;
    rc = kl_p2p_schedule(&own, rounds);
    for (*round = 0; !rc && *round < c->ranks.nranks - 1 && rounds[*round].send != to;) ++*round;
    free(rounds);
    return rc;
}

static ncclResult_t add_sendrecv(const struct kl_talk_request *q, struct kl_talk *talk)
{
    const struct kl_p2p_channels *channels = &q->plan->p2p;
    int round;

    KL_TRY(round_of(q->plan->connect, talk->a.rank, talk->b.rank, &round));
    for (int part = 0; part < channels->per_peer; part++) {
        int channel = kl_p2p_channel(kl_p2p_base(q->plan->connect, round), part, channels->n);
        struct kl_talk_route r = {.use = KL_TALK_SENDRECV};

        find_sendrecv(q, &talk->a, talk->b.dev, true, channel, &r.send);
        find_sendrecv(q, &talk->b, talk->a.dev, false, channel, &r.recv);
        KL_TRY(add_route(talk, &r, channel));
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

static ncclResult_t add_way(const struct kl_talk_request *q, struct kl_talk *talk, const struct kl_talk_end *end,
                            const struct kl_talk_side *side)
{
    const struct kl_topo *t = kl_talk_topo(q->plan, end);
    int gpu = kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, end->local)), net = net_of_dev(t, side->dev);

    if (net < 0) return ncclSuccess;
    return end == &talk->a ? kl_talk_add_leg(talk, t, gpu, net, end->shift)
                           : kl_talk_add_leg(talk, t, net, gpu, end->shift);
}

ncclResult_t kl_talk_find_routes(const struct kl_talk_request *q, struct kl_talk *talk)
{
    KL_TRY(add_sendrecv(q, talk));
    KL_TRY(add_collectives(q, talk));
    KL_TRY(add_way(q, talk, &talk->a, &talk->route[0].send));
    KL_TRY(add_way(q, talk, &talk->b, &talk->route[0].recv));
    for (int i = 0; i < talk->nlegs; i++)
        if (!i || talk->leg[i].narrowest < talk->bw) talk->bw = talk->leg[i].narrowest;
    return ncclSuccess;
}
