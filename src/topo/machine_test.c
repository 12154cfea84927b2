/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/machine.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/host.h"
#include "topo/paths.h"

#include <stdlib.h>
#include <unistd.h>

static const struct kl_cpu_facts skylake = {.arch = "x86_64", .vendor = "GenuineIntel", .family = 6, .model = 85};

/* A machine without sysfs, so that tests see the same everywhere. */
static struct kl_machine host_machine(const struct kl_host_device *device, int n)
{
    return (struct kl_machine){.device = device, .ndevices = n, .sysfs = "/nonexistent", .cpu = &skylake};
}

static void four_devices_on_one_node(void **state)
{
    struct kl_host_device device[4];
    struct kl_net_facts eth = {.name = "eth0", .speed_mbps = 10000, .max_comms = 65536};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    (void)state;
    for (int i = 0; i < 4; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    struct kl_machine m = host_machine(device, 4);
    m.net = &eth;
    m.nnets = 1;
    assert_int_equal(kl_machine_topo(&m, &options, 2, 4, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 4);
    assert_int_equal(t->count[KL_NODE_NET], 1);
    assert_false(t->inter); /* all ranks are here */
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, i, KL_NODE_GPU, k);
            assert_int_equal(p->type, i == k ? KL_PATH_LOC : KL_PATH_PIX);
            assert_float_equal(p->bw, i == k ? 5000 : 12, 0);
        }
    assert_float_equal(t->max_bw, 12, 0);
    assert_float_equal(t->total_bw, 12, 0);
    kl_topo_free(t);
}

static void devices_keep_nets_for_ranks_elsewhere(void **state)
{
    struct kl_host_device device[2] = {{.rank = 4, .ordinal = 0}, {.rank = 5, .ordinal = 1}};
    struct kl_net_facts eth = {.name = "eth0", .dev = 3, .speed_mbps = 25000};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    (void)state;
    struct kl_machine m = host_machine(device, 2);
    m.net = &eth;
    m.nnets = 1;
    assert_int_equal(kl_machine_topo(&m, &options, 5, 8, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_NET], 1);
    assert_int_equal(t->node[t->first[KL_NODE_NET]].net.dev, 3);
    assert_int_equal(kl_topo_gpu_of_rank(t, 5), 1);
    assert_int_equal(kl_topo_gpu_of_rank(t, 0), -1);
    kl_topo_free(t);
}

static void nodes_are_joined_by_the_cpus(void **state)
{
    struct kl_host_device device[3] = {
        {.rank = 0, .ordinal = 0, .numa = -1}, {.rank = 1, .ordinal = 1}, {.rank = 2, .ordinal = 2, .numa = 1}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;
    struct kl_p2p p2p;

    (void)state;
    struct kl_machine m = host_machine(device, 3);
    assert_int_equal(kl_machine_topo(&m, &options, 0, 3, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_CPU], 2);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1)->type, KL_PATH_PIX);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 2)->type, KL_PATH_SYS);
    assert_float_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 2)->bw, 10, 0);
    assert_int_equal(kl_topo_p2p(t, 0, 2, &p2p), ncclSuccess);
    assert_false(p2p.p2p);
    assert_int_equal(kl_topo_shm(t, 0, 2), KL_SHM_ALLOWED);
    kl_topo_free(t);
}

static void bus_ids_tell_who_is_a_cpu_of_this_machine(void **state)
{
    static const char *const own[] = {"ff00:01:00.0", "ff07:02:1f.3"}, *const others[] = {"0000:17:00.0",
                                                                                          "10000:e1:00.0",
                                                                                          "fe00:01:00.0"};

    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) assert_true(kl_host_device_is_own(kl_busid_parse(own[i])));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(kl_host_device_is_own(kl_busid_parse(others[i])));
}

