/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual NICs: which NETs are joined, and where the result stands. */
#include "topo/machine.h"
#include "topo/netdistance.h"
#include "topo/netmerge.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>

/* Two cards with two functions each below switch 01, one more below switch 41 of the other socket, and eth0. */
static const char document[] = "<system version=\"1\">"
                               "<cpu numaid=\"0\" arch=\"arm64\">"
                               "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"\">"
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
                               "<pci busid=\"0000:41:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"\">"
                               "<pci busid=\"0000:42:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"\">"
                               "<pci busid=\"0000:43:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\"><nic><net "
                               "name=\"c0\"/></nic></pci></pci></pci>"
                               "<nic><net name=\"eth0\"/></nic>"
                               "</cpu></system>";

static const char *const names[] = {"a0", "a1", "b0", "b1", "c0", "eth0"};
enum { NETS = 6 };

/* A plugin that joins every group, except one with the member `refused`. */
struct plugin {
    int dislikes;    /* index, -1 for none */
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

struct merge_request {
    int nccl, level;
    const char *force;
    int policy;
};

static ncclResult_t make_document(struct run *r, struct merge_request merge_request, char **text)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    size_t bytes;

    options.nccl = merge_request.nccl;
    options.merge_level = merge_request.level;
    options.force_merge = merge_request.force;
    options.merge_policy = merge_request.policy;
    KL_TRY(kl_machine_document(&r->machine, &options, &xml));
    assert_int_equal(kl_xml_text(xml, text, &bytes), ncclSuccess);
    kl_xml_free(xml);
    return ncclSuccess;
}

static char *document_of(struct run *r, struct merge_request merge_request)
{
    char *text;

    return make_document(r, merge_request, &text) ? NULL : text;
}

static const struct group_case {
    const char *name;
    int nccl, level, dislikes;
    const char *force, *asked;
} group_cases[] = {
    {"default: ports of one card", 22603, KL_PATH_PORT, -1, NULL, "a0+a1 b0+b1 c0 eth0 "},
    {"a NET is not joined with itself", 22703, KL_PATH_PORT, -1, NULL, "a0+a1 b0+b1 "},
    {"off", 22603, KL_PATH_LOC, -1, NULL, "a0 a1 b0 b1 c0 eth0 "},
    {"off", 22703, KL_PATH_LOC, -1, NULL, ""},
    {"below one switch", 22603, KL_PATH_PIX, -1, NULL, "a0+a1+b0+b1 c0 eth0 "},
    {"below one socket", 22603, KL_PATH_PHB, -1, NULL, "a0+a1+b0+b1 c0+eth0 "},
    {"below one socket", 23007, KL_PATH_PHB, -1, NULL, "a0+a1+b0+b1 c0+eth0 "},
    {"at most four", 22603, KL_PATH_SYS, -1, NULL, "a0+a1+b0+b1 c0+eth0 "},
    {"at most four", 22907, KL_PATH_SYS, -1, NULL, "a0+a1+b0+b1 c0+eth0 "},
    {"at most eight", 23003, KL_PATH_SYS, -1, NULL, "a0+a1+b0+b1+c0+eth0 "},
    {"one that is refused, found again from the start", 22603, KL_PATH_PORT, 0, NULL, "a0 a1 b0+b1 c0 eth0 "},
    {"one that is refused, found again from the start", 23007, KL_PATH_PORT, 0, NULL, "b0+b1 "},
    {"refused in the middle", 22603, KL_PATH_PIX, 1, NULL, "a0 a1 b0+b1 c0 eth0 "},
    {"forced", 22603, KL_PATH_PORT, -1, "a0,c0", "a0+c0 a1 b0+b1 eth0 "},
    {"forced with ports", 22603, KL_PATH_PORT, -1, "b1:2,a1;eth0", "b1+a1 eth0 a0 b0 c0 "},
    {"forced with ports", 22703, KL_PATH_PORT, -1, "b1:2,a1;eth0", "b1+a1 "},
    {"five", 23003, KL_PATH_LOC, -1, "a0,a1,b0,b1,c0", "a0+a1+b0+b1+c0 "},
    {"empty groups", 22603, KL_PATH_LOC, -1, ";;a0,,a1,;", "a0+a1 b0 b1 c0 eth0 "},
};

