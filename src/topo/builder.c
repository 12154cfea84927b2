/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/builder.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void kl_builder_fini(struct kl_builder *b)
{
    for (int i = 0; i < b->nnodes; i++) free(b->node[i].link);
    free(b->node);
    free(b->slot);
    free(b->cpuset);
    free(b->host_hash);
    *b = (struct kl_builder){0};
}

/* Make room for one more of `n` things; the array doubles. */
static ncclResult_t grow(void **array, int n, int *max, size_t bytes)
{
    if (n < *max) return ncclSuccess;
    int wider = *max ? 2 * *max : 16;
    void *grown = realloc(*array, (size_t)wider * bytes);

    if (!grown) return KL_NOMEM("a topology");
    *array = grown;
    *max = wider;
    return ncclSuccess;
}

/* ---- nodes ---- */

static int *slot_of(const struct kl_builder *b, enum kl_node_type type, uint64_t id)
{
    uint64_t hash = (id ^ (uint64_t)type << 60) * 0x9e3779b97f4a7c15u;
    int at = (int)(hash >> 32) & (b->nslots - 1);

    for (;; at = (at + 1) & (b->nslots - 1)) {
        const struct kl_node *n = b->slot[at] ? &b->node[b->slot[at] - 1].node : NULL;
        if (!n || (n->type == type && n->id == id)) return &b->slot[at];
    }
}

static ncclResult_t rehash(struct kl_builder *b)
{
    int nslots = b->nslots ? 2 * b->nslots : 64;
    int *slot = calloc((size_t)nslots, sizeof *slot);

    if (!slot) return KL_NOMEM("a topology");
    free(b->slot);
    b->slot = slot;
    b->nslots = nslots;
    for (int i = 0; i < b->nnodes; i++) {
        int *free_slot = slot_of(b, b->node[i].node.type, b->node[i].node.id);
        if (!*free_slot) *free_slot = i + 1;
    }
    return ncclSuccess;
}

ncclResult_t kl_builder_add(struct kl_builder *b, enum kl_node_type type, uint64_t id, int *node)
{
    if (b->nnodes == KL_TOPO_MAX_NODES)
        return KL_FAIL(ncclInternalError, "a topology of more than %d nodes; describe fewer hosts", KL_TOPO_MAX_NODES);
    KL_TRY(grow((void **)&b->node, b->nnodes, &b->max_nodes, sizeof *b->node));
    if (2 * b->nnodes >= b->nslots) KL_TRY(rehash(b));
    b->node[b->nnodes] = (struct kl_builder_node){.node = {.id = id, .type = (uint8_t)type}, .up = -1};
    int *slot = slot_of(b, type, id);
    if (!*slot) *slot = b->nnodes + 1;
    *node = b->nnodes++;
    return ncclSuccess;
}

int kl_builder_find(const struct kl_builder *b, enum kl_node_type type, uint64_t id)
{
    return b->nslots ? *slot_of(b, type, id) - 1 : -1;
}

ncclResult_t kl_builder_cpus(struct kl_builder *b, const struct kl_cpuset *set, int *index)
{
    KL_TRY(grow((void **)&b->cpuset, b->ncpusets, &b->max_cpusets, sizeof *b->cpuset));
    b->cpuset[b->ncpusets] = *set;
    *index = b->ncpusets++;
    return ncclSuccess;
}

ncclResult_t kl_builder_host(struct kl_builder *b, uint64_t hash, int *host)
{
    for (int i = 0; i < b->nhosts; i++) {
        if (b->host_hash[i] != hash) continue;
        *host = i;
        return ncclSuccess;
    }
    if (b->nhosts == KL_TOPO_MAX_HOSTS)
        return KL_FAIL(ncclInternalError, "a topology of more than %d hosts; ids have no room for their numbers",
                       KL_TOPO_MAX_HOSTS);
    KL_TRY(grow((void **)&b->host_hash, b->nhosts, &b->max_hosts, sizeof *b->host_hash));
    b->host_hash[b->nhosts] = hash;
    *host = b->nhosts++;
    return ncclSuccess;
}

/* ---- links ---- */

ncclResult_t kl_builder_append(struct kl_builder *b, int from, struct kl_builder_link link)
{
    struct kl_builder_node *n = &b->node[from];

    if (b->nlinks == KL_TOPO_MAX_LINKS)
        return KL_FAIL(ncclInternalError, "a topology of more than %d links; describe fewer hosts", KL_TOPO_MAX_LINKS);
    KL_TRY(grow((void **)&n->link, n->nlinks, &n->max_links, sizeof *n->link));
    n->link[n->nlinks++] = link;
    b->nlinks++;
    return ncclSuccess;
}

ncclResult_t kl_builder_link(struct kl_builder *b, int from, int to, enum kl_path_type type, float bw)
{
    struct kl_builder_node *n = &b->node[from];
    int at = 0;

    while (at < n->nlinks && (n->link[at].to != to || n->link[at].type != type)) at++;
    if (at == n->nlinks) KL_TRY(kl_builder_append(b, from, (struct kl_builder_link){.to = to, .type = (uint8_t)type}));
    n->link[at].bw += bw;

    struct kl_builder_link moving = n->link[at];
    for (; at > 0 && n->link[at - 1].bw < moving.bw; at--) n->link[at] = n->link[at - 1];
    n->link[at] = moving;
    return ncclSuccess;
}

