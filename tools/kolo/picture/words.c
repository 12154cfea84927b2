/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/words.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

bool kl_is_local(float bw)
{
    return bw >= KL_BW_LOCAL;
}

float kl_wire_width(float bw)
{
    float w = 1.2f + 0.45f * sqrtf(bw);

    return kl_is_local(bw) ? 2 : w > 15 ? 15 : w;
}

const char *kl_words_link(int type)
{
    static const char *const words[KL_PATH_TYPES] = {
        [KL_PATH_LOC] = "inner link", [KL_PATH_NVL] = "NVLink",       [KL_PATH_C2C] = "NVLink-C2C",
        [KL_PATH_PCI] = "PCIe",       [KL_PATH_SYS] = "between CPUs", [KL_PATH_NET] = "port",
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
        kl_text_add(out, " and %d NIC%s of %g GB/s", n, kl_plural(n), (double)most);
}

char *kl_words_title(const struct kl_scene *s, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    const struct kl_topo *t = s->topo;
    int gpus = t->count[KL_NODE_GPU] / s->systems;

    if (s->systems > 1 && t->count[KL_NODE_NVS] && s->hosts > s->systems)
        kl_text_add(&out, "%d hosts, %d to an NVLink domain, each with %d GPU%s", s->hosts, s->systems, gpus,
                    kl_plural(gpus));
    else if (s->hosts > 1)
        kl_text_add(&out, "%d hosts %s, each with %d GPU%s", s->hosts,
                    s->systems > 1 && t->count[KL_NODE_NVS] ? "in one NVLink domain" : "joined by a network", gpus,
                    kl_plural(gpus));
    else
        kl_text_add(&out, "1 host with %d GPU%s", gpus, kl_plural(gpus));
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

/* Sums of single precision are inexact: tolerate a thousandth. */
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

static bool has_fallen_back(const struct kl_scene *s, int id)
{
    const struct kl_plan *p = s->view->plan;
    const struct kl_graph_why *why = p->domain[p->domain_of[0]].graphs.why[id];

    return why && why->end == KL_END_FALLBACK;
}

/* Rings and trees over all ranks may be more, or fewer, than the search found in a host. */
static void add_joined(struct kl_text *out, const struct kl_scene *s, const struct kl_picture_graph *g)
{
    const int n = s->view->plan->connect->nchannels;

    if ((g->id != KL_GRAPH_RING && g->id != KL_GRAPH_TREE) || n == g->graph->nchannels) return;
    kl_text_add(out, n > g->graph->nchannels ? ", duplicated to %d" : ", cut to %d", n);
}

char *kl_words_graph(const struct kl_scene *s, const struct kl_picture_graph *g, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    const struct kl_graph *graph = g->graph;

    kl_text_add(&out, "%s: %d channel%s of %g GB/s%s", kl_graph_name(g->id), graph->nchannels,
                kl_plural(graph->nchannels), (double)graph->bw_intra, graph->nchannels > 1 ? " each" : "");
    if (s->network && graph->bw_inter != graph->bw_intra)
        kl_text_add(&out, " inside a host and %g GB/s to the network", (double)graph->bw_inter);
    add_joined(&out, s, g);
    if (has_fallen_back(s, g->id)) kl_text_add(&out, ", because nothing better was found");
    add_fullest(&out, s, g);
    return text;
}

char *kl_words_channels(uint64_t channels, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);

    for (int c = 0; c < KL_MAX_CHANNELS; c++) {
        int first = c;

        if (!(channels >> c & 1)) continue;
        while (c + 1 < KL_MAX_CHANNELS && channels >> (c + 1) & 1) c++;
        kl_text_add(&out, c > first ? "%s%d–%d" : "%s%d", out.length ? ", " : "", first, c);
    }
    return text;
}

char *kl_words_way(const struct kl_picture_graph *g, const struct kl_way *way, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    uint64_t others = way->channels & (way->channels - 1);
    char like[KL_WORDS];

    kl_text_add(&out, "%s, channel %d", kl_graph_name(g->id), __builtin_ctzll(way->channels));
    if (others) kl_text_add(&out, " (%s: the same)", kl_words_channels(others, like));
    return text;
}

const char *kl_words_arrows(int id)
{
    static const char *const words[KL_GRAPHS] = {
        [KL_GRAPH_RING] = "Arrows: its route; numbers: the order of the GPUs",
        [KL_GRAPH_TREE] = "Arrows: down from the root; numbers: distance from the root",
        [KL_GRAPH_COLLNET_CHAIN] = "Arrows: its route; numbers: the order of the GPUs in a host",
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

/* ---- wires ---- */

char *kl_words_wire(const struct kl_scene *s, const struct kl_wire *w, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    char from[KL_WORDS], to[KL_WORDS];

    end_names(s, w, 0, from, to);
    kl_text_add(&out, "%s: %.100s – %.100s", kl_words_link(kl_scene_link(s, w)->type), from, to);
    if (s->hosts > 1 && s->box[w->a].host >= 0) kl_text_add(&out, ", host %d", s->box[w->a].host);
    return text;
}

char *kl_words_wire_bw(const struct kl_scene *s, const struct kl_wire *w, char text[KL_WORDS])
{
    struct kl_text out = kl_text_over(text, KL_WORDS);
    float bw = kl_scene_link(s, w)->bw;

    if (kl_is_local(bw))
        kl_text_add(&out, "no limit is counted");
    else
        kl_text_add(&out, "%g GB/s each way", (double)bw);
    return text;
}
