/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual NICs: who is joined, and where the joined stand. */
#include "topo/machine.h"
#include "topo/netmerge.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/paths.h"

#include <stdio.h>
#include <stdlib.h>

/* Two cards with two functions each below switch 01, one more below switch 41 of the other socket, and eth0. */
static const char document[] = "<system version=\"1\">"
                               "<cpu numaid=\"0\" arch=\"arm64\">"
                               "<pci busid=\"0000:01:00.0\" class=\"0x0604\" link_speed=\"\" link_width=\"\">"
                               "<pci busid=\"0000:02:00.0\" class=\"0x0302\" link_speed=\"\" link_width=\"\"><gpu "
                               "dev=\"0\" sm=\"80\" gdr=\"1\"/></pci>"
                               "<pci busid=\"0000:03:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\"><nic><net "
                               "name=\"a0\" port=\"1\"/></nic></pci>"
                               "<pci busid=\"0000:03:00.1\" class=\"0x02\" link_speed=\"\" link_width=\"16\"><nic><net "
                               "name=\"a1\" port=\"1\"/></nic></pci>"
                               "<pci busid=\"0000:04:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\"><nic><net "
                               "name=\"b0\"/><net name=\"b1\" port=\"2\"/></nic></pci>"
                               "</pci></cpu>"
                               "<cpu numaid=\"1\" arch=\"arm64\">"
                               "<pci busid=\"0000:41:00.0\" class=\"0x0604\" link_speed=\"\" link_width=\"\">"
                               "<pci busid=\"0000:42:00.0\" class=\"0x0604\" link_speed=\"\" link_width=\"\">"
                               "<pci busid=\"0000:43:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\"><nic><net "
                               "name=\"c0\"/></nic></pci></pci></pci>"
                               "<nic><net name=\"eth0\"/></nic>"
                               "</cpu></system>";

static const char *const names[] = {"a0", "a1", "b0", "b1", "c0", "eth0"};
enum { NETS = 6 };

/* A plugin that joins what it is asked to, except groups with a member it does not like. */
struct plugin {
    int dislikes; /* index, -1 for none */
    int made;
    char asked[256]; /* "a0+a1 b0+b1 " */
};

static ncclResult_t merge(void *ctx, const int *member, int n, struct kl_net_facts *net)
{
    struct plugin *p = ctx;
    char name[KL_NET_NAME_TEXT] = "";

    for (int i = 0; i < n; i++) {
        if (member[i] == p->dislikes && n > 1) return KL_FAIL(ncclInvalidUsage, "not this one");
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s", i ? "+" : "", names[member[i]]);
    }
    snprintf(p->asked + strlen(p->asked), sizeof p->asked - strlen(p->asked), "%s ", name);
    snprintf(net->name, sizeof net->name, "%s", name);
    net->dev = NETS + p->made++;
    net->speed_mbps = 100000 * n;
    return ncclSuccess;
}

struct run {
    struct plugin plugin;
    struct kl_net_facts net[NETS];
    struct kl_gpu_facts gpu;
    struct kl_machine machine;
    struct kl_xml *file;
};

static void prepare(struct run *r, int dislikes)
{
    *r = (struct run){.plugin = {.dislikes = dislikes}, .gpu = {.busid = "0000:02:00.0", .sm = 80, .gdr = 1}};
    for (int i = 0; i < NETS; i++) {
        snprintf(r->net[i].name, sizeof r->net[i].name, "%s", names[i]);
        r->net[i].dev = i;
        r->net[i].speed_mbps = 100000;
        r->net[i].port = i == 3 ? 2 : 1;
    }
    assert_int_equal(kl_xml_parse("m", document, sizeof document - 1, kl_xml_topo_schema, &r->file), ncclSuccess);
    r->machine = (struct kl_machine){.file = r->file,
                                     .gpu = &r->gpu,
                                     .ngpus = 1,
                                     .net = r->net,
                                     .nnets = NETS,
                                     .sysfs = "/nonexistent",
                                     .merge_nets = merge,
                                     .merge_ctx = &r->plugin};
}

