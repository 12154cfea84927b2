/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that depend on paths: NICs of GPUs, transports, drivers, CPUs. */
#include "topo/paths.h"
#include "topo/test_document.h"

#include <stdio.h>
#include <stdlib.h>

/* Of two NETs with one id, below two sockets, the first is the end of paths, wherever they lead; the other has none. */
static void equal_ids_are_one_end(void **state)
{
    struct kl_topo *t = built("<system version=\"1\">" CPU PCI(
        "class=\"0x0302\" " LINK,
        GPU) "<pci busid=\"0000:05:00.0\" class=\"0x02\" " LINK
             "><nic><net dev=\"7\" speed=\"8000\"/></nic></pci></cpu>"
             "<cpu numaid=\"1\" arch=\"arm64\"><pci busid=\"0000:02:00.0\" class=\"0x0302\" " LINK
             "><gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"/></pci><pci busid=\"0000:06:00.0\" class=\"0x02\" " LINK
             "><nic><net dev=\"7\" speed=\"80000\"/></nic></pci></cpu></system>");

    (void)state;
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_NET], 2);
    for (int g = 0; g < 2; g++) assert_int_equal(kl_path_between(t, KL_NODE_GPU, g, KL_NODE_NET, 1)->type, KL_PATH_DIS);
    const struct kl_path *near = kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_NET, 0);
    const struct kl_path *far = kl_path_between(t, KL_NODE_GPU, 1, KL_NODE_NET, 0);
    assert_int_equal(near->hops, 3);
    assert_float_equal(near->bw, 1, 0);
    assert_int_equal(far->hops, 3); /* the second one is nearer and wider */
    assert_float_equal(far->bw, 10, 0);
    assert_int_equal(t->link[kl_path_hops(t, far)[2]].to, kl_topo_at(t, KL_NODE_NET, 1));
    kl_topo_free(t);
}

/* Both GPUs must reach a NIC faster than each other, not one of them only, and not as fast. */
static void the_network_must_be_faster_for_both(void **state)
{
    static const int widths[3][2] = {{16, 16}, {16, 8}, {8, 16}}; /* of the NICs; GPU to GPU is 10 */
    static const bool faster[3] = {true, false, false};

    (void)state;
    for (int i = 0; i < 3; i++) {
        char text[2048] = "<system version=\"1\">";

        for (int c = 0; c < 2; c++)
            snprintf(
                text + strlen(text), sizeof text - strlen(text),
                "<cpu numaid=\"%d\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
                "<pci busid=\"0000:%d1:00.0\" class=\"0x0604\" " LINK
                "><pci busid=\"0000:%d2:00.0\" class=\"0x0302\" " LINK ">"
                "<gpu dev=\"%d\" sm=\"80\" rank=\"%d\" gdr=\"1\"/></pci><pci busid=\"0000:%d3:00.0\" class=\"0x02\" "
                "link_speed=\"8 GT/s\" link_width=\"%d\"><nic><net dev=\"%d\" speed=\"400000\" "
                "gdr=\"1\"/></nic></pci></pci></cpu>",
                c, c, c, c, c, c, widths[i][c], c);
        strcat(text, "</system>");
        struct kl_topo *t = built(text);
        assert_int_equal(kl_topo_paths(t), ncclSuccess);
        assert_int_equal(kl_topo_net_faster(t, 0, 1), faster[i]);
        t->near_net[0] = t->near_net[1] = 10; /* exactly as fast */
        assert_false(kl_topo_net_faster(t, 0, 1));
        t->near_net[1] = 11;
        assert_false(kl_topo_net_faster(t, 0, 1));
        assert_false(kl_topo_net_faster(t, 1, 0));
        t->options.nccl = 22907;
        assert_true(kl_topo_net_faster(t, 0, 9)); /* not even here */
        t->options.nccl = 23003;
        assert_false(kl_topo_net_faster(t, 0, 9));
        assert_false(kl_topo_net_faster(t, 9, 0));
        kl_topo_free(t);
    }
}

/* ---- selection ---- */

