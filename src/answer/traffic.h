/* SPDX-License-Identifier: Apache-2.0 */
/**
 * traffic.h - the bytes of an operation over each link, NIC, host and rail (plan/op_traffic.h).
 *
 *     traffic.c        the question, understood and answered; in one sentence
 *     traffic_json.c   all of it as JSON
 *
 * Units:  bytes of the whole (nccl-tests' size), MB (1e6 bytes), microseconds, GB/s.
 * Errors: ncclInvalidArgument for a question that is not understood; ncclInvalidUsage for one that the cluster cannot answer.
 */
#ifndef KL_ANSWER_TRAFFIC_H
#define KL_ANSWER_TRAFFIC_H

#include "answer/coll.h"
#include "plan/op_traffic.h"

/** The question as names: one size. */
struct kl_traffic_question {
    struct kl_coll_question op;
    int root;
    const int64_t *pod;           /* of each host; or one number: so many hosts are a pod */
    int npods;                    /* 0: there are no pods */
    const char *const *host_name; /* of each host; NULL: numbers name them */
};

struct kl_traffic_answer {
    struct kl_traffic_question question;
    struct kl_coll_asked asked;
    struct kl_op_traffic traffic;
    const struct kl_plan *plan;
    int *pod; /* of each host, NULL without */
};

/** Answer for a cluster, which must outlive the answer. Free with kl_traffic_answer_fini, also after a failure. */
ncclResult_t kl_traffic_answer_make(const struct kl_traffic_question *question, struct kl_opened *opened,
                                    struct kl_traffic_answer *answer);
void kl_traffic_answer_fini(struct kl_traffic_answer *answer);
ncclResult_t kl_traffic_json(const struct kl_traffic_answer *answer, FILE *to);

/** The answer in one sentence, without its full stop and the operation. */
void kl_traffic_summary(const struct kl_traffic_answer *answer, struct kl_text *to);

/** "GPU/0 -> NVS/0-0"; returns `text`. */
enum { KL_LINK_TEXT = 2 * KL_NODE_TEXT + 16 };
const char *kl_traffic_link_text(const struct kl_traffic_answer *answer, const struct kl_op_traffic_link *link,
                                 char text[KL_LINK_TEXT]);

static inline double kl_megabytes(int64_t bytes)
{
    return (double)bytes / 1e6;
}

#endif
