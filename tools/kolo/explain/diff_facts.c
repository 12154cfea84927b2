/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

struct kl_fact *kl_facts_add(struct kl_facts *facts, int kind)
{
    if (facts->nfacts == facts->max_facts) {
        int max = facts->max_facts ? 2 * facts->max_facts : 16;
        struct kl_fact *grown = realloc(facts->fact, (size_t)max * sizeof *grown);

        if (!grown) return NULL;
        facts->fact = grown;
        facts->max_facts = max;
    }
    facts->fact[facts->nfacts] =
        (struct kl_fact){.kind = kind, .ends = {KL_END_NONE, KL_END_NONE}, .setting = -1, .nmerged = 1};
    return &facts->fact[facts->nfacts++];
}

ncclResult_t kl_facts_add_op(struct kl_facts *facts, int fact, int a, int b, const char *key)
{
    if (facts->nops == facts->max_ops) {
        int max = facts->max_ops ? 2 * facts->max_ops : 32;
        struct kl_doc_op *grown = realloc(facts->op, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("differences");
        facts->op = grown;
        facts->max_ops = max;
    }
    facts->op[facts->nops] = (struct kl_doc_op){.fact = fact, .a = a, .b = b};
    snprintf(facts->op[facts->nops].key, sizeof facts->op->key, "%.31s", key);
    facts->nops++;
    return ncclSuccess;
}

void kl_facts_free(struct kl_facts *facts)
{
    free(facts->fact);
    free(facts->op);
    *facts = (struct kl_facts){0};
}

static ncclResult_t apply_op(const struct kl_doc_op *op, const struct kl_xml *from, struct kl_xml *to)
{
    int copy;

    if (!*op->key && op->b < 0) {
        kl_xml_remove(to, op->a);
        return ncclSuccess;
    }
    if (!*op->key) return kl_xml_copy(to, op->a, from, op->b, &copy);
    const char *value = kl_xml_attr(from, op->b, op->key);
    if (value) return kl_xml_set(to, op->a, op->key, value);
    kl_xml_unset(to, op->a, op->key);
    return ncclSuccess;
}

ncclResult_t kl_facts_apply(const struct kl_facts *facts, const struct kl_diff_side *a, const struct kl_diff_side *b,
                            const bool *use, struct kl_xml **document)
{
    struct kl_xml *xml = NULL;

    KL_TRY(kl_xml_clone(a->document, &xml));
    for (int i = 0; i < facts->nops; i++) {
        ncclResult_t rc = use[facts->op[i].fact] ? apply_op(&facts->op[i], b->document, xml) : ncclSuccess;

        if (!rc) continue;
        kl_xml_free(xml);
        return rc;
    }
    *document = xml;
    return ncclSuccess;
}

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

/* Would the machine be another one with this fact alone? What cannot be built certainly is. */
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

/* Fact `from` becomes part of fact `to`, or nothing (-1); those behind it move up. */
static void drop_fact(struct kl_facts *facts, int from, int to)
{
    int n = 0;

    for (int i = 0; i < facts->nops; i++) {
        struct kl_doc_op op = facts->op[i];

        if (op.fact == from) op.fact = to;
        if (op.fact < 0) continue;
        if (op.fact > from) op.fact--;
        facts->op[n++] = op;
    }
    facts->nops = n;
    if (to >= 0) facts->fact[to].nmerged += facts->fact[from].nmerged;
    memmove(&facts->fact[from], &facts->fact[from + 1], (size_t)(facts->nfacts - from - 1) * sizeof *facts->fact);
    facts->nfacts--;
}

static ncclResult_t drop_meaningless(struct kl_facts *facts, const struct kl_diff_side *a, const struct kl_diff_side *b)
{
    static const int64_t max_visits = (int64_t)1 << 22; /* elements looked at: files may differ in everything */
    bool *use = calloc((size_t)facts->nfacts + 1, sizeof *use), yes = true;
    ncclResult_t rc = ncclSuccess;

    if (!use) return KL_NOMEM("differences");
    if ((int64_t)facts->nfacts * kl_xml_count(a->document) > max_visits) goto out;
    for (int i = facts->nfacts - 1; i >= 0; i--) {
        use[i] = true;
        KL_TRY_OR(rc, out, means_something(facts, a, b, use, &yes));
        use[i] = false;
        if (yes) continue;
        drop_fact(facts, i, -1);
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
            if (facts->fact[k].kind == facts->fact[i].kind && !strcmp(facts->fact[k].what, facts->fact[i].what) &&
                !strcmp(facts->fact[k].predicate, facts->fact[i].predicate))
                drop_fact(facts, k, i);
}

/* ---- words ---- */

static void say_end(int end, struct kl_text *t)
{
    if (end == KL_END_NVS)
        kl_text_add(t, "NVS");
    else if (end == KL_END_CPU)
        kl_text_add(t, "CPU");
    else
        kl_text_add(t, "GPU/%d", end);
}

static void say_links(int n, float gbps, char *value, size_t bytes)
{
    snprintf(value, bytes, n ? "%d NVLink%s, %g GB/s" : "none", n, kl_plural(n), (double)((float)n * gbps));
}

static void describe_link(struct kl_fact *f)
{
    int a = f->links[0], b = f->links[1], more = b > a ? b - a : a - b;
    struct kl_text subject = kl_text_over(f->subject, sizeof f->subject);
    struct kl_text p = kl_text_over(f->predicate, sizeof f->predicate);
    double bw_a = (double)((float)a * f->gbps), bw_b = (double)((float)b * f->gbps);

    say_end(f->ends[0], &subject);
    kl_text_add(&subject, f->ways == 1 ? " to " : "-");
    say_end(f->ends[1], &subject);
    snprintf(f->what, sizeof f->what, "NVLink");
    say_links(a, f->gbps, f->a, sizeof f->a);
    say_links(b, f->gbps, f->b, sizeof f->b);
    if (b && b < a)
        kl_text_add(&p, "lost %d of its %d NVLinks (%g to %g GB/s)", more, a, bw_a, bw_b);
    else if (b < a && a > 1)
        kl_text_add(&p, "lost its %d NVLinks (%g GB/s)", a, bw_a);
    else if (b < a)
        kl_text_add(&p, "lost its NVLink (%g GB/s)", bw_a);
    else
        kl_text_add(&p, "got %d%s NVLink%s (%g to %g GB/s)", more, a ? " more" : "", kl_plural(more), bw_a, bw_b);
    if (f->ways == 1) kl_text_add(&p, ", one way");
}

static void put_into_words(struct kl_facts *facts)
{
    for (int i = 0; i < facts->nfacts; i++)
        if (facts->fact[i].kind == KL_FACT_LINK) describe_link(&facts->fact[i]);
    if (facts->nfacts > KL_FACTS_TRIED) merge_alike(facts);
    for (int i = 0; i < facts->nfacts; i++) {
        struct kl_fact *f = &facts->fact[i];

        if (f->kind == KL_FACT_SETTING || f->kind == KL_FACT_MACHINE) continue;
        if (f->nmerged > 1)
            snprintf(f->text, sizeof f->text, "%s and %d more: each %.100s", f->subject, f->nmerged - 1, f->predicate);
        else
            snprintf(f->text, sizeof f->text, "%s %.120s", f->subject, f->predicate);
    }
}

/* ---- other machines, other settings ---- */

static void describe_machine(const struct kl_topo *t, struct kl_text *text)
{
    int gpus = t->count[KL_NODE_GPU], nets = t->count[KL_NODE_NET];

    kl_text_add(text, "%d GPU%s of sm %d", gpus, kl_plural(gpus), t->node[kl_topo_at(t, KL_NODE_GPU, 0)].gpu.sm);
    if (nets)
        kl_text_add(text, ", %d NIC%s of %.4g GB/s", nets, kl_plural(nets),
                    (double)t->node[kl_topo_at(t, KL_NODE_NET, 0)].net.bw);
}

static ncclResult_t add_machine(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts)
{
    struct kl_fact *f = kl_facts_add(facts, KL_FACT_MACHINE);

    if (!f) return KL_NOMEM("differences");
    struct kl_text va = kl_text_over(f->a, sizeof f->a), vb = kl_text_over(f->b, sizeof f->b);

    describe_machine(a->whole, &va);
    describe_machine(b->whole, &vb);
    snprintf(f->subject, sizeof f->subject, "machine");
    snprintf(f->text, sizeof f->text, "another machine (%s instead of %s)", f->b, f->a);
    return ncclSuccess;
}

static ncclResult_t add_setting(const struct kl_diff_side *a, const struct kl_diff_side *b, int i,
                                struct kl_facts *facts)
{
    const struct kl_setting *over = &b->cluster.over[i];
    const struct kl_param *param = kl_param_find(&kl_param_registry, over->name);
    struct kl_fact *f = kl_facts_add(facts, KL_FACT_SETTING);
    struct kl_setting found;
    char origin[KL_ORIGIN_TEXT];

    if (!f) return KL_NOMEM("differences");
    f->setting = i;
    snprintf(f->subject, sizeof f->subject, "%.63s", over->name);
    snprintf(f->what, sizeof f->what, "setting");
    snprintf(f->b, sizeof f->b, "%.60s", *over->text ? over->text : "unset");
    if (kl_settings_find(&a->cluster.settings, over->name, &found))
        snprintf(f->a, sizeof f->a, "%.30s (%.30s)", found.text, kl_setting_origin(&found, origin));
    else
        snprintf(f->a, sizeof f->a, "%.40s%s", param && *param->dfl ? param->dfl : "unset",
                 param && *param->dfl ? " (default)" : "");
    snprintf(f->text, sizeof f->text, "%.63s=%.100s", over->name, over->text);
    return ncclSuccess;
}

ncclResult_t kl_diff_facts(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts)
{
    if (a->cluster.machine.hosts != b->cluster.machine.hosts)
        facts->comparable =
            false; /* KOLO_MNNVL: hosts are one machine on one side, and all that differs is this setting */
    else if (facts->comparable) {
        KL_TRY(kl_diff_documents(a, b, facts));
        KL_TRY(drop_meaningless(facts, a, b));
    } else
        KL_TRY(add_machine(a, b, facts));
    put_into_words(facts);
    for (int i = 0; i < b->args->edits.with.n; i++) KL_TRY(add_setting(a, b, i, facts));
    return ncclSuccess;
}
