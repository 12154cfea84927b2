/* SPDX-License-Identifier: Apache-2.0 */
/* Detection on recorded and hand-made machines (tests/data/sysfs/). */
#include "topo/detect.h"

#include "base/error.h"
#include "base/text.h"
#include "tests/sysfs_tree.h"
#include "topo/machine.h"
#include "topo/nics.h"
#include "topo/paths.h"
#include "topo/record.h"
#include "topo/sysfs.h"

#include <math.h>

/* A machine laid out from its tree, ready for the chain. */
struct recorded {
    char root[64];
    struct kl_recorded facts;
    struct kl_net_skip *skip; /* if sysfs was asked */
    int nskips;
    struct kl_host_device device[2];
    struct kl_machine machine;
};

static const struct kl_nics_filter no_filter;

/* NICs as a plan would have them. */
static void look_at_nics(struct recorded *r, const struct kl_nics_filter *filter)
{
    struct kl_nics_seen seen;

    assert_int_equal(kl_nics_read(r->root, filter, &seen), ncclSuccess);
    r->facts.net = seen.net;
    r->facts.nnets = seen.nnets;
    r->skip = seen.skip;
    r->nskips = seen.nskips;
}

static void open_recorded(const char *name, struct recorded *r)
{
    *r = (struct recorded){.device = {{.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}}};
    sysfs_tree_make(name, r->root);
    assert_int_equal(kl_record_load(r->root, &r->facts), ncclSuccess);
    assert_true(r->facts.has_cpu);
    if (!r->facts.nnets) look_at_nics(r, &no_filter);
    for (int i = 0; i < r->facts.ngpus; i++) r->facts.gpu[i].rank = i;
    r->machine = (struct kl_machine){.gpu = r->facts.gpu,
                                     .ngpus = r->facts.ngpus,
                                     .net = r->facts.net,
                                     .nnets = r->facts.nnets,
                                     .sysfs = r->root,
                                     .cpu = &r->facts.cpu};
    if (r->facts.ngpus) return;
    r->machine.device = r->device;
    r->machine.ndevices = 2;
}

static void close_recorded(struct recorded *r)
{
    kl_record_free(&r->facts);
    free(r->skip);
    sysfs_tree_remove(r->root);
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *from = fopen(path, "r");

    if (!from) return text;
    assert_true(fread(text, 1, (1 << 16) - 1, from) < (1 << 16) - 1);
    fclose(from);
    return text;
}

static char *document_for(const struct kl_machine *m, int nccl)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    char *text;
    size_t bytes;

    options.nccl = nccl;
    assert_int_equal(kl_machine_document(m, &options, &xml), ncclSuccess);
    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    kl_xml_free(xml);
    return text;
}

static char *document_of(const struct kl_machine *m)
{
    return document_for(m, KL_NCCL_DEFAULT);
}

static const char *const machines[] = {"vm-virtio", "two-sockets", "arm-c2c", "vm-flat", "broken"};

static void documents_are_as_expected(void **state)
{
    (void)state;
    FOR_EACH_CASE(name, machines)
    {
        struct recorded r;
        char path[256];

        open_recorded(*name, &r);
        snprintf(path, sizeof path, "tests/data/sysfs/%s.xml", *name);
        char *got = document_of(&r.machine), *want = read_text(path);
        if (strcmp(got, want) != 0) fail_msg("%s:\n%s", *name, got);
        free(got);
        free(want);
        close_recorded(&r);
    }
}

/* Processors as CPUID describes them, and as releases before and after 2.31 write that. */
static const struct cpuid_case {
    int family, model; /* all bits */
    const char *before, *after;
} cpuids[] = {
    {0x8f, 0x31, "familyid=\"143\" modelid=\"49\"", "familyid=\"23\" modelid=\"49\""},
    {0xaf, 0x11, "familyid=\"175\" modelid=\"17\"", "familyid=\"25\" modelid=\"17\""},
    {0xbf, 0x02, "familyid=\"191\" modelid=\"2\"", "familyid=\"26\" modelid=\"2\""},
    {0x06, 0x8f, "familyid=\"6\" modelid=\"143\"", "familyid=\"6\" modelid=\"143\""},
    {0x05, 0x12, "familyid=\"5\" modelid=\"18\"", "familyid=\"5\" modelid=\"2\""},
};

