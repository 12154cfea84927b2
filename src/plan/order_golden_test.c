/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded cuts, sums and messages of NCCL's own code agree: rings, trees and choices that were given (abstract), and those of
 * whole clusters. The records are third-party data and not part of the project: they lie in KOLO_SHARED, else in ../shared.
 */
#include "base/error.h"
#include "device/host/redop.h"
#include "plan/order_ranges.h"
#include "plan/order_rules.h"
#include "tests/kolo_test.h"

#include <glob.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SKIPPED = 77, TEXT = 1 << 16 };

static const char *shared(void)
{
    const char *given = getenv("KOLO_SHARED");

    return given && *given ? given : "../shared";
}

/* The expression as records write it: all brackets, children in the order of their texts. */
static char *sorted_text(const struct kl_order_sums *s, int sum)
{
    const struct kl_order_term *t = &s->term[sum];
    char *text = NULL;

    if (t->leaf != KL_LEAF_SUM) {
        assert_true(asprintf(&text, t->leaf == KL_LEAF_SWITCH ? "S%d" : "%d", t->left) > 0);
        return text;
    }
    char *a = sorted_text(s, t->left), *b = sorted_text(s, t->right);
    bool swap = strcmp(a, b) > 0;

    assert_true(asprintf(&text, "(%s+%s)", swap ? b : a, swap ? a : b) > 0);
    free(a);
    free(b);
    return text;
}

struct record {
    const char *path;
    json_t *json;
    struct kl_order_rules rules;
    struct kl_order_wires wires;
    struct kl_cluster cluster;
    struct kl_planned planned;
    struct kl_order_group group;
    bool is_cluster;
    int root;
};

static const char *word(const struct record *r, const char *key)
{
    const char *text = json_string_value(json_object_get(r->json, key));

    if (!text) fail_msg("%s: no text %s", r->path, key);
    return text;
}

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static int named(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (names[i] && !strcasecmp(names[i], name)) return i;
    fail_msg("no \"%s\"", name);
    return -1;
}

static ncclDataType_t type_of(const char *name)
{
    static const struct {
        const char *name;
        ncclDataType_t type;
    } types[] = {{"int8", ncclInt8},         {"uint8", ncclUint8},           {"int32", ncclInt32},
                 {"uint32", ncclUint32},     {"int64", ncclInt64},           {"uint64", ncclUint64},
                 {"float16", ncclFloat16},   {"float32", ncclFloat32},       {"float64", ncclFloat64},
                 {"bfloat16", ncclBfloat16}, {"float8e4m3", ncclFloat8e4m3}, {"float8e5m2", ncclFloat8e5m2}};

    FOR_EACH_CASE(t, types) if (!strcmp(t->name, name)) return t->type;
    fail_msg("no type %s", name);
    return ncclInt8;
}

static ncclRedOp_t op_of(const char *name)
{
    for (int i = 0; i < ncclNumOps; i++)
        if (!strcasecmp(kl_redop_name((ncclRedOp_t)i), name)) return (ncclRedOp_t)i;
    return ncclSum; /* of the program's own */
}

/* ---- wires and rules of abstract records ---- */

static void read_rings(struct record *r)
{
    json_t *rings = json_object_get(r->json, "rings"), *of = json_object_get(r->json, "ring_of_channel");

    for (int c = 0; rings && c < r->wires.nchannels; c++) {
        json_t *ring = json_array_get(rings, (size_t)json_integer_value(json_array_get(of, (size_t)c)));
        int32_t order[1024];

        for (int i = 0; i < r->wires.nranks; i++)
            order[i] = (int32_t)json_integer_value(json_array_get(ring, (size_t)i));
        kl_order_wires_set_ring(&r->wires, c, order);
    }
}

static void read_trees(struct record *r)
{
    json_t *trees = json_object_get(r->json, "trees"), *of = json_object_get(r->json, "tree_of_channel");

    for (int c = 0; trees && c < r->wires.nchannels; c++) {
        json_t *tree = json_array_get(trees, (size_t)json_integer_value(json_array_get(of, (size_t)c)));

        for (int i = 0; i < r->wires.nranks; i++) {
            json_t *at = json_array_get(tree, (size_t)i), *down = json_object_get(at, "down");
            struct kl_tree_neighbours *to = &r->wires.tree[c * r->wires.nranks + i];

            to->up = (int)number(at, "up");
            for (size_t d = 0; d < 3; d++) to->down[d] = (int)json_integer_value(json_array_get(down, d));
        }
    }
}

