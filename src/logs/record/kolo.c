/* SPDX-License-Identifier: Apache-2.0 */
/** kolo.c - a flight record of Kolo (KOLO_FLIGHT_RECORDER, koloFlightRecorder): JSON, one file per rank of a communicator. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum kl_call_state state_of(const char *text)
{
    if (!strcmp(text, "ended")) return KL_CALL_ENDED;
    if (!strcmp(text, "running")) return KL_CALL_STARTED;
    return !strcmp(text, "failed") ? KL_CALL_FAILED : KL_CALL_QUEUED;
}

void kl_record_whole_counts(struct kl_record_call *c, int64_t nranks)
{
    static const struct {
        const char *name;
        bool in, out;
    } rows[] = {{"AllGather", false, true},
                {"Gather", false, true},
                {"ReduceScatter", true, false},
                {"Scatter", true, false},
                {"AlltoAll", true, true}};

    if (nranks < 1 || c->in < 0 || c->in > INT64_MAX / nranks || c->out < 0 || c->out > INT64_MAX / nranks) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcasecmp(c->name, rows[i].name)) continue;
        if (rows[i].in) c->in *= nranks;
        if (rows[i].out) c->out *= nranks;
    }
}

static void read_call(struct kl_record *r, const json_t *o, struct kl_record_call *c)
{
    const double begun = kl_json_get_real(o, "begun_ns", -1), ended = kl_json_get_real(o, "ended_ns", -1);
    const char *name = kl_json_get_text(o, "function");

    c->name = kl_record_name(r, name);
    c->kind = !strcmp(name, "Send") ? KL_CALL_SEND : !strcmp(name, "Recv") ? KL_CALL_RECV : KL_CALL_COLLECTIVE;
    c->number = kl_json_get_int(o, "collective", -1);
    if (c->number < 0) c->number = kl_json_get_int(o, "number", -1);
    c->state = state_of(kl_json_get_text(o, "state"));
    c->type = kl_record_name(r, kl_json_get_text(o, "type"));
    c->op = kl_record_name(r, kl_json_get_text(o, "operator"));
    c->algorithm = kl_record_name(r, kl_json_get_text(o, "algorithm"));
    c->protocol = kl_record_name(r, kl_json_get_text(o, "protocol"));
    c->in = c->out = kl_json_get_int(o, "count", -1);
    c->bytes = kl_json_get_int(o, "bytes", -1);
    kl_record_whole_counts(c, r->group[r->member[c->member].group].size);
    c->root = (int)kl_json_get_int(o, "root", -1);
    c->peer = (int)kl_json_get_int(o, "peer", -1);
    if (begun >= 0) c->begun_us = begun / 1e3;
    if (begun >= 0 && ended >= begun) c->took_us = (ended - begun) / 1e3;
}

static ncclResult_t add_member(struct kl_record *r, int file, const json_t *d, int *member)
{
    const char *host = kl_json_get_text(d, "host"), *phase = kl_json_get_text(d, "phase");
    const int pid = (int)kl_json_get_int(d, "pid", -1), rank = (int)kl_json_get_int(d, "rank", -1);
    const json_t *failure = json_object_get(d, "failure");
    char key[320];
    int group, proc;

    KL_TRY(kl_record_group_of(r, kl_json_get_text(d, "communicator"), "", &group));
    r->group[group].size = (int)kl_json_get_int(d, "nranks", -1);
    KL_TRY(kl_record_new_member(r, group, rank, file, member));
    snprintf(key, sizeof key, "%.255s %d", host, pid);
    KL_TRY(kl_record_proc_of(r, key, &proc));
    r->proc[proc].host = kl_record_name(r, host);
    r->proc[proc].pid = pid;
    r->proc[proc].recorded = true;
    struct kl_record_member *m = &r->member[*member];

    m->proc = proc;
    m->waits_for = (int)kl_json_get_int(d, "waits_for", -1);
    m->called = kl_json_get_int(d, "collectives_issued", -1);
    m->code = (int)kl_json_get_int(failure, "code", 0);
    m->failure = kl_record_name(r, kl_json_get_text(failure, "text"));
    if (*phase) m->state = KL_MEMBER_INIT;
    return ncclSuccess;
}

ncclResult_t kl_record_add_kolo(struct kl_record *r, int file, const char *text, size_t bytes)
{
    json_t *d, *o;
    int member, call;
    size_t i;

    KL_TRY(kl_record_parse(r->file[file].name, text, bytes, &d));
    ncclResult_t rc = add_member(r, file, d, &member);

    r->file[file].starts_known = true;
    json_array_foreach(json_object_get(d, "operations"), i, o)
    {
        if (!rc) rc = kl_record_new_call(r, member, &call);
        if (!rc) read_call(r, o, &r->call[call]);
    }
    json_decref(d);
    return rc;
}
