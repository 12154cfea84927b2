/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of paths, checked on random machines; and a machine larger than NCCL's tables. */
#include "topo/paths.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- random machines ---- */

static uint32_t seed;

static int any(int n) /* 0 to n - 1; xorshift, so that a failing seed fails everywhere */
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return (int)(seed % (uint32_t)n);
}

enum { MAX_GPUS = 12 };

struct random_machine {
    FILE *to;
    int ngpus, nnets, sm, nvlinks[MAX_GPUS][MAX_GPUS], nvswitch, c2c;
    int rank[MAX_GPUS]; /* of each GPU, in document order */
};

static const char *any_speed(void)
{
    static const char *const speeds[] = {"2.5 GT/s PCIe",  "8 GT/s",         "8.0 GT/s PCIe",
                                         "16.0 GT/s PCIe", "32.0 GT/s PCIe", ""};

    return speeds[any(6)];
}

static void put_pci(struct random_machine *m, int bus, const char *class)
{
    fprintf(m->to, "<pci busid=\"0000:%02x:00.0\" class=\"%s\" link_speed=\"%s\" link_width=\"%d\">", bus, class,
            any_speed(), 4 << any(3));
}

static void put_gpu(struct random_machine *m, int gpu)
{
    put_pci(m, 0x10 + gpu, "0x030200");
    fprintf(m->to, "<gpu dev=\"%d\" sm=\"%d\" rank=\"%d\" gdr=\"%d\">", m->rank[gpu], m->sm, m->rank[gpu], any(4) > 0);
    for (int k = 0; k < MAX_GPUS; k++)
        if (m->nvlinks[gpu][k])
            fprintf(m->to, "<nvlink target=\"0000:%02x:00.0\" count=\"%d\" tclass=\"0x030200\"/>", 0x10 + k,
                    m->nvlinks[gpu][k]);
    if (m->nvswitch) fprintf(m->to, "<nvlink target=\"0000:f0:00.0\" count=\"%d\" tclass=\"0x068000\"/>", m->nvswitch);
    if (m->c2c) fprintf(m->to, "<c2c bw=\"50000\" count=\"9\"/>");
    fprintf(m->to, "</gpu></pci>\n");
}

static void put_nic(struct random_machine *m)
{
    put_pci(m, 0x80 + m->nnets, "0x020000");
    fprintf(m->to, "<nic><net name=\"n%d\" dev=\"%d\" speed=\"%d\" port=\"1\" guid=\"0x%x\" gdr=\"%d\"/></nic></pci>\n",
            m->nnets, m->nnets, 25000 << any(5), m->nnets, any(4) > 0);
    m->nnets++;
}

/* A switch with some of the GPUs and perhaps further switches below. */
static void put_switch(struct random_machine *m, int *gpu, int end, int depth, int *bus)
{
    put_pci(m, (*bus)++, "0x060400");
    while (*gpu < end && any(3)) put_gpu(m, (*gpu)++);
    if (any(2)) put_nic(m);
    for (int i = any(3); depth && i > 0; i--) put_switch(m, gpu, end, depth - 1, bus);
    fprintf(m->to, "</pci>\n");
}

static void link_gpus(struct random_machine *m)
{
    int shape = any(4); /* none, a switch, all pairs, a few pairs */

    if (shape == 1) m->nvswitch = 1 + any(12);
    for (int a = 0; shape >= 2 && a < m->ngpus; a++)
        for (int b = 0; b < a; b++)
            if (shape == 2 || !any(3)) m->nvlinks[a][b] = m->nvlinks[b][a] = 1 + any(4);
    m->c2c = !any(5);
}

/* The document for a seed; the same machine with other rank and device numbers for the same seed. */
static struct kl_xml *random_document(uint32_t number, bool shuffled)
{
    struct random_machine m = {0};
    char *text;
    size_t bytes;
    struct kl_xml *xml;
    int gpu = 0, bus = 0xa0;

