/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain_search.h"

#include "tools/kolo/topo_name.h"
#include "topo/paths.h"

const char *kl_verdict_name(int verdict)
{
    static const char *const names[] = {"fault", "graph_file_refused", "graph_file", "fallback", "no_graph", "limit"};

    return verdict >= 0 && verdict < (int)(sizeof names / sizeof names[0]) ? names[verdict] : "unknown";
}

static void say_result(const struct kl_result *r, struct kl_text *t)
{
    kl_text_add(t, "%s: ", kl_graph_name(r->id));
    kl_result_line(r, t);
}

/* ---- a fault ---- */

/* Of several that help, the one without which the machine would be fastest. */
static const struct kl_cause *worst_cause(const struct kl_search_told *told)
{
    const struct kl_cause *worst = NULL;

    for (int i = 0; i < told->ncauses; i++) {
        const struct kl_cause *c = &told->cause[i];

        if (!c->helps) continue;
        if (!worst ||
            (float)c->after.nchannels * c->after.bw_inter > (float)worst->after.nchannels * worst->after.bw_inter)
            worst = c;
    }
    return worst;
}

static void say_cause(const struct kl_search_told *told, const struct kl_cause *c, struct kl_text *t)
{
    kl_text_add(t, "%s: ", c->fault.text);
    if (c->hosts != told->planned.plan->hosts) kl_text_add(t, "between %d hosts, ", c->hosts);
    kl_text_add(t, "the %s has ", kl_graph_name(c->now.id));
    kl_result_line(&c->now, t);
    kl_text_add(t, "%s; %s it would have ", c->now.fallback ? ", as none was found" : "",
                kl_fault_mended(c->fault.code));
    kl_result_line(&c->after, t);
}

/* ---- graph files ---- */

static void say_injected(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    struct kl_result now = kl_result_of(&told->domain->graphs, g->id);

    say_result(&now, t);
    kl_text_add(t, ", taken from the graph file %s without a search", told->planned.comm.graph_file);
    if (!told->searched) return;
    struct kl_result searched = kl_result_of(&told->searched->domain[told->searched->domain_of[0]].graphs, g->id);

    kl_text_add(t, "; a search finds ");
    kl_result_line(&searched, t);
}

static void say_refused(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    struct kl_result now = kl_result_of(&told->domain->graphs, g->id);

    kl_text_add(t, "The graph file %s is not used for the %s: %s. A search gave ", told->planned.comm.graph_file,
                kl_graph_name(g->id), g->why->refused);
    kl_result_line(&now, t);
}

/* ---- nothing found ---- */

/* The worst pair of GPUs. */
static const struct kl_path *worst_path(const struct kl_topo *t, int *from, int *to)
{
    const struct kl_path *worst = NULL;

    for (int i = 0; i < t->count[KL_NODE_GPU]; i++)
        for (int k = 0; k < t->count[KL_NODE_GPU]; k++) {
            const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, i, KL_NODE_GPU, k);

            if (i == k || (worst && p->bw >= worst->bw)) continue;
            worst = p;
            *from = kl_topo_at(t, KL_NODE_GPU, i);
            *to = kl_topo_at(t, KL_NODE_GPU, k);
        }
    return worst;
}

static void say_fallback(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    const struct kl_topo *topo = told->domain->topo;
    char a[KL_NODE_TEXT], b[KL_NODE_TEXT];
    int from = 0, to = 0;
    const struct kl_path *p = worst_path(topo, &from, &to);

    kl_text_add(t, "%s: none was found at any bandwidth, so the GPUs are taken in their order, at 0.1 GB/s",
                kl_graph_name(g->id));
    if (p)
        kl_text_add(t, "; the worst path, %s to %s, is %s with %g GB/s", kl_topo_name(topo, from, a),
                    kl_topo_name(topo, to, b), kl_path_type_name[p->type], (double)p->bw);
}

/* ---- a sound machine ---- */

static void say_links(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    const struct kl_link_group *l = &g->group[0];

    kl_text_add(t, "; one more needs %g GB/s more on ", (double)l->lacks);
    kl_link_group_text(told->domain->topo, l, t);
    kl_text_add(t, ", where %g of %g %s used", (double)l->used, (double)l->bw, l->used == 1 ? "is" : "are");
}

static void say_limit(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    struct kl_result now = kl_result_of(&told->domain->graphs, g->id);
    int max = g->graph->max_channels;

    say_result(&now, t);
    if (g->load->limit == KL_LIMIT_CHANNELS && (g->id == KL_GRAPH_TREE || g->id == KL_GRAPH_COLLNET_CHAIN))
        kl_text_add(t, ", as many as the ring has");
    else if (g->load->limit == KL_LIMIT_CHANNELS && g->graph->pattern == KL_PATTERN_NVLS)
        kl_text_add(t, ", as many as may be: each has another GPU as its head");
    else if (g->load->limit == KL_LIMIT_CHANNELS)
        kl_text_add(t, ", as many as may be: %d", max);
    else if (g->load->limit != KL_LIMIT_NONE && g->ngroups)
        say_links(told, g, t);
    else
        kl_text_add(t, "; links have room for another, but the search had ended: %s", kl_search_end_name(g->why->end));
}

/* ---- the first line ---- */

static int verdict_of(const struct kl_search_told *told, const struct kl_told_graph **about)
{
    const struct kl_told_graph *g = &told->graph[0];

    *about = g;
    if (worst_cause(told)) return KL_VERDICT_FAULT;
    for (int i = told->ngraphs - 1; i >= 0; i--)
        if (told->graph[i].why->refused) *about = &told->graph[i];
    if ((*about)->why->refused) return KL_VERDICT_REFUSED;
    if (g->why->end == KL_END_INJECTED) return KL_VERDICT_INJECTED;
    if (g->why->end == KL_END_FALLBACK) return KL_VERDICT_FALLBACK;
    return g->graph->nchannels ? KL_VERDICT_LIMIT : KL_VERDICT_NONE;
}

/* A fault that could not be tried is the best guess when nothing was found. */
static void say_suspects(const struct kl_search_told *told, struct kl_text *t)
{
    for (int i = 0; i < told->ncauses; i++)
        if (!told->cause[i].mended) {
            kl_text_add(t, "; the cause may be that %s", told->cause[i].fault.text);
            return;
        }
}

void kl_tell_verdict(struct kl_search_told *told)
{
    struct kl_text t = kl_text_over(told->text, sizeof told->text);
    const struct kl_told_graph *g;

    told->verdict = verdict_of(told, &g);
    if (told->verdict == KL_VERDICT_FAULT) say_cause(told, worst_cause(told), &t);
    if (told->verdict == KL_VERDICT_REFUSED) say_refused(told, g, &t);
    if (told->verdict == KL_VERDICT_INJECTED) say_injected(told, g, &t);
    if (told->verdict == KL_VERDICT_FALLBACK) {
        say_fallback(told, g, &t);
        say_suspects(told, &t);
    }
    if (told->verdict == KL_VERDICT_NONE)
        kl_text_add(&t, "%s: no channel; %s", kl_graph_name(g->id), kl_search_end_name(g->why->end));
    if (told->verdict == KL_VERDICT_LIMIT) say_limit(told, g, &t);
    kl_text_add(&t, ".");
}