static void processors_are_written_as_releases_do(void **state)
{
    struct recorded r;

    (void)state;
    open_recorded("two-sockets", &r);
    FOR_EACH_CASE(c, cpuids)
    {
        r.facts.cpu.family = c->family;
        r.facts.cpu.model = c->model;
        char *before = document_for(&r.machine, 23007), *after = document_for(&r.machine, 23102);

        expect_case(c->before, strstr(before, c->before));
        expect_case(c->after, strstr(after, c->after));
        free(before);
        free(after);
    }
    close_recorded(&r);
}

/* Without sysfs the speed of links is unknown. */
static void links_without_a_speed_get_one(void **state)
{
    struct recorded r;

    (void)state;
    open_recorded("two-sockets", &r);
    r.machine.sysfs = "/nonexistent";
    char *before = document_for(&r.machine, 23007), *after = document_for(&r.machine, 23102);

    assert_true(strstr(before, "link_speed=\"\"") && !strstr(before, "link_speed=\"16.0 GT/s PCIe\""));
    assert_true(!strstr(after, "link_speed=\"\"") && strstr(after, "link_speed=\"16.0 GT/s PCIe\""));
    free(before);
    free(after);
    close_recorded(&r);
}

/* A record of a record is the same machine. */
static void records_can_be_recorded(void **state)
{
    (void)state;
    FOR_EACH_CASE(name, machines)
    {
        char again[] = "/tmp/kolo_record_XXXXXX";
        struct recorded r;

        open_recorded(*name, &r);
        assert_non_null(mkdtemp(again));
        assert_int_equal(kl_record_sysfs(r.root, again), ncclSuccess);
        assert_int_equal(kl_record_save(again, &r.facts), ncclSuccess);
        char *before = document_of(&r.machine);
        r.machine.sysfs = again;
        char *after = document_of(&r.machine);
        expect_case(*name, !strcmp(before, after));
        free(before);
        free(after);
        sysfs_tree_remove(again);
        close_recorded(&r);
    }
}

static void this_machine_can_be_recorded(void **state)
{
    char root[] = "/tmp/kolo_record_XXXXXX";
    struct kl_recorded facts = {.has_cpu = true};
    struct kl_nics_seen seen, again;
    struct kl_host_device device = {.rank = 0};
    struct kl_machine m = {.device = &device, .ndevices = 1};

    (void)state;
    assert_non_null(mkdtemp(root));
    kl_cpu_facts_read(&facts.cpu);
    assert_int_equal(kl_record_sysfs("/sys", root), ncclSuccess);
    assert_int_equal(kl_nics_read(NULL, &no_filter, &seen), ncclSuccess);
    m.net = seen.net;
    m.nnets = seen.nnets;
    char *live = document_of(&m);
    m.sysfs = root;
    char *replayed = document_of(&m);
    assert_string_equal(live, replayed);
    free(live);
    free(replayed);
    assert_int_equal(kl_nics_read(root, &no_filter, &again), ncclSuccess);
    assert_int_equal(again.nnets, seen.nnets);
    assert_int_equal(again.nskips, seen.nskips);
    for (int i = 0; i < seen.nskips; i++) {
        assert_string_equal(again.skip[i].name, seen.skip[i].name);
        expect_case(seen.skip[i].name, kl_net_skip_same(&again.skip[i], &seen.skip[i]));
    }
    kl_nics_seen_fini(&seen);
    kl_nics_seen_fini(&again);
    sysfs_tree_remove(root);
}

/* ---- attributes of a file win ---- */