    seed = number * 2654435761u + 1;
    m.to = open_memstream(&text, &bytes);
    m.ngpus = 1 + any(MAX_GPUS);
    m.sm = 70 + 10 * any(3); /* of all: it decides how wide a GPU's side of an NVLink is */
    for (int i = 0; i < MAX_GPUS; i++) m.rank[i] = shuffled ? (i * 5 + (int)number) % m.ngpus : i;
    if (shuffled && m.ngpus % 5 == 0)
        for (int i = 0; i < m.ngpus; i++) m.rank[i] = m.ngpus - 1 - i;
    link_gpus(&m);
    int cpus = 1 + any(4), model = 40 + any(180), vendor = any(2);
    fprintf(m.to, "<system version=\"1\">\n");
    for (int c = 0; c < cpus; c++) {
        fprintf(m.to, "<cpu numaid=\"%d\" arch=\"x86_64\" vendor=\"%s\" familyid=\"6\" modelid=\"%d\">\n", c,
                vendor ? "GenuineIntel" : "AuthenticAMD", model);
        int end = c == cpus - 1 ? m.ngpus : gpu + any(m.ngpus - gpu + 1);
        for (int i = any(3); i > 0; i--) put_switch(&m, &gpu, end, 2, &bus);
        while (gpu < end) put_gpu(&m, gpu++);
        if (!any(3)) put_nic(&m);
        fprintf(m.to, "</cpu>\n");
    }
    fprintf(m.to, "</system>\n");
    fclose(m.to);
    assert_int_equal(kl_xml_parse("random", text, bytes, kl_xml_topo_schema, &xml), ncclSuccess);
    free(text);
    return xml;
}

static struct kl_topo *random_topo(uint32_t number, bool shuffled, const struct kl_topo_options *options)
{
    struct kl_xml *xml = random_document(number, shuffled);
    struct kl_topo *t;

    if (kl_topo_build(xml, options, &t)) fail_msg("machine %u: %s", number, kl_error_text());
    kl_xml_free(xml);
    if (kl_topo_paths(t)) fail_msg("machine %u: %s", number, kl_error_text());
    return t;
}

enum { MACHINES = 400 };

static bool is_end(const struct kl_node *n)
{
    return n->type != KL_NODE_PCI && n->type != KL_NODE_NIC;
}

/* Do something for each machine and pair of ends, under several settings. */
static void for_each_path(void (*look)(uint32_t number, const struct kl_topo *t, int a, int b))
{
    for (uint32_t number = 0; number < MACHINES; number++) {
        struct kl_topo_options options = KL_TOPO_OPTIONS;

        options.communicator = number % 2;
        if (number % 3 == 0) options.p2p_level = KL_PATH_SYS;
        if (number % 5 == 0) options.gdr_level = KL_PATH_LOC;
        struct kl_topo *t = random_topo(number, false, &options);
        for (int a = 0; a < t->nnodes; a++)
            for (int b = 0; b < t->nnodes; b++)
                if (is_end(&t->node[a]) && is_end(&t->node[b])) look(number, t, a, b);
        kl_topo_free(t);
    }
}

/* ---- invariants of every path ---- */

static void leads_there(uint32_t number, const struct kl_topo *t, int a, int b)
{
    const struct kl_path *p = kl_path(t, a, b);
    int at = a;

    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];
        if (l->from != at) fail_msg("machine %u: link %d of path %d to %d begins elsewhere", number, k, a, b);
        at = l->to;
    }
    if (p->type != KL_PATH_DIS && at != b) fail_msg("machine %u: path %d to %d ends elsewhere", number, a, b);
    if (a == b) assert_int_equal(p->hops, 0);
}

static void paths_lead_where_they_should(void **state)
{
    (void)state;
    for_each_path(leads_there);
}

static void is_no_wider_than_its_links(uint32_t number, const struct kl_topo *t, int a, int b)
{
    const struct kl_path *p = kl_path(t, a, b);
    float narrowest = KL_BW_LOCAL;

    for (int k = 0; k < p->hops; k++) {
        float bw = t->link[kl_path_hops(t, p)[k]].bw;
        if (bw < narrowest) narrowest = bw;
    }
    if (p->type != KL_PATH_DIS && p->bw != narrowest)
        fail_msg("machine %u: path %d to %d has %g GB/s, its links %g", number, a, b, (double)p->bw, (double)narrowest);
    if (p->type == KL_PATH_DIS) assert_true(p->bw == 0 && p->hops == 0);
}

static void bandwidth_is_that_of_the_narrowest_link(void **state)
{
    (void)state;
    for_each_path(is_no_wider_than_its_links);
}