static void groups_are_formed(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, group_cases)
    {
        struct run r;

        prepare(&r, c->dislikes);
        free(document_of(&r, (struct merge_request){c->nccl, c->level, c->force, KL_MERGE_ALL}));
        if (strcmp(r.plugin.asked, c->asked) != 0) fail_msg("case \"%s\", %d: %s", c->name, c->nccl, r.plugin.asked);
        kl_xml_free(r.file);
    }
}

static void set_net(struct run *r, const char *net, const char *key, const char *value)
{
    kl_xml_set(r->file, kl_xml_find(r->file, "net", "name", net), key, value);
}

/* b1 is on another rail, and c0 and eth0 on none that is known. */
static void rails_can_keep_nics_apart(void **state)
{
    static const struct {
        int nccl, policy;
        const char *asked;
    } cases[] = {{23007, KL_MERGE_RAIL, "a0+a1+b0 "},
                 {23007, KL_MERGE_ALL, "a0+a1+b0+b1 c0+eth0 "},
                 {23004, KL_MERGE_RAIL, "a0+a1+b0+b1 c0+eth0 "}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct run r;

        prepare(&r, -1);
        for (int i = 0; i < 4; i++) set_net(&r, names[i], "rail", i < 3 ? "1" : "2");
        free(document_of(&r, (struct merge_request){c->nccl, KL_PATH_PHB, NULL, c->policy}));
        assert_string_equal(r.plugin.asked, c->asked);
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
        int d = kl_net_distance(r.file, a, b, &common);
        if (d != c->distance) fail_msg("%s to %s: %d", c->a, c->b, d);
        assert_int_equal(kl_net_distance(r.file, b, a, &common), d);
    }
    kl_xml_free(r.file);
}

static const struct bad_case {
    int nccl;
    const char *force;
    ncclResult_t code;
} bad_cases[] = {
    {22603, "a0,zz", ncclInvalidUsage},
    {22603, "a0:7", ncclInvalidUsage},
    {22603, "a0,a0", ncclInvalidUsage},
    {22603, "a0,a1;a1,b0", ncclInvalidUsage},
    {22603, "a0,a1,b0,b1,c0", ncclInvalidUsage},
    {22907, "a0,a1,b0,b1,c0", ncclInvalidUsage},
    {23004, "a0,c0", ncclSuccess},
    {23007, "a0,c0", ncclInvalidArgument}, /* of two sockets */
};

static void impossible_groups_are_refused(void **state)
{
    char *text;

    (void)state;
    FOR_EACH_CASE(c, bad_cases)
    {
        struct run r;

        prepare(&r, -1);
        text = NULL;
        expect_case(c->force,
                    make_document(&r, (struct merge_request){c->nccl, KL_PATH_PORT, c->force, 0}, &text) == c->code);
        if (c->code) expect_case(c->force, strstr(kl_error_text(), "NCCL_NET_FORCE_MERGE"));
        free(text);
        kl_xml_free(r.file);
    }
    struct run r;
    prepare(&r, 0);
    assert_null(
        document_of(&r, (struct merge_request){KL_NCCL_DEFAULT, KL_PATH_PORT, "a0,a1", 0})); /* the plugin cannot */
    kl_xml_free(r.file);
}

/* Members that are joined disappear; the virtual NIC stands where they were, on a card of its own below a switch. */
static const struct place_case {
    const char *name;
    int nccl;
    const char *force, *want, *gone;
} place_cases[] = {
    {"two functions: a new card beside them", 22603, "a0,a1",
     "<pci busid=\"0000:03:00.2\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n        <nic>\n          <net "
     "name=\"a0+a1\" dev=\"6\"",
     "\"a0\""},
    {"two functions: they share a link, whatever the release", 23007, "a0,a1",
     "<pci busid=\"0000:03:00.2\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n        <nic>\n          <net "
     "name=\"a0+a1\" dev=\"6\"",
     "\"a0\""},
    {"two ports of one function: on their card", 22603, "b0,b1",
     "<pci busid=\"0000:04:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n        <nic>\n          <net "
     "name=\"b0+b1\" dev=\"6\"",
     "\"b0\""},
    {"two ports of one function: on their card", 23007, "b0,b1",
     "<pci busid=\"0000:04:00.0\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n        <nic>\n          <net "
     "name=\"b0+b1\" dev=\"6\"",
     "\"b0\""},
    {"below one switch: a new card", 22707, "a1,b0",
     "<pci busid=\"0000:03:00.2\" class=\"0x02\" link_speed=\"\" link_width=\"16\"", "\"a1\""},
    {"two sockets: below the first one's CPU", 22603, "a0,c0",
     "    </pci>\n    <nic>\n      <net name=\"a0+c0\" dev=\"6\"", "\"c0\""},
    {"one socket: below it", 22707, "eth0,c0", "<net name=\"eth0+c0\" dev=\"6\"", "0000:43:00.1"},
    {"one socket: on a card below it", 22803, "eth0,c0",
     "<pci busid=\"0000:43:00.1\" class=\"0x02\" link_speed=\"\" link_width=\"16\">\n      <nic>\n        <net "
     "name=\"eth0+c0\" dev=\"6\"",
     "\"c0\""},
};

