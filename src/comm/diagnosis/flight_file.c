/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/flight_file.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/schedule/signature.h"
#include "comm/comm.h"
#include "comm/diagnosis/file.h"
#include "device/host/redop.h"
#include "os/hostinfo.h"

#include <unistd.h>

enum { FORMAT = 1 };

struct document {
    ncclComm_t comm;
    const char *why, *host;
    ncclResult_t failed;
    const char *text; /* of the failure */
};

/* ---- operations ---- */

static const char *state_of(const struct document *d, const struct kl_flight_op *op)
{
    if (op->state == KL_FLIGHT_ENDED) return "ended";
    if (op->state == KL_FLIGHT_RUNNING) return d->failed ? "failed" : "running";
    return d->failed ? "dropped" : "queued";
}

static void put_time(struct kl_json *j, const char *key, const struct kl_ticks_scale *scale, uint64_t ticks)
{
    if (ticks)
        kl_json_uint(j, key, kl_ticks_ns(scale, ticks));
    else
        kl_json_null(j, key);
}

static void put_choice(struct kl_json *j, ncclComm_t comm, const struct kl_flight_op *op)
{
    if (op->channels) {
        kl_json_text(j, "algorithm", kl_algo_name[kl_algorithms[op->algorithm]->algo]);
        kl_json_text(j, "protocol", kl_proto_name[op->proto]);
        kl_json_int(j, "channels", op->channels);
    }
    if (kl_select_way_text(op->way)) kl_json_text(j, "way", kl_select_way_text(op->way));
    if (op->way & KL_SELECT_BY_TUNER) kl_json_text(j, "tuner", comm->tuner_name);
}

static void put_call(struct kl_json *j, ncclComm_t comm, const struct kl_flight_op *op)
{
    const struct kl_func_info *f = &kl_func_info[op->func];

    kl_json_text(j, "function", f->name);
    kl_json_text(j, "type", kl_type_name(op->type));
    if (f->reduces) kl_json_text(j, "operator", kl_call_op_name(op->op));
    if (f->rooted) kl_json_int(j, "root", op->peer);
    if (kl_func_is_message(op->func)) kl_json_int(j, "peer", op->peer);
    kl_json_uint(j, "count", op->count);
    kl_json_uint(j, "bytes", op->count * comm->redops[op->type][ncclSum].elem_bytes);
}

static void put_op(struct kl_json *j, const struct document *d, const struct kl_flight_op *op,
                   const struct kl_ticks_scale *scale)
{
    kl_json_open(j, NULL, '{');
    kl_json_uint(j, "number", op->number);
    if (op->collective) kl_json_uint(j, "collective", op->collective);
    put_call(j, d->comm, op);
    kl_json_hex(j, "stream", op->stream);
    put_choice(j, d->comm, op);
    kl_json_text(j, "state", state_of(d, op));
    put_time(j, "issued_ns", scale, op->issued);
    put_time(j, "begun_ns", scale, op->begun);
    put_time(j, "ended_ns", scale, op->ended);
    kl_json_close(j, '}');
}

static void put_ops(struct kl_json *j, const struct document *d)
{
    struct kl_flight *flight = d->comm->flight;
    struct kl_ticks_scale scale = kl_ticks_scale();
    uint64_t last = kl_flight_issued(flight);
    uint64_t n = last > KL_FLIGHT_RECORDS ? last - KL_FLIGHT_RECORDS : 0;
    struct kl_flight_op op;

    kl_json_open(j, "operations", '[');
    while (n++ < last)
        if (kl_flight_read(flight, n, &op)) put_op(j, d, &op, &scale);
    kl_json_close(j, ']');
}

/* ---- the communicator ---- */

static void put_failure(struct kl_json *j, const struct document *d)
{
    if (!d->failed) {
        kl_json_null(j, "failure");
        return;
    }
    kl_json_open(j, "failure", '{');
    kl_json_int(j, "code", d->failed);
    kl_json_text(j, "name", kl_result_text(d->failed));
    kl_json_text(j, "text", d->text);
    kl_json_close(j, '}');
}