static void a_file_is_completed_not_replaced(void **state)
{
    static const char text[] =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
        "<pci busid=\"0000:17:00.0\" link_speed=\"32.0 GT/s PCIe\">"
        "<pci busid=\"0000:19:00.0\" class=\"0x12345\"><gpu dev=\"7\" rank=\"5\">"
        "<nvlink target=\"0000:99:00.0\" count=\"2\"/></gpu></pci></pci></cpu></system>";
    struct recorded r;
    struct kl_xml *file;

    (void)state;
    open_recorded("two-sockets", &r);
    assert_int_equal(kl_xml_parse("f.xml", text, strlen(text), kl_xml_topo_schema, &file), ncclSuccess);
    r.machine.file = file;
    r.machine.ngpus = 1;
    char *got = document_of(&r.machine);
    assert_non_null(strstr(got, "busid=\"0000:17:00.0\" link_speed=\"32.0 GT/s PCIe\" class=\"0x060400\""));
    assert_non_null(strstr(got, "modelid=\"85\" affinity=\"000fffff,000fffff\""));
    assert_non_null(strstr(got, "class=\"0x030200\""));                             /* sysfs is right about classes */
    assert_non_null(strstr(got, "<gpu dev=\"7\" rank=\"0\" sm=\"80\" gdr=\"1\">")); /* only the rank is ours */
    assert_non_null(strstr(got, "<nvlink target=\"0000:99:00.0\" count=\"2\" tclass=\"0x030200\"/>"));
    assert_null(strstr(got, "count=\"12\""));
    free(got);
    kl_xml_free(file);
    close_recorded(&r);
}

/* Two hosts with a GPU each, as an older release takes the file, and one. */
static void a_file_describes_this_host(void **state)
{
    static const char text[] =
        "<system version=\"1\"><cpu numaid=\"0\" host_hash=\"0x7\" arch=\"arm64\"><pci busid=\"0000:19:00.0\"/></cpu>"
        "<cpu numaid=\"1\" host_hash=\"0x8\" arch=\"arm64\"><pci busid=\"0000:99:00.0\"/></cpu></system>";
    static const struct {
        int nccl, hosts;
    } cases[] = {{22606, 2}, {22703, 1}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_xml *file, *xml;
        struct recorded r;

        options.nccl = c->nccl;
        open_recorded("two-sockets", &r);
        assert_int_equal(kl_xml_parse("f.xml", text, strlen(text), kl_xml_topo_schema, &file), ncclSuccess);
        r.machine.file = file;
        assert_int_equal(kl_machine_document(&r.machine, &options, &xml), ncclSuccess);
        assert_int_equal(kl_machine_file_hosts(xml), c->hosts);
        kl_xml_free(xml);
        r.machine.host_hash = 0x9;
        assert_int_equal(kl_machine_document(&r.machine, &options, &xml), ncclSuccess);
        int cpu = kl_xml_child(xml, KL_XML_ROOT, "cpu");
        assert_string_equal(kl_xml_attr(xml, cpu, "host_hash"), c->hosts == 1 ? "0x9" : "0x7");
        kl_xml_free(xml);
        kl_xml_free(file);
        close_recorded(&r);
    }
}

static void nets_of_a_file_are_matched_by_name(void **state)
{
    static const char text[] = "<system version=\"1\"><cpu numaid=\"1\"><nic><net name=\"mlx5_0\" speed=\"5\" "
                               "dev=\"9\"/></nic></cpu></system>";
    struct recorded r;
    struct kl_xml *file;

    (void)state;
    open_recorded("two-sockets", &r);
    assert_int_equal(kl_xml_parse("f.xml", text, strlen(text), kl_xml_topo_schema, &file), ncclSuccess);
    r.machine.file = file;
    r.machine.ngpus = 1;
    char *got = document_of(&r.machine);
    assert_non_null(strstr(got, "<net name=\"mlx5_0\" speed=\"5\" dev=\"0\" latency=\"0\" port=\"1\""));
    free(got);
    kl_xml_free(file);
    close_recorded(&r);
}

