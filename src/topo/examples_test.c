/* SPDX-License-Identifier: Apache-2.0 */
/* The worked examples of the topology specification: every number in them. The machines are in tests/data/examples/. */
#include "tests/kolo_test.h"
#include "topo/paths.h"
#include "topo/test_print.h"

#include <stdio.h>
#include <stdlib.h>

enum variant { PLAIN, NICS_WITHOUT_GDR, GDR_LOC, GDR_PIX, GDR_OVER_C2C, NO_NVB, NO_PXN, NO_P2P, WITH_COMM, NO_NETS };

static struct kl_topo_options options_for(enum variant v)
{
    struct kl_topo_options o = KL_TOPO_OPTIONS;

    o.nccl = KL_NCCL_2_26_3; /* the release that the examples were worked out for */

    o.communicator = v == WITH_COMM;
    if (v == GDR_LOC) o.gdr_level = KL_PATH_LOC;
    if (v == GDR_PIX) o.gdr_level = KL_PATH_PIX;
    o.gdr_c2c = v == GDR_OVER_C2C;
    o.nvb_disable = v == NO_NVB;
    o.pxn_disable = v == NO_PXN;
    if (v == NO_P2P) o.p2p_level = KL_PATH_LOC;
    return o;
}

static struct kl_topo *machine(const char *name, enum variant v)
{
    struct kl_topo_options options = options_for(v);
    struct kl_xml *xml;
    struct kl_topo *t;
    char path[256];

