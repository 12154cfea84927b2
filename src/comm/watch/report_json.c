/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/watch/report.h"

#include "base/error.h"
#include "base/json.h"
#include "coll/signature.h"
#include "comm/watch/flight.h"
#include "device/host/redop.h"

#include <time.h>

static const char *const states[KL_STATUS_STATES] = {
    [KL_STATUS_INIT] = "init",
    [KL_STATUS_RUNNING] = "running",
    [KL_STATUS_FINALIZED] = "finalized",
    [KL_STATUS_FAILED] = "failed",
};
enum { MANY_NAMED = 4096 }; /* missing ranks that are listed */

static const char *const op_states[] = {
    [KL_FLIGHT_QUEUED] = "queued", [KL_FLIGHT_RUNNING] = "running", [KL_FLIGHT_ENDED] = "ended"};

/* ---- a rank ---- */

/* The keys of NCCL's report. */
static void put_flags(struct kl_json *j, const struct kl_status *s)
{
    kl_json_open(j, "status", '{');
    kl_json_int(j, "init_state", s->state == KL_STATUS_INIT ? ncclInProgress : ncclSuccess);
    kl_json_int(j, "async_error", s->failed);
    kl_json_bool(j, "finalize_called", s->state == KL_STATUS_FINALIZED);
    kl_json_bool(j, "destroy_flag", false); /* a communicator that is being destroyed is not asked any more */
    kl_json_bool(j, "abort_flag", s->failed);
    kl_json_close(j, '}');
}

static void put_counts(struct kl_json *j, const struct kl_status *s)
{
    kl_json_open(j, "collective_counts", '{');
    for (int f = 0; f < KL_FUNC_ROWS; f++) kl_json_uint(j, kl_func_info[f].name, s->issued[f]);
    kl_json_close(j, '}');
}

static void put_operation(struct kl_json *j, const struct kl_status *s)
{
    const struct kl_func_info *f = &kl_func_info[s->func];

    if (!s->number) {
        kl_json_null(j, "operation");
        return;
    }
    kl_json_open(j, "operation", '{');
    kl_json_uint(j, "number", s->number);
    if (s->collective) kl_json_uint(j, "collective", s->collective);
    kl_json_text(j, "function", f->name);
    kl_json_text(j, "type", kl_type_name((ncclDataType_t)s->type));
    if (f->reduces) kl_json_text(j, "operator", kl_call_op_name(s->op));
    if (f->rooted) kl_json_int(j, "root", s->peer);
    if (kl_func_is_message(s->func)) kl_json_int(j, "peer", s->peer);
    kl_json_uint(j, "count", s->count);
    kl_json_uint(j, "bytes", s->bytes);
    kl_json_text(j, "state", op_states[s->op_state]);
    if (s->for_ns) kl_json_uint(j, "for_ns", s->for_ns);
    kl_json_close(j, '}');
}

static void put_rank(struct kl_json *j, const struct kl_report_comm *c, const struct kl_status *s)
{
    kl_json_open(j, NULL, '{');
    kl_json_int(j, "rank", s->rank);
    kl_json_text(j, "host", s->host);
    kl_json_int(j, "pid", s->pid);
    kl_json_int(j, "cuda_dev", s->device);
    kl_json_int(j, "nvml_dev", s->device);
    put_flags(j, s);
    put_counts(j, s);
    kl_json_text(j, "state", states[s->state]);
    if (s->state == KL_STATUS_INIT) kl_json_text(j, "phase", s->phase);
    if (s->failed) kl_json_text(j, "failure", s->text);
    kl_json_uint(j, "collectives_called", s->collectives_issued);
    kl_json_uint(j, "collectives_ended", s->collectives_ended);
    put_operation(j, s);
    if (s->waits_for >= 0)
        kl_json_int(j, "waits_for", s->waits_for);
    else
        kl_json_null(j, "waits_for");
    kl_json_bool(j, "behind", kl_report_behind(c, s));
    kl_json_close(j, '}');
}

/* ---- communicators ---- */

static void put_missing(struct kl_json *j, const struct kl_report *r, const struct kl_report_comm *c)
{
    char who[KL_REPORT_WHO];

    kl_json_int(j, "missing", c->init ? 0 : c->missing);
    kl_json_open(j, "missing_ranks", '[');
    for (int rank = 0, named = 0; rank < c->nranks && !c->init && named < MANY_NAMED; rank++) {
        if (kl_report_has(c, rank)) continue;
        named++;
        kl_json_open(j, NULL, '{');
        kl_json_int(j, "rank", rank);
        kl_json_text(j, "who", r->describe(c->status->communicator, rank, who));
        kl_json_close(j, '}');
    }
    kl_json_close(j, ']');
}

static void put_comm(struct kl_json *j, const struct kl_report *r, const struct kl_report_comm *c)
{
    kl_json_open(j, NULL, '{');
    kl_json_hex(j, "hash", c->status->communicator);
    kl_json_hex(j, "secondary_hash", 0);
    kl_json_int(j, "size", c->nranks);
    kl_json_text(j, "verdict", kl_report_verdict(c));
    kl_json_bool(j, "stuck", c->stuck);
    kl_json_bool(j, "mismatch", c->mismatch);
    kl_json_open(j, "ranks", '[');
    for (size_t i = 0; i < c->n; i++) put_rank(j, c, &c->status[i]);
    kl_json_close(j, ']');
    put_missing(j, r, c);
    kl_json_close(j, '}');
}

static void put_timestamp(struct kl_json *j)
{
    time_t now = time(NULL);
    char text[64] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    kl_json_text(j, "timestamp", text);
}

void kl_report_json(const struct kl_report *r, FILE *to)
{
    const struct kl_gathered *g = r->gathered;
    struct kl_json j = kl_json_to(to);

    kl_json_open(&j, NULL, '{');
    kl_json_int(&j, "nccl_version", NCCL_VERSION_CODE);
    put_timestamp(&j);
    kl_json_open(&j, "communicators", '[');
    for (size_t i = 0; i < g->n;) {
        struct kl_report_comm c = kl_report_judge(g, i);
        put_comm(&j, r, &c);
        i += c.n;
    }
    kl_json_close(&j, ']');
    kl_json_open(&j, "ras", '{');
    kl_json_milli(&j, "collection_time_sec", g->took_ns / 1000000);
    kl_json_int(&j, "timeouts_count", !g->complete);
    kl_json_close(&j, '}');
    kl_json_close(&j, '}');
}
