/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/builder.h"

/* Generation (4, 5, or 0) of a Broadcom switch in base mode, as its upper (0) or lower (1) half. */
static int generation(const struct kl_builder_node *n, int half)
{
    uint64_t device = n->node.pci.device & ~(uint64_t)0xfff;

    if (n->deleted || n->node.type != KL_NODE_PCI) return 0;
    if (device == 0x1000c0101000a000u) return 4;
    return device == 0x1000c03010000000u + (uint64_t)half * 0x1000 ? 5 : 0;
}

static void redirect(struct kl_builder *b, int node, int from, int to)
{
    struct kl_builder_node *n = &b->node[node];

    for (int k = 0; k < n->nlinks; k++) {
        if (n->link[k].to != from) continue;
        n->link[k].to = to;
        return;
    }
}

static void delete_node(struct kl_builder *b, int node)
{
    b->node[node].deleted = true;
    while (b->node[node].nlinks) kl_builder_unlink(b, node, b->node[node].nlinks - 1);
}

/* Move the children of the lower half to the upper one. */
static ncclResult_t absorb(struct kl_builder *b, int upper, int lower)
{
    const struct kl_builder_node *l = &b->node[lower];

    for (int k = 0; k < l->nlinks; k++) {
        if (l->link[k].to == upper) continue;
        KL_TRY(kl_builder_append(b, upper, l->link[k]));
        redirect(b, l->link[k].to, lower, upper);
        if (b->node[l->link[k].to].up == lower) b->node[l->link[k].to].up = upper;
    }
    delete_node(b, lower);
    return ncclSuccess;
}

static ncclResult_t flatten(struct kl_builder *b, int upper, int gen)
{
    struct kl_builder_node *u = &b->node[upper];

    /* Links to lower halves go, and their devices' links come at the end, in the same order. */
    for (int k = 0, n = u->nlinks; k < n;) {
        int lower = u->link[k].to;

        if (u->link[k].type == KL_PATH_PCI && generation(&b->node[lower], 1) == gen && b->node[lower].up == upper) {
            kl_builder_unlink(b, upper, k);
            n--;
            KL_TRY(absorb(b, upper, lower));
        } else
            k++;
    }
    u->node.pci.device |= 0xffff; /* matches nothing any more */
    return ncclSuccess;
}

ncclResult_t kl_builder_flatten_switches(struct kl_builder *b)
{
    for (int i = 0; i < b->nnodes; i++) {
        int gen = generation(&b->node[i], 0);
        if (gen) KL_TRY(flatten(b, i, gen));
    }
    return ncclSuccess;
}
