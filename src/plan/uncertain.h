/* SPDX-License-Identifier: Apache-2.0 */
/**
 * uncertain.h - rules of a release that are assumed, because their code could not be read, and that matter for an
 * answer.
 *
 * A rule matters if its opposite changes the machine, or the times of an operation. Each is tried by itself. None
 * matters where a question cannot be asked at all.
 *
 * Threads: one at a time.
 */
#ifndef KL_PLAN_UNCERTAIN_H
#define KL_PLAN_UNCERTAIN_H

#include "graph/tuning.h"
#include "topo/release.h"

struct kl_cluster;
struct kl_planned;

struct kl_uncertain {
    enum kl_change change[KL_CHANGES];
    int n;
};

/** Add the assumptions that matter for the cluster's machine to its `uncertain`. */
void kl_uncertain_machine(struct kl_cluster *cluster);

/** Add the assumptions that matter for the choice of an operation, of its size and all powers of two. NULL: for sums of
 * floats, all functions. */
void kl_uncertain_tuning(const struct kl_planned *planned, const struct kl_tuning_op *op, struct kl_cluster *cluster);

#endif
