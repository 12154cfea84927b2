/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/topo_path_json.h"

#include "plan/bottleneck.h"
#include "plan/topo_name.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/reason_json.h"
#include "answer/schema.h"
#include "topo/paths.h"

static json_t *name_json(const struct kl_topo *t, int node)
{
    char name[KL_NODE_TEXT];

    return json_string(kl_topo_name(t, node, name));
}

static json_t *links_json(const struct kl_topo *t, const struct kl_path *p)
{
    json_t *a = json_array();

    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        json_array_append_new(a, json_pack("{s:o, s:o, s:s, s:o, s:b}", "from", name_json(t, l->from), "to",
                                           name_json(t, l->to), "type", kl_link_type_name[l->type], "bw",
                                           kl_json_float(l->bw), "bottleneck", kl_path_is_bottleneck(t, p, k)));
    }
    return a;
}

static void add_gpus(json_t *o, const struct kl_topo *t, int a, int b)
{
    enum kl_shm_why shm = kl_topo_shm(t, a, b);
    struct kl_p2p p2p;
    char why[KL_WHY_TEXT];

    if (a == b || kl_topo_p2p(t, a, b, &p2p)) return;
    json_object_set_new(o, "p2p",
                        json_pack("{s:b, s:b, s:o, s:o}", "allowed", p2p.p2p, "read", p2p.read, "via",
                                  p2p.via < 0 ? json_null() : json_integer(p2p.via), "reason",
                                  kl_json_reason(kl_p2p_why_name(p2p.why), kl_p2p_why_text(&p2p, why))));
    json_object_set_new(o, "shm",
                        json_pack("{s:b, s:o}", "allowed", shm == KL_SHM_ALLOWED, "reason",
                                  kl_json_reason(kl_shm_why_name(shm), kl_shm_why_text(shm))));
}

static void add_nic(json_t *o, const struct kl_topo *t, int rank, int net, bool sends)
{
    struct kl_pxn pxn = kl_topo_pxn(t, kl_topo_gpu_of_rank(t, rank), net);
    int relay = pxn.relay < 0 ? -1 : t->node[kl_topo_at(t, KL_NODE_GPU, pxn.relay)].gpu.rank;
    struct kl_gdr gdr;

    if (!kl_topo_gdr(t, rank, net, sends, &gdr))
        json_object_set_new(o, sends ? "gdr_send" : "gdr_recv", kl_json_gdr(&gdr));
    if (sends) json_object_set_new(o, "pxn", kl_json_pxn(&pxn, relay, rank));
}

ncclResult_t kl_topo_path_json(const struct kl_topo *t, int from, int to, FILE *stream)
{
    const struct kl_path *p = kl_path(t, from, to);
    const struct kl_node *a = &t->node[from], *b = &t->node[to];
    json_t *o =
        json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:o}", "from", name_json(t, from), "to", name_json(t, to), "type",
                  kl_path_type_name[p->type], "meaning", kl_path_type_text(p->type), "bw", kl_json_float(p->bw), "rule",
                  kl_json_reason(kl_path_rule_name(p->rule), kl_path_rule_text(p->rule)), "links", links_json(t, p));

    if (a->type == KL_NODE_GPU && b->type == KL_NODE_GPU) add_gpus(o, t, a->gpu.rank, b->gpu.rank);
    if (a->type == KL_NODE_GPU && b->type == KL_NODE_NET) add_nic(o, t, a->gpu.rank, kl_topo_index(t, to), true);
    if (a->type == KL_NODE_NET && b->type == KL_NODE_GPU) add_nic(o, t, b->gpu.rank, kl_topo_index(t, from), false);
    return kl_output_answer(KL_SCHEMA_PATH, o, KL_OUTPUT_FORMAT, stream);
}
