/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/choose.h"

#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/flat_direct.h"
#include "coll/mapped.h"
#include "coll/ordered.h"

enum { MOST_READERS = 16 }; /* ranks */

/* Candidates that no algorithm here serves. */
static void drop_missing(const struct kl_chooser *c, int func, float cost[KL_ALGOS][KL_PROTOS])
{
    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++)
            if (kl_algorithm_find(func, a, p, c->memory) < 0) cost[a][p] = -1;
}

static ncclResult_t ask_tuner(const struct kl_chooser *c, const struct kl_tuning_op *op,
                              struct kl_tuning_choice *choice)
{
    const struct kl_tuning *tuning = c->tuning;
    float cost[KL_ALGOS][KL_PROTOS];

    KL_TRY(kl_tuning_choose(tuning, op, choice, cost));
    if (kl_algorithm_find(op->func, choice->algo, choice->proto, c->memory) >= 0) return ncclSuccess;
    drop_missing(c, op->func, cost);
    KL_TRY(kl_tuning_pick(tuning, op, cost, choice));
    kl_tuning_size(tuning, op->bytes, choice);
    return ncclSuccess;
}

/* The tuner has no say; it estimates a ring. */
static void choose_ordered(const struct kl_chooser *c, const struct kl_tuning_op *op, struct kl_tuning_choice *choice)
{
    struct kl_tuning_choice ring = {.algo = KL_ALGO_RING, .proto = KL_PROTO_SIMPLE};
    struct kl_tuning_terms terms;

    kl_tuning_terms(c->tuning, op, ring.algo, ring.proto, &terms);
    kl_tuning_size(c->tuning, op->bytes, &ring);
    *choice = ring;
    choice->algo = kl_ordered_algo(c->tuning->in.nranks);
    choice->time = terms.time;
}

static bool is_ordered(const struct kl_chooser *c, const struct kl_task *t)
{
    return c->ordered && kl_func_info[t->func].reduces && kl_ordered_matters(t->type, t->op, t->redop);
}

/* Where a board could be had for it and nothing else is asked for, and each rank knows all that a reduction needs. */
static bool takes_mapped(const struct kl_chooser *c, const struct kl_task *t, int func, size_t bytes)
{
    const size_t least = c->tuning->in.nranks > 2 ? KL_MAPPED_LEAST : KL_MAPPED_LEAST_OF_TWO;

    return bytes >= least && !*c->tuning->algo && !*c->tuning->proto && !t->redop && !is_ordered(c, t) &&
           c->tuning->bandwidth[func][KL_ALGO_FLAT][KL_PROTO_SIMPLE] > 0 &&
           kl_algorithm_find(t->func, KL_ALGO_MAPPED, KL_PROTO_SIMPLE, c->memory) >= 0;
}

/* Through a board, which is estimated as what an all-gather takes. */
static ncclResult_t choose_all_to_all(const struct kl_chooser *c, const struct kl_task *t, size_t elem_bytes,
                                      struct kl_choice *choice)
{
    size_t bytes = kl_func_bytes(t->func, t->count * elem_bytes, c->tuning->in.nranks);
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_GATHER, (int64_t)bytes, t->type, t->op);
    struct kl_tuning_terms terms;

    kl_tuning_terms(c->tuning, &op, KL_ALGO_FLAT, KL_PROTO_SIMPLE, &terms);
    *choice = (struct kl_choice){
        .algorithm = (uint8_t)kl_algorithm_find(t->func, KL_ALGO_FLAT, KL_PROTO_SIMPLE, c->memory),
        .proto = KL_PROTO_SIMPLE,
        .mapped = takes_mapped(c, t, KL_FUNC_ALL_GATHER, bytes),
        .time_us = terms.time,
        .cut = {.nchannels = 1, .lo = t->count},
    };
    return ncclSuccess;
}

static ncclResult_t choose(const struct kl_chooser *c, const struct kl_task *t, size_t elem_bytes,
                           struct kl_choice *choice)
{
    const struct kl_tuning *tuning = c->tuning;
    size_t bytes = kl_func_bytes(t->func, t->count * elem_bytes, tuning->in.nranks);
    struct kl_tuning_op op = kl_tuning_op_of(t->func, (int64_t)bytes, t->type, t->op);
    struct kl_tuning_choice tuned;

    op.collnet = !t->redop; /* a network knows the built-in operations */
    if (is_ordered(c, t))
        choose_ordered(c, &op, &tuned);
    else
        KL_TRY(ask_tuner(c, &op, &tuned));
    struct kl_cut_request cut = {
        .func = t->func,
        .nranks = tuning->in.nranks,
        .count = t->count,
        .elem_bytes = elem_bytes,
        .nchannels = tuned.nchannels,
        .ll = tuned.proto == KL_PROTO_LL,
    };
    *choice = (struct kl_choice){
        .algorithm = (uint8_t)kl_algorithm_find(t->func, tuned.algo, tuned.proto, c->memory),
        .proto = (uint8_t)tuned.proto,
        .mapped = takes_mapped(c, t, t->func, bytes),
        .time_us = tuned.time,
        .cut = kl_cut_among(&cut),
    };
    return ncclSuccess;
}

/* Large parts are read where they lie, if all ranks can and want to, which they find out when they meet. Threads lend each other what
 * they send in messages, which also serve two ranks better. Where reading is refused all has to be staged, in pieces that shrink with
 * the number of ranks: many of them do better without. */
bool kl_chooser_takes_board(const struct kl_chooser *c, size_t part)
{
    const bool fits = part <= KL_FLAT_STAGED || (part <= KL_FLAT_MOST && c->processes && c->tuning->in.nranks > 2 &&
                                                 c->tuning->in.nranks <= MOST_READERS);

    return fits && c->tuning->bandwidth[KL_FUNC_ALL_GATHER][KL_ALGO_FLAT][KL_PROTO_SIMPLE] > 0 &&
           kl_algorithm_find(KL_FUNC_ALL_TO_ALL, KL_ALGO_FLAT, KL_PROTO_SIMPLE, c->memory) >= 0;
}

ncclResult_t kl_choose(struct kl_chooser *chooser, struct kl_task *t, size_t elem_bytes)
{
    uint32_t what = 1u << 31 | (uint32_t)(t->redop != NULL) << 30 | (uint32_t)t->func << 16 | (uint32_t)t->type << 8 |
                    (uint32_t)t->op;
    struct kl_remembered *r = &chooser->last[((t->count ^ what) * 0x9e3779b97f4a7c15u >> 40) % KL_CHOICES];

    if (r->what != what || r->count != t->count) {
        struct kl_choice choice;
        KL_TRY((t->func == KL_FUNC_ALL_TO_ALL ? choose_all_to_all : choose)(chooser, t, elem_bytes, &choice));
        *r = (struct kl_remembered){.count = t->count, .what = what, .choice = choice};
    }
    t->choice = r->choice;
    return ncclSuccess;
}
