/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"
#include "device/device.h"
#include "topo/paths.h"
#include "transport/pair.h"

/* ---- between GPUs ---- */

static struct kl_diff_relay through(const struct kl_diff_side *side, int rank)
{
    int in_a = side->to_a ? side->to_a[rank] : rank;

    return (struct kl_diff_relay){.used = true, .of_b = in_a < 0, .rank = in_a < 0 ? rank : in_a};
}

static ncclResult_t transport_of(const struct kl_diff_side *side, int x, int y, union kl_diff_value *v)
{
    int gx, gy;
    const struct kl_topo *t = kl_diff_topo(side, x, &gx);
    bool gpus = !side->cluster.cpus;
    struct kl_peer a = {.rank = x, .process = 1}, b = {.rank = y, .process = 2};
    struct kl_pair_facts facts = {.a = &a, .b = &b, .mappable = gpus || kl_host_devices.mappable};

    if (kl_diff_topo(side, y, &gy) != t) return ncclSuccess; /* different domains communicate over the network */
    KL_TRY(kl_pair_ask_topo(t, gpus, &facts));
    v->transport.by = kl_transport_first(&facts);
    if (v->transport.by == &kl_transport_p2p && facts.why.p2p.via >= 0)
        v->transport.via = through(side, facts.why.p2p.via);
    return ncclSuccess;
}

static void set_path(const struct kl_path *p, union kl_diff_value *v)
{
    v->path.type = p->type;
    v->path.bw = p->bw;
}

static ncclResult_t gpu_path_of(const struct kl_diff_side *side, int x, int y, union kl_diff_value *v)
{
    int gx, gy;
    const struct kl_topo *t = kl_diff_topo(side, x, &gx);

    v->path.type = KL_PATH_NET;
    if (kl_diff_topo(side, y, &gy) == t) set_path(kl_path_between(t, KL_NODE_GPU, gx, KL_NODE_GPU, gy), v);
    return ncclSuccess;
}

/* ---- GPU and NIC ---- */

/* A rank's NET with an id; -1 if it was trimmed or does not exist. */
static int net_of(const struct kl_topo *t, uint64_t id)
{
    int node = kl_topo_find(t, KL_NODE_NET, id);

    return node < 0 ? -1 : kl_topo_index(t, node);
}

static ncclResult_t gdr_of(const struct kl_diff_side *side, int rank, uint64_t id, union kl_diff_value *v)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);
    struct kl_gdr send, receive;

    KL_TRY(kl_topo_gdr(t, rank, net_of(t, id), true, &send));
    KL_TRY(kl_topo_gdr(t, rank, net_of(t, id), false, &receive));
    v->gdr.send = send.mode != KL_GDR_OFF;
    v->gdr.receive = receive.mode != KL_GDR_OFF;
    v->gdr.pci = receive.mode == KL_GDR_PCI;
    return ncclSuccess;
}

static ncclResult_t relay_of(const struct kl_diff_side *side, int rank, uint64_t id, union kl_diff_value *v)
{
    int gpu, relay;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    KL_TRY(kl_topo_pxn_rank(t, rank, net_of(t, id), &relay));
    if (relay != rank) v->relay = through(side, relay);
    return ncclSuccess;
}

static ncclResult_t out_path_of(const struct kl_diff_side *side, int rank, uint64_t id, union kl_diff_value *v)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    set_path(kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net_of(t, id)), v);
    return ncclSuccess;
}

static ncclResult_t in_path_of(const struct kl_diff_side *side, int rank, uint64_t id, union kl_diff_value *v)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    set_path(kl_path_between(t, KL_NODE_NET, net_of(t, id), KL_NODE_GPU, gpu), v);
    return ncclSuccess;
}

/* ---- NICs ---- */

static ncclResult_t nics_of(const struct kl_diff_side *side, int rank, union kl_diff_value *v)
{
    int gpu, first = -1, net;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    for (int c = 0; c < KL_ROW_NICS && kl_topo_needs_net(t); c++) {
        KL_TRY(kl_topo_local_net(t, gpu, c, &net));
        if (net == first) break;
        if (first < 0) first = net;
        v->nics.dev[v->nics.n++] = (int16_t)t->node[kl_topo_at(t, KL_NODE_NET, net)].net.dev;
    }
    return ncclSuccess;
}

static int dev_of(const struct kl_diff_side *side, int rank)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    return t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.dev;
}

