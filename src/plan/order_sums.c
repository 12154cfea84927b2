/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_sums.h"

#include "base/error.h"
#include "graph/tree.h"

#include <stdlib.h>
#include <string.h>

void kl_order_sums_fini(struct kl_order_sums *s)
{
    free(s->term);
    free(s->slot);
    *s = (struct kl_order_sums){.nterms = 0};
}

/* ---- terms, each of them once ---- */

static uint32_t hash_of(const struct kl_order_term *t)
{
    uint64_t low = (uint32_t)(t->left < t->right ? t->left : t->right);
    uint64_t high = (uint32_t)(t->left < t->right ? t->right : t->left);
    uint64_t x = (low << 32 | high) + t->leaf * 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(x ^ (x >> 31));
}

static bool same(const struct kl_order_term *a, const struct kl_order_term *b)
{
    if (a->leaf != b->leaf) return false;
    if (a->left == b->left && a->right == b->right) return true;
    return a->leaf == KL_LEAF_SUM && a->left == b->right && a->right == b->left;
}

/* The slot of a term, or a free one for it. */
static int slot_of(const struct kl_order_sums *s, const struct kl_order_term *t)
{
    int at = (int)(hash_of(t) & (uint32_t)(s->nslots - 1));

    while (s->slot[at] >= 0 && !same(&s->term[s->slot[at]], t)) at = (at + 1) & (s->nslots - 1);
    return at;
}

/* Twice as much room for terms, and slots for four times as many. */
static bool grow(struct kl_order_sums *s)
{
    int room = s->room ? 2 * s->room : 256;
    struct kl_order_term *term = realloc(s->term, (size_t)room * sizeof *term);

    if (!term) return false;
    s->term = term;
    int32_t *slot = malloc((size_t)room * 4 * sizeof *slot);

    if (!slot) return false;
    free(s->slot);
    s->slot = slot;
    s->nslots = 4 * room;
    s->room = room;
    memset(slot, 0xff, (size_t)s->nslots * sizeof *slot);
    for (int i = 0; i < s->nterms; i++) s->slot[slot_of(s, &s->term[i])] = i;
    return true;
}

static int put(struct kl_order_sums *s, struct kl_order_term t)
{
    if (s->nterms == s->room && !grow(s)) return -1;
    int at = slot_of(s, &t);

    if (s->slot[at] < 0) {
        s->term[s->nterms] = t;
        s->slot[at] = s->nterms++;
    }
    return s->slot[at];
}

int kl_order_leaf(struct kl_order_sums *s, enum kl_order_leaf leaf, int number)
{
    return put(s, (struct kl_order_term){.leaf = (uint8_t)leaf, .left = number});
}

int kl_order_add(struct kl_order_sums *s, int a, int b)
{
    if (a < 0 || b < 0) return -1;
    return put(s, (struct kl_order_term){.leaf = KL_LEAF_SUM, .left = a, .right = b});
}

/* ---- algorithms ---- */

/* a + b: `by` has one of them and received the other from `from`. */
static int add_from(struct kl_order_sums *s, int by, int a, int from, int b)
{
    struct kl_order_steps *to = s->steps;
    int sum = kl_order_add(s, a, b);

    if (to && to->n < to->room) to->step[to->n++] = (struct kl_order_step){.by = by, .from = from, .sum = sum};
    return sum;
}

int kl_order_chain(struct kl_order_sums *s, const struct kl_order_wires *w, int channel, int first)
{
    int sum = kl_order_leaf(s, KL_LEAF_RANK, first), before = first;

    for (int i = 1; i < w->nranks; i++) {
        int rank = kl_order_ring_next(w, channel, first, i);

        sum = add_from(s, rank, sum, before, kl_order_leaf(s, KL_LEAF_RANK, rank));
        before = rank;
    }
    return sum;
}

static int subtree(struct kl_order_sums *s, const struct kl_tree_neighbours *tree, int rank)
{
    int sum = kl_order_leaf(s, KL_LEAF_RANK, rank);

    for (int d = 0; d < 3; d++)
        if (tree[rank].down[d] >= 0)
            sum = add_from(s, rank, sum, tree[rank].down[d], subtree(s, tree, tree[rank].down[d]));
    return sum;
}

int kl_order_tree_root(const struct kl_order_wires *w, int channel)
{
    const struct kl_tree_neighbours *tree = kl_order_tree(w, channel);
    int root = 0;

    while (root < w->nranks && tree[root].up >= 0) root++;
    return root < w->nranks ? root : -1;
}

int kl_order_tree_sum(struct kl_order_sums *s, const struct kl_order_wires *w, int channel)
{
    int root = kl_order_tree_root(w, channel);

    return root < 0 ? -1 : subtree(s, kl_order_tree(w, channel), root);
}

static int rank_before(int nranks, int home, int distance)
{
    return (home - distance + nranks) % nranks;
}

/* The rank at distance `s` before the home: its own, then those that arrive; the nearest neighbour's part comes last. */
static int pat(struct kl_order_sums *sums, int nranks, int home, int s)
{
    int low = s ? __builtin_ctz((unsigned)s) : kl_log2((unsigned)(nranks - 1)) + 1;
    int rank = rank_before(nranks, home, s), sum = kl_order_leaf(sums, KL_LEAF_RANK, rank);

    for (int k = 1; k <= low; k++) {
        int t = s + (k < low ? 1 << k : 1);

        if (t < nranks) sum = add_from(sums, rank, sum, rank_before(nranks, home, t), pat(sums, nranks, home, t));
    }
    return sum;
}

int kl_order_pat(struct kl_order_sums *s, int nranks, int home)
{
    return pat(s, nranks, home, 0);
}

static int switches(struct kl_order_sums *s, int nnodes, int tree, int node)
{
    struct kl_tree_links links = kl_double_tree(nnodes, node, tree);
    int sum = kl_order_leaf(s, KL_LEAF_SWITCH, node);

    for (int d = 0; d < 2; d++)
        if (links.down[d] >= 0) sum = add_from(s, node, sum, links.down[d], switches(s, nnodes, tree, links.down[d]));
    return sum;
}

int kl_order_switch_tree(struct kl_order_sums *s, int nnodes, int tree)
{
    int root = 0;

    while (root < nnodes && kl_double_tree(nnodes, root, tree).up >= 0) root++;
    return root < nnodes ? switches(s, nnodes, tree, root) : -1;
}

/* ---- words ---- */

static void write_term(const struct kl_order_sums *s, int sum, bool brackets, struct kl_text *text)
{
    const struct kl_order_term *t = &s->term[sum];

    if (t->leaf == KL_LEAF_RANK) {
        kl_text_add(text, "%d", t->left);
    } else if (t->leaf == KL_LEAF_SWITCH) {
        kl_text_add(text, "S%d", t->left);
    } else if (t->leaf == KL_LEAF_NETWORK) {
        kl_text_add(text, "network");
    } else {
        kl_text_add(text, "%s", brackets ? "(" : "");
        write_term(s, t->left, true, text);
        kl_text_add(text, "+");
        write_term(s, t->right, true, text);
        kl_text_add(text, "%s", brackets ? ")" : "");
    }
}

void kl_order_sum_text(const struct kl_order_sums *s, int sum, struct kl_text *text)
{
    write_term(s, sum, false, text);
}

int kl_order_depth(const struct kl_order_sums *s, int sum)
{
    if (s->term[sum].leaf != KL_LEAF_SUM) return 0;
    int left = kl_order_depth(s, s->term[sum].left), right = kl_order_depth(s, s->term[sum].right);

    return 1 + (left > right ? left : right);
}
