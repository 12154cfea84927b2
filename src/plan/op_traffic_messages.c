/* SPDX-License-Identifier: Apache-2.0 */
/**
 * op_traffic_messages.c - the bytes of sends with their receives: each message is cut evenly over the channels of its peer, and each
 * channel has NICs of its own.
 */
#include "plan/op_traffic.h"

#include "base/error.h"
#include "topo/paths.h"

#include <stdlib.h>

struct messenger {
    struct kl_op_traffic_sum *sum;
    const struct kl_plan *plan;
    struct kl_p2p_round *round; /* of `rank` */
    int rank;
};

static int host_of(const struct messenger *m, int rank)
{
    return rank / m->plan->ranks_per_host;
}

static int domain_of(const struct messenger *m, int rank)
{
    return m->plan->domain_of[rank % m->plan->ranks_per_host];
}

static const struct kl_topo *topo_of(const struct messenger *m, int rank)
{
    return m->plan->domain[domain_of(m, rank)].topo;
}

static int gpu_of(const struct messenger *m, int rank)
{
    return kl_topo_gpu_of_rank(topo_of(m, rank), rank % m->plan->ranks_per_host);
}

static int dev_of(const struct messenger *m, int rank)
{
    const struct kl_topo *t = topo_of(m, rank);

    return t->node[kl_topo_at(t, KL_NODE_GPU, gpu_of(m, rank))].gpu.dev;
}

/* A path within the host of a rank. */
static void add_path(struct messenger *m, int rank, const struct kl_path *path, int64_t bytes)
{
    struct kl_op_traffic_link *link = &m->sum->all.link[(size_t)host_of(m, rank) * (size_t)m->sum->per_host];

    for (int d = 0; d < domain_of(m, rank); d++) link += m->plan->domain[d].topo->nlinks;
    for (int i = 0; i < path->hops; i++) link[kl_path_hops(topo_of(m, rank), path)[i]].wire += bytes;
}

static void add_flow(struct kl_op_traffic_flow *f, int way, int64_t bytes, int64_t times)
{
    f->payload[way] += bytes;
    f->wire[way] += bytes;
    f->messages[way] += times;
}

/* The NIC of one end for a channel, with the way to it; a sender may pass data on through the GPU beside the NIC. NULL: none. */
static struct kl_op_traffic_nic *end_nic(struct messenger *m, int rank, int peer, bool sends, int channel,
                                         int64_t bytes, int64_t times)
{
    const struct kl_topo *t = topo_of(m, rank);
    const int quiet = kl_error_quiet(1), own = rank % m->plan->ranks_per_host, gpu = gpu_of(m, rank);
    struct kl_p2p_net p;
    const ncclResult_t rc = kl_topo_p2p_net(t, own, dev_of(m, sends ? peer : rank), channel, &p);

    kl_error_quiet(quiet);
    if (rc) return NULL;
    const int beside = sends ? kl_topo_gpu_of_rank(t, p.proxy) : gpu;

    if (beside != gpu) add_path(m, rank, kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_GPU, beside), bytes);
    add_path(m, rank,
             sends ? kl_path_between(t, KL_NODE_GPU, beside, KL_NODE_NET, p.net)
                   : kl_path_between(t, KL_NODE_NET, p.net, KL_NODE_GPU, gpu),
             bytes);
    struct kl_op_traffic_nic *nic =
        kl_op_traffic_nic_at(&m->sum->all, host_of(m, rank), t->node[kl_topo_at(t, KL_NODE_NET, p.net)].net.dev);

    if (nic) add_flow(&nic->flow, !sends, bytes, times);
    return nic;
}

/* The round in which a rank sends to a peer; ranks come in ascending order, so that each schedule is made once. */
static ncclResult_t round_of(struct messenger *m, int from, int to, int *round)
{
    if (m->rank != from) {
        struct kl_connect own = *m->plan->connect; /* the schedule of its own rank */

        own.rank = m->rank = from;
        KL_TRY(kl_p2p_schedule(&own, m->round));
    }
    for (*round = 0; *round < m->plan->nranks - 1 && m->round[*round].send != to;) ++*round;
    return ncclSuccess;
}

static ncclResult_t through_channel(struct messenger *m, const struct kl_op_traffic_message *x, int channel,
                                    int64_t bytes)
{
    const struct kl_op_traffic_nic *a = end_nic(m, x->from, x->to, true, channel, bytes, x->times),
                                   *b = end_nic(m, x->to, x->from, false, channel, bytes, x->times);

    if (!a || !b) return ncclSuccess;
    if (a->dev != b->dev) m->sum->all.across_rails += bytes;
    return kl_op_traffic_add_rail(&m->sum->all, a->dev, b->dev, bytes);
}

static ncclResult_t through_network(struct messenger *m, const struct kl_op_traffic_message *x, int64_t bytes)
{
    const struct kl_p2p_channels *c = &m->plan->p2p;
    const int from = host_of(m, x->from), to = host_of(m, x->to), parts = c->per_peer > 0 ? c->per_peer : 1;
    struct kl_op_traffic *l = &m->sum->all;
    int round;

    add_flow(&l->host[from], 0, bytes, x->times);
    add_flow(&l->host[to], 1, bytes, x->times);
    l->across_hosts += bytes;
    if (m->sum->pod) KL_TRY(kl_op_traffic_add_flight(l, from, to, bytes));
    if (m->sum->pod && m->sum->pod[from] != m->sum->pod[to]) l->across_pods += bytes;
    KL_TRY(round_of(m, x->from, x->to, &round));
    for (int part = 0; part < parts; part++) {
        const int64_t share = bytes / parts + (part < bytes % parts);

        if (share)
            KL_TRY(through_channel(m, x, kl_p2p_channel(kl_p2p_base(m->plan->connect, round), part, c->n, c->nccl),
                                   share));
    }
    return ncclSuccess;
}

static ncclResult_t add_message(struct messenger *m, const struct kl_op_traffic_message *x)
{
    struct kl_op_traffic *l = &m->sum->all;
    int64_t bytes;

    if (__builtin_mul_overflow(x->bytes, x->times, &bytes) || bytes > INT64_MAX / 4 - l->wire)
        return KL_FAIL(ncclInvalidUsage, "messages from rank %d to rank %d: too many bytes to count", x->from, x->to);
    if (x->from == x->to) return ncclSuccess; /* stays in the GPU */
    l->payload += bytes;
    l->wire += bytes;
    l->messages += x->times;
    if (host_of(m, x->from) != host_of(m, x->to) || domain_of(m, x->from) != domain_of(m, x->to))
        return through_network(m, x, bytes);
    add_path(m, x->from,
             kl_path_between(topo_of(m, x->from), KL_NODE_GPU, gpu_of(m, x->from), KL_NODE_GPU, gpu_of(m, x->to)),
             bytes);
    return ncclSuccess;
}

ncclResult_t kl_op_traffic_sum_messages(struct kl_op_traffic_sum *s, const struct kl_plan *whole,
                                        const struct kl_op_traffic_message *message, int n)
{
    struct messenger m = {.sum = s, .plan = whole, .rank = -1};
    ncclResult_t rc = ncclSuccess;

    m.round = calloc((size_t)whole->nranks + 1, sizeof *m.round);
    if (!m.round) return KL_NOMEM("a schedule of messages");
    for (int i = 0; !rc && i < n; i++) rc = add_message(&m, &message[i]);
    free(m.round);
    return rc;
}
