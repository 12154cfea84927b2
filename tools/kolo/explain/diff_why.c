/* SPDX-License-Identifier: Apache-2.0 */
/* Why nothing changes. */
#include "tools/kolo/explain/diff.h"

#include "api/param_sets.h"
#include "base/text.h"
#include "topo/paths.h"

#include <string.h>

static bool is_end(const struct kl_topo *t, int node, int end)
{
    const struct kl_node *n = &t->node[node];

    if (end == KL_END_NVS) return n->type == KL_NODE_NVS;
    if (end == KL_END_CPU) return n->type == KL_NODE_CPU;
    return n->type == KL_NODE_GPU && n->gpu.rank == end;
}

static bool path_uses(const struct kl_topo *t, const struct kl_path *p, const int ends[2])
{
    for (int k = 0; k < p->hops; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        if ((is_end(t, l->from, ends[0]) && is_end(t, l->to, ends[1])) ||
            (is_end(t, l->from, ends[1]) && is_end(t, l->to, ends[0])))
            return true;
    }
    return false;
}

/* Only a ring without NICs closes inside the machine. */
static bool graph_uses(const struct kl_topo *t, const struct kl_graph *g, bool nets, const int ends[2])
{
    if (!g || g->pattern == KL_PATTERN_NVLS) return g && ends[1] == KL_END_NVS;
    for (int c = 0; c < g->nchannels; c++)
        for (int i = 0; i < g->ngpus - (nets || g->pattern != KL_PATTERN_RING); i++) {
            int x = kl_topo_gpu_of_rank(t, g->intra[c * g->ngpus + i]);
            int y = kl_topo_gpu_of_rank(t, g->intra[c * g->ngpus + (i + 1) % g->ngpus]);

            if (path_uses(t, kl_path_between(t, KL_NODE_GPU, x, KL_NODE_GPU, y), ends)) return true;
        }
    return false;
}

static bool plan_uses(const struct kl_plan *p, const int ends[2])
{
    for (int d = 0; d < p->ndomains; d++)
        for (int g = 0; g < KL_GRAPHS; g++)
            if (graph_uses(p->domain[d].topo, p->domain[d].graphs.graph[g], p->domain[d].graphs.has_nets, ends))
                return true;
    return false;
}

static void say_why_setting(const struct kl_diff *d, const struct kl_fact *f, struct kl_text *t)
{
    const struct kl_param_name *other = kl_param_find_other(&kl_param_registry, f->subject);
    const struct kl_setting *over = &d->b.cluster.over[f->setting];
    const struct kl_param *param = kl_param_find(&kl_param_registry, f->subject);
    struct kl_setting found;

    if (!param && other && other->note)
        kl_text_add(t, "it does not concern plans (%s)", other->note);
    else if (!param)
        kl_text_add(t, "NCCL has this setting, in Kolo it has no effect");
    else if (!strcmp(kl_settings_find(&d->a.cluster.settings, f->subject, &found) ? found.text : param->dfl,
                     over->text))
        kl_text_add(t, "it was so before (%s)", f->a);
    else
        kl_text_add(t, "no rule that reads it answers otherwise on this machine");
}

static void say_why_fact(const struct kl_diff *d, const struct kl_fact *f, struct kl_text *t)
{
    const struct kl_plan *p = d->a.planned.plan;

    if (f->kind == KL_FACT_SETTING)
        say_why_setting(d, f, t);
    else if (f->kind == KL_FACT_LINK)
        kl_text_add(t, plan_uses(p, f->ends) ? "what is left still carries what the graphs take"
                                             : "no ring and no tree goes over it");
    else if (f->kind == KL_FACT_NET && !p->domain[p->domain_of[0]].topo->count[KL_NODE_NET] &&
             d->a.whole->count[KL_NODE_NET])
        kl_text_add(t, "all ranks are in one machine, so the network is not used; see --hosts");
    else
        kl_text_add(t, "no graph uses what it concerns");
}

void kl_diff_say_why(struct kl_diff *d)
{
    struct kl_text t = kl_text_over(d->why, sizeof d->why);

    if (!d->facts.nfacts && d->facts.meaningless)
        kl_text_add(&t, "what differs in the files (%d) means nothing to a plan", d->facts.meaningless);
    else if (!d->facts.nfacts)
        kl_text_add(&t, "both sides are the same machine with the same settings");
    else if (d->facts.nfacts > 1)
        kl_text_add(&t, "the graphs use nothing of what differs, or enough of it is left");
    else
        say_why_fact(d, &d->facts.fact[0], &t);
    if (d->rows.changed[KL_ROW_GPU_GPU] + d->rows.changed[KL_ROW_GPU_NET] + d->rows.changed[KL_ROW_NET_GPU])
        kl_text_add(&t, "; some paths change");
}