static void document_of_host_devices(void **state)
{
    static const char want[] =
        "<system version=\"1\">\n"
        "  <cpu host_hash=\"0xabc\" numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"85\">\n"
        "    <pci busid=\"ff00:00:00.0\" class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">\n"
        "      <pci busid=\"ff00:01:00.0\" class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">\n"
        "        <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>\n"
        "      </pci>\n"
        "      <pci busid=\"ff00:01:00.1\" class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">\n"
        "        <gpu dev=\"0\" sm=\"80\" rank=\"1\" gdr=\"1\" replica=\"1\"/>\n"
        "      </pci>\n"
        "      <pci busid=\"ff00:02:01.0\" class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">\n"
        "        <gpu dev=\"33\" sm=\"80\" rank=\"2\" gdr=\"1\"/>\n"
        "      </pci>\n"
        "    </pci>\n"
        "  </cpu>\n"
        "</system>\n";
    struct kl_host_device device[3] = {
        {.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 0, .replica = 1}, {.rank = 2, .ordinal = 33}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    char *text;
    size_t bytes;

    (void)state;
    struct kl_machine m = host_machine(device, 3);
    m.host_hash = 0xabc;
    assert_int_equal(kl_machine_document(&m, &options, &xml), ncclSuccess);
    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    assert_string_equal(text, want);
    free(text);
    kl_xml_free(xml);
}

static void containers_without_a_common_shm_share_no_memory(void **state)
{
    struct kl_host_device device[2] = {{.rank = 0, .ordinal = 0, .shm_id = 1}, {.rank = 1, .ordinal = 1, .shm_id = 2}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    (void)state;
    struct kl_machine m = host_machine(device, 2);
    assert_int_equal(kl_machine_topo(&m, &options, 1, 2, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 1); /* only the network is left between them */
    kl_topo_free(t);
}

/* ---- files ---- */

#define GPU(bus, attrs) "<pci busid=\"0000:" bus ":00.0\" class=\"0x030200\"><gpu " attrs "></gpu></pci>"

static struct kl_xml *parse(const char *text)
{
    struct kl_xml *xml;

    assert_int_equal(kl_xml_parse("test.xml", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    return xml;
}

static const struct order_case {
    const char *name, *text;
    int bus[3]; /* of ranks 0, 1, 2 */
} order_cases[] = {
    {"document order", GPU("03", "") GPU("01", "") GPU("02", ""), {3, 1, 2}},
    {"by dev", GPU("03", "dev=\"2\"") GPU("01", "dev=\"1\"") GPU("02", "dev=\"0\""), {2, 1, 3}},
    {"equal devs", GPU("03", "dev=\"2\"") GPU("01", "dev=\"1\"") GPU("02", "dev=\"1\""), {3, 1, 2}},
    {"by rank",
     GPU("03", "dev=\"0\" rank=\"9\"") GPU("01", "dev=\"1\" rank=\"5\"") GPU("02", "dev=\"2\" rank=\"7\""),
     {1, 2, 3}},
    {"not all ranks",
     GPU("03", "dev=\"1\" rank=\"0\"") GPU("01", "dev=\"0\"") GPU("02", "dev=\"2\" rank=\"1\""),
     {1, 3, 2}},
};

static void files_number_their_gpus(void **state)
{
    struct kl_host_device device[3] = {{.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}, {.rank = 2, .ordinal = 2}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;

    (void)state;
    FOR_EACH_CASE(c, order_cases)
    {
        char text[2048];
        struct kl_topo *t;

        snprintf(text, sizeof text, "<system version=\"1\"><cpu>%s</cpu></system>", c->text);
        struct kl_xml *file = parse(text);
        struct kl_machine m = {.file = file, .device = device, .ndevices = 3};
        assert_int_equal(kl_machine_topo(&m, &options, 0, 3, &t, NULL), ncclSuccess);
        for (int r = 0; r < 3; r++)
            expect_case(c->name, t->node[kl_topo_gpu_of_rank(t, r)].id == (uint64_t)c->bus[r] << 12);
        kl_topo_free(t);
        kl_xml_free(file);
    }
}

static void ranks_may_share_a_gpu_of_a_file(void **state)
{
    static const char text[] = "<system version=\"1\"><cpu>"
                               "<pci busid=\"0000:01:00.0\" class=\"0x0302\"><gpu><nvlink target=\"0000:02:00.0\" "
                               "count=\"4\" tclass=\"0x0302\"/></gpu></pci>"
                               "<pci busid=\"0000:02:00.0\" class=\"0x0302\"><gpu><nvlink target=\"0000:01:00.0\" "
                               "count=\"4\" tclass=\"0x0302\"/></gpu></pci>"
                               "</cpu></system>";
    struct kl_host_device device[4] = {
        {.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}, {.rank = 2, .ordinal = 0}, {.rank = 3, .ordinal = 1}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file = parse(text);
    struct kl_machine m = {.file = file, .device = device, .ndevices = 4};
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_machine_topo(&m, &options, 3, 4, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 4);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            const struct kl_path *p = kl_path(t, kl_topo_gpu_of_rank(t, a), kl_topo_gpu_of_rank(t, b));
            if (a % 2 != b % 2) assert_int_equal(p->type, KL_PATH_NVL);
        }
    assert_int_equal(t->node[kl_topo_gpu_of_rank(t, 3)].id, 0x2001);
    kl_topo_free(t);
    kl_xml_free(file);
}

/* Older releases have a node for a card without usable NETs. */
static void cards_without_nets_go(void **state)
{
    static const struct {
        int nccl, cards;
    } cases[] = {{22606, 1}, {22703, 0}};
    struct kl_host_device device = {.rank = 0, .ordinal = 0};
    struct kl_xml *file = parse(
        "<system version=\"1\"><cpu>" GPU("01", "") "<nic><net name=\"a\" dev=\"0\" keep=\"0\"/></nic></cpu></system>");
    struct kl_machine m = {.file = file, .device = &device, .ndevices = 1};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_topo *t;

        options.nccl = c->nccl;
        assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclSuccess);
        assert_int_equal(t->count[KL_NODE_NIC], c->cards);
        assert_int_equal(t->count[KL_NODE_NET], 0);
        kl_topo_free(t);
    }
    kl_xml_free(file);
}

static void unusable_files_are_refused(void **state)
{
    struct kl_host_device device = {.rank = 0, .ordinal = 1};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *none = parse("<system version=\"1\"><cpu/></system>"), *empty = parse(" \n");
    struct kl_xml *one = parse("<system version=\"1\"><cpu>" GPU("01", "") "</cpu></system>"), *xml;
    struct kl_machine m = {.file = none, .device = &device, .ndevices = 1};

    (void)state;
    assert_int_equal(kl_machine_document(&m, &options, &xml), ncclInvalidUsage);
    m.file = empty;
    assert_int_equal(kl_machine_document(&m, &options, &xml), ncclInternalError);
    m.file = one;
    assert_int_equal(kl_machine_document(&m, &options, &xml), ncclInvalidUsage); /* has no device 1 */
    kl_xml_free(none);
    kl_xml_free(empty);
    kl_xml_free(one);
}

static const struct file_case {
    const char *text; /* NULL: no such file */
    ncclResult_t rc;
    bool used;
} file_cases[] = {
    {"<system version=\"1\"><cpu>" GPU("01", "") "</cpu></system>", ncclSuccess, true},
    {"<system version=\"1\"><cpu/></system>", ncclSuccess, false},
    {"", ncclSuccess, false},
    {NULL, ncclSuccess, false},
    {"<system version=\"2\"/>", ncclInvalidUsage, false},
    {"<system version=\"1\">", ncclInternalError, false},
};

static void files_are_loaded_as_communicators_do(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, file_cases)
    {
        char path[] = "/tmp/kolo_topo_XXXXXX";
        struct kl_xml *file;
        int fd = mkstemp(path);

        if (c->text) assert_true(write(fd, c->text, strlen(c->text)) == (ssize_t)strlen(c->text));
        close(fd);
        if (!c->text) unlink(path);
        expect_case(c->text ? c->text : "missing", kl_machine_read_file(path, NULL, NULL, &file) == c->rc);
        expect_case(c->text ? c->text : "missing", (file != NULL) == c->used);
        kl_xml_free(file);
        unlink(path);
    }
}

static void every_rank_needs_its_gpu(void **state)
{
    struct kl_host_device device = {.rank = 3, .ordinal = 0};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file = parse("<system version=\"1\"><cpu><pci busid=\"0000:01:00.0\" class=\"0x068000\">" GPU(
        "02", "") "</pci></cpu></system>");
    struct kl_machine m = {.file = file, .device = &device, .ndevices = 1};
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclInternalError);
    assert_int_equal(kl_machine_topo(&m, &options, 3, 4, &t, NULL), ncclInternalError);
    m.file = NULL;
    m.hosts = 2;
    assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclInvalidUsage);
    kl_xml_free(file);
}

static void machines_have_a_limit(void **state)
{
    struct kl_host_device device = {.rank = 0};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file = parse("<system version=\"1\"><cpu>" GPU("01", "") "</cpu></system>"), *xml;
    struct kl_machine m = {.file = file, .device = &device, .ndevices = 1, .hosts = KL_MACHINE_MAX_GPUS + 1};
    int pci = kl_xml_find(file, "pci", "busid", "0000:01:00.0"), elem;

    (void)state;
    assert_int_equal(kl_machine_document(&m, &options, &xml), ncclInvalidUsage);
    for (int i = 0; i < KL_MACHINE_MAX_GPUS; i++) assert_int_equal(kl_xml_add(file, pci, "gpu", &elem), ncclSuccess);
    assert_int_equal(kl_machine_check_file(file), ncclInvalidUsage);
    kl_xml_free(file);
}

static void hosts_of_one_nvlink_domain(void **state)
{
    static const char text[] =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
        "<pci busid=\"0008:01:00.0\" class=\"0x0302\"><gpu sm=\"100\">"
        "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
        "<pci busid=\"0000:03:00.0\" class=\"0x0200\"><nic><net name=\"a\"/></nic></pci></cpu></system>";
    struct kl_host_device device = {.rank = 0, .ordinal = 0};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file = parse(text);
    struct kl_machine m = {.file = file, .device = &device, .ndevices = 1, .hosts = 3};
    struct kl_topo *t;

    (void)state;
    options.mnnvl = true;
    assert_int_equal(kl_machine_topo(&m, &options, 2, 5, &t, NULL), ncclSuccess);
    assert_int_equal(t->nhosts, 3);
    assert_int_equal(t->own_host, 2);
    assert_int_equal(t->count[KL_NODE_GPU], 3);
    assert_int_equal(t->count[KL_NODE_NVS], 1);
    assert_int_equal(t->count[KL_NODE_NET], 3);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 2)->type, KL_PATH_NVL);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_NET, 2)->type, KL_PATH_DIS);
    kl_topo_free(t);
    kl_xml_free(file);
}

