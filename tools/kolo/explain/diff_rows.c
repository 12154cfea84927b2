/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff.h"

#include "base/error.h"
#include "base/text.h"
#include "topo/paths.h"
#include "transport/pair.h"

#include <stdlib.h>
#include <string.h>

const char *const kl_stage_name[KL_STAGES] = {"rules", "paths", "graphs", "NICs", "channels", "tuning"};

const struct kl_row_kind kl_row_kinds[KL_ROW_WHATS] = {
    [KL_ROW_TRANSPORT] = {"transport", KL_STAGE_RULES, NULL, NULL, NULL, true, "transports", "transports between GPUs"},
    [KL_ROW_RELAY] = {"relay", KL_STAGE_RULES, NULL, NULL, NULL, true, "who serves the NIC (PXN)", "PXN answers"},
    [KL_ROW_GDR] = {"gdr", KL_STAGE_RULES, NULL, NULL, NULL, true, "GPUDirect RDMA", "GPUDirect answers"},
    [KL_ROW_GPU_GPU] = {"gpu_gpu", KL_STAGE_PATHS, "type", "bw", "GB/s", true, "paths from GPU to GPU",
                        "paths from GPU to GPU"},
    [KL_ROW_GPU_NET] = {"gpu_net", KL_STAGE_PATHS, "type", "bw", "GB/s", true, "paths from GPU to NIC",
                        "paths from GPU to NIC"},
    [KL_ROW_NET_GPU] = {"net_gpu", KL_STAGE_PATHS, "type", "bw", "GB/s", true, "paths from NIC to GPU",
                        "paths from NIC to GPU"},
    [KL_ROW_GRAPH] = {"graph", KL_STAGE_GRAPHS, NULL, NULL, "", false, "graphs", "numbers of graphs"},
    [KL_ROW_ORDER] = {"order", KL_STAGE_GRAPHS, NULL, NULL, NULL, false, "orders of channels", "orders of channels"},
    [KL_ROW_NIC] = {"nic", KL_STAGE_NICS, NULL, NULL, NULL, true, "NICs of GPUs", "NICs of GPUs"},
    [KL_ROW_SEND] = {"send", KL_STAGE_NICS, NULL, NULL, NULL, true, "sends to GPUs of another host",
                     "sends to other hosts"},
    [KL_ROW_CHANNELS] = {"channels", KL_STAGE_CHANNELS, NULL, NULL, "", false, "channels", "counts of channels"},
    [KL_ROW_TUNING] = {"tuning", KL_STAGE_TUNING, "choice", "time_us", "us", false, "predicted times",
                       "predicted times"},
};

/* ---- the list ---- */

static bool same_value(const struct kl_diff_value *a, const struct kl_diff_value *b)
{
    return !strcmp(a->text, b->text) && a->digest == b->digest && a->has_number == b->has_number &&
           (!a->has_number || a->number == b->number);
}

