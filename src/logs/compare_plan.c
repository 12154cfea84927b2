/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/compare_make.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIFFERENCES = 100000 };

struct comparing {
    const struct kl_log *log;
    int comm;
    const struct kl_plan *plan;
    struct kl_log_compare *out;
    ncclResult_t rc;
};

static void add(struct comparing *k, struct kl_log_difference d)
{
    struct kl_log_compare *c = k->out;

    if (k->rc || c->n == DIFFERENCES) return;
    if (c->n == c->max) {
        int max = c->max ? 2 * c->max : 64;
        void *grown = realloc(c->difference, (size_t)max * sizeof *c->difference);

        if (!grown) {
            k->rc = KL_NOMEM("differences of a log");
            return;
        }
        c->difference = grown;
        c->max = max;
    }
    c->difference[c->n++] = d;
}

static void check(struct comparing *k, bool same, struct kl_log_difference d)
{
    k->out->checked[d.part]++;
    if (same)
        k->out->same[d.part]++;
    else
        add(k, d);
}

static bool is_ours(const struct comparing *k, int member)
{
    return k->comm < 0 || k->log->member[member].comm == k->comm;
}

/* ---- graphs: the lowest rank that printed any counts ---- */

static void compare_graphs(struct comparing *k)
{
    const struct kl_log *log = k->log;
    const struct kl_plan_domain *d = &k->plan->domain[0];
    bool seen[8] = {false};

    for (int i = 0; i < log->ngraph; i++) {
        const struct kl_log_graph *g = &log->graph[i];
        int id = g->pattern == KL_PATTERN_RING   ? KL_GRAPH_RING
                 : g->pattern == KL_PATTERN_NVLS ? KL_GRAPH_NVLS
                 : g->pattern <= KL_PATTERN_TREE ? KL_GRAPH_TREE
                                                 : -1;

        if (!is_ours(k, g->member) || id < 0 || seen[id] || !g->nchannels) continue;
        const struct kl_graph *p = d->graphs.graph[id];

        seen[id] = true;
        if (!p) continue;
        bool same = p->nchannels == g->nchannels && fabs(p->bw_intra - g->bw_intra) < 0.06 &&
                    fabs(p->bw_inter - g->bw_inter) < 0.06;
        check(k, same,
              (struct kl_log_difference){.part = KL_PART_GRAPH,
                                         .at = g->at,
                                         .channel = id,
                                         .rank = -1,
                                         .have = g->nchannels,
                                         .want = p->nchannels,
                                         .have_bw = g->bw_intra,
                                         .want_bw = p->bw_intra});
    }
}

/* ---- counts ---- */

static void compare_count(struct comparing *k, enum kl_log_part part, struct kl_log_at at, int have, int want)
{
    if (have < 0) return;
    check(k, have == want,
          (struct kl_log_difference){.part = part, .at = at, .channel = -1, .rank = -1, .have = have, .want = want});
}

static void compare_counts(struct comparing *k)
{
    const struct kl_connect *c = k->plan->connect;

    for (int i = 0; i < k->log->nmember; i++) {
        const struct kl_log_member *m = &k->log->member[i];

        if (m->coll < 0 || !is_ours(k, i)) continue;
        compare_count(k, KL_PART_CHANNELS, m->channels_at, m->coll, c->nchannels);
        compare_count(k, KL_PART_NVLS, m->channels_at, m->nvls, c->nvls ? c->nvls_channels : 0);
        compare_count(k, KL_PART_P2P, m->channels_at, m->p2p, k->plan->p2p.n);
        compare_count(k, KL_PART_PER_PEER, m->channels_at, m->per_peer, k->plan->p2p.per_peer);
        return;
    }
}

/* ---- rings ---- */

static bool is_rank(const struct comparing *k, int rank)
{
    return rank >= 0 && rank < k->plan->nranks;
}

static void compare_ring(struct comparing *k, const struct kl_log_ring *r)
{
    const struct kl_connect *c = k->plan->connect;
    const int *order = &k->log->rank[r->first];
    struct kl_log_difference d = {
        .part = KL_PART_RING, .at = r->at, .channel = r->channel, .rank = -1, .have = -1, .want = -1};

    if (r->channel >= c->nchannels || !r->n || !is_ours(k, r->member)) return;
    for (int i = 0; i + 1 < r->n && d.rank < 0; i++) {
        int next = is_rank(k, order[i]) ? kl_connect_ring(c, r->channel, order[i]).next : -1;

        if (next == order[i + 1]) continue;
        d.rank = order[i];
        d.have = order[i + 1];
        d.want = next;
    }
    check(k, d.rank < 0, d);
}

static void compare_hop(struct comparing *k, const struct kl_log_hop *h)
{
    const struct kl_connect *c = k->plan->connect;

    if (h->channel >= c->nchannels || !is_rank(k, h->rank) || !is_ours(k, h->member)) return;
    int next = kl_connect_ring(c, h->channel, h->rank).next;

    check(k, next == h->next,
          (struct kl_log_difference){KL_PART_RING, h->at, h->channel, h->rank, h->next, next, 0, 0});
}

