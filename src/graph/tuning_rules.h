/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuning_rules.h - the candidates of the choice, and the reasons against the others. Private to the tuning_*.c.
 *
 * Source: the graph specification, 11.4, 11.7 and 12.3.
 */
#ifndef KL_GRAPH_TUNING_RULES_H
#define KL_GRAPH_TUNING_RULES_H

#include "graph/tuning.h"

static inline bool kl_func_gathers(int func)
{
    return func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER;
}

static inline bool kl_algo_is_collnet(int algo)
{
    return algo == KL_ALGO_COLLNET_DIRECT || algo == KL_ALGO_COLLNET_CHAIN;
}

static inline bool kl_algo_is_nvls(int algo)
{
    return algo == KL_ALGO_NVLS || algo == KL_ALGO_NVLS_TREE;
}

/** NCCL_ALGO and NCCL_PROTO, as read. */
struct kl_tuning_filter {
    bool any; /* one of them is set */
    int algo[KL_FUNCS][KL_ALGOS], proto[KL_FUNCS][KL_ALGOS];
};
/** `algos`: those that may be named. */
ncclResult_t kl_tuning_filter_read(const struct kl_tuning_params *params, int algos, struct kl_tuning_filter *filter);

/** Is there no model of this combination? `pat` is NCCL_PAT_ENABLE. */
enum kl_tuning_refusal kl_tuning_not_modelled(const struct kl_tuning_input *in, int64_t pat, int func, int algo,
                                              int proto);

/** Set the bandwidth of excluded candidates to 0, and note the reason for every bandwidth of 0. */
void kl_tuning_exclude(struct kl_tuning *t, const struct kl_tuning_filter *filter);

/** The reason against an algorithm for this operation, beyond the reasons that hold for all operations. */
enum kl_tuning_refusal kl_tuning_unfit(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo);

#endif
