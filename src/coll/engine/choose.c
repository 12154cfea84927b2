/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/choose.h"

#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/shm/flat.h"
#include "coll/zcopy/peer_direct.h"
#include "coll/schedule/ordered.h"
#include "graph/tuning_rules.h"

#include <string.h>

static bool is_served(const struct kl_chooser *c, int func, int algo, int proto)
{
    const int algorithm = kl_algorithm_find(func, algo, proto, c->memory);

    if (algorithm < 0 || !c->by_rows) return algorithm >= 0;
    return kl_algorithm_has_rows(algorithm) && (proto != KL_PROTO_LL128 || c->ll128 >> func & 1);
}

/* Candidates that no algorithm here serves. False: none is left. */
static bool drop_unanswered(const struct kl_chooser *c, int func, float cost[KL_ALGOS][KL_PROTOS])
{
    bool left = false;

    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            if (!is_served(c, func, a, p)) cost[a][p] = -1;
            left |= cost[a][p] >= 0;
        }
    return left;
}

/* Candidates that the limits exclude. False: none is left, or there are no such limits. */
static bool drop_excluded(const struct kl_limits *l, float cost[KL_ALGOS][KL_PROTOS])
{
    bool left = false;

    if (!l || !l->algorithms) return false;
    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            if (!(l->algorithms >> a & 1)) cost[a][p] = -1;
            left |= cost[a][p] >= 0;
        }
    return left;
}

static ncclResult_t ask_within(const struct kl_chooser *c, const struct kl_tuning_op *op,
                               struct kl_tuning_choice *choice, const float cost[KL_ALGOS][KL_PROTOS])
{
    float within[KL_ALGOS][KL_PROTOS];

    memcpy(within, cost, sizeof within);
    (void)drop_unanswered(c, op->func, within);
    if (!drop_excluded(c->limits, within)) {
        if (!c->limits->force) {
            KL_ATTN("%s of %lld bytes: no algorithm of algSelection serves it here, and it is ignored",
                    kl_func_name[op->func], (long long)op->bytes);
            return ncclSuccess;
        }
        return KL_FAIL(
            ncclInvalidUsage,
            "%s of %lld bytes: no algorithm of algSelection serves it here; with forceAlgSelection 0 another "
            "one is taken",
            kl_func_name[op->func], (long long)op->bytes);
    }
    KL_TRY(kl_tuning_pick(c->tuning, op, (const float(*)[KL_PROTOS])within, choice));
    kl_tuning_size(c->tuning, op->bytes, choice);
    return ncclSuccess;
}

/* A tuner changes the times of the candidates. *by_tuner: it has decided. Otherwise the model's choice stays. */
static ncclResult_t ask_plugin(const struct kl_chooser *c, const struct kl_tuning_op *op,
                               float cost[KL_ALGOS][KL_PROTOS], struct kl_tuning_choice *choice, bool *by_tuner)
{
    (void)drop_unanswered(c, op->func, cost);
    KL_TRY(kl_tuner_choose(c->tuner, c->tuning, op, cost, choice, by_tuner));
    if (!*by_tuner) return ncclSuccess;
    KL_INFO(KL_TUNING, "%s of %lld bytes: %s %s, %d channels: chosen by the tuner %s", kl_func_name[op->func],
            (long long)op->bytes, kl_algo_name[choice->algo], kl_proto_name[choice->proto], choice->nchannels,
            kl_tuner_name(c->tuner));
    return ncclSuccess;
}

static ncclResult_t ask_model(const struct kl_chooser *c, const struct kl_tuning_op *op,
                              struct kl_tuning_choice *choice, bool *by_tuner)
{
    const struct kl_tuning *tuning = c->tuning;
    const bool limited = c->limits && c->limits->algorithms;
    float cost[KL_ALGOS][KL_PROTOS];

