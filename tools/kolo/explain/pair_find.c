/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/pair.h"

#include "base/error.h"
#include "plan/net_name.h"
#include "plan/topo_name.h"
#include "tools/kolo/topo_text.h"
#include "transport/pair.h"

#include <stdlib.h>
#include <string.h>

const struct kl_topo *kl_talk_topo(const struct kl_plan *plan, const struct kl_talk_end *end)
{
    int shift;

    return kl_plan_domain_of(plan, end->rank, &shift)->topo;
}

void kl_talk_free(struct kl_talk *talk)
{
    for (int i = 0; i < talk->nlegs; i++) free(talk->leg[i].link);
    free(talk->route);
    talk->nlegs = talk->nroutes = 0;
    talk->route = NULL;
}

/* ---- the way ---- */

static char *name_of(const struct kl_topo *t, int node, int shift, char text[KL_NODE_TEXT])
{
    const struct kl_node *n = &t->node[node];

    if (n->type != KL_NODE_GPU) return kl_topo_name(t, node, text);
    snprintf(text, KL_NODE_TEXT, "GPU/%d", n->gpu.rank + shift);
    return text;
}

ncclResult_t kl_talk_add_leg(struct kl_talk *talk, const struct kl_topo *t, int from, int to, int shift)
{
    const struct kl_path *p = kl_path(t, from, to);
    struct kl_talk_leg *leg = &talk->leg[talk->nlegs];

    leg->link = calloc((size_t)p->hops + 1, sizeof *leg->link);
    if (!leg->link) return KL_NOMEM("a path");
    talk->nlegs++;
    name_of(t, from, shift, leg->from);
    name_of(t, to, shift, leg->to);
    leg->type = p->type;
    leg->rule = p->rule;
    leg->bw = p->bw;
    leg->nlinks = p->type == KL_PATH_DIS ? 0 : p->hops; /* what a rule sent over a CPU may end there */
    leg->narrowest = leg->nlinks ? kl_topo_narrowest(t, p) : p->bw;
    for (int k = 0; k < leg->nlinks; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        name_of(t, l->from, shift, leg->link[k].from);
        name_of(t, l->to, shift, leg->link[k].to);
        leg->link[k].type = kl_link_type_name[l->type];
        leg->link[k].bw = l->bw;
        leg->link[k].bottleneck = kl_topo_is_bottleneck(t, p, k);
    }
    return ncclSuccess;
}

static int gpu_node(const struct kl_topo *t, const struct kl_talk_end *end)
{
    return kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, end->local));
}

/* ---- transports ---- */

/* A rank as the transports see it. What the plan shifts alike is one host, or one NVLink domain of several. */
static struct kl_peer peer_of(const struct kl_talk_end *end, uint64_t process)
{
    return (struct kl_peer){
        .rank = end->local, .host = (uint64_t)end->shift, .memory = (uint64_t)end->shift, .process = process};
}

/* The code of a refusal: of the topology's reason if it is that, else of the transport's own. */
static const char *code_of(const struct kl_pair_facts *facts, const struct kl_pair_why *why, const char *refusal)
{
    if (!refusal) return "allowed";
    if (refusal == facts->p2p_refusal) return kl_p2p_why_name(why->p2p.why);
    if (refusal == facts->shm_refusal) return kl_shm_why_name(why->shm);
    return facts->a->host != facts->b->host ? "other_host" : "not_mappable";
}

static void describe_p2p(const struct kl_talk *talk, const struct kl_p2p *p2p, struct kl_reason *why)
{
    struct kl_text t = kl_text_over(why->text, sizeof why->text);
    char text[KL_WHY_TEXT];

    kl_text_add(&t, "%s", kl_p2p_why_text(p2p, text));
    if (talk->read) kl_text_add(&t, "; reading is preferred to writing");
}

static void add_transport(struct kl_talk *talk, const char *name, const char *code, const char *refusal)
{
    struct kl_talk_transport *x = &talk->transport[talk->ntransports++];

    *x = (struct kl_talk_transport){.name = name, .refuses = refusal != NULL, .why.code = code};
    x->chosen = !refusal && talk->answer == KL_TALK_NOTHING;
    if (x->chosen) talk->answer = KL_TALK_TRANSPORT;
    snprintf(x->why.text, sizeof x->why.text, "%s", refusal ? refusal : "");
}

