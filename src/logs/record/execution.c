/* SPDX-License-Identifier: Apache-2.0 */
/**
 * execution.c - execution traces of PyTorch (ExecutionTraceObserver; "schema": "1.1.0-chakra.0.0.4"): JSON, one file for each rank.
 *
 * A node record_param_comms is a call. Its facts are attributes in newer schemas; else they follow from its inputs: tensors, a number,
 * the group ("0" or ["0", "default_pg"]), a rank (of messages: the peer), the collective's name, sizes of parts.
 */
#include "logs/record/trace_nodes.h"

#include "base/error.h"

#include <ctype.h>
#include <string.h>

enum { TENSORS = 1 << 16, DEPTH = 4, TENSOR_FIELDS = 6 };

/* ---- attributes ---- */

static const json_t *attribute(const json_t *node, const char *name)
{
    const json_t *list = json_object_get(node, "attrs"), *a;
    size_t i;

    json_array_foreach(list, i, a)
    {
        if (!strcmp(kl_json_get_text(a, "name"), name)) return a;
    }
    return NULL;
}

static const char *text_of(const json_t *node, const char *name)
{
    return kl_json_get_text(attribute(node, name), "value");
}

static int64_t number_of(const json_t *node, const char *name)
{
    return kl_json_get_int(attribute(node, name), "value", -1);
}

/* ---- inputs ---- */

/* Since 1.0.3 inputs are an object. */
static const json_t *values_of(const json_t *node, const char *side)
{
    const json_t *o = json_object_get(node, side);

    return json_is_array(o) ? o : json_object_get(o, "values");
}

/* [id, storage, offset, elements, bytes of one, device] */
static bool read_tensor(const json_t *v, int64_t *bytes)
{
    const json_t *elements = json_array_get(v, 3), *size = json_array_get(v, 4);

    if (json_array_size(v) < TENSOR_FIELDS || !json_is_integer(elements) || !json_is_integer(size)) return false;
    if (json_integer_value(elements) < 0 || json_integer_value(size) < 0 ||
        __builtin_mul_overflow(json_integer_value(elements), json_integer_value(size), bytes))
        *bytes = -1;
    return true;
}

/* Bytes of all tensors in a value, -1: there are none. */
static int64_t tensor_bytes(const json_t *v, int depth)
{
    int64_t bytes, sum = -1;

    if (read_tensor(v, &bytes)) return bytes;
    for (size_t i = 0; depth < DEPTH && i < json_array_size(v) && i < TENSORS; i++) {
        bytes = tensor_bytes(json_array_get(v, i), depth + 1);
        if (bytes >= 0 && __builtin_add_overflow(sum < 0 ? 0 : sum, bytes, &sum)) return -1;
    }
    return sum;
}

/* Where the name of the collective is: a text behind a rank; the group's name stands before one. -1: not there. */
static int place_of_name(const json_t *values)
{
    for (size_t i = 2; i < json_array_size(values); i++) {
        const char *text = json_string_value(json_array_get(values, i));

        if (text && (isalpha((unsigned char)*text) || *text == '_') && json_is_integer(json_array_get(values, i - 1)))
            return (int)i;
    }
    return -1;
}

static const char *group_of(const json_t *node, const json_t *values, int name)
{
    const json_t *v = name >= 2 ? json_array_get(values, (size_t)name - 2) : NULL;
    const char *told = text_of(node, "pg_name");

    if (*told) return told;
    if (json_is_array(v)) v = json_array_get(v, 0);
    return json_is_string(v) ? json_string_value(v) : "";
}

/* ---- calls ---- */

/* Records of these names move no data. */
static bool is_call(const char *name)
{
    static const char *const others[] = {
        "wait", "init", "startCoalescing", "endCoalescing", "start_coalescing", "end_coalescing"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(name, others[i])) return false;
    return *name;
}

/* "GenericList[Tensor(c10::BFloat16),]", "Tensor(float)": the name between the innermost brackets. */
static const char *type_of_tensor(struct kl_record *r, const json_t *node)
{
    const json_t *types = json_object_get(json_object_get(node, "inputs"), "types");

    if (!types) types = json_object_get(node, "input_types");
    const char *text = json_string_value(json_array_get(types, 0)), *at = text ? strstr(text, "Tensor(") : NULL;

    if (!at) return "";
    at += strlen("Tensor(");
    if (!strncmp(at, "c10::", 5)) at += 5;
    return kl_record_name_n(r, at, strcspn(at, ")]"));
}