static const struct latency_case {
    float us;
    const char *want;
} latency_cases[] = {{2.5f, "latency=\"2\""}, {-5, "latency=\"0\""},       {1e30f, "latency=\"0\""},
                     {NAN, "latency=\"0\""},  {INFINITY, "latency=\"0\""}, {9e8f, "latency=\"900000000\""}};

static void absurd_latencies_count_as_absent(void **state)
{
    struct recorded r;

    (void)state;
    open_recorded("two-sockets", &r);
    FOR_EACH_CASE(c, latency_cases)
    {
        for (int i = 0; i < r.facts.nnets; i++) r.facts.net[i].latency_us = c->us;
        char *got = document_of(&r.machine);
        expect_case(c->want, strstr(got, c->want));
        free(got);
    }
    close_recorded(&r);
}

/* ---- pieces ---- */

static const struct busid_case {
    const char *text;
    bool is;
} busid_cases[] = {
    {"0000:17:00.0", true}, {"FFff:aB:1f.7", true},   {"10000:01:00.0", false}, {"pci0000:16", false},
    {"0000:17:00.", false}, {"0000:17:00.00", false}, {"0000.17:00.0", false},  {"", false},
};

static void bus_ids_have_a_shape(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, busid_cases) expect_case(c->text, kl_sysfs_is_busid(c->text) == c->is);
}

static void bus_ids_of_the_driver_are_those_of_sysfs(void **state)
{
    static const struct {
        const char *text, *busid;
    } ids[] = {{"00000000:1A:00.0", "0000:1a:00.0"},
               {"0000:1A:00.0", "0000:1a:00.0"},
               {"00010000:01:00.0", "10000:01:00.0"},
               {"FFFFFFF:FFFF:FF", "fffffff:ffff:ff"},
               {"", ""}};
    char busid[KL_BUSID_TEXT];

    (void)state;
    FOR_EACH_CASE(c, ids)
    {
        kl_sysfs_busid(c->text, busid);
        assert_string_equal(busid, c->busid);
    }
}

static void nics_are_chosen_as_nccl_does(void **state)
{
    struct recorded r;

    (void)state;
    open_recorded("two-sockets", &r); /* InfiniBand hides interfaces */
    assert_int_equal(r.facts.nnets, 2);
    assert_string_equal(r.facts.net[1].name, "mlx5_1");
    assert_int_equal(r.facts.net[1].dev, 1);
    assert_int_equal(r.facts.net[1].speed_mbps, 200000);
    assert_int_equal(r.facts.net[1].guid, 0xb8cef60300aabb01);
    close_recorded(&r);
    open_recorded("arm-c2c", &r); /* the port that is down does not count */
    assert_int_equal(r.facts.nnets, 1);
    close_recorded(&r);
    open_recorded("broken", &r);
    assert_int_equal(r.facts.nnets, 1);
    assert_string_equal(r.facts.net[0].name, "eth0");
    assert_int_equal(r.facts.net[0].speed_mbps, 1000);
    close_recorded(&r);
}

static const struct facts_case {
    const char *text, *error; /* error NULL: fine */
} facts_cases[] = {
    {"# a comment\n\n  \ncpu arch=arm64\n", NULL},
    {"net name=a later=word\n", NULL},
    {"disk size=3\n", "kolo-facts:1: \"disk\"; a line begins with cpu, gpu or net"},
    {"cpu arch=arm64\ngpu dev\n", "kolo-facts:2: \"dev\"; expected key=value"},
};

static void facts_are_checked(void **state)
{
    char root[] = "/tmp/kolo_facts_XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/kolo-facts", root);
    FOR_EACH_CASE(c, facts_cases)
    {
        struct kl_recorded facts = {0};
        FILE *to = fopen(path, "w");

        fputs(c->text, to);
        fclose(to);
        expect_case(c->text, kl_record_load(root, &facts) == (c->error ? ncclInternalError : ncclSuccess));
        if (c->error && !strstr(kl_error_text(), c->error)) fail_msg("%s", kl_error_text());
        kl_record_free(&facts);
    }
    sysfs_tree_remove(root);
}

