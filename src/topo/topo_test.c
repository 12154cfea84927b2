/* SPDX-License-Identifier: Apache-2.0 */
/* Documents to graphs, piece by piece; irregular input (the specification's example 8); numbers and names. */
#include "topo/topo.h"

#include "topo/config.h"
#include "topo/paths.h"
#include "topo/test_document.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- one element at a time ---- */

/* Bandwidth of the PCI link that a GPU with these attributes gets. */
static const struct speed_case {
    const char *attrs;
    float bw;
} speed_cases[] = {
    {"link_speed=\"\" link_width=\"\"", 12},
    {"link_speed=\"5.0 GT/s PCIe\" link_width=\"8\"", 3},
    {"link_speed=\"2.5 GT/s\" link_width=\"0\"", 3},
    {"link_speed=\"2.5 GT/s PCIe\" link_width=\"4\"", 0.75f},
    {"link_speed=\"5 GT/s\" link_width=\"16\"", 6},
    {"link_speed=\"8 GT/s\" link_width=\"16\"", 12},
    {"link_speed=\"8.0 GT/s PCIe\" link_width=\"8\"", 6},
    {"link_speed=\"16 GT/s\" link_width=\"16\"", 24},
    {"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"", 24},
    {"link_speed=\"16.0 GT/s\" link_width=\"16\"", 24}, /* the number counts, not the text after it */
    {"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"", 48},
    {"link_speed=\"64.0 GT/s PCIe\" link_width=\"16\"", 96},
    {"link_speed=\"Unknown\" link_width=\"16\"", 12},
    {"link_speed=\"7 GT/s\" link_width=\"16\"", 12},
    {"link_speed=\"16\" link_width=\"16\"", 12},
    {"link_speed=\"8 GT/s\" link_width=\"-4\"", 12},
};

static void pci_links_are_as_wide_as_told(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, speed_cases)
    {
        char text[512];

        snprintf(text, sizeof text, SYS("<pci busid=\"0000:01:00.0\" class=\"0x0302\" %s>" GPU "</pci>"), c->attrs);
        struct kl_topo *t = built(text);
        expect_case(c->attrs, t->nlinks == 2 && t->link[0].bw == c->bw && t->link[1].bw == c->bw);
        kl_topo_free(t);
    }
}

/* Which node a device becomes: none, or one of a type. */
static const struct kind_case {
    const char *name, *body;
    int type; /* -1: none */
} kind_cases[] = {
    {"bridge", PCI("class=\"0x060400\" " LINK, ""), KL_NODE_PCI},
    {"unknown class", PCI("class=\"0x010802\" " LINK, ""), KL_NODE_PCI},
    {"NIC class without nic", PCI("class=\"0x020000\" " LINK, ""), -1},
    {"NVSwitch class", PCI("class=\"0x068000\" " LINK, ""), -1},
    {"GPU class without gpu", PCI("class=\"0x030000\" " LINK, ""), -1},
    {"gpu of a class of its own", PCI("class=\"0x038000\" " LINK, GPU), KL_NODE_GPU},
    {"gpu in a bridge", PCI("class=\"0x060400\" " LINK, GPU), KL_NODE_GPU},
    {"gpu without rank", PCI("class=\"0x0302\" " LINK, "<gpu/>"), -1},
    {"gpu without rank but NVLinks", PCI("class=\"0x0302\" " LINK, "<gpu><nvlink/><c2c/></gpu>"), -1},
    {"card", PCI("class=\"0x0200\" " LINK, "<nic/>"), KL_NODE_NIC},
    {"card of another class", PCI("class=\"0x060400\" " LINK, "<nic/>"), KL_NODE_NIC},
    {"NVLinks below an element that is left out",
     PCI("class=\"0x068000\"", "<pci><gpu rank=\"0\"><nvlink/></gpu></pci>"), -1},
};

static void devices_become_nodes(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, kind_cases)
    {
        char text[1024];

        snprintf(text, sizeof text, SYS("%s"), c->body);
        struct kl_topo *t = built(text);
        expect_case(c->name, t->nnodes == (c->type < 0 ? 1 : 2));
        if (c->type >= 0) expect_case(c->name, t->count[c->type] == 1);
        kl_topo_free(t);
    }
}