/* ---- trees ---- */

static bool same_children(const int a[3], const int b[3])
{
    for (int i = 0; i < 3; i++) {
        bool found = a[i] < 0;

        for (int j = 0; j < 3; j++) found |= a[i] == b[j];
        if (!found) return false;
    }
    return true;
}

static void compare_tree(struct comparing *k, const struct kl_log_tree *t)
{
    const struct kl_connect *c = k->plan->connect;

    if (t->channel >= c->nchannels || !is_rank(k, t->rank) || !is_ours(k, t->member)) return;
    struct kl_tree_neighbours n = kl_connect_tree(c, t->channel, t->rank);
    bool same = n.up == t->up && same_children(t->down, n.down) && same_children(n.down, t->down);

    check(k, same, (struct kl_log_difference){KL_PART_TREE, t->at, t->channel, t->rank, t->up, n.up, 0, 0});
}

/* ---- NICs: where rings enter a node ---- */

static void compare_nic(struct comparing *k, const struct kl_log_link *l)
{
    const struct kl_connect *c = k->plan->connect;
    const struct kl_graph *g = k->plan->domain[0].graphs.graph[KL_GRAPH_RING];

    if (l->way != KL_LOG_NET || !l->receives || l->net < 0 || l->connection > 0 || !is_ours(k, l->member)) return;
    if (!g || !g->nchannels || l->channel >= c->nchannels || !is_rank(k, l->to) || k->plan->ndomains > 1) return;
    if (kl_connect_ring(c, l->channel, l->to).prev != l->from) return;
    int want = (int)kl_id_local((uint64_t)g->inter[2 * (c->source[l->channel] % c->base % g->nchannels)]);

    check(k, want == l->net, (struct kl_log_difference){KL_PART_NIC, l->at, l->channel, l->to, l->net, want, 0, 0});
}

ncclResult_t kl_log_compare_plan(const struct kl_log *log, int comm, const struct kl_plan *plan,
                                 struct kl_log_compare *compare)
{
    struct comparing k = {log, comm, plan, compare, ncclSuccess};

    compare_graphs(&k);
    compare_counts(&k);
    for (int i = 0; i < log->nring; i++) compare_ring(&k, &log->ring[i]);
    for (int i = 0; i < log->nhop; i++) compare_hop(&k, &log->hop[i]);
    for (int i = 0; i < log->ntree; i++) compare_tree(&k, &log->tree[i]);
    for (int i = 0; i < log->nlink; i++) compare_nic(&k, &log->link[i]);
    return k.rc;
}

/* ---- words ---- */

static const char *const names[KL_PARTS] = {"graph", "channels", "nvls", "p2p", "per_peer", "ring", "tree", "nic"};

const char *kl_log_part_name(enum kl_log_part part)
{
    return part >= 0 && part < KL_PARTS ? names[part] : "";
}

static void add_rank(struct kl_text *t, const char *before, int rank, const char *after)
{
    kl_text_add(t, "%s", before);
    kl_text_add(t, rank >= 0 ? "%d" : "none", rank);
    kl_text_add(t, "%s", after);
}

/* Ranks before and behind: -1 is none. */
static void add_neighbours(const struct kl_log_difference *d, const char *before, struct kl_text *t)
{
    kl_text_add(t, "%s %d is", before, d->rank);
    add_rank(t, " ", d->have, " in the log, ");
    add_rank(t, "", d->want, " in the plan");
}

void kl_log_difference_text(const struct kl_log_difference *d, struct kl_text *t)
{
    static const char *const counted[KL_PARTS] = {[KL_PART_CHANNELS] = "channels",
                                                  [KL_PART_NVLS] = "NVLS channels",
                                                  [KL_PART_P2P] = "channels for messages",
                                                  [KL_PART_PER_PEER] = "channels for messages to one rank"};

    if (d->part == KL_PART_GRAPH)
        kl_text_add(t, "%s: %d channels of %g GB/s in the log, %d of %g in the plan", kl_graph_name(d->channel),
                    d->have, d->have_bw, d->want, d->want_bw);
    else if (d->part == KL_PART_RING) {
        kl_text_add(t, "ring of channel %d: ", d->channel);
        add_neighbours(d, "the next of rank", t);
    } else if (d->part == KL_PART_TREE && d->have != d->want) {
        kl_text_add(t, "tree of channel %d: ", d->channel);
        add_neighbours(d, "the parent of rank", t);
    } else if (d->part == KL_PART_TREE)
        kl_text_add(t, "tree of channel %d: rank %d has other children in the log than in the plan", d->channel,
                    d->rank);
    else if (d->part == KL_PART_NIC)
        kl_text_add(t, "channel %d: rank %d receives through NET/%d in the log, through NET/%d in the plan", d->channel,
                    d->rank, d->have, d->want);
    else
        kl_text_add(t, "%d %s in the log, %d in the plan", d->have, counted[d->part], d->want);
}
