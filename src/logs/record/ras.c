/* SPDX-License-Identifier: Apache-2.0 */
/** ras.c - the status of NCCL's RAS service in JSON (ncclras -f json; SET FORMAT json), and of `kolo ras --json`. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static enum kl_member_state state_of(const json_t *status)
{
    if (kl_json_get_true(status, "abort_flag")) return KL_MEMBER_ABORTED;
    if (kl_json_get_true(status, "finalize_called") || kl_json_get_true(status, "destroy_flag")) return KL_MEMBER_ENDS;
    return kl_json_get_int(status, "init_state", 0) ? KL_MEMBER_INIT : KL_MEMBER_RUNS;
}

static ncclResult_t add_process(struct kl_record *r, const json_t *o, int member)
{
    const char *host = kl_json_get_text(o, "host");
    const int pid = (int)kl_json_get_int(o, "pid", -1), device = (int)kl_json_get_int(o, "cuda_dev", -1);
    char key[320];
    int proc;

    snprintf(key, sizeof key, "%.255s %d %d", host, pid, device);
    KL_TRY(kl_record_proc_of(r, key, &proc));
    r->proc[proc].host = kl_record_name(r, host);
    r->proc[proc].pid = pid;
    r->proc[proc].recorded = true;
    r->member[member].proc = proc;
    return ncclSuccess;
}

/* Kolo's own report names the operation that a rank is in. */
static ncclResult_t add_operation(struct kl_record *r, const json_t *o, int member)
{
    const json_t *op = json_object_get(o, "operation");
    int call;

    if (!json_is_object(op)) return ncclSuccess;
    KL_TRY(kl_record_new_call(r, member, &call));
    struct kl_record_call *c = &r->call[call];
    const char *state = kl_json_get_text(op, "state"), *name = kl_json_get_text(op, "function");

    c->name = kl_record_name(r, name);
    c->kind = !strcmp(name, "Send") ? KL_CALL_SEND : !strcmp(name, "Recv") ? KL_CALL_RECV : KL_CALL_COLLECTIVE;
    c->state = !strcmp(state, "ended") ? KL_CALL_ENDED : !strcmp(state, "running") ? KL_CALL_STARTED : KL_CALL_QUEUED;
    c->number = kl_json_get_int(op, "collective", kl_json_get_int(op, "number", -1));
    c->type = kl_record_name(r, kl_json_get_text(op, "type"));
    c->op = kl_record_name(r, kl_json_get_text(op, "operator"));
    c->in = c->out = kl_json_get_int(op, "count", -1);
    c->bytes = kl_json_get_int(op, "bytes", -1);
    c->root = (int)kl_json_get_int(op, "root", -1);
    c->peer = (int)kl_json_get_int(op, "peer", -1);
    r->member[member].called = kl_json_get_int(o, "collectives_called", -1);
    r->member[member].ended = kl_json_get_int(o, "collectives_ended", -1);
    return ncclSuccess;
}

static ncclResult_t add_rank(struct kl_record *r, int file, int group, const json_t *o, bool moves)
{
    const json_t *status = json_object_get(o, "status");
    const char *function;
    json_t *n;
    int member;

    KL_TRY(kl_record_new_member(r, group, (int)kl_json_get_int(o, "rank", -1), file, &member));
    KL_TRY(add_process(r, o, member));
    r->member[member].state = state_of(status);
    r->member[member].code = (int)kl_json_get_int(status, "async_error", 0);
    r->member[member].failure = kl_record_name(r, kl_json_get_text(o, "failure"));
    r->member[member].waits_for = (int)kl_json_get_int(o, "waits_for", -1);
    if (!moves) KL_TRY(add_operation(r, o, member));
    json_object_foreach(json_object_get(o, "collective_counts"), function, n)
    {
        if (json_is_integer(n) && !json_object_get(o, "operation"))
            KL_TRY(kl_record_new_count(r, member, function, json_integer_value(n)));
    }
    return ncclSuccess;
}

static ncclResult_t add_missing(struct kl_record *r, int file, int group, const json_t *o)
{
    const json_t *status = json_object_get(o, "status");
    int member;

    KL_TRY(kl_record_new_member(r, group, (int)kl_json_get_int(o, "rank", -1), file, &member));
    KL_TRY(add_process(r, o, member));
    r->member[member].state = kl_json_get_true(status, "considered_dead") ? KL_MEMBER_DEAD : KL_MEMBER_SILENT;
    return ncclSuccess;
}

static ncclResult_t add_communicator(struct kl_record *r, int file, const json_t *c)
{
    char id[128];
    size_t i;
    json_t *o;
    int group;

    /* the first hash is of the parent's, where a communicator was split */
    snprintf(id, sizeof id, "%.40s%s%.60s", kl_json_get_text(c, "hash"),
             *kl_json_get_text(c, "secondary_hash") ? "-" : "", kl_json_get_text(c, "secondary_hash"));
    KL_TRY(kl_record_group_of(r, id, "", &group));
    r->group[group].size = (int)kl_json_get_int(c, "size", -1);
    /* Kolo knows whether operations stand still; in a job that moves, ranks were read at different moments */
    const bool moves = json_is_false(json_object_get(c, "stuck")) && !kl_json_get_true(c, "mismatch");

    json_array_foreach(json_object_get(c, "ranks"), i, o) KL_TRY(add_rank(r, file, group, o, moves));
    json_array_foreach(json_object_get(c, "missing_ranks"), i, o) KL_TRY(add_missing(r, file, group, o));
    return ncclSuccess;
}

static ncclResult_t add_report(struct kl_record *r, int file, const json_t *report)
{
    const json_t *version = json_object_get(report, "nccl_version");
    size_t i;
    json_t *c;

    if (json_is_string(version)) r->file[file].version = kl_record_name(r, json_string_value(version));
    r->file[file].starts_known = true;
    json_array_foreach(json_object_get(report, "communicators"), i, c) KL_TRY(add_communicator(r, file, c));
    return ncclSuccess;
}

ncclResult_t kl_record_add_ras(struct kl_record *r, int file, const char *text, size_t bytes)
{
    const char *begin = memchr(text, '{', bytes); /* behind the replies of the server */
    json_t *document, *job;
    size_t i;

    if (!begin) return KL_FAIL(ncclInvalidUsage, "%s: no status of RAS: it has no {", r->file[file].name);
    KL_TRY(kl_record_parse(r->file[file].name, begin, bytes - (size_t)(begin - text), &document));
    const json_t *jobs = json_object_get(document, "jobs"); /* of kolo ras --json */
    ncclResult_t rc = jobs ? ncclSuccess : add_report(r, file, document);

    json_array_foreach(jobs, i, job)
    {
        if (!rc) rc = add_report(r, file, job);
    }
    json_decref(document);
    return rc;
}