    snprintf(path, sizeof path, "tests/data/examples/%s.xml", name);
    assert_int_equal(kl_xml_load(path, kl_xml_topo_schema, &xml), ncclSuccess);
    for (int e = 0; e < kl_xml_count(xml); e++) {
        if (v == NICS_WITHOUT_GDR && !strcmp(kl_xml_tag(xml, e), "net")) kl_xml_set(xml, e, "gdr", "0");
        if (v == NO_NETS && !strcmp(kl_xml_tag(xml, e), "net")) kl_xml_remove(xml, e);
    }
    assert_int_equal(kl_topo_build(xml, &options, &t), ncclSuccess);
    kl_xml_free(xml);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

/* "GPU/0-11000" as a node. */
static int node_named(const struct kl_topo *t, const char *name)
{
    char text[KL_NODE_TEXT];

    for (int i = 0; i < t->nnodes; i++)
        if (!strcmp(name, kl_node_text(&t->node[i], text))) return i;
    fail_msg("no node %s", name);
    return -1;
}

/* ---- paths ---- */

static const struct path_case {
    const char *machine;
    enum variant variant;
    const char *from, *to, *want;
    const char *via; /* local ids of the nodes reached; NULL: not looked at */
} path_cases[] = {
    /* 1: two switches below one CPU */
    {"two-switches", PLAIN, "GPU/0-11000", "GPU/0-11000", "0/5000.0/LOC", ""},
    {"two-switches", PLAIN, "CPU/0-0", "GPU/0-11000", "2/24.0/PHB", "10000>11000"},
    {"two-switches", PLAIN, "NET/0-0", "GPU/0-11000", "3/24.0/PIX", "12000>10000>11000"},
    {"two-switches", PLAIN, "GPU/0-21000", "GPU/0-11000", "4/24.0/PHB", "20000>0>10000>11000"},
    {"two-switches", PLAIN, "NET/0-1", "GPU/0-11000", "5/24.0/PHB", "22000>20000>0>10000>11000"},
    {"two-switches", PLAIN, "GPU/0-11000", "NET/0-1", "5/24.0/PHB", NULL},
    {"two-switches", PLAIN, "NET/0-0", "NET/0-1", "6/24.0/PHB", NULL},
    {"two-switches", NICS_WITHOUT_GDR, "GPU/0-11000", "NET/0-0", "5/24.0/PHB", "10000>0>10000>12000>0"},
    {"two-switches", NICS_WITHOUT_GDR, "NET/0-0", "GPU/0-11000", "5/24.0/PHB", "12000>10000>0>10000>11000"},
    {"two-switches", NICS_WITHOUT_GDR, "GPU/0-21000", "NET/0-1", "5/24.0/PHB", "20000>0>20000>22000>1"},
    {"two-switches", NICS_WITHOUT_GDR, "NET/0-1", "GPU/0-21000", "5/24.0/PHB", "22000>20000>0>20000>21000"},
    {"two-switches", NICS_WITHOUT_GDR, "GPU/0-11000", "NET/0-1", "5/24.0/PHB", NULL},
    /* 2: two NUMA nodes */
    {"two-sockets", PLAIN, "GPU/0-18000", "GPU/0-19000", "2/12.0/PIX", NULL},
    {"two-sockets", PLAIN, "GPU/0-18000", "GPU/0-86000", "5/10.0/SYS", "17000>0>1>85000>86000"},
    {"two-sockets", PLAIN, "GPU/0-18000", "CPU/0-0", "2/12.0/PHB", NULL},
    {"two-sockets", PLAIN, "GPU/0-18000", "CPU/0-1", "3/10.0/SYS", NULL},
    {"two-sockets", PLAIN, "GPU/0-18000", "NET/0-0", "4/6.0/PHB", "17000>0>30000>0"},
    {"two-sockets", PLAIN, "GPU/0-86000", "NET/0-0", "5/6.0/SYS", "85000>1>0>30000>0"},
    {"two-sockets", PLAIN, "NET/0-0", "CPU/0-1", "3/6.0/SYS", NULL},
    /* 2b: the network is faster than the sockets' link; 2c: AMD */
    {"net-faster", PLAIN, "GPU/0-18000", "GPU/0-86000", "5/10.0/SYS", NULL},
    {"net-faster", PLAIN, "GPU/0-18000", "NET/0-0", "3/24.0/PIX", NULL},
    {"net-faster", PLAIN, "GPU/0-18000", "NET/0-1", "6/10.0/SYS", NULL},
    {"net-faster", PLAIN, "NET/0-0", "NET/0-1", "7/10.0/SYS", NULL},
    {"net-faster", WITH_COMM, "GPU/0-18000", "GPU/0-86000", "5/10.0/NET", NULL},
    {"net-faster", WITH_COMM, "GPU/0-86000", "GPU/0-18000", "5/10.0/NET", NULL},
    {"net-faster-amd", PLAIN, "GPU/0-18000", "GPU/0-86000", "5/16.0/SYS", NULL},
    {"net-faster-amd", WITH_COMM, "GPU/0-18000", "GPU/0-86000", "5/16.0/NET", NULL},
    /* 3: NVSwitch, PXN */
    {"nvswitch", PLAIN, "GPU/0-2000", "GPU/0-83000", "2/240.0/NVL", "0>83000"},
    {"nvswitch", PLAIN, "GPU/0-2000", "NVS/0-0", "1/240.0/NVL", NULL},
    {"nvswitch", PLAIN, "GPU/0-2000", "CPU/0-1", "3/16.0/SYS", NULL},
    {"nvswitch", PLAIN, "GPU/0-2000", "NET/0-1", "3/24.0/PIX", NULL},
    {"nvswitch", PLAIN, "GPU/0-2000", "NET/0-2", "5/24.0/PXN", "0>82000>81000>84000>2"},
    {"nvswitch", PLAIN, "GPU/0-2000", "NET/0-3", "5/24.0/PXN", "0>83000>81000>85000>3"},
    {"nvswitch", PLAIN, "GPU/0-83000", "NET/0-0", "5/24.0/PXN", "0>2000>1000>4000>0"},
    {"nvswitch", PLAIN, "GPU/0-82000", "NET/0-1", "5/24.0/PXN", "0>3000>1000>5000>1"},
    {"nvswitch", PLAIN, "NET/0-2", "GPU/0-2000", "6/16.0/SYS", NULL},
    {"nvswitch", PLAIN, "NET/0-0", "NET/0-2", "7/16.0/SYS", NULL},
    {"nvswitch", PLAIN, "NET/0-0", "NET/0-1", "4/24.0/PIX", NULL},
    {"nvswitch", PLAIN, "NVS/0-0", "CPU/0-0", "0/0.0/DIS", NULL},
    {"nvswitch", GDR_LOC, "GPU/0-2000", "NET/0-0", "5/24.0/PHB", "1000>0>1000>4000>0"},
    {"nvswitch", GDR_LOC, "GPU/0-2000", "NET/0-2", "6/16.0/SYS", "1000>0>1>81000>84000>2"},
    {"nvswitch", GDR_LOC, "GPU/0-82000", "NET/0-0", "6/16.0/SYS", "81000>1>0>1000>4000>0"},
    {"nvswitch", GDR_LOC, "GPU/0-83000", "NET/0-3", "5/24.0/PHB", "81000>1>81000>85000>3"},
    {"nvswitch", GDR_LOC, "NET/0-0", "GPU/0-3000", "5/24.0/PHB", "4000>1000>0>1000>3000"},
    {"nvswitch", GDR_PIX, "GPU/0-2000", "NET/0-2", "5/24.0/PXN", "0>82000>81000>84000>2"},
    {"nvswitch", GDR_PIX, "GPU/0-2000", "NET/0-0", "3/24.0/PIX", NULL},
    /* 4: NVLink ring */
    {"nvlink-ring", PLAIN, "GPU/0-6000", "GPU/0-7000", "1/40.0/NVL", "7000"},
    {"nvlink-ring", PLAIN, "GPU/0-6000", "GPU/0-85000", "1/20.0/NVL", NULL},
    {"nvlink-ring", PLAIN, "GPU/0-6000", "GPU/0-84000", "2/20.0/NVB", "85000>84000"},
    {"nvlink-ring", PLAIN, "GPU/0-84000", "GPU/0-6000", "2/20.0/NVB", "7000>6000"},
    {"nvlink-ring", PLAIN, "GPU/0-7000", "GPU/0-85000", "2/20.0/NVB", "84000>85000"},
    {"nvlink-ring", PLAIN, "GPU/0-85000", "GPU/0-7000", "2/20.0/NVB", "6000>7000"},
    {"nvlink-ring", PLAIN, "GPU/0-6000", "NET/0-0", "3/12.0/PIX", NULL},
    {"nvlink-ring", PLAIN, "GPU/0-7000", "NET/0-0", "3/12.0/PIX", NULL},
    {"nvlink-ring", PLAIN, "GPU/0-84000", "NET/0-0", "6/6.0/SYS", NULL},
    {"nvlink-ring", PLAIN, "GPU/0-85000", "NET/0-0", "4/12.0/PXN", "6000>4000>8000>0"},
    {"nvlink-ring", PLAIN, "NET/0-0", "GPU/0-85000", "6/6.0/SYS", NULL},
    {"nvlink-ring", PLAIN, "NET/0-0", "CPU/0-1", "4/6.0/SYS", NULL},
    {"nvlink-ring", NO_NVB, "GPU/0-6000", "GPU/0-84000", "5/6.0/SYS", "4000>0>1>82000>84000"},
    {"nvlink-ring", NO_PXN, "GPU/0-85000", "NET/0-0", "6/6.0/SYS", NULL},
    {"nvlink-ring", NO_P2P, "GPU/0-6000", "GPU/0-7000", "4/12.0/PHB", "4000>0>4000>7000"},
    {"nvlink-ring", NO_P2P, "GPU/0-6000", "GPU/0-84000", "5/6.0/SYS", "4000>0>1>82000>84000"},
    {"nvlink-ring", NO_P2P, "GPU/0-84000", "GPU/0-85000", "4/12.0/PHB", "82000>1>82000>85000"},
    {"nvlink-ring", NO_P2P, "GPU/0-85000", "NET/0-0", "6/6.0/SYS", "82000>1>0>4000>8000>0"},
    /* 5: C2C */
    {"c2c", PLAIN, "GPU/0-901000", "CPU/0-0", "1/450.0/C2C", NULL},
    {"c2c", PLAIN, "GPU/0-901000", "CPU/0-1", "2/6.0/SYS", NULL},
    {"c2c", PLAIN, "GPU/0-901000", "GPU/0-1901000", "3/6.0/SYS", NULL},
    {"c2c", PLAIN, "GPU/0-901000", "NET/0-0", "3/48.0/PHB", NULL},
    {"c2c", PLAIN, "GPU/0-1901000", "NET/0-0", "4/6.0/SYS", NULL},
    {"c2c", PLAIN, "NET/0-0", "GPU/0-901000", "3/48.0/PHB", NULL},
    /* 6: Broadcom switches */
    {"broadcom", PLAIN, "GPU/0-4000", "GPU/0-6000", "2/24.0/PIX", "1000>6000"},
    {"broadcom", PLAIN, "GPU/0-4000", "NET/0-0", "3/24.0/PIX", NULL},
    {"broadcom", PLAIN, "GPU/0-6000", "NET/0-1", "3/12.5/PIX", NULL},
    {"broadcom", PLAIN, "NET/0-0", "NET/0-1", "2/12.5/LOC", NULL},
    {"no-broadcom", PLAIN, "GPU/0-4000", "GPU/0-6000", "4/24.0/PXB", "3000>1000>5000>6000"},
    {"no-broadcom", PLAIN, "GPU/0-4000", "NET/0-0", "5/24.0/PXB", NULL},
    {"no-broadcom", PLAIN, "GPU/0-6000", "NET/0-0", "3/24.0/PIX", NULL},
    {"broadcom-gen5", PLAIN, "GPU/0-4000", "GPU/0-6000", "2/24.0/PIX", "1000>6000"},
    /* 7: two hosts */
    {"two-hosts", PLAIN, "GPU/0-801000", "GPU/1-901000", "2/720.0/NVL", NULL},
    {"two-hosts", PLAIN, "GPU/0-801000", "CPU/0-0", "1/250.0/C2C", NULL},
    {"two-hosts", PLAIN, "GPU/0-801000", "CPU/1-0", "0/0.0/DIS", NULL},
    {"two-hosts", PLAIN, "GPU/0-801000", "NET/0-0", "3/48.0/PHB", NULL},
    {"two-hosts", PLAIN, "GPU/0-801000", "NET/1-0", "0/0.0/DIS", NULL},
};

static void paths_are_those_of_the_tables(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, path_cases)
    {
        struct kl_topo *t = machine(c->machine, c->variant);
        const struct kl_path *p = kl_path(t, node_named(t, c->from), node_named(t, c->to));
        char got[64], via[256] = "", label[512];

        snprintf(got, sizeof got, "%d/%.1f/%s", p->hops, (double)p->bw, kl_path_type_name[p->type]);
        for (int k = 0; k < p->hops; k++)
            snprintf(via + strlen(via), sizeof via - strlen(via), "%s%lx", k ? ">" : "",
                     (unsigned long)kl_id_local(t->node[t->link[kl_path_hops(t, p)[k]].to].id));
        snprintf(label, sizeof label, "%s (%d): %s to %s is %s via %s", c->machine, c->variant, c->from, c->to, got,
                 via);
        expect_case(label, !strcmp(got, c->want));
        expect_case(label, !c->via || !strcmp(via, c->via));
        kl_topo_free(t);
    }
}

