/* SPDX-License-Identifier: Apache-2.0 */
/** coll_tuner.c - the choices of a tuner, asked for at powers of two and at both ends of the sizes. */
#include "answer/graph_json.h"
#include "base/error.h"
#include "base/text.h"
#include "tools/kolo/explain/coll_print.h"

static bool is_same(const struct kl_coll_tuned_range *a, const struct kl_coll_tuned_range *b)
{
    return a->by_tuner == b->by_tuner && a->choice.algo == b->choice.algo && a->choice.proto == b->choice.proto &&
           a->choice.nchannels == b->choice.nchannels && a->model.algo == b->model.algo &&
           a->model.proto == b->model.proto;
}

static ncclResult_t ask(const struct kl_coll_asked *a, const struct kl_tuning *t, struct kl_tuner *tuner, int64_t bytes,
                        struct kl_coll_tuned_range *r)
{
    const struct kl_tuning_op op = kl_tuning_op_of(a->func, bytes, a->type, a->op);
    float cost[KL_ALGOS][KL_PROTOS];

    *r = (struct kl_coll_tuned_range){.first = bytes, .last = bytes};
    KL_TRY(kl_tuning_choose(t, &op, &r->model, cost));
    r->choice = r->model;
    return kl_tuner_choose(tuner, t, &op, cost, &r->choice, &r->by_tuner);
}

static void add(struct kl_coll_tuned *tuned, const struct kl_coll_tuned_range *r)
{
    struct kl_coll_tuned_range *last = tuned->n ? &tuned->range[tuned->n - 1] : NULL;

    if (last && is_same(last, r))
        last->last = r->last;
    else if (tuned->n < KL_COLL_TUNED)
        tuned->range[tuned->n++] = *r;
}

/* The next power of two, or the end. */
static int64_t next_size(int64_t bytes, int64_t last)
{
    int64_t next = 1;

    while (next <= bytes) next *= 2;
    return bytes < last && next > last ? last : next;
}

ncclResult_t kl_coll_tuner_find(const struct kl_coll_asked *a, const struct kl_tuning *t, struct kl_tuner *tuner,
                                struct kl_coll_tuned *tuned)
{
    tuned->n = 0;
    for (int64_t bytes = a->first; bytes <= a->last; bytes = next_size(bytes, a->last)) {
        struct kl_coll_tuned_range r;
        KL_TRY(ask(a, t, tuner, bytes, &r));
        add(tuned, &r);
    }
    return ncclSuccess;
}

ncclResult_t kl_coll_tuner_ask(const struct kl_coll_asked *a, const struct kl_tuning *t, const char *file,
                               struct kl_tuner **tuner, struct kl_coll_tuned *tuned)
{
    const struct kl_tuner_place place = {.nranks = a->ranks, .nnodes = a->nodes};

    *tuned = (struct kl_coll_tuned){.n = 0};
    if (a->func < 0)
        return KL_FAIL(ncclInvalidArgument, "tuners choose for collectives with an algorithm, not for %s",
                       a->coll->name);
    KL_TRY(kl_tuner_open_file(&place, t->constants, file, tuner));
    return a->ranks > 1 ? kl_coll_tuner_find(a, t, *tuner, tuned) : ncclSuccess;
}

/* ---- output ---- */

void kl_coll_tuned_text(const struct kl_coll_tuned *tuned, const struct kl_tuner *tuner, FILE *to)
{
    char first[KL_SIZE_TEXT], last[KL_SIZE_TEXT];

    for (int i = 0; i < tuned->n; i++) {
        const struct kl_coll_tuned_range *r = &tuned->range[i];

        fprintf(to, "  %10s to %10s  %s %s, %d channel%s: ", kl_size_text(r->first, first), kl_size_text(r->last, last),
                kl_algo_name[r->choice.algo], kl_proto_name[r->choice.proto], r->choice.nchannels,
                kl_plural(r->choice.nchannels));
        if (r->by_tuner)
            fprintf(to, "chosen by %s; the model chooses %s %s\n", kl_tuner_name(tuner), kl_algo_name[r->model.algo],
                    kl_proto_name[r->model.proto]);
        else
            fprintf(to, "the model's choice\n");
    }
}

static json_t *choice_json(const struct kl_tuning_choice *c)
{
    return json_pack("{s:s,s:s,s:i}", "algorithm", kl_algo_name[c->algo], "protocol", kl_proto_name[c->proto],
                     "channels", c->nchannels);
}

json_t *kl_coll_tuned_json(const struct kl_coll_tuned *tuned)
{
    json_t *ranges = json_array();

    for (int i = 0; i < tuned->n; i++) {
        const struct kl_coll_tuned_range *r = &tuned->range[i];
        json_array_append_new(ranges, json_pack("{s:I,s:I,s:b,s:o,s:o}", "first_bytes", (json_int_t)r->first,
                                                "last_bytes", (json_int_t)r->last, "by_tuner", r->by_tuner, "choice",
                                                choice_json(&r->choice), "model", choice_json(&r->model)));
    }
    return ranges;
}