/* One GPU per row, `nnets` equal NICs, all below one switch. */
static struct kl_topo *rail(int ngpus, int nnets)
{
    char *text;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    fprintf(to, "<system version=\"1\">" CPU "<pci busid=\"0000:01:00.0\" class=\"0x0604\" " LINK ">");
    for (int i = 0; i < ngpus; i++)
        fprintf(to,
                "<pci busid=\"0000:%02x:00.0\" class=\"0x0302\" " LINK
                "><gpu dev=\"%d\" sm=\"80\" rank=\"%d\" gdr=\"1\"/></pci>",
                0x10 + i, i, i);
    for (int i = 0; i < nnets; i++)
        fprintf(to,
                "<pci busid=\"0000:%02x:00.0\" class=\"0x02\" " LINK
                "><nic><net dev=\"%d\" speed=\"200000\" gdr=\"1\"/></nic></pci>",
                0x80 + i, i);
    fprintf(to, "</pci></cpu></system>");
    fclose(to);
    struct kl_topo *t = built(text);
    free(text);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

static const struct rail_case {
    int gpus, nets, channel;
    int net[8]; /* of GPU 0, 1, ... */
} rail_cases[] = {
    {4, 1, 0, {0, 0, 0, 0}},
    {4, 2, 0, {0, 1, 0, 1}},
    {4, 4, 0, {0, 2, 1, 3}}, /* device numbers mirrored in two bits */
    {8, 8, 0, {0, 4, 2, 6, 1, 5, 3, 7}},
    {8, 4, 0, {0, 2, 1, 3, 0, 2, 1, 3}}, /* higher bits do not count */
    {3, 3, 0, {0, 1, 2}},                /* not a power of two: as it is */
    {5, 3, 0, {0, 1, 2, 0, 1}},
    {2, 4, 0, {0, 2}},
    {2, 4, 1, {1, 3}}, /* two NICs per GPU: channels alternate */
    {2, 4, 2, {0, 2}},
    {2, 3, 1, {1, 2}},
};

static void gpus_spread_over_nics(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, rail_cases)
    {
        struct kl_topo *t = rail(c->gpus, c->nets);

        for (int g = 0; g < c->gpus; g++) {
            int net = -1;
            assert_int_equal(kl_topo_local_net(t, g, c->channel, &net), ncclSuccess);
            if (net != c->net[g])
                fail_msg("%d GPUs, %d NICs, channel %d: GPU %d uses %d", c->gpus, c->nets, c->channel, g, net);
        }
        kl_topo_free(t);
    }
}

static void nics_are_listed_for_a_search(void **state)
{
    struct kl_topo *t = rail(2, 4);
    int net[4], n;

    (void)state;
    assert_int_equal(kl_topo_net_list(t, KL_PATH_PIX, -1, net, &n), ncclSuccess);
    assert_int_equal(n, 4);
    static const int all[] = {0, 1, 2, 3};
    assert_memory_equal(net, all, sizeof all);
    assert_int_equal(kl_topo_net_list(t, KL_PATH_LOC, 1, net, &n), ncclSuccess); /* one GPU, only its own */
    assert_int_equal(n, 2);
    assert_int_equal(net[0], 2);
    assert_int_equal(net[1], 3);
    kl_topo_free(t);
}

#define NIC(bus, dev)                                                                                                  \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x02\" " LINK "><nic><net dev=\"" dev                                    \
    "\" speed=\"100000\" gdr=\"1\"/></nic></pci>"
#define HOST(hash, rank)                                                                                               \
    "<cpu host_hash=\"" hash "\" numaid=\"0\" arch=\"arm64\">" PCI(                                                    \
        "class=\"0x0302\" " LINK, "<gpu dev=\"0\" sm=\"100\" rank=\"" rank "\" gdr=\"1\">"                             \
                                  "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu>")       \
        NIC("05", "0") NIC("06", "1") "</cpu>"

/* Since 2.27.5 the NICs of an NVLink domain are listed by turns, unless NCCL_MNNVL_SCATTER_NETS_ENABLE is 0. */
static void nics_of_a_domain_take_turns(void **state)
{
    static const struct {
        const char *nccl;
        bool scatter;
        int hosts[4];
    } cases[] = {
        {"2.27.3", true, {0, 0, 1, 1}},
        {"2.27.5", true, {0, 1, 0, 1}},
        {"2.27.5", false, {0, 0, 1, 1}},
        {"2.30.7", true, {0, 1, 0, 1}},
    };

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_topo *t = built("<system version=\"1\">" HOST("0xa", "0") HOST("0xb", "1") "</system>");
        int net[4], n;

        t->options.nccl = kl_nccl_parse(k->nccl);
        t->options.scatter_nets = k->scatter;
        assert_int_equal(kl_topo_paths(t), ncclSuccess);
        assert_int_equal(t->nhosts, 2);
        assert_int_equal(kl_topo_net_list(t, KL_PATH_PIX, -1, net, &n), ncclSuccess);
        assert_int_equal(n, 4);
        for (int i = 0; i < 4; i++) {
            const struct kl_node *node = &t->node[kl_topo_at(t, KL_NODE_NET, net[i])];

            if (kl_id_host(node->id) != k->hosts[i])
                fail_msg("%s: NIC %d is of host %d", k->nccl, i, (int)kl_id_host(node->id));
        }
        kl_topo_free(t);
    }
}