/* ---- links ---- */

static const struct link_case {
    const char *machine, *node, *want;
} link_cases[] = {
    {"two-switches", "PCI/0-10000", "PCI[24.0]GPU/0-11000 PCI[24.0]NIC/0-12000 PCI[24.0]CPU/0-0"},
    {"two-switches", "CPU/0-0", "PCI[24.0]PCI/0-10000 PCI[24.0]PCI/0-20000"},
    {"two-switches", "NIC/0-12000", "NET[25.0]NET/0-0 PCI[24.0]PCI/0-10000"},
    {"two-sockets", "CPU/0-0", "PCI[12.0]PCI/0-17000 SYS[10.0]CPU/0-1 PCI[6.0]NIC/0-30000"},
    {"two-sockets", "CPU/0-1", "PCI[12.0]PCI/0-85000 SYS[10.0]CPU/0-0"},
    {"two-sockets", "PCI/0-85000", "PCI[12.0]GPU/0-86000 PCI[12.0]GPU/0-87000 PCI[12.0]CPU/0-1"},
    {"nvswitch", "GPU/0-3000", "NVL[240.0]NVS/0-0 PCI[24.0]PCI/0-1000"},
    {"nvswitch", "NVS/0-0", "NVL[240.0]GPU/0-2000 NVL[240.0]GPU/0-3000 NVL[240.0]GPU/0-82000 NVL[240.0]GPU/0-83000"},
    {"nvswitch", "PCI/0-1000",
     "PCI[24.0]GPU/0-2000 PCI[24.0]GPU/0-3000 PCI[24.0]NIC/0-4000 PCI[24.0]NIC/0-5000 PCI[24.0]CPU/0-0"},
    {"nvlink-ring", "GPU/0-84000", "NVL[40.0]GPU/0-85000 NVL[20.0]GPU/0-7000 PCI[12.0]PCI/0-82000"},
    {"c2c", "GPU/0-901000", "PCI[12.0]CPU/0-0 C2C[450.0]CPU/0-0"},
    {"c2c", "CPU/0-0", "C2C[450.0]GPU/0-901000 PCI[48.0]NIC/0-1000 PCI[12.0]GPU/0-901000 SYS[6.0]CPU/0-1"},
    {"c2c", "CPU/0-1", "C2C[450.0]GPU/0-1901000 PCI[12.0]GPU/0-1901000 SYS[6.0]CPU/0-0"},
    {"broadcom", "PCI/0-1000", "PCI[24.0]GPU/0-4000 PCI[24.0]GPU/0-6000 PCI[24.0]NIC/0-7000 PCI[24.0]CPU/0-0"},
    {"broadcom", "NIC/0-7000", "NET[25.0]NET/0-0 NET[12.5]NET/0-1 PCI[24.0]PCI/0-1000"},
    {"two-hosts", "GPU/1-801000", "NVL[720.0]NVS/0-0 PCI[48.0]CPU/1-0 C2C[250.0]CPU/1-0"},
};