static void put_rank_or_null(struct kl_json *j, const char *key, int32_t rank)
{
    if (rank >= 0)
        kl_json_int(j, key, rank);
    else
        kl_json_null(j, key);
}

static void put_counts(struct kl_json *j, ncclComm_t comm)
{
    struct kl_flight *f = comm->flight;

    kl_json_open(j, "issued", '{');
    for (int func = 0; func < KL_FUNC_ROWS; func++)
        kl_json_uint(j, kl_func_info[func].name, kl_load_relaxed(&f->issued[func]));
    kl_json_close(j, '}');
    kl_json_uint(j, "operations_ended", kl_load_relaxed(&f->ended));
    kl_json_uint(j, "collectives_issued", kl_load_relaxed(&f->collectives));
    kl_json_uint(j, "collectives_ended", kl_load_relaxed(&f->collectives_ended));
}

static uint64_t real_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_document(void *ctx, FILE *to)
{
    const struct document *d = ctx;
    ncclComm_t comm = d->comm;
    struct kl_json j = kl_json_to(to);

    kl_json_open(&j, NULL, '{');
    kl_json_int(&j, "kolo_flight_record", FORMAT);
    kl_json_text(&j, "why", d->why);
    kl_json_text(&j, "host", d->host);
    kl_json_int(&j, "pid", getpid());
    kl_json_hex(&j, "communicator", kl_load_relaxed(&comm->name));
    kl_json_int(&j, "rank", comm->rank);
    kl_json_int(&j, "nranks", comm->nranks);
    kl_json_text(&j, "phase", kl_load_acquire(&comm->phase)); /* of init; null once it lives */
    put_failure(&j, d);
    put_rank_or_null(&j, "waits_for", kl_load_relaxed(&comm->flight->waits_for));
    put_counts(&j, comm);
    put_ops(&j, d);
    kl_json_uint(&j, "unix_ns", real_ns());
    kl_json_uint(&j, "monotonic_ns", kl_now_ns()); /* last: operations go on meanwhile, and none ends later */
    kl_json_close(&j, '}');
}

static ncclResult_t write_document(const char *pattern, struct document *d)
{
    char path[KL_WATCH_PATH], host[KL_HOSTNAME];
    struct kl_watch_name whose = {.host = host, .rank = d->comm->rank, .communicator = kl_load_relaxed(&d->comm->name)};

    kl_comm_config_host(&d->comm->config, host, sizeof host);
    d->host = host;
    KL_TRY(kl_watch_file_name(pattern, &whose, path));
    KL_TRY(kl_watch_file_write(path, put_document, d));
    KL_INFO(KL_INIT | KL_COLL, "rank %d: flight record written to %s", d->comm->rank, path);
    return ncclSuccess;
}

ncclResult_t kl_flight_write(ncclComm_t comm, const char *pattern, const char *why)
{
    struct document d = {.comm = comm, .why = why, .failed = (ncclResult_t)kl_load_acquire(&comm->failed)};

    d.text = comm->failure.text; /* constant, once there is a failure */
    return write_document(pattern, &d);
}

/* ---- without a calling program; the thread's last error text stays ---- */

void kl_flight_on_failure(ncclComm_t comm, ncclResult_t code, const char *text)
{
    struct document d = {.comm = comm, .why = "failure", .failed = code, .text = text};
    char before[KL_ERROR_TEXT];

    if (!*comm->config.flight_recorder || kl_swap_acq_rel(&comm->flight_written, true)) return;
    snprintf(before, sizeof before, "%s", kl_error_text());
    (void)write_document(comm->config.flight_recorder, &d);
    kl_error_adopt(before);
}

static void write_for_signal(ncclComm_t comm, void *ctx)
{
    (void)ctx;
    if (*comm->config.flight_recorder) (void)kl_flight_write(comm, comm->config.flight_recorder, "signal");
}

void kl_flight_on_signal(void)
{
    kl_handle_each(write_for_signal, NULL);
}