/* A missing part is an error that names the place. */
static const struct missing_case {
    const char *text, *what;
} missing_cases[] = {
    {SYS("\n" PCI("class=\"0x0302\" " LINK, "<gpu dev=\"0\" rank=\"0\" gdr=\"1\"/>")),
     "t.xml:2: <gpu> has no attribute sm"},
    {SYS(PCI("class=\"0x0302\" " LINK, "<gpu dev=\"0\" rank=\"0\" sm=\"80\"/>")), "<gpu> has no attribute gdr"},
    {SYS(PCI("class=\"0x0302\" " LINK, "<gpu sm=\"80\" rank=\"0\" gdr=\"1\"/>")), "<gpu> has no attribute dev"},
    {SYS(PCI(LINK, GPU)), "<pci> has no attribute class"},
    {SYS("<pci class=\"0x0302\" " LINK ">" GPU "</pci>"), "<pci> has no attribute busid"},
    {SYS(PCI("class=\"0x0302\" link_width=\"16\"", GPU)), "<pci> has no attribute link_speed"},
    {SYS(PCI("class=\"0x0302\" link_speed=\"\"", GPU)), "<pci> has no attribute link_width"},
    {"<system version=\"1\"><cpu numaid=\"0\"/></system>", "<cpu> has no attribute arch"},
    {"<system version=\"1\"><cpu arch=\"arm64\"/></system>", "<cpu> has no attribute numaid"},
    {"<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\"/></system>", "<cpu> has no attribute vendor"},
    {"<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\"/></system>",
     "attribute familyid"},
    {SYS(PCI("class=\"0x0302\" " LINK,
             "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"><nvlink tclass=\"0x0302\"/></gpu>")),
     "attribute count"},
    {SYS(PCI("class=\"0x0302\" " LINK, "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"><nvlink count=\"1\"/></gpu>")),
     "attribute tclass"},
    {SYS(PCI("class=\"0x0302\" " LINK, GPU "<pcilink target=\"0\"/>")), "<pcilink> in a device that is not a switch"},
    {"<system/>", "attribute version"},
    {"", "no <system> element"},
};

static void what_is_missing_is_named(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, missing_cases)
    {
        struct kl_topo *t;

        expect_case(c->what, build(c->text, &t) == ncclInternalError);
        if (!strstr(kl_error_text(), c->what)) fail_msg("%s: %s", c->what, kl_error_text());
    }
}

static const struct cpu_case {
    const char *attrs;
    int arch, vendor, model;
    float socket_bw;
} cpu_cases[] = {
    {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"79\"", 1, 1, 1, 6},
    {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"", 1, 1, 2, 10},
    {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"142\"", 1, 1, 2, 10},
    {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"0x8f\"", 1, 1, 3, 22},
    {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\"", 1, 1, 4, 40},
    {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"5\" modelid=\"207\"", 1, 1, 1, 6},
    {"arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\"", 1, 2, 1, 16},
    {"arch=\"x86_64\" vendor=\"CentaurHauls\" familyid=\"7\" modelid=\"91\"", 1, 3, 1, 9},
    {"arch=\"x86_64\" vendor=\"  Shanghai  \" familyid=\"7\" modelid=\"59\"", 1, 3, -1, 6},
    {"arch=\"x86_64\" vendor=\"Foo\"", 1, 0, -1, 5000},
    {"arch=\"arm64\"", 3, -1, -1, 6},
    {"arch=\"ppc64le\"", 2, -1, -1, 32},
    {"arch=\"riscv\"", 0, -1, -1, 5000},
};

static void processors_are_known(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cpu_cases)
    {
        char text[512];

        snprintf(text, sizeof text, "<system version=\"1\"><cpu numaid=\"0\" %s/>" CPU "</cpu></system>", c->attrs);
        struct kl_topo *t = built(text);
        const struct kl_node *n = kl_topo_first_cpu(t);
        expect_case(c->attrs, n->cpu.arch == c->arch && n->cpu.vendor == c->vendor && n->cpu.model == c->model);
        expect_case(c->attrs, t->link[n->first_link].bw == c->socket_bw); /* from this CPU */
        expect_case(c->attrs, t->link[t->node[1].first_link].bw == 10);   /* to it, from the other */
        kl_topo_free(t);
    }
}

