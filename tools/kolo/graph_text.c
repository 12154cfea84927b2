/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/graph_text.h"

#include "base/error.h"
#include "base/text.h"
#include "graph/search_log.h"
#include "plan/finding.h"
#include "tools/kolo/assumed.h"
#include "answer/channels.h"
#include "tools/kolo/cluster_options.h"

/* ---- graphs ---- */

static void print_scalars(const struct kl_graph *g, FILE *to)
{
    fprintf(to, "%s: %d channel%s of %g GB/s inside, %g to the network; paths %s inside, %s to NICs; %s",
            kl_graph_name(g->id), g->nchannels, kl_plural(g->nchannels), (double)g->bw_intra, (double)g->bw_inter,
            kl_path_type_name[g->type_intra], kl_path_type_name[g->type_inter], kl_graph_pattern_name(g->pattern));
    if (g->same_channels) fprintf(to, ", same order in all channels");
    if (g->cross_nic) fprintf(to, ", crossing NICs");
    fprintf(to, "\n");
}

static void print_net(int64_t id, FILE *to)
{
    if (kl_id_host((uint64_t)id))
        fprintf(to, "NET/%d-%llx", kl_id_host((uint64_t)id), (unsigned long long)kl_id_local((uint64_t)id));
    else
        fprintf(to, "NET/%lld", (long long)id);
}

/* Channels like `c`, as bits; 0: an earlier one is the same. */
static uint64_t channels_like(const struct kl_graph *g, int c)
{
    uint64_t like = 0;

    for (int i = 0; i < g->nchannels; i++) like |= (uint64_t)kl_graph_same_channel(g, c, i) << i;
    return like & ((1ull << c) - 1) ? 0 : like;
}

static void print_channel(const struct kl_graph *g, int c, bool nets, FILE *to)
{
    int n = g->pattern == KL_PATTERN_NVLS ? 1 : g->ngpus;

    uint64_t like = channels_like(g, c);
    char numbers[KL_CHANNELS_TEXT];

    if (!like) return;
    fprintf(to, "  %s: ", kl_channels_text(like, numbers, sizeof numbers));
    if (nets) {
        print_net(g->inter[2 * c], to);
        fprintf(to, " → ");
    }
    for (int i = 0; i < n; i++) fprintf(to, "%sGPU/%d", i ? " " : "", g->intra[c * g->ngpus + i]);
    if (nets) {
        fprintf(to, " → ");
        print_net(g->inter[2 * c + 1], to);
    }
    fprintf(to, "\n");
}

static void print_graph(const struct kl_graph *g, bool nets, FILE *to)
{
    if (!g) return;
    if (!g->nchannels) {
        fprintf(to, "%s: none\n", kl_graph_name(g->id));
        return;
    }
    print_scalars(g, to);
    for (int c = 0; c < g->nchannels; c++) print_channel(g, c, nets, to);
}

static void print_domain(const struct kl_plan_view *v, const struct kl_plan_domain *d, FILE *to)
{
    if (v->plan->ndomains > 1)
        fprintf(to, "GPUs that reach each other faster than the network, with rank %d:\n", d->rank);
    for (int i = 0; i < KL_GRAPHS; i++)
        if (v->graphs >> kl_graph_order[i] & 1) print_graph(d->graphs.graph[kl_graph_order[i]], d->graphs.has_nets, to);
    fprintf(to, "\n");
}

/* ---- all ranks ---- */

enum { RANKS_SHOWN = 64 };

/* "0, 8": channels that are the same. */
static void print_same_channels(const struct kl_connect *c, int channel,
                                bool (*same)(const struct kl_connect *, int, int), FILE *to)
{
    uint64_t like = 0;
    char numbers[KL_CHANNELS_TEXT];

    for (int i = channel; i < c->nchannels; i++) like |= (uint64_t)same(c, channel, i) << i;
    fputs(kl_channels_text(like, numbers, sizeof numbers), to);
}