static void links_are_in_order(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, link_cases)
    {
        struct kl_topo *t = machine(c->machine, PLAIN);
        const struct kl_node *n = &t->node[node_named(t, c->node)];
        char got[512] = "", name[KL_NODE_TEXT];

        for (int k = n->first_link; k < n->first_link + n->nlinks; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s[%.1f]%s", *got ? " " : "",
                     kl_link_type_name[t->link[k].type], (double)t->link[k].bw,
                     kl_node_text(&t->node[t->link[k].to], name));
        if (strcmp(got, c->want) != 0) fail_msg("%s %s: %s", c->machine, c->node, got);
        kl_topo_free(t);
    }
}

static void flattened_switches_are_gone(void **state)
{
    struct kl_topo *t = machine("broadcom", PLAIN);

    (void)state;
    assert_int_equal(t->count[KL_NODE_PCI], 1);
    assert_int_equal(t->node[t->first[KL_NODE_PCI]].pci.device, 0x1000c0101000ffff);
    kl_topo_free(t);
    t = machine("no-broadcom", PLAIN);
    assert_int_equal(t->count[KL_NODE_PCI], 3);
    kl_topo_free(t);
    t = machine("broadcom-gen5", PLAIN);
    assert_int_equal(t->count[KL_NODE_PCI], 1);
    kl_topo_free(t);
}

