/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

ncclResult_t kl_diff_side_open(const struct kl_cluster_request *request, struct kl_diff_side *side)
{
    struct kl_xml *document = NULL;
    ncclResult_t rc;

    side->request = request;
    KL_TRY(kl_cluster_open(request, &side->cluster));
    KL_TRY_OR(rc, out, kl_planned_init(&side->cluster, &side->planned));
    KL_TRY_OR(rc, out, kl_cluster_whole(&side->cluster, &side->whole, &document));
    rc = kl_xml_clone(document, &side->document);
out:
    kl_xml_free(document);
    return rc;
}

void kl_diff_side_close(struct kl_diff_side *side)
{
    kl_planned_fini(&side->planned);
    kl_cluster_close(&side->cluster);
    kl_topo_free(side->whole);
    kl_xml_free(side->document);
    free(side->to_a);
    free(side->to_b);
}

static bool same_text(const char *x, const char *y)
{
    return x == y || (x && y && !strcmp(x, y));
}

static bool same_files(const struct kl_cluster_request *x, const struct kl_cluster_request *y)
{
    if (x->nsmi != y->nsmi) return false;
    for (int i = 0; i < x->nsmi; i++)
        if (strcmp(x->smi[i], y->smi[i]) != 0) return false;
    return true;
}

static bool same_memory(const struct kl_cluster_request *x, const struct kl_cluster_request *y)
{
    if (!x->text || !y->text) return x->text == y->text;
    return x->bytes == y->bytes && !memcmp(x->text, y->text, x->bytes);
}

static bool same_request(const struct kl_cluster_request *x, const struct kl_cluster_request *y)
{
    return same_text(x->topo, y->topo) && same_text(x->machine, y->machine) && same_text(x->sysfs, y->sysfs) &&
           same_text(x->gpus, y->gpus) && same_files(x, y) && same_memory(x, y) && x->document == y->document &&
           x->ranks == y->ranks && !kl_edits_change_machine(&x->edits) && !kl_edits_change_machine(&y->edits);
}

/* Settings can name machines, too. */
bool kl_diff_same_source(const struct kl_diff_side *a, const struct kl_diff_side *b)
{
    const struct kl_topo_config *x = &a->cluster.config, *y = &b->cluster.config;

    return same_request(a->request, b->request) && same_text(x->topo_file, y->topo_file) &&
           same_text(x->machine, y->machine);
}

static void pair(struct kl_diff_side *a, struct kl_diff_side *b, int in_a, int in_b)
{
    a->to_b[in_a] = in_b;
    b->to_a[in_b] = in_a;
}

/* Files may describe two GPUs with one bus id, on indistinguishable hosts: the k-th matches the k-th. */
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

/* Releases may name the GPUs of one machine differently. */
static bool match_ranks(struct kl_diff_side *a, struct kl_diff_side *b, int n)
{
    for (int i = 0; i < n; i++) pair(a, b, i, i);
    return true;
}

static int *no_ranks(int n)
{
    int *to = malloc(((size_t)n + 1) * sizeof *to);

    for (int i = 0; to && i <= n; i++) to[i] = -1;
    return to;
}

ncclResult_t kl_diff_side_match(struct kl_diff_side *a, struct kl_diff_side *b, bool *comparable)
{
    int na = a->whole->count[KL_NODE_GPU], nb = b->whole->count[KL_NODE_GPU], fewer = na < nb ? na : nb;

    a->to_b = no_ranks(na);
    b->to_a = no_ranks(nb);
    if (!a->to_b || !b->to_a) return KL_NOMEM("differences");
    *comparable = kl_diff_same_source(a, b) && na == nb ? match_ranks(a, b, na) : 2 * match_ids(a, b) >= fewer;
    if (*comparable) return ncclSuccess;
    for (int i = 0; i < na; i++) a->to_b[i] = i < nb ? i : -1;
    for (int i = 0; i < nb; i++) b->to_a[i] = i < na ? i : -1;
    return ncclSuccess;
}

const struct kl_topo *kl_diff_topo(const struct kl_diff_side *side, int rank, int *gpu)
{
    const struct kl_plan *p = side->planned.plan;
    const struct kl_topo *t = p->domain[p->domain_of[rank]].topo;

    *gpu = kl_topo_gpu_of_rank(t, rank);
    return t;
}

const struct kl_graph *kl_diff_graph(const struct kl_diff_side *side, int id)
{
    const struct kl_plan *p = side->planned.plan;

    return p->domain[p->domain_of[0]].graphs.graph[id];
}
