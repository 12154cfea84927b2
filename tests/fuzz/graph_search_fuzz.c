/* SPDX-License-Identifier: Apache-2.0 */
/* From a small machine to all its graphs and to a cluster of it on paper. The bytes describe the machine; its plan
   must be consistent for any bytes. */
#include "graph/graph_xml.h"
#include "graph/nic.h"
#include "graph/run.h"
#include "plan/plan.h"
#include "topo/paths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) fail(#cond);                                                                                      \
    } while (0)

#define LENGTH(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* ---- a machine out of bytes ---- */

enum { GPUS = 8, NETS = 3, SWITCHES = 12, DEPTH = 3, TEXT = 1 << 15, STEPS = 1 << 15 };
enum { TO_SWITCH = GPUS, TO_CPU, TARGETS };

struct maker {
    const uint8_t *at, *end;
    int ngpus, nnets, nswitches, sm;
    bool backward; /* ranks are not in the order of the document */
    int nvlinks[GPUS][TARGETS];
    size_t used;
    char text[TEXT];
};

static struct maker made;

static _Noreturn void fail(const char *cond)
{
    fprintf(stderr, "does not hold: %s\n%s", cond, made.text);
    abort();
}

/* 0 to n - 1; 0 once the bytes are used up. */
static int any_of(struct maker *m, int n)
{
    return m->at < m->end ? *m->at++ % n : 0;
}

#define ANY(m, table) ((table)[any_of((m), LENGTH(table))])
#define PUT(m, ...)   ((m)->used += (size_t)snprintf((m)->text + (m)->used, TEXT - (m)->used, __VA_ARGS__))

/* All to a switch, to each other, to neighbours, or any number to any, back or not. */
static void draw_nvlinks(struct maker *m)
{
    enum { NONE, SWITCH, ODD_SWITCH, ALL, RING, ODD, ONE_WAY, CPU, KINDS } kind = any_of(m, KINDS);
    int same = 1 + any_of(m, 18);

    for (int a = 0; a < GPUS; a++) {
        m->nvlinks[a][TO_SWITCH] = kind == SWITCH ? same : kind == ODD_SWITCH ? any_of(m, 4) : 0;
        m->nvlinks[a][TO_CPU] = kind == CPU ? same : 0;
        for (int b = 0; b < GPUS; b++) {
            int apart = (a - b + GPUS) % GPUS;

            if (kind == ALL || (kind == RING && (apart == 1 || apart == GPUS - 1))) m->nvlinks[a][b] = same;
            if (kind == ODD) m->nvlinks[a][b] = b < a ? m->nvlinks[b][a] : any_of(m, 4);
            if (kind == ONE_WAY) m->nvlinks[a][b] = any_of(m, 4);
            if (a == b) m->nvlinks[a][b] = 0;
        }
    }
}

static void put_pci(struct maker *m, int bus, const char *class)
{
    static const char *const speeds[] = {"16.0 GT/s PCIe", "8.0 GT/s PCIe", "32.0 GT/s PCIe", "2.5 GT/s PCIe",
                                         "5.0 GT/s PCIe",  "64.0 GT/s",     "17 GT/s",        ""};
    static const int widths[] = {16, 8, 4, 1, 0, 32, 3, 2000000000};
    int link = any_of(m, LENGTH(speeds) * LENGTH(widths));

    PUT(m, "<pci busid=\"0000:%02x:00.0\" class=\"%s\" link_speed=\"%s\" link_width=\"%d\">", bus, class,
        speeds[link % LENGTH(speeds)], widths[link / LENGTH(speeds)]);
}

static void put_gpu(struct maker *m)
{
    static const int sms[] = {80, 90, 100, 70, 60, 86, 50}, c2c_mbps[] = {44000, 1000, 2000000000};
    enum { OTHER_SM = 1, NO_GDR, C2C, ODDITIES = 8 } odd;
    int g = m->ngpus++;

    put_pci(m, 0x10 + g, "0x030200");
    odd = any_of(m, ODDITIES);
    if (!g || odd == OTHER_SM) m->sm = ANY(m, sms);
    PUT(m, "<gpu dev=\"%d\" sm=\"%d\" gdr=\"%d\">", m->backward ? GPUS - 1 - g : g, m->sm, odd != NO_GDR);
    for (int k = 0; k < TARGETS; k++)
        if (m->nvlinks[g][k])
            PUT(m, "<nvlink target=\"0000:%02x:00.0\" count=\"%d\" tclass=\"%s\"/>", 0x10 + k, m->nvlinks[g][k],
                k == TO_SWITCH ? "0x068000"
                : k == TO_CPU  ? "0x068001"
                               : "0x030200");
    if (odd == C2C) PUT(m, "<c2c bw=\"%d\" count=\"%d\"/>", ANY(m, c2c_mbps), g + 1);
    PUT(m, "</gpu></pci>\n");
}

