/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/run.h"

#include "base/error.h"

#include <stdlib.h>

/* ---- the record of attempts ---- */

static ncclResult_t grow_record(struct kl_run *run)
{
    int max = run->max_attempts ? 2 * run->max_attempts : 32;
    struct kl_conn_request *attempt = realloc(run->why->attempt, (size_t)max * sizeof *attempt);
    struct kl_outcome *outcome = realloc(run->outcome, (size_t)max * sizeof *outcome);
    int *unique = realloc(run->unique, (size_t)max * sizeof *unique);

    if (attempt) run->why->attempt = attempt;
    if (outcome) run->outcome = outcome;
    if (unique) run->unique = unique;
    if (!attempt || !outcome || !unique) return KL_NOMEM("the record of a graph search");
    run->max_attempts = max;
    return ncclSuccess;
}

static ncclResult_t begin_attempt(struct kl_run *run, int budget)
{
    const struct kl_graph *w = run->work;

    if (run->why->nattempts == run->max_attempts) KL_TRY(grow_record(run));
    run->outcome[run->why->nattempts] = (struct kl_outcome){.version = run->backtrack->version};
    run->why->attempt[run->why->nattempts++] = (struct kl_conn_request){.pass = run->pass,
                                                                        .pattern = w->pattern,
                                                                        .cross_nic = w->cross_nic,
                                                                        .same_channels = w->same_channels,
                                                                        .type_intra = w->type_intra,
                                                                        .type_inter = w->type_inter,
                                                                        .bw_intra = w->bw_intra,
                                                                        .bw_inter = w->bw_inter,
                                                                        .budget = budget,
                                                                        .repeats = -1,
                                                                        .limiting_link = -1};
    return ncclSuccess;
}

static struct kl_round_limits limits_of(const struct kl_conn_request *a)
{
    return (struct kl_round_limits){a->pattern, a->type_intra, a->type_inter, a->bw_intra, a->bw_inter};
}

static int end_of(int left)
{
    return left == KL_BUDGET_PERFECT ? KL_ATTEMPT_PERFECT : left ? KL_ATTEMPT_EXHAUSTED : KL_ATTEMPT_TIMEOUT;
}

static void end_attempt(struct kl_run *run)
{
    struct kl_conn_request *a = kl_run_last(run);
    struct kl_outcome *o = &run->outcome[run->why->nattempts - 1];
    const struct kl_backtrack *w = run->backtrack;

    a->steps = w->steps;
    a->stored = w->stored;
    a->end = end_of(w->budget);
    for (int l = 0; l < run->routes->topo->nlinks; l++)
        if ((int)w->reserve.refusals[l] > a->refusals) a->refusals = (int)w->reserve.refusals[l], a->limiting_link = l;
    run->unique[run->nunique++] = run->why->nattempts - 1;
    run->was_long |= a->steps >= run->few_steps;
    o->made = true;
    o->left = w->budget;
    o->most = w->most;
    o->exact = o->version == w->version && w->reserve.exact && (a->steps >= run->few_steps || !o->left);
    o->version = w->version;
}

/* ---- pruned attempts ---- */

/* Account for an attempt as for an earlier one that it equals, but for storing. */
static void repeat(struct kl_run *run, int earlier)
{
    struct kl_conn_request *a = kl_run_last(run);
    struct kl_outcome *o = &run->outcome[run->why->nattempts - 1];

    *o = run->outcome[earlier];
    o->made = false;
    a->repeats = earlier;
    a->steps = run->why->attempt[earlier].steps;
    a->end = run->why->attempt[earlier].end;
    run->budget = o->left;
}

/* Account for a pruned attempt that would store nothing: only whether it times out is known. */
static void skip(struct kl_run *run, bool timeout, bool exact)
{
    struct kl_outcome *o = &run->outcome[run->why->nattempts - 1];

    kl_run_last(run)->end = KL_ATTEMPT_PRUNED;
    o->left = run->budget = timeout ? 0 : 1;
    o->exact = exact;
}

