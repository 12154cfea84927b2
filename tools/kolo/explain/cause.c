/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/search.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>

/* ---- results ---- */

struct kl_result kl_result_of(const struct kl_graphs *graphs, int id)
{
    const struct kl_graph *g = graphs->graph[id];
    struct kl_result r = {.id = id, .nets = graphs->has_nets};

    if (!g) return r;
    r.nchannels = g->nchannels;
    r.bw_intra = g->bw_intra;
    r.bw_inter = g->bw_inter;
    r.fallback = graphs->why[id]->end == KL_END_FALLBACK;
    return r;
}

void kl_result_line(const struct kl_result *r, struct kl_text *t)
{
    if (!r->nchannels) {
        kl_text_add(t, "no channel");
        return;
    }
    kl_text_add(t, "%d channel%s of %g GB/s", r->nchannels, kl_plural(r->nchannels), (double)r->bw_intra);
    if (r->nets && r->bw_inter != r->bw_intra) kl_text_add(t, " inside and %g to the network", (double)r->bw_inter);
}

static float total(const struct kl_result *r)
{
    float bw = r->nets && r->bw_inter < r->bw_intra ? r->bw_inter : r->bw_intra;

    return bw * (float)r->nchannels;
}

/* ---- the machine without a fault ---- */

struct trial {
    const struct kl_search_told *told;
    struct kl_host_device *device; /* one for each GPU of the document */
    const struct kl_xml *document; /* of one host */
    struct kl_plan *two_hosts;     /* as the machine is, but for 2 hosts; NULL until needed */
};

static ncclResult_t plan_mended(const struct trial *t, const struct kl_xml *mended, int hosts, struct kl_plan **plan)
{
    const struct kl_cluster *c = t->told->cluster;
    struct kl_machine machine = {.file = mended, .device = t->device, .ndevices = c->gpus, .hosts = c->machine.hosts};
    struct kl_topo_options options = c->options;
    struct kl_plan_request request = kl_planned_request(c, &t->told->planned);

    options.mnnvl |= kl_cluster_is_domain(mended, c->hosts);
    request.machine = &machine;
    request.options = &options;
    request.hosts = hosts;
    return kl_plan_create(&request, plan);
}

/* The first graph that is asked for and better in `after` than in `now`; else the first. */
static void compare(const struct kl_search_told *told, const struct kl_plan *now, const struct kl_plan *after,
                    struct kl_cause *cause)
{
    for (int i = 0; i < told->ngraphs && !cause->helps; i++) {
        int id = told->graph[i].id;
        struct kl_result a = kl_result_of(&now->domain[now->domain_of[0]].graphs, id);
        struct kl_result b = kl_result_of(&after->domain[after->domain_of[0]].graphs, id);

        cause->helps = total(&b) > 1.01f * total(&a);
        if (i && !cause->helps) continue;
        cause->now = a;
        cause->after = b;
    }
}

static ncclResult_t try_hosts(const struct trial *t, const struct kl_xml *mended, const struct kl_plan *now, int hosts,
                              struct kl_cause *cause)
{
    struct kl_plan *after;

    KL_TRY(plan_mended(t, mended, hosts, &after));
    cause->hosts = hosts;
    compare(t->told, now, after, cause);
    kl_plan_free(after);
    return ncclSuccess;
}

/* On one host the network is not used: what is wrong with NICs shows with two. */
static ncclResult_t try_network(struct trial *t, const struct kl_xml *mended, struct kl_cause *cause)
{
    const struct kl_cluster *c = t->told->cluster;

    if (c->hosts > 1 || c->machine.hosts > 1) return ncclSuccess;
    if (!t->two_hosts) {
        struct kl_plan_request request = kl_planned_request(c, &t->told->planned);

        request.hosts = 2;
        KL_TRY(kl_plan_create(&request, &t->two_hosts));
    }
    struct kl_cause two = *cause;

    KL_TRY(try_hosts(t, mended, t->two_hosts, 2, &two));
    if (two.helps) *cause = two;
    return ncclSuccess;
}

/* Mend all faults of some kinds at once. */
static ncclResult_t mend(struct kl_xml *xml, unsigned codes, bool *any)
{
    for (int code = 0; code < KL_FAULTS; code++) {
        bool mended = false;

        if (codes >> code & 1) KL_TRY(kl_fault_mend(xml, (enum kl_fault_code)code, &mended));
        *any |= mended;
    }
    return ncclSuccess;
}

static ncclResult_t try_without(struct trial *t, unsigned codes, struct kl_cause *cause)
{
    const struct kl_plan *now = t->told->planned.plan;
    struct kl_xml *mended;
    ncclResult_t rc;

    KL_TRY(kl_xml_clone(t->document, &mended));
    KL_TRY_OR(rc, out, mend(mended, codes, &cause->mended));
    if (!cause->mended) goto out;
    KL_TRY_OR(rc, out, try_hosts(t, mended, now, now->hosts, cause));
    if (!cause->helps) rc = try_network(t, mended, cause);
out:
    kl_xml_free(mended);
    return rc;
}