static void put_card(struct maker *m)
{
    static const int speeds[] = {100000, 200000, 400000, 25000, 10000, 800000, 1, 123457, 2000000000, 0};
    static const char *const latencies[] = {"0", "1.5", "9e8", "-7"};
    int ports = 1 + any_of(m, 2);

    PUT(m, "<nic>");
    for (int i = 0; i < ports && m->nnets < NETS; i++, m->nnets++) {
        int bits = any_of(m, 256);

        PUT(m, "<net name=\"n%d\" dev=\"%d\" speed=\"%d\" port=\"%d\" guid=\"0x%x\" ", m->nnets,
            bits >> 7 ? 0 : m->nnets, ANY(m, speeds), bits & 1, (unsigned)(bits & 2 ? 1 : 100 + m->nnets));
        PUT(m, "latency=\"%s\" maxconn=\"%d\" gdr=\"%d\" coll=\"%d\"/>", latencies[bits >> 2 & 3],
            bits >> 4 & 1 ? 1 : 64, bits >> 5 & 1, bits >> 6 & 1);
    }
    PUT(m, "</nic>");
}

/* The devices below a cpu or a switch. */
static void put_devices(struct maker *m, int depth)
{
    enum { ENOUGH, GPU, SWITCH, NIC, VIRTUAL_NIC, KINDS } kind;

    while ((kind = any_of(m, KINDS)) != ENOUGH) {
        if (kind == GPU && m->ngpus < GPUS) put_gpu(m);
        if (kind == VIRTUAL_NIC && !depth && m->nnets < NETS) put_card(m);
        if (kind == NIC && m->nnets < NETS) {
            put_pci(m, 0x80 + m->nnets, "0x020000");
            put_card(m);
            PUT(m, "</pci>\n");
        }
        if (kind == SWITCH && m->nswitches < SWITCHES && depth < DEPTH) {
            put_pci(m, 0xc0 + m->nswitches++, "0x060400");
            put_devices(m, depth + 1);
            PUT(m, "</pci>\n");
        }
    }
}

static void put_machine(struct maker *m)
{
    static const char *const cpus[] = {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"",
                                       "arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\"",
                                       "arch=\"ppc64\"",
                                       "arch=\"arm64\"",
                                       "arch=\"x86_64\" vendor=\"CentaurHauls\" familyid=\"7\" modelid=\"91\"",
                                       "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\""};
    int bits = any_of(m, 8), sockets = 1 + (bits & 3);

    m->backward = bits >> 2;
    draw_nvlinks(m);
    PUT(m, "<system version=\"1\">\n");
    for (int s = 0; s < sockets; s++) {
        PUT(m, "<cpu numaid=\"%d\" %s>\n", s, ANY(m, cpus));
        put_devices(m, 0);
        PUT(m, "</cpu>\n");
    }
    PUT(m, "</system>\n");
    CHECK(m->used < TEXT);
}

/* ---- settings of users ---- */

static struct kl_topo_options draw_options(struct maker *m)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    int bits = any_of(m, 256);

    options.cross_nic = bits & 1 ? any_of(m, 3) : 2;
    options.p2p_level = bits & 2 ? any_of(m, KL_PATH_DIS) : -1;
    options.gdr_level = bits & 4 ? any_of(m, KL_PATH_DIS) : -1;
    options.p2p_pxn_level = bits & 8 ? any_of(m, 3) : 2;
    options.pxn_disable = bits >> 4 & 1;
    options.nvb_disable = bits >> 5 & 1;
    options.shm_disable = bits >> 6 & 1;
    options.net_disable_intra = bits >> 7 & 1;
    return options;
}

