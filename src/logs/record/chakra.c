/* SPDX-License-Identifier: Apache-2.0 */
/**
 * chakra.c - execution traces of MLCommons' Chakra in JSON: one file for each rank, one document for each node (as chakra_jsonizer writes
 * them), or one document with a list of nodes. Sizes are of a rank's input.
 */
#include "logs/record/trace_nodes.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 16 };

/* CollectiveCommType, in its order. */
static const char *const collectives[] = {"all_reduce", "reduce",     "all_gather",     "gather",         "scatter",
                                          "broadcast",  "all_to_all", "reduce_scatter", "reduce_scatter", "barrier"};

enum node { NODE_OTHER, NODE_COLLECTIVE, NODE_SEND, NODE_RECV };

/* ---- attributes ---- */

/* Both spellings of the schema's field, and the older one. */
static const json_t *attributes(const json_t *node)
{
    const json_t *list = json_object_get(node, "attr");

    return list ? list : json_object_get(node, "attribute");
}

/* An attribute's object, NULL if there is none. */
static const json_t *find(const json_t *node, const char *name)
{
    const json_t *list = attributes(node), *a;
    size_t i;

    json_array_foreach(list, i, a)
    {
        if (!strcmp(kl_json_get_text(a, "name"), name)) return a;
    }
    return NULL;
}

/* The value's key names its type: int64_val, or int64Val where a converter wrote it; "i" in older traces. */
static int64_t number_of(const json_t *node, const char *name, int64_t absent)
{
    static const char *const keys[] = {"int64_val",  "int64Val",  "uint64_val", "uint64Val", "int32_val", "int32Val",
                                       "uint32_val", "uint32Val", "sint64_val", "sint64Val", "i",         "value"};
    const json_t *a = find(node, name);

    for (size_t i = 0; a && i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(a, keys[i])) return kl_json_get_int(a, keys[i], absent);
    return a ? 0 : absent; /* a converter leaves out zeros */
}

static const char *text_of(const json_t *node, const char *name)
{
    static const char *const keys[] = {"string_val", "stringVal", "s", "value"};
    const json_t *a = find(node, name);

    for (size_t i = 0; a && i < sizeof keys / sizeof keys[0]; i++)
        if (json_is_string(json_object_get(a, keys[i]))) return kl_json_get_text(a, keys[i]);
    return "";
}

/* "involved_dim": the dimensions of a logical machine that a collective spans. All of them, or none named: the whole job, "". */
static void read_dimensions(const json_t *node, char text[2 * DIMENSIONS + 16])
{
    const json_t *a = find(node, "involved_dim"), *list = json_object_get(a, "bool_list"), *v;
    struct kl_text to = kl_text_in(text, 2 * DIMENSIONS + 16);
    bool all = true;
    size_t i;

    if (!list) list = json_object_get(a, "boolList");
    if (json_is_object(list)) list = json_object_get(list, "values");
    kl_text_add(&to, "dimensions");
    json_array_foreach(list, i, v)
    {
        all = all && json_is_true(v);
        if (json_is_true(v) && i < DIMENSIONS) kl_text_add(&to, " %d", (int)i);
    }
    if (all) *text = 0;
}

/* ---- nodes ---- */

static enum node node_of(const json_t *node)
{
    const char *type = kl_json_get_text(node, "type");
    const int64_t number = kl_json_get_int(node, "type", -1); /* NodeType's numbers */

    if (!strcmp(type, "COMM_COLL_NODE") || number == 7) return NODE_COLLECTIVE;
    if (!strcmp(type, "COMM_SEND_NODE") || number == 5) return NODE_SEND;
    return !strcmp(type, "COMM_RECV_NODE") || number == 6 ? NODE_RECV : NODE_OTHER;
}

static const char *collective_of(struct kl_record *r, const json_t *node)
{
    const int64_t type = number_of(node, "comm_type", -1);
    const char *text = text_of(node, "comm_type");

    if (*text) return kl_record_name(r, text);
    if (type >= 0 && type < (int64_t)(sizeof collectives / sizeof collectives[0])) return collectives[type];
    return type < 0 ? "a collective without comm_type" : "a collective of unknown comm_type";
}