static void open_abstract(struct record *r)
{
    json_t *buffers = json_object_get(r->json, "buffers"), *forced = json_object_get(r->json, "forced");
    int nchannels = (int)number(r->json, "nchannels"), nvls = (int)number(r->json, "nvls_channels");

    r->rules = (struct kl_order_rules){.nccl = kl_nccl_parse(word(r, "nccl")),
                                       .nranks = (int)number(r->json, "ranks"),
                                       .nnodes = (int)number(r->json, "nodes"),
                                       .nchannels = nchannels,
                                       .nvls_channels = nvls,
                                       .nvls_heads = (int)number(r->json, "nvls_heads"),
                                       .collnet_heads = (int)number(r->json, "collnet_heads"),
                                       .direct_depth = (int)number(r->json, "collnet_direct_depth"),
                                       .chain_depth = (int)number(r->json, "collnet_chain_depth"),
                                       .nvls_chunk = number(r->json, "nvls_chunk"),
                                       .tree_chunk = number(r->json, "nvlstree_chunk"),
                                       .nvls_registered = json_is_true(json_object_get(r->json, "nvls_registered"))};
    r->rules.nvls_slow = json_number_value(json_object_get(r->json, "allreduce_nvls_simple_bw")) < 150;
    for (int p = 0; p < KL_PROTOS; p++) r->rules.buffer[p] = number(buffers, kl_proto_name[p]);
    assert_int_equal(kl_order_wires_init(r->rules.nranks, r->rules.nnodes, nvls > nchannels ? nvls : nchannels,
                                         r->rules.nvls_heads, &r->wires),
                     ncclSuccess);
    r->wires.nchannels = nchannels;
    for (int i = 0; i < r->rules.nnodes * r->rules.nvls_heads; i++)
        r->wires.head[i] = i / r->rules.nvls_heads * (r->rules.nranks / r->rules.nnodes) + i % r->rules.nvls_heads;
    read_rings(r);
    read_trees(r);
    assert_non_null(forced);
}

/* ---- clusters ---- */

static void open_cluster(struct record *r)
{
    char topo[512], hosts[8];
    const char *key;
    json_t *value;
    struct kl_cluster_request request = {.topo = topo, .hosts = (int)number(r->json, "hosts"), .nccl = word(r, "nccl")};

    (void)hosts;
    snprintf(topo, sizeof topo, "%s/topologies/%s", shared(), word(r, "topology"));
    json_object_foreach(json_object_get(r->json, "env"), key, value) setenv(key, json_string_value(value), 1);
    if (getenv("KOLO_MNNVL")) request.mnnvl = true;
    if (kl_cluster_open(&request, &r->cluster) || kl_planned_init(&r->cluster, &r->planned))
        fail_msg("%s: %s", r->path, kl_error_text());
    assert_int_equal(kl_order_rules_of(&r->cluster, &r->planned, &r->rules), ncclSuccess);
    assert_int_equal(kl_order_wires_of(r->planned.plan->connect, &r->wires), ncclSuccess);
    json_object_foreach(json_object_get(r->json, "env"), key, value) unsetenv(key);
    if (r->rules.nchannels != number(r->json, "nchannels")) fail_msg("%s: %d channels", r->path, r->rules.nchannels);
}

/* ---- comparisons ---- */

static void expect(const struct record *r, const char *name, int64_t is, int64_t expected)
{
    if (is != expected) fail_msg("%s: %s is %lld instead of %lld", r->path, name, (long long)is, (long long)expected);
}

