/* SPDX-License-Identifier: Apache-2.0 */
/**
 * traffic.h - the bytes of an operation over each link, NIC, host and rail (plan/op_traffic.h).
 *
 *     traffic.c        the question, understood and answered; in one sentence
 *     traffic_json.c   all of it as JSON
 *     trace_traffic.c  the same for all calls of a trace; its messages: trace_messages.c
 *
 * Units:  bytes of the whole (nccl-tests' size), MB (1e6 bytes), microseconds, GB/s.
 * Errors: ncclInvalidArgument for a question that is not understood; ncclInvalidUsage for one that the cluster cannot answer.
 */
#ifndef KL_ANSWER_TRAFFIC_H
#define KL_ANSWER_TRAFFIC_H

#include "answer/coll.h"
#include "logs/record/record.h"
#include "plan/op_traffic.h"

/** The question as names: one size. */
struct kl_traffic_question {
    struct kl_coll_question op;
    int root;
    const int64_t *pod;           /* of each host; or one number: so many hosts are a pod */
    int npods;                    /* 0: there are no pods */
    const char *const *host_name; /* of each host; NULL: numbers name them */
};

/** The calls of a trace. A send with its receive is one message; `alone`: the other side has no record of it. */
struct kl_traffic_trace {
    const char *kind; /* of the files: "a trace" */
    int files, groups, kinds;
    int64_t operations; /* collectives with an algorithm */
    int64_t messages, sends_alone, receives_alone, all_to_alls;
    int64_t
        skipped; /* not counted: sizes or peers are unknown, there is no model, or the hosts of a group use different GPUs */
    char first_skipped[64];
};

struct kl_traffic_answer {
    struct kl_traffic_question question;
    struct kl_coll_asked asked; /* of a trace: its place only */
    bool is_trace;
    struct kl_traffic_trace trace;
    struct kl_op_traffic traffic;
    const struct kl_plan *plan;
    int *pod; /* of each host, NULL without */
};

/** Answer for a cluster, which must outlive the answer. Free with kl_traffic_answer_fini, also after a failure. */
ncclResult_t kl_traffic_answer_make(const struct kl_traffic_question *question, struct kl_opened *opened,
                                    struct kl_traffic_answer *answer);

/**
 * The same for the collectives of records, which are judged: rank r is GPU r mod G of host r / G. `opened` is a cluster of
 * `request`, which is planned again for groups of some ranks. `question`: pods only.
 */
ncclResult_t kl_traffic_trace_make(const struct kl_traffic_question *question, const struct kl_record *record,
                                   const struct kl_cluster_request *request, struct kl_opened *opened,
                                   struct kl_traffic_answer *answer);

/** Hosts of so many GPUs for the ranks of records. */
int kl_traffic_trace_hosts(const struct kl_record *record, int gpus);

/** The pod of each host, as the question asks. */
ncclResult_t kl_traffic_make_pods(struct kl_traffic_answer *answer);
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