static void draw_config(struct maker *m, struct kl_graph_config *config)
{
    static char *const nothing[] = {NULL};
    struct kl_settings settings = {.environment = nothing, .user = KL_CONF_NONE, .system = KL_CONF_NONE};
    int bits = any_of(m, 8);

    kl_graph_config_load_from(config, &settings);
    config->collnet[0] = bits & 1 ? '1' : 0;
    config->nvls = bits & 2 ? bits >> 2 & 1 : 2;
}

/* ---- graphs ---- */

static bool is_permutation(const struct kl_topo *t, const struct kl_graph *g, int channel)
{
    unsigned seen = 0;

    for (int i = 0; i < g->ngpus; i++) {
        int gpu = kl_topo_gpu_of_rank(t, g->intra[channel * g->ngpus + i]);

        CHECK(gpu >= 0 && gpu < g->ngpus);
        seen |= 1u << gpu;
    }
    return seen == (1u << g->ngpus) - 1;
}

static void check_graph(const struct kl_topo *t, const struct kl_graph *g, const struct kl_graph_why *why)
{
    CHECK(g->ngpus == t->count[KL_NODE_GPU] && g->nchannels >= 0 && g->nchannels <= KL_MAX_CHANNELS);
    if (g->id == KL_GRAPH_RING || g->id == KL_GRAPH_TREE) CHECK(g->nchannels > 0);
    if (g->nchannels) CHECK(g->bw_intra > 0 && g->bw_inter > 0 && isfinite(g->bw_intra) && isfinite(g->bw_inter));
    for (int c = 0; c < g->nchannels; c++) {
        if (g->id == KL_GRAPH_NVLS)
            CHECK(kl_topo_gpu_of_rank(t, g->intra[c * g->ngpus]) >= 0);
        else
            CHECK(is_permutation(t, g, c));
        for (int end = 0; end < 2 && t->count[KL_NODE_NET] && why->end != KL_END_FALLBACK; end++)
            CHECK(kl_topo_find(t, KL_NODE_NET, (uint64_t)g->inter[2 * c + end]) >= 0);
    }
}

static void check_equal(const struct kl_graph *a, const struct kl_graph *b)
{
    CHECK(a->nchannels == b->nchannels && a->pattern == b->pattern && a->ngpus == b->ngpus);
    CHECK(a->type_intra == b->type_intra && a->type_inter == b->type_inter);
    CHECK(a->same_channels == b->same_channels && a->cross_nic == b->cross_nic);
    for (int c = 0; c < a->nchannels; c++)
        for (int i = 0; i < (a->id == KL_GRAPH_NVLS ? 1 : a->ngpus); i++)
            CHECK(a->intra[c * a->ngpus + i] == b->intra[c * a->ngpus + i]);
    CHECK(!memcmp(a->inter, b->inter, 2 * (size_t)a->nchannels * sizeof *a->inter));
}

/* A graph file reads back as it was written. */
static void check_file(const struct kl_plan_domain *d)
{
    struct kl_xml *xml;

    CHECK(!kl_graphs_to_xml(&d->graphs, d->topo, &xml));
    for (int id = 0; id < KL_GRAPHS; id++) {
        struct kl_graph_request request = kl_graph_request_for((enum kl_graph_id)id);
        const struct kl_graph *g = d->graphs.graph[id];
        struct kl_graph *again = NULL;
        char reason[KL_GRAPH_REASON];

        if (!g || !g->nchannels || d->graphs.why[id]->end == KL_END_FALLBACK) continue;
        CHECK(!kl_graph_from_xml(xml, d->topo, &request, &again, reason) && again);
        check_equal(g, again);
        kl_graph_free(again);
    }
    kl_xml_free(xml);
}

/* The steps of a search without proofs: repeated attempts know their steps, others need their budget at most. */
static int64_t steps_of(const struct kl_graph_why *why)
{
    int64_t steps = 0;

    for (int i = 0; i < why->nattempts; i++) {
        const struct kl_attempt *a = &why->attempt[i];

        steps += a->end == KL_ATTEMPT_HOPELESS ? a->budget : a->steps;
    }
    return steps;
}