static char *document_of(struct run *r, int level, const char *force)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    char *text;
    size_t bytes;

    options.merge_level = level;
    options.force_merge = force;
    if (kl_machine_document(&r->machine, &options, &xml)) return NULL;
    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    kl_xml_free(xml);
    return text;
}

static const struct group_case {
    const char *name;
    int level, dislikes;
    const char *force, *asked;
} group_cases[] = {
    {"default: ports of one card", KL_PATH_PORT, -1, NULL, "a0+a1 b0+b1 c0 eth0 "},
    {"off", KL_PATH_LOC, -1, NULL, "a0 a1 b0 b1 c0 eth0 "},
    {"below one switch", KL_PATH_PIX, -1, NULL, "a0+a1+b0+b1 c0 eth0 "},
    {"below one socket", KL_PATH_PHB, -1, NULL, "a0+a1+b0+b1 c0+eth0 "},
    {"at most four", KL_PATH_SYS, -1, NULL, "a0+a1+b0+b1 c0+eth0 "},
    {"one that is refused, found again from the start", KL_PATH_PORT, 0, NULL, "a0 a1 b0+b1 c0 eth0 "},
    {"refused in the middle", KL_PATH_PIX, 1, NULL, "a0 a1 b0+b1 c0 eth0 "},
    {"forced", KL_PATH_PORT, -1, "a0,c0", "a0+c0 a1 b0+b1 eth0 "},
    {"forced with ports", KL_PATH_PORT, -1, "b1:2,a1;eth0", "b1+a1 eth0 a0 b0 c0 "},
    {"empty groups", KL_PATH_LOC, -1, ";;a0,,a1,;", "a0+a1 b0 b1 c0 eth0 "},
};

static void groups_are_formed(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, group_cases)
    {
        struct run r;

        prepare(&r, c->dislikes);
        free(document_of(&r, c->level, c->force));
        if (strcmp(r.plugin.asked, c->asked) != 0) fail_msg("case \"%s\": %s", c->name, r.plugin.asked);
        kl_xml_free(r.file);
    }
}

static const struct distance_case {
    const char *a, *b;
    int distance;
} distance_cases[] = {
    {"a0", "a1", KL_PATH_PORT}, {"b0", "b1", KL_PATH_PORT},  {"a0", "b0", KL_PATH_PIX},
    {"a1", "b1", KL_PATH_PIX},  {"c0", "d0", KL_PATH_PXB},   {"c0", "e0", KL_PATH_PHB},
    {"a0", "c0", KL_PATH_SYS},  {"c0", "eth0", KL_PATH_PHB}, {"b0", "b0", KL_PATH_PORT},
};

static void distances_are_measured_in_the_document(void **state)
{
    struct run r;
    int common, elem, nic;

    (void)state;
    prepare(&r, -1);
    /* d0 below the switch above c0's, e0 below the same cpu */
    static const char *const more[][2] = {{"0000:41:00.0", "d0"}, {NULL, "e0"}};
    for (int i = 0; i < 2; i++) {
        int above =
            more[i][0] ? kl_xml_find(r.file, "pci", "busid", more[i][0]) : kl_xml_find(r.file, "cpu", "numaid", "1");
        kl_xml_add(r.file, above, "pci", &elem);
        kl_xml_set(r.file, elem, "busid", more[i][0] ? "0000:44:00.0" : "0000:50:00.0");
        kl_xml_add(r.file, elem, "nic", &nic);
        kl_xml_add(r.file, nic, "net", &elem);
        kl_xml_set(r.file, elem, "name", more[i][1]);
    }
    FOR_EACH_CASE(c, distance_cases)
    {
        int a = kl_xml_find(r.file, "net", "name", c->a), b = kl_xml_find(r.file, "net", "name", c->b);
        int d = kl_net_merge_distance(r.file, a, b, &common);
        if (d != c->distance) fail_msg("%s to %s: %d", c->a, c->b, d);
        assert_int_equal(kl_net_merge_distance(r.file, b, a, &common), d);
    }
    kl_xml_free(r.file);
}

