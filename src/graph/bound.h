/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bound.h - bounds on the result of a search round, without running it.
 *
 * Only proofs count: a false "may" costs time, a false "can't" would change results.
 *
 * Threads: pure.
 */
#ifndef KL_GRAPH_BOUND_H
#define KL_GRAPH_BOUND_H

#include "graph/graph.h"
#include "graph/routes.h"

/** The limits of a round that concern links. */
struct kl_round_limits {
    int pattern, type_intra, type_inter;
    float bw_intra, bw_inter;
};

static inline struct kl_round_limits kl_round_limits_of(const struct kl_graph *work)
{
    return (struct kl_round_limits){work->pattern, work->type_intra, work->type_inter, work->bw_intra, work->bw_inter};
}

static inline bool kl_is_tree(int pattern)
{
    return pattern >= KL_PATTERN_BALANCED_TREE && pattern <= KL_PATTERN_TREE;
}

static inline bool kl_has_heads(int pattern)
{
    return pattern == KL_PATTERN_NVLS || pattern == KL_PATTERN_COLLNET_DIRECT;
}

/* ---- bound.c ---- */

/** Upper bound on the channels that can be placed. Uses all of `work` except its number of channels. */
int kl_bound_channels(const struct kl_routes *routes, const struct kl_graph *work);

/** Lower bound on the links of a channel. */
int kl_bound_hops(const struct kl_routes *routes);

/** Can a solution of at most `n` channels, with at least `hops` links each, be better than the best so far? */
bool kl_bound_can_improve(const struct kl_graph *work, const struct kl_graph *best, int n, int hops);

/** Could a channel that has all links to itself follow the route? */
bool kl_route_is_usable(const struct kl_routes *routes, const struct kl_route *route, float bw);

/* ---- exact.c ---- */

/**
 * Is the arithmetic exact: do reserving and releasing, in any order, leave every link exactly as before? Then the result of
 * a round depends on its limits alone, and every bandwidth is a whole number of thousandths.
 */
bool kl_is_exact(const struct kl_routes *routes, const struct kl_round_limits *limits);

/* ---- equivalence.c ---- */

struct kl_sums; /* possible reservations of all channels on a link, in eightieths of their bandwidth */

ncclResult_t kl_sums_create(const struct kl_routes *routes, int pattern, struct kl_sums **sums);
void kl_sums_free(struct kl_sums *sums);

/**
 * Would two rounds of the same pattern accept and refuse the same steps? For exact rounds with one bandwidth for all
 * (intra = inter). With `order` also: in the same order, so that they are alike step for step.
 */
bool kl_rounds_equivalent(const struct kl_routes *routes, const struct kl_sums *sums, const struct kl_round_limits *a,
                          const struct kl_round_limits *b, bool order);

/** Is there only one NET for all entries and exits? Then crossing NICs makes no difference. */
bool kl_has_one_net(const struct kl_routes *routes, const struct kl_round_limits *limits);

#endif