/* Processors that releases tell apart, before and after 2.31. `model`: 0 where it is an error. */
static const struct {
    const char *attrs;
    int model_before, model;
    float before, bw;
} newer_cpus[] = {
    {"vendor=\"AuthenticAMD\" familyid=\"23\" modelid=\"49\"", -1, KL_MODEL_ZEN_1_2, 16, 16},
    {"vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\"", -1, KL_MODEL_ZEN_1_2, 16, 16},
    {"vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"17\"", -1, KL_MODEL_ZEN_3_4, 16, 24},
    {"vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"17\"", -1, KL_MODEL_ZEN_3_4, 16, 24},
    {"vendor=\"AuthenticAMD\" familyid=\"26\" modelid=\"2\"", -1, KL_MODEL_ZEN_5, 16, 32},
    {"vendor=\"AuthenticAMD\" familyid=\"191\"", -1, KL_MODEL_ZEN_5, 16, 32},
    {"vendor=\"AuthenticAMD\" familyid=\"27\" modelid=\"2\"", -1, KL_MODEL_ZEN_1_2, 16, 16},
    {"vendor=\"AuthenticAMD\"", -1, 0, 16, 0},
    {"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"172\"", KL_MODEL_SRP, KL_MODEL_SRP, 22, 22},
    {"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"173\"", KL_MODEL_SRP, KL_MODEL_ERP, 22, 40},
    {"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"174\"", KL_MODEL_SRP, KL_MODEL_ERP, 22, 40},
    {"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"175\"", KL_MODEL_SRP, KL_MODEL_ERP, 22, 40},
    {"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"176\"", KL_MODEL_SRP, KL_MODEL_SRP, 22, 22},
    {"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\"", KL_MODEL_ERP, KL_MODEL_ERP, 40, 40},
};

static void expect_cpu(const char *attrs, int nccl, int model, float bw)
{
    char text[512];
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    options.nccl = nccl;
    snprintf(text, sizeof text, "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" %s/>" CPU "</cpu></system>",
             attrs);
    struct kl_xml *xml = parse(text);
    ncclResult_t rc = kl_topo_build(xml, &options, &t);

    kl_xml_free(xml);
    expect_case(attrs, rc == (model ? ncclSuccess : ncclInternalError));
    if (rc) {
        assert_non_null(strstr(kl_error_text(), "<cpu> has no attribute familyid"));
        return;
    }
    expect_case(attrs, kl_topo_first_cpu(t)->cpu.model == model);
    expect_case(attrs, t->link[kl_topo_first_cpu(t)->first_link].bw == bw);
    kl_topo_free(t);
}

static void newer_releases_know_more_processors(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, newer_cpus)
    {
        expect_cpu(c->attrs, 23007, c->model_before, c->before);
        expect_cpu(c->attrs, 23102, c->model, c->bw);
        expect_cpu(c->attrs, 23203, c->model, c->bw);
    }
}

static const struct net_case {
    const char *attrs;
    uint64_t asic;
    float bw;
} net_cases[] = {
    {"dev=\"1\" speed=\"-1\"", 1, 1.25f},       {"dev=\"1\"", 1, 1.25f},
    {"dev=\"1\" speed=\"0\"", 1, 1.25f},        {"dev=\"3\" speed=\"200000\" guid=\"1f\"", 0x1f, 25},
    {"dev=\"3\" guid=\"0xAbC\"", 0xabc, 1.25f}, {"dev=\"3\" guid=\"\"", 0, 1.25f},
};