/* The type follows from the links: at least as bad as each of them, and consistent with the nodes it passes. */
static void has_the_type_of_its_links(uint32_t number, const struct kl_topo *t, int a, int b)
{
    const struct kl_path *p = kl_path(t, a, b);
    int worst = KL_PATH_LOC, cpus = 0;

    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];
        int type = l->type == KL_PATH_NET ? KL_PATH_LOC : l->type;

        if (type > worst) worst = type;
        cpus += l->type == KL_PATH_PCI && (t->node[l->to].type == KL_NODE_CPU || t->node[l->from].type == KL_NODE_CPU);
    }
    if (p->type == KL_PATH_DIS || p->type == KL_PATH_NET || p->type == KL_PATH_PXN) return;
    if (p->type < worst) fail_msg("machine %u: path %d to %d is %d, a link %d", number, a, b, p->type, worst);
    if (cpus && p->type < KL_PATH_PHB && p->type != KL_PATH_P2C)
        fail_msg("machine %u: path %d to %d hides a CPU", number, a, b);
    if (worst < KL_PATH_SYS && p->type == KL_PATH_SYS) fail_msg("machine %u: path %d to %d invents SYS", number, a, b);
}

static void types_follow_from_links(void **state)
{
    (void)state;
    for_each_path(has_the_type_of_its_links);
}

/* A search from a CPU may pass on from a GPU right below to its NVLink peers, one from there not. */
static bool is_symmetric_pair(const struct kl_node *a, const struct kl_node *b)
{
    if (!is_end(a) || !is_end(b)) return false;
    return (a->type == KL_NODE_CPU) == (b->type == KL_NODE_CPU) || (a->type != KL_NODE_GPU && b->type != KL_NODE_GPU);
}

/* Before P2P, PXN and GPUDirect rules, both directions are as long and as wide: the links are. */
static void shortest_paths_are_symmetric(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < MACHINES; number++) {
        struct kl_topo_options options = KL_TOPO_OPTIONS;

        options.communicator = false;
        options.p2p_level = KL_PATH_DIS;
        options.gdr_level = KL_PATH_DIS;
        options.gdr_read = 1;
        options.pxn_disable = true;
        struct kl_topo *t = random_topo(number, false, &options);
        for (int a = 0; a < t->nnodes; a++)
            for (int b = 0; b < a; b++) {
                if (!is_symmetric_pair(&t->node[a], &t->node[b])) continue;
                const struct kl_path *x = kl_path(t, a, b), *y = kl_path(t, b, a);
                if (x->rule == KL_RULE_SHORTEST && y->rule == KL_RULE_SHORTEST &&
                    (x->hops != y->hops || x->bw != y->bw))
                    fail_msg("machine %u: %d to %d is %d/%g, back %d/%g", number, a, b, x->hops, (double)x->bw, y->hops,
                             (double)y->bw);
            }
        kl_topo_free(t);
    }
}

/* Other numbers for the same GPUs give the same paths under the other numbers. */
static void numbers_do_not_matter(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;

    (void)state;
    options.pxn_disable = true; /* which GPU of several relays is a matter of device numbers */
    for (uint32_t number = 0; number < MACHINES; number++) {
        struct kl_topo *t = random_topo(number, false, &options), *u = random_topo(number, true, &options);

        assert_int_equal(t->nnodes, u->nnodes);
        for (int a = 0; a < t->nnodes; a++)
            for (int b = 0; b < t->nnodes; b++) {
                if (!is_end(&t->node[a]) || !is_end(&t->node[b])) continue;
                const struct kl_path *x = kl_path(t, a, b), *y = kl_path(u, a, b);
                if (x->hops != y->hops || x->bw != y->bw || x->type != y->type)
                    fail_msg("machine %u: %d to %d", number, a, b);
            }
        for (int g = 0; g < t->count[KL_NODE_GPU]; g++)
            assert_int_equal(kl_topo_gpu_of_rank(u, u->node[g].gpu.rank), g);
        assert_true(t->max_bw == u->max_bw && t->total_bw == u->total_bw);
        kl_topo_free(t);
        kl_topo_free(u);
    }
}