static void facts_survive_writing(void **state)
{
    char root[] = "/tmp/kolo_facts_XXXXXX", path[64];
    struct kl_gpu_facts gpu = {
        .busid = "0000:17:00.0",
        .dev = 3,
        .sm = 90,
        .gdr = 1,
        .c2c_mbps = 44712,
        .c2c_count = 5,
        .nnvlinks = 2,
        .nvlink = {{.target = "0000:c4:00.0", .count = 2}, {.target = "fffffff:ffff:ff", .count = 16}}};
    struct kl_net_facts net = {.name = "mlx5_0+mlx5_1",
                               .pci_path = "/sys/devices/x",
                               .dev = 4,
                               .speed_mbps = 100,
                               .port = 2,
                               .guid = 0xfeedfacecafebeef,
                               .latency_us = 1.5f,
                               .max_comms = 7,
                               .gdr = true,
                               .coll = true};
    struct kl_recorded facts = {.has_cpu = true,
                                .cpu = {.arch = "x86_64", .vendor = "  Shanghai  ", .family = 7, .model = 0x5b},
                                .gpu = &gpu,
                                .ngpus = 1,
                                .net = &net,
                                .nnets = 1};
    struct kl_recorded read;

    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(kl_record_save(root, &facts), ncclSuccess);
    assert_int_equal(kl_record_load(root, &read), ncclSuccess);
    assert_int_equal(read.ngpus, 1);
    assert_int_equal(read.nnets, 1);
    assert_string_equal(read.cpu.vendor, "  Shanghai  ");
    assert_string_equal(read.gpu->nvlink[1].target, "fffffff:ffff:ff");
    assert_int_equal(read.gpu->nvlink[1].count, 16);
    assert_true(read.net->coll);
    snprintf(path, sizeof path, "%s/kolo-facts", root);
    char *before = read_text(path);
    assert_int_equal(kl_record_save(root, &read), ncclSuccess);
    char *after = read_text(path);
    assert_string_equal(before, after);
    free(before);
    free(after);
    kl_record_free(&read);
    sysfs_tree_remove(root);
}

static void virtual_machines_paths(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct recorded r;
    struct kl_topo *t;

    (void)state;
    open_recorded("vm-flat", &r);
    assert_int_equal(kl_machine_whole(&r.machine, &options, &t, NULL), ncclSuccess);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1)->type, KL_PATH_NVL); /* invisible switch */
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_NET, 0)->type, KL_PATH_PHB);
    assert_int_equal(t->count[KL_NODE_CPU], 1);
    assert_int_equal(kl_id_local(t->node[t->first[KL_NODE_CPU]].id), 0); /* -1 with one node: node 0 */
    kl_topo_free(t);
    close_recorded(&r);
}

/* Bonds count through their slaves; slaves, interfaces that are down, and bridges are not used. */
static const struct {
    const char *name;
    int mbps;
} interfaces[] = {{"bond0", 50000}, {"bond1", 25000}, {"eth3", 100000}};

static const struct skip_case {
    const char *name, *code, *other;
} interface_skips[] = {
    {"bond0.8", "down", "unknown"}, {"dummy0", "down", "unknown"}, {"eth0", "port", "bond0"},
    {"eth0.7", "down", "unknown"},  {"eth1", "port", "bond0"},     {"eth2", "down", "down"},
    {"gre1", "tunnel", ""},         {"knot0", "down", "unknown"},  {"knot1", "down", "unknown"},
    {"lan", "bridge", ""},          {"mac0", "down", "unknown"},   {"overlay", "tunnel", ""},
    {"port", "port", "lan"},        {"vpn0", "tunnel", ""},
};