static void nets_have_defaults(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, net_cases)
    {
        char text[512];

        snprintf(text, sizeof text, SYS("<nic><net name=\"a\" %s latency=\"nan\"/><net name=\"b\"/></nic>"), c->attrs);
        struct kl_topo *t = built(text);
        expect_case(c->attrs, t->count[KL_NODE_NET] == 1); /* b has no dev */
        const struct kl_node *n = &t->node[t->first[KL_NODE_NET]];
        expect_case(c->attrs, n->net.asic == c->asic && n->net.bw == c->bw);
        expect_case(c->attrs, n->net.port == 0 && n->net.gdr == 0 && n->net.coll == 0 && n->net.max_channels == 64);
        expect_case(c->attrs, n->net.latency == 0);
        kl_topo_free(t);
    }
}

/* Microseconds that can be: others would leave no algorithm that takes a finite time. */
static const struct latency_case {
    const char *text;
    float latency;
} latency_cases[] = {{"1.5", 1.5f}, {"0", 0},    {"", 0},    {"-7", 0},     {"nan", 0},
                     {"inf", 0},    {"3e38", 0}, {"1e9", 0}, {"1e8", 1e8f}, {"soon", 0}};

static void latencies_are_times(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, latency_cases)
    {
        char text[512];

        snprintf(text, sizeof text, SYS("<nic><net dev=\"0\" latency=\"%s\"/></nic>"), c->text);
        struct kl_topo *t = built(text);
        expect_case(c->text, t->node[t->first[KL_NODE_NET]].net.latency == c->latency);
        kl_topo_free(t);
    }
}

/* ---- several elements ---- */

static void virtual_nics_share_a_card(void **state)
{
    struct kl_topo *t = built("<system version=\"1\">" CPU "<nic><net dev=\"0\"/></nic></cpu>"
                              "<cpu numaid=\"1\" arch=\"arm64\"><nic><net dev=\"1\"/></nic></cpu></system>");

    (void)state;
    assert_int_equal(t->count[KL_NODE_NIC], 1);
    assert_int_equal(t->count[KL_NODE_NET], 2);
    const struct kl_node *nic = &t->node[t->first[KL_NODE_NIC]];
    assert_int_equal(nic->id, 0);
    assert_int_equal(nic->nlinks, 3); /* two NETs, and the first CPU only */
    kl_topo_free(t);
}

static void functions_are_cards_of_their_own(void **state)
{
    struct kl_topo *t = built(SYS("<pci busid=\"0000:16:00.0\" class=\"0x02\" " LINK "><nic/></pci>"
                                  "<pci busid=\"0000:16:00.1\" class=\"0x02\" " LINK "><nic/></pci>"));

    (void)state;
    assert_int_equal(t->count[KL_NODE_NIC], 2);
    assert_true(kl_topo_find(t, KL_NODE_NIC, 0x16001) >= 0);
    kl_topo_free(t);
}

static void numa_minus_one_has_a_name(void **state)
{
    struct kl_topo *t = built("<system version=\"1\"><cpu numaid=\"-1\" arch=\"arm64\"/></system>");
    char text[KL_NODE_TEXT];

    (void)state;
    assert_string_equal(kl_node_text(&t->node[0], text), "CPU/0-ffffffffffffff");
    kl_topo_free(t);
}

static void pci_peers_are_joined(void **state)
{
    struct kl_topo *t =
        built(SYS("<pci busid=\"0000:01:00.0\" class=\"0x0604\" " LINK "><pcilink target=\"0000:02:00.0\"/>"
                  "<pcilink target=\"0000:09:00.0\"/></pci>"
                  "<pci busid=\"0000:02:00.0\" class=\"0x0604\" " LINK "><pcilink target=\"0000:01:00.0\"/></pci>"));
    const struct kl_node *a = &t->node[kl_topo_find(t, KL_NODE_PCI, 0x1000)];

    (void)state;
    assert_int_equal(a->nlinks, 2); /* the peer that is not there is passed over */
    assert_int_equal(t->link[a->first_link].type, KL_PATH_LOC);
    assert_float_equal(t->link[a->first_link].bw, 5000, 0);
    kl_topo_free(t);
}