static void virtual_nics_stand_near_their_members(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, place_cases)
    {
        struct run r;

        prepare(&r, -1);
        char *text = document_of(&r, (struct merge_request){c->nccl, KL_PATH_LOC, c->force, 0});
        if (!text || !strstr(text, c->want) || strstr(text, c->gone))
            fail_msg("case \"%s\", %d: %s", c->name, c->nccl, text ? text : kl_error_text());
        assert_null(strstr(text, "keep"));
        free(text);
        kl_xml_free(r.file);
    }
}

/* Only bridges hold made-up cards; other devices hold the NIC itself. */
static void what_is_no_bridge_gets_no_card(void **state)
{
    static const int releases[] = {22606, 22703};

    (void)state;
    FOR_EACH_CASE(nccl, releases)
    {
        struct run r;

        prepare(&r, -1);
        kl_xml_set(r.file, kl_xml_find(r.file, "pci", "busid", "0000:01:00.0"), "class", "0x060401");
        char *text = document_of(&r, (struct merge_request){*nccl, KL_PATH_LOC, "a1,b0", 0});
        assert_int_equal(strstr(text, "0000:03:00.2") != NULL, *nccl == 22606);
        assert_int_equal(strstr(text, "\n      <nic>\n        <net name=\"a1+b0\"") != NULL, *nccl == 22703);
        free(text);
        kl_xml_free(r.file);
    }
}

/* c0 and c1 hang on two switches with 8 and 4 lanes up, below one with 16. */
static struct kl_xml *merged_apart(int nccl)
{
    static const char wide[] =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
        "<pci busid=\"0000:02:00.0\" class=\"0x0302\"><gpu dev=\"0\" sm=\"80\" gdr=\"1\"/></pci>"
        "<pci busid=\"0000:41:00.0\" class=\"0x060400\" link_width=\"16\">"
        "<pci busid=\"0000:42:00.0\" class=\"0x060400\" link_width=\"8\"><pci busid=\"0000:43:00.0\" class=\"0x02\" "
        "link_width=\"16\"><nic><net name=\"a0\"/></nic></pci></pci>"
        "<pci busid=\"0000:44:00.0\" class=\"0x060400\" link_width=\"16\"><pci busid=\"0000:45:00.0\" class=\"0x02\" "
        "link_width=\"4\"><nic><net name=\"a1\"/></nic></pci>"
        "<pci busid=\"0000:46:00.0\" class=\"0x02\" link_width=\"2\"><nic><net name=\"b0\"/></nic></pci></pci>"
        "</pci></cpu></system>";
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    struct run r;

    prepare(&r, -1);
    kl_xml_free(r.file);
    assert_int_equal(kl_xml_parse("m", wide, sizeof wide - 1, kl_xml_topo_schema, &r.file), ncclSuccess);
    r.machine.file = r.file;
    r.machine.nnets = 3;
    options.nccl = nccl;
    options.merge_level = KL_PATH_LOC;
    options.force_merge = "a0,a1";
    assert_int_equal(kl_machine_document(&r.machine, &options, &xml), ncclSuccess);
    kl_xml_free(r.file);
    return xml;
}

