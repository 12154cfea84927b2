/* SPDX-License-Identifier: Apache-2.0 */
/**
 * coll.h - the algorithm, protocol and channels of a collective (plan/op_choice.h), or its rounds of sends and receives
 * (plan/op_rounds.h).
 *
 *     coll.c         the question, understood and answered
 *     coll_words.c   numbers and parts of sentences
 *     coll_json.c    the answer as JSON
 *
 * Units:  microseconds, GB/s (1e9 bytes), bytes. Sizes are those of the whole: nccl-tests' size column.
 * Errors: ncclInvalidArgument for a question that is not understood; ncclInvalidUsage for one that the cluster cannot answer.
 */
#ifndef KL_ANSWER_COLL_H
#define KL_ANSWER_COLL_H

#include "answer/opened.h"
#include "plan/collective.h"
#include "plan/op_choice.h"
#include "plan/op_rounds.h"

#include <jansson.h>
#include <stdio.h>

/** The question as names. */
struct kl_coll_question {
    const char *coll;      /* as kl_coll_find takes it; "send" and "recv", too */
    const char *type, *op; /* NULL: float, sum */
    int64_t first, last;   /* bytes; the same for one size; 0 and 0: 1 byte to 16 GiB */
};

/** The question, understood. */
struct kl_coll_asked {
    const struct kl_coll *coll;
    const char *title; /* "AllReduce" */
    int func;          /* enum kl_func; -1: sends and receives */
    enum kl_op_peers peers;
    int64_t first, last;
    ncclDataType_t type;
    ncclRedOp_t op;

    /* where; set with the answer */
    const struct kl_cluster *cluster;
    int ranks, nodes;
};

/** Is this the name of a collective? */
bool kl_coll_is_named(const char *name);

ncclResult_t kl_coll_ask(const struct kl_coll_question *question, struct kl_coll_asked *asked);

/** Plan for the cluster, which must outlive the question, and set the question's place. */
ncclResult_t kl_coll_place(struct kl_coll_asked *asked, struct kl_opened *opened);

/** Can all GPUs of the place handle the type? ncclInvalidUsage if not. */
ncclResult_t kl_coll_check_type(const struct kl_coll_asked *asked, const struct kl_tuning *tuning);

struct kl_coll_answer {
    struct kl_coll_asked asked;
    struct kl_op_choice choice; /* asked.func >= 0 */
    struct kl_op_rounds rounds; /* asked.func < 0 */
    json_t *selected, *tuner;   /* added to the JSON of a choice; NULL: nothing. The caller's */
};

/** Answer for a cluster, which must outlive the answer. Free with kl_coll_answer_fini, also after a failure. */
ncclResult_t kl_coll_answer_make(const struct kl_coll_asked *asked, struct kl_opened *opened,
                                 struct kl_coll_answer *answer);
void kl_coll_answer_fini(struct kl_coll_answer *answer);
ncclResult_t kl_coll_json(const struct kl_coll_answer *answer, FILE *to);

/** The keys of a question and its place, with which answers begin. NULL when memory is short. */
json_t *kl_coll_question_json(const struct kl_coll_asked *asked);

/* ---- words ---- */

/** GB/s of the busiest link, as nccl-tests counts; 0 for a barrier. */
double kl_coll_bus(const struct kl_coll_asked *asked, int64_t bytes, float time);

/** How much slower, in percent. */
double kl_coll_slower(float time, float best);

/** A remark about candidates with timeless hops. */
extern const char kl_coll_timeless[];

/** Bytes of one message of a collective made of sends and receives; alltoallv: the mean. */
int64_t kl_coll_piece_bytes(const struct kl_coll_asked *asked, int64_t bytes);

/** A time with four digits, in the unit that suits it: "339.4 us", "2.333 ms". */
enum { KL_COLL_TIME_TEXT = 24 };
const char *kl_coll_time_text(double us, char text[KL_COLL_TIME_TEXT]);

#endif
