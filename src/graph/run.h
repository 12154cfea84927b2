/* SPDX-License-Identifier: Apache-2.0 */
/**
 * run.h - the state of a running search: nested loops, written as steps that choose the next change.
 *
 *     search.c    sets it up, and loops
 *     relax.c     chooses the next change after an attempt
 *     attempt.c   makes an attempt, or proves that it is not needed
 *
 * Source: the graph specification, 4.
 */
#ifndef KL_GRAPH_RUN_H
#define KL_GRAPH_RUN_H

#include "graph/bound.h"
#include "graph/graph.h"
#include "graph/routes.h"
#include "graph/backtrack.h"

enum {
    KL_BUDGET_GLOBAL = 1 << 19,
    KL_BUDGET_ROUND = 1 << 14,
    KL_BUDGET_SAME = 1 << 8 /* when all channels have the same order */
};

enum { KL_RUN_SPEEDS = 32 };

struct kl_search {
    struct kl_routes *routes;
    bool thorough; /* make every attempt and every step, ignoring proofs: for tests of the proofs */
    int few_steps; /* attempts of fewer steps are made, which is faster than comparing them */
};

/** The search's record of an attempt. */
struct kl_outcome {
    unsigned version; /* of the links' bandwidth, afterwards */
    int left;         /* of the budget; not always budget - steps, because PCI order has a budget of its own */
    int most;         /* no larger set of channels was, or would have been, completed */
    bool made;        /* not just accounted for */
    bool exact;       /* no rounding errors; false if unchecked */
};

struct kl_run {
    struct kl_routes *routes;
    struct kl_backtrack *backtrack;
    struct kl_graph *work, *best;   /* of the backtracking: limits, and the best solution so far */
    const float *speed;             /* bandwidths per channel that are tried, fastest first */
    float own_speed[KL_RUN_SPEEDS]; /* used if the release decides on the speeds */
    int nspeeds, idx;               /* idx: the one tried now */
    int pass;
    int budget; /* left by the last attempt */
    int global_budget;
    int cross_nic; /* preference: 0 never, 1 always, 2 if better */
    bool try_same;
    int min_intra, max_intra, min_inter, max_inter;
    struct kl_graph_why *why;
    struct kl_outcome *outcome; /* by attempt */
    int *unique;                /* attempts that repeat no earlier one */
    int nunique, max_attempts;
    bool was_long; /* some attempt took many steps */
    bool thorough;
    int few_steps;
    struct kl_sums *sums; /* for the pattern `sums_of`; NULL until needed */
    int sums_of;
};

/* ---- relax.c ---- */

/** The table of speeds for the machine, and the first speed to try. */
void kl_run_first_speed(struct kl_run *run);

/** First pass: change the limits for another attempt. KL_RELAX_NONE when the pass is over; why->end then says why. */
int kl_run_relax(struct kl_run *run);

/** Begin the second pass: raise the bandwidth of the solution. */
void kl_run_second_pass(struct kl_run *run);

/** Second pass: raise the limits; false when the search is over. */
bool kl_run_raise(struct kl_run *run);

/* ---- attempt.c ---- */

/** One attempt with the current limits; sets run->budget. */
ncclResult_t kl_run_attempt(struct kl_run *run);

static inline struct kl_attempt *kl_run_last(struct kl_run *run)
{
    return &run->why->attempt[run->why->nattempts - 1];
}

#endif
