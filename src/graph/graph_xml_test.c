/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_xml.h"

#include "base/error.h"
#include "graph/graphs.h"
#include "graph/test_machine.h"

/* ---- there and back ---- */

static void same_channels(const struct kl_graph *a, const struct kl_graph *b, bool nets)
{
    assert_int_equal(a->nchannels, b->nchannels);
    assert_int_equal(a->pattern, b->pattern);
    assert_int_equal(a->cross_nic, b->cross_nic);
    assert_int_equal(a->type_intra, b->type_intra);
    assert_int_equal(a->type_inter, b->type_inter);
    assert_int_equal(a->same_channels, b->same_channels);
    assert_true(a->bw_intra == b->bw_intra && a->bw_inter == b->bw_inter);
    if (a->pattern != KL_PATTERN_NVLS)
        assert_memory_equal(a->intra, b->intra, (size_t)(a->nchannels * a->ngpus) * sizeof a->intra[0]);
    if (nets) assert_memory_equal(a->inter, b->inter, (size_t)(2 * a->nchannels) * sizeof a->inter[0]);
}

/* Write graphs as text, read the text, and search again with it: nothing is searched, and all is the same. */
static void check_machine(const struct kl_topo *t)
{
    struct kl_graphs_request request = {.nvls = !kl_offload_guess_multicast(t),
                                        .collnet = !kl_offload_collnet(t, true, 0)};
    struct kl_graphs before, after;
    struct kl_xml *xml, *read;
    size_t bytes;
    char *text;

    assert_int_equal(kl_graphs_compute(t, &request, &before), ncclSuccess);
    assert_int_equal(kl_graphs_to_xml(&before, t, &xml), ncclSuccess);
    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    assert_int_equal(kl_xml_parse("graphs", text, bytes, kl_xml_graph_schema, &read), ncclSuccess);
    request.file = read;
    assert_int_equal(kl_graphs_compute(t, &request, &after), ncclSuccess);
    for (int i = 0; i < KL_GRAPHS; i++) {
        if (!before.graph[i] || !before.graph[i]->nchannels) continue;
        assert_int_equal(after.why[i]->end, KL_END_INJECTED);
        assert_null(after.why[i]->refused);
        same_channels(before.graph[i], after.graph[i], before.has_nets);
    }
    kl_graphs_fini(&before);
    kl_graphs_fini(&after);
    kl_xml_free(xml);
    kl_xml_free(read);
    free(text);
}

static void graphs_survive_writing_and_reading(void **state)
{
    char *text = malloc(TEST_MACHINE_TEXT);

    (void)state;
    for (uint32_t seed = 1; seed <= 30; seed++)
        for (int hosts = 1; hosts <= 2; hosts++) {
            random_machine(seed, text);
            struct kl_topo *t = machine_of(text, hosts);

            check_machine(t);
            kl_topo_free(t);
        }
    free(text);
}

/* One GPU has no heads: all its graphs but the ring are trees. */
static void one_gpu_keeps_its_collnet_graphs(void **state)
{
    struct kl_topo *t = machine_of(
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\"/></pci>"
        "<pci busid=\"0000:02:00.0\" class=\"0x020000\"><nic><net name=\"n\" dev=\"0\" coll=\"1\" "
        "gdr=\"1\"/></nic></pci>"
        "</cpu></system>",
        2);

    (void)state;
    assert_true(!kl_offload_collnet(t, true, 0));
    check_machine(t);
    kl_topo_free(t);
}

static void the_format_is_nccls(void **state)
{
    static const char want[] =
        "<graphs version=\"1\">\n"
        "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"12\" speedinter=\"12\" "
        "latencyinter=\"0\" typeintra=\"PIX\" typeinter=\"PIX\" samechannels=\"1\">\n"
        "    <channel>\n      <gpu dev=\"0\"/>\n      <gpu dev=\"0x1\"/>\n    </channel>\n  </graph>\n";
    struct kl_topo *t = host_devices(2);
    struct kl_graphs_request request = {.nvls = false};
    struct kl_graphs g;
    struct kl_xml *xml;
    size_t bytes;
    char *text;

    (void)state;
    assert_int_equal(kl_graphs_compute(t, &request, &g), ncclSuccess);
    assert_int_equal(kl_graphs_to_xml(&g, t, &xml), ncclSuccess);
    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    text[sizeof want - 1 < bytes ? sizeof want - 1 : bytes] = '\0';
    assert_string_equal(text, want);
    free(text);
    kl_xml_free(xml);
    kl_graphs_fini(&g);
    kl_topo_free(t);
}

