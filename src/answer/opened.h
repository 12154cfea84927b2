/* SPDX-License-Identifier: Apache-2.0 */
/**
 * opened.h - a cluster to ask questions about: opened, judged, and planned at most once.
 *
 * Errors:  as kl_cluster_open and kl_plan_create.
 * Threads: one at a time.
 */
#ifndef KL_ANSWER_OPENED_H
#define KL_ANSWER_OPENED_H

#include "plan/cluster.h"
#include "plan/planned.h"

struct kl_opened {
    struct kl_cluster cluster;   /* with its finding */
    struct kl_uncertain machine; /* uncertain rules that matter for the machine, whatever the question */
    struct kl_planned planned;
    bool has_plan;
    double search_ms; /* wall time of the plan */
};

/** The request must outlive it. On failure nothing is held. */
ncclResult_t kl_opened_init(const struct kl_cluster_request *request, struct kl_opened *opened);
void kl_opened_fini(struct kl_opened *opened);

/** Plan for the cluster, unless that was done. */
ncclResult_t kl_opened_plan(struct kl_opened *opened);

/** Set the cluster's `uncertain` for a question about its machine, or about an operation (NULL: any) of its plan. */
void kl_opened_about_machine(struct kl_opened *opened);
void kl_opened_about_tuning(struct kl_opened *opened, const struct kl_tuning_op *op);

/** "reference" or "host"; NULL stands for NULL. ncclInvalidArgument for another name. */
ncclResult_t kl_constants_named(const char *name, const struct kl_tuning_constants **constants);

/** Say the warnings of opening the cluster, which are not part of any answer: a file that is not used, links that sleep. */
typedef void kl_opened_say(void *ctx, const char *text);
void kl_opened_warn(const struct kl_cluster *cluster, kl_opened_say *say, void *ctx);

#endif
