/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/estimate.h"

#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/schema.h"
#include "base/error.h"

static ncclResult_t take_sizes(struct kl_coll_asked *a, const int64_t *bytes, int n)
{
    const bool barrier = kl_coll_id(a->coll) == KL_BARRIER;

    if (barrier && n) return KL_FAIL(ncclInvalidArgument, "a barrier has no size");
    if (!barrier && !n) return KL_FAIL(ncclInvalidArgument, "%s: no size to estimate for", a->title);
    if (!n) return ncclSuccess;
    a->first = a->last = bytes[0];
    for (int i = 0; i < n; i++) {
        if (bytes[i] < 1)
            return KL_FAIL(ncclInvalidArgument, "%s of %lld bytes: a size is at least 1", a->title,
                           (long long)bytes[i]);
        if (bytes[i] < a->first) a->first = bytes[i];
        if (bytes[i] > a->last) a->last = bytes[i];
    }
    return ncclSuccess;
}

/* One rank alone copies, and some calls fail: neither has an algorithm. */
static json_t *row_json(const struct kl_coll_asked *a, const struct kl_tuning *t, int64_t bytes)
{
    const struct kl_tuning_op op = kl_tuning_op_of(a->func, bytes, a->type, a->op);
    struct kl_tuning_choice c;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_tuning_choose(t, &op, &c, NULL);

    kl_error_quiet(quiet);
    if (rc || c.algo < 0)
        return json_pack("{s:I,s:n,s:n,s:n,s:n,s:n,s:n}", "bytes", (json_int_t)bytes, "algorithm", "protocol",
                         "channels", "threads", "time_us", "bus_gbs");
    return json_pack("{s:I,s:s,s:s,s:i,s:i,s:o,s:f}", "bytes", (json_int_t)bytes, "algorithm", kl_algo_name[c.algo],
                     "protocol", kl_proto_name[c.proto], "channels", c.nchannels, "threads", c.nthreads, "time_us",
                     kl_json_float(c.time), "bus_gbs", kl_coll_bus(a, bytes, c.time));
}

ncclResult_t kl_estimate_json(const struct kl_coll_asked *asked, const int64_t *bytes, int n, struct kl_opened *o,
                              FILE *to)
{
    struct kl_coll_asked a = *asked;

    KL_TRY(take_sizes(&a, bytes, n));
    if (a.func < 0)
        return KL_FAIL(ncclInvalidUsage, "%s is made of sends and receives, for which the model has no times", a.title);
    KL_TRY(kl_coll_place(&a, o));
    const struct kl_tuning *tuning = &o->planned.plan->tuning;
    const struct kl_tuning_op op = kl_tuning_op_of(a.func, a.first, a.type, a.op);

    KL_TRY(kl_coll_check_type(&a, tuning));
    kl_opened_about_tuning(o, &op);
    json_t *answer = kl_coll_question_json(&a), *rows = json_array();

    for (int i = 0; i < n; i++) json_array_append_new(rows, row_json(&a, tuning, bytes[i]));
    if (!n) json_array_append_new(rows, row_json(&a, tuning, a.first));
    json_object_set_new(answer, "constants", json_string(a.cluster->constants->name));
    json_object_set_new(answer, "estimates", rows);
    return kl_output_answer(KL_SCHEMA_ESTIMATE, answer, KL_OUTPUT_FORMAT, to);
}