ncclResult_t kl_rows_compare(struct kl_diff_rows *rows, int what, const char *subject, int from, int to,
                             const struct kl_diff_value *a, const struct kl_diff_value *b)
{
    rows->compared[what]++;
    if (same_value(a, b)) return ncclSuccess;
    if (++rows->changed[what] > KL_ROWS_LISTED) return ncclSuccess;
    if (rows->nrows == rows->max_rows) {
        int max = rows->max_rows ? 2 * rows->max_rows : 64;
        struct kl_diff_row *grown = realloc(rows->row, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("differences");
        rows->row = grown;
        rows->max_rows = max;
    }
    struct kl_diff_row *r = &rows->row[rows->nrows++];

    *r = (struct kl_diff_row){.what = what, .from = from, .to = to, .a = *a, .b = *b};
    snprintf(r->subject, sizeof r->subject, "%s", subject);
    return ncclSuccess;
}

/* Equal but for digits behind a slash. */
static bool alike(const char *x, const char *y)
{
    for (; *x || *y; x++, y++) {
        if (*x != *y) return false;
        if (*x != '/') continue;
        x += strspn(x + 1, "0123456789");
        y += strspn(y + 1, "0123456789");
    }
    return true;
}

bool kl_rows_alike(const struct kl_diff_row *r, const struct kl_diff_row *s)
{
    return r->what == s->what && r->a.number == s->a.number && r->b.number == s->b.number &&
           alike(r->a.text, s->a.text) && alike(r->b.text, s->b.text);
}

const char *kl_diff_number(float number, char text[24])
{
    snprintf(text, 24, number >= 1000 && number < 1e9f ? "%.0f" : "%.4g", (double)number);
    return text;
}

const struct kl_topo *kl_diff_topo(const struct kl_diff_side *side, int rank, int *gpu)
{
    const struct kl_plan *p = side->planned.plan;
    const struct kl_topo *t = p->domain[p->domain_of[rank]].topo;

    *gpu = kl_topo_gpu_of_rank(t, rank);
    return t;
}

/* ---- between GPUs ---- */

/* A rank of the side, in the names of A. */
static int rank_in_a(const struct kl_diff_side *side, int rank)
{
    return side->to_a ? side->to_a[rank] : rank;
}

static ncclResult_t transport_of(const struct kl_diff_side *side, int x, int y, struct kl_diff_value *v)
{
    int gx, gy;
    const struct kl_topo *t = kl_diff_topo(side, x, &gx);
    bool gpus = !side->cluster.cpus; /* CPUs cannot map memory of other processes */
    struct kl_peer a = {.rank = x, .process = 1}, b = {.rank = y, .process = 2};
    struct kl_pair_facts facts = {.a = &a, .b = &b, .mappable = gpus};
    struct kl_pair_why why;

    snprintf(v->text, sizeof v->text, "NET");
    if (kl_diff_topo(side, y, &gy) != t) return ncclSuccess; /* different domains meet in the network */
    KL_TRY(kl_pair_ask_topo(t, gpus, &facts, &why));
    const struct kl_transport *first = kl_transport_first(&facts);

    if (first && first == &kl_transport_p2p && why.p2p.via >= 0)
        snprintf(v->text, sizeof v->text, "P2P through GPU/%d", rank_in_a(side, why.p2p.via));
    else if (first)
        snprintf(v->text, sizeof v->text, "%s", first->name);
    return ncclSuccess;
}

static void say_path(const struct kl_path *p, struct kl_diff_value *v)
{
    snprintf(v->text, sizeof v->text, "%s", kl_path_type_name[p->type]);
    v->has_number = p->bw > 0;
    v->number = p->bw;
}

static ncclResult_t gpu_path_of(const struct kl_diff_side *side, int x, int y, struct kl_diff_value *v)
{
    int gx, gy;
    const struct kl_topo *t = kl_diff_topo(side, x, &gx);

    snprintf(v->text, sizeof v->text, "%s", kl_path_type_name[KL_PATH_NET]);
    if (kl_diff_topo(side, y, &gy) == t) say_path(kl_path_between(t, KL_NODE_GPU, gx, KL_NODE_GPU, gy), v);
    return ncclSuccess;
}

/* ---- GPU and NIC ---- */

/* The NET with an id as a rank sees it; -1 if it has been trimmed or is not there. */
static int net_of(const struct kl_topo *t, uint64_t id)
{
    int node = kl_topo_find(t, KL_NODE_NET, id);

    return node < 0 ? -1 : kl_topo_index(t, node);
}

static ncclResult_t gdr_of(const struct kl_diff_side *side, int rank, uint64_t id, struct kl_diff_value *v)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);
    struct kl_gdr send, receive;

    KL_TRY(kl_topo_gdr(t, rank, net_of(t, id), true, &send));
    KL_TRY(kl_topo_gdr(t, rank, net_of(t, id), false, &receive));
    snprintf(v->text, sizeof v->text, "%s%s",
             send.mode && receive.mode ? "yes"
             : receive.mode            ? "only to receive"
             : send.mode               ? "only to send"
                                       : "no",
             receive.mode == KL_GDR_PCI ? ", mapped over PCI" : "");
    return ncclSuccess;
}

static ncclResult_t relay_of(const struct kl_diff_side *side, int rank, uint64_t id, struct kl_diff_value *v)
{
    int gpu, relay;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    KL_TRY(kl_topo_pxn_rank(t, rank, net_of(t, id), &relay));
    if (relay == rank)
        snprintf(v->text, sizeof v->text, "direct");
    else
        snprintf(v->text, sizeof v->text, "through GPU/%d", rank_in_a(side, relay));
    return ncclSuccess;
}

static ncclResult_t out_path_of(const struct kl_diff_side *side, int rank, uint64_t id, struct kl_diff_value *v)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    say_path(kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net_of(t, id)), v);
    return ncclSuccess;
}

static ncclResult_t in_path_of(const struct kl_diff_side *side, int rank, uint64_t id, struct kl_diff_value *v)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    say_path(kl_path_between(t, KL_NODE_NET, net_of(t, id), KL_NODE_GPU, gpu), v);
    return ncclSuccess;
}

/* ---- NICs ---- */

