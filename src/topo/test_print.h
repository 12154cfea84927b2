/* SPDX-License-Identifier: Apache-2.0 */
/**
 * test_print.h - a topology as lines of text, in the form of NCCL's log: tests compare it with records and examples.
 *
 *     === System : maxBw 24.0 totalBw 24.0 ===
 *     CPU/0-0 (1/1/2)
 *     + PCI[24.0] - PCI/0-10000 (0)
 *                   + PCI[24.0] - GPU/0-11000 (0)
 *     ==========================================
 *     GPU/0-11000 :GPU/0-11000 (0/5000.0/LOC) CPU/0-0 (2/24.0/PHB)
 *
 * After a name: GPU rank; CPU arch/vendor/model; PCI device word; NET coll/asic/port/GB/s. A path shows
 * hops/GB/s/type.
 * Source: the topology specification, 18.
 */
#ifndef KL_TOPO_TEST_PRINT_H
#define KL_TOPO_TEST_PRINT_H

#include "topo/paths.h"

#include <inttypes.h>
#include <stdio.h>

/* Name and facts of a node; returns the characters printed. */
static inline int print_heading(const struct kl_node *n, FILE *to)
{
    char name[KL_NODE_TEXT];
    int used = fprintf(to, "%s", kl_node_text(n, name));

    if (n->type == KL_NODE_GPU) used += fprintf(to, " (%d)", n->gpu.rank);
    if (n->type == KL_NODE_CPU) used += fprintf(to, " (%d/%d/%d)", n->cpu.arch, n->cpu.vendor, n->cpu.model);
    if (n->type == KL_NODE_PCI) used += fprintf(to, " (%" PRIx64 ")", n->pci.device);
    return used;
}

static inline void print_far_end(const struct kl_node *n, FILE *to)
{
    char name[KL_NODE_TEXT];

    fputs(kl_node_text(n, name), to);
    if (n->type == KL_NODE_NET)
        fprintf(to, " (%d/%" PRIx64 "/%d/%f)", n->net.coll, n->net.asic, n->net.port, (double)n->net.bw);
    putc('\n', to);
}

/* The heading is printed from `column` on; its children go on lines of their own. */
static inline void print_node(const struct kl_topo *t, int node, int from, int column, FILE *to)
{
    const struct kl_node *n = &t->node[node];

    print_heading(n, to);
    putc('\n', to);
    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        const struct kl_link *l = &t->link[k];

        if (l->type == KL_PATH_PCI && l->to == from) continue;
        int used = fprintf(to, "%*s+ %s[%2.1f] - ", column, "", kl_link_type_name[l->type], (double)l->bw);
        if (l->type == KL_PATH_PCI)
            print_node(t, l->to, node, used, to);
        else
            print_far_end(&t->node[l->to], to);
    }
}

static inline void print_paths_from(const struct kl_topo *t, int node, FILE *to)
{
    char name[KL_NODE_TEXT];

    fprintf(to, "%s :", kl_node_text(&t->node[node], name));
    for (int type = 0; type < KL_NODE_TYPES; type++)
        for (int i = 0; kl_path_has_table(t, node, type) && i < t->count[type]; i++) {
            int far = kl_topo_at(t, type, i);
            const struct kl_path *p = kl_path(t, node, far);

            fprintf(to, "%s (%d/%2.1f/%s) ", kl_node_text(&t->node[far], name), p->hops, (double)p->bw,
                    kl_path_type_name[p->type]);
        }
    putc('\n', to);
}

static inline void print_rows(const struct kl_topo *t, enum kl_node_type type, FILE *to)
{
    for (int i = 0; t->touched && i < t->count[type]; i++) print_paths_from(t, kl_topo_at(t, type, i), to);
}

/** Headline, trees and, when there are paths, the tables of paths. */
static inline void print_topo(const struct kl_topo *t, FILE *to)
{
    fprintf(to, "=== System : maxBw %2.1f totalBw %2.1f ===\n", (double)t->max_bw, (double)t->total_bw);
    for (int i = 0; i < t->count[KL_NODE_CPU]; i++) print_node(t, kl_topo_at(t, KL_NODE_CPU, i), -1, 0, to);
    fprintf(to, "==========================================\n");
    print_rows(t, KL_NODE_GPU, to);
    print_rows(t, KL_NODE_NET, to);
}

#endif