static void power_links_gpus_and_cpus_by_nvlink(void **state)
{
    struct kl_topo *t = built("<system version=\"1\"><cpu numaid=\"0\" arch=\"ppc64\">" PCI(
        "class=\"0x0302\" " LINK, "<gpu dev=\"0\" sm=\"70\" rank=\"0\" gdr=\"1\"><nvlink target=\"0004:04:01.0\" "
                                  "count=\"3\" tclass=\"0x068001\"/></gpu>") "</cpu></system>");

    (void)state;
    assert_int_equal(t->count[KL_NODE_NVS], 0);
    assert_int_equal(t->link[1].type, KL_PATH_NVL); /* the first of the links to the CPU is the one that moves last */
    assert_float_equal(t->link[1].bw, 60, 0);
    assert_int_equal(t->node[t->link[1].to].type, KL_NODE_CPU);
    assert_int_equal(t->nlinks, 4);
    kl_topo_free(t);
}

static const struct nvlink_case {
    int sm;
    float bw;
} nvlink_cases[] = {{35, 20}, {60, 18}, {61, 18},    {70, 20},    {75, 20},  {80, 20}, {86, 12},
                    {87, 20}, {89, 20}, {90, 20.6f}, {99, 20.6f}, {100, 40}, {121, 40}};

static void nvlinks_have_generations(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, nvlink_cases) assert_true(kl_nvlink_bw(c->sm, KL_NCCL_2_26_3) == c->bw);
    assert_true(kl_nvlink_bw(107, 23102) == 40.1f && kl_nvlink_bw(107, 23203) == 31.2f); /* Rubin */
    assert_true(kl_nvlink_bw(103, 23102) == 40.1f && kl_nvlink_bw(103, 23203) == 40.1f);
}

static void one_gpu_alone(void **state)
{
    struct kl_topo *t = built(SYS(PCI("class=\"0x0302\" " LINK, GPU)));

    (void)state;
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    assert_float_equal(t->max_bw, 5000, 0);
    assert_float_equal(t->total_bw, 5000, 0);
    assert_true(kl_topo_all_nvlink(t));
    assert_int_equal(kl_topo_trim(&t, 7, 1), ncclInternalError); /* no such rank */
    kl_topo_free(t);
}

static void more_hosts_than_ids_hold(void **state)
{
    char *text;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    struct kl_topo *t;

    (void)state;
    fputs("<system version=\"1\">", to);
    for (int i = 0; i < 257; i++) fprintf(to, "<cpu numaid=\"0\" host_hash=\"0x%x\" arch=\"arm64\"/>", i + 1);
    fputs("</system>", to);
    fclose(to);
    assert_int_equal(build(text, &t), ncclInternalError);
    free(text);
}

/* ---- numbers and names ---- */

static const struct level_case {
    const char *text;
    int level;
} level_cases[] = {
    {"LOC", KL_PATH_LOC}, {"NVL", KL_PATH_NVL}, {"NVB", KL_PATH_NVB}, {"C2C", KL_PATH_C2C}, {"PIX", KL_PATH_PIX},
    {"PXB", KL_PATH_PXB}, {"PXN", KL_PATH_PXN}, {"PHB", KL_PATH_PHB}, {"SYS", KL_PATH_SYS}, {"NET", -1},
    {"0", KL_PATH_LOC},   {"1", KL_PATH_PIX},   {"2", KL_PATH_PXB},   {"3", KL_PATH_PHB},   {"4", KL_PATH_SYS},
    {"5", KL_PATH_SYS},   {"99", KL_PATH_SYS},  {"sys", -1},          {"SYSX", -1},         {"", -1},
    {"-1", -1},
};

static void levels_have_names_and_numbers(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, level_cases) expect_case(c->text, kl_path_level(c->text) == c->level);
    assert_int_equal(kl_path_level(NULL), -1);
}

static const struct busid_case {
    const char *text;
    uint64_t id;
    const char *back;
} busid_cases[] = {
    {"0000:17:00.0", 0x17000, "0000:17:00.0"},     {"0019:01:00.0", 0x1901000, "0019:01:00.0"},
    {"0000:16:00.1", 0x16001, "0000:16:00.1"},     {"10000:e1:00.0", 0x10000e1000, "10000:e1:00.0"},
    {"0000:01:00.0 junk", 0x1000, "0000:01:00.0"}, {"", 0, "0000:00:00.0"},
};