/* ---- graphs that do not fit are refused ---- */

#define GRAPH(attributes, channels)                                                                                    \
    "<graphs version=\"1\">\n<graph id=\"0\" " attributes ">\n" channels "</graph></graphs>"
#define GOOD                                                                                                           \
    "pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" speedinter=\"10\" typeintra=\"NVL\" "              \
    "typeinter=\"PIX\" samechannels=\"1\""
#define CHANNEL "<channel><gpu dev=\"1\"/><gpu dev=\"0\"/></channel>\n"

static const struct file_case {
    const char *label, *text;
    const char *reason; /* NULL: taken; "": searched without a word */
} files[] = {
    {"fits", GRAPH(GOOD, CHANNEL), NULL},
    {"more channels than counted", GRAPH(GOOD, CHANNEL CHANNEL), NULL},
    {"hexadecimal without 0x", GRAPH(GOOD, "<channel><gpu dev=\"0x1\"/><gpu dev=\"00\"/></channel>"), NULL},
    {"no channels",
     GRAPH("pattern=\"4\" crossnic=\"0\" nchannels=\"0\" speedintra=\"0\" speedinter=\"0\" "
           "typeintra=\"LOC\" typeinter=\"LOC\" samechannels=\"0\"",
           ""),
     ""},
    {"another graph", "<graphs version=\"1\"><graph id=\"1\"/></graphs>", ""},
    {"empty", "", "graph file begins with"},
    {"another version", "<graphs version=\"2\"></graphs>", "version=\"1\""},
    {"missing attribute", GRAPH("pattern=\"4\" nchannels=\"1\"", CHANNEL),
     "file:2: a graph needs an attribute speedintra"},
    {"too few channels",
     GRAPH("pattern=\"4\" crossnic=\"0\" nchannels=\"2\" speedintra=\"20\" speedinter=\"10\" "
           "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"",
           CHANNEL),
     "only 1 channel"},
    {"too many channels",
     GRAPH("pattern=\"4\" crossnic=\"0\" nchannels=\"33\" speedintra=\"20\" speedinter=\"10\" "
           "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"",
           CHANNEL),
     "up to 32 channels"},
    {"negative speed",
     GRAPH("pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"-1\" speedinter=\"10\" "
           "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"",
           CHANNEL),
     "no bandwidth"},
    {"no speed",
     GRAPH("pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" speedinter=\"0\" "
           "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"",
           CHANNEL),
     "above 0"},
    {"negative latency", GRAPH(GOOD " latencyinter=\"-1\"", CHANNEL), "file:2: latencyinter=\"-1\" is no time"},
    {"no number as latency", GRAPH(GOOD " latencyinter=\"nan\"", CHANNEL), "no time"},
    {"endless latency", GRAPH(GOOD " latencyinter=\"1e38\"", CHANNEL), "no time"},
    {"latency", GRAPH(GOOD " latencyinter=\"1.5\"", CHANNEL), NULL},
    {"a tree for a ring",
     GRAPH("pattern=\"1\" crossnic=\"0\" nchannels=\"1\" speedintra=\"1\" speedinter=\"10\" "
           "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"",
           CHANNEL),
     "pattern 1"},
    {"unknown GPU", GRAPH(GOOD, "<channel><gpu dev=\"0\"/>\n<gpu dev=\"7\"/></channel>"), "file:4: gpu dev=\"7\""},
    {"a GPU twice", GRAPH(GOOD, "<channel><gpu dev=\"0\"/><gpu dev=\"0\"/></channel>"), "already"},
    {"a GPU missing", GRAPH(GOOD, "<channel><gpu dev=\"0\"/></channel>"), "1 of the 2 GPUs"},
    {"too many GPUs", GRAPH(GOOD, "<channel><gpu dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"2\"/></channel>"), "more gpu"},
    {"a gpu without dev", GRAPH(GOOD, "<channel><gpu dev=\"0\"/><gpu/></channel>"), "not on this machine"},
};

