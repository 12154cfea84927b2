/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/op_choice.h"

#include "base/error.h"

#include <stdlib.h>

enum { LEAST_TO_SEARCH = 34 }; /* log2: changes are searched up to 16 GiB, or the requested size */

/* The path that makes LL128 unsafe. A path worse than SYS counts as SYS. */
static int path_of(const struct kl_tuning *t, int algo, enum kl_tuning_refusal refusal)
{
    const struct kl_graph_facts *g = &t->in.graph[kl_algo_graph((enum kl_algo)algo)];

    if (refusal == KL_REFUSED_LL128_INTRA) return g->type_intra;
    if (refusal != KL_REFUSED_LL128_INTER) return 0;
    return g->type_inter < KL_PATH_SYS ? g->type_inter : KL_PATH_SYS;
}

static void judge(const struct kl_tuning *t, const struct kl_tuning_op *op, struct kl_op_candidate *c)
{
    int algo = c->choice.algo, proto = c->choice.proto;

    c->refusal = kl_tuning_refused(t, op, algo, proto);
    if (c->refusal) {
        c->path = path_of(t, algo, c->refusal);
        return;
    }
    kl_tuning_terms(t, op, algo, proto, &c->terms);
    c->expected = kl_expected_of(t, op, algo, proto);
    c->choice.time = c->terms.time;
    kl_tuning_size(t, op->bytes, &c->choice);
}

/* Possible before refused, then by time, then in the model's order, or, among possible ones, from its end: it decides
 * between equals. */
static int by_time(const void *x, const void *y, bool later)
{
    const struct kl_op_candidate *a = x, *b = y;
    int refused = (a->refusal != 0) - (b->refusal != 0);

    if (refused) return refused;
    if (!a->refusal && a->terms.time != b->terms.time) return a->terms.time < b->terms.time ? -1 : 1;
    int order = (a->choice.algo - b->choice.algo) * KL_PROTOS + a->choice.proto - b->choice.proto;

    return later && !a->refusal ? -order : order;
}

static int earlier_first(const void *x, const void *y)
{
    return by_time(x, y, false);
}

static int later_first(const void *x, const void *y)
{
    return by_time(x, y, true);
}

ncclResult_t kl_op_choice_find(const struct kl_op_question *q, const struct kl_tuning *t, struct kl_op_choice *c)
{
    bool one = q->first == q->last;
    int64_t most = (int64_t)1 << LEAST_TO_SEARCH;

    *c = (struct kl_op_choice){.tuning = t, .op = kl_tuning_op_of(q->func, q->first, q->type, q->op)};
    c->ncandidates = t->constants->algos * KL_PROTOS;
    for (int i = 0; i < c->ncandidates; i++) {
        c->candidate[i].choice = (struct kl_tuning_choice){.algo = i / KL_PROTOS, .proto = i % KL_PROTOS};
        judge(t, &c->op, &c->candidate[i]);
        c->npossible += !c->candidate[i].refusal;
    }
    qsort(c->candidate, (size_t)c->ncandidates, sizeof c->candidate[0],
          kl_nccl_has(t->in.nccl, KL_CHANGE_LATER_WINS) ? later_first : earlier_first);
    return kl_tuning_ranges(t, &c->op, one ? 1 : q->first, one && q->last < most ? most : q->last, &c->range,
                            &c->nranges);
}

void kl_op_choice_fini(struct kl_op_choice *c)
{
    free(c->range);
    c->range = NULL;
}

bool kl_op_same_refusal(const struct kl_op_candidate *a, const struct kl_op_candidate *b)
{
    return a->refusal == b->refusal && a->path == b->path;
}

bool kl_op_refuses_algorithm(const struct kl_op_choice *choice, const struct kl_op_candidate *like)
{
    int n = 0;

    for (int i = choice->npossible; i < choice->ncandidates; i++) {
        const struct kl_op_candidate *c = &choice->candidate[i];

        if (c->choice.algo == like->choice.algo)
            n += kl_op_same_refusal(c, like) || (c->refusal == KL_REFUSED_PROTO && like->refusal != KL_REFUSED_PROTO);
    }
    return n == KL_PROTOS;
}