/* ---- bounds ---- */

static const struct bw_case {
    const char *machine;
    enum variant variant;
    float max, total;
} bw_cases[] = {
    {"two-switches", PLAIN, 24, 24},  {"two-switches", NO_NETS, 24, 24}, {"two-sockets", PLAIN, 6, 12},
    {"two-sockets", NO_NETS, 12, 12}, {"nvswitch", PLAIN, 24, 240},      {"nvswitch", NO_NETS, 240, 240},
    {"nvlink-ring", PLAIN, 12, 60},   {"nvlink-ring", NO_NETS, 40, 60},  {"c2c", PLAIN, 48, 12},
    {"two-hosts", PLAIN, 48, 720},
};

static void search_bounds(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, bw_cases)
    {
        struct kl_topo *t = machine(c->machine, c->variant);

        expect_case(c->machine, t->max_bw == c->max);
        expect_case(c->machine, t->total_bw == c->total);
        kl_topo_free(t);
    }
}

/* ---- checks and selections ---- */

static bool p2p(const struct kl_topo *t, int a, int b, bool *read)
{
    struct kl_p2p answer;

    assert_int_equal(kl_topo_p2p(t, a, b, &answer), ncclSuccess);
    if (read) *read = answer.read;
    return answer.p2p;
}

static enum kl_gdr_mode gdr(const struct kl_topo *t, int rank, int net, bool read)
{
    struct kl_gdr answer;

    assert_int_equal(kl_topo_gdr(t, rank, net, read, &answer), ncclSuccess);
    return answer.mode;
}

static int local_net(const struct kl_topo *t, int gpu, int channel)
{
    int net;

    assert_int_equal(kl_topo_local_net(t, gpu, channel, &net), ncclSuccess);
    return net;
}

