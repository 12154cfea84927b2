/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shortest.c - shortest paths: a breadth-first search for every end, and tables of the results.
 */
#include "base/error.h"
#include "topo/paths_make.h"

#include <stdlib.h>

/* Bounds for files from outside: 4096 ends are 200 MB of paths, and the searches take some seconds. */
enum { MAX_ENDS = 4096 };
static const uint64_t max_steps = (uint64_t)1 << 31;

/* ---- tables ---- */

ncclResult_t kl_path_reserve(struct kl_topo *t, uint32_t n)
{
    uint32_t need = t->nhops + n, max = t->max_hops ? t->max_hops : 256;

    if (need <= t->max_hops) return ncclSuccess;
    if (need < n || need > UINT32_MAX / 4) return KL_FAIL(ncclInternalError, "paths of more than 2^30 links in all");
    while (max < need) max *= 2;
    int32_t *grown = realloc(t->hop, (size_t)max * sizeof *grown);
    if (!grown) return KL_NOMEM("paths");
    t->hop = grown;
    t->max_hops = max;
    return ncclSuccess;
}

static ncclResult_t make_table(struct kl_topo *t, int from, int to)
{
    size_t n = (size_t)t->count[from] * (size_t)t->count[to];
    struct kl_path *p = malloc((n ? n : 1) * sizeof *p);

    if (!p) return KL_NOMEM("paths");
    for (size_t i = 0; i < n; i++) p[i] = (struct kl_path){.type = KL_PATH_DIS, .was = KL_PATH_DIS};
    t->path[from][to] = p;
    return ncclSuccess;
}

static ncclResult_t make_tables(struct kl_topo *t)
{
    int ends = 0;

    for (int type = 0; type < KL_NODE_TYPES; type++) ends += kl_path_base(type) ? t->count[type] : 0;
    if (ends > MAX_ENDS || (uint64_t)ends * (uint64_t)t->nlinks > max_steps)
        return KL_FAIL(ncclInternalError,
                       "%d GPUs, NETs and CPUs with %d links: too many for paths; describe fewer hosts", ends,
                       t->nlinks);
    t->touched = calloc((size_t)t->nnodes + 1, sizeof *t->touched);
    t->near_net = calloc((size_t)t->count[KL_NODE_GPU] + 1, sizeof *t->near_net);
    t->pxn = calloc((size_t)t->count[KL_NODE_GPU] * (size_t)t->count[KL_NODE_NET] + 1, sizeof *t->pxn);
    if (!t->touched || !t->near_net || !t->pxn) return KL_NOMEM("paths");
    for (int from = 0; from < KL_NODE_TYPES; from++)
        for (int to = 0; to < KL_NODE_TYPES; to++)
            if (kl_path_base(from) && kl_path_base(to)) KL_TRY(make_table(t, from, to));
    return ncclSuccess;
}

/* ---- breadth-first search ---- */

/* Result of a search for one node: the path from there to the search's start. */
struct way {
    float bw; /* 0: not found yet */
    int hops;
    int32_t first; /* cell of its first link; -1 at the base */
    uint8_t type;
    int listed; /* round in which it was put on the frontier */
};

/* A link of a way, and the rest of the way: paths share their ends, and never change once found. */
struct cell {
    int32_t link, next;
};

struct search {
    struct kl_topo *t;
    int base;        /* node */
    int named;       /* the node that its id names: itself, or the first of several with one id */
    struct way *way; /* per node */
    struct cell *cell;
    int32_t ncells, max_cells;
    bool by_type; /* better types win, even if longer */
    int *frontier, *next;
    int nfrontier, nnext, round;
    int *same;     /* per node: the next one with the same type and id, -1 for the last */
    bool *repeats; /* per node: not the first of them */
};

static bool is_device(const struct kl_node *n)
{
    return n->type == KL_NODE_GPU || n->type == KL_NODE_DEV;
}

