/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture_words.h"

#include "base/text.h"
#include "tools/kolo/topo_name.h"

#include <string.h>

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

bool kl_is_local(float bw)
{
    return bw >= KL_BW_LOCAL;
}

const char *kl_words_link(int type)
{
    static const char *const words[KL_PATH_TYPES] = {
        [KL_PATH_LOC] = "inner link",        [KL_PATH_NVL] = "NVLink",
        [KL_PATH_C2C] = "NVLink-C2C",        [KL_PATH_PCI] = "PCIe",
        [KL_PATH_SYS] = "link between CPUs", [KL_PATH_NET] = "network port",
    };

    return words[type] ? words[type] : "link";
}

/* ---- the cluster ---- */

static bool has_gpu_links(const struct kl_topo *t)
{
    for (int k = 0; k < t->nlinks; k++)
        if (t->node[t->link[k].from].type == KL_NODE_GPU && t->node[t->link[k].to].type == KL_NODE_GPU) return true;
    return false;
}

static void add_nics(struct kl_text *out, const struct kl_scene *s)
{
    const struct kl_topo *t = s->topo;
    int n = t->count[KL_NODE_NET] / s->systems;
    float least = 0, most = 0;

    for (int i = 0; i < t->count[KL_NODE_NET]; i++) {
        float bw = t->node[kl_topo_at(t, KL_NODE_NET, i)].net.bw;

        if (!i || bw < least) least = bw;
        if (bw > most) most = bw;
    }
    if (!n)
        kl_text_add(out, " and no NIC");
    else if (least < most)
        kl_text_add(out, " and %d NICs of %g to %g GB/s", n, (double)least, (double)most);
    else
        kl_text_add(out, " and %d NIC%s of %g GB/s", n, plural(n), (double)most);
}

char *kl_words_title(const struct kl_scene *s, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    const struct kl_topo *t = s->topo;
    int gpus = t->count[KL_NODE_GPU] / s->systems;

    if (s->hosts > 1)
        kl_text_add(&out, "%d hosts %s, each with %d GPU%s", s->hosts,
                    s->systems > 1 && t->count[KL_NODE_NVS] ? "in one NVLink domain" : "joined by a network", gpus,
                    plural(gpus));
    else
        kl_text_add(&out, "1 host with %d GPU%s", gpus, plural(gpus));
    if (t->count[KL_NODE_NVS])
        kl_text_add(&out, " on NVSwitch");
    else if (has_gpu_links(t))
        kl_text_add(&out, " joined by NVLink");
    add_nics(&out, s);
    return text;
}

/* ---- loads ---- */

static double fullness(const struct kl_scene *s, const struct kl_picture_graph *g, int link)
{
    if (link < 0 || s->topo->link[link].bw <= 0) return 0;
    return g->used[link] / (double)s->topo->link[link].bw;
}

double kl_wire_fullness(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_wire *w)
{
    double there = fullness(s, g, w->link[0]), back = fullness(s, g, w->link[1]);

    return there > back ? there : back;
}

/* Sums of single precision need not be exact: a thousandth is forgiven. */
int kl_load_step(double part)
{
    if (part < 0.001) return 0;
    for (int step = 1; step < KL_LOAD_STEPS - 1; step++)
        if (part <= (double)step / (KL_LOAD_STEPS - 1) + 0.001) return step;
    return KL_LOAD_STEPS - 1;
}

static void end_names(const struct kl_scene *s, const struct kl_wire *w, int way, char from[KL_WORDS],
                      char to[KL_WORDS])
{
    char below[KL_WORDS];

    kl_words_box(s, &s->box[way ? w->b : w->a], from, below);
    kl_words_box(s, &s->box[way ? w->a : w->b], to, below);
}

char *kl_words_load(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_wire *w, int way,
                    char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    char from[KL_WORDS], to[KL_WORDS];
    int k = w->link[way];

    if (k < 0) return text;
    end_names(s, w, way, from, to);
    kl_text_add(&out, "%.100s to %.100s: ", from, to);
    if (kl_is_local(s->topo->link[k].bw))
        kl_text_add(&out, "%.4g GB/s, no limit is counted", g->used[k]);
    else
        kl_text_add(&out, "%.4g of %g GB/s (%.0f %%)", g->used[k], (double)s->topo->link[k].bw,
                    100 * fullness(s, g, k));
    return text;
}

/* ---- graphs ---- */

static void add_fullest(struct kl_text *out, const struct kl_scene *s, const struct kl_picture_graph *g)
{
    int best = -1;
    double most = 0;
    char text[KL_WORDS];

    for (int i = 0; i < s->nwires; i++)
        if (kl_wire_fullness(s, g, &s->wire[i]) > most + 0.001) best = i, most = kl_wire_fullness(s, g, &s->wire[i]);
    if (best < 0) return;
    kl_text_add(out, ". Fullest link: %s",
                kl_words_load(s, g, &s->wire[best], fullness(s, g, s->wire[best].link[0]) < most - 0.001, text));
}

