/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tree.h - double binary trees over nodes 0 ... n - 1. Pure arithmetic.
 *
 * Each of the two trees spans all nodes, and about half of its nodes are leaves. A leaf of one tree is no leaf of the other
 * (but for one node), so both together use every node's links in both directions. For 8 nodes:
 *
 *     tree 0   0---------+            tree 1: the mirror image for an even n (x becomes n - 1 - x),
 *                        4                    shifted by one for an odd n
 *                    /       \
 *                  2           6
 *                 / \         / \
 *                1   3       5   7
 *
 * Source: the graph specification, 8.6; Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast,
 *         reduction and scan (Parallel Computing 2009).
 */
#ifndef KL_GRAPH_TREE_H
#define KL_GRAPH_TREE_H

/** Neighbours of a node; -1 for none. */
struct kl_tree_links {
    int up;
    int down[2];
    int which; /* the node is child number 0 or 1 of `up` */
};

/** Tree 0 or 1 of the double tree. In tree 0, node 0 is the root and has only a child number 1. */
struct kl_tree_links kl_double_tree(int n, int node, int tree);

/** floor(log2 x), -1 for 0. */
static inline int kl_log2(unsigned x)
{
    return x ? 31 - __builtin_clz(x) : -1;
}

#endif