static void check_file(const struct file_case *c, const struct kl_topo *t)
{
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_RING);
    char reason[KL_GRAPH_REASON];
    struct kl_graph *g;
    struct kl_xml *xml;

    expect_case(c->label, !kl_xml_parse("file", c->text, strlen(c->text), kl_xml_graph_schema, &xml));
    expect_case(c->label, !kl_graph_from_xml(xml, t, &request, &g, reason));
    expect_case(c->label, (g != NULL) == (c->reason == NULL));
    if (c->reason && !strstr(reason, c->reason)) fail_msg("case \"%s\": %s", c->label, reason);
    if (c->reason && !*c->reason) expect_case(c->label, !reason[0]);
    if (g) {
        expect_case(c->label, g->intra[0] == 1 && g->intra[1] == 0 && g->bw_intra == 20 && g->bw_inter == 10);
        expect_case(c->label, g->type_intra == KL_PATH_NVL && g->min_channels == 1 && g->max_channels == 32);
    }
    kl_graph_free(g);
    kl_xml_free(xml);
}

static void what_does_not_fit_is_refused_with_its_reason(void **state)
{
    struct kl_topo *t = host_devices(2);

    (void)state;
    FOR_EACH_CASE(c, files) check_file(c, t);
    kl_topo_free(t);
}

/* The search then runs as if there were no file. */
static void a_refused_file_is_replaced_by_the_search(void **state)
{
    static const char text[] = GRAPH(GOOD, "<channel><gpu dev=\"0\"/><gpu dev=\"9\"/></channel>");
    struct kl_topo *t = host_devices(2);
    struct kl_graphs_request request = {.nvls = false};
    struct kl_graphs g;
    struct kl_xml *xml;

    (void)state;
    assert_int_equal(kl_xml_parse("file", text, strlen(text), kl_xml_graph_schema, &xml), ncclSuccess);
    request.file = xml;
    assert_int_equal(kl_graphs_compute(t, &request, &g), ncclSuccess);
    assert_true(g.graph[KL_GRAPH_RING]->bw_intra == 12);
    assert_non_null(strstr(g.why[KL_GRAPH_RING]->refused, "dev=\"9\""));
    assert_int_equal(g.why[KL_GRAPH_RING]->end, KL_END_SATURATED);
    kl_graphs_fini(&g);
    kl_xml_free(xml);
    kl_topo_free(t);
}

/* NCCL_CROSS_NIC=0 forbids a file's crossing. */
static void crossing_is_not_taken_where_it_is_forbidden(void **state)
{
    static const char text[] =
        GRAPH("pattern=\"4\" crossnic=\"1\" nchannels=\"1\" speedintra=\"20\" speedinter=\"10\" typeintra=\"NVL\" "
              "typeinter=\"PIX\" samechannels=\"1\"",
              CHANNEL);
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_RING);
    char reason[KL_GRAPH_REASON];

    (void)state;
    for (int cross_nic = 0; cross_nic <= 2; cross_nic++) {
        struct kl_topo *t = host_devices(2);
        struct kl_graph *g;
        struct kl_xml *xml;

        t->options.cross_nic = cross_nic;
        assert_int_equal(kl_xml_parse("file", text, strlen(text), kl_xml_graph_schema, &xml), ncclSuccess);
        assert_int_equal(kl_graph_from_xml(xml, t, &request, &g, reason), ncclSuccess);
        assert_true((g != NULL) == (cross_nic != 0));
        kl_graph_free(g);
        kl_xml_free(xml);
        kl_topo_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_survive_writing_and_reading),
        cmocka_unit_test(one_gpu_keeps_its_collnet_graphs),
        cmocka_unit_test(the_format_is_nccls),
        cmocka_unit_test(what_does_not_fit_is_refused_with_its_reason),
        cmocka_unit_test(a_refused_file_is_replaced_by_the_search),
        cmocka_unit_test(crossing_is_not_taken_where_it_is_forbidden),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
