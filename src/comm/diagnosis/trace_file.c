/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/trace_file.h"

#include "base/json.h"
#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/schedule/signature.h"
#include "comm/comm.h"
#include "comm/diagnosis/file.h"
#include "comm/diagnosis/trace.h"
#include "os/hostinfo.h"

#include <unistd.h>

enum { FORMAT = 1, CHANNEL_TRACK = 10 };

static const struct {
    const char *track, *category;
} kinds[] = {
    [KL_TRACE_CALL] = {"calls", "call"},
    [KL_TRACE_OP] = {"operations", "operation"},
    [KL_TRACE_WAIT] = {"waits", "wait"},
    [KL_TRACE_STEP] = {"channel", "step"},
};

struct document {
    ncclComm_t comm;
    const char *host;
    struct kl_ticks_scale scale;
    uint64_t channels; /* a bit for each that has steps */
};

/* ---- events ---- */

static int track_of(const struct kl_trace_event *e)
{
    return e->kind == KL_TRACE_STEP ? CHANNEL_TRACK + e->channel : 1 + (int)e->kind;
}

static void put_name(struct kl_json *j, const struct kl_trace_event *e)
{
    char name[64];

    if (e->kind == KL_TRACE_WAIT && e->to < 0)
        snprintf(name, sizeof name, "wait");
    else if (e->kind == KL_TRACE_WAIT)
        snprintf(name, sizeof name, "wait for rank %d", e->to);
    else if (e->kind == KL_TRACE_STEP && e->from >= 0)
        snprintf(name, sizeof name, e->to < 0 ? "from %d" : "from %d, to %d", e->from, e->to);
    else if (e->kind == KL_TRACE_STEP)
        snprintf(name, sizeof name, "to %d", e->to);
    else
        snprintf(name, sizeof name, "%s", kl_func_info[e->func].name);
    kl_json_text(j, "name", name);
}

/* Of calls and operations. */
static void put_task(struct kl_json *j, ncclComm_t comm, const struct kl_trace_event *e)
{
    const struct kl_func_info *f = &kl_func_info[e->func];

    kl_json_uint(j, "bytes", e->count * comm->redops[e->type][ncclSum].elem_bytes);
    kl_json_uint(j, "count", e->count);
    kl_json_text(j, "type", kl_type_name((ncclDataType_t)e->type));
    if (f->reduces) kl_json_text(j, "operator", kl_call_op_name((unsigned)e->op));
    if (e->to >= 0) kl_json_int(j, f->rooted ? "root" : "peer", e->to);
    if (e->channels) { /* GPUs of one host have no plan */
        kl_json_text(j, "algorithm", kl_algo_name[kl_algorithms[e->algorithm]->algo]);
        kl_json_text(j, "protocol", kl_proto_name[e->proto]);
        kl_json_int(j, "channels", e->channels);
    }
    if (e->kind != KL_TRACE_OP) return;
    if (kl_select_way_text(e->way)) kl_json_text(j, "way", kl_select_way_text(e->way));
    if (e->way & KL_SELECT_BY_TUNER) kl_json_text(j, "tuner", comm->tuner_name);
}

static void put_wait(struct kl_json *j, const struct kl_trace_event *e)
{
    if (e->to >= 0) kl_json_int(j, "rank", e->to);
    if (e->count == KL_TRACE_PAUSES_UNKNOWN) return;
    kl_json_uint(j, "yields", (uint32_t)e->count);
    kl_json_uint(j, "sleeps", e->count >> 32);
}

static void put_args(struct kl_json *j, ncclComm_t comm, const struct kl_trace_event *e)
{
    kl_json_open(j, "args", '{');
    if (e->number) kl_json_uint(j, "number", e->number);
    if (e->collective) kl_json_uint(j, "collective", e->collective);
    if (e->kind == KL_TRACE_STEP)
        kl_json_uint(j, "bytes", e->count);
    else if (e->kind != KL_TRACE_WAIT)
        put_task(j, comm, e);
    else
        put_wait(j, e);
    kl_json_close(j, '}');
}

/* Microseconds with three decimals: the format knows no nanoseconds. */
static void put_event(struct kl_json *j, struct document *d, const struct kl_trace_event *e)
{
    uint64_t begin = kl_ticks_ns(&d->scale, e->begin), end = kl_ticks_ns(&d->scale, e->end);

    if (e->kind == KL_TRACE_STEP) d->channels |= (uint64_t)1 << e->channel % 64;
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "ph", "X");
    kl_json_int(j, "pid", d->comm->rank);
    kl_json_int(j, "tid", track_of(e));
    kl_json_milli(j, "ts", begin);
    kl_json_milli(j, "dur", end > begin ? end - begin : 0);
    kl_json_text(j, "cat", kinds[e->kind].category);
    put_name(j, e);
    put_args(j, d->comm, e);
    kl_json_close(j, '}');
}

static uint64_t first_kept(struct kl_trace *t, enum kl_trace_writer writer)
{
    uint64_t n = kl_trace_count(t, writer), room = kl_trace_room(t);

    return n > room ? n - room : 0;
}

