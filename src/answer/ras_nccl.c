/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/ras_nccl.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct faults {
    const struct kl_ras_fault *fault;
    int n;
};

/* ---- faults by name ---- */

static const struct {
    const char *name;
    bool value;
    int usual;
} kinds[KL_RAS_FAULTS] = {
    [KL_RAS_DEAD] = {"dead", false, 0},
    [KL_RAS_SILENT] = {"unresponsive", false, 0},
    [KL_RAS_BEHIND] = {"behind", true, 1},
    [KL_RAS_INIT] = {"init", false, 0},
    [KL_RAS_FAILED] = {"error", true, ncclRemoteError},
    [KL_RAS_ABORTED] = {"abort", false, 0},
    [KL_RAS_FINALIZED] = {"finalize", false, 0},
    [KL_RAS_DESTROYED] = {"destroy", false, 0},
};

static ncclResult_t refuse(const char *text)
{
    return KL_FAIL(
        ncclInvalidArgument,
        "\"%s\" is no fault: RANK=dead, unresponsive, behind[:N], init, error[:CODE], abort, finalize or destroy",
        text);
}

static bool read_number(const char *text, int *value)
{
    char *end;
    const long n = strtol(text, &end, 10);

    *value = (int)n;
    return end != text && !*end && n >= 0 && n <= 1 << 30;
}

ncclResult_t kl_ras_fault_read(const char *text, struct kl_ras_fault *f)
{
    const char *equals = strchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    char rank[16];

    if (!equals || equals - text >= (long)sizeof rank) return refuse(text);
    snprintf(rank, sizeof rank, "%.*s", (int)(equals - text), text);
    if (!read_number(rank, &f->rank)) return refuse(text);
    const size_t length = colon ? (size_t)(colon - equals - 1) : strlen(equals + 1);

    for (int k = 0; k < KL_RAS_FAULTS; k++) {
        if (strlen(kinds[k].name) != length || memcmp(equals + 1, kinds[k].name, length) != 0) continue;
        f->kind = (enum kl_ras_fault_kind)k;
        f->value = kinds[k].usual;
        if (!colon) return ncclSuccess;
        return kinds[k].value && read_number(colon + 1, &f->value) ? ncclSuccess : refuse(text);
    }
    return refuse(text);
}

static const struct kl_ras_fault *fault_of(struct faults f, int rank, enum kl_ras_fault_kind kind)
{
    for (int i = 0; i < f.n; i++)
        if (f.fault[i].rank == rank && f.fault[i].kind == kind) return &f.fault[i];
    return NULL;
}

static bool is_missing(struct faults f, int rank)
{
    return fault_of(f, rank, KL_RAS_DEAD) || fault_of(f, rank, KL_RAS_SILENT);
}

/* ---- values ---- */

static long long number(const json_t *o, const char *key, long long absent)
{
    const json_t *v = json_object_get(o, key);

    return json_is_integer(v) ? json_integer_value(v) : absent;
}

static const char *text(const json_t *o, const char *key)
{
    const char *t = json_string_value(json_object_get(o, key));

    return t ? t : "";
}

