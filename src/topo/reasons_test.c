/* SPDX-License-Identifier: Apache-2.0 */
/* Why rules answer as they do: each reason on a machine that has it. */
#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/paths.h"

#include <stdio.h>

static struct kl_topo *machine(const char *name, const struct kl_topo_options *options)
{
    struct kl_xml *xml;
    struct kl_topo *t;
    char path[256];

    snprintf(path, sizeof path, "tests/data/examples/%s.xml", name);
    assert_int_equal(kl_xml_load(path, kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, options, &t), ncclSuccess);
    kl_xml_free(xml);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

static bool never(void *ctx, int a, int b)
{
    (void)ctx, (void)a, (void)b;
    return false;
}

/* ---- P2P and shared memory ---- */

enum setting { PLAIN, DISABLED, LEVEL_NVL, LEVEL_SYS, BROKEN, NO_ACCESS, BY_COPY, NO_NET_INSIDE, NO_SHM };

static struct kl_topo_options options_for(enum setting s)
{
    struct kl_topo_options o = KL_TOPO_OPTIONS;

    o.p2p_disable = s == DISABLED;
    if (s == LEVEL_NVL) o.p2p_level = KL_PATH_NVL;
    if (s == LEVEL_SYS) o.p2p_level = KL_PATH_SYS;
    if (s == BROKEN) o.p2p_works = never;
    o.ignore_disabled_p2p = 1;
    if (s == NO_ACCESS) o.peer_access = never;
    o.p2p_cuda_memcpy = s == BY_COPY;
    o.net_disable_intra = s == NO_NET_INSIDE;
    o.shm_disable = s == NO_SHM;
    return o;
}

static const struct pair_case {
    const char *label, *machine;
    enum setting setting;
    int a, b;
    const char *p2p, *text, *shm;
} pair_cases[] = {
    {"far", "two-sockets", PLAIN, 0, 3, "too_far",
     "the path is SYS and the limit is PXB (the default); NCCL_P2P_LEVEL=SYS would allow it", "allowed"},
    {"allowed", "two-sockets", LEVEL_SYS, 0, 3, "allowed",
     "the path is SYS and the limit is SYS (set by NCCL_P2P_LEVEL)", "allowed"},
    {"disabled", "nvswitch", DISABLED, 0, 3, "disabled", "NCCL_P2P_DISABLE=1 forbids it", "network_faster"},
    {"itself", "nvswitch", DISABLED, 3, 3, "allowed", "the path is LOC and the limit is PXB (the default)", "allowed"},
    {"level below", "nvlink-ring", LEVEL_NVL, 0, 2, "too_far",
     "the path is NVB and the limit is NVL (set by NCCL_P2P_LEVEL); NCCL_P2P_LEVEL=NVB would allow it", "allowed"},
    {"broken", "nvswitch", BROKEN, 0, 3, "broken", NULL, "network_faster"},
    {"no access", "nvswitch", NO_ACCESS, 0, 3, "no_access", NULL, "allowed"},
    {"copy engines", "nvlink-ring", BY_COPY, 0, 2, "copy_engine", NULL, "allowed"},
    {"AMD pair", "net-faster-amd", PLAIN, 0, 1, "network_faster", NULL, "network_faster"},
    {"network kept out", "net-faster-amd", NO_NET_INSIDE, 0, 1, "allowed",
     "the path is SYS and the limit is SYS (the default for up to two GPUs with an AMD CPU)", "allowed"},
    {"no shared memory", "two-sockets", NO_SHM, 0, 3, "too_far", NULL, "disabled"},
    {"elsewhere", "two-sockets", PLAIN, 0, 99, "not_in_this_system", NULL, "not_in_this_system"},
};

static void pairs(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, pair_cases)
    {
        struct kl_topo_options options = options_for(c->setting);
        struct kl_topo *t = machine(c->machine, &options);
        struct kl_p2p p2p;
        char text[KL_WHY_TEXT];

        assert_int_equal(kl_topo_p2p_transport(t, c->a, c->b, &p2p), ncclSuccess);
        if (strcmp(kl_p2p_why_name(p2p.why), c->p2p)) fail_msg("%s: %s", c->label, kl_p2p_why_name(p2p.why));
        expect_case(c->label, p2p.p2p == !strcmp(c->p2p, "allowed"));
        kl_p2p_why_text(&p2p, text);
        if (c->text && strcmp(text, c->text)) fail_msg("%s: %s", c->label, text);
        expect_case(c->label, !strcmp(kl_shm_why_name(kl_topo_shm(t, c->a, c->b)), c->shm));
        kl_topo_free(t);
    }
}