static void compare_cut(const struct record *r, const struct kl_order_op *o, const json_t *recorded)
{
    json_t *parts = json_object_get(recorded, "parts"), *chunk = json_object_get(recorded, "chunk_elements");
    int64_t size = (int64_t)kl_type_bytes(r->group.type);

    expect(r, "count", o->count, number(recorded, "count"));
    expect(r, "algorithm", o->choice.algo,
           named(kl_algo_name, KL_NCCL_ALGOS, json_string_value(json_object_get(recorded, "algorithm"))));
    expect(r, "protocol", o->choice.proto,
           named(kl_proto_name, KL_PROTOS, json_string_value(json_object_get(recorded, "protocol"))));
    expect(r, "most channels", o->choice.nchannels, number(recorded, "max_channels"));
    expect(r, "first channel", o->first_channel, number(recorded, "first_channel"));
    expect(r, "last channel", o->last_channel, number(recorded, "last_channel"));
    if (chunk) expect(r, "chunk of all channels", o->chunk / size, json_integer_value(chunk));
    expect(r, "number of parts", o->nparts, (int64_t)json_array_size(parts));
    for (int i = 0; i < o->nparts; i++) {
        const json_t *part = json_array_get(parts, (size_t)i);

        expect(r, "a part's channel", o->part[i].channel, number(part, "channel"));
        expect(r, "a part's first element", o->part[i].first, number(part, "first"));
        expect(r, "a part's count", o->part[i].count, number(part, "count"));
        expect(r, "a part's chunk", o->part[i].chunk, number(part, "chunk_bytes"));
    }
}

static int64_t at(const json_t *row, size_t i)
{
    return json_integer_value(json_array_get(row, i));
}

/* Recorded rows [*next, end) that continue each other. */
static int64_t merged(const json_t *rows, size_t *next)
{
    const json_t *first = json_array_get(rows, *next);
    int64_t count = 0;

    do {
        count += at(json_array_get(rows, *next), 1);
        ++*next;
    } while (*next < json_array_size(rows) && at(json_array_get(rows, *next), 2) == at(first, 2) &&
             at(json_array_get(rows, *next), 3) == at(first, 3));
    return count;
}

/* Ranges of one block, beginning with *i. */
static void compare_rows(const struct record *r, const struct kl_order_sums *s, const struct kl_order_ranges *ranges,
                         int *i, const json_t *rows, const json_t *sums)
{
    for (size_t next = 0; next < json_array_size(rows);) {
        const json_t *row = json_array_get(rows, next);
        int64_t count = merged(rows, &next);

        if (*i == ranges->n) fail_msg("%s: ranges are missing", r->path);
        const struct kl_order_range *x = &ranges->range[(*i)++];

        expect(r, "a range's first element", x->first, at(row, 0));
        expect(r, "a range's count", x->count, count);
        expect(r, "a range's channel", x->channel, at(row, 2));
        if (!sums) {
            expect(r, "a range's head", x->head, at(row, 3));
            continue;
        }
        const char *expected = json_string_value(json_array_get(sums, (size_t)at(row, 3)));
        char *is = sorted_text(s, x->sum);

        if (strcmp(is, expected)) fail_msg("%s: the sum is %s instead of %s", r->path, is, expected);
        free(is);
    }
}

static void compare_ranges(const struct record *r, const struct kl_order_op *o, const json_t *recorded)
{
    json_t *rows = json_object_get(recorded, "ranges"), *blocks = json_object_get(recorded, "blocks");
    json_t *heads = json_object_get(recorded, "heads"), *sums = json_object_get(recorded, "sums"), *block;
    struct kl_order_sums s = {.nterms = 0};
    struct kl_order_ranges ranges;
    int i = 0;
    size_t b;

    assert_int_equal(kl_order_ranges_of(&r->rules, &r->wires, &r->group, o, r->root, &s, &ranges), ncclSuccess);
    if (rows) compare_rows(r, &s, &ranges, &i, rows, sums);
    if (heads) compare_rows(r, &s, &ranges, &i, heads, NULL);
    json_array_foreach(blocks, b, block) compare_rows(r, &s, &ranges, &i, block, sums);
    if (rows || heads || blocks) expect(r, "number of ranges", ranges.n, i);
    free(ranges.range);
    kl_order_sums_fini(&s);
}

