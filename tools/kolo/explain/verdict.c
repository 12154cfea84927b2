/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/search.h"

#include "base/setting.h"
#include "plan/topo_name.h"
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

const char *kl_cause_mended(const struct kl_cause *c)
{
    return c->together ? "without these faults" : kl_fault_mended(c->fault.code);
}

static const struct kl_cause *worst_cause(const struct kl_search_told *told)
{
    const struct kl_cause *worst = NULL;

    for (int i = 0; i < told->ncauses; i++)
        if (told->cause[i].helps && (!worst || kl_cause_outweighs(told, &told->cause[i], worst)))
            worst = &told->cause[i];
    return worst;
}

static void say_cause(const struct kl_search_told *told, const struct kl_cause *c, struct kl_text *t)
{
    for (int i = 0; i < told->ncauses; i++)
        if (&told->cause[i] == c || (c->together && told->cause[i].together))
            kl_text_add(t, "%s%s", t->length ? ", and " : "", told->cause[i].fault.text);
    kl_text_add(t, ": ");
    if (c->hosts != told->planned.plan->hosts) kl_text_add(t, "between %d hosts, ", c->hosts);
    kl_text_add(t, "the %s graph has ", kl_graph_name(c->now.id));
    kl_result_line(&c->now, t);
    kl_text_add(t, "%s; %s it would have ", c->now.fallback ? ", because none was found" : "", kl_cause_mended(c));
    kl_result_line(&c->after, t);
}

/* ---- graph files ---- */

/* Who set it: such files are often not known of. */
static void say_origin(const struct kl_search_told *told, struct kl_text *t)
{
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    if (kl_settings_find(&told->cluster->settings, "NCCL_GRAPH_FILE", &setting))
        kl_text_add(t, " (NCCL_GRAPH_FILE, %s)", kl_setting_origin(&setting, origin));
}

static void say_injected(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    struct kl_result now = kl_result_of(&told->domain->graphs, g->id);

    say_result(&now, t);
    kl_text_add(t, ", taken without a search from the graph file %s", told->planned.comm.graph_file);
    say_origin(told, t);
    if (!told->searched) return;
    struct kl_result searched = kl_result_of(&told->searched->domain[told->searched->domain_of[0]].graphs, g->id);

    kl_text_add(t, "; a search finds ");
    kl_result_line(&searched, t);
}

static void say_refused(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    struct kl_result now = kl_result_of(&told->domain->graphs, g->id);

    kl_text_add(t, "The graph file");
    say_origin(told, t);
    kl_text_add(t, " is not used for the %s graph: %s. A search gave ", kl_graph_name(g->id), g->why->refused);
    kl_result_line(&now, t);
}

/* ---- nothing found ---- */

/* Two GPUs that cannot reach each other; false if all can. */
static bool apart(const struct kl_topo *t, int *from, int *to)
{
    for (int i = 0; i < t->count[KL_NODE_GPU]; i++)
        for (int k = 0; k < t->count[KL_NODE_GPU]; k++) {
            if (i == k || kl_path_between(t, KL_NODE_GPU, i, KL_NODE_GPU, k)->type < KL_PATH_NET) continue;
            *from = kl_topo_at(t, KL_NODE_GPU, i);
            *to = kl_topo_at(t, KL_NODE_GPU, k);
            return true;
        }
    return false;
}

static void say_why_nothing(const struct kl_topo *t, const struct kl_told_graph *g, struct kl_text *text)
{
    char a[KL_NODE_TEXT], b[KL_NODE_TEXT];
    int from, to, link = g->story->nchapters ? g->story->chapter[0].limiting_link : -1;

    if (apart(t, &from, &to))
        kl_text_add(text, "; no path that counts leads from %s to %s", kl_topo_name(t, from, a),
                    kl_topo_name(t, to, b));
    else if (link >= 0)
        kl_text_add(text, "; %s → %s was full most often", kl_topo_name(t, t->link[link].from, a),
                    kl_topo_name(t, t->link[link].to, b));
    else
        kl_text_add(text, "; no link was full, but paths of the types that may be used do not lead on");
}