/* An operation in progress has no event yet: it lasts until now. */
static void put_running(struct kl_json *j, struct document *d)
{
    struct kl_flight *f = d->comm->flight;
    uint64_t begun = kl_load_relaxed(&f->begun), now = kl_ticks();
    struct kl_flight_op op;

    for (uint64_t n = kl_load_relaxed(&f->ended) + 1; n <= begun; n++) {
        if (!kl_flight_read(f, n, &op) || !op.begun) continue;
        const struct kl_trace_event e = {.kind = KL_TRACE_OP,
                                         .func = op.func,
                                         .type = (int)op.type,
                                         .op = (int)op.op,
                                         .algorithm = op.algorithm,
                                         .proto = op.proto,
                                         .channels = op.channels,
                                         .from = -1,
                                         .to = -1,
                                         .number = n,
                                         .collective = (uint32_t)op.collective,
                                         .count = op.count,
                                         .begin = op.begun,
                                         .end = now};
        struct kl_trace_event wait = e;
        wait.kind = KL_TRACE_WAIT;
        wait.count = KL_TRACE_PAUSES_UNKNOWN;
        wait.to = kl_load_relaxed(&f->waits_for);
        put_event(j, d, &e);
        if (wait.to >= 0) put_event(j, d, &wait);
    }
}

static void put_events(struct kl_json *j, struct document *d)
{
    struct kl_trace *t = d->comm->trace;
    struct kl_trace_event e;

    for (enum kl_trace_writer w = 0; w < KL_TRACE_WRITERS; w++)
        for (uint64_t i = first_kept(t, w), n = kl_trace_count(t, w); i < n; i++)
            if (kl_trace_read(t, w, i, &e)) put_event(j, d, &e);
    put_running(j, d);
}

/* ---- tracks ---- */

static void put_label(struct kl_json *j, int rank, int track, const char *what, const char *name)
{
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "ph", "M");
    kl_json_int(j, "pid", rank);
    kl_json_int(j, "tid", track);
    kl_json_text(j, "name", what);
    kl_json_open(j, "args", '{');
    kl_json_text(j, "name", name);
    kl_json_close(j, '}');
    kl_json_close(j, '}');
}

static void put_labels(struct kl_json *j, const struct document *d)
{
    char name[KL_HOSTNAME + 64];
    int rank = d->comm->rank;

    snprintf(name, sizeof name, "rank %d (host %s, pid %d)", rank, d->host, (int)getpid());
    put_label(j, rank, 0, "process_name", name);
    for (int k = KL_TRACE_CALL; k < KL_TRACE_STEP; k++) put_label(j, rank, 1 + k, "thread_name", kinds[k].track);
    for (int c = 0; c < 64; c++) {
        if (!(d->channels >> c & 1)) continue;
        snprintf(name, sizeof name, "channel %02d", c);
        put_label(j, rank, CHANNEL_TRACK + c, "thread_name", name);
    }
}

/* ---- owner ---- */

static void put_clock(struct kl_json *j, ncclComm_t comm)
{
    struct kl_trace_clock clock = kl_clock_best(&comm->clock);

    if (!clock.known) {
        kl_json_null(j, "clock");
        return;
    }
    kl_json_open(j, "clock", '{');
    kl_json_int(j, "offset_ns", clock.offset_ns);
    kl_json_uint(j, "error_ns", clock.error_ns);
    kl_json_close(j, '}');
}

static void put_owner(struct kl_json *j, const struct document *d)
{
    struct kl_trace *t = d->comm->trace;

    kl_json_open(j, "kolo", '{');
    kl_json_int(j, "format", FORMAT);
    kl_json_hex(j, "communicator", kl_load_relaxed(&d->comm->name));
    kl_json_int(j, "rank", d->comm->rank);
    kl_json_int(j, "nranks", d->comm->nranks);
    kl_json_text(j, "host", d->host);
    kl_json_int(j, "pid", getpid());
    put_clock(j, d->comm);
    kl_json_uint(j, "events_lost", first_kept(t, KL_TRACE_CALLER) + first_kept(t, KL_TRACE_RUNNER));
    kl_json_close(j, '}');
}

static void put_document(void *ctx, FILE *to)
{
    struct document *d = ctx;
    struct kl_json j = kl_json_to(to);

    d->scale = kl_ticks_scale();
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "displayTimeUnit", "ns");
    put_owner(&j, d);
    kl_json_open(&j, "traceEvents", '[');
    put_events(&j, d);
    put_labels(&j, d);
    kl_json_close(&j, ']');
    kl_json_close(&j, '}');
}

static ncclResult_t write_file(ncclComm_t comm)
{
    char path[KL_WATCH_PATH], host[KL_HOSTNAME];
    struct document d = {.comm = comm, .host = host};
    struct kl_watch_name whose = {.host = host, .rank = comm->rank, .communicator = kl_load_relaxed(&comm->name)};

    kl_comm_config_host(&comm->config, host, sizeof host);
    KL_TRY(kl_watch_file_name(comm->config.trace, &whose, path));
    KL_TRY(kl_watch_file_write(path, put_document, &d));
    KL_INFO(KL_INIT | KL_COLL, "rank %d: trace written to %s", comm->rank, path);
    return ncclSuccess;
}

void kl_trace_write(ncclComm_t comm)
{
    char before[KL_ERROR_TEXT];

    if (!comm->trace) return;
    snprintf(before, sizeof before, "%s", kl_error_text());
    (void)write_file(comm);
    kl_error_adopt(before); /* the thread's own error text stays */
}
