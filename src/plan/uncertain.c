/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/uncertain.h"

#include "base/error.h"
#include "plan/planned.h"

#include <stdlib.h>

static bool is_unread(const struct kl_cluster *c, int change)
{
    return kl_nccl_unread(c->options.nccl, (enum kl_change)change);
}

static void add(struct kl_uncertain *u, int change)
{
    u->change[u->n++] = (enum kl_change)change;
}

/* ---- the machine ---- */

static ncclResult_t build(const struct kl_cluster *c, int nccl, struct kl_topo **topo)
{
    struct kl_topo_options options = c->options;
    struct kl_xml *document;

    options.nccl = nccl;
    KL_TRY(kl_machine_document(&c->machine, &options, &document));
    ncclResult_t rc = kl_topo_build(document, &options, topo);
    kl_xml_free(document);
    return rc;
}

static bool same_node(const struct kl_node *a, const struct kl_node *b)
{
    if (a->type != b->type || a->id != b->id || a->nlinks != b->nlinks) return false;
    return a->type != KL_NODE_CPU || (a->cpu.vendor == b->cpu.vendor && a->cpu.model == b->cpu.model);
}

static bool same_machine(const struct kl_topo *a, const struct kl_topo *b)
{
    if (a->nnodes != b->nnodes || a->nlinks != b->nlinks) return false;
    for (int i = 0; i < a->nnodes; i++)
        if (!same_node(&a->node[i], &b->node[i])) return false;
    for (int i = 0; i < a->nlinks; i++)
        if (a->link[i].to != b->link[i].to || a->link[i].type != b->link[i].type || a->link[i].bw != b->link[i].bw)
            return false;
    return true;
}

static void try_machine(struct kl_cluster *c, const struct kl_topo *as_assumed, int change)
{
    struct kl_topo *otherwise;

    if (build(c, kl_nccl_otherwise(c->options.nccl, (enum kl_change)change), &otherwise)) return;
    if (!same_machine(as_assumed, otherwise)) add(&c->uncertain, change);
    kl_topo_free(otherwise);
}

void kl_uncertain_machine(struct kl_cluster *c)
{
    struct kl_topo *as_assumed = NULL;
    int quiet = kl_error_quiet(1);

    for (int i = 0; i < KL_CHANGES_OF_TUNING; i++) {
        if (!is_unread(c, i)) continue;
        if (!as_assumed && build(c, c->options.nccl, &as_assumed)) break;
        try_machine(c, as_assumed, i);
    }
    kl_topo_free(as_assumed);
    kl_error_quiet(quiet);
}

/* ---- tuning ---- */

/* A refused choice has no time; the model's value for it does not count. */
static bool same_choice(const struct kl_tuning *a, const struct kl_tuning *b, const struct kl_tuning_op *op)
{
    float x[KL_ALGOS][KL_PROTOS], y[KL_ALGOS][KL_PROTOS];
    struct kl_tuning_choice of_a, of_b;
    ncclResult_t rc = kl_tuning_choose(a, op, &of_a, x);

    if (rc != kl_tuning_choose(b, op, &of_b, y)) return false;
    for (int i = 0; i < KL_ALGOS * KL_PROTOS; i++)
        if (x[i / KL_PROTOS][i % KL_PROTOS] != y[i / KL_PROTOS][i % KL_PROTOS]) return false;
    return rc || (of_a.algo == of_b.algo && of_a.proto == of_b.proto && of_a.nchannels == of_b.nchannels &&
                  of_a.nthreads == of_b.nthreads);
}

static bool same_for_sizes(const struct kl_tuning *a, const struct kl_tuning *b, const struct kl_tuning_op *of)
{
    struct kl_tuning_op op = *of;

    if (!same_choice(a, b, &op)) return false;
    for (op.bytes = 1; op.bytes <= (int64_t)1 << 40; op.bytes *= 2)
        if (!same_choice(a, b, &op)) return false;
    return true;
}

static bool same_tuning(const struct kl_tuning *a, const struct kl_tuning *b, const struct kl_tuning_op *op)
{
    if (op) return same_for_sizes(a, b, op);
    for (int f = 0; f < KL_FUNCS; f++) {
        struct kl_tuning_op sum = kl_tuning_op_of(f, 0, ncclFloat, ncclSum);

        if (!same_for_sizes(a, b, &sum)) return false;
    }
    return true;
}

void kl_uncertain_tuning(const struct kl_planned *p, const struct kl_tuning_op *op, struct kl_cluster *c)
{
    const struct kl_tuning *as_assumed = &p->plan->tuning;
    struct kl_tuning *otherwise = malloc(sizeof *otherwise);
    int quiet = kl_error_quiet(1);

    for (int i = KL_CHANGES_OF_TUNING; otherwise && as_assumed->constants->follows_nccl && i < KL_CHANGES; i++) {
        struct kl_tuning_input in = as_assumed->in;

        if (!is_unread(c, i)) continue;
        in.nccl = kl_nccl_otherwise(c->options.nccl, (enum kl_change)i);
        if (kl_tuning_compute(as_assumed->constants, &in, &p->config.tuning, otherwise)) continue;
        if (!same_tuning(as_assumed, otherwise, op)) add(&c->uncertain, i);
    }
    free(otherwise);
    kl_error_quiet(quiet);
}
