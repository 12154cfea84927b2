/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/topo_name.h"

#include <stdio.h>
#include <string.h>

char *kl_topo_name(const struct kl_topo *t, int node, char text[KL_NODE_TEXT])
{
    const struct kl_node *n = &t->node[node];

    if (n->type == KL_NODE_GPU)
        snprintf(text, KL_NODE_TEXT, "GPU/%d", n->gpu.rank);
    else if (n->type == KL_NODE_NET && t->nhosts == 1)
        snprintf(text, KL_NODE_TEXT, "NET/%d", n->net.dev);
    else
        kl_node_text(n, text);
    return text;
}

/* Is it [dddd:]bb:dd.f? */
static bool is_address(const char *name)
{
    size_t colons = 0, n = strlen(name);

    for (const char *c = name; *c; c++) colons += *c == ':';
    return (colons == 1 || colons == 2) && n >= 7 && n < KL_BUSID_TEXT && name[n - 2] == '.' &&
           strspn(name, "0123456789abcdefABCDEF:.") == n;
}

/* The first port of a card. */
static int net_of(const struct kl_topo *t, const struct kl_node *nic)
{
    for (int k = nic->first_link; k < nic->first_link + nic->nlinks; k++)
        if (t->node[t->link[k].to].type == KL_NODE_NET) return t->link[k].to;
    return -1;
}

/* The node at a PCI address: a GPU, or the first NET of a card. The upper half of a GPU's id may hold its rank among
 * the device's ranks. */
static int node_at(const struct kl_topo *t, const char *name)
{
    static const uint64_t address = ((uint64_t)1 << 40) - 1;

    if (!is_address(name)) return -1;
    for (int i = 0; i < t->nnodes; i++) {
        const struct kl_node *n = &t->node[i];

        if ((kl_id_local(n->id) & address) != kl_busid_parse(name)) continue;
        if (n->type == KL_NODE_GPU) return i;
        if (n->type == KL_NODE_NIC && net_of(t, n) >= 0) return net_of(t, n);
    }
    return -1;
}

int kl_topo_named(const struct kl_topo *t, const char *name)
{
    char text[KL_NODE_TEXT];

    for (int i = 0; i < t->nnodes; i++)
        if (!strcmp(name, kl_topo_name(t, i, text)) || !strcmp(name, kl_node_text(&t->node[i], text))) return i;
    return node_at(t, name);
}