static const struct bad_case {
    const char *force;
} bad_cases[] = {{"a0,zz"}, {"a0:7"}, {"a0,a0"}, {"a0,a1;a1,b0"}, {"a0,a1,b0,b1,c0"}};

static void impossible_groups_are_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, bad_cases)
    {
        struct run r;

        prepare(&r, -1);
        expect_case(c->force, document_of(&r, KL_PATH_PORT, c->force) == NULL);
        expect_case(c->force, strstr(kl_error_text(), "NCCL_NET_FORCE_MERGE"));
        kl_xml_free(r.file);
    }
    struct run r;
    prepare(&r, 0);
    assert_null(document_of(&r, KL_PATH_PORT, "a0,a1")); /* the plugin cannot */
    kl_xml_free(r.file);
}

/* The members disappear; the virtual NIC stands where they were, on a card of its own below a switch. */
static const struct place_case {
    const char *name, *force, *want, *gone;
} place_cases[] = {
    {"two functions: a new card beside them", "a0,a1",
     "<pci busid=\"0000:03:00.2\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n        <nic>\n          <net "
     "name=\"a0+a1\" dev=\"6\"",
     "\"a0\""},
    {"two ports of one function: on their card", "b0,b1",
     "<pci busid=\"0000:04:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n        <nic>\n          <net "
     "name=\"b0+b1\" dev=\"6\"",
     "\"b0\""},
    {"below one switch: a new card", "a1,b0", "<pci busid=\"0000:03:00.2\"", "\"a1\""},
    {"two sockets: below the first one's CPU", "a0,c0", "    </pci>\n    <nic>\n      <net name=\"a0+c0\" dev=\"6\"",
     "\"c0\""},
};

static void virtual_nics_stand_near_their_members(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct place_case *c = &place_cases[i];
        struct run r;

        prepare(&r, -1);
        char *text = document_of(&r, KL_PATH_LOC, c->force);
        if (!text || !strstr(text, c->want) || strstr(text, c->gone))
            fail_msg("case \"%s\": %s", c->name, text ? text : kl_error_text());
        assert_null(strstr(text, "keep"));
        free(text);
        kl_xml_free(r.file);
    }
}

/* The next communicator passes on what was made for the first. */
static void virtual_nics_may_be_there_already(void **state)
{
    struct kl_net_facts net[NETS + 1];
    struct run r;

    (void)state;
    prepare(&r, -1);
    memcpy(net, r.net, sizeof r.net);
    net[NETS] = (struct kl_net_facts){.name = "a0+a1", .dev = 6, .nmembers = 2, .member = {0, 1}};
    r.machine.net = net;
    r.machine.nnets = NETS + 1;
    char *text = document_of(&r, KL_PATH_PORT, NULL);
    assert_string_equal(r.plugin.asked, "");
    assert_non_null(strstr(text, "name=\"a0+a1\" dev=\"6\""));
    assert_null(strstr(text, "name=\"b0\"")); /* physical ones are not used besides */
    free(text);
    net[NETS].member[1] = 9;
    assert_null(document_of(&r, KL_PATH_PORT, NULL));
    kl_xml_free(r.file);
}

static void without_a_plugin_nics_stay_apart(void **state)
{
    struct run r;

    (void)state;
    prepare(&r, -1);
    r.machine.merge_nets = NULL;
    char *text = document_of(&r, KL_PATH_PIX, "a0,a1");
    for (int i = 0; i < NETS; i++) {
        char name[32];
        snprintf(name, sizeof name, "name=\"%s\"", names[i]);
        expect_case(name, strstr(text, name));
    }
    free(text);
    kl_xml_free(r.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_measured_in_the_document),
        cmocka_unit_test(groups_are_formed),
        cmocka_unit_test(impossible_groups_are_refused),
        cmocka_unit_test(virtual_nics_stand_near_their_members),
        cmocka_unit_test(virtual_nics_may_be_there_already),
        cmocka_unit_test(without_a_plugin_nics_stay_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
