/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order_sums.h - sums of the contributions of ranks as bracketed expressions: which is added to which.
 *
 * Two sums are the same node if and only if they have the same bits for all contributions: a + b is b + a.
 * An expression is written as it was first made.
 *
 * Errors:  ncclSystemError when memory is short: the node is -1, and so are sums of it.
 * Threads: one at a time.
 */
#ifndef KL_PLAN_ORDER_SUMS_H
#define KL_PLAN_ORDER_SUMS_H

#include "base/text.h"
#include "plan/order_wires.h"

/* Leaves: the contribution of a rank; of a node of ranks, added in its switch; of all, added in the network. */
enum kl_order_leaf { KL_LEAF_RANK, KL_LEAF_SWITCH, KL_LEAF_NETWORK, KL_LEAF_SUM };

struct kl_order_term {
    uint8_t leaf;        /* enum kl_order_leaf; KL_LEAF_SUM: no leaf */
    int32_t left, right; /* nodes; of a leaf: its rank or node of ranks, and 0 */
};

/** One addition: `by` adds the sum that it received from `from` to its own. Ranks; of sums of switches: nodes of ranks. */
struct kl_order_step {
    int step; /* from 1 on; additions of one step do not wait for each other */
    int by, from;
    int sum; /* after it */
};

/** Room for all additions of one sum; those beyond it are dropped. */
struct kl_order_steps {
    struct kl_order_step *step;
    int n, room;
};

struct kl_order_sums {
    struct kl_order_term *term;
    int nterms, room;
    int32_t *slot; /* a hash table of terms, -1 where free */
    int nslots;
    struct kl_order_steps *steps; /* the algorithms below note their additions there, operands first; NULL: nowhere */
};

void kl_order_sums_fini(struct kl_order_sums *sums);

int kl_order_leaf(struct kl_order_sums *sums, enum kl_order_leaf leaf, int number);
int kl_order_add(struct kl_order_sums *sums, int a, int b);

/** One addition per hop, from a rank around a channel's ring: all ranks. */
int kl_order_chain(struct kl_order_sums *sums, const struct kl_order_wires *wires, int channel, int first_rank);

/** A channel's tree: each rank adds its children in order. */
int kl_order_tree_sum(struct kl_order_sums *sums, const struct kl_order_wires *wires, int channel);

/** The root of a channel's tree, which completes the sum; -1 if there is none. */
int kl_order_tree_root(const struct kl_order_wires *wires, int channel);

/** PAT: a block of a rank. */
int kl_order_pat(struct kl_order_sums *sums, int nranks, int home);

/** NVLSTree: switches' sums along tree 0 or 1 over the nodes. */
int kl_order_switch_tree(struct kl_order_sums *sums, int nnodes, int tree);

/** Write an expression without its outermost brackets: "(0+1)+2". */
void kl_order_sum_text(const struct kl_order_sums *sums, int sum, struct kl_text *text);

/** The longest way from a contribution to the sum: how often it may be rounded. */
int kl_order_depth(const struct kl_order_sums *sums, int sum);

#endif
