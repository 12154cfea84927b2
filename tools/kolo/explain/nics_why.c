/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/nics.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/net_name.h"
#include "topo/netmerge.h"

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

static void find_bad_guids(const struct kl_xml *document, struct kl_nics *n)
{
    for (int i = 0; i < n->nnics; i++) {
        int elem = kl_net_elem(document, n->nic[i].dev);
        const char *guid = elem == KL_XML_NONE ? NULL : kl_xml_attr(document, elem, "guid");

        n->bad_guids |= guid && !kl_net_guid_counts(guid);
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

/* Virtual NICs that hang on no card have no distance that would mean anything. */
static bool on_card(const struct kl_xml *document, int elem)
{
    int card = kl_xml_parent(document, elem);

    return card != KL_XML_NONE && kl_xml_attr(document, kl_xml_parent(document, card), "busid");
}

/* Each NIC with the first that it could be merged with. */
static ncclResult_t find_near(const struct kl_nics_request *q, struct kl_nics *n)
{
    for (int b = 1; b < n->nnics; b++)
        for (int a = 0; a < b; a++) {
            int common, x = kl_net_elem(q->document, n->nic[a].dev), y = kl_net_elem(q->document, n->nic[b].dev);

            if (x == KL_XML_NONE || y == KL_XML_NONE || x == y) continue;
            if (!on_card(q->document, x) || !on_card(q->document, y)) continue;
            int distance = kl_net_merge_distance(q->document, x, y, &common);
            if (distance > n->merge_level) continue;
            KL_TRY(add_near(n, a, b, distance));
            break;
        }
    return ncclSuccess;
}

static ncclResult_t find_merges(const struct kl_nics_request *q, struct kl_nics *n)
{
    enum kl_merge_why why = kl_net_merge_why(&q->cluster->machine);

    n->merge_why.code = kl_merge_why_name(why);
    snprintf(n->merge_why.text, sizeof n->merge_why.text, "%s", kl_merge_why_text(why));
    return n->merge_level > KL_PATH_LOC ? find_near(q, n) : ncclSuccess;
}

/* ---- NICs that are not used ---- */

static void compare_text(const struct kl_topo *t, int net, const struct kl_net_fate *fate, struct kl_text *to)
{
    const struct kl_path *here = kl_path_between(t, KL_NODE_GPU, fate->gpu, KL_NODE_NET, net);
    const struct kl_path *there = kl_path_between(t, KL_NODE_GPU, fate->gpu, KL_NODE_NET, fate->instead);

    kl_text_add(to, "%s: even GPU/%d, which reaches it best (%s, %g GB/s), has NET/%d (%s, %g GB/s)",
                fate->use == KL_NET_SLOWER ? "slower than others" : "no GPU is near it",
                t->node[kl_topo_at(t, KL_NODE_GPU, fate->gpu)].gpu.rank, kl_path_type_name[here->type],
                (double)here->bw, net_at(t, fate->instead)->net.dev, kl_path_type_name[there->type], (double)there->bw);
}

static void explain_unused(const struct kl_topo *t, int net, const struct kl_net_fate *fate, struct kl_text *to)
{
    switch (fate->use) {
    case KL_NET_TWIN: /* not among them */
    case KL_NET_UNREACHED:
        kl_text_add(to, "no GPU reaches it");
        break;
    case KL_NET_SLOWER:
    case KL_NET_FARTHER:
        compare_text(t, net, fate, to);
        break;
    case KL_NET_SPREAD:
        kl_text_add(to, "GPUs near it use others that are as near: device numbers decide");
        break;
    case KL_NET_CHOSEN:
        kl_text_add(to, "the channels of the GPU whose own it is lead through others");
        break;
    }
}

static const char *fallback(bool fell_back)
{
    return fell_back ? " (none, so the order of the devices)" : "";
}

static void explain_searches(const struct kl_nics *n, struct kl_text *to)
{
    if (n->ring_found == n->tree_found)
        kl_text_add(to, "the searches for rings and trees found %d channel%s%s", n->ring_found,
                    kl_plural(n->ring_found), fallback(n->ring_fell_back));
    else
        kl_text_add(to, "the search for rings found %d channels%s and that for trees %d%s; all use the fewer",
                    n->ring_found, fallback(n->ring_fell_back), n->tree_found, fallback(n->tree_fell_back));
    kl_text_add(to, " (kolo explain search)");
}

/* A GPU's own, but the searches did without. */
static void explain_idle(const struct kl_nics *n, const struct kl_nic *nic, struct kl_text *to)
{
    if (nic->nsame > 1 && nic->same_as != nic->dev)
        kl_text_add(to, "same guid and port as NET/%d: they count as one port, whose bandwidth is spent", nic->same_as);
    else if (nic->nsame > 1)
        kl_text_add(to, "same guid and port as %d others: they count as one port, whose bandwidth is spent",
                    nic->nsame - 1);
    else
        explain_searches(n, to);
}

static ncclResult_t explain(const struct kl_topo *t, struct kl_nics *n, struct kl_nic *nic)
{
    struct kl_text text = kl_text_over(nic->why.text, sizeof nic->why.text);
    struct kl_net_fate fate;

    if (nic->state == KL_NIC_USED) return ncclSuccess;
    KL_TRY(kl_topo_net_fate(t, nic->net, &fate));
    nic->why.code = kl_net_use_name(fate.use);
    if (!n->offhost) {
        nic->why.code = "one_host";
        kl_text_add(&text, "nothing leaves the host");
    } else if (fate.use == KL_NET_CHOSEN) {
        nic->why.code = nic->nsame > 1 ? "same_port" : "no_channel";
        explain_idle(n, nic, &text);
    } else {
        explain_unused(t, nic->net, &fate, &text);
    }
    return ncclSuccess;
}

ncclResult_t kl_nics_find_why(const struct kl_nics_request *q, struct kl_nics *n)
{
    find_same(q->whole, n);
    find_bad_guids(q->document, n);
    KL_TRY(find_merges(q, n));
    for (int i = 0; i < n->nnics; i++) KL_TRY(explain(q->whole, n, &n->nic[i]));
    return ncclSuccess;
}