static void expect_skips(const struct kl_nics_seen *s, const struct skip_case *want, int n)
{
    assert_int_equal(s->nskips, n);
    for (int i = 0; i < n; i++) {
        assert_string_equal(s->skip[i].name, want[i].name);
        if (strcmp(kl_net_skip_code(s->skip[i].why), want[i].code) || strcmp(s->skip[i].other, want[i].other))
            fail_msg("%s: %s \"%s\"", want[i].name, kl_net_skip_code(s->skip[i].why), s->skip[i].other);
    }
}

static void interfaces_are_taken_as_the_sockets_do(void **state)
{
    struct kl_nics_seen s;
    char root[64], text[KL_NET_SKIP_TEXT];

    (void)state;
    sysfs_tree_make("interfaces", root);
    assert_int_equal(kl_nics_read(root, &no_filter, &s), ncclSuccess);
    assert_int_equal(s.nnets, 3);
    for (int i = 0; i < s.nnets; i++) {
        assert_string_equal(s.net[i].name, interfaces[i].name);
        assert_int_equal(s.net[i].speed_mbps, interfaces[i].mbps);
    }
    expect_skips(&s, interface_skips, sizeof interface_skips / sizeof interface_skips[0]);
    assert_string_equal(kl_net_skip_text(&s.skip[2], text), "a port of bond0");
    kl_nics_seen_fini(&s);
    sysfs_tree_remove(root);
}

/* Which devices of the machines are used under each setting. */
static const struct filter_case {
    const char *machine;
    struct kl_nics_filter filter;
    const char *used, *skips;
} filter_cases[] = {
    {"cluster-node",
     {0},
     "mlx5_0 mlx5_2 mlx5_2:2 ",
     "mlx5_1/down mlx5_3/no_speed docker0/container eno1/rdma ib0/rdma lo/loopback virbr0/bridge wg0/tunnel "},
    {"cluster-node",
     {.hca = "mlx5_2:2"},
     "mlx5_2:2 ",
     "mlx5_0/ib_hca mlx5_1/down mlx5_2/ib_hca mlx5_3/ib_hca docker0/container eno1/rdma ib0/rdma lo/loopback "
     "virbr0/bridge "
     "wg0/tunnel "},
    {"cluster-node",
     {.hca = "^mlx5_0"},
     "mlx5_2 mlx5_2:2 ",
     "mlx5_0/ib_hca mlx5_1/down mlx5_3/no_speed docker0/container eno1/rdma ib0/rdma lo/loopback virbr0/bridge "
     "wg0/tunnel "},
    {"cluster-node",
     {.ib_disable = true},
     "ib0 ",
     "mlx5_0/ib_disable mlx5_1/ib_disable mlx5_2/ib_disable mlx5_2:2/ib_disable mlx5_3/ib_disable docker0/container "
     "eno1/ib_first lo/loopback virbr0/bridge wg0/tunnel "},
    {"cluster-node",
     {.ib_disable = true, .ifname = "wg0,docker"},
     "docker0 wg0 ",
     "mlx5_0/ib_disable mlx5_1/ib_disable mlx5_2/ib_disable mlx5_2:2/ib_disable mlx5_3/ib_disable eno1/socket_ifname "
     "ib0/socket_ifname lo/socket_ifname virbr0/socket_ifname "},
    {"cluster-node",
     {.ib_disable = true, .ifname = "^ib"},
     "eno1 ",
     "mlx5_0/ib_disable mlx5_1/ib_disable mlx5_2/ib_disable mlx5_2:2/ib_disable mlx5_3/ib_disable docker0/container "
     "ib0/socket_ifname lo/loopback virbr0/bridge wg0/tunnel "},
};