/* In a file of several hosts a rank brings in the NETs of its own host only, so its host's nodes come first. */
static void hosts_of_one_file_stay_together(void **state)
{
    static const char text[] =
        "<system version=\"1\">"
        "<cpu numaid=\"1\" host_hash=\"0xb\"><nic><net name=\"a\" dev=\"0\"/></nic></cpu>"
        "<cpu numaid=\"0\" host_hash=\"0xb\">" GPU(
            "01", "rank=\"1\"") "</cpu>"
                                "<cpu numaid=\"0\" host_hash=\"0xa\">" GPU(
                                    "01", "rank=\"0\"") "<nic><net name=\"a\" dev=\"0\"/></nic></cpu></system>";
    struct kl_host_device device[2] = {{.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file = parse(text);
    struct kl_machine m = {.file = file, .device = device, .ndevices = 2};
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclSuccess);
    assert_int_equal(t->host_hash[0], 0xa); /* rank 0's */
    assert_int_equal(t->count[KL_NODE_NET], 2);
    assert_int_equal(kl_id_host(t->node[kl_topo_at(t, KL_NODE_NET, 0)].id), 0);
    kl_topo_free(t);
    kl_xml_free(file);
}

/* Devices of several hosts: each host of the file has its own GPUs; further hosts repeat the file. */
static void devices_are_on_hosts(void **state)
{
    static const char text[] = "<system version=\"1\"><cpu host_hash=\"0xb\">" GPU("01", "rank=\"2\"")
        GPU("02", "rank=\"3\"") "</cpu><cpu host_hash=\"0xa\">" GPU("01", "rank=\"0\"")
            GPU("02", "rank=\"1\"") "</cpu></system>";
    static const int dev[] = {3, 2, 0};
    struct kl_host_device device[4] = {{.rank = 4, .ordinal = 1},
                                       {.rank = 5, .ordinal = 0},
                                       {.rank = 6, .ordinal = 0, .host = 1},
                                       {.rank = 7, .ordinal = 1, .host = 2}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file = parse(text);
    struct kl_machine m = {.file = file, .device = device, .ndevices = 3};
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_machine_file_hosts(file), 2);
    assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 3);
    for (int r = 4; r < 7; r++) {
        const struct kl_node *gpu = &t->node[kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, r))];
        assert_int_equal(t->host_hash[kl_id_host(gpu->id)], r < 6 ? 0xa : 0xb);
        assert_int_equal(gpu->gpu.dev, dev[r - 4]); /* in the order of the file */
    }
    kl_topo_free(t);
    m.ndevices = 4;
    assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 4);
    assert_int_equal(t->nhosts, 3);
    kl_topo_free(t);
    device[2].ordinal = 2; /* of two */
    kl_error_quiet(1);
    assert_int_equal(kl_machine_whole(&m, &options, &t, NULL), ncclInvalidUsage);
    kl_error_quiet(0);
    kl_xml_free(file);
}

