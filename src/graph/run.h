/* SPDX-License-Identifier: Apache-2.0 */
/**
 * run.h - one search while it runs: a nest of loops, written as "what to change next".
 *
 *     search.c    sets it up, and loops
 *     relax.c     what to change after an attempt
 *     attempt.c   makes an attempt, or shows that it need not be made
 *
 * Source: the graph specification, 4.
 */
#ifndef KL_GRAPH_RUN_H
#define KL_GRAPH_RUN_H

#include "graph/graph.h"
#include "graph/routes.h"
#include "graph/walk.h"

enum {
    KL_BUDGET_GLOBAL = 1 << 19,
    KL_BUDGET_ROUND = 1 << 14,
    KL_BUDGET_SAME = 1 << 8 /* when all channels have the same order */
};

struct kl_run {
    struct kl_routes *routes;
    struct kl_walk *walk;
    struct kl_graph *work, *best; /* the walk's: wishes, and the best solution so far */
    const float *speed;           /* bandwidths per channel that are tried, fastest first */
    int nspeeds, idx;             /* idx: the one tried now */
    int pass;
    int budget; /* left by the last attempt */
    int global_budget;
    int cross_nic; /* preference: 0 never, 1 always, 2 if better */
    bool try_same;
    int min_intra, max_intra, min_inter, max_inter;
    struct kl_graph_why *why;
    int max_attempts;
};

/* ---- relax.c ---- */

/** The table of speeds for the machine, and the first speed to try. */
void kl_run_first_speed(struct kl_run *run);

/** First pass: change the wishes for another attempt. KL_RELAX_NONE when the pass is over; why->end then says why. */
int kl_run_relax(struct kl_run *run);

/** Begin the second pass: raise the bandwidth of the solution. */
void kl_run_second_pass(struct kl_run *run);

/** Second pass: raise the wishes; false when the search is over. */
bool kl_run_raise(struct kl_run *run);

/* ---- attempt.c ---- */

/** One attempt with the present wishes; sets run->budget. */
ncclResult_t kl_run_attempt(struct kl_run *run);

static inline struct kl_attempt *kl_run_last(struct kl_run *run)
{
    return &run->why->attempt[run->why->nattempts - 1];
}

/* ---- bound.c ---- */

/**
 * May an attempt with the present wishes store a solution at all? False is a proof that it can't: it would need more channels
 * than the machine's links and NETs can carry, or come out no better than what is stored.
 */
bool kl_run_may_win(const struct kl_run *run);

/**
 * Do rounds leave every link exactly as they find it, whatever they try? True if rounding can't change a bandwidth for
 * good: then what a round does depends on its wishes alone.
 */
bool kl_run_is_exact(const struct kl_run *run);

#endif