/* No value of NCCL_P2P_LEVEL would help. */
static void without_a_path_no_level_is_advised(void **state)
{
    struct kl_p2p p2p = {.why = KL_P2P_TOO_FAR, .type = KL_PATH_DIS, .level = KL_PATH_PXB};
    char text[KL_WHY_TEXT];

    (void)state;
    assert_string_equal(kl_p2p_why_text(&p2p, text), "no path leads there");
}

static void hosts_are_apart_without_a_domain(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t = machine("two-hosts", &options);
    int first = t->node[0].gpu.rank, other = -1;
    struct kl_p2p p2p;

    (void)state;
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++)
        if (kl_id_host(t->node[g].id) != kl_id_host(t->node[0].id)) other = t->node[g].gpu.rank;
    assert_int_equal(kl_topo_p2p(t, first, other, &p2p), ncclSuccess);
    assert_int_equal(p2p.why, KL_P2P_OTHER_HOST);
    assert_int_equal(kl_topo_shm(t, first, other), KL_SHM_OTHER_HOST);
    t->options.mnnvl = true;
    assert_int_equal(kl_topo_p2p(t, first, other, &p2p), ncclSuccess);
    assert_int_not_equal(p2p.why, KL_P2P_OTHER_HOST);
    t->node[0].gpu.shm_id = 7;
    assert_int_equal(kl_topo_p2p(t, first, t->node[1].gpu.rank, &p2p), ncclSuccess);
    assert_int_equal(p2p.why, KL_P2P_OTHER_MEMORY);
    kl_topo_free(t);
}

/* No level would help there. */
static void gpus_that_nothing_joins(void **state)
{
#define HOST(hash, rank)                                                                                               \
    "<cpu host_hash=\"" hash "\" numaid=\"0\" arch=\"arm64\"><pci busid=\"0000:01:00.0\" class=\"0x030200\" "          \
    "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"80\" rank=\"" rank                            \
    "\" gdr=\"1\"/></pci></cpu>"
    static const char text[] = "<system version=\"1\">" HOST("0x1", "0") HOST("0x2", "1") "</system>";
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    struct kl_topo *t;
    struct kl_p2p p2p;
    char why[KL_WHY_TEXT];

    (void)state;
    options.mnnvl = true;
    assert_int_equal(kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, &options, &t), ncclSuccess);
    kl_xml_free(xml);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    assert_int_equal(kl_topo_p2p(t, 0, 1, &p2p), ncclSuccess);
    assert_int_equal(p2p.why, KL_P2P_TOO_FAR);
    assert_string_equal(kl_p2p_why_text(&p2p, why), "no path leads there");
    kl_topo_free(t);
}

/* ---- GPUDirect ---- */

