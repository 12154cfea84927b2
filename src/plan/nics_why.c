/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/nics_make.h"

#include "base/error.h"
#include "plan/net_name.h"
#include "topo/netdistance.h"

#include <stdlib.h>

static const struct kl_node *net_at(const struct kl_topo *t, int net)
{
    return &t->node[kl_topo_at(t, KL_NODE_NET, net)];
}

/* ---- NICs that count as one ---- */

static void find_same(const struct kl_topo *t, struct kl_nics *n)
{
    for (int i = 0; i < n->nnics; i++)
        for (int k = 0; k < n->nnics; k++) {
            if (!kl_net_same_port(net_at(t, n->nic[i].net), net_at(t, n->nic[k].net))) continue;
            if (!n->nic[i].nsame++) n->nic[i].same_as = n->nic[k].dev;
        }
}

static void find_bad_guids(const struct kl_xml *document, int nccl, struct kl_nics *n)
{
    for (int i = 0; i < n->nnics; i++) {
        int elem = kl_net_elem(document, n->nic[i].dev);
        const char *guid = elem == KL_XML_NONE ? NULL : kl_xml_attr(document, elem, "guid");

        n->bad_guids |= guid && !kl_net_guid_counts(guid, nccl);
    }
}

/* ---- NICs that could be one ---- */

static ncclResult_t add_near(struct kl_nics *n, int a, int b, int distance)
{
    struct kl_nic_near *grown = realloc(n->near, (size_t)(n->nnear + 1) * sizeof *grown);

    if (!grown) return KL_NOMEM("NICs");
    n->near = grown;
    grown[n->nnear++] = (struct kl_nic_near){n->nic[a].dev, n->nic[b].dev, distance};
    return ncclSuccess;
}

/* Virtual NICs without a card have no meaningful distance. */
static bool on_card(const struct kl_xml *document, int elem)
{
    int card = kl_xml_parent(document, elem);

    return card != KL_XML_NONE && kl_xml_attr(document, kl_xml_parent(document, card), "busid");
}

/* Each NIC with the first one that it could be merged with. */
static ncclResult_t find_near(const struct kl_nics_source *q, struct kl_nics *n)
{
    for (int b = 1; b < n->nnics; b++)
        for (int a = 0; a < b; a++) {
            int common, x = kl_net_elem(q->document, n->nic[a].dev), y = kl_net_elem(q->document, n->nic[b].dev);

            if (x == KL_XML_NONE || y == KL_XML_NONE || x == y) continue;
            if (!on_card(q->document, x) || !on_card(q->document, y)) continue;
            int distance = kl_net_distance(q->document, x, y, &common);
            if (distance > n->merge_level) continue;
            KL_TRY(add_near(n, a, b, distance));
            break;
        }
    return ncclSuccess;
}

static ncclResult_t find_merges(const struct kl_nics_source *q, struct kl_nics *n)
{
    n->merge = kl_net_merge_why(&q->cluster->machine);
    return n->merge_level > KL_PATH_LOC ? find_near(q, n) : ncclSuccess;
}

/* ---- NICs that are not used ---- */

static void compare(const struct kl_topo *t, int net, const struct kl_net_usage *usage, struct kl_nic_idle *idle)
{
    const struct kl_path *here = kl_path_between(t, KL_NODE_GPU, usage->gpu, KL_NODE_NET, net);
    const struct kl_path *there = kl_path_between(t, KL_NODE_GPU, usage->gpu, KL_NODE_NET, usage->instead);

    idle->rank = t->node[kl_topo_at(t, KL_NODE_GPU, usage->gpu)].gpu.rank;
    idle->here_type = here->type;
    idle->here_bw = here->bw;
    idle->there = net_at(t, usage->instead)->net.dev;
    idle->there_type = there->type;
    idle->there_bw = there->bw;
}

/* A GPU's own, but the searches did not need it. */
static void explain_chosen(const struct kl_nic *nic, struct kl_nic_idle *idle)
{
    idle->why = nic->nsame > 1 ? KL_NIC_SAME_PORT : KL_NIC_NO_CHANNEL;
    idle->first = nic->same_as == nic->dev ? -1 : nic->same_as;
    idle->others = nic->nsame - 1;
}

static ncclResult_t explain(const struct kl_topo *t, const struct kl_nics *n, struct kl_nic *nic)
{
    static const enum kl_nic_idle_why whys[] = {[KL_NET_UNREACHED] = KL_NIC_UNREACHED,
                                                [KL_NET_SLOWER] = KL_NIC_SLOWER,
                                                [KL_NET_FARTHER] = KL_NIC_FARTHER,
                                                [KL_NET_SPREAD] = KL_NIC_SPREAD};
    struct kl_net_usage usage;

    if (nic->state == KL_NIC_USED || !n->offhost) return ncclSuccess; /* KL_NIC_ONE_HOST */
    KL_TRY(kl_topo_net_usage(t, nic->net, &usage));
    if (usage.use == KL_NET_CHOSEN) {
        explain_chosen(nic, &nic->idle);
        return ncclSuccess;
    }
    nic->idle.why = whys[usage.use];
    if (usage.use == KL_NET_SLOWER || usage.use == KL_NET_FARTHER) compare(t, nic->net, &usage, &nic->idle);
    return ncclSuccess;
}

ncclResult_t kl_nics_find_why(const struct kl_nics_source *q, struct kl_nics *n)
{
    find_same(q->whole, n);
    find_bad_guids(q->document, q->whole->options.nccl, n);
    KL_TRY(find_merges(q, n));
    for (int i = 0; i < n->nnics; i++) KL_TRY(explain(q->whole, n, &n->nic[i]));
    return ncclSuccess;
}
