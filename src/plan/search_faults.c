/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search_make.h"

#include "base/error.h"

#include <stdlib.h>

/* ---- the machine without a fault ---- */

struct trial {
    const struct kl_search_report *report;
    struct kl_host_device *device; /* one for each GPU of the document */
    const struct kl_xml *document; /* of one host */
    struct kl_plan *two_hosts;     /* the machine unchanged, but with 2 hosts; NULL until needed */
};

static ncclResult_t plan_mended(const struct trial *t, const struct kl_xml *mended, int hosts, struct kl_plan **plan)
{
    const struct kl_cluster *c = t->report->cluster;
    struct kl_machine machine = {.file = mended, .device = t->device, .ndevices = c->gpus, .hosts = c->machine.hosts};
    struct kl_topo_options options = c->options;
    struct kl_plan_request request = kl_planned_request(c, &t->report->planned);

    options.mnnvl |= kl_machine_file_multihost(mended);
    request.machine = &machine;
    request.options = &options;
    request.hosts = hosts;
    return kl_plan_create(&request, plan);
}

/* The first requested graph that is better in `after` than in `now`; else the first. */
static void compare(const struct kl_search_report *report, const struct kl_plan *now, const struct kl_plan *after,
                    struct kl_fault_cost *cost)
{
    for (int i = 0; i < report->ngraphs && !cost->costs; i++) {
        int id = report->graph[i].id;
        struct kl_graph_result a = kl_graph_result_of(&now->domain[now->domain_of[0]].graphs, id);
        struct kl_graph_result b = kl_graph_result_of(&after->domain[after->domain_of[0]].graphs, id);

        cost->costs = kl_graph_result_total(&b) > 1.01f * kl_graph_result_total(&a);
        if (i && !cost->costs) continue;
        cost->now = a;
        cost->without = b;
    }
}

static ncclResult_t try_hosts(const struct trial *t, const struct kl_xml *mended, const struct kl_plan *now, int hosts,
                              struct kl_fault_cost *cost)
{
    struct kl_plan *after;

    KL_TRY(plan_mended(t, mended, hosts, &after));
    cost->hosts = hosts;
    compare(t->report, now, after, cost);
    kl_plan_free(after);
    return ncclSuccess;
}

/* On one host the network is not used: faults of NICs show with two. */
static ncclResult_t try_network(struct trial *t, const struct kl_xml *mended, struct kl_fault_cost *cost)
{
    const struct kl_cluster *c = t->report->cluster;

    if (c->hosts > 1 || c->machine.hosts > 1) return ncclSuccess;
    if (!t->two_hosts) {
        struct kl_plan_request request = kl_planned_request(c, &t->report->planned);

        request.hosts = 2;
        KL_TRY(kl_plan_create(&request, &t->two_hosts));
    }
    struct kl_fault_cost two = *cost;

    KL_TRY(try_hosts(t, mended, t->two_hosts, 2, &two));
    if (two.costs) *cost = two;
    return ncclSuccess;
}

/* Mend all faults of some kinds at once. */
static ncclResult_t repair(struct kl_xml *xml, unsigned codes, int nccl, bool *any)
{
    for (int code = 0; code < KL_ANOMALIES; code++) {
        bool mended = false;

        if (codes >> code & 1) KL_TRY(kl_anomaly_repair(xml, (enum kl_anomaly_code)code, nccl, &mended));
        *any |= mended;
    }
    return ncclSuccess;
}

static ncclResult_t try_without(struct trial *t, unsigned codes, struct kl_fault_cost *cost)
{
    const struct kl_plan *now = t->report->planned.plan;
    struct kl_xml *mended;
    ncclResult_t rc;

    KL_TRY(kl_xml_clone(t->document, &mended));
    KL_TRY_OR(rc, out, repair(mended, codes, t->report->cluster->options.nccl, &cost->mended));
    if (!cost->mended) goto out;
    KL_TRY_OR(rc, out, try_hosts(t, mended, now, now->hosts, cost));
    if (!cost->costs) rc = try_network(t, mended, cost);
out:
    kl_xml_free(mended);
    return rc;
}

