/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tree.h"

/* One binary tree: node 0 is the root and has only a child number 1. */
static struct kl_tree_links binary_tree(int n, int node)
{
    struct kl_tree_links t = {.up = -1, .down = {-1, -1}};
    int bit = 1;

    if (node == 0) {
        while (bit < n) bit *= 2;
        if (n > 1) t.down[1] = bit / 2;
        return t;
    }
    bit = node & -node;
    t.up = (node ^ bit) | (bit << 1);
    if (t.up >= n) t.up = node ^ bit;
    t.which = node < t.up ? 0 : 1;
    if (bit == 1) return t;
    t.down[0] = node - bit / 2;
    for (int p = bit / 2; p && t.down[1] < 0; p /= 2)
        if (node + p < n) t.down[1] = node + p;
    return t;
}

/* Map a node of the second tree to the first, and back: a shift for odd n, a mirror for even n. */
static int renamed(int n, int x, int shift)
{
    if (x < 0) return -1;
    return n % 2 ? (x + shift + n) % n : n - 1 - x;
}

struct kl_tree_links kl_double_tree(int n, int node, int tree)
{
    struct kl_tree_links t;

    if (!tree) return binary_tree(n, node);
    t = binary_tree(n, renamed(n, node, -1));
    t.up = renamed(n, t.up, 1);
    for (int i = 0; i < 2; i++) t.down[i] = renamed(n, t.down[i], 1);
    return t;
}
