/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/diff.h"

#include "base/error.h"
#include "tools/kolo/explain/explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- the sides ---- */

ncclResult_t kl_diff_open(const struct kl_cluster_request *args, struct kl_diff_side *side)
{
    struct kl_xml *document = NULL;
    ncclResult_t rc;

    side->args = args;
    KL_TRY(kl_cluster_options_open(args, &side->cluster));
    KL_TRY_OR(rc, out, kl_planned_init(&side->cluster, &side->planned));
    KL_TRY_OR(rc, out, kl_cluster_whole(&side->cluster, &side->whole, &document));
    rc = kl_xml_clone(document, &side->document);
out:
    kl_xml_free(document);
    return rc;
}

void kl_diff_close(struct kl_diff_side *side)
{
    kl_planned_fini(&side->planned);
    kl_cluster_close(&side->cluster);
    kl_topo_free(side->whole);
    kl_xml_free(side->document);
    free(side->to_a);
    free(side->to_b);
}

static void pair(struct kl_diff_side *a, struct kl_diff_side *b, int in_a, int in_b)
{
    a->to_b[in_a] = in_b;
    b->to_a[in_b] = in_a;
}

/* Files may describe two GPUs with one bus id, on hosts that nothing tells apart: the k-th is the k-th. */
static int next_free(const struct kl_topo *t, int node, const int *taken)
{
    uint64_t id = t->node[node].id;

    for (int end = t->first[KL_NODE_GPU] + t->count[KL_NODE_GPU]; node < end; node++)
        if (t->node[node].id == id && taken[t->node[node].gpu.rank] < 0) return node;
    return -1;
}

static int match_ids(struct kl_diff_side *a, struct kl_diff_side *b)
{
    const struct kl_topo *x = a->whole, *y = b->whole;
    int n = 0;

    for (int i = 0; i < x->count[KL_NODE_GPU]; i++) {
        const struct kl_node *gpu = &x->node[kl_topo_at(x, KL_NODE_GPU, i)];
        int same = kl_topo_find(y, KL_NODE_GPU, gpu->id);

        if (same >= 0) same = next_free(y, same, b->to_a);
        if (same < 0) continue;
        pair(a, b, gpu->gpu.rank, y->node[same].gpu.rank);
        n++;
    }
    return n;
}

static int *no_ranks(int n)
{
    int *to = malloc(((size_t)n + 1) * sizeof *to);

    for (int i = 0; to && i <= n; i++) to[i] = -1;
    return to;
}

ncclResult_t kl_diff_match(struct kl_diff_side *a, struct kl_diff_side *b, bool *comparable)
{
    int na = a->whole->count[KL_NODE_GPU], nb = b->whole->count[KL_NODE_GPU], fewer = na < nb ? na : nb;

    a->to_b = no_ranks(na);
    b->to_a = no_ranks(nb);
    if (!a->to_b || !b->to_a) return KL_NOMEM("differences");
    *comparable = 2 * match_ids(a, b) >= fewer;
    if (*comparable) return ncclSuccess;
    for (int i = 0; i < na; i++) a->to_b[i] = i < nb ? i : -1;
    for (int i = 0; i < nb; i++) b->to_a[i] = i < na ? i : -1;
    return ncclSuccess;
}

/* ---- the question ---- */

static ncclResult_t gather(struct kl_diff *d, const struct kl_cluster_request *a, const struct kl_cluster_request *b)
{
    KL_TRY(kl_diff_open(a, &d->a));
    KL_TRY(kl_diff_open(b, &d->b));
    KL_TRY(kl_diff_match(&d->a, &d->b, &d->facts.comparable));
    KL_TRY(kl_diff_facts(&d->a, &d->b, &d->facts));
    KL_TRY(kl_diff_rules(&d->a, &d->b, &d->rows));
    KL_TRY(kl_diff_plans(&d->a, &d->b, &d->rows));
    return kl_diff_find_cause(d);
}

/* A is the first file as it is; B is the second one, or the first again, with the changes that were asked for. */
static ncclResult_t split_sides(const struct kl_explain_request *q, struct kl_cluster_request *a,
                                struct kl_cluster_request *b)
{
    const struct kl_edits *edit = &q->cluster.edits;

    *a = *b = q->cluster;
    if (q->topos.n > 2) return KL_FAIL(ncclInvalidArgument, "diff compares two files, %d were given", q->topos.n);
    if (q->topos.n == 2 && !strcmp(q->topos.text[0], "-") && !strcmp(q->topos.text[1], "-"))
        return KL_FAIL(ncclInvalidArgument, "standard input can be one side only");
    if (q->topos.n < 2 && !edit->with.n && !edit->without.n && !edit->without_link.n)
        return KL_FAIL(ncclInvalidArgument, "compare with what? Give a second --topo, or changes: --with NCCL_X=Y, "
                                            "--without NET/3, --without-link GPU/0-GPU/1");
    if (q->topos.n == 1 && !strcmp(q->topos.text[0], "-"))
        return KL_FAIL(ncclInvalidArgument, "standard input can be read only once; save it to a file");
    a->topo = q->topos.n ? q->topos.text[0] : NULL;
    b->topo = q->topos.n == 2 ? q->topos.text[1] : a->topo;
    a->edits = (struct kl_edits){.params = edit->params};
    a->as_document = b->as_document = true;
    return ncclSuccess;
}

ncclResult_t kl_explain_diff(const struct kl_explain_request *q, FILE *to)
{
    struct kl_diff *d = calloc(1, sizeof *d);
    struct kl_cluster_request a, b;
    ncclResult_t rc;

    if (!d) return KL_NOMEM("differences");
    KL_TRY_OR(rc, out, split_sides(q, &a, &b));
    KL_TRY_OR(rc, out, gather(d, &a, &b));
    if (q->json)
        rc = kl_diff_json(d, to);
    else
        kl_diff_text(d, to);
out:
    kl_diff_close(&d->a);
    kl_diff_close(&d->b);
    kl_facts_free(&d->facts);
    free(d->rows.row);
    free(d->in_cause);
    free(d);
    return rc;
}