static void bus_ids_are_numbers(void **state)
{
    char text[KL_BUSID_TEXT];

    (void)state;
    FOR_EACH_CASE(c, busid_cases)
    {
        expect_case(c->text, kl_busid_parse(c->text) == c->id);
        expect_case(c->text, !strcmp(kl_busid_text(c->id, text), c->back));
    }
    assert_int_equal(kl_busid_parse("ff00:02:1f.7"), 0xff00021f7);
}

static struct kl_topo_options options_from(char *const *environment)
{
    struct kl_settings from = {.environment = environment, .user = KL_CONF_NONE, .system = KL_CONF_NONE};
    struct kl_topo_options options;
    static struct kl_topo_config config;

    kl_topo_config_load_from(&config, &from, &options);
    return options;
}

static void settings_become_options(void **state)
{
    char *const nothing[] = {NULL};
    static char some_0[] = "NCCL_NET_GDR_LEVEL=PHB";
    static char some_1[] = "NCCL_NET_GDR_READ=1";
    static char some_2[] = "NCCL_CROSS_NIC=0";
    static char some_3[] = "NCCL_PXN_DISABLE=1";
    static char some_4[] = "NCCL_P2P_PXN_LEVEL=1";
    static char some_5[] = "NCCL_NET_MERGE_LEVEL=PXB";
    static char some_6[] = "NCCL_NET_FORCE_MERGE=a,b;c";
    static char some_7[] = "NCCL_NVB_DISABLE=1";
    static char some_8[] = "NCCL_IGNORE_DISABLED_P2P=2";
    char *const some[] = {some_0, some_1, some_2, some_3, some_4, some_5, some_6, some_7, some_8, NULL};
    static char old_0[] = "NCCL_NET_GDR_LEVEL=3";
    static char old_1[] = "NCCL_NET_MERGE_LEVEL=nonsense";
    char *const old[] = {old_0, old_1, NULL};
    struct kl_topo_options o = options_from(nothing), d = KL_TOPO_OPTIONS;

    (void)state;
    assert_int_equal(o.gdr_level, d.gdr_level);
    assert_int_equal(o.gdr_read, d.gdr_read);
    assert_int_equal(o.cross_nic, d.cross_nic);
    assert_int_equal(o.p2p_pxn_level, d.p2p_pxn_level);
    assert_int_equal(o.merge_level, d.merge_level);
    assert_null(o.force_merge);
    assert_true(o.communicator);
    o = options_from(some);
    assert_int_equal(o.gdr_level, KL_PATH_PHB);
    assert_int_equal(o.gdr_read, 1);
    assert_int_equal(o.cross_nic, 0);
    assert_int_equal(o.p2p_pxn_level, 1);
    assert_int_equal(o.merge_level, KL_PATH_PXB);
    assert_string_equal(o.force_merge, "a,b;c");
    assert_true(o.pxn_disable && o.nvb_disable);
    assert_int_equal(o.ignore_disabled_p2p, 2);
    o = options_from(old);
    assert_int_equal(o.gdr_level, KL_PATH_PHB);
    assert_int_equal(o.merge_level, KL_PATH_PORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pci_links_are_as_wide_as_told),
        cmocka_unit_test(devices_become_nodes),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(processors_are_known),
        cmocka_unit_test(newer_releases_know_more_processors),
        cmocka_unit_test(nets_have_defaults),
        cmocka_unit_test(latencies_are_times),
        cmocka_unit_test(virtual_nics_share_a_card),
        cmocka_unit_test(functions_are_cards_of_their_own),
        cmocka_unit_test(numa_minus_one_has_a_name),
        cmocka_unit_test(pci_peers_are_joined),
        cmocka_unit_test(power_links_gpus_and_cpus_by_nvlink),
        cmocka_unit_test(nvlinks_have_generations),
        cmocka_unit_test(one_gpu_alone),
        cmocka_unit_test(more_hosts_than_ids_hold),
        cmocka_unit_test(levels_have_names_and_numbers),
        cmocka_unit_test(bus_ids_are_numbers),
        cmocka_unit_test(settings_become_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