    *by_tuner = false;
    KL_TRY(kl_tuning_choose(tuning, op, choice, cost));
    if (c->tuner && !limited) KL_TRY(ask_plugin(c, op, cost, choice, by_tuner));
    if (limited) KL_TRY(ask_within(c, op, choice, (const float(*)[KL_PROTOS])cost));
    if (is_served(c, op->func, choice->algo, choice->proto)) return ncclSuccess;
    if (!drop_unanswered(c, op->func, cost) && c->by_rows) return ncclSuccess; /* GPUs do it in another way */
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

/* The user's NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS are in the plan already: limits choose among its channels. */
static int within_limits(const struct kl_chooser *c, const struct kl_tuning_choice *tuned)
{
    const struct kl_limits *l = c->limits;
    const bool nvls = kl_algo_is_nvls(tuned->algo);
    int most = nvls ? c->tuning->in.nvls_channels : c->tuning->in.nchannels, n = tuned->nchannels;

    if (!l || kl_algo_info[tuned->algo].one_channel) return n;
    if (l->max_channels < most) most = l->max_channels;
    if (nvls && l->nvls_channels < most) most = l->nvls_channels;
    if (n < l->min_channels) n = l->min_channels;
    return n < most ? n : most;
}

static bool is_ordered(const struct kl_chooser *c, const struct kl_task *t)
{
    return c->ordered && kl_func_info[t->func].reduces && kl_ordered_is_needed(t->type, t->op, t->redop);
}

/* Could the ranks have a shared-memory exchange for it? */
static bool has_exchange(const struct kl_chooser *c, int func, int modelled_as, int algo)
{
    return c->tuning->bandwidth[modelled_as][KL_ALGO_FLAT][KL_PROTO_SIMPLE] > 0 &&
           kl_algorithm_find(func, algo, KL_PROTO_SIMPLE, c->memory) >= 0;
}

/* Nothing else is asked for, and it is large. */
static bool may_be_peer_direct(const struct kl_chooser *c, int func, int modelled_as, size_t bytes)
{
    if (c->limits && c->limits->algorithms) return false;
    return bytes >= KL_PEER_DIRECT_LEAST && !*c->tuning->algo && !*c->tuning->proto &&
           has_exchange(c, func, modelled_as, KL_ALGO_PEER_DIRECT);
}

/* And each rank knows all that a reduction needs. */
static bool takes_peer_direct(const struct kl_chooser *c, const struct kl_task *t, size_t bytes)
{
    return !t->redop && !is_ordered(c, t) && may_be_peer_direct(c, t->func, t->func, bytes);
}

static bool is_all_to_all_staged(const struct kl_chooser *c, size_t part)
{
    return part <= KL_FLAT_PART && has_exchange(c, KL_FUNC_ALL_TO_ALL, KL_FUNC_ALL_GATHER, KL_ALGO_FLAT);
}

static bool is_all_to_all_peer_direct(const struct kl_chooser *c, size_t part)
{
    const size_t bytes = kl_func_bytes(KL_FUNC_ALL_TO_ALL, part, c->tuning->in.nranks);

    return may_be_peer_direct(c, KL_FUNC_ALL_TO_ALL, KL_FUNC_ALL_GATHER, bytes);
}

bool kl_chooser_takes_all_to_all(const struct kl_chooser *c, size_t part)
{
    return is_all_to_all_staged(c, part) || is_all_to_all_peer_direct(c, part);
}

/* Through shared memory, estimated as an all-gather; or as messages. */
static ncclResult_t choose_all_to_all(const struct kl_chooser *c, const struct kl_task *t, size_t elem_bytes,
                                      struct kl_choice *choice)
{
    const size_t part = t->count * elem_bytes, bytes = kl_func_bytes(t->func, part, c->tuning->in.nranks);
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_GATHER, (int64_t)bytes, t->type, t->op);
    struct kl_tuning_terms terms;

    kl_tuning_terms(c->tuning, &op, KL_ALGO_FLAT, KL_PROTO_SIMPLE, &terms);
    *choice = (struct kl_choice){
        .algorithm = (uint8_t)kl_algorithm_find(t->func, KL_ALGO_FLAT, KL_PROTO_SIMPLE, c->memory),
        .proto = KL_PROTO_SIMPLE,
        .messages = !is_all_to_all_staged(c, part),
        .peer_direct = is_all_to_all_peer_direct(c, part),
        .time_us = terms.time,
        .partition = {.nchannels = 1, .lo = t->count},
    };
    return ncclSuccess;
}

/* A network knows built-in operations, and perhaps not all of them. Gathering is none. */
static bool network_can(const struct kl_chooser *c, const struct kl_task *t)
{
    const struct kl_collnet_op op = {.type = t->type, .op = t->op};

    if (t->redop) return false;
    return t->func == KL_FUNC_ALL_GATHER || !c->collnet || c->collnet->reduces(op);
}

static ncclResult_t choose(const struct kl_chooser *c, const struct kl_task *t, size_t elem_bytes,
                           struct kl_choice *choice)
{
    const struct kl_tuning *tuning = c->tuning;
    size_t bytes = kl_func_bytes(t->func, t->count * elem_bytes, tuning->in.nranks);
    struct kl_tuning_op op = kl_tuning_op_of(t->func, (int64_t)bytes, t->type, t->op);
    struct kl_tuning_choice tuned;
    bool by_tuner = false;

    op.collnet = network_can(c, t);
    if (is_ordered(c, t))
        choose_ordered(c, &op, &tuned);
    else
        KL_TRY(ask_model(c, &op, &tuned, &by_tuner));
    struct kl_partition_request partition = {
        .func = t->func,
        .nranks = tuning->in.nranks,
        .count = t->count,
        .elem_bytes = elem_bytes,
        .nchannels = within_limits(c, &tuned),
        .ll = tuned.proto == KL_PROTO_LL,
    };
    *choice = (struct kl_choice){
        .algorithm = (uint8_t)kl_algorithm_find(t->func, tuned.algo, tuned.proto, c->memory),
        .proto = (uint8_t)tuned.proto,
        .peer_direct = !by_tuner && takes_peer_direct(c, t, bytes),
        .by_tuner = by_tuner,
        .time_us = tuned.time,
        .partition = kl_partition_channels(&partition),
    };
    return ncclSuccess;
}

ncclResult_t kl_choose_within(const struct kl_chooser *chooser, struct kl_task *t, size_t elem_bytes)
{
    t->limits = kl_limits_hash(chooser->limits);
    return choose(chooser, t, elem_bytes, &t->choice);
}

ncclResult_t kl_choose_uncached(const struct kl_chooser *chooser, const struct kl_task *t, size_t elem_bytes,
                                struct kl_remembered *place)
{
    struct kl_choice choice;

    KL_TRY((t->func == KL_FUNC_ALL_TO_ALL ? choose_all_to_all : choose)(chooser, t, elem_bytes, &choice));
    *place = (struct kl_remembered){.count = t->count, .key = kl_choice_key(t), .choice = choice};
    return ncclSuccess;
}