/* 12 lanes: 8 of a link with 16 behind it, and 4 of one with 16 before it. b0 shares that. */
static void merged_links_are_as_wide_as_all(void **state)
{
    static const struct {
        int nccl, merged, above, common, beside;
    } cases[] = {{22707, 16, 16, 16, 2}, {22803, 12, 12, 12, 2}, {23004, 12, 12, 12, 2}, {23007, 12, 16, 16, 2}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_xml *xml = merged_apart(c->nccl);
        const char *const busid[] = {"0000:43:00.1", "0000:44:00.0", "0000:41:00.0", "0000:46:00.0"};
        const int want[] = {c->merged, c->above, c->common, c->beside};

        for (int i = 0; i < 4; i++) {
            int width = kl_xml_int(xml, kl_xml_find(xml, "pci", "busid", busid[i]), "link_width", -1);
            if (width != want[i]) fail_msg("%d: %s has %d", c->nccl, busid[i], width);
        }
        kl_xml_free(xml);
    }
}

static bool names_net(const char *text, const char *name)
{
    char attr[48];

    snprintf(attr, sizeof attr, "name=\"%s\"", name);
    return strstr(text, attr);
}

/* The next communicator passes on the virtual NICs of the first. */
static void virtual_nics_may_be_there_already(void **state)
{
    static const struct {
        int nccl;
        bool member, other;
    } cases[] = {{22606, false, false}, {22703, true, true}, {23004, true, true}, {23007, false, true}};
    struct kl_net_facts net[NETS + 1];

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct run r;
        struct merge_request merge_request = {c->nccl, KL_PATH_PORT, NULL, 0};

        prepare(&r, -1);
        memcpy(net, r.net, sizeof r.net);
        net[NETS] = (struct kl_net_facts){.name = "a0+a1", .dev = 6, .nmembers = 2, .member = {0, 1}};
        r.machine.net = net;
        r.machine.nnets = NETS + 1;
        char *text = document_of(&r, merge_request);
        assert_string_equal(r.plugin.asked, "");
        assert_non_null(strstr(text, "name=\"a0+a1\" dev=\"6\""));
        assert_int_equal(names_net(text, "a1"), c->member);
        assert_int_equal(names_net(text, "b0"), c->other);
        free(text);
        net[NETS].member[1] = 9;
        assert_null(document_of(&r, merge_request));
        kl_xml_free(r.file);
    }
}

/* A member that also offers GIN stays for that. */
static void members_stay_for_what_else_they_do(void **state)
{
    static const int releases[] = {23004, 23007};

    (void)state;
    FOR_EACH_CASE(nccl, releases)
    {
        struct run r;

        prepare(&r, -1);
        set_net(&r, "a0", "gin", "1");
        char *text = document_of(&r, (struct merge_request){*nccl, KL_PATH_PORT, NULL, 0});
        assert_int_equal(names_net(text, "a0"), *nccl == 23007);
        assert_int_equal(strstr(text, "net=\"0\"") != NULL, *nccl == 23007);
        assert_false(names_net(text, "a1"));
        free(text);
        kl_xml_free(r.file);
    }
}

/* Without its NIC, the second cpu's card is empty; b0 shares one with b1, which was not reported. */
static void empty_cards_go(void **state)
{
    static const int releases[] = {22606, 22703};

    (void)state;
    FOR_EACH_CASE(nccl, releases)
    {
        struct run r;

        prepare(&r, -1);
        r.machine.nnets = 3;
        r.machine.merge_nets = NULL;
        char *text = document_of(&r, (struct merge_request){*nccl, KL_PATH_LOC, NULL, 0});
        assert_int_equal(names_net(text, "b1"), *nccl == 22606);
        assert_true(names_net(text, "b0"));
        free(text);
        kl_xml_free(r.file);
    }
}

static void without_a_plugin_nics_stay_apart(void **state)
{
    struct run r;

    (void)state;
    prepare(&r, -1);
    r.machine.merge_nets = NULL;
    char *text = document_of(&r, (struct merge_request){KL_NCCL_DEFAULT, KL_PATH_PIX, "a0,a1", 0});
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
        cmocka_unit_test(rails_can_keep_nics_apart),
        cmocka_unit_test(impossible_groups_are_refused),
        cmocka_unit_test(virtual_nics_stand_near_their_members),
        cmocka_unit_test(what_is_no_bridge_gets_no_card),
        cmocka_unit_test(merged_links_are_as_wide_as_all),
        cmocka_unit_test(members_stay_for_what_else_they_do),
        cmocka_unit_test(empty_cards_go),
        cmocka_unit_test(virtual_nics_may_be_there_already),
        cmocka_unit_test(without_a_plugin_nics_stay_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
