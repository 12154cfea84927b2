/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"

#include "base/error.h"

#include <stdlib.h>

ncclResult_t kl_orders_init(const struct kl_routes *r, struct kl_orders *orders)
{
    orders->list = calloc(((size_t)r->nnets + 1) * (size_t)r->ngpus, sizeof(struct kl_order *));
    return orders->list ? ncclSuccess : KL_NOMEM("a graph search");
}

void kl_orders_fini(const struct kl_routes *r, struct kl_orders *orders)
{
    for (int i = 0; orders->list && i < (r->nnets + 1) * r->ngpus; i++) free(orders->list[i]);
    free(orders->list);
    orders->list = NULL;
}

/* Sort key of candidates. */
struct score {
    int gpu, start, hops, bw, net_hops, net_bw;
};

static struct score score_of(const struct kl_routes *r, int from, int start, int net)
{
    int gpu = (from + start) % r->ngpus;
    const struct kl_route *p = kl_gpu_gpu(r, from, gpu);
    struct score s = {.gpu = gpu, .start = start, .hops = p->length, .bw = kl_whole(p->bw)};

    if (net >= 0) {
        s.net_hops = kl_net_gpu(r, net, gpu)->length;
        s.net_bw = kl_whole(kl_net_gpu(r, net, gpu)->bw);
    }
    return s;
}

static int compare(const void *x, const void *y)
{
    const struct score *a = x, *b = y;

    if (a->net_bw != b->net_bw) return a->net_bw > b->net_bw ? -1 : 1;
    if (a->net_hops != b->net_hops) return a->net_hops < b->net_hops ? -1 : 1;
    if (a->bw != b->bw) return a->bw > b->bw ? -1 : 1;
    if (a->hops != b->hops) return a->hops < b->hops ? -1 : 1;
    return a->start < b->start ? -1 : 1;
}

static bool alike(const struct score *a, const struct score *b)
{
    return a->bw == b->bw && a->hops == b->hops;
}

/* The list of sorted scores; a class is named by the index of its first member. */
static void fill(struct kl_order *o, const struct score *s, int n)
{
    o->n = n;
    o->all_alike = true;
    for (int i = 0; i < n; i++) {
        int first = 0;

        while (!alike(&s[first], &s[i])) first++;
        o->entry[i] = (struct kl_order_entry){s[i].gpu, s[i].net_bw, first};
        o->all_alike &= first == 0;
    }
}

static struct kl_order *make(const struct kl_routes *r, int from, int net)
{
    struct kl_order *o = malloc(sizeof *o + (size_t)r->ngpus * sizeof o->entry[0]);
    struct score *s = malloc((size_t)r->ngpus * sizeof *s);
    int n = 0;

    if (o && s) {
        for (int i = 1; i < r->ngpus; i++)
            if (kl_gpu_gpu(r, from, (from + i) % r->ngpus)->hops) s[n++] = score_of(r, from, i, net);
        qsort(s, (size_t)n, sizeof *s, compare);
        fill(o, s, n);
    } else {
        free(o);
        o = NULL;
    }
    free(s);
    return o;
}

const struct kl_order *kl_order_after(const struct kl_routes *r, struct kl_orders *orders, int from, int net)
{
    struct kl_order **o = &orders->list[(size_t)(net + 1) * (size_t)r->ngpus + (size_t)from];

    if (!*o) *o = make(r, from, net);
    return *o;
}