/* Trimming for any rank of a domain leaves that domain, and the paths inside are those that the whole had. */
static void domains_are_what_trimming_leaves(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;

    (void)state;
    for (uint32_t number = 0; number < MACHINES; number++) {
        struct kl_topo *t = random_topo(number, false, &options);
        int n = t->count[KL_NODE_GPU], domain[MAX_GPUS];

        kl_topo_domains(t, domain);
        for (int g = 0; g < n; g++) {
            struct kl_topo *u = random_topo(number, false, &options);
            int members = 0;

            assert_int_equal(kl_topo_trim(&u, t->node[g].gpu.rank, n), ncclSuccess);
            for (int k = 0; k < n; k++) members += domain[k] == domain[g];
            assert_int_equal(u->count[KL_NODE_GPU], members);
            assert_int_equal(u->count[KL_NODE_NET], t->count[KL_NODE_NET]);
            assert_true(u->inter == (members < n));
            assert_int_equal(kl_topo_paths(u), ncclSuccess);
            kl_topo_free(u);
        }
        kl_topo_free(t);
    }
}

/* Every link that is not one-way finds its reverse. */
static void reverse_links_are_found(void **state)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;

    (void)state;
    for (uint32_t number = 0; number < MACHINES; number++) {
        struct kl_topo *t = random_topo(number, false, &options);

        for (int k = 0; k < t->nlinks; k++) {
            const struct kl_link *l = &t->link[k], *r = &t->link[l->reverse];
            assert_true(l->reverse >= 0 && r->from == l->to && r->to == l->from && r->type == l->type);
        }
        kl_topo_free(t);
    }
}

/* ---- one-way links ---- */

static void a_missing_direction_is_named(void **state)
{
    static const char text[] = "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
                               "<pci busid=\"0000:01:00.0\" class=\"0x03\" link_speed=\"\" link_width=\"\"><gpu "
                               "dev=\"0\" rank=\"0\" sm=\"80\" gdr=\"1\">"
                               "<nvlink target=\"0000:02:00.0\" count=\"1\" tclass=\"0x03\"/></gpu></pci>"
                               "<pci busid=\"0000:02:00.0\" class=\"0x03\" link_speed=\"\" link_width=\"\"><gpu "
                               "dev=\"1\" rank=\"1\" sm=\"80\" gdr=\"1\"/></pci>"
                               "</cpu></system>";
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml;
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_xml_parse("t", text, sizeof text - 1, kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, &options, &t), ncclSuccess);
    assert_int_equal(kl_topo_paths(t), ncclInternalError);
    assert_non_null(strstr(kl_error_text(), "GPU/0-1000 has a NVL link to GPU/0-2000"));
    kl_topo_free(t);
    kl_xml_free(xml);
}

/* ---- a large machine ---- */

/* 144 trays of 4 GPUs and 4 NICs: 576 GPUs in one NVLink domain. */
static void a_domain_of_576_gpus(void **state)
{
    struct kl_host_device device[4];
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file;
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_xml_load("tests/data/topologies/synthetic/gb200-4gpu-4nic.xml", kl_xml_topo_schema, &file),
                     ncclSuccess);
    for (int i = 0; i < 4; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    struct kl_machine m = {.file = file, .device = device, .ndevices = 4, .hosts = 144};
    options.mnnvl = true;
    assert_int_equal(kl_machine_topo(&m, &options, 575, 1000, &t, NULL), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 576);
    assert_int_equal(t->count[KL_NODE_NET], 576);
    assert_int_equal(t->nhosts, 144);
    assert_int_equal(t->own_host, 143);
    for (int g = 0; g < 576; g++) {
        assert_int_equal(kl_path_between(t, KL_NODE_GPU, g, KL_NODE_GPU, 575 - g)->type, KL_PATH_NVL);
        assert_int_equal(kl_path_between(t, KL_NODE_GPU, g, KL_NODE_GPU, 575 - g)->hops, 2);
    }
    assert_true(kl_topo_all_nvlink(t));
    kl_topo_free(t);
    kl_xml_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_where_they_should), cmocka_unit_test(bandwidth_is_that_of_the_narrowest_link),
        cmocka_unit_test(types_follow_from_links),      cmocka_unit_test(shortest_paths_are_symmetric),
        cmocka_unit_test(numbers_do_not_matter),        cmocka_unit_test(domains_are_what_trimming_leaves),
        cmocka_unit_test(reverse_links_are_found),      cmocka_unit_test(a_missing_direction_is_named),
        cmocka_unit_test(a_domain_of_576_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