/* Faults of one kind are mended together, and tried once. */
static ncclResult_t try_all(struct trial *t, struct kl_search_told *told)
{
    for (int i = 0; i < told->ncauses; i++) {
        struct kl_cause *c = &told->cause[i];

        if (i && c[-1].fault.code == c->fault.code) {
            struct kl_fault own = c->fault;

            *c = c[-1];
            c->fault = own;
        } else
            KL_TRY(try_without(t, 1u << c->fault.code, c));
    }
    return ncclSuccess;
}

static int place_of(const struct kl_search_told *told, int id)
{
    int i = 0;

    while (i < told->ngraphs && told->graph[i].id != id) i++;
    return i;
}

bool kl_cause_outweighs(const struct kl_search_told *told, const struct kl_cause *a, const struct kl_cause *b)
{
    int pa = place_of(told, a->now.id), pb = place_of(told, b->now.id);

    if (!a->helps || !b->helps) return a->helps;
    return pa != pb ? pa < pb : total(&a->after) > 1.01f * total(&b->after);
}

/* Leave out the kinds that the rest does as well without. */
static ncclResult_t drop_needless(struct trial *t, unsigned *codes, const struct kl_cause *together)
{
    for (int code = 0; code < KL_FAULTS; code++) {
        struct kl_cause without = {.mended = false};

        if (!(*codes >> code & 1)) continue;
        KL_TRY(try_without(t, *codes & ~(1u << code), &without));
        if (!kl_cause_outweighs(t->told, together, &without)) *codes &= ~(1u << code);
    }
    return ncclSuccess;
}

/* Several faults may cost more together than each of them alone. */
static ncclResult_t try_together(struct trial *t, struct kl_search_told *told)
{
    struct kl_cause together = {.together = true};
    unsigned codes = 0;

    for (int i = 0; i < told->ncauses; i++)
        if (told->cause[i].mended) codes |= 1u << told->cause[i].fault.code;
    if (!(codes & (codes - 1))) return ncclSuccess;
    KL_TRY(try_without(t, codes, &together));
    for (int i = 0; i < told->ncauses; i++)
        if (!kl_cause_outweighs(told, &together, &told->cause[i])) return ncclSuccess;
    KL_TRY(drop_needless(t, &codes, &together));
    for (int i = 0; i < told->ncauses; i++) {
        if (!(codes >> told->cause[i].fault.code & 1)) continue;
        together.fault = told->cause[i].fault;
        told->cause[i] = together;
    }
    return ncclSuccess;
}

/* ---- all of them ---- */

static ncclResult_t take_faults(struct kl_search_told *told, const struct kl_faults *faults)
{
    told->cause = calloc((size_t)faults->n + 1, sizeof *told->cause);
    if (!told->cause) return KL_NOMEM("the causes of a result");
    for (int i = 0; i < faults->n; i++) told->cause[i].fault = faults->fault[i];
    told->ncauses = faults->n;
    return ncclSuccess;
}

static ncclResult_t one_host(const struct kl_cluster *c, struct kl_xml **document)
{
    struct kl_machine machine = c->machine;

    machine.hosts = 1;
    return kl_machine_document(&machine, &c->options, document);
}

/* A search in place of the graph file, to tell what the file costs. */
static ncclResult_t search_instead(struct kl_search_told *told)
{
    struct kl_plan_request request = kl_planned_request(told->cluster, &told->planned);

    request.file = NULL;
    return told->planned.graph_file ? kl_plan_create(&request, &told->searched) : ncclSuccess;
}

ncclResult_t kl_tell_causes(struct kl_search_told *told)
{
    const struct kl_cluster *c = told->cluster;
    struct kl_faults faults = {.n = 0};
    struct kl_xml *document = NULL;
    struct trial t = {.told = told};
    ncclResult_t rc;

    KL_TRY(search_instead(told));
    KL_TRY_OR(rc, out, one_host(c, &document));
    t.document = document;
    KL_TRY_OR(rc, out, kl_faults_find(document, &faults));
    KL_TRY_OR(rc, out, take_faults(told, &faults));
    t.device = calloc((size_t)c->gpus + 1, sizeof *t.device);
    KL_TRY_OR(rc, out, t.device ? ncclSuccess : KL_NOMEM("devices"));
    for (int i = 0; i < c->gpus; i++) t.device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    KL_TRY_OR(rc, out, try_all(&t, told));
    rc = try_together(&t, told);
out:
    kl_plan_free(t.two_hosts);
    kl_faults_fini(&faults);
    kl_xml_free(document);
    free(t.device);
    return rc;
}