/* ---- transports ---- */

struct driver {
    bool works, access;
};

static bool p2p_works(void *ctx, int a, int b)
{
    (void)a, (void)b;
    return ((struct driver *)ctx)->works;
}

static bool peer_access(void *ctx, int a, int b)
{
    (void)a, (void)b;
    return ((struct driver *)ctx)->access;
}

static const struct driver_case {
    const char *name;
    bool works, access, nvlink;
    int ignore;
    ncclResult_t rc;
    int type; /* of the path */
} driver_cases[] = {
    {"all fine", true, true, false, 0, ncclSuccess, KL_PATH_PIX},
    {"no P2P over PCI: through the CPU", false, true, false, 0, ncclSuccess, KL_PATH_PHB},
    {"no P2P over NVLink: broken", false, true, true, 0, ncclUnhandledCudaError, 0},
    {"broken, but told to go on", false, true, true, 1, ncclSuccess, KL_PATH_PHB},
    {"not asked", false, true, true, 2, ncclSuccess, KL_PATH_NVL},
    {"no access: shared memory, the path stays", true, false, false, 0, ncclSuccess, KL_PATH_PIX},
};

static void drivers_have_a_say(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, driver_cases)
    {
        struct driver driver = {c->works, c->access};
        struct kl_topo *t;

        if (c->nvlink)
            assert_int_equal(
                build("<system version=\"1\">" CPU "<pci busid=\"0000:01:00.0\" class=\"0x0302\" " LINK
                      "><gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">"
                      "<nvlink target=\"0000:02:00.0\" count=\"1\" tclass=\"0x0302\"/></gpu></pci>"
                      "<pci busid=\"0000:02:00.0\" class=\"0x0302\" " LINK
                      "><gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\">"
                      "<nvlink target=\"0000:01:00.0\" count=\"1\" tclass=\"0x0302\"/></gpu></pci></cpu></system>",
                      &t),
                ncclSuccess);
        else
            t = rail(2, 0);
        t->options.ignore_disabled_p2p = c->ignore;
        t->options.p2p_works = p2p_works;
        t->options.peer_access = peer_access;
        t->options.peer_ctx = &driver;
        expect_case(c->name, kl_topo_paths(t) == c->rc);
        if (!c->rc) expect_case(c->name, kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1)->type == c->type);
        kl_topo_free(t);
    }
}

static void without_p2p_and_shared_memory_there_is_the_network(void **state)
{
    struct driver driver = {true, false};
    struct kl_topo *t = rail(2, 1);

    (void)state;
    t->options.peer_access = peer_access;
    t->options.peer_ctx = &driver;
    t->options.shm_disable = true;
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1)->type, KL_PATH_NET);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1)->rule, KL_RULE_NET_FASTER);
    assert_int_equal(kl_topo_trim(&t, 1, 2), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 1);
    assert_int_equal(t->count[KL_NODE_NET], 1);
    kl_topo_free(t);
}

static void affinity_follows_the_gpu(void **state)
{
    struct kl_topo *t =
        built("<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\" affinity=\"0000000f,ffff0000\">" PCI(
            "class=\"0x0302\" " LINK, GPU) "</cpu></system>");
    struct kl_cpuset allowed = {{0}}, cpus = {{0}}, before;

    (void)state;
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    kl_cpuset_add(&allowed, 3);
    before = cpus;
    assert_false(kl_topo_affinity(t, 0, &allowed, &cpus)); /* nothing in common */
    assert_memory_equal(&before, &cpus, sizeof(struct kl_cpuset));
    kl_cpuset_add(&allowed, 17);
    assert_true(kl_topo_affinity(t, 0, &allowed, &cpus));
    assert_int_equal(kl_cpuset_count(&cpus), 1);
    assert_true(kl_cpuset_has(&cpus, 17));
    t->options.ignore_cpu_affinity = true;
    assert_true(kl_topo_affinity(t, 0, &allowed, &cpus));
    assert_int_equal(kl_cpuset_count(&cpus), 20);
    kl_topo_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_ids_are_one_end),
        cmocka_unit_test(the_network_must_be_faster_for_both),
        cmocka_unit_test(gpus_spread_over_nics),
        cmocka_unit_test(nics_are_listed_for_a_search),
        cmocka_unit_test(nics_of_a_domain_take_turns),
        cmocka_unit_test(drivers_have_a_say),
        cmocka_unit_test(without_p2p_and_shared_memory_there_is_the_network),
        cmocka_unit_test(affinity_follows_the_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