/* The number of steps of the same search without proofs. */
static int64_t search(const struct kl_topo *t, enum kl_graph_id id, bool thorough, struct kl_graph **g)
{
    struct kl_graph_request request = kl_graph_request_for(id);
    struct kl_search *s;
    struct kl_graph_why *why;

    CHECK(!kl_search_create(t, &s));
    s->thorough = thorough;
    s->few_steps = 0;
    CHECK(!kl_search_run(s, &request, NULL, g, &why));
    kl_search_free(s);
    int64_t steps = steps_of(why);
    kl_graph_why_free(why);
    return steps;
}

static void check_proof(const struct kl_topo *t, enum kl_graph_id id)
{
    struct kl_graph *quick, *thorough;

    if (search(t, id, false, &quick) <= STEPS) {
        search(t, id, true, &thorough);
        check_equal(quick, thorough);
        CHECK(quick->bw_intra == thorough->bw_intra && quick->bw_inter == thorough->bw_inter);
        CHECK(quick->nhops == thorough->nhops);
        kl_graph_free(thorough);
    }
    kl_graph_free(quick);
}

/* Proofs save attempts and steps, and change nothing. Only where searches are short without them. */
static void check_proofs(const struct kl_topo *t)
{
    if (t->count[KL_NODE_GPU] > GPUS / 2) return;
    check_proof(t, KL_GRAPH_RING);
    check_proof(t, KL_GRAPH_TREE);
}

static void check_domain(const struct kl_plan_domain *d)
{
    for (int id = 0; id < KL_GRAPHS; id++)
        if (d->graphs.graph[id]) check_graph(d->topo, d->graphs.graph[id], d->graphs.why[id]);
    check_file(d);
}

/* ---- all ranks ---- */

static void check_ring(const struct kl_connect *c, int channel)
{
    int n = c->ranks.nranks;
    int32_t *order = malloc((size_t)n * sizeof *order);

    CHECK(order && !kl_connect_ring_order(c, channel, 0, order));
    for (int i = 0; i < n; i++) CHECK(kl_connect_ring(c, channel, order[(i + 1) % n]).prev == order[i]);
    free(order);
}

static void check_tree(const struct kl_connect *c, int channel)
{
    int n = c->ranks.nranks, roots = 0;

    for (int r = 0; r < n; r++) {
        struct kl_tree_neighbours t = kl_connect_tree(c, channel, r);
        int hops = 0, known = 0;

        roots += t.up < 0;
        for (int i = 0; i < 3 && t.down[i] >= 0; i++) CHECK(kl_connect_tree(c, channel, t.down[i]).up == r);
        for (int i = 0; i < 3 && t.up >= 0; i++) known += kl_connect_tree(c, channel, t.up).down[i] == r;
        CHECK(known == (t.up >= 0));
        for (int up = t.up; up >= 0; up = kl_connect_tree(c, channel, up).up) CHECK(++hops < n);
    }
    CHECK(roots == 1);
}

static bool is_rank(const struct kl_connect *c, int rank)
{
    return rank >= -1 && rank < c->ranks.nranks;
}

static void check_nvls(const struct kl_connect *c, int channel)
{
    for (int r = 0; r < c->ranks.nranks; r++) {
        struct kl_nvls_links l = kl_connect_nvls(c, channel, r);

        CHECK(l.head >= -1 && l.head < l.nheads && is_rank(c, l.tree_up));
        CHECK(is_rank(c, l.tree_down[1]) && is_rank(c, l.tree_down[2]));
    }
}

static void check_collnet(const struct kl_plan *p, int channel)
{
    for (int r = 0; r < p->nranks && p->connect->collnet; r++) {
        struct kl_collnet_links l = kl_connect_collnet(p->connect, channel, r);

        CHECK(l.chain_up >= 0 && l.chain_up <= p->nranks && is_rank(p->connect, l.chain_down));
        CHECK(l.nheads >= 0 && l.head >= -1 && l.head < l.nheads);
        for (int i = 0; i < l.nheads; i++) CHECK(l.heads[i] >= 0 && is_rank(p->connect, l.heads[i]));
    }
}

/* In every round one rank is sent to, and one received from; in all of them together, every rank. */
static void check_schedule(const struct kl_connect *c)
{
    int n = c->ranks.nranks;
    struct kl_p2p_round *round = malloc((size_t)n * sizeof *round);
    uint64_t sent = 0, received = 0;

    CHECK(round && n <= 64 && !kl_p2p_schedule(c, round));
    for (int i = 0; i < n; i++) {
        sent |= (uint64_t)1 << round[i].send;
        received |= (uint64_t)1 << round[i].recv;
    }
    CHECK(__builtin_popcountll(sent) == n && sent == received);
    free(round);
}