static void check_gdr(const struct kl_topo *t, int rank, int net, bool read, enum kl_gdr_why why, const char *part)
{
    struct kl_gdr gdr;
    char text[KL_WHY_TEXT];

    assert_int_equal(kl_topo_gdr(t, rank, net, read, &gdr), ncclSuccess);
    assert_int_equal(gdr.why, why);
    assert_int_equal(gdr.mode != KL_GDR_OFF, why == KL_GDR_ALLOWED);
    if (!strstr(kl_gdr_why_text(&gdr, text), part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void gdr(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t = machine("nvswitch", &options);

    (void)state;
    check_gdr(t, 0, 0, true, KL_GDR_ALLOWED, "GPU/0 to the NIC is PIX and the limit is P2C (the default)");
    check_gdr(t, 0, 3, true, KL_GDR_ALLOWED, "GPU/3 to the NIC"); /* through the relay */
    t->options.gdr_read = 0;
    check_gdr(t, 0, 0, true, KL_GDR_READ_DISABLED, "NCCL_NET_GDR_READ=0");
    check_gdr(t, 0, 0, false, KL_GDR_ALLOWED, "");
    t->node[kl_topo_at(t, KL_NODE_GPU, 0)].gpu.gdr = 0;
    check_gdr(t, 0, 0, false, KL_GDR_GPU_CANNOT, "GPU");
    t->node[kl_topo_at(t, KL_NODE_NET, 0)].net.gdr = 0;
    check_gdr(t, 0, 0, false, KL_GDR_NIC_CANNOT, "NIC");
    kl_topo_free(t);

    t = machine("two-sockets", &options);
    check_gdr(t, 0, 0, false, KL_GDR_TOO_FAR, "is PHB and the limit is P2C (the default); NCCL_NET_GDR_LEVEL=PHB");
    kl_topo_free(t);
}

static bool c2c_would_help(struct kl_topo_options options)
{
    struct kl_topo *t = machine("c2c", &options);
    struct kl_gdr gdr;
    char text[KL_WHY_TEXT];

    assert_int_equal(kl_topo_gdr(t, 0, 0, false, &gdr), ncclSuccess);
    assert_int_equal(gdr.why, KL_GDR_TOO_FAR);
    kl_topo_free(t);
    return strstr(kl_gdr_why_text(&gdr, text), ", and so would NCCL_NET_GDR_C2C=1") != NULL;
}

/* Only if it is off, and the limit not below C2C. */
static void gdr_recommends_c2c_where_it_would_do(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;

    (void)state;
    options.gdr_c2c = false;
    assert_true(c2c_would_help(options));
    options.gdr_level = KL_PATH_NVL;
    assert_false(c2c_would_help(options));
    options.gdr_c2c = true;
    assert_false(c2c_would_help(options));
}

/* The path before the refusal counts, not the one over the CPU after it. */
static void gdr_names_the_level_that_would_do(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    (void)state;
    options.gdr_level = KL_PATH_LOC;
    t = machine("nvswitch", &options);
    check_gdr(t, 0, 0, false, KL_GDR_TOO_FAR,
              "is PIX and the limit is LOC (set by NCCL_NET_GDR_LEVEL); NCCL_NET_GDR_LEVEL=PIX");
    kl_topo_free(t);
}

/* ---- PXN ---- */

static enum kl_pxn_why pxn(const char *name, const struct kl_topo_options *options, int gpu, int net)
{
    struct kl_topo *t = machine(name, options);
    enum kl_pxn_why why = kl_topo_pxn(t, gpu, net).why;
    int rank = t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.rank, relay;

    assert_int_equal(kl_topo_pxn_rank(t, rank, net, &relay), ncclSuccess);
    assert_int_equal(why == KL_PXN_USED, relay != rank);
    kl_topo_free(t);
    return why;
}

static void pxn_reasons(void **state)
{
    struct kl_topo_options plain = KL_TOPO_OPTIONS, off = KL_TOPO_OPTIONS, far = KL_TOPO_OPTIONS;

    (void)state;
    off.pxn_disable = true;
    far.gdr_level = KL_PATH_LOC;
    assert_int_equal(pxn("nvswitch", &far, 0, 3), KL_PXN_NO_GDR);
    assert_int_equal(pxn("nvswitch", &plain, 0, 3), KL_PXN_USED);
    assert_int_equal(pxn("nvswitch", &plain, 3, 3), KL_PXN_OWN);
    assert_int_equal(pxn("nvswitch", &off, 0, 3), KL_PXN_DISABLED);
    assert_int_equal(pxn("nvlink-ring", &plain, 2, 0), KL_PXN_NO_NVLINK);
    assert_int_equal(pxn("two-sockets", &plain, 3, 0), KL_PXN_RELAY_FAR);
    assert_int_equal(pxn("two-hosts", &plain, 0, 1), KL_PXN_OTHER_HOST);
}

/* ---- NICs ---- */

static void sends_and_receives_say_which_nic(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t = machine("nvswitch", &options);
    struct kl_p2p_net p;

    (void)state;
    assert_int_equal(kl_topo_p2p_net(t, 0, 3, 0, &p), ncclSuccess);
    assert_int_equal(p.why, KL_P2P_NET_RAIL);
    assert_int_equal(p.proxy, t->node[kl_topo_at(t, KL_NODE_GPU, kl_topo_local_gpu(t, p.net))].gpu.rank);
    assert_int_equal(kl_topo_p2p_net(t, 0, 99, 0, &p), ncclSuccess);
    assert_int_equal(p.why, KL_P2P_NET_NO_RAIL);
    t->options.p2p_pxn_level = 0;
    assert_int_equal(kl_topo_p2p_net(t, 0, 3, 0, &p), ncclSuccess);
    assert_int_equal(p.why, KL_P2P_NET_NO_PXN);
    assert_int_equal(p.proxy, 0);
    t->options.cross_nic = 0;
    assert_int_equal(kl_topo_p2p_net(t, 0, 3, 0, &p), ncclSuccess);
    assert_int_equal(p.why, KL_P2P_NET_CROSS_NIC);
    assert_int_equal(p.proxy, 0);
    kl_topo_free(t);
}

#define NIC(bus, dev, width)                                                                                           \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x0200\" link_speed=\"8 GT/s\" link_width=\"" width                      \
    "\"><nic><net dev=\"" dev "\" speed=\"100000\" gdr=\"1\"/></nic></pci>"

/* NICs beside the GPU, one of them slow, beyond the host bridge, and one that repeats a number. */
static const char nics[] =
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
    "<pci busid=\"0000:01:00.0\" class=\"0x0604\" link_speed=\"8 GT/s\" link_width=\"16\">"
    "<pci busid=\"0000:02:00.0\" class=\"0x0302\" link_speed=\"8 GT/s\" link_width=\"16\">"
    "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>" NIC("03", "0", "16")
        NIC("04", "1", "4") "</pci>" NIC("05", "2", "16") NIC("06", "0", "16") "</cpu></system>";

static struct kl_topo *parsed(const char *text)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    struct kl_topo *t;

    assert_int_equal(kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, &options, &t), ncclSuccess);
    kl_xml_free(xml);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

static void nics_that_no_gpu_chooses(void **state)
{
    static const enum kl_net_use uses[] = {KL_NET_CHOSEN, KL_NET_SLOWER, KL_NET_FARTHER, KL_NET_TWIN};
    struct kl_topo *t = parsed(nics);

    (void)state;
    assert_int_equal(t->count[KL_NODE_NET], 4);
    for (int i = 0; i < 4; i++) {
        struct kl_net_usage usage;

        assert_int_equal(kl_topo_net_usage(t, i, &usage), ncclSuccess);
        assert_int_equal(usage.use, uses[i]);
        if (i == 1 || i == 2) assert_int_equal(usage.instead, 0);
    }
    kl_topo_free(t);
}

#define BELOW(bus, body)                                                                                               \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x0604\" link_speed=\"8 GT/s\" link_width=\"16\">" body "</pci>"
#define GPU(bus, dev, rank)                                                                                            \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x0302\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"" dev        \
    "\" sm=\"80\" rank=\"" rank "\" gdr=\"1\"/></pci>"
#define INTEL(numa, body)                                                                                              \
    "<cpu numaid=\"" numa "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">" body "</cpu>"

/* Three NICs are nearest to both GPUs; the GPUs' device numbers lead to the same two. */
static void nics_that_device_numbers_pass_over(void **state)
{
    struct kl_topo *t = parsed(
        "<system version=\"1\">" INTEL("0", BELOW("01", GPU("02", "0", "0") GPU("03", "2", "1") NIC("04", "0", "16")
                                                            NIC("05", "1", "16") NIC("06", "2", "16"))) "</system>");
    struct kl_net_usage usage;

    (void)state;
    assert_int_equal(kl_topo_net_usage(t, 1, &usage), ncclSuccess);
    assert_int_equal(usage.use, KL_NET_CHOSEN);
    assert_int_equal(kl_topo_net_usage(t, 2, &usage), ncclSuccess);
    assert_int_equal(usage.use, KL_NET_SPREAD);
    assert_int_equal(usage.instead, 0);
    kl_topo_free(t);
}

/* Of GPUs that reach a NIC equally wide, the nearer one is named. */
static void who_comes_nearest_to_a_nic_is_named(void **state)
{
    struct kl_topo *t =
        parsed("<system version=\"1\">" INTEL("0", BELOW("01", GPU("02", "0", "0") NIC("04", "0", "16")))
                   INTEL("1", BELOW("11", GPU("12", "1", "1") NIC("14", "1", "16")) NIC("15", "2", "4")) "</system>");
    struct kl_net_usage usage;

    (void)state;
    assert_int_equal(kl_topo_net_usage(t, 2, &usage), ncclSuccess);
    assert_int_equal(usage.use, KL_NET_SLOWER);
    assert_int_equal(usage.gpu, 1);
    assert_int_equal(usage.instead, 1);
    kl_topo_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),
        cmocka_unit_test(without_a_path_no_level_is_advised),
        cmocka_unit_test(hosts_are_apart_without_a_domain),
        cmocka_unit_test(gpus_that_nothing_joins),
        cmocka_unit_test(gdr),
        cmocka_unit_test(gdr_names_the_level_that_would_do),
        cmocka_unit_test(gdr_recommends_c2c_where_it_would_do),
        cmocka_unit_test(pxn_reasons),
        cmocka_unit_test(sends_and_receives_say_which_nic),
        cmocka_unit_test(nics_that_no_gpu_chooses),
        cmocka_unit_test(nics_that_device_numbers_pass_over),
        cmocka_unit_test(who_comes_nearest_to_a_nic_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