/* Records hold the attributes that tell a bridge from a NIC. */
static void records_keep_the_reasons(void **state)
{
    static const char *const trees[] = {"interfaces", "cluster-node"};

    (void)state;
    FOR_EACH_CASE(name, trees)
    {
        char root[64], again[] = "/tmp/kolo_record_XXXXXX";
        struct kl_nics_seen before, after;

        sysfs_tree_make(*name, root);
        assert_non_null(mkdtemp(again));
        assert_int_equal(kl_record_sysfs(root, again), ncclSuccess);
        assert_int_equal(kl_nics_read(root, &no_filter, &before), ncclSuccess);
        assert_int_equal(kl_nics_read(again, &no_filter, &after), ncclSuccess);
        assert_int_equal(before.nnets, after.nnets);
        assert_int_equal(before.nskips, after.nskips);
        for (int i = 0; i < before.nskips; i++)
            expect_case(before.skip[i].name, kl_net_skip_same(&before.skip[i], &after.skip[i]));
        kl_nics_seen_fini(&before);
        kl_nics_seen_fini(&after);
        sysfs_tree_remove(root);
        sysfs_tree_remove(again);
    }
}

static void filters_choose_devices(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, filter_cases)
    {
        struct kl_nics_seen s;
        char root[64], used[512], skips[1024];
        struct kl_text u = kl_text_in(used, sizeof used), k = kl_text_in(skips, sizeof skips);

        sysfs_tree_make(c->machine, root);
        assert_int_equal(kl_nics_read(root, &c->filter, &s), ncclSuccess);
        for (int i = 0; i < s.nnets; i++) kl_text_add(&u, "%s ", s.net[i].name);
        for (int i = 0; i < s.nskips; i++) kl_text_add(&k, "%s/%s ", s.skip[i].name, kl_net_skip_code(s.skip[i].why));
        if (strcmp(used, c->used) || strcmp(skips, c->skips)) fail_msg("%s: %s; not %s", c->machine, used, skips);
        kl_nics_seen_fini(&s);
        sysfs_tree_remove(root);
    }
}

static void ports_are_joined_as_nccl_does(void **state)
{
    struct kl_net_facts net[3] = {{.name = "a", .speed_mbps = 100, .guid = 7, .port = 1, .dev = 0},
                                  {.name = "b:2", .speed_mbps = 300, .guid = 8, .port = 2, .dev = 1},
                                  {.name = "c", .roce = true, .dev = 2}},
                        joined;
    const int all[] = {0, 1, 2};

    (void)state;
    assert_int_equal(kl_nics_join(net, all, 2, &joined), ncclSuccess);
    assert_string_equal(joined.name, "a+b:2");
    assert_int_equal(joined.speed_mbps, 400);
    assert_true(joined.guid == 7 && joined.port == 1);
    assert_int_equal(kl_nics_join(net, all, 3, &joined), ncclInvalidUsage); /* InfiniBand and Ethernet */
    assert_int_equal(kl_nics_join_none(net, all, 2, &joined), ncclInvalidUsage);
    assert_int_equal(kl_nics_join_none(net, all, 1, &joined), ncclSuccess);
    memset(net[1].name, 'x', sizeof net[1].name - 1);
    assert_int_equal(kl_nics_join(net, all, 2, &joined), ncclInvalidUsage); /* too long a name */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_as_expected),
        cmocka_unit_test(records_can_be_recorded),
        cmocka_unit_test(this_machine_can_be_recorded),
        cmocka_unit_test(a_file_is_completed_not_replaced),
        cmocka_unit_test(a_file_describes_this_host),
        cmocka_unit_test(nets_of_a_file_are_matched_by_name),
        cmocka_unit_test(absurd_latencies_count_as_absent),
        cmocka_unit_test(bus_ids_have_a_shape),
        cmocka_unit_test(bus_ids_of_the_driver_are_those_of_sysfs),
        cmocka_unit_test(nics_are_chosen_as_nccl_does),
        cmocka_unit_test(facts_are_checked),
        cmocka_unit_test(facts_survive_writing),
        cmocka_unit_test(virtual_machines_paths),
        cmocka_unit_test(interfaces_are_taken_as_the_sockets_do),
        cmocka_unit_test(ports_are_joined_as_nccl_does),
        cmocka_unit_test(filters_choose_devices),
        cmocka_unit_test(records_keep_the_reasons),
        cmocka_unit_test(processors_are_written_as_releases_do),
        cmocka_unit_test(links_without_a_speed_get_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
