/* SPDX-License-Identifier: Apache-2.0 */
/** inspector.c - reports of NCCL's Inspector (a profiler plugin): JSON, one object per line for each collective or message. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* The member that a report is about, by communicator and rank. */
static ncclResult_t member_of(struct kl_record *r, int file, const json_t *line, int *member)
{
    const json_t *header = json_object_get(line, "header"), *meta = json_object_get(line, "metadata");
    const int rank = (int)kl_json_get_int(header, "rank", -1);
    const char *host = kl_json_get_text(meta, "hostname");
    const int pid = (int)kl_json_get_int(meta, "pid", -1);
    char key[320];
    int group;

    KL_TRY(kl_record_group_of(r, kl_json_get_text(header, "id"), "", &group));
    *member = kl_record_member_of(r, group, rank, file);
    if (*member >= 0) return ncclSuccess;
    r->group[group].size = (int)kl_json_get_int(header, "n_ranks", -1);
    r->file[file].version = kl_record_name(r, kl_json_get_text(meta, "inspector_output_format_version"));
    KL_TRY(kl_record_new_member(r, group, rank, file, member));
    snprintf(key, sizeof key, "%.255s %d", host, pid);
    KL_TRY(kl_record_proc_of(r, key, &r->member[*member].proc));
    struct kl_record_proc *p = &r->proc[r->member[*member].proc];

    p->host = kl_record_name(r, host);
    p->pid = pid;
    p->recorded = true;
    return ncclSuccess;
}

static double exec_time(const json_t *perf, const char *key)
{
    return kl_json_get_real(perf, key, -1);
}

static ncclResult_t add_collective(struct kl_record *r, int member, const json_t *perf, double stamp)
{
    int call;

    KL_TRY(kl_record_new_call(r, member, &call));
    struct kl_record_call *c = &r->call[call];

    c->name = kl_record_name(r, kl_json_get_text(perf, "coll"));
    c->number = kl_json_get_int(perf, "coll_sn", -1);
    c->bytes = kl_json_get_int(perf, "coll_msg_size_bytes", -1);
    c->took_us = exec_time(perf, "coll_exec_time_us");
    c->begun_us = stamp;
    c->state = KL_CALL_ENDED;
    return ncclSuccess;
}

static ncclResult_t add_message(struct kl_record *r, int member, const json_t *perf, double stamp)
{
    const char *name = kl_json_get_text(perf, "p2p");
    int call;

    KL_TRY(kl_record_new_call(r, member, &call));
    struct kl_record_call *c = &r->call[call];

    c->kind = strcmp(name, "Recv") ? KL_CALL_SEND : KL_CALL_RECV;
    c->name = kl_record_name(r, name);
    c->number = kl_json_get_int(perf, "p2p_sn", -1);
    c->peer = (int)kl_json_get_int(perf, "p2p_peer", kl_json_get_int(perf, "peer", -1));
    c->bytes = kl_json_get_int(perf, "p2p_msg_size_bytes", -1);
    c->took_us = exec_time(perf, "p2p_exec_time_us");
    c->begun_us = stamp;
    c->state = KL_CALL_ENDED;
    return ncclSuccess;
}

static ncclResult_t add_line(struct kl_record *r, int file, const json_t *line)
{
    const json_t *coll = json_object_get(line, "coll_perf"), *p2p = json_object_get(line, "p2p_perf");
    const double stamp = kl_json_get_real(json_object_get(line, "metadata"), "dump_timestamp_us", -1);
    int member;

    if (!coll && !p2p) return ncclSuccess;
    KL_TRY(member_of(r, file, line, &member));
    if (coll) KL_TRY(add_collective(r, member, coll, stamp));
    return p2p ? add_message(r, member, p2p, stamp) : ncclSuccess;
}

/* Reports may also be members of one array. A last line that is cut off is left out: the program wrote when it was copied. */
static ncclResult_t add_value(struct kl_record *r, int file, const json_t *value)
{
    size_t i;
    json_t *line;

    if (json_is_object(value)) return add_line(r, file, value);
    json_array_foreach(value, i, line) KL_TRY(add_line(r, file, line));
    return ncclSuccess;
}

ncclResult_t kl_record_add_inspector(struct kl_record *r, int file, const char *text, size_t bytes)
{
    size_t at = 0, lines = 1;

    r->file[file].numbers = KL_NUMBERS_OF_FUNCTION;

    while (at < bytes) {
        json_error_t error;
        json_t *value = json_loadb(text + at, bytes - at, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);

        if (!value && json_error_code(&error) == json_error_premature_end_of_input && r->ncall) return ncclSuccess;
        if (!value)
            return KL_FAIL(ncclInvalidUsage, "%s:%d: not a report of Inspector: %s", r->file[file].name,
                           (int)lines + error.line - 1, error.text);
        ncclResult_t rc = add_value(r, file, value);

        json_decref(value);
        if (rc) return rc;
        for (size_t end = at + (size_t)error.position; at < end; at++) lines += text[at] == '\n';
        for (; at < bytes && strchr(" \t\r\n,", text[at]); at++) lines += text[at] == '\n';
    }
    return ncclSuccess;
}