static void say_fallback(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    const struct kl_connect *c = told->planned.plan->connect;

    kl_text_add(t,
                "%s: none was found at any bandwidth, so the GPUs are taken in their order, at 0.1 GB/s, and rings and "
                "trees have %d channels",
                kl_graph_name(g->id), c->coll_channels);
    say_why_nothing(told->domain->topo, g, t);
}

/* ---- a sound machine ---- */

static void say_links(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    const struct kl_link_group *l = &g->group[0];

    kl_text_add(t, "; no room for one more, which takes %g: ", (double)l->more);
    kl_link_group_text(told->domain->topo, l, t);
    kl_text_add(t, " carr%s %g of %g GB/s", l->n == 1 ? "ies" : "y", (double)l->used, (double)l->bw);
}

static void say_limit(const struct kl_search_told *told, const struct kl_told_graph *g, struct kl_text *t)
{
    struct kl_result now = kl_result_of(&told->domain->graphs, g->id);

    say_result(&now, t);
    if (g->load->limit == KL_LIMIT_CHANNELS && (g->id == KL_GRAPH_TREE || g->id == KL_GRAPH_COLLNET_CHAIN))
        kl_text_add(t, ", as many as the ring has");
    else if (g->load->limit == KL_LIMIT_CHANNELS && g->graph->pattern == KL_PATTERN_NVLS)
        kl_text_add(t, ", as many as there may be: each has another GPU as its head");
    else if (g->load->limit == KL_LIMIT_CHANNELS && told->domain->topo->count[KL_NODE_GPU] == 1)
        kl_text_add(t, ", as many as there may be: a GPU alone needs no links");
    else if (g->load->limit == KL_LIMIT_CHANNELS)
        kl_text_add(t, ", as many as there may be");
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
    for (int i = told->ngraphs - 1; i >= 0; i--)
        if (told->graph[i].why->end == KL_END_FALLBACK) *about = &told->graph[i];
    if ((*about)->why->end == KL_END_FALLBACK) return KL_VERDICT_FALLBACK;
    return g->graph->nchannels ? KL_VERDICT_LIMIT : KL_VERDICT_NONE;
}

/* Where no fault is known to cost anything: the first is named all the same. */
static void say_suspect(const struct kl_search_told *told, struct kl_text *t)
{
    const struct kl_cause *c = told->ncauses ? &told->cause[0] : NULL;

    for (int i = 0; i < told->ncauses && c->mended; i++)
        if (!told->cause[i].mended) c = &told->cause[i];
    if (!c) return;
    kl_text_add(t, " %s %s.",
                c->mended ? "Something looks wrong, though it costs nothing here:"
                          : "Something looks wrong, and what it costs is not known:",
                c->fault.text);
}

void kl_tell_verdict(struct kl_search_told *told)
{
    struct kl_text t = kl_text_over(told->text, sizeof told->text);
    const struct kl_told_graph *g;

    told->verdict = verdict_of(told, &g);
    if (told->verdict == KL_VERDICT_FAULT) say_cause(told, worst_cause(told), &t);
    if (told->verdict == KL_VERDICT_REFUSED) say_refused(told, g, &t);
    if (told->verdict == KL_VERDICT_INJECTED) say_injected(told, g, &t);
    if (told->verdict == KL_VERDICT_FALLBACK) say_fallback(told, g, &t);
    if (told->verdict == KL_VERDICT_NONE)
        kl_text_add(&t, "%s: no channel; %s", kl_graph_name(g->id), kl_search_end_name(g->why->end));
    if (told->verdict == KL_VERDICT_LIMIT) say_limit(told, g, &t);
    kl_text_add(&t, ".");
    if (told->verdict != KL_VERDICT_FAULT) say_suspect(told, &t);
}