static void hosts_are_told_apart_by_numbers(void **state)
{
    struct kl_xml *two = parse("<system version=\"1\"><cpu host_hash=\"0xa\"/><cpu host_hash=\"0xb\"/></system>");
    struct kl_xml *words =
        parse("<system version=\"1\"><cpu host_hash=\"0xHOST_A\"/><cpu host_hash=\"0xHOST_B\"/></system>");
    struct kl_xml *one = parse("<system version=\"1\"><cpu host_hash=\"0xa\"/><cpu/><cpu host_hash=\"0xa\"/></system>");

    (void)state;
    assert_true(kl_machine_file_multihost(two));
    assert_false(kl_machine_file_multihost(words));
    assert_false(kl_machine_file_multihost(one));
    kl_xml_free(two);
    kl_xml_free(words);
    kl_xml_free(one);
}

static void this_machine_has_a_numa_node(void **state)
{
    int node[4], n = kl_machine_numa_nodes("/nonexistent", node, 4);
    struct kl_cpu_facts cpu;

    (void)state;
    assert_int_equal(n, 1);
    assert_int_equal(node[0], 0);
    assert_true(kl_machine_numa_nodes(NULL, node, 4) >= 1);
    kl_cpu_facts_read(&cpu);
    assert_true(*cpu.arch);
}

