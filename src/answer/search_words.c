/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/topo_name.h"
#include "answer/search.h"

void kl_search_add_result(const struct kl_graph_result *r, struct kl_text *t)
{
    if (!r->nchannels) {
        kl_text_add(t, "no channel");
        return;
    }
    kl_text_add(t, "%d channel%s of %g GB/s", r->nchannels, kl_plural(r->nchannels), (double)r->bw_intra);
    if (r->nets && r->bw_inter != r->bw_intra) kl_text_add(t, " inside and %g to the network", (double)r->bw_inter);
}

const char *kl_search_mended(const struct kl_fault_cost *fault)
{
    return fault->together ? "without these faults" : kl_anomaly_repaired(fault->fault.code);
}

/* ---- links ---- */

static void link_name(const struct kl_topo *t, int link, struct kl_text *text)
{
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];
    const struct kl_link *l = &t->link[link];

    kl_text_add(text, "%s → %s (%s)", kl_topo_name(t, l->from, from), kl_topo_name(t, l->to, to),
                kl_link_type_name[l->type]);
}

static void all_links(const struct kl_topo *t, const struct kl_link_group *g, struct kl_text *text)
{
    const struct kl_link *l = &t->link[g->first];

    if (g->n == 2)
        kl_text_add(text, "both");
    else
        kl_text_add(text, "all %d", g->n);
    kl_text_add(text, " links %s → %s (%s)", kl_node_type_name[t->node[l->from].type],
                kl_node_type_name[t->node[l->to].type], kl_link_type_name[l->type]);
}

static void port_name(const struct kl_topo *t, int net, struct kl_text *text)
{
    char name[KL_NODE_TEXT];

    kl_text_add(text, "entry through %s", kl_topo_name(t, kl_topo_at(t, KL_NODE_NET, net), name));
}

void kl_search_add_links(const struct kl_topo *t, const struct kl_link_group *g, struct kl_text *text)
{
    if (g->n > 1 && g->n == g->all) {
        if (g->port)
            kl_text_add(text, "entry through all %d NICs", g->n);
        else
            all_links(t, g, text);
        return;
    }
    if (g->port)
        port_name(t, g->first, text);
    else
        link_name(t, g->first, text);
    if (g->n > 1) kl_text_add(text, " and %d like it", g->n - 1);
}