void kl_builder_unlink(struct kl_builder *b, int node, int i)
{
    struct kl_builder_node *n = &b->node[node];

    memmove(&n->link[i], &n->link[i + 1], (size_t)(n->nlinks - i - 1) * sizeof *n->link);
    n->nlinks--;
    b->nlinks--;
}

/* ---- layout ---- */

/* Number the nodes that stay by type; `place` maps builder numbers to them, -1 for deleted ones. */
static void number_nodes(const struct kl_builder *b, struct kl_topo *t, int *place)
{
    int next = 0;

    for (int type = 0; type < KL_NODE_TYPES; type++) {
        t->first[type] = next;
        for (int i = 0; i < b->nnodes; i++) {
            if (b->node[i].node.type != type) continue;
            place[i] = b->node[i].deleted ? -1 : next;
            next += !b->node[i].deleted;
        }
        t->count[type] = next - t->first[type];
    }
    t->nnodes = next;
}

static void place_links(const struct kl_builder *b, struct kl_topo *t, const int *place)
{
    for (int type = 0; type < KL_NODE_TYPES; type++)
        for (int i = 0; i < b->nnodes; i++) {
            const struct kl_builder_node *n = &b->node[i];

            if (n->node.type != type || n->deleted) continue;
            struct kl_node *node = &t->node[place[i]];
            *node = n->node;
            node->first_link = t->nlinks;
            for (int k = 0; k < n->nlinks; k++) {
                const struct kl_builder_link *l = &n->link[k];
                if (place[l->to] < 0) continue;
                t->link[t->nlinks++] =
                    (struct kl_link){.from = place[i], .to = place[l->to], .reverse = -1, .bw = l->bw, .type = l->type};
            }
            node->nlinks = t->nlinks - node->first_link;
        }
}

/* Most nodes have few links; an NVSwitch has many, but the links that lead to it find it from their small side. */
static void pair_links(struct kl_topo *t)
{
    for (int i = 0; i < t->nlinks; i++) {
        struct kl_link *l = &t->link[i];
        const struct kl_node *far = &t->node[l->to];

        for (int k = far->first_link; l->reverse < 0 && k < far->first_link + far->nlinks; k++)
            if (t->link[k].to == l->from && t->link[k].type == l->type) l->reverse = k;
    }
}

static int by_rank(const void *x, const void *y, void *topo)
{
    const struct kl_topo *t = topo;
    int i = *(const int *)x, k = *(const int *)y, a = t->node[i].gpu.rank, b = t->node[k].gpu.rank;

    return a != b ? (a > b) - (a < b) : (i > k) - (i < k);
}

/* GPUs come first among the nodes, so their index is their node. */
static ncclResult_t sort_ranks(struct kl_topo *t)
{
    size_t n = (size_t)t->count[KL_NODE_GPU];

    t->by_rank = malloc((n + 1) * sizeof *t->by_rank);
    if (!t->by_rank) return KL_NOMEM("a topology");
    for (size_t i = 0; i < n; i++) t->by_rank[i] = (int)i;
    qsort_r(t->by_rank, n, sizeof *t->by_rank, by_rank, t);
    return ncclSuccess;
}

static ncclResult_t copy_array(const void *from, int n, size_t bytes, void **to)
{
    *to = malloc((size_t)(n ? n : 1) * bytes);
    if (!*to) return KL_NOMEM("a topology");
    if (n) memcpy(*to, from, (size_t)n * bytes);
    return ncclSuccess;
}

ncclResult_t kl_builder_finish(struct kl_builder *b, struct kl_topo **out)
{
    ncclResult_t rc = ncclSuccess;
    struct kl_topo *t = calloc(1, sizeof *t);
    int *place = calloc((size_t)b->nnodes + 1, sizeof *place);

    if (!t || !place) {
        rc = KL_NOMEM("a topology");
        goto out;
    }
    t->node = calloc((size_t)b->nnodes + 1, sizeof *t->node);
    t->link = calloc((size_t)b->nlinks + 1, sizeof *t->link);
    if (!t->node || !t->link) {
        rc = KL_NOMEM("a topology");
        goto out;
    }
    KL_TRY_OR(rc, out, copy_array(b->cpuset, b->ncpusets, sizeof *t->cpuset, (void **)&t->cpuset));
    KL_TRY_OR(rc, out, copy_array(b->host_hash, b->nhosts, sizeof *t->host_hash, (void **)&t->host_hash));
    t->ncpusets = b->ncpusets;
    t->nhosts = b->nhosts;
    number_nodes(b, t, place);
    place_links(b, t, place);
    pair_links(t);
    KL_TRY_OR(rc, out, sort_ranks(t));
    *out = t;
    t = NULL;
out:
    free(place);
    kl_topo_free(t);
    return rc;
}

ncclResult_t kl_builder_reopen(struct kl_builder *b, const struct kl_topo *t)
{
    int node, index, host;

    for (int i = 0; i < t->nhosts; i++) KL_TRY(kl_builder_host(b, t->host_hash[i], &host));
    for (int i = 0; i < t->ncpusets; i++) KL_TRY(kl_builder_cpus(b, &t->cpuset[i], &index));
    for (int i = 0; i < t->nnodes; i++) {
        KL_TRY(kl_builder_add(b, t->node[i].type, t->node[i].id, &node));
        b->node[node].node = t->node[i];
    }
    for (int i = 0; i < t->nlinks; i++) {
        const struct kl_link *l = &t->link[i];
        KL_TRY(kl_builder_append(b, l->from, (struct kl_builder_link){.to = l->to, .type = l->type, .bw = l->bw}));
    }
    return ncclSuccess;
}
