/* SPDX-License-Identifier: Apache-2.0 */
/**
 * op_choice.h - the algorithm and protocol of an operation, the times of the others, and the reasons against them.
 *
 * Units:   microseconds, GB/s (1e9 bytes), bytes. Sizes are of the whole operation, as nccl-tests' size column.
 * Threads: const once made.
 */
#ifndef KL_PLAN_OP_CHOICE_H
#define KL_PLAN_OP_CHOICE_H

#include "graph/expected.h"
#include "graph/tuning_ranges.h"

enum { KL_OP_CANDIDATES = KL_ALGOS * KL_PROTOS }; /* at most */

/** The operation: for one size (first == last), or for all of a range. */
struct kl_op_question {
    int func; /* enum kl_func */
    int64_t first, last;
    ncclDataType_t type;
    ncclRedOp_t op;
};

struct kl_op_candidate {
    enum kl_tuning_refusal refusal;
    int path;                       /* enum kl_path_type that made LL128 unsafe; else 0 */
    struct kl_tuning_choice choice; /* also of refused ones: algorithm and protocol */
    struct kl_tuning_terms terms;   /* at the first size */
    struct kl_expected expected;    /* the same; it plays no part in the order */
};

struct kl_op_choice {
    const struct kl_tuning *tuning;
    struct kl_tuning_op op;                             /* of the first size */
    struct kl_op_candidate candidate[KL_OP_CANDIDATES]; /* possible ones first, fastest first */
    int npossible, ncandidates;
    struct kl_tuning_range *range; /* for one size: of all sizes up to 16 GiB or more, else of the requested ones */
    int nranges;
};

/** `tuning` must outlive the choice. Free with kl_op_choice_fini. */
ncclResult_t kl_op_choice_find(const struct kl_op_question *question, const struct kl_tuning *tuning,
                               struct kl_op_choice *choice);
void kl_op_choice_fini(struct kl_op_choice *choice);

/** Are two candidates refused for the same reason? */
bool kl_op_same_refusal(const struct kl_op_candidate *a, const struct kl_op_candidate *b);

/** Is every protocol of the candidate's algorithm refused, for the same reason or because it does not exist? */
bool kl_op_refuses_algorithm(const struct kl_op_choice *choice, const struct kl_op_candidate *candidate);

#endif