/* GPUs pass traffic on only from NVLink to NVLink, and only one of them. */
static bool may_pass(const struct search *s, int node, const struct kl_link *l)
{
    const struct kl_topo *t = s->t;

    if (node == s->base || !is_device(&t->node[node])) return true;
    return !t->options.nvb_disable && l->type == KL_PATH_NVL && is_device(&t->node[l->to]) && s->way[node].hops <= 1;
}

static bool is_better(const struct search *s, const struct way *there, const struct way *here, float bw, uint8_t type)
{
    if (s->by_type && type != there->type) return type < there->type;
    if (s->by_type) return bw > there->bw || (bw == there->bw && there->hops > here->hops + 1);
    return (there->bw == 0 || there->hops > here->hops) && there->bw < bw;
}

static uint8_t step_type(const struct search *s, int node, const struct kl_link *l)
{
    enum kl_node_type here = s->t->node[node].type, there = s->t->node[l->to].type;
    uint8_t type = l->type == KL_PATH_NET ? KL_PATH_LOC : l->type;

    if (here == KL_NODE_PCI && there == KL_NODE_PCI) type = KL_PATH_PXB;
    if (l->type == KL_PATH_PCI && (here == KL_NODE_CPU || there == KL_NODE_CPU)) type = KL_PATH_PHB;
    if (is_device(&s->t->node[node]) && s->way[node].type == KL_PATH_NVL && type == KL_PATH_NVL &&
        s->way[node].hops > 0)
        type = KL_PATH_NVB;
    return type > s->way[node].type ? type : s->way[node].type;
}

static ncclResult_t no_way_back(const struct kl_topo *t, const struct kl_link *l)
{
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];

    return KL_FAIL(
        ncclInternalError, "%s has a %s link to %s, but there is none back; the topology must list both directions",
        kl_node_text(&t->node[l->from], from), kl_link_type_name[l->type], kl_node_text(&t->node[l->to], to));
}

static ncclResult_t add_cell(struct search *s, int32_t link, int32_t next, int32_t *at)
{
    if (s->ncells == s->max_cells) {
        int32_t max = s->max_cells ? 2 * s->max_cells : 256;
        struct cell *grown = max < 1 << 28 ? realloc(s->cell, (size_t)max * sizeof *grown) : NULL;

        if (!grown) return KL_NOMEM("paths");
        s->cell = grown;
        s->max_cells = max;
    }
    s->cell[s->ncells] = (struct cell){link, next};
    *at = s->ncells++;
    return ncclSuccess;
}

static ncclResult_t take_step(struct search *s, int node, const struct kl_link *l)
{
    const struct way *here = &s->way[node];
    struct way *there = &s->way[l->to];
    float bw = here->bw < l->bw ? here->bw : l->bw;
    uint8_t type = step_type(s, node, l);

    s->t->touched[l->to] |= (uint16_t)(1 << s->t->node[s->base].type);
    if (!may_pass(s, node, l) || !is_better(s, there, here, bw, type)) return ncclSuccess;
    if (l->reverse < 0) return no_way_back(s->t, l);
    there->bw = bw;
    there->hops = here->hops + 1;
    there->type = type;
    KL_TRY(add_cell(s, l->reverse, here->first, &there->first));
    if (there->listed == s->round) return ncclSuccess;
    there->listed = s->round;
    s->next[s->nnext++] = l->to;
    return ncclSuccess;
}

/* Nodes with the same id are one end: the search from the next starts with the results of the first. */
static void begin(struct search *s, int base, int named)
{
    s->base = base;
    s->named = named;
    s->round = 0;
    if (base == named) s->ncells = 0;
    for (int i = 0; i < s->t->nnodes; i++) {
        if (base == named) s->way[i] = (struct way){.first = -1, .type = KL_PATH_DIS};
        s->way[i].listed = 0;
    }
    s->way[base] = (struct way){.bw = KL_BW_LOCAL, .first = -1, .type = KL_PATH_LOC};
    s->t->touched[base] |= (uint16_t)(1 << s->t->node[base].type);
    s->frontier[0] = base;
    s->nfrontier = 1;
}