/* Ask the library's transports in their order. Offline each rank is a process; GPUs can map memory of others. */
static void ask_transports(struct kl_talk *talk, const struct kl_pair_facts *facts, const struct kl_pair_why *why)
{
    for (int i = 0; kl_transports[i] && i < KL_TALK_TRANSPORTS - 1; i++) {
        const char *refusal = kl_transports[i]->refuses(facts);
        struct kl_talk_transport *x = &talk->transport[talk->ntransports];

        add_transport(talk, kl_transports[i]->name, code_of(facts, why, refusal), refusal);
        if (refusal) continue;
        if (kl_transports[i] == &kl_transport_p2p)
            describe_p2p(talk, &why->p2p, &x->why);
        else
            snprintf(x->why.text, sizeof x->why.text, "%s", kl_shm_why_text(why->shm));
    }
}

/* The network joins what nothing else does, if both have a NIC. */
static void ask_network(const struct kl_talk_request *q, struct kl_talk *talk)
{
    bool nics =
        kl_talk_topo(q->plan, &talk->a)->count[KL_NODE_NET] && kl_talk_topo(q->plan, &talk->b)->count[KL_NODE_NET];

    if (talk->answer != KL_TALK_NOTHING) return;
    add_transport(talk, "NET", nics ? "allowed" : "no_nic", nics ? NULL : "this machine has no NIC");
    if (!nics) return;
    talk->answer = KL_TALK_NETWORK;
    snprintf(talk->transport[talk->ntransports - 1].why.text, KL_REASON_TEXT, "%s",
             talk->gpus ? "joins what nothing else does"
                        : "is planned only: communicators join the ranks of one host so far");
}

/* What Kolo's own devices, which are CPUs, would use between two ranks of a host; NULL: nothing. */
static const char *live_transport(struct kl_pair_facts *facts)
{
    facts->mappable = false;
    const struct kl_transport *first = kl_transport_first(facts);
    return first ? first->name : NULL;
}

static ncclResult_t ask_live(const struct kl_topo *t, struct kl_talk *talk)
{
    struct kl_peer a = peer_of(&talk->a, 1), b = peer_of(&talk->b, 2);
    struct kl_pair_facts facts = {.a = &a, .b = &b};
    struct kl_pair_why why;

    KL_TRY(kl_pair_ask_topo(t, false, &facts, &why));
    talk->processes = live_transport(&facts);
    b.process = a.process;
    talk->threads = live_transport(&facts);
    return ncclSuccess;
}

/* ---- between GPUs ---- */

/* A topology with both GPUs: what both work with, else all of their host. NULL: they are in different hosts. */
static const struct kl_topo *common_topo(const struct kl_talk_request *q, const struct kl_talk *talk)
{
    const struct kl_topo *t = kl_talk_topo(q->plan, &talk->a);

    if (talk->a.shift != talk->b.shift) return NULL;
    return t == kl_talk_topo(q->plan, &talk->b) ? t : q->whole;
}

static ncclResult_t ask_all(const struct kl_talk_request *q, const struct kl_topo *common, struct kl_talk *talk)
{
    struct kl_peer a = peer_of(&talk->a, 1), b = peer_of(&talk->b, 2);
    struct kl_pair_facts facts = {.a = &a, .b = &b, .mappable = talk->gpus};
    struct kl_pair_why why = {.p2p.via = -1};

    if (common) KL_TRY(kl_pair_ask_topo(common, talk->gpus, &facts, &why));
    talk->via = why.p2p.via < 0 ? -1 : why.p2p.via + talk->a.shift;
    talk->read = why.p2p.read;
    ask_transports(talk, &facts, &why);
    if (common && talk->a.host == talk->b.host) KL_TRY(ask_live(common, talk));
    ask_network(q, talk);
    return ncclSuccess;
}

