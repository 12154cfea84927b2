/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

const int64_t kl_diff_size[KL_DIFF_SIZES] = {1 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30};

const char *kl_diff_size_text(int64_t bytes, char text[16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;

    for (; bytes >= 1024 && unit < 3; bytes /= 1024) unit++;
    snprintf(text, 16, "%d %s", (int)bytes, units[unit]);
    return text;
}

static struct kl_diff_value number(double n)
{
    return (struct kl_diff_value){.has_number = true, .number = (float)n};
}

static struct kl_diff_value word(const char *text)
{
    struct kl_diff_value v = {.has_number = false};

    snprintf(v.text, sizeof v.text, "%s", text);
    return v;
}

/* ---- graphs ---- */

enum scalar { CHANNELS, BW_INTRA, BW_INTER, TYPE_INTRA, TYPE_INTER, PATTERN, CROSS_NIC, ONE_ORDER, SCALARS };

static const char *const scalar_name[SCALARS] = {"channels",      "GB/s inside",      "GB/s to the network",
                                                 "paths inside",  "paths to NICs",    "pattern",
                                                 "crossing NICs", "one order for all"};

static struct kl_diff_value scalar_of(const struct kl_graph *g, enum scalar s)
{
    if (s == CHANNELS) return number(g ? g->nchannels : 0);
    if (!g || !g->nchannels) return word("-");
    switch (s) {
    case BW_INTRA:
        return number((double)g->bw_intra);
    case BW_INTER:
        return number((double)g->bw_inter);
    case TYPE_INTRA:
        return word(kl_path_type_name[g->type_intra]);
    case TYPE_INTER:
        return word(kl_path_type_name[g->type_inter]);
    case PATTERN:
        return word(kl_graph_pattern_name(g->pattern));
    case CROSS_NIC:
        return word(g->cross_nic ? "yes" : "no");
    default:
        return word(g->same_channels ? "yes" : "no");
    }
}

/* A channel's order, in the names of A: the first GPUs of many, and a digest of all. */
static struct kl_diff_value order_of(const struct kl_diff_side *side, const struct kl_graph *g, int channel, bool nets)
{
    enum { SHOWN = 16 };
    struct kl_diff_value v = word("");
    struct kl_text text = kl_text_over(v.text, sizeof v.text);
    int n = g->pattern == KL_PATTERN_NVLS ? 1 : g->ngpus;

    if (nets) kl_text_add(&text, "NET/%d ", (int)kl_id_local((uint64_t)g->inter[2 * channel]));
    for (int i = 0; i < n; i++) {
        int rank = g->intra[channel * g->ngpus + i], in_a = side->to_a ? side->to_a[rank] : rank;

        v.digest = v.digest * 1000003 + (uint64_t)(in_a < 0 ? -2 - rank : in_a);
        if (i < SHOWN) kl_text_add(&text, in_a < 0 ? "%sB:%d" : "%s%d", i ? " " : "", in_a < 0 ? rank : in_a);
    }
    if (n > SHOWN) kl_text_add(&text, " ... %d more", n - SHOWN);
    if (nets) kl_text_add(&text, " NET/%d", (int)kl_id_local((uint64_t)g->inter[2 * channel + 1]));
    return v;
}

struct graph_pair {
    const struct kl_diff_side *a, *b;
    const struct kl_graph *ga, *gb;
    bool nets_a, nets_b;
    char name[40];
};

static ncclResult_t compare_orders(const struct graph_pair *p, struct kl_diff_rows *rows)
{
    int na = p->ga ? p->ga->nchannels : 0, nb = p->gb ? p->gb->nchannels : 0;

    for (int c = 0; c < na && c < nb; c++) {
        struct kl_diff_value a = order_of(p->a, p->ga, c, p->nets_a), b = order_of(p->b, p->gb, c, p->nets_b);
        char subject[48];

        snprintf(subject, sizeof subject, "%.30s channel %d", p->name, c);
        KL_TRY(kl_rows_compare(rows, KL_ROW_ORDER, subject, -1, -1, &a, &b));
    }
    return ncclSuccess;
}

static ncclResult_t compare_graph(const struct graph_pair *p, struct kl_diff_rows *rows)
{
    if (!p->ga && !p->gb) return ncclSuccess;
    for (int s = 0; s < SCALARS; s++) {
        struct kl_diff_value a = scalar_of(p->ga, (enum scalar)s), b = scalar_of(p->gb, (enum scalar)s);
        char subject[48];

        if (s == BW_INTER && !p->nets_a && !p->nets_b) continue; /* only a bound for the search */
        if (s == TYPE_INTER && !p->nets_a && !p->nets_b) continue;
        snprintf(subject, sizeof subject, "%.26s: %s", p->name, scalar_name[s]);
        KL_TRY(kl_rows_compare(rows, KL_ROW_GRAPH, subject, -1, -1, &a, &b));
    }
    return compare_orders(p, rows);
}

/* Graphs of A's domains, beside those of the domain that the same GPU is in on side B. */
static ncclResult_t compare_domain(const struct kl_diff_side *a, const struct kl_diff_side *b, int domain,
                                   struct kl_diff_rows *rows)
{
    const struct kl_plan_domain *da = &a->planned.plan->domain[domain];
    int rank = da->rank;

    while (rank < a->planned.plan->ranks_per_host && (a->planned.plan->domain_of[rank] != domain || a->to_b[rank] < 0))
        rank++;
    if (rank == a->planned.plan->ranks_per_host) return ncclSuccess;
    const struct kl_plan_domain *db = &b->planned.plan->domain[b->planned.plan->domain_of[a->to_b[rank]]];

    for (int i = 0; i < KL_GRAPHS; i++) {
        int id = kl_graph_order[i];
        struct graph_pair p = {.a = a,
                               .b = b,
                               .ga = da->graphs.graph[id],
                               .gb = db->graphs.graph[id],
                               .nets_a = da->graphs.has_nets,
                               .nets_b = db->graphs.has_nets};

        snprintf(p.name, sizeof p.name, domain ? "%s of GPU/%d" : "%s", kl_graph_name(id), rank);
        KL_TRY(compare_graph(&p, rows));
    }
    return ncclSuccess;
}

/* ---- channels ---- */

static ncclResult_t compare_count(struct kl_diff_rows *rows, const char *subject, int a, int b)
{
    struct kl_diff_value va = number(a), vb = number(b);

    return kl_rows_compare(rows, KL_ROW_CHANNELS, subject, -1, -1, &va, &vb);
}

static ncclResult_t compare_channels(const struct kl_plan *a, const struct kl_plan *b, struct kl_diff_rows *rows)
{
    const struct kl_connect *ca = a->connect, *cb = b->connect;

    KL_TRY(compare_count(rows, "ranks", a->nranks, b->nranks));
    KL_TRY(compare_count(rows, "nodes", ca->nodes.nnodes, cb->nodes.nnodes));
    KL_TRY(compare_count(rows, "channels", ca->nchannels, cb->nchannels));
    KL_TRY(compare_count(rows, "channels for collectives", ca->coll_channels, cb->coll_channels));
    KL_TRY(compare_count(rows, "channels for NVLS", ca->nvls_channels, cb->nvls_channels));
    KL_TRY(compare_count(rows, "channels for send and receive", a->p2p.n, b->p2p.n));
    return compare_count(rows, "channels per peer", a->p2p.per_peer, b->p2p.per_peer);
}

/* ---- tuning ---- */

static struct kl_diff_value choice_of(const struct kl_plan *p, int func, int64_t bytes, int *threads)
{
    struct kl_tuning_op op = kl_tuning_op_of(func, bytes, ncclFloat32, ncclSum);
    struct kl_tuning_choice c;
    struct kl_tuning_terms terms;
    struct kl_diff_value v;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_tuning_choose(&p->tuning, &op, &c, NULL);

    kl_error_quiet(quiet);
    *threads = 0;
    if (rc) return word("nothing allowed");
    if (p->nranks == 1) return word("a copy, nothing is sent");
    *threads = c.nthreads;
    kl_tuning_terms(&p->tuning, &op, c.algo, c.proto, &terms);
    v = number((double)c.time);
    v.timeless = terms.timeless_hops;
    snprintf(v.text, sizeof v.text, "%s %s on %d", kl_algo_name[c.algo], kl_proto_name[c.proto], c.nchannels);
    return v;
}

/* Only where nothing else of a choice differs. */
static void add_threads(struct kl_diff_value *v, int threads)
{
    struct kl_text t = {.start = v->text, .capacity = sizeof v->text, .length = strlen(v->text)};

    kl_text_add(&t, ", %d threads", threads);
}

static ncclResult_t compare_tuning(const struct kl_plan *a, const struct kl_plan *b, struct kl_diff_rows *rows)
{
    for (int f = KL_FUNCS - 1; f >= 0; f--)
        for (int s = 0; s < KL_DIFF_SIZES; s++) {
            int ta, tb;
            struct kl_diff_value va = choice_of(a, f, kl_diff_size[s], &ta), vb = choice_of(b, f, kl_diff_size[s], &tb);
            char subject[48], size[16];

            if (!strcmp(va.text, vb.text) && va.number == vb.number && ta != tb) {
                add_threads(&va, ta);
                add_threads(&vb, tb);
            }
            snprintf(subject, sizeof subject, "%s %s", kl_func_name[f], kl_diff_size_text(kl_diff_size[s], size));
            KL_TRY(kl_rows_compare(rows, KL_ROW_TUNING, subject, -1, -1, &va, &vb));
        }
    return ncclSuccess;
}

ncclResult_t kl_diff_plans(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_diff_rows *rows)
{
    for (int d = 0; d < a->planned.plan->ndomains; d++) KL_TRY(compare_domain(a, b, d, rows));
    KL_TRY(compare_channels(a->planned.plan, b->planned.plan, rows));
    return compare_tuning(a->planned.plan, b->planned.plan, rows);
}