char *kl_words_graph(const struct kl_scene *s, const struct kl_picture_graph *g, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    const struct kl_graph *graph = g->graph;

    kl_text_add(&out, "%s: %d channel%s of %g GB/s each", kl_graph_name(g->id), graph->nchannels,
                plural(graph->nchannels), (double)graph->bw_intra);
    if (s->network && graph->bw_inter != graph->bw_intra)
        kl_text_add(&out, " inside a host and %g GB/s to the network", (double)graph->bw_inter);
    add_fullest(&out, s, g);
    return text;
}

char *kl_words_way(const struct kl_picture_graph *g, const struct kl_way *way, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    const char *others = strchr(way->name, ',');

    kl_text_add(&out, "%s, channel %.*s", kl_graph_name(g->id),
                (int)(others ? others - way->name : (long)strlen(way->name)), way->name);
    if (others) kl_text_add(&out, " (%s run%s the same way)", others + 2, strchr(others + 2, ',') ? "" : "s");
    return text;
}

const char *kl_words_arrows(int id)
{
    static const char *const words[KL_GRAPHS] = {
        [KL_GRAPH_RING] = "Arrows: its way; numbers: the order of the GPUs",
        [KL_GRAPH_TREE] = "Arrows: its way from the root; numbers: distance from the root",
        [KL_GRAPH_COLLNET_CHAIN] = "Arrows: its way; numbers: the order of the GPUs in a host",
        [KL_GRAPH_COLLNET_DIRECT] = "Arrows: all GPUs to the head and back; the head also to the network",
        [KL_GRAPH_NVLS] = "Arrows: all GPUs to the NVSwitch and back; the head also to the network",
    };

    return words[id];
}

char *kl_words_number(int id, int number, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);

    if (number)
        kl_text_add(&out, "%d", number);
    else
        kl_text_add(&out, "%s", id == KL_GRAPH_TREE ? "root" : "head");
    return text;
}

/* ---- boxes ---- */

static int rank_of(const struct kl_scene *s, const struct kl_box *b)
{
    return s->topo->node[b->node].gpu.rank + b->copy * s->view->plan->ranks_per_host;
}

/* What a file calls a port; NULL if nothing. */
static const char *file_name_of(const struct kl_scene *s, int dev)
{
    for (int e = KL_XML_ROOT; (e = kl_xml_walk(s->document, KL_XML_ROOT, e)) >= 0;)
        if (!strcmp(kl_xml_tag(s->document, e), "net") && kl_xml_int(s->document, e, "dev", -1) == dev)
            return kl_xml_attr(s->document, e, "name");
    return NULL;
}

static const struct kl_node *port_at(const struct kl_scene *s, int nic, int port)
{
    const struct kl_node *n = &s->topo->node[nic];

    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        const struct kl_node *net = &s->topo->node[s->topo->link[k].to];

        if (net->type == KL_NODE_NET && !port--) return net;
    }
    return NULL;
}

/* "NET/0", "NET/0–1", and the name that the file has for the first. */
static void name_nic(const struct kl_scene *s, int nic, struct kl_text *name, struct kl_text *below)
{
    const struct kl_node *net = port_at(s, nic, 0), *last = net, *next;
    const char *called;

    if (!net) {
        kl_text_add(name, "NIC");
        return;
    }
    for (int i = 1; (next = port_at(s, nic, i)); i++) last = next;
    kl_text_add(name, "NET/%d", net->net.dev);
    if (last != net) kl_text_add(name, "–%d", last->net.dev);
    called = file_name_of(s, net->net.dev);
    if (called) kl_text_add(below, "%.200s", called);
}

static void name_cpu(const struct kl_scene *s, const struct kl_node *n, struct kl_text *name)
{
    static const char *const vendors[] = {"", " Intel", " AMD", " Zhaoxin"};
    static const char *const archs[] = {"", "", " POWER", " ARM"};

    kl_text_add(name, "CPU %d", (int)(kl_id_local(n->id) & 0xffff));
    if (n->cpu.arch >= KL_ARCH_X86 && n->cpu.arch <= KL_ARCH_ARM) kl_text_add(name, "%s", archs[n->cpu.arch]);
    if (n->cpu.arch == KL_ARCH_X86 && n->cpu.vendor >= KL_VENDOR_INTEL && n->cpu.vendor <= KL_VENDOR_ZHAOXIN)
        kl_text_add(name, "%s", vendors[n->cpu.vendor]);
    (void)s;
}

static void name_host(const struct kl_scene *s, int host, struct kl_text *name)
{
    int gpus = s->topo->count[KL_NODE_GPU] / s->systems;

    kl_text_add(name, "host %d", host);
    if (gpus > 1) kl_text_add(name, ": ranks %d to %d", host * gpus, host * gpus + gpus - 1);
}