static ncclResult_t search_from(struct search *s, int base, int named)
{
    for (begin(s, base, named); s->nfrontier; s->nfrontier = s->nnext) {
        s->nnext = 0;
        s->round++;
        for (int i = 0; i < s->nfrontier; i++) {
            const struct kl_node *n = &s->t->node[s->frontier[i]];
            for (int k = n->first_link; k < n->first_link + n->nlinks; k++)
                KL_TRY(take_step(s, s->frontier[i], &s->t->link[k]));
        }
        int *done = s->frontier;
        s->frontier = s->next;
        s->next = done;
    }
    return ncclSuccess;
}

static ncclResult_t store(const struct search *s, int from)
{
    struct kl_topo *t = s->t;
    const struct way *w = &s->way[from];
    enum kl_node_type type = t->node[from].type, to = t->node[s->named].type;

    if (!kl_path_base(type) || (from != s->base && !w->listed)) return ncclSuccess;
    KL_TRY(kl_path_reserve(t, (uint32_t)w->hops));
    t->path[type][to][(size_t)kl_topo_index(t, from) * (size_t)t->count[to] + (size_t)kl_topo_index(t, s->named)] =
        (struct kl_path){
            .first = t->nhops, .hops = (uint16_t)w->hops, .type = w->type, .was = w->type & 15, .bw = w->bw};
    for (int32_t c = w->first; c >= 0; c = s->cell[c].next) t->hop[t->nhops++] = s->cell[c].link;
    return ncclSuccess;
}

static ncclResult_t search_and_store(struct search *s, int base, int named)
{
    KL_TRY(search_from(s, base, named));
    for (int from = 0; from < s->t->nnodes; from++) KL_TRY(store(s, from));
    return ncclSuccess;
}

static ncclResult_t search_all(struct search *s)
{
    struct kl_topo *t = s->t;

    for (int base = 0; base < t->nnodes; base++) {
        if (!kl_path_base(t->node[base].type) || s->repeats[base]) continue;
        for (int same = base; same >= 0; same = s->same[same]) KL_TRY(search_and_store(s, same, base));
    }
    return ncclSuccess;
}

static int by_id(const void *x, const void *y, void *topo)
{
    const struct kl_topo *t = topo;
    int i = *(const int *)x, k = *(const int *)y;
    const struct kl_node *a = &t->node[i], *b = &t->node[k];

    if (a->type != b->type) return a->type < b->type ? -1 : 1;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return i - k;
}

/* Chain the nodes that share an id, in order. The frontier lends its memory. */
static void chain_same(struct search *s)
{
    struct kl_topo *t = s->t;
    int *order = s->frontier;

    for (int i = 0; i < t->nnodes; i++) order[i] = i;
    qsort_r(order, (size_t)t->nnodes, sizeof *order, by_id, t);
    for (int i = 0; i < t->nnodes; i++) {
        const struct kl_node *here = &t->node[order[i]], *next = i + 1 < t->nnodes ? &t->node[order[i + 1]] : NULL;
        bool shared = next && next->type == here->type && next->id == here->id;

        s->same[order[i]] = shared ? order[i + 1] : -1;
        if (shared) s->repeats[order[i + 1]] = true;
    }
}

static ncclResult_t run(struct search *s)
{
    if (!s->way || !s->frontier || !s->next || !s->same || !s->repeats) return KL_NOMEM("paths");
    KL_TRY(make_tables(s->t));
    chain_same(s);
    return search_all(s);
}

ncclResult_t kl_path_find_shortest(struct kl_topo *t)
{
    size_t n = (size_t)t->nnodes + 1;
    struct search s = {.t = t,
                       .by_type = kl_nccl_has(t->options.nccl, KL_CHANGE_PATH_BY_TYPE),
                       .way = malloc(n * sizeof *s.way),
                       .frontier = malloc(n * sizeof *s.frontier),
                       .next = malloc(n * sizeof *s.next),
                       .same = malloc(n * sizeof *s.same),
                       .repeats = calloc(n, sizeof *s.repeats)};

    ncclResult_t rc = run(&s);

    free(s.way);
    free(s.cell);
    free(s.frontier);
    free(s.next);
    free(s.same);
    free(s.repeats);
    return rc;
}
