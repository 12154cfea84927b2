/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/run.h"

#include "base/error.h"

#include <stdlib.h>

/* ---- the record of attempts ---- */

static ncclResult_t begin_attempt(struct kl_run *run, int budget)
{
    struct kl_graph_why *why = run->why;
    const struct kl_graph *w = run->work;

    if (why->nattempts == run->max_attempts) {
        int max = run->max_attempts ? 2 * run->max_attempts : 32;
        struct kl_attempt *more = realloc(why->attempt, (size_t)max * sizeof *more);

        if (!more) return KL_NOMEM("the record of a graph search");
        why->attempt = more;
        run->max_attempts = max;
    }
    why->attempt[why->nattempts++] = (struct kl_attempt){.pass = run->pass,
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

static void end_attempt(struct kl_run *run)
{
    struct kl_attempt *a = kl_run_last(run);
    const struct kl_walk *w = run->walk;

    a->steps = w->steps;
    a->left = w->budget;
    a->version = w->version;
    a->stored = w->stored;
    a->timed_out = w->budget == 0;
    a->exact = a->timed_out && kl_run_is_exact(run);
    a->end = w->budget == KL_WALK_PERFECT ? KL_ATTEMPT_PERFECT : w->budget ? KL_ATTEMPT_EXHAUSTED : KL_ATTEMPT_TIMEOUT;
    for (int l = 0; l < run->routes->topo->nlinks; l++)
        if ((int)w->refusals[l] > a->refusals) a->refusals = (int)w->refusals[l], a->limiting_link = l;
}

/* ---- attempts that need not be made ---- */

static unsigned types_up_to(unsigned types, int limit)
{
    return types & ((2u << limit) - 1);
}

/* Path types that no path of the machine has make no difference. */
static unsigned intra_types(const struct kl_run *run, const struct kl_attempt *a)
{
    return types_up_to(run->routes->intra_types, a->type_intra);
}

static unsigned inter_types(const struct kl_run *run, const struct kl_attempt *a)
{
    return types_up_to(run->routes->inter_types, a->type_inter);
}

static bool same_shape(const struct kl_attempt *a, const struct kl_attempt *b)
{
    return a->pattern == b->pattern && a->cross_nic == b->cross_nic && a->same_channels == b->same_channels;
}

/*
 * An attempt with the same wishes as an earlier one of this pass takes the same steps to the same solutions, none of
 * which can be better than what is stored: each was compared when it was found, and what is stored only gets better. So
 * it is not made, but accounted for. Types are relaxed one number at a time, so such repetitions are frequent.
 */
static bool is_repetition(const struct kl_run *run, const struct kl_attempt *a, const struct kl_attempt *b)
{
    return same_shape(a, b) && a->bw_intra == b->bw_intra && a->bw_inter == b->bw_inter &&
           intra_types(run, a) == intra_types(run, b) && inter_types(run, a) == inter_types(run, b) && b->repeats < 0 &&
           b->end != KL_ATTEMPT_HOPELESS && b->version == run->walk->version;
}

static bool repeat_attempt(struct kl_run *run)
{
    struct kl_attempt *a = kl_run_last(run);

    if (run->pass != 1) return false;
    for (int i = run->why->nattempts - 2; i >= 0; i--) {
        const struct kl_attempt *b = &run->why->attempt[i];

        if (!is_repetition(run, a, b)) continue;
        a->repeats = i;
        a->steps = b->steps;
        a->end = b->end;
        a->timed_out = b->timed_out;
        a->left = run->budget = b->left;
        return true;
    }
    return false;
}

/*
 * An attempt that wishes for no more bandwidth than an earlier one, and allows no fewer path types, can take every step
 * that the earlier one took: whatever it took from links before, and takes now, is no more. So it has at least as
 * many steps to take, and if the earlier one used up its budget, so will this one.
 *
 * That holds for channels that are chains, and while rounding leaves no traces: with traces, what one attempt leaves on a
 * link would depend on its path through the search, and a step could be possible that should not be.
 */
static bool takes_as_many_steps(const struct kl_run *run, const struct kl_attempt *a, const struct kl_attempt *b)
{
    return b->timed_out && b->exact && same_shape(a, b) && a->bw_intra <= b->bw_intra && a->bw_inter <= b->bw_inter &&
           !(intra_types(run, b) & ~intra_types(run, a)) && !(inter_types(run, b) & ~inter_types(run, a)) &&
           b->version == run->walk->version;
}

static bool will_time_out(const struct kl_run *run, const struct kl_attempt *a)
{
    for (int i = run->why->nattempts - 2; i >= 0; i--)
        if (takes_as_many_steps(run, a, &run->why->attempt[i])) return kl_run_is_exact(run);
    return false;
}

/*
 * An attempt that can't store a solution is not made where its outcome is known: it will time out; or how it ends makes no
 * difference, because the first solution to be found, having to have all channels, ends the pass.
 */
static bool skip_hopeless(struct kl_run *run)
{
    struct kl_attempt *a = kl_run_last(run);
    const struct kl_graph *w = run->work;
    bool any_end = run->pass == 1 && !run->best->nchannels && w->min_channels == w->max_channels;
    bool timeout = will_time_out(run, a);

    if ((!any_end && !timeout) || (any_end && !kl_run_is_exact(run)) || kl_run_may_win(run)) return false;
    a->end = KL_ATTEMPT_HOPELESS;
    a->timed_out = a->exact = timeout;
    a->version = run->walk->version;
    a->left = run->budget = 0;
    return true;
}

ncclResult_t kl_run_attempt(struct kl_run *run)
{
    int budget = run->work->same_channels ? KL_BUDGET_SAME : KL_BUDGET_ROUND;

    KL_TRY(begin_attempt(run, budget));
    run->global_budget -= budget;
    if (repeat_attempt(run) || skip_hopeless(run)) return ncclSuccess;
    KL_TRY(kl_walk_round(run->walk, budget));
    run->budget = run->walk->budget;
    end_attempt(run);
    return ncclSuccess;
}