/* ---- the document, and the graph that another process builds from it ---- */

static void expect_same_topology(const struct kl_topo *a, const struct kl_topo *b)
{
    assert_int_equal(a->nnodes, b->nnodes);
    assert_int_equal(a->nlinks, b->nlinks);
    assert_memory_equal(a->count, b->count, sizeof a->count);
    assert_memory_equal(a->link, b->link, (size_t)a->nlinks * sizeof *a->link);
    assert_true(a->max_bw == b->max_bw && a->total_bw == b->total_bw && a->own_host == b->own_host);
    for (int from = 0; from < KL_NODE_TYPES; from++)
        for (int to = 0; to < KL_NODE_TYPES; to++)
            for (int i = 0; a->path[from][to] && i < a->count[from] * a->count[to]; i++) {
                const struct kl_path *p = &a->path[from][to][i], *q = &b->path[from][to][i];

                assert_true(p->type == q->type && p->bw == q->bw && p->hops == q->hops);
                assert_memory_equal(kl_path_hops(a, p), kl_path_hops(b, q), p->hops * sizeof *a->hop);
            }
}

static struct kl_topo *out_of_text(const struct kl_machine *m, const struct kl_xml *document, int rank, int nranks)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;
    struct kl_xml *xml;
    char *text;
    size_t bytes;

    assert_int_equal(kl_xml_text(document, &text, &bytes), ncclSuccess);
    assert_int_equal(kl_xml_parse("text", text, bytes, kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_machine_graph(m, xml, &options, &t), ncclSuccess);
    assert_int_equal(kl_machine_narrow(&t, rank, nranks), ncclSuccess);
    kl_xml_free(xml);
    free(text);
    return t;
}

