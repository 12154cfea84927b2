/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"
#include "base/param_names.h"

#include <stdlib.h>

/* ---- which facts mean something ---- */

static bool same_node(const struct kl_node *x, const struct kl_node *y)
{
    if (x->id != y->id || x->type != y->type || x->nlinks != y->nlinks) return false;
    switch ((enum kl_node_type)x->type) {
    case KL_NODE_GPU:
        return x->gpu.rank == y->gpu.rank && x->gpu.dev == y->gpu.dev && x->gpu.sm == y->gpu.sm &&
               x->gpu.gdr == y->gpu.gdr;
    case KL_NODE_CPU:
        return x->cpu.arch == y->cpu.arch && x->cpu.vendor == y->cpu.vendor && x->cpu.model == y->cpu.model;
    case KL_NODE_NET:
        return x->net.asic == y->net.asic && x->net.bw == y->net.bw && x->net.latency == y->net.latency &&
               x->net.dev == y->net.dev && x->net.port == y->net.port && x->net.gdr == y->net.gdr &&
               x->net.coll == y->net.coll && x->net.max_channels == y->net.max_channels;
    default:
        return true;
    }
}

static bool same_system(const struct kl_topo *x, const struct kl_topo *y)
{
    if (x->nnodes != y->nnodes || x->nlinks != y->nlinks) return false;
    for (int i = 0; i < x->nnodes; i++)
        if (!same_node(&x->node[i], &y->node[i])) return false;
    for (int i = 0; i < x->nlinks; i++)
        if (x->link[i].from != y->link[i].from || x->link[i].to != y->link[i].to || x->link[i].bw != y->link[i].bw ||
            x->link[i].type != y->link[i].type)
            return false;
    return true;
}

/* Would the machine be another one with this fact alone? A machine that cannot be built counts as another one. */
static ncclResult_t means_something(const struct kl_facts *facts, const struct kl_diff_side *a,
                                    const struct kl_diff_side *b, const bool *use, bool *yes)
{
    struct kl_xml *document = NULL;
    struct kl_topo *t = NULL;

    KL_TRY(kl_facts_apply(facts, a, b, use, &document));
    int quiet = kl_error_quiet(1);
    *yes = kl_topo_build(document, &a->cluster.options, &t) || !same_system(t, a->whole);
    kl_error_quiet(quiet);
    kl_topo_free(t);
    kl_xml_free(document);
    return ncclSuccess;
}

static ncclResult_t drop_meaningless(struct kl_facts *facts, const struct kl_diff_side *a, const struct kl_diff_side *b)
{
    static const int64_t max_visits = (int64_t)1 << 22; /* elements visited: files may differ in everything */
    bool *use = calloc((size_t)facts->nfacts + 1, sizeof *use), yes = true;
    ncclResult_t rc = ncclSuccess;

    if (!use) return KL_NOMEM("differences");
    if ((int64_t)facts->nfacts * kl_xml_count(a->document) > max_visits) goto out;
    for (int i = facts->nfacts - 1; i >= 0; i--) {
        use[i] = true;
        KL_TRY_OR(rc, out, means_something(facts, a, b, use, &yes));
        use[i] = false;
        if (yes) continue;
        kl_facts_drop(facts, i, -1);
        facts->meaningless++;
    }
out:
    free(use);
    return rc;
}

/* So many facts are mostly one fact about many things. */
static void merge_alike(struct kl_facts *facts)
{
    for (int i = 0; i < facts->nfacts; i++)
        for (int k = facts->nfacts - 1; k > i; k--)
            if (kl_fact_alike(&facts->fact[k], &facts->fact[i])) kl_facts_drop(facts, k, i);
}

/* ---- settings ---- */

static ncclResult_t add_setting(const struct kl_diff_side *a, const struct kl_diff_side *b, int i,
                                struct kl_facts *facts)
{
    const struct kl_setting *over = &b->cluster.over[i];
    struct kl_fact *f = kl_facts_add(facts, KL_FACT_SETTING, KL_CHANGE_SETTING);

    if (!f) return KL_NOMEM("differences");
    f->setting = i;
    f->param = kl_param_find(b->cluster.params, over->name);
    f->was_set = kl_settings_find(&a->cluster.settings, over->name, &f->was);
    return ncclSuccess;
}

/* ---- all of them ---- */

static ncclResult_t compare_machines(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts)
{
    facts->same_source = kl_diff_same_source(a, b);
    if (facts->same_source) return ncclSuccess;
    KL_TRY(kl_diff_compare_documents(a, b, facts));
    return drop_meaningless(facts, a, b);
}

ncclResult_t kl_diff_find_facts(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts)
{
    if (a->cluster.machine.hosts != b->cluster.machine.hosts)
        facts->comparable = false; /* KOLO_MNNVL: hosts are one machine on one side, and only this setting differs */
    else if (facts->comparable)
        KL_TRY(compare_machines(a, b, facts));
    else if (!kl_facts_add(facts, KL_FACT_MACHINE, KL_CHANGE_MACHINE))
        return KL_NOMEM("differences");
    if (facts->nfacts > KL_FACTS_TRIED) merge_alike(facts);
    for (int i = 0; i < b->request->edits.with.n; i++) KL_TRY(add_setting(a, b, i, facts));
    return ncclSuccess;
}