static ncclResult_t add_collective(struct kl_trace_nodes *t, const json_t *node)
{
    char dimensions[2 * DIMENSIONS + 16];
    const char *group = text_of(node, "pg_name");
    const int64_t size = number_of(node, "comm_size", -1);
    int call;

    read_dimensions(node, dimensions);
    KL_TRY(kl_trace_nodes_call(t, *group ? group : *dimensions ? dimensions : "", &call));
    struct kl_record_call *c = &t->r->call[call];

    c->name = collective_of(t->r, node);
    c->in = c->bytes = size;
    c->type = "uint8";
    c->root = (int)number_of(node, "root", number_of(node, "comm_root", -1));
    kl_trace_nodes_number(t, c);
    if (size < 0) kl_trace_nodes_lacks(t, c, "comm_size");
    return ncclSuccess;
}

static ncclResult_t add_message(struct kl_trace_nodes *t, const json_t *node, bool sends)
{
    const char *group = text_of(node, "pg_name"), *key = sends ? "comm_dst" : "comm_src";
    int call;

    KL_TRY(kl_trace_nodes_call(t, group, &call));
    struct kl_record_call *c = &t->r->call[call];
    const int64_t peer = number_of(node, key, -1);

    c->kind = sends ? KL_CALL_SEND : KL_CALL_RECV;
    c->name = sends ? "send" : "recv";
    c->bytes = number_of(node, "comm_size", -1);
    c->peer = peer >= 0 && peer < KL_TRACE_RANKS ? (int)peer : -1;
    if (c->bytes < 0) kl_trace_nodes_lacks(t, c, "comm_size");
    if (c->peer < 0) kl_trace_nodes_lacks(t, c, key);
    return ncclSuccess;
}

static ncclResult_t add_node(struct kl_trace_nodes *t, const json_t *node)
{
    const enum node kind = node_of(node);

    if (strstr(kl_json_get_text(node, "name"), KL_TRACE_GROUPS)) {
        const json_t *inputs = json_object_get(node, "inputs"), *values = json_object_get(inputs, "values");

        return kl_trace_nodes_groups(t,
                                     json_is_string(values) ? json_string_value(values) : text_of(node, "pg_config"));
    }
    if (kind == NODE_COLLECTIVE) return add_collective(t, node);
    return kind == NODE_OTHER ? ncclSuccess : add_message(t, node, kind == NODE_SEND);
}

/* A list of nodes, an object that has one, or one node. */
static ncclResult_t add_document(struct kl_trace_nodes *t, const json_t *d)
{
    const json_t *list = json_is_array(d) ? d : json_object_get(d, "nodes"), *node;
    size_t i;

    if (!list) list = json_object_get(d, "node");
    if (!json_is_array(list)) return add_node(t, d);
    json_array_foreach(list, i, node) KL_TRY(add_node(t, node));
    return ncclSuccess;
}

static ncclResult_t read_documents(struct kl_trace_nodes *t, const char *text, size_t bytes)
{
    size_t at = 0, lines = 1;

    while (at < bytes) {
        json_error_t error;
        json_t *document = json_loadb(text + at, bytes - at, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);

        if (!document)
            return KL_FAIL(ncclInvalidUsage, "%s:%d: not a complete Chakra execution trace: %s",
                           t->r->file[t->file].name, (int)lines + error.line - 1, error.text);
        const ncclResult_t rc = add_document(t, document);

        json_decref(document);
        if (rc) return rc;
        for (size_t end = at + (size_t)error.position; at < end; at++) lines += text[at] == '\n';
        for (; at < bytes && text[at] && strchr(" \t\r\n,", text[at]); at++) lines += text[at] == '\n';
    }
    return ncclSuccess;
}

ncclResult_t kl_record_add_chakra(struct kl_record *r, int file, const char *text, size_t bytes)
{
    struct kl_trace_nodes t = {.r = r, .file = file};

    kl_trace_nodes_begin(&t, -1);
    const ncclResult_t rc = read_documents(&t, text, bytes);
    const ncclResult_t ended = rc ? rc : kl_trace_nodes_end(&t, "COMM_COLL_NODE, COMM_SEND_NODE or COMM_RECV_NODE");

    json_decref(t.groups);
    return ended;
}