/* With NETs that go or stay, and ranks in any order. */
static void a_document_gives_the_same_topology_elsewhere(void **state)
{
    static const int elsewhere[] = {0, 3}; /* ranks of other hosts */
    struct kl_host_device device[5];
    struct kl_net_facts eth = {.name = "eth0", .dev = 1, .speed_mbps = 25000, .latency_us = 1.5f};
    struct kl_topo_options options = KL_TOPO_OPTIONS;

    (void)state;
    for (int i = 0; i < 5; i++)
        device[i] = (struct kl_host_device){.rank = i, .ordinal = 4 - i, .numa = i % 2, .shm_id = 7};
    struct kl_machine m = host_machine(device, 5);
    m.net = &eth;
    m.nnets = 1;
    FOR_EACH_CASE(more, elsewhere)
    {
        struct kl_xml *document;
        struct kl_topo *here, *there;

        assert_int_equal(kl_machine_topo(&m, &options, 2, 5 + *more, &here, &document), ncclSuccess);
        there = out_of_text(&m, document, 2, 5 + *more);
        assert_int_equal(there->node[kl_topo_at(there, KL_NODE_GPU, 0)].gpu.shm_id, 7);
        expect_same_topology(here, there);
        kl_topo_free(here);
        kl_topo_free(there);
        kl_xml_free(document);
    }
}

static void a_document_without_a_rank_is_refused(void **state)
{
    struct kl_host_device device[] = {{.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_machine one = host_machine(device, 1), two = host_machine(device, 2);
    struct kl_xml *document;
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_machine_document(&one, &options, &document), ncclSuccess);
    assert_int_equal(kl_machine_graph(&two, document, &options, &t), ncclInternalError);
    kl_xml_free(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_devices_on_one_node),
        cmocka_unit_test(devices_keep_nets_for_ranks_elsewhere),
        cmocka_unit_test(nodes_are_joined_by_the_cpus),
        cmocka_unit_test(bus_ids_tell_who_is_a_cpu_of_this_machine),
        cmocka_unit_test(document_of_host_devices),
        cmocka_unit_test(containers_without_a_common_shm_share_no_memory),
        cmocka_unit_test(files_number_their_gpus),
        cmocka_unit_test(ranks_may_share_a_gpu_of_a_file),
        cmocka_unit_test(cards_without_nets_go),
        cmocka_unit_test(unusable_files_are_refused),
        cmocka_unit_test(files_are_loaded_as_communicators_do),
        cmocka_unit_test(every_rank_needs_its_gpu),
        cmocka_unit_test(machines_have_a_limit),
        cmocka_unit_test(hosts_of_one_nvlink_domain),
        cmocka_unit_test(hosts_of_one_file_stay_together),
        cmocka_unit_test(devices_are_on_hosts),
        cmocka_unit_test(hosts_are_told_apart_by_numbers),
        cmocka_unit_test(this_machine_has_a_numa_node),
        cmocka_unit_test(a_document_gives_the_same_topology_elsewhere),
        cmocka_unit_test(a_document_without_a_rank_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