static ncclResult_t send_of(const struct kl_diff_side *side, int rank, int peer, union kl_diff_value *v)
{
    struct kl_p2p_net out;
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    v->send.net = -1;
    if (!kl_topo_needs_net(t)) return ncclSuccess;
    KL_TRY(kl_topo_p2p_net(t, rank, dev_of(side, peer), 0, &out));
    v->send.net = t->node[kl_topo_at(t, KL_NODE_NET, out.net)].net.dev;
    if (out.proxy != rank) v->send.proxy = through(side, out.proxy);
    return ncclSuccess;
}

/* ---- tables ---- */

typedef ncclResult_t ask_gpus(const struct kl_diff_side *side, int x, int y, union kl_diff_value *v);
typedef ncclResult_t ask_net(const struct kl_diff_side *side, int rank, uint64_t net, union kl_diff_value *v);

static ncclResult_t compare_gpus(const struct kl_diff_side *a, const struct kl_diff_side *b, enum kl_diff_what what,
                                 ask_gpus *ask, struct kl_diff_rows *rows)
{
    int n = a->planned.plan->ranks_per_host;

    for (int x = 0; x < n; x++)
        for (int y = 0; y < n; y++) {
            struct kl_diff_row row = {.what = what, .from = x, .to = y};

            if (a->to_b[x] < 0 || a->to_b[y] < 0 || (x == y && what != KL_ROW_SEND)) continue;
            KL_TRY(ask(a, x, y, &row.a));
            KL_TRY(ask(b, a->to_b[x], a->to_b[y], &row.b));
            KL_TRY(kl_rows_compare(rows, &row));
        }
    return ncclSuccess;
}

static ncclResult_t compare_net(const struct kl_diff_side *a, const struct kl_diff_side *b, enum kl_diff_what what,
                                ask_net *ask, struct kl_diff_rows *rows, int x, const struct kl_node *net)
{
    struct kl_diff_row row = {.what = what, .from = x, .to = -2 - net->net.dev};
    int gpu;

    if (a->to_b[x] < 0 || net_of(kl_diff_topo(b, a->to_b[x], &gpu), net->id) < 0) return ncclSuccess;
    KL_TRY(ask(a, x, net->id, &row.a));
    KL_TRY(ask(b, a->to_b[x], net->id, &row.b));
    return kl_rows_compare(rows, &row);
}

static ncclResult_t compare_nets(const struct kl_diff_side *a, const struct kl_diff_side *b, enum kl_diff_what what,
                                 ask_net *ask, struct kl_diff_rows *rows)
{
    for (int x = 0; x < a->planned.plan->ranks_per_host; x++) {
        int gpu;
        const struct kl_topo *t = kl_diff_topo(a, x, &gpu);

        for (int n = 0; n < t->count[KL_NODE_NET]; n++)
            KL_TRY(compare_net(a, b, what, ask, rows, x, &t->node[kl_topo_at(t, KL_NODE_NET, n)]));
    }
    return ncclSuccess;
}

static ncclResult_t compare_nics(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_diff_rows *rows)
{
    for (int x = 0; x < a->planned.plan->ranks_per_host; x++) {
        struct kl_diff_row row = {.what = KL_ROW_NIC, .from = x, .to = -1};

        if (a->to_b[x] < 0) continue;
        KL_TRY(nics_of(a, x, &row.a));
        KL_TRY(nics_of(b, a->to_b[x], &row.b));
        KL_TRY(kl_rows_compare(rows, &row));
    }
    return ncclSuccess;
}

ncclResult_t kl_diff_compare_rules(const struct kl_diff_side *a, const struct kl_diff_side *b,
                                   struct kl_diff_rows *rows)
{
    KL_TRY(compare_gpus(a, b, KL_ROW_TRANSPORT, transport_of, rows));
    KL_TRY(compare_nets(a, b, KL_ROW_RELAY, relay_of, rows));
    KL_TRY(compare_nets(a, b, KL_ROW_GDR, gdr_of, rows));
    KL_TRY(compare_gpus(a, b, KL_ROW_GPU_GPU, gpu_path_of, rows));
    KL_TRY(compare_nets(a, b, KL_ROW_GPU_NET, out_path_of, rows));
    KL_TRY(compare_nets(a, b, KL_ROW_NET_GPU, in_path_of, rows));
    KL_TRY(compare_nics(a, b, rows));
    if (a->planned.plan->hosts > 1) KL_TRY(compare_gpus(a, b, KL_ROW_SEND, send_of, rows));
    return ncclSuccess;
}