static bool is_first(const struct kl_connect *c, int channel, bool (*same)(const struct kl_connect *, int, int))
{
    for (int i = 0; i < channel; i++)
        if (same(c, i, channel)) return false;
    return true;
}

static void print_ring(const struct kl_connect *c, int channel, FILE *to)
{
    int n = c->ranks.nranks, rank = 0;

    fprintf(to, "  ");
    print_same_channels(c, channel, kl_connect_same_ring, to);
    fprintf(to, ":");
    for (int i = 0; i < n && i < RANKS_SHOWN; i++, rank = kl_connect_ring(c, channel, rank).next)
        fprintf(to, " %d", rank);
    if (n > RANKS_SHOWN) fprintf(to, " ... (%d ranks)", n);
    fprintf(to, "\n");
}

/* From `rank` down: the chain of first children, then the other branches of the chain. `left` ranks are still shown. */
static void print_branch(const struct kl_connect *c, int channel, int rank, int *left, FILE *to)
{
    for (int r = rank; r >= 0 && *left > 0; r = kl_connect_tree(c, channel, r).down[0], --*left)
        fprintf(to, "%s%d", r == rank ? "" : " → ", r);
    for (int r = rank, next; r >= 0; r = next) {
        struct kl_tree_neighbours t = kl_connect_tree(c, channel, r);

        next = t.down[0];
        for (int i = 1; i < 3 && t.down[i] >= 0 && *left > 0; i++) {
            fprintf(to, "; %d → ", r);
            print_branch(c, channel, t.down[i], left, to);
        }
    }
}

static int root_of(const struct kl_connect *c, int channel)
{
    int rank = 0, up;

    while ((up = kl_connect_tree(c, channel, rank).up) >= 0) rank = up;
    return rank;
}

static void print_tree(const struct kl_connect *c, int channel, FILE *to)
{
    int left = RANKS_SHOWN;

    fprintf(to, "  ");
    print_same_channels(c, channel, kl_connect_same_tree, to);
    fprintf(to, ": ");
    print_branch(c, channel, root_of(c, channel), &left, to);
    fprintf(to, "%s\n", left > 0 ? "" : " ...");
}

static void print_connection(const struct kl_plan *p, FILE *to)
{
    const struct kl_connect *c = p->connect;

    fprintf(to,
            "%d rank%s on %d node%s: %d channels (%d for collectives, %d NVLS), %d for point-to-point (%d per peer)\n",
            p->nranks, kl_plural(p->nranks), c->nodes.nnodes, kl_plural(c->nodes.nnodes), c->nchannels,
            c->coll_channels, c->nvls_channels, p->p2p.n, p->p2p.per_peer);
    fprintf(to, "rings by channel, from rank 0:\n");
    for (int i = 0; i < c->nchannels; i++)
        if (is_first(c, i, kl_connect_same_ring)) print_ring(c, i, to);
    fprintf(to, "trees by channel, at most %d hops to the root:\n", kl_connect_tree_depth(c));
    for (int i = 0; i < c->nchannels; i++)
        if (is_first(c, i, kl_connect_same_tree)) print_tree(c, i, to);
    fprintf(to, "\n");
}

/* ---- tuning ---- */

static void print_size(int64_t bytes, FILE *to)
{
    static const char units[] = " KMG";
    int unit = 0;

    for (; bytes >= 1024 && unit < 3; bytes /= 1024) unit++;
    fprintf(to, "%lld %c%s", (long long)bytes, unit ? units[unit] : 'B', unit ? "B" : "");
}