/* A line with a text, escaped as JSON has it. */
static void put_text(const char *indent, const char *key, const char *value, FILE *to)
{
    json_t *text = json_string(value);

    fprintf(to, "%s\"%s\": ", indent, key);
    if (!text || json_dumpf(text, to, JSON_ENCODE_ANY)) fprintf(to, "\"\"");
    fprintf(to, ",\n");
    json_decref(text);
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static bool flag(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

/* ---- a rank ---- */

static void put_process(const json_t *o, FILE *to)
{
    fprintf(to, "          \"rank\": %d,\n", (int)number(o, "rank", -1));
    put_text("          ", "host", text(o, "host"), to);
    fprintf(to, "          \"pid\": %d,\n", (int)number(o, "pid", 0));
    fprintf(to, "          \"cuda_dev\": %d,\n", (int)number(o, "cuda_dev", 0));
    fprintf(to, "          \"nvml_dev\": %d,\n", (int)number(o, "nvml_dev", 0));
}

static void put_status(const json_t *status, struct faults f, int rank, FILE *to)
{
    const struct kl_ras_fault *failed = fault_of(f, rank, KL_RAS_FAILED);
    const bool init = fault_of(f, rank, KL_RAS_INIT) != NULL;

    fprintf(to, "          \"status\": {\n");
    fprintf(to, "            \"init_state\": %d,\n", init ? ncclInProgress : (int)number(status, "init_state", 0));
    fprintf(to, "            \"async_error\": %d,\n", failed ? failed->value : (int)number(status, "async_error", 0));
    fprintf(to, "            \"finalize_called\": %s,\n",
            truth(flag(status, "finalize_called") || fault_of(f, rank, KL_RAS_FINALIZED)));
    fprintf(to, "            \"destroy_flag\": %s,\n",
            truth(flag(status, "destroy_flag") || fault_of(f, rank, KL_RAS_DESTROYED)));
    fprintf(to, "            \"abort_flag\": %s\n",
            truth(flag(status, "abort_flag") || fault_of(f, rank, KL_RAS_ABORTED)));
    fprintf(to, "          },\n");
}

static void put_counts(const json_t *counts, struct faults f, int rank, FILE *to)
{
    static const char *const functions[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
    const struct kl_ras_fault *behind = fault_of(f, rank, KL_RAS_BEHIND);
    const size_t n = sizeof functions / sizeof functions[0];

    fprintf(to, "          \"collective_counts\": {\n");
    for (size_t i = 0; i < n; i++) {
        long long called = number(counts, functions[i], 0);

        if (behind && called) called = called > behind->value ? called - behind->value : 0;
        fprintf(to, "            \"%s\": %lld%s\n", functions[i], called, i + 1 < n ? "," : "");
    }
    fprintf(to, "          }\n");
}

static void put_rank(const json_t *o, struct faults f, bool first, FILE *to)
{
    const int rank = (int)number(o, "rank", -1);

    fprintf(to, "%s        {\n", first ? "" : ",\n");
    put_process(o, to);
    put_status(json_object_get(o, "status"), f, rank, to);
    put_counts(json_object_get(o, "collective_counts"), f, rank, to);
    fprintf(to, "        }");
}

/* Kolo names a missing rank in words: "rank 3 (host b, pid 12)". */
static void put_missing_process(const json_t *o, FILE *to)
{
    static const char host[] = "(host ", pid[] = ", pid ";
    const char *name = strstr(text(o, "who"), host), *process = name ? strstr(name, pid) : NULL;

    if (json_object_get(o, "host") || !process) {
        put_process(o, to);
        return;
    }
    name += sizeof host - 1;
    const long number = strtol(process + sizeof pid - 1, NULL, 10);
    json_t *rank = json_pack("{s:O, s:s#, s:i}", "rank", json_object_get(o, "rank"), "host", name,
                             (int)(process - name), "pid", (int)number);

    put_process(rank, to);
    json_decref(rank);
}

static void put_missing(const json_t *o, struct faults f, bool first, FILE *to)
{
    const int rank = (int)number(o, "rank", -1);
    const json_t *status = json_object_get(o, "status");
    const bool dead = fault_of(f, rank, KL_RAS_DEAD) || flag(status, "considered_dead");

    fprintf(to, "%s        {\n", first ? "" : ",\n");
    put_missing_process(o, to);
    fprintf(to, "          \"status\": {\n");
    fprintf(to, "            \"unresponsive\": %s,\n", truth(!dead || flag(status, "unresponsive")));
    fprintf(to, "            \"considered_dead\": %s\n", truth(dead));
    fprintf(to, "          }\n        }");
}

/* ---- a communicator ---- */

static int count_answering(const json_t *c, struct faults f)
{
    size_t i;
    json_t *o;
    int n = 0;

    json_array_foreach(json_object_get(c, "ranks"), i, o) n += !is_missing(f, (int)number(o, "rank", -1));
    return n;
}

static void put_ranks(const json_t *c, struct faults f, FILE *to)
{
    size_t i;
    json_t *o;
    bool first = true;

    fprintf(to, "      \"ranks\": [\n");
    json_array_foreach(json_object_get(c, "ranks"), i, o)
    {
        if (is_missing(f, (int)number(o, "rank", -1))) continue;
        put_rank(o, f, first, to);
        first = false;
    }
    fprintf(to, "\n      ],\n");
}

static void put_missing_ranks(const json_t *c, struct faults f, FILE *to)
{
    size_t i;
    json_t *o;
    bool first = true;

    fprintf(to, "      \"missing_ranks\": [\n");
    json_array_foreach(json_object_get(c, "missing_ranks"), i, o)
    {
        put_missing(o, f, first, to);
        first = false;
    }
    json_array_foreach(json_object_get(c, "ranks"), i, o)
    {
        if (!is_missing(f, (int)number(o, "rank", -1))) continue;
        put_missing(o, f, first, to);
        first = false;
    }
    fprintf(to, "\n      ]\n");
}

static void put_communicator(const json_t *c, struct faults f, bool first, FILE *to)
{
    const char *second = text(c, "secondary_hash");
    char both[128];
    const int all =
        (int)(json_array_size(json_object_get(c, "ranks")) + json_array_size(json_object_get(c, "missing_ranks")));
    const int answering = count_answering(c, f);

    fprintf(to, "%s    {\n", first ? "" : ",\n");
    put_text("      ", "hash", text(c, "hash"), to);
    snprintf(both, sizeof both, "%.100s%s", *second ? second : "0x0", strchr(second, ':') ? "" : ":0x0");
    put_text("      ", "secondary_hash", both, to);
    fprintf(to, "      \"size\": %d,\n", (int)number(c, "size", all));
    fprintf(to, "      \"ranks_count\": %d,\n", answering);
    fprintf(to, "      \"missing_ranks_count\": %d,\n", all - answering);
    put_ranks(c, f, to);
    put_missing_ranks(c, f, to);
    fprintf(to, "    }");
}

/* ---- ranks of faults ---- */

static bool lists(const json_t *ranks, int rank)
{
    size_t i;
    json_t *o;

    json_array_foreach(ranks, i, o)
    {
        if (number(o, "rank", -1) == rank) return true;
    }
    return false;
}

static bool has_rank(const json_t *report, int rank)
{
    size_t i;
    json_t *c;

    json_array_foreach(json_object_get(report, "communicators"), i, c)
    {
        if (lists(json_object_get(c, "ranks"), rank) || lists(json_object_get(c, "missing_ranks"), rank)) return true;
    }
    return false;
}

ncclResult_t kl_ras_faults_check(const json_t *report, const struct kl_ras_fault *fault, int n)
{
    for (int i = 0; i < n; i++)
        if (!has_rank(report, fault[i].rank))
            return KL_FAIL(ncclInvalidArgument, "a fault of rank %d: no communicator of this status has that rank",
                           fault[i].rank);
    return ncclSuccess;
}

/* ---- the report ---- */

static void put_head(const json_t *report, time_t now, FILE *to)
{
    const json_t *version = json_object_get(report, "nccl_version");
    char stamp[64] = "", own[32];
    struct tm tm;

    if (localtime_r(&now, &tm)) strftime(stamp, sizeof stamp, "%F %T", &tm);
    snprintf(own, sizeof own, "%d.%d.%d", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    put_text("  ", "nccl_version", json_is_string(version) ? json_string_value(version) : own, to);
    fprintf(to, "  \"cuda_runtime_version\": %d,\n", (int)number(report, "cuda_runtime_version", 0));
    fprintf(to, "  \"cuda_driver_version\": %d,\n", (int)number(report, "cuda_driver_version", 0));
    fprintf(to, "  \"timestamp\": \"%s\",\n", stamp);
}

ncclResult_t kl_ras_nccl_print(const json_t *report, const struct kl_ras_fault *fault, int n, time_t now, FILE *to)
{
    const json_t *communicators = json_object_get(report, "communicators"), *ras = json_object_get(report, "ras");
    const json_t *took = json_object_get(ras, "collection_time_sec");
    const struct faults f = {fault, n};
    size_t i;
    json_t *c;

    if (!json_is_array(communicators))
        return KL_FAIL(ncclInvalidUsage, "no status of RAS: it has no \"communicators\"");
    fprintf(to, "{\n");
    put_head(report, now, to);
    fprintf(to, "  \"communicators_count\": %zu,\n", json_array_size(communicators));
    fprintf(to, "  \"communicators\": [\n");
    json_array_foreach(communicators, i, c) put_communicator(c, f, !i, to);
    fprintf(to, "\n  ],\n");
    fprintf(to, "  \"ras\": {\n");
    fprintf(to, "    \"collection_time_sec\": %.3f,\n", json_is_number(took) ? json_number_value(took) : 0.0);
    fprintf(to, "    \"timeouts_count\": %d\n", (int)number(ras, "timeouts_count", 0));
    fprintf(to, "  }\n}\n");
    return ncclSuccess;
}