static void check_connection(const struct kl_plan *p)
{
    const struct kl_connect *c = p->connect;

    CHECK(c->nchannels > 0 && c->nchannels <= KL_MAX_CHANNELS && c->coll_channels <= c->nchannels);
    for (int channel = 0; channel < c->nchannels; channel++) {
        check_ring(c, channel);
        check_tree(c, channel);
        check_nvls(c, channel);
        check_collnet(p, channel);
    }
    check_schedule(c);
    CHECK(p->p2p.n > 0 && !(p->p2p.n & (p->p2p.n - 1)) && p->p2p.per_peer > 0 && p->p2p.per_peer <= p->p2p.n);
}

/* A rank that sends to another node, or receives from one, does so through a NIC of its own domain. */
static void check_nics(const struct kl_plan *p, const struct kl_plan_domain *d)
{
    const struct kl_graph *ring = d->graphs.graph[KL_GRAPH_RING];
    struct kl_graph_nic nic;

    if (!d->graphs.has_nets || d->graphs.why[KL_GRAPH_RING]->end == KL_END_FALLBACK) return;
    for (int c = 0; c < p->connect->base; c++)
        for (int end = 0; end < 2; end++) {
            int rank = ring->intra[c * ring->ngpus + (end ? ring->ngpus - 1 : 0)];

            CHECK(!kl_graph_nic(d->topo, ring, p->connect->base, c, rank, &nic));
            CHECK(nic.net >= 0 && nic.net < d->topo->count[KL_NODE_NET] &&
                  kl_topo_gpu_of_rank(d->topo, nic.proxy) >= 0);
        }
}

/* Nothing is forced: every operation has a possible choice. */
static void check_tuning(const struct kl_tuning *t)
{
    for (int func = 0; func < KL_FUNCS; func++)
        for (int bits = 0; bits <= 40; bits += 5)
            for (int offload = 0; offload < 2; offload++) {
                struct kl_tuning_op op = {
                    .func = func, .bytes = (int64_t)1 << bits, .npipe = 1, .nvls = offload, .collnet = offload};
                struct kl_tuning_choice choice;

                CHECK(!kl_tuning_choose(t, &op, &choice, NULL));
                CHECK(choice.nchannels > 0 && choice.nchannels <= KL_MAX_CHANNELS && choice.nthreads > 0);
                CHECK(choice.time >= 0 && isfinite(choice.time));
            }
}

/* ---- one input ---- */

static void plan(const struct kl_plan_request *request, bool prove)
{
    struct kl_topo *whole;
    struct kl_plan *p;

    if (kl_machine_whole(request->machine, request->options, &whole, NULL)) return;
    kl_topo_free(whole);
    CHECK(!kl_plan_create(request, &p));
    for (int i = 0; i < p->ndomains; i++) {
        check_domain(&p->domain[i]);
        check_nics(p, &p->domain[i]);
        if (prove) check_proofs(p->domain[i].topo);
    }
    check_connection(p);
    check_tuning(&p->tuning);
    kl_plan_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct maker *m = &made;
    struct kl_host_device device[GPUS];
    struct kl_graph_config config;
    struct kl_xml *file;

    *m = (struct maker){.at = data, .end = data + bytes};
    struct kl_topo_options options = draw_options(m);
    draw_config(m, &config);
    int hosts = 1 + any_of(m, 4);
    bool one_domain = any_of(m, 4) == 1, prove = any_of(m, 4) == 1;

    put_machine(m);
    if (!m->ngpus) return 0;
    CHECK(!kl_xml_parse("made", m->text, m->used, kl_xml_topo_schema, &file));
    for (int i = 0; i < m->ngpus; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    options.mnnvl = one_domain;
    struct kl_machine machine = {
        .file = file, .device = device, .ndevices = m->ngpus, .hosts = one_domain && m->ngpus <= GPUS / 2 ? 2 : 1};
    struct kl_plan_request request = {.machine = &machine, .options = &options, .config = &config, .hosts = hosts};
    plan(&request, prove);
    kl_xml_free(file);
    return 0;
}
