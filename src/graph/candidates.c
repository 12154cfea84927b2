/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "graph/laying.h"
#include "topo/paths.h"

#include <stdlib.h>

/* ---- NETs ---- */

/* Ordered NETs by type limit: for all GPUs (row 0) and each GPU (row 1 + g). Filled at first use. */
struct kl_net_lists {
    struct {
        int *count, *net; /* net: rows of nnets */
        bool filled, broken;
    } of[KL_PATH_TYPES];
};

static void fill_net_list(struct kl_backtrack *bt, int type)
{
    struct kl_net_lists *l = bt->lists;
    size_t nn = (size_t)bt->routes->nnets, rows = (size_t)bt->routes->ngpus + 1;
    int quiet = kl_error_quiet(1);

    l->of[type].filled = true;
    l->of[type].count = malloc(rows * sizeof(int));
    l->of[type].net = malloc((rows * nn + 1) * sizeof(int));
    l->of[type].broken = !l->of[type].count || !l->of[type].net;
    if (l->of[type].broken) kl_backtrack_out_of_memory(bt);
    for (size_t i = 0; i < rows && !l->of[type].broken; i++)
        if (kl_topo_net_list(bt->routes->topo, type, (int)i - 1, l->of[type].net + i * nn, &l->of[type].count[i]))
            l->of[type].broken = true;
    kl_error_quiet(quiet);
}

int kl_candidate_nets(struct kl_backtrack *bt, int gpu, const int **net)
{
    int type = bt->work->type_inter;

    if (!bt->lists->of[type].filled) fill_net_list(bt, type);
    if (bt->lists->of[type].broken) return 0;
    *net = bt->lists->of[type].net + (size_t)(gpu + 1) * (size_t)bt->routes->nnets;
    return bt->lists->of[type].count[gpu + 1];
}

/* ---- GPUs ---- */

/* Append a candidate that is free and can be reached. */
static inline void add_if_free(const struct kl_backtrack *bt, const struct kl_laying *l, struct kl_frame *f, int gpu)
{
    f->own[f->n] = gpu;
    f->n += !kl_laying_uses(l, gpu) && kl_gpu_gpu(bt->routes, f->gpu, gpu)->hops;
}

/* With an NVSwitch only neighbours by index follow: rings look back first, balanced trees ahead. */
static inline void list_neighbours(const struct kl_backtrack *bt, const struct kl_laying *l, struct kl_frame *f)
{
    int ng = bt->routes->ngpus, prev = f->gpu ? f->gpu - 1 : ng - 1, next = f->gpu + 1 < ng ? f->gpu + 1 : 0;
    bool ring = bt->work->pattern == KL_PATTERN_RING, chain = bt->work->pattern == KL_PATTERN_TREE;

    f->list = f->own;
    f->n = 0;
    add_if_free(bt, l, f, ring ? prev : next);
    if (prev != next && !chain && !kl_has_heads(bt->work->pattern)) add_if_free(bt, l, f, ring ? next : prev);
}

static inline int pci_left(const struct kl_routes *r, int gpu)
{
    const int32_t *whole = r->levels.next + KL_LEVEL_WHOLE;
    int up, down;

    if (r->pci_up[gpu] < 0 || r->pci_down[gpu] < 0) return -1;
    up = whole[r->level[r->pci_up[gpu]]];
    down = whole[r->level[r->pci_down[gpu]]];
    return up < down ? up : down;
}

static void reverse(int32_t *list, int n)
{
    for (int i = 0, k = n - 1; i < k; i++, k--) {
        int32_t swapped = list[i];

        list[i] = list[k];
        list[k] = swapped;
    }
}

/* The entries of an order with free GPUs, as indices into it; `left` of them at most. */
static inline int list_free(const struct kl_laying *l, const struct kl_order *o, int left, int32_t *list)
{
    int n = 0;

    for (int i = 0; i < o->n && n < left; i++) {
        list[n] = i;
        n += !kl_laying_uses(l, o->entry[i].gpu);
    }
    return n;
}

static bool are_alike(const struct kl_order *o, const int32_t *list, int n)
{
    for (int i = 1; i < n; i++)
        if (o->entry[list[i]].alike != o->entry[list[0]].alike) return false;
    return true;
}

/*
 * Sort by the bandwidth left on the candidates' PCI links, after the bandwidth from the entry NET: a stable insertion into
 * the order of all other criteria.
 */
static inline void sort_by_pci(struct kl_backtrack *bt, const struct kl_order *o, int32_t *list, int n)
{
    int64_t *key = bt->key;

    for (int i = 0; i < n; i++) {
        const struct kl_order_entry *e = &o->entry[list[i]];
        int64_t k = (int64_t)e->net_bw * ((int64_t)1 << 32) + pci_left(bt->routes, e->gpu);
        int32_t moved = list[i];
        int at = i;

        for (; at > 0 && key[at - 1] < k; at--) key[at] = key[at - 1], list[at] = list[at - 1];
        key[at] = k;
        list[at] = moved;
    }
}

/* The last remaining GPU. */
static inline void list_last(const struct kl_backtrack *bt, const struct kl_laying *l, struct kl_frame *f)
{
    int words = (bt->routes->ngpus + 63) / 64, k = 0;

    while (k < words - 1 && l->used[k] == UINT64_MAX) k++;
    f->list = f->own;
    f->n = 0;
    add_if_free(bt, l, f, 64 * k + __builtin_ctzll(~l->used[k]));
}

/* GPUs that are all alike are tried last first, while a return to the network is ahead but not next. */
void kl_candidate_gpus(struct kl_backtrack *bt, struct kl_laying *l, const struct kl_stage *s, struct kl_frame *f)
{
    int32_t *list = l->pool + l->step * bt->routes->ngpus;
    const struct kl_order *o;
    int left = bt->routes->ngpus - 1 - l->step;

    if (bt->routes->nvs) {
        list_neighbours(bt, l, f);
        return;
    }
    if (left == 1) {
        list_last(bt, l, f);
        return;
    }
    f->n = 0;
    if (kl_reserve_is_shut(&bt->reserve, bt->routes->way_out[f->gpu])) return;
    o = kl_order_after(bt->routes, &bt->orders, f->gpu, s->nets_count ? (int)l->nets[0] : -1);
    if (!o) {
        kl_backtrack_out_of_memory(bt);
        return;
    }
    int n = list_free(l, o, left, list);
    if (s->nets_count && n > 1) {
        sort_by_pci(bt, o, list, n);
        if (!s->last_exit && (o->all_alike || are_alike(o, list, n))) reverse(list, n);
    }
    for (int i = 0; i < n; i++) list[i] = o->entry[list[i]].gpu;
    f->list = list;
    f->n = n;
}

/* ---- life ---- */

ncclResult_t kl_candidates_init(struct kl_backtrack *bt)
{
    bt->key = malloc((size_t)bt->routes->ngpus * sizeof *bt->key);
    bt->lists = calloc(1, sizeof *bt->lists);
    if (!bt->key || !bt->lists) return KL_NOMEM("a graph search");
    return kl_orders_init(bt->routes, &bt->orders);
}

void kl_candidates_fini(struct kl_backtrack *bt)
{
    for (int t = 0; bt->lists && t < KL_PATH_TYPES; t++) {
        free(bt->lists->of[t].count);
        free(bt->lists->of[t].net);
    }
    kl_orders_fini(bt->routes, &bt->orders);
    free(bt->key);
    free(bt->lists);
}