static void name_more(const struct kl_box *b, struct kl_text *name, struct kl_text *below)
{
    kl_text_add(name, "%d more", b->count);
    kl_text_add(below, "%s%s", b->host < 0 ? "host" : "GPU", plural(b->count));
}

void kl_words_box(const struct kl_scene *s, const struct kl_box *b, char name[KL_WORDS], char below[KL_WORDS])
{
    struct kl_text n = kl_text_over(name, KL_WORDS), under = kl_text_over(below, KL_WORDS);

    switch (b->kind) {
    case KL_BOX_HOST:
        name_host(s, b->host, &n);
        break;
    case KL_BOX_NVS:
        kl_text_add(&n, "NVSwitch");
        break;
    case KL_BOX_CPU:
        name_cpu(s, &s->topo->node[b->node], &n);
        break;
    case KL_BOX_PCI:
        kl_text_add(&n, "PCIe switch");
        break;
    case KL_BOX_GPU:
        kl_text_add(&n, "GPU/%d", rank_of(s, b));
        break;
    case KL_BOX_NIC:
        name_nic(s, b->node, &n, &under);
        break;
    case KL_BOX_NETWORK:
        kl_text_add(&n, "network");
        break;
    default:
        name_more(b, &n, &under);
    }
}

/* ---- facts ---- */

static void add_gpu_facts(const struct kl_scene *s, const struct kl_box *b, struct kl_text *out)
{
    const struct kl_node *n = &s->topo->node[b->node];
    char busid[KL_BUSID_TEXT];

    kl_text_add(out, "\nrank %d, device %d of host %d", rank_of(s, b), n->gpu.dev, b->host);
    kl_text_add(out, "\nbus id %s, compute capability sm %d", kl_busid_text(kl_id_local(n->id), busid), n->gpu.sm);
    kl_text_add(out, n->gpu.gdr ? "\nGPUDirect RDMA: NICs may reach its memory" : "\nno GPUDirect RDMA");
}

static void add_nic_facts(const struct kl_scene *s, const struct kl_box *b, struct kl_text *out)
{
    const struct kl_node *net;

    for (int i = 0; (net = port_at(s, b->node, i)); i++) {
        const char *called = file_name_of(s, net->net.dev);

        kl_text_add(out, "\nNET/%d%s%.80s: port %d, %g GB/s%s%s", net->net.dev, called ? " " : "", called ? called : "",
                    net->net.port, (double)net->net.bw, net->net.gdr ? ", GPUDirect RDMA" : "",
                    net->net.coll ? ", reduces in the network" : "");
    }
    if (!s->network) kl_text_add(out, "\nnot used: no rank is beyond a network");
}

char *kl_words_box_facts(const struct kl_scene *s, const struct kl_box *b, char text[KL_WORDS])
{
    char name[KL_WORDS], below[KL_WORDS], busid[KL_BUSID_TEXT];
    struct kl_text out = kl_text_over(text, KL_WORDS);

    kl_words_box(s, b, name, below);
    kl_text_add(&out, b->kind == KL_BOX_MORE ? "%.80s %.80s" : "%.80s", name, below);
    if (b->kind == KL_BOX_GPU) add_gpu_facts(s, b, &out);
    if (b->kind == KL_BOX_NIC) add_nic_facts(s, b, &out);
    if (b->kind == KL_BOX_PCI)
        kl_text_add(&out, "\nbus id %s, host %d", kl_busid_text(kl_id_local(s->topo->node[b->node].id), busid),
                    b->host);
    if (b->kind == KL_BOX_CPU) kl_text_add(&out, "\na NUMA node of host %d", b->host);
    if (b->kind == KL_BOX_NVS) kl_text_add(&out, "\njoins GPUs by NVLink%s", b->host < 0 ? " over all hosts" : "");
    if (b->kind == KL_BOX_NETWORK) kl_text_add(&out, "\njoins %d hosts; how it is built is not known", s->hosts);
    if (b->kind == KL_BOX_MORE) kl_text_add(&out, "\nnot drawn: like those that are");
    return text;
}

/* ---- wires ---- */

static const struct kl_link *link_of(const struct kl_scene *s, const struct kl_wire *w)
{
    return &s->topo->link[w->link[0] >= 0 ? w->link[0] : w->link[1]];
}

char *kl_words_wire(const struct kl_scene *s, const struct kl_wire *w, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    char from[KL_WORDS], to[KL_WORDS];

    end_names(s, w, 0, from, to);
    kl_text_add(&out, "%s: %.100s – %.100s", kl_words_link(link_of(s, w)->type), from, to);
    if (s->hosts > 1 && s->box[w->a].host >= 0) kl_text_add(&out, ", host %d", s->box[w->a].host);
    return text;
}

char *kl_words_wire_bw(const struct kl_scene *s, const struct kl_wire *w, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    float bw = link_of(s, w)->bw;

    if (kl_is_local(bw))
        kl_text_add(&out, "no limit is counted");
    else
        kl_text_add(&out, "%g GB/s each way", (double)bw);
    return text;
}