static unsigned types_up_to(unsigned types, int limit)
{
    return types & ((2u << limit) - 1);
}

/* Path types that no path of the machine has make no difference. */
static unsigned intra_types(const struct kl_run *run, const struct kl_conn_request *a)
{
    return types_up_to(run->routes->intra_types, a->type_intra);
}

static unsigned inter_types(const struct kl_run *run, const struct kl_conn_request *a)
{
    return types_up_to(run->routes->inter_types, a->type_inter);
}

static bool same_shape(const struct kl_conn_request *a, const struct kl_conn_request *b)
{
    return a->pattern == b->pattern && a->cross_nic == b->cross_nic && a->same_channels == b->same_channels;
}

/*
 * Same limits. The attempt takes the same steps to the same solutions. None can be better than the stored one: each was
 * compared when it was found, and the stored solution only gets better. Types are relaxed one number at a time, so such
 * repetitions are frequent.
 */
static bool has_same_limits(const struct kl_run *run, const struct kl_conn_request *a, const struct kl_conn_request *b)
{
    return same_shape(a, b) && a->bw_intra == b->bw_intra && a->bw_inter == b->bw_inter &&
           intra_types(run, a) == intra_types(run, b) && inter_types(run, a) == inter_types(run, b);
}

static bool repeat_same_limits(struct kl_run *run)
{
    const struct kl_conn_request *a = kl_run_last(run);

    if (run->pass != 1) return false;
    for (int k = run->nunique - 1; k >= 0; k--) {
        int i = run->unique[k];

        if (run->outcome[i].version != run->backtrack->version || !has_same_limits(run, a, &run->why->attempt[i]))
            continue;
        repeat(run, i);
        return true;
    }
    return false;
}

/*
 * This needs exact arithmetic (kl_is_exact): with rounding errors the state of a link depends on the order of the steps.
 * And channels must be chains: heads are tried differently.
 *
 * Limits b are at least as strict as limits a: every step of b is a step of a, because a never reserves more on a link
 * than b. So a has at least as many steps, and at least as many solutions.
 */
static bool is_stricter(const struct kl_run *run, const struct kl_conn_request *b, const struct kl_conn_request *a)
{
    return same_shape(a, b) && a->bw_intra <= b->bw_intra && a->bw_inter <= b->bw_inter &&
           !(intra_types(run, b) & ~intra_types(run, a)) && !(inter_types(run, b) & ~inter_types(run, a));
}

/* If stricter limits used up their budget, so will these. */
static bool will_time_out(const struct kl_run *run)
{
    const struct kl_conn_request *a = &run->why->attempt[run->why->nattempts - 1];

    for (int k = run->nunique - 1; k >= 0; k--) {
        int i = run->unique[k];
        const struct kl_outcome *o = &run->outcome[i];

        if (o->left == 0 && o->exact && o->version == run->backtrack->version &&
            is_stricter(run, &run->why->attempt[i], a))
            return true;
    }
    return false;
}

/* If looser limits were exhausted without a large enough solution, so are these. */
static bool is_infeasible(const struct kl_run *run)
{
    const struct kl_conn_request *a = &run->why->attempt[run->why->nattempts - 1];

    for (int k = run->nunique - 1; k >= 0; k--) {
        int i = run->unique[k];
        const struct kl_outcome *o = &run->outcome[i];

        if (o->made && o->left > 0 && o->exact && o->version == run->backtrack->version &&
            o->most < run->work->min_channels && is_stricter(run, a, &run->why->attempt[i]))
            return true;
    }
    return false;
}

/*
 * Prune an attempt that can't store a solution if its outcome is known: it will time out; or how it ends makes no
 * difference, because the first solution to be found, having to have all channels, ends the pass; or, in the second
 * pass, where only a timeout matters, because it will not.
 */
