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

int kl_topo_named(const struct kl_topo *t, const char *name)
{
    char text[KL_NODE_TEXT];

    for (int i = 0; i < t->nnodes; i++)
        if (!strcmp(name, kl_topo_name(t, i, text)) || !strcmp(name, kl_node_text(&t->node[i], text))) return i;
    return -1;
}