static ncclResult_t nics_of(const struct kl_diff_side *side, int rank, struct kl_diff_value *v)
{
    struct kl_text text = kl_text_over(v->text, sizeof v->text);
    int gpu, first = -1, net;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    for (int c = 0; c < KL_MAX_CHANNELS && t->count[KL_NODE_NET]; c++) {
        KL_TRY(kl_topo_local_net(t, gpu, c, &net));
        if (net == first) break;
        if (first < 0) first = net;
        kl_text_add(&text, "%sNET/%d", c ? " " : "", t->node[kl_topo_at(t, KL_NODE_NET, net)].net.dev);
    }
    if (!text.length) kl_text_add(&text, "none");
    return ncclSuccess;
}

static int dev_of(const struct kl_diff_side *side, int rank)
{
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    return t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.dev;
}

static ncclResult_t send_of(const struct kl_diff_side *side, int rank, int peer, struct kl_diff_value *v)
{
    struct kl_p2p_net out;
    int gpu;
    const struct kl_topo *t = kl_diff_topo(side, rank, &gpu);

    snprintf(v->text, sizeof v->text, "none");
    if (!t->count[KL_NODE_NET]) return ncclSuccess;
    KL_TRY(kl_topo_p2p_net(t, rank, dev_of(side, peer), 0, &out));
    snprintf(v->text, sizeof v->text, "NET/%d%s", t->node[kl_topo_at(t, KL_NODE_NET, out.net)].net.dev,
             out.proxy == rank ? "" : " through");
    if (out.proxy != rank) snprintf(v->text + strlen(v->text), 24, " GPU/%d", rank_in_a(side, out.proxy));
    return ncclSuccess;
}

/* ---- tables ---- */

typedef ncclResult_t ask_gpus(const struct kl_diff_side *side, int x, int y, struct kl_diff_value *v);
typedef ncclResult_t ask_net(const struct kl_diff_side *side, int rank, uint64_t net, struct kl_diff_value *v);

static ncclResult_t compare_gpus(const struct kl_diff_side *a, const struct kl_diff_side *b, int what, ask_gpus *ask,
                                 struct kl_diff_rows *rows)
{
    int n = a->planned.plan->ranks_per_host;

    for (int x = 0; x < n; x++)
        for (int y = 0; y < n; y++) {
            struct kl_diff_value va = {.text = ""}, vb = {.text = ""};
            char subject[48];

            if (a->to_b[x] < 0 || a->to_b[y] < 0 || (x == y && what != KL_ROW_SEND)) continue;
            KL_TRY(ask(a, x, y, &va));
            KL_TRY(ask(b, a->to_b[x], a->to_b[y], &vb));
            snprintf(subject, sizeof subject, "GPU/%d to GPU/%d", x, y);
            KL_TRY(kl_rows_compare(rows, what, subject, x, y, &va, &vb));
        }
    return ncclSuccess;
}

static ncclResult_t compare_net(const struct kl_diff_side *a, const struct kl_diff_side *b, int what, ask_net *ask,
                                struct kl_diff_rows *rows, int x, const struct kl_node *net)
{
    struct kl_diff_value va = {.text = ""}, vb = {.text = ""};
    char subject[48];
    int gpu;

    if (a->to_b[x] < 0 || net_of(kl_diff_topo(b, a->to_b[x], &gpu), net->id) < 0) return ncclSuccess;
    KL_TRY(ask(a, x, net->id, &va));
    KL_TRY(ask(b, a->to_b[x], net->id, &vb));
    if (what == KL_ROW_NET_GPU)
        snprintf(subject, sizeof subject, "NET/%d to GPU/%d", net->net.dev, x);
    else
        snprintf(subject, sizeof subject, "GPU/%d to NET/%d", x, net->net.dev);
    return kl_rows_compare(rows, what, subject, x, -2 - net->net.dev, &va, &vb);
}

static ncclResult_t compare_nets(const struct kl_diff_side *a, const struct kl_diff_side *b, int what, ask_net *ask,
                                 struct kl_diff_rows *rows)
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
        struct kl_diff_value va = {.text = ""}, vb = {.text = ""};
        char subject[48];

        if (a->to_b[x] < 0) continue;
        KL_TRY(nics_of(a, x, &va));
        KL_TRY(nics_of(b, a->to_b[x], &vb));
        snprintf(subject, sizeof subject, "GPU/%d", x);
        KL_TRY(kl_rows_compare(rows, KL_ROW_NIC, subject, x, -1, &va, &vb));
    }
    return ncclSuccess;
}

ncclResult_t kl_diff_rules(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_diff_rows *rows)
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
