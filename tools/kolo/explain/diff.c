/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/diff_print.h"
#include "tools/kolo/explain/explain.h"

#include <stdlib.h>
#include <string.h>

static bool is_stdin(const char *file)
{
    return !strcmp(file, "-");
}

/* A is the first file or machine as it is; B is the second one, or the first again, with the changes that were asked for. */
static ncclResult_t split_sides(const struct kl_explain_request *q, struct kl_cluster_request *a,
                                struct kl_cluster_request *b)
{
    const struct kl_edits *edits = &q->cluster.edits;

    *a = *b = q->cluster;
    if (q->topos.n > 2) return KL_FAIL(ncclInvalidArgument, "diff compares two files, %d were given", q->topos.n);
    if (q->topos.n == 2 && is_stdin(q->topos.text[0]) && is_stdin(q->topos.text[1]))
        return KL_FAIL(ncclInvalidArgument, "standard input can be one side only");
    if (q->machines.n > 2 || (q->machines.n == 2 && q->topos.n))
        return KL_FAIL(ncclInvalidArgument, "diff compares two machines, or files; too many were given");
    if (q->releases.n > 2)
        return KL_FAIL(ncclInvalidArgument, "diff compares two releases, %d were given", q->releases.n);
    if (q->topos.n < 2 && q->machines.n < 2 && q->releases.n < 2 && !edits->with.n && !kl_edits_change_machine(edits))
        return KL_FAIL(ncclInvalidArgument,
                       "compare with what? Give a second --topo, --machine or --nccl, or changes: --with NCCL_X=Y, "
                       "--without NET/3, --without-link GPU/0-GPU/1");
    if (q->topos.n == 1 && is_stdin(q->topos.text[0]))
        return KL_FAIL(ncclInvalidArgument, "standard input can be read only once; save it to a file");
    a->topo = q->topos.n ? q->topos.text[0] : NULL;
    b->topo = q->topos.n == 2 ? q->topos.text[1] : a->topo;
    a->nccl = q->releases.n ? q->releases.text[0] : NULL;
    a->machine = q->machines.n ? q->machines.text[0] : NULL;
    a->edits = (struct kl_edits){.params = edits->params};
    a->as_document = b->as_document = true;
    return ncclSuccess;
}

/* What both sides have is said once; where their releases differ, the sentence names both. */
static void print_findings(const struct kl_diff *d, FILE *to)
{
    if (d->a.cluster.options.nccl == d->b.cluster.options.nccl)
        kl_print_preamble(&d->a.cluster, to);
    else
        kl_finding_print(&d->a.cluster, to);
    if (d->b.cluster.finding.code != d->a.cluster.finding.code) kl_finding_print(&d->b.cluster, to);
}

static bool same_uncertain(const struct kl_cluster *a, const struct kl_cluster *b)
{
    const struct kl_uncertain *x = &a->uncertain, *y = &b->uncertain;

    return a->options.nccl == b->options.nccl && x->n == y->n &&
           !memcmp(x->change, y->change, (size_t)x->n * sizeof *x->change);
}

static void print_assumed(const struct kl_diff *d, FILE *to)
{
    kl_assumed_print(&d->a.cluster, "A: ", to);
    if (strcmp(d->a.cluster.name, d->b.cluster.name) != 0) kl_assumed_print(&d->b.cluster, "B: ", to);
    kl_uncertain_print(&d->a.cluster, "A: ", to);
    if (!same_uncertain(&d->a.cluster, &d->b.cluster)) kl_uncertain_print(&d->b.cluster, "B: ", to);
}

ncclResult_t kl_explain_diff(const struct kl_explain_request *q, FILE *to)
{
    struct kl_diff *d = calloc(1, sizeof *d);
    struct kl_cluster_request a, b;
    ncclResult_t rc;

    if (!d) return KL_NOMEM("differences");
    KL_TRY_OR(rc, out, split_sides(q, &a, &b));
    KL_TRY_OR(rc, out, kl_diff_answer_make(&a, &b, d));
    kl_cluster_options_warn(&d->a.cluster);
    kl_cluster_options_warn(&d->b.cluster);
    if (!q->json) print_findings(d, to);
    if (q->json)
        rc = kl_diff_json(d, to);
    else
        kl_diff_text(d, to);
    if (!q->json) print_assumed(d, to);
out:
    kl_diff_fini(d);
    free(d);
    return rc;
}