/* The choices for sizes from 8 B to 1 GiB, neighbours with the same choice together. */
static void print_choices(const struct kl_tuning *t, int func, FILE *to)
{
    struct kl_tuning_choice before = {.algo = -1};

    fprintf(to, "  %-13s", kl_func_name[func]);
    for (int i = 3; i <= 30; i++) {
        struct kl_tuning_op op = kl_tuning_op_of(func, (int64_t)1 << i, ncclFloat32, ncclSum);
        struct kl_tuning_choice c;

        if (kl_tuning_choose(t, &op, &c, NULL)) {
            fprintf(to, " nothing that NCCL_ALGO and NCCL_PROTO allow");
            break;
        }
        if (c.algo == before.algo && c.proto == before.proto) continue;
        fprintf(to, "%s from ", before.algo < 0 ? "" : ",");
        print_size(op.bytes, to);
        fprintf(to, " %s %s", kl_algo_name[c.algo], kl_proto_name[c.proto]);
        before = c;
    }
    fprintf(to, "\n");
}

/* ---- why ---- */

static void print_limit(const struct kl_topo *t, int link, FILE *to)
{
    char from[KL_NODE_TEXT], end[KL_NODE_TEXT];

    if (link < 0) return;
    fprintf(to, "; %s → %s (%s, %g GB/s) was full most often", kl_node_text(&t->node[t->link[link].from], from),
            kl_node_text(&t->node[t->link[link].to], end), kl_link_type_name[t->link[link].type],
            (double)t->link[link].bw);
}

static ncclResult_t print_why(const struct kl_topo *t, int id, const struct kl_graph_why *why, FILE *to)
{
    struct kl_search_log_entry all;

    KL_TRY(kl_search_log_total(why, t, &all));
    fprintf(to, "  %s: %s", kl_graph_name(id), kl_search_end_name(why->end));
    if (why->nattempts)
        fprintf(to, ", after %d attempt%s, %d of them searched (%lld steps, %.3g ms)", why->nattempts,
                kl_plural(why->nattempts), all.made, all.steps, (double)why->cpu_ns / 1e6);
    print_limit(t, all.limiting_link, to);
    fprintf(to, "\n");
    if (why->refused) fprintf(to, "    the graph file was not used: %s\n", why->refused);
    return ncclSuccess;
}

/* A machine that was read from a text rests on assumptions: one figure tells whether they fit. */
static void print_bandwidth(const struct kl_plan *p, FILE *to)
{
    float busbw;

    if (p->nranks > 1 && !kl_finding_measure(p, &busbw))
        fprintf(to, "; %.0f GB/s all-reduce of 1 GiB predicted (bus bandwidth)", (double)busbw);
}

ncclResult_t kl_plan_text(const struct kl_plan_view *v, FILE *to)
{
    const struct kl_plan *p = v->plan;
    const struct kl_plan_domain *own = &p->domain[p->domain_of[0]];
    char words[128];
    struct kl_text size = kl_text_in(words, sizeof words);

    kl_print_preamble(v->cluster, to);
    kl_cluster_size(v->cluster, &size);
    fprintf(to, "%s: %s", v->cluster->name, words);
    if (v->cluster->assumed.read_as) print_bandwidth(p, to);
    fprintf(to, "\n\n");
    for (int i = 0; i < p->ndomains; i++) print_domain(v, &p->domain[i], to);
    print_connection(p, to);
    fprintf(to, "algorithm and protocol by size, for a sum of floats%s:\n",
            p->tuning.constants == &kl_tuning_host ? ", with the constants of CPUs" : "");
    for (int f = 0; f < KL_FUNCS; f++) print_choices(&p->tuning, f, to);
    fprintf(to, "\nwhere the searches ended:\n");
    for (int i = 0; i < KL_GRAPHS; i++)
        if (own->graphs.why[kl_graph_order[i]] && (v->graphs >> kl_graph_order[i] & 1))
            KL_TRY(print_why(own->topo, kl_graph_order[i], own->graphs.why[kl_graph_order[i]], to));
    if (v->cluster->assumed.n || v->cluster->uncertain.n) fprintf(to, "\n");
    kl_assumed_print(v->cluster, "", to);
    kl_uncertain_print(v->cluster, "", to);
    return ncclSuccess;
}
