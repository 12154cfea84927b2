/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

/* ---- graphs ---- */

static float number_of(const struct kl_graph *g, enum kl_graph_number number)
{
    switch (number) {
    case KL_NUMBER_CHANNELS:
        return (float)g->nchannels;
    case KL_NUMBER_BW_INTRA:
        return g->bw_intra;
    case KL_NUMBER_BW_INTER:
        return g->bw_inter;
    case KL_NUMBER_TYPE_INTRA:
        return (float)g->type_intra;
    case KL_NUMBER_TYPE_INTER:
        return (float)g->type_inter;
    case KL_NUMBER_PATTERN:
        return (float)g->pattern;
    case KL_NUMBER_CROSS_NIC:
        return (float)(g->cross_nic != 0);
    default:
        return (float)(g->same_channels != 0);
    }
}

static union kl_diff_value value_of(const struct kl_graph *g, enum kl_graph_number number)
{
    union kl_diff_value v = {.number = {.none = number != KL_NUMBER_CHANNELS && (!g || !g->nchannels)}};

    if (g && !v.number.none) v.number.value = number_of(g, number);
    return v;
}

struct graph_pair {
    const struct kl_diff_side *a, *b;
    const struct kl_graph *ga, *gb;
    bool nets_a, nets_b;
    int domain, graph; /* of the rows */
};

static ncclResult_t compare_orders(const struct graph_pair *p, struct kl_diff_rows *rows)
{
    int na = p->ga ? p->ga->nchannels : 0, nb = p->gb ? p->gb->nchannels : 0;

    for (int c = 0; c < na && c < nb; c++) {
        struct kl_diff_row row = {.what = KL_ROW_ORDER,
                                  .from = -1,
                                  .to = -1,
                                  .domain = p->domain,
                                  .graph = p->graph,
                                  .item = c,
                                  .a.order = {p->ga, c, p->nets_a, p->a->to_a},
                                  .b.order = {p->gb, c, p->nets_b, p->b->to_a}};

        KL_TRY(kl_rows_compare(rows, &row));
    }
    return ncclSuccess;
}

static ncclResult_t compare_graph(const struct graph_pair *p, struct kl_diff_rows *rows)
{
    if (!p->ga && !p->gb) return ncclSuccess;
    for (int n = 0; n < KL_GRAPH_NUMBERS; n++) {
        enum kl_graph_number number = (enum kl_graph_number)n;
        struct kl_diff_row row = {.what = KL_ROW_GRAPH,
                                  .from = -1,
                                  .to = -1,
                                  .domain = p->domain,
                                  .graph = p->graph,
                                  .item = n,
                                  .a = value_of(p->ga, number),
                                  .b = value_of(p->gb, number)};

        if (n == KL_NUMBER_BW_INTER && !p->nets_a && !p->nets_b) continue; /* only a bound for the search */
        if (n == KL_NUMBER_TYPE_INTER && !p->nets_a && !p->nets_b) continue;
        KL_TRY(kl_rows_compare(rows, &row));
    }
    return compare_orders(p, rows);
}

/* Graphs of A's domains, and of the domain with the same GPU on side B. */
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
                               .nets_b = db->graphs.has_nets,
                               .domain = domain ? rank : -1,
                               .graph = id};

        KL_TRY(compare_graph(&p, rows));
    }
    return ncclSuccess;
}

/* ---- channels ---- */

static ncclResult_t compare_channels(const struct kl_plan *a, const struct kl_plan *b, struct kl_diff_rows *rows)
{
    const struct kl_connect *x = a->connect, *y = b->connect;
    const int counts[KL_CHANNEL_COUNTS][2] = {
        [KL_COUNT_RANKS] = {a->nranks, b->nranks},
        [KL_COUNT_NODES] = {x->nodes.nnodes, y->nodes.nnodes},
        [KL_COUNT_CHANNELS] = {x->nchannels, y->nchannels},
        [KL_COUNT_COLLECTIVES] = {x->coll_channels, y->coll_channels},
        [KL_COUNT_NVLS] = {x->nvls_channels, y->nvls_channels},
        [KL_COUNT_SENDRECV] = {a->p2p.n, b->p2p.n},
        [KL_COUNT_PER_PEER] = {a->p2p.per_peer, b->p2p.per_peer},
    };

    for (int i = 0; i < KL_CHANNEL_COUNTS; i++) {
        struct kl_diff_row row = {
            .what = KL_ROW_CHANNELS, .from = -1, .to = -1, .item = i, .a.count = counts[i][0], .b.count = counts[i][1]};

        KL_TRY(kl_rows_compare(rows, &row));
    }
    return ncclSuccess;
}

/* ---- tuning ---- */

static union kl_diff_value choice_of(const struct kl_plan *p, int func, int64_t bytes)
{
    struct kl_tuning_op op = kl_tuning_op_of(func, bytes, ncclFloat32, ncclSum);
    struct kl_tuning_choice c;
    struct kl_tuning_terms terms;
    union kl_diff_value v = {.choice = {.end = KL_CHOICE_MADE}};
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_tuning_choose(&p->tuning, &op, &c, NULL);

    kl_error_quiet(quiet);
    if (rc) v.choice.end = KL_CHOICE_NOTHING;
    if (!rc && p->nranks == 1) v.choice.end = KL_CHOICE_COPY;
    if (v.choice.end != KL_CHOICE_MADE) return v;
    kl_tuning_terms(&p->tuning, &op, c.algo, c.proto, &terms);
    v.choice.algo = c.algo;
    v.choice.proto = c.proto;
    v.choice.nchannels = c.nchannels;
    v.choice.nthreads = c.nthreads;
    v.choice.time = c.time;
    v.choice.timeless = terms.timeless_hops;
    return v;
}

/* Threads count only where nothing else of a choice differs. */
static void settle_threads(union kl_diff_value *a, union kl_diff_value *b)
{
    bool same = a->choice.algo == b->choice.algo && a->choice.proto == b->choice.proto &&
                a->choice.nchannels == b->choice.nchannels && a->choice.time == b->choice.time;

    a->choice.only_threads = b->choice.only_threads =
        same && a->choice.end == b->choice.end && a->choice.nthreads != b->choice.nthreads;
}

static ncclResult_t compare_tuning(const struct kl_plan *a, const struct kl_plan *b, struct kl_diff_rows *rows)
{
    static const int64_t sizes[] = {1 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30};

    for (int f = KL_FUNCS - 1; f >= 0; f--)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            struct kl_diff_row row = {.what = KL_ROW_TUNING,
                                      .from = -1,
                                      .to = -1,
                                      .item = f,
                                      .bytes = sizes[s],
                                      .a = choice_of(a, f, sizes[s]),
                                      .b = choice_of(b, f, sizes[s])};

            settle_threads(&row.a, &row.b);
            KL_TRY(kl_rows_compare(rows, &row));
        }
    return ncclSuccess;
}

ncclResult_t kl_diff_compare_plans(const struct kl_diff_side *a, const struct kl_diff_side *b,
                                   struct kl_diff_rows *rows)
{
    for (int d = 0; d < a->planned.plan->ndomains; d++) KL_TRY(compare_domain(a, b, d, rows));
    KL_TRY(compare_channels(a->planned.plan, b->planned.plan, rows));
    return compare_tuning(a->planned.plan, b->planned.plan, rows);
}