static void two_switches(void **state)
{
    struct kl_topo *t = machine("two-switches", PLAIN);

    (void)state;
    assert_false(p2p(t, 0, 1, NULL));
    assert_false(kl_topo_net_faster(t, 0, 1));
    for (int g = 0; g < 2; g++)
        for (int n = 0; n < 2; n++) {
            assert_int_equal(gdr(t, g, n, false), g == n ? KL_GDR_DEFAULT : KL_GDR_OFF);
            assert_int_equal(gdr(t, g, n, true), g == n ? KL_GDR_DEFAULT : KL_GDR_OFF);
            assert_int_equal(local_net(t, g, 7), g);
            assert_int_equal(kl_topo_local_gpu(t, n), n);
        }
    kl_topo_free(t);
    t = machine("two-switches", NICS_WITHOUT_GDR);
    assert_int_equal(local_net(t, 0, 0), 0);
    assert_int_equal(local_net(t, 1, 0), 1);
    kl_topo_free(t);
}

static void two_sockets(void **state)
{
    struct kl_topo *t = machine("two-sockets", PLAIN);

    (void)state;
    assert_true(p2p(t, 0, 1, NULL));
    assert_false(p2p(t, 0, 2, NULL));
    t->options.p2p_level = kl_path_level("4"); /* the old number of SYS */
    assert_true(p2p(t, 0, 2, NULL));
    t->options.p2p_level = kl_path_level("FOO");
    assert_false(p2p(t, 0, 2, NULL));
    for (int g = 0; g < 4; g++) {
        assert_int_equal(gdr(t, g, 0, false), KL_GDR_OFF);
        assert_int_equal(local_net(t, g, 3), 0);
    }
    assert_false(kl_topo_net_faster(t, 0, 2));
    assert_int_equal(kl_topo_local_gpu(t, 0), 0);
    kl_topo_free(t);
}

static void network_faster_than_the_sockets(void **state)
{
    static const char *const machines[] = {"net-faster", "net-faster-amd"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct kl_topo *t = machine(machines[i], WITH_COMM);

        assert_int_equal(p2p(t, 0, 1, NULL), 0); /* also AMD: of type NET by now */
        assert_true(kl_topo_net_faster(t, 0, 1));
        assert_int_equal(kl_topo_trim(&t, 1, 2), ncclSuccess);
        assert_int_equal(kl_topo_paths(t), ncclSuccess);
        assert_int_equal(t->count[KL_NODE_GPU], 1);
        assert_int_equal(t->node[0].gpu.rank, 1);
        assert_int_equal(t->count[KL_NODE_NET], 2);
        assert_int_equal(local_net(t, 0, 0), 1);
        assert_float_equal(t->max_bw, 24, 0);
        assert_float_equal(t->total_bw, 24, 0);
        kl_topo_free(t);
    }
    struct kl_topo *t = machine("net-faster-amd", PLAIN);
    assert_true(p2p(t, 0, 1, NULL)); /* AMD with two GPUs: up to SYS */
    kl_topo_free(t);
}

static void network_not_used_inside(void **state)
{
    struct kl_topo *t = machine("net-faster", PLAIN);

    (void)state;
    t->options.communicator = t->options.net_disable_intra = true;
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    assert_int_equal(kl_topo_trim(&t, 0, 2), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 2);
    assert_int_equal(t->count[KL_NODE_NET], 0);
    assert_int_equal(t->count[KL_NODE_NIC], 2);
    kl_topo_free(t);
}

static void nvswitch(void **state)
{
    struct kl_topo *t = machine("nvswitch", PLAIN);
    int relay;
    bool read;

    (void)state;
    for (int a = 0; a < 4; a++) {
        assert_int_equal(local_net(t, a, 0), a); /* dev mirrored within two NICs */
        assert_int_equal(local_net(t, a, 5), a);
        assert_int_equal(kl_topo_local_gpu(t, a), a);
        for (int b = 0; b < 4; b++) {
            assert_true(p2p(t, a, b, &read));
            assert_int_equal(read, a != b);
            assert_int_equal(gdr(t, a, b, false), KL_GDR_DEFAULT);
            assert_int_equal(gdr(t, a, b, true), KL_GDR_DEFAULT);
        }
    }
    assert_int_equal(kl_topo_pxn_rank(t, 0, 3, &relay), ncclSuccess);
    assert_int_equal(relay, 3);
    assert_int_equal(kl_topo_pxn_rank(t, 0, 1, &relay), ncclSuccess);
    assert_int_equal(relay, 0);
    assert_true(kl_topo_all_nvlink(t));
    assert_false(kl_topo_split_nvlink(t));
    assert_false(kl_path_has_table(t, node_named(t, "NET/0-0"), KL_NODE_NVS));
    kl_topo_free(t);
}

