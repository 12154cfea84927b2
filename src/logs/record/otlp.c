/* SPDX-License-Identifier: Apache-2.0 */
/** otlp.c - metrics of NCCL's Inspector in OpenTelemetry's JSON (OTLP): times of collectives, one data point each. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Attributes of a data point and of its resource. */
struct labels {
    const json_t *point, *resource;
};

static const json_t *value_in(const json_t *attributes, const char *key)
{
    size_t i;
    json_t *a;

    json_array_foreach(attributes, i, a)
    {
        if (!strcmp(kl_json_get_text(a, "key"), key)) return json_object_get(a, "value");
    }
    return NULL;
}

/* Exporters differ in names: the first that is there. */
static const json_t *label(struct labels l, const char *const *keys)
{
    for (; *keys; keys++) {
        const json_t *v = value_in(l.point, *keys);

        if (!v) v = value_in(l.resource, *keys);
        if (v) return v;
    }
    return NULL;
}

#define LABEL(l, ...) label((l), (const char *const[]){__VA_ARGS__, NULL})

static const char *text_of(const json_t *value)
{
    return kl_json_get_text(value, "stringValue");
}

static int64_t int_of(const json_t *value)
{
    const int64_t n = kl_json_get_int(value, "intValue", -1);

    return n >= 0 ? n : kl_json_get_int(value, "stringValue", -1);
}

static ncclResult_t member_of(struct kl_record *r, int file, struct labels l, int *member)
{
    const char *host = text_of(LABEL(l, "hostname", "host.name", "node"));
    const int rank = (int)int_of(LABEL(l, "rank", "nccl_rank"));
    const int pid = (int)int_of(LABEL(l, "pid", "process.pid"));
    char key[320];
    int group;

    KL_TRY(kl_record_group_of(r, text_of(LABEL(l, "comm_id", "comm_name", "communicator", "comm_hash", "comm")), "",
                              &group));
    *member = kl_record_member_of(r, group, rank, file);
    if (*member >= 0) return ncclSuccess;
    r->group[group].size = (int)int_of(LABEL(l, "n_ranks", "nranks"));
    KL_TRY(kl_record_new_member(r, group, rank, file, member));
    snprintf(key, sizeof key, "%.255s %d", host, pid >= 0 ? pid : rank);
    KL_TRY(kl_record_proc_of(r, key, &r->member[*member].proc));
    r->proc[r->member[*member].proc].host = kl_record_name(r, host);
    r->proc[r->member[*member].proc].pid = pid;
    r->proc[r->member[*member].proc].recorded = true;
    return ncclSuccess;
}

static ncclResult_t add_point(struct kl_record *r, int file, const json_t *point, const json_t *resource, double scale)
{
    const struct labels l = {json_object_get(point, "attributes"), resource};
    double us = kl_json_get_real(point, "asDouble", -1);
    int member, call;

    if (us < 0) us = (double)kl_json_get_int(point, "asInt", -1);
    if (us < 0) return ncclSuccess;
    KL_TRY(member_of(r, file, l, &member));
    KL_TRY(kl_record_new_call(r, member, &call));
    struct kl_record_call *c = &r->call[call];
    const int64_t number = int_of(LABEL(l, "coll_sn", "sequence", "seq", "sn"));

    c->name = kl_record_name(r, text_of(LABEL(l, "collective", "coll", "collective_type", "operation")));
    c->number = number >= 0 ? number : (r->member[member].called = kl_record_next_number(r, member));
    c->bytes = int_of(LABEL(l, "message_size", "msg_size_bytes", "coll_msg_size_bytes", "bytes"));
    c->algorithm = kl_record_name(r, text_of(LABEL(l, "algorithm", "algo")));
    c->protocol = kl_record_name(r, text_of(LABEL(l, "protocol", "proto")));
    c->took_us = us * scale;
    c->begun_us = (double)kl_json_get_int(point, "timeUnixNano", -1) / 1e3;
    c->state = KL_CALL_ENDED;
    return ncclSuccess;
}

static ncclResult_t add_metric(struct kl_record *r, int file, const json_t *metric, const json_t *resource)
{
    static const char *const kinds[] = {"gauge", "sum"};
    const char *name = kl_json_get_text(metric, "name"), *unit = kl_json_get_text(metric, "unit");
    const double scale = !strcmp(unit, "ms") ? 1e3 : !strcmp(unit, "s") ? 1e6 : !strcmp(unit, "ns") ? 1e-3 : 1;
    size_t i;
    json_t *point;

    if (!strstr(name, "exec_time") || strstr(name, "p2p")) return ncclSuccess;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        json_array_foreach(json_object_get(json_object_get(metric, kinds[k]), "dataPoints"), i, point)
            KL_TRY(add_point(r, file, point, resource, scale));
    return ncclSuccess;
}

static ncclResult_t add_resource(struct kl_record *r, int file, const json_t *o)
{
    const json_t *resource = json_object_get(json_object_get(o, "resource"), "attributes");
    size_t i, k;
    json_t *scope, *metric;

    json_array_foreach(json_object_get(o, "scopeMetrics"), i, scope)
        json_array_foreach(json_object_get(scope, "metrics"), k, metric) KL_TRY(add_metric(r, file, metric, resource));
    return ncclSuccess;
}

ncclResult_t kl_record_add_otlp(struct kl_record *r, int file, const char *text, size_t bytes)
{
    const int before = r->ncall;
    json_t *document, *o;
    size_t i;

    r->file[file].numbers = KL_NUMBERS_OF_FUNCTION;
    KL_TRY(kl_record_parse(r->file[file].name, text, bytes, &document));
    ncclResult_t rc = ncclSuccess;

    json_array_foreach(json_object_get(document, "resourceMetrics"), i, o)
    {
        if (!rc) rc = add_resource(r, file, o);
    }
    json_decref(document);
    if (!rc && r->ncall == before)
        rc = KL_FAIL(ncclInvalidUsage,
                     "%s: OpenTelemetry without metrics of NCCL's Inspector: none is named *exec_time*",
                     r->file[file].name);
    return rc;
}