static bool skip_pruned(struct kl_run *run)
{
    const struct kl_graph *w = run->work;
    bool any_end = run->pass == 1 && !run->best->nchannels && w->min_channels == w->max_channels;
    bool timeout = will_time_out(run);
    int hops = run->pass == 1 ? kl_bound_hops(run->routes) : run->best->nhops; /* the second pass starts with these */

    if ((any_end || run->pass == 2) && is_infeasible(run)) {
        skip(run, false, false);
        return true;
    }
    if (!any_end && !timeout) return false;
    if (kl_bound_can_improve(w, run->best, kl_bound_channels(run->routes, w), hops)) return false;
    skip(run, true, timeout);
    return true;
}

/*
 * Other limits, yet the same search with other numbers (kl_rounds_equivalent). Its solutions have the orders and the number of
 * channels of the earlier attempt, at no more bandwidth, so they can't be better than the stored one. If the rounds only
 * accept and refuse alike, in another order, this holds if the earlier attempt tried everything.
 */
static bool is_alike(const struct kl_run *run, const struct kl_conn_request *a, int earlier)
{
    const struct kl_conn_request *b = &run->why->attempt[earlier];
    const struct kl_outcome *o = &run->outcome[earlier];
    struct kl_round_limits wa = limits_of(a), wb = limits_of(b);
    bool exhausted = o->left > 0, crossing = a->cross_nic != b->cross_nic;

    if (!o->made || !o->exact || o->version != run->backtrack->version || b->steps < run->few_steps) return false;
    if (a->pattern != b->pattern || a->same_channels != b->same_channels || a->bw_intra > b->bw_intra) return false;
    if (crossing && (!exhausted || !kl_has_one_net(run->routes, &wa) || !kl_has_one_net(run->routes, &wb) ||
                     kl_bound_can_improve(run->work, run->best, o->most, kl_bound_hops(run->routes))))
        return false;
    return kl_rounds_equivalent(run->routes, run->sums, &wa, &wb, !exhausted);
}

static ncclResult_t prepare_sums(struct kl_run *run)
{
    if (run->sums && run->sums_of == run->work->pattern) return ncclSuccess;
    kl_sums_free(run->sums);
    run->sums = NULL;
    run->sums_of = run->work->pattern;
    return kl_sums_create(run->routes, run->work->pattern, &run->sums);
}

static ncclResult_t repeat_equivalent(struct kl_run *run, bool *repeated)
{
    const struct kl_conn_request *a = kl_run_last(run);

    KL_TRY(prepare_sums(run));
    for (int k = run->nunique - 1; k >= 0 && !*repeated; k--)
        if (is_alike(run, a, run->unique[k])) {
            repeat(run, run->unique[k]);
            *repeated = true;
        }
    return ncclSuccess;
}

static ncclResult_t is_redundant(struct kl_run *run, bool *needless)
{
    struct kl_round_limits limits = kl_round_limits_of(run->work);

    *needless = !run->thorough && repeat_same_limits(run);
    /* The proofs pay once an attempt was long. */
    if (*needless || !run->was_long || run->thorough || kl_has_heads(run->work->pattern) ||
        !kl_is_exact(run->routes, &limits))
        return ncclSuccess;
    *needless = skip_pruned(run);
    if (!*needless && run->pass == 1) KL_TRY(repeat_equivalent(run, needless));
    if (*needless && kl_run_last(run)->repeats < 0) run->unique[run->nunique++] = run->why->nattempts - 1;
    return ncclSuccess;
}

ncclResult_t kl_run_attempt(struct kl_run *run)
{
    int budget = run->work->same_channels ? KL_BUDGET_SAME : KL_BUDGET_ROUND;
    bool needless;

    KL_TRY(begin_attempt(run, budget));
    run->global_budget -= budget;
    KL_TRY(is_redundant(run, &needless));
    if (needless) return ncclSuccess;
    KL_TRY(kl_backtrack_round(run->backtrack, budget));
    run->budget = run->backtrack->budget;
    end_attempt(run);
    return ncclSuccess;
}