/* Faults of one kind are mended together, and tried once. */
static ncclResult_t try_all(struct trial *t, struct kl_search_report *report)
{
    for (int i = 0; i < report->nfaults; i++) {
        struct kl_fault_cost *c = &report->fault[i];

        if (i && c[-1].fault.code == c->fault.code) {
            struct kl_anomaly own = c->fault;

            *c = c[-1];
            c->fault = own;
        } else
            KL_TRY(try_without(t, 1u << c->fault.code, c));
    }
    return ncclSuccess;
}

static int place_of(const struct kl_search_report *report, int id)
{
    int i = 0;

    while (i < report->ngraphs && report->graph[i].id != id) i++;
    return i;
}

bool kl_fault_outweighs(const struct kl_search_report *report, const struct kl_fault_cost *a,
                        const struct kl_fault_cost *b)
{
    int pa = place_of(report, a->now.id), pb = place_of(report, b->now.id);

    if (!a->costs || !b->costs) return a->costs;
    return pa != pb ? pa < pb : kl_graph_result_total(&a->without) > 1.01f * kl_graph_result_total(&b->without);
}

/* Leave out the kinds that do not improve the result. */
static ncclResult_t drop_needless(struct trial *t, unsigned *codes, const struct kl_fault_cost *together)
{
    for (int code = 0; code < KL_ANOMALIES; code++) {
        struct kl_fault_cost without = {.mended = false};

        if (!(*codes >> code & 1)) continue;
        KL_TRY(try_without(t, *codes & ~(1u << code), &without));
        if (!kl_fault_outweighs(t->report, together, &without)) *codes &= ~(1u << code);
    }
    return ncclSuccess;
}

/* Several faults may cost more together than each of them alone. */
static ncclResult_t try_together(struct trial *t, struct kl_search_report *report)
{
    struct kl_fault_cost together = {.together = true};
    unsigned codes = 0;

    for (int i = 0; i < report->nfaults; i++)
        if (report->fault[i].mended) codes |= 1u << report->fault[i].fault.code;
    if (!(codes & (codes - 1))) return ncclSuccess;
    KL_TRY(try_without(t, codes, &together));
    for (int i = 0; i < report->nfaults; i++)
        if (!kl_fault_outweighs(report, &together, &report->fault[i])) return ncclSuccess;
    KL_TRY(drop_needless(t, &codes, &together));
    for (int i = 0; i < report->nfaults; i++) {
        if (!(codes >> report->fault[i].fault.code & 1)) continue;
        together.fault = report->fault[i].fault;
        report->fault[i] = together;
    }
    return ncclSuccess;
}

/* ---- all of them ---- */

static ncclResult_t take_faults(struct kl_search_report *report, const struct kl_anomalies *faults)
{
    report->fault = calloc((size_t)faults->n + 1, sizeof *report->fault);
    if (!report->fault) return KL_NOMEM("the causes of a result");
    for (int i = 0; i < faults->n; i++) report->fault[i].fault = faults->fault[i];
    report->nfaults = faults->n;
    return ncclSuccess;
}

static ncclResult_t one_host(const struct kl_cluster *c, struct kl_xml **document)
{
    struct kl_machine machine = c->machine;

    machine.hosts = 1;
    return kl_machine_document(&machine, &c->options, document);
}

ncclResult_t kl_search_find_faults(struct kl_search_report *report)
{
    const struct kl_cluster *c = report->cluster;
    struct kl_anomalies faults = {.n = 0};
    struct kl_xml *document = NULL;
    struct trial t = {.report = report};
    ncclResult_t rc;

    KL_TRY(one_host(c, &document));
    t.document = document;
    KL_TRY_OR(rc, out, kl_anomalies_find(document, c->options.nccl, &faults));
    KL_TRY_OR(rc, out, take_faults(report, &faults));
    t.device = calloc((size_t)c->gpus + 1, sizeof *t.device);
    KL_TRY_OR(rc, out, t.device ? ncclSuccess : KL_NOMEM("devices"));
    for (int i = 0; i < c->gpus; i++) t.device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    KL_TRY_OR(rc, out, try_all(&t, report));
    rc = try_together(&t, report);
out:
    kl_plan_free(t.two_hosts);
    kl_anomalies_fini(&faults);
    kl_xml_free(document);
    free(t.device);
    return rc;
}