static void compare_sent(const struct record *r, const struct kl_order_op *o, const json_t *recorded)
{
    json_t *rows = json_object_get(recorded, "sent"), *row;
    struct kl_order_sents sents;
    size_t i;

    if (!rows) return;
    assert_int_equal(kl_order_sent_of(&r->rules, &r->wires, &r->group, o, r->root, &sents), ncclSuccess);
    expect(r, "number of edges", sents.n, (int64_t)json_array_size(rows));
    json_array_foreach(rows, i, row)
    {
        const struct kl_order_sent *x = NULL;

        for (int k = 0; k < sents.n && !x; k++)
            if (sents.sent[k].from == at(row, 0) && sents.sent[k].to == at(row, 1) &&
                sents.sent[k].channel == at(row, 2))
                x = &sents.sent[k];
        if (!x) fail_msg("%s: nothing is sent on a recorded edge", r->path);
        expect(r, "elements of an edge", x->elements, at(row, 3));
        expect(r, "bytes of an edge", x->wire, at(row, 4));
        expect(r, "messages of an edge", x->messages, at(row, 5));
    }
    free(sents.sent);
}

/* ---- a record ---- */

static void choose(struct record *r)
{
    json_t *counts = json_object_get(r->json, "counts"), *forced = json_object_get(r->json, "forced");
    int64_t count[KL_ORDER_GROUP];
    int n = (int)json_array_size(counts);
    struct kl_tuning_choice choice = {.algo = -1};

    for (int i = 0; i < n; i++) count[i] = json_integer_value(json_array_get(counts, (size_t)i));
    if (forced) {
        choice.algo = named(kl_algo_name, KL_NCCL_ALGOS, json_string_value(json_object_get(forced, "algorithm")));
        choice.proto = named(kl_proto_name, KL_PROTOS, json_string_value(json_object_get(forced, "protocol")));
        choice.nchannels = (int)number(forced, "max_channels");
    }
    if (kl_order_group_choose(&r->rules, r->is_cluster ? &r->planned.plan->tuning : NULL, forced ? &choice : NULL,
                              count, n, &r->group))
        fail_msg("%s: %s", r->path, kl_error_text());
    kl_order_group_cut(&r->rules, &r->group);
}

static void close_record(struct record *r)
{
    kl_order_group_fini(&r->group);
    kl_order_wires_fini(&r->wires);
    if (r->is_cluster) kl_planned_fini(&r->planned);
    if (r->is_cluster) kl_cluster_close(&r->cluster);
    json_decref(r->json);
}

static void compare_record(const char *path)
{
    struct record r = {.path = path, .json = json_load_file(path, 0, NULL)};
    json_t *operations = json_object_get(r.json, "operations"), *operation;
    size_t i;

    if (!r.json) fail_msg("%s is no JSON", path);
    r.root = (int)number(r.json, "root");
    r.is_cluster = !strcmp(word(&r, "kind"), "cluster");
    if (r.is_cluster)
        open_cluster(&r);
    else
        open_abstract(&r);
    r.group.func = named(kl_func_name, KL_FUNCS, word(&r, "function"));
    r.group.type = type_of(word(&r, "type"));
    r.group.op = op_of(word(&r, "op"));
    choose(&r);
    expect(&r, "number of operations", r.group.nops, (int64_t)json_array_size(operations));
    json_array_foreach(operations, i, operation)
    {
        compare_cut(&r, &r.group.ops[i], operation);
        compare_ranges(&r, &r.group.ops[i], operation);
        compare_sent(&r, &r.group.ops[i], operation);
    }
    close_record(&r);
}

static glob_t found;

static void recorded_orders_agree(void **state)
{
    const char *only = getenv("KOLO_RECORD");

    (void)state;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!only || strstr(found.gl_pathv[i], only)) compare_record(found.gl_pathv[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_orders_agree)};
    char pattern[512];

    snprintf(pattern, sizeof pattern, "%s/golden-order*/*.json", shared());
    if (glob(pattern, 0, NULL, &found)) {
        printf("order_golden_test: skipped, no records in %s\n", shared());
        return EXIT_SKIPPED;
    }
    int failures = cmocka_run_group_tests(tests, NULL, NULL);

    globfree(&found);
    return failures;
}