static void nvlink_ring(void **state)
{
    static const int via[4][4] = {{-1, -1, 3, -1}, {-1, -1, -1, 2}, {1, -1, -1, -1}, {-1, 0, -1, -1}};
    struct kl_topo *t = machine("nvlink-ring", PLAIN);

    (void)state;
    for (int a = 0; a < 4; a++) {
        assert_int_equal(gdr(t, a, 0, false), a == 2 ? KL_GDR_OFF : KL_GDR_DEFAULT);
        assert_int_equal(gdr(t, a, 0, true), a == 2 ? KL_GDR_OFF : KL_GDR_DEFAULT);
        for (int b = 0; b < 4; b++) {
            struct kl_p2p answer;
            assert_int_equal(kl_topo_p2p(t, a, b, &answer), ncclSuccess);
            assert_true(answer.p2p);
            assert_false(answer.read); /* sm 70 */
            assert_int_equal(answer.via, via[a][b]);
        }
    }
    assert_true(kl_topo_all_nvlink(t));
    assert_false(kl_topo_split_nvlink(t));
    kl_topo_free(t);
    t = machine("nvlink-ring", NO_NVB);
    assert_false(p2p(t, 0, 2, NULL));
    kl_topo_free(t);
}

static void gdr_over_c2c(void **state)
{
    struct kl_topo *t = machine("c2c", PLAIN);

    (void)state;
    assert_int_equal(gdr(t, 0, 0, false), KL_GDR_OFF);
    assert_int_equal(gdr(t, 1, 0, false), KL_GDR_OFF);
    kl_topo_free(t);
    t = machine("c2c", GDR_OVER_C2C);
    assert_int_equal(gdr(t, 0, 0, false), KL_GDR_DEFAULT);
    assert_int_equal(gdr(t, 1, 0, false), KL_GDR_OFF);
    kl_topo_free(t);
}

static void a_nic_that_no_gpu_uses(void **state)
{
    struct kl_topo *t = machine("broadcom", PLAIN);

    (void)state;
    assert_int_equal(local_net(t, 0, 1), 0); /* bandwidth comes first */
    assert_int_equal(local_net(t, 1, 0), 0);
    assert_int_equal(kl_topo_local_gpu(t, 0), 0);
    assert_int_equal(kl_topo_local_gpu(t, 1), -1);
    kl_topo_free(t);
    t = machine("no-broadcom", PLAIN);
    assert_int_equal(kl_topo_local_gpu(t, 0), 1);
    kl_topo_free(t);
}

static void two_hosts(void **state)
{
    struct kl_topo *t = machine("two-hosts", PLAIN);

    (void)state;
    assert_int_equal(t->nhosts, 2);
    assert_int_equal(t->count[KL_NODE_NVS], 1);
    assert_int_equal(t->node[node_named(t, "GPU/1-801000")].id, 0x0100000000801000);
    assert_true(kl_topo_all_nvlink(t));
    kl_topo_free(t);
}

/* ---- print ---- */

static char *printed(const struct kl_topo *t)
{
    char *text;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    print_topo(t, to);
    fclose(to);
    return text;
}

