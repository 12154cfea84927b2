/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include "base/error.h"
#include "graph/tuning_file.h"

#include <stdlib.h>

const struct kl_plan_domain *kl_plan_domain_of(const struct kl_plan *plan, int rank, int *shift)
{
    int local = rank % plan->ranks_per_host;

    *shift = rank - local;
    return &plan->domain[plan->domain_of[local]];
}

/* ---- machines and graphs ---- */

static ncclResult_t add_domain(struct kl_plan *p, const struct kl_plan_request *q, int rank)
{
    struct kl_plan_domain *d = &p->domain[p->ndomains];
    struct kl_graphs_request request = {.file = q->file};

    d->rank = rank;
    KL_TRY(kl_machine_topo(q->machine, q->options, rank, p->nranks, &d->topo, NULL));
    d->no_collnet = kl_offload_collnet(d->topo, kl_graph_config_collnet(q->config), p->nranks);
    d->no_nvls = kl_offload_nvls(d->topo, (int)q->config->nvls, kl_offload_guess_multicast(d->topo));
    request.collnet = !d->no_collnet;
    request.nvls = !d->no_nvls;
    for (int g = 0; g < d->topo->count[KL_NODE_GPU]; g++)
        p->domain_of[d->topo->node[kl_topo_at(d->topo, KL_NODE_GPU, g)].gpu.rank] = p->ndomains;
    p->ndomains++;
    return kl_graphs_compute(d->topo, &request, &d->graphs);
}

static ncclResult_t add_domains(struct kl_plan *p, const struct kl_plan_request *q)
{
    for (int r = 0; r < p->ranks_per_host; r++) p->domain_of[r] = -1;
    for (int r = 0; r < p->ranks_per_host; r++)
        if (p->domain_of[r] < 0) KL_TRY(add_domain(p, q, r));
    return ncclSuccess;
}

/* ---- connection ---- */

static int sm_of_rank(const struct kl_topo *t, int rank)
{
    return t->node[kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, rank))].gpu.sm;
}

static void sm_range(const struct kl_plan *p, int *min, int *max)
{
    *min = INT32_MAX;
    *max = 0;
    for (int r = 0; r < p->ranks_per_host; r++) {
        int sm = sm_of_rank(p->domain[p->domain_of[r]].topo, r);

        if (sm < *min) *min = sm;
        if (sm > *max) *max = sm;
    }
}

static ncclResult_t record_ranks(struct kl_plan *p, const struct kl_plan_request *q)
{
    for (int r = 0; r < p->ranks_per_host; r++) {
        const struct kl_plan_domain *d = &p->domain[p->domain_of[r]];
        const struct kl_node *cpu = kl_topo_first_cpu(d->topo);

        kl_connect_record(&d->graphs, r, cpu ? cpu->cpu.arch : -1, cpu ? cpu->cpu.vendor : -1, &p->record[r]);
        KL_TRY(kl_p2p_record(d->topo, r, p->nranks, &q->config->channels, &p->record[r]));
    }
    for (int r = 0; r < p->nranks; r++) {
        p->which[r] = r % p->ranks_per_host;
        p->shift[r] = r - p->which[r];
    }
    return ncclSuccess;
}

static ncclResult_t join_ranks(struct kl_plan *p, const struct kl_plan_request *q)
{
    const struct kl_plan_domain *own = &p->domain[p->domain_of[0]];
    struct kl_ranks ranks = {p->nranks, p->ranks_per_host, p->record, p->which, p->shift};
    struct kl_connect_request request = {.rank = 0,
                                         .collnet = own->graphs.graph[KL_GRAPH_COLLNET_CHAIN] != NULL,
                                         .nvls = own->graphs.graph[KL_GRAPH_NVLS] != NULL,
                                         .no_collnet = own->no_collnet,
                                         .no_nvls = own->no_nvls,
                                         .min_ctas = 1,
                                         .max_ctas = KL_MAX_CHANNELS,
                                         .params = q->config->channels};
    int max_sm;

    KL_TRY(record_ranks(p, q));
    sm_range(p, &request.min_sm, &max_sm);
    request.nvls_channels = kl_nvls_channels(sm_of_rank(own->topo, 0), p->hosts > 1, q->options->nccl, &request);
    KL_TRY(kl_connect_create(&ranks, &request, &p->connect));
    p->p2p = kl_p2p_channels_of(own->topo, p->connect, &q->config->channels, 0);
    return ncclSuccess;
}

/* ---- tuning ---- */

static ncclResult_t tune(struct kl_plan *p, const struct kl_plan_request *q)
{
    struct kl_tuning_input in = kl_tuning_input_of(p->connect, p->domain[p->domain_of[0]].topo);

    sm_range(p, &in.min_sm, &in.max_sm);
    if (q->constants == &kl_tuning_host) in.measured = kl_tuning_file_known(q->config->tuning_file);
    return kl_tuning_compute(q->constants ? q->constants : &kl_tuning_reference, &in, &q->config->tuning, &p->tuning);
}

ncclResult_t kl_plan_create(const struct kl_plan_request *q, struct kl_plan **plan)
{
    struct kl_plan *p = calloc(1, sizeof *p);
    int devices = q->machine->ndevices ? q->machine->ndevices : q->machine->ngpus;
    int per_host = devices * (q->machine->hosts > 1 ? q->machine->hosts : 1);
    ncclResult_t rc;

    if (!p) return KL_NOMEM("a plan");
    p->hosts = q->hosts;
    p->ranks_per_host = per_host;
    p->nranks = per_host * q->hosts;
    p->domain = calloc((size_t)per_host, sizeof *p->domain);
    p->domain_of = malloc((size_t)per_host * sizeof *p->domain_of);
    p->record = calloc((size_t)per_host, sizeof *p->record);
    p->which = malloc((size_t)p->nranks * sizeof *p->which);
    p->shift = malloc((size_t)p->nranks * sizeof *p->shift);
    if (!p->domain || !p->domain_of || !p->record || !p->which || !p->shift) {
        rc = KL_NOMEM("a plan");
        goto out;
    }
    KL_TRY_OR(rc, out, add_domains(p, q));
    KL_TRY_OR(rc, out, join_ranks(p, q));
    KL_TRY_OR(rc, out, tune(p, q));
    *plan = p;
    p = NULL;
out:
    kl_plan_free(p);
    return rc;
}

void kl_plan_free(struct kl_plan *p)
{
    if (!p) return;
    for (int i = 0; i < p->ndomains; i++) {
        kl_graphs_fini(&p->domain[i].graphs);
        kl_topo_free(p->domain[i].topo);
    }
    kl_connect_free(p->connect);
    free(p->domain);
    free(p->domain_of);
    free(p->record);
    free(p->which);
    free(p->shift);
    free(p);
}