/* Peers are places of the group. */
static int rank_at(const char *listed, int64_t place)
{
    for (int64_t i = 0; isdigit((unsigned char)*listed); i++) {
        int64_t rank;

        if (!kl_scan_int(&listed, &rank)) return -1;
        if (i == place) return rank < KL_TRACE_RANKS ? (int)rank : -1;
        listed += *listed == ',';
    }
    return place >= 0 && place < KL_TRACE_RANKS ? (int)place : -1;
}

static void read_peer(struct kl_trace_nodes *t, const json_t *node, int64_t rank, struct kl_record_call *c)
{
    const bool sends = !strncmp(c->name, "send", 4);
    int64_t peer = number_of(node, sends ? "dst_rank" : "src_rank");

    if (peer < 0) peer = rank;
    c->kind = sends ? KL_CALL_SEND : KL_CALL_RECV;
    c->peer = rank_at(t->r->group[t->r->member[c->member].group].listed, peer);
    if (c->peer < 0) kl_trace_nodes_lacks(t, c, "a peer");
}

static void read_sizes(const json_t *node, struct kl_record *r, struct kl_record_call *c)
{
    const json_t *in = values_of(node, "inputs"), *out = values_of(node, "outputs");
    const int64_t input = tensor_bytes(json_array_get(in, 0), 0), output = tensor_bytes(out, 0);
    const char *type = text_of(node, "dtype");

    c->type = *type ? kl_record_name(r, type) : type_of_tensor(r, node);
    c->in = number_of(node, "in_msg_nelems");
    c->out = number_of(node, "out_msg_nelems");
    c->bytes = input > output ? input : output;
}

static ncclResult_t add_call(struct kl_trace_nodes *t, const json_t *node)
{
    const json_t *values = values_of(node, "inputs");
    const int place = place_of_name(values);
    const char *told = text_of(node, "collective_name"),
               *name = *told || place < 0 ? told : json_string_value(json_array_get(values, (size_t)place));
    int call;

    if (*name && !is_call(name)) return ncclSuccess;
    KL_TRY(kl_trace_nodes_call(t, group_of(node, values, place), &call));
    struct kl_record_call *c = &t->r->call[call];

    c->name = *name ? kl_record_name(t->r, name) : "record_param_comms without collective_name";
    read_sizes(node, t->r, c);
    if (!strncmp(c->name, "send", 4) || !strncmp(c->name, "recv", 4))
        read_peer(t, node, place > 0 ? json_integer_value(json_array_get(values, (size_t)place - 1)) : -1, c);
    else
        kl_trace_nodes_number(t, c);
    if (c->in < 0 && c->out < 0 && c->bytes < 0) kl_trace_nodes_lacks(t, c, "tensors");
    return ncclSuccess;
}

static ncclResult_t add_node(struct kl_trace_nodes *t, const json_t *node)
{
    const char *name = kl_json_get_text(node, "name");

    if (strstr(name, KL_TRACE_GROUPS)) {
        const char *text = json_string_value(json_array_get(values_of(node, "inputs"), 0));

        return text ? kl_trace_nodes_groups(t, text) : ncclSuccess;
    }
    return strcmp(name, "record_param_comms") ? ncclSuccess : add_call(t, node);
}

ncclResult_t kl_record_add_execution(struct kl_record *r, int file, const char *text, size_t bytes)
{
    struct kl_trace_nodes t = {.r = r, .file = file};
    json_t *document, *node;
    ncclResult_t rc = ncclSuccess;
    size_t i;

    KL_TRY(kl_record_parse(r->file[file].name, text, bytes, &document));
    r->file[file].version = kl_record_name(r, kl_json_get_text(document, "schema"));
    kl_trace_nodes_begin(&t, kl_json_get_int(document, "rank", -1));
    json_array_foreach(json_object_get(document, "nodes"), i, node)
    {
        if (!rc) rc = add_node(&t, node);
    }
    if (!rc) rc = kl_trace_nodes_end(&t, "record_param_comms");
    json_decref(t.groups);
    json_decref(document);
    return rc;
}