static void prints_as_nccl_does(void **state)
{
    struct kl_topo *t = machine("two-switches", PLAIN);
    char *text = printed(t);

    (void)state;
    assert_string_equal(
        text,
        "=== System : maxBw 24.0 totalBw 24.0 ===\n"
        "CPU/0-0 (1/1/2)\n"
        "+ PCI[24.0] - PCI/0-10000 (0)\n"
        "              + PCI[24.0] - GPU/0-11000 (0)\n"
        "              + PCI[24.0] - NIC/0-12000\n"
        "                            + NET[25.0] - NET/0-0 (0/aaaa/1/25.000000)\n"
        "+ PCI[24.0] - PCI/0-20000 (0)\n"
        "              + PCI[24.0] - GPU/0-21000 (1)\n"
        "              + PCI[24.0] - NIC/0-22000\n"
        "                            + NET[25.0] - NET/0-1 (0/bbbb/1/25.000000)\n"
        "==========================================\n"
        "GPU/0-11000 :GPU/0-11000 (0/5000.0/LOC) GPU/0-21000 (4/24.0/PHB) CPU/0-0 (2/24.0/PHB) NET/0-0 (3/24.0/PIX) "
        "NET/0-1 (5/24.0/PHB) \n"
        "GPU/0-21000 :GPU/0-11000 (4/24.0/PHB) GPU/0-21000 (0/5000.0/LOC) CPU/0-0 (2/24.0/PHB) NET/0-0 (5/24.0/PHB) "
        "NET/0-1 (3/24.0/PIX) \n"
        "NET/0-0 :GPU/0-11000 (3/24.0/PIX) GPU/0-21000 (5/24.0/PHB) CPU/0-0 (3/24.0/PHB) NET/0-0 (0/5000.0/LOC) "
        "NET/0-1 (6/24.0/PHB) \n"
        "NET/0-1 :GPU/0-11000 (5/24.0/PHB) GPU/0-21000 (3/24.0/PIX) CPU/0-0 (3/24.0/PHB) NET/0-0 (6/24.0/PHB) "
        "NET/0-1 (0/5000.0/LOC) \n");
    free(text);
    kl_topo_free(t);
}

static const struct print_case {
    const char *machine, *part;
} print_cases[] = {
    {"two-sockets", "CPU/0-0 (1/1/2)\n"
                    "+ PCI[12.0] - PCI/0-17000 (0)\n"
                    "              + PCI[12.0] - GPU/0-18000 (0)\n"
                    "              + PCI[12.0] - GPU/0-19000 (1)\n"
                    "+ SYS[10.0] - CPU/0-1\n"
                    "+ PCI[6.0] - NIC/0-30000\n"
                    "             + NET[12.5] - NET/0-0 (0/1/1/12.500000)\n"},
    {"two-sockets", "\nNET/0-0 :GPU/0-18000 (4/6.0/PHB) "},
    {"nvswitch", "=== System : maxBw 24.0 totalBw 240.0 ===\n"
                 "CPU/0-0 (1/2/-1)\n"
                 "+ PCI[24.0] - PCI/0-1000 (0)\n"
                 "              + PCI[24.0] - GPU/0-2000 (0)\n"
                 "                            + NVL[240.0] - NVS/0-0\n"},
    {"nvswitch", "                            + NET[25.0] - NET/0-1 (0/200/1/25.000000)\n+ SYS[16.0] - CPU/0-1\n"},
    {"c2c", "CPU/0-0 (3/-1/-1)\n"
            "+ C2C[450.0] - GPU/0-901000\n"
            "+ PCI[48.0] - NIC/0-1000\n"
            "              + NET[50.0] - NET/0-0 (0/100/1/50.000000)\n"
            "+ PCI[12.0] - GPU/0-901000 (0)\n"
            "              + C2C[450.0] - CPU/0-0\n"
            "+ SYS[6.0] - CPU/0-1\n"},
    {"broadcom", "+ PCI[24.0] - PCI/0-1000 (1000c0101000ffff)\n"},
};

static void prints_trees(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, print_cases)
    {
        struct kl_topo *t = machine(c->machine, PLAIN);
        char *text = printed(t);

        if (!strstr(text, c->part)) fail_msg("%s:\n%s\nlacks\n%s", c->machine, text, c->part);
        free(text);
        kl_topo_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_those_of_the_tables),
        cmocka_unit_test(links_are_in_order),
        cmocka_unit_test(flattened_switches_are_gone),
        cmocka_unit_test(search_bounds),
        cmocka_unit_test(two_switches),
        cmocka_unit_test(two_sockets),
        cmocka_unit_test(network_faster_than_the_sockets),
        cmocka_unit_test(network_not_used_inside),
        cmocka_unit_test(nvswitch),
        cmocka_unit_test(nvlink_ring),
        cmocka_unit_test(gdr_over_c2c),
        cmocka_unit_test(a_nic_that_no_gpu_uses),
        cmocka_unit_test(two_hosts),
        cmocka_unit_test(prints_as_nccl_does),
        cmocka_unit_test(prints_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