ncclResult_t kl_talk_find(const struct kl_talk_request *q, struct kl_talk *talk)
{
    const struct kl_topo *common = common_topo(q, talk);

    talk->answer = KL_TALK_NOTHING;
    KL_TRY(ask_all(q, common, talk));
    if (talk->answer == KL_TALK_NETWORK) return kl_talk_find_routes(q, talk);
    if (!common) return ncclSuccess;
    KL_TRY(kl_talk_add_leg(talk, common, gpu_node(common, &talk->a), gpu_node(common, &talk->b), talk->a.shift));
    talk->bw = talk->leg[0].narrowest;
    return ncclSuccess;
}

/* ---- between a GPU and a NIC ---- */

static void judge_gdr(const struct kl_gdr *answer, int shift, struct kl_reason *why)
{
    struct kl_gdr gdr = *answer;

    gdr.rank += shift;
    why->code = kl_gdr_why_name(gdr.why);
    kl_gdr_why_text(&gdr, why->text);
}

/* Which NIC the GPU uses, if this is none of its own. */
static ncclResult_t find_own(const struct kl_talk_request *q, const struct kl_topo *t, int gpu, int net,
                             struct kl_talk *talk)
{
    int *list = malloc(((size_t)t->count[KL_NODE_NET] + 1) * sizeof *list), n = 0;
    ncclResult_t rc = list ? kl_topo_net_list(t, -1, gpu, list, &n) : KL_NOMEM("a list of NETs");

    for (int i = 0; !rc && i < n; i++) talk->own |= list[i] == net;
    if (!rc && !talk->own && n) {
        int dev = t->node[kl_topo_at(t, KL_NODE_NET, list[0])].net.dev;
        const char *label = kl_net_name(q->document, dev);

        snprintf(talk->instead, sizeof talk->instead, *label ? "NET/%d (%.60s)" : "NET/%d", dev, label);
    }
    free(list);
    return rc;
}

/* The topology that the GPU's rank works with, if a plan left it the NIC; else its whole host. */
static const struct kl_topo *topo_with_nic(const struct kl_talk_request *q, const struct kl_talk_end *gpu,
                                           const struct kl_talk_end *nic, int *net)
{
    const struct kl_topo *own = kl_talk_topo(q->plan, gpu);
    int node = kl_topo_find(own, KL_NODE_NET, q->whole->node[kl_topo_at(q->whole, KL_NODE_NET, nic->local)].id);

    *net = node < 0 ? nic->local : kl_topo_index(own, node);
    return node < 0 ? q->whole : own;
}

ncclResult_t kl_talk_find_nic(const struct kl_talk_request *q, struct kl_talk *talk)
{
    bool sends = talk->a.type == KL_NODE_GPU;
    const struct kl_talk_end *g = sends ? &talk->a : &talk->b, *n = sends ? &talk->b : &talk->a;
    int net;
    const struct kl_topo *t = topo_with_nic(q, g, n, &net);
    int gpu = kl_topo_gpu_of_rank(t, g->local), gpu_at = kl_topo_at(t, KL_NODE_GPU, gpu);
    int net_at = kl_topo_at(t, KL_NODE_NET, net);
    struct kl_pxn pxn = kl_topo_pxn(t, gpu, net);
    int relay = pxn.relay < 0 ? -1 : t->node[kl_topo_at(t, KL_NODE_GPU, pxn.relay)].gpu.rank + g->shift;

    talk->answer = KL_TALK_NIC;
    KL_TRY(kl_topo_gdr(t, g->local, net, true, &talk->gdr_send));
    KL_TRY(kl_topo_gdr(t, g->local, net, false, &talk->gdr_recv));
    judge_gdr(&talk->gdr_send, g->shift, &talk->gdr_send_why);
    judge_gdr(&talk->gdr_recv, g->shift, &talk->gdr_recv_why);
    talk->relay = pxn.why == KL_PXN_USED ? relay : g->rank;
    talk->pxn_why.code = kl_pxn_why_name(pxn.why);
    kl_pxn_why_text(pxn.why, relay, talk->pxn_why.text);
    if (kl_path(t, gpu_at, net_at)->type < KL_PATH_NET) KL_TRY(find_own(q, t, gpu, net, talk));
    KL_TRY(kl_talk_add_leg(talk, t, sends ? gpu_at : net_at, sends ? net_at : gpu_at, g->shift));
    talk->bw = talk->leg[0].narrowest;
    return ncclSuccess;
}
