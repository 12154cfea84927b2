/* SPDX-License-Identifier: Apache-2.0 */
#include "base/setting.h"
#include "plan/topo_name.h"
#include "answer/search.h"

static void say_result(const struct kl_graph_result *g, struct kl_text *t)
{
    kl_text_add(t, "%s: ", kl_graph_name(g->id));
    kl_search_add_result(g, t);
}

/* ---- a fault ---- */

static void say_fault(const struct kl_search_report *r, struct kl_text *t)
{
    const struct kl_fault_cost *worst = r->worst;

    for (int i = 0; i < r->nfaults; i++)
        if (&r->fault[i] == worst || (worst->together && r->fault[i].together))
            kl_text_add(t, "%s%s", t->length ? ", and " : "", r->fault[i].fault.text);
    kl_text_add(t, ": ");
    if (worst->hosts != r->planned.plan->hosts) kl_text_add(t, "between %d hosts, ", worst->hosts);
    kl_text_add(t, "the %s graph has ", kl_graph_name(worst->now.id));
    kl_search_add_result(&worst->now, t);
    kl_text_add(t, "%s; %s it would have ", worst->now.fallback ? ", because none was found" : "",
                kl_search_mended(worst));
    kl_search_add_result(&worst->without, t);
}

/* ---- graph files ---- */

/* Who set it: such files are often not known of. */
static void say_origin(const struct kl_search_report *r, struct kl_text *t)
{
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    if (kl_settings_find(&r->cluster->settings, "NCCL_GRAPH_FILE", &setting))
        kl_text_add(t, " (NCCL_GRAPH_FILE, %s)", kl_setting_origin(&setting, origin));
}

static void say_injected(const struct kl_search_report *r, struct kl_text *t)
{
    const struct kl_graph_report *g = r->about;
    struct kl_graph_result now = kl_graph_result_of(&r->domain->graphs, g->id);

    say_result(&now, t);
    kl_text_add(t, ", taken without a search from the graph file %s", r->planned.config.graph_file);
    say_origin(r, t);
    if (!r->searched) return;
    struct kl_graph_result searched = kl_graph_result_of(&r->searched->domain[r->searched->domain_of[0]].graphs, g->id);

    kl_text_add(t, "; a search finds ");
    kl_search_add_result(&searched, t);
}

static void say_refused(const struct kl_search_report *r, struct kl_text *t)
{
    const struct kl_graph_report *g = r->about;
    struct kl_graph_result now = kl_graph_result_of(&r->domain->graphs, g->id);

    kl_text_add(t, "The graph file");
    say_origin(r, t);
    kl_text_add(t, " is not used for the %s graph: %s. A search gave ", kl_graph_name(g->id), g->why->refused);
    kl_search_add_result(&now, t);
}

/* ---- nothing found ---- */

static void say_why_nothing(const struct kl_search_report *r, struct kl_text *text)
{
    const struct kl_topo *t = r->domain->topo;
    const struct kl_search_log *log = r->about->log;
    char a[KL_NODE_TEXT], b[KL_NODE_TEXT];
    int link = log->log_entries ? log->entry[0].limiting_link : -1;

    if (r->apart[0] >= 0)
        kl_text_add(text, "; no path that counts leads from %s to %s", kl_topo_name(t, r->apart[0], a),
                    kl_topo_name(t, r->apart[1], b));
    else if (link >= 0)
        kl_text_add(text, "; %s → %s was full most often", kl_topo_name(t, t->link[link].from, a),
                    kl_topo_name(t, t->link[link].to, b));
    else
        kl_text_add(text, "; no link was full, but paths of the allowed types do not lead on");
}

static void say_fallback(const struct kl_search_report *r, struct kl_text *t)
{
    kl_text_add(t,
                "%s: none was found at any bandwidth, so the GPUs are taken in their order, at 0.1 GB/s, and rings and "
                "trees have %d channels",
                kl_graph_name(r->about->id), r->planned.plan->connect->coll_channels);
    say_why_nothing(r, t);
}

/* ---- a sound machine ---- */

static void say_links(const struct kl_search_report *r, const struct kl_graph_report *g, struct kl_text *t)
{
    const struct kl_link_group *l = &g->group[0];

    kl_text_add(t, "; no room for one more, which takes %g: ", (double)l->more);
    kl_search_add_links(r->domain->topo, l, t);
    kl_text_add(t, " carr%s %g of %g GB/s", l->n == 1 ? "ies" : "y", (double)l->used, (double)l->bw);
}

static void say_limit(const struct kl_search_report *r, struct kl_text *t)
{
    const struct kl_graph_report *g = r->about;
    struct kl_graph_result now = kl_graph_result_of(&r->domain->graphs, g->id);

    say_result(&now, t);
    if (g->load->limit == KL_LIMIT_CHANNELS && (g->id == KL_GRAPH_TREE || g->id == KL_GRAPH_COLLNET_CHAIN))
        kl_text_add(t, ", as many as the ring has");
    else if (g->load->limit == KL_LIMIT_CHANNELS && g->graph->pattern == KL_PATTERN_NVLS)
        kl_text_add(t, ", as many as there may be: each has another GPU as its head");
    else if (g->load->limit == KL_LIMIT_CHANNELS && r->domain->topo->count[KL_NODE_GPU] == 1)
        kl_text_add(t, ", as many as there may be: a GPU alone needs no links");
    else if (g->load->limit == KL_LIMIT_CHANNELS)
        kl_text_add(t, ", as many as there may be");
    else if (g->load->limit != KL_LIMIT_NONE && g->ngroups)
        say_links(r, g, t);
    else
        kl_text_add(t, "; links have room for another, but the search had ended: %s", kl_search_end_name(g->why->end));
}

/* ---- the first line ---- */

static void say_none(const struct kl_search_report *r, struct kl_text *t)
{
    kl_text_add(t, "%s: no channel; %s", kl_graph_name(r->about->id), kl_search_end_name(r->about->why->end));
}

static void say_suspect(const struct kl_fault_cost *f, struct kl_text *t)
{
    kl_text_add(t, " %s %s.",
                f->mended ? "Something looks wrong, but costs nothing here:"
                          : "Something looks wrong, at an unknown cost:",
                f->fault.text);
}

void kl_search_add_headline(const struct kl_search_report *r, struct kl_text *t)
{
    static void (*const say[KL_HEADLINES])(const struct kl_search_report *, struct kl_text *) = {
        [KL_HEADLINE_FAULT] = say_fault,       [KL_HEADLINE_REFUSED] = say_refused,
        [KL_HEADLINE_INJECTED] = say_injected, [KL_HEADLINE_FALLBACK] = say_fallback,
        [KL_HEADLINE_NONE] = say_none,         [KL_HEADLINE_LIMIT] = say_limit,
    };

    say[r->headline](r, t);
    kl_text_add(t, ".");
    if (r->suspect) say_suspect(r->suspect, t);
}
