/* SPDX-License-Identifier: Apache-2.0 */
/* The plan is the same for every order of identical hosts: only the pods of its places change. */
#include "plan/op_traffic.h"

#include "base/error.h"

#include <stdlib.h>

enum { MOST_SWAPPED = 64, PASSES = 8 }; /* hosts among which pairs are exchanged */

static int by_ends(const void *x, const void *y)
{
    const struct kl_op_traffic_flight *a = x, *b = y;

    return a->from != b->from ? (a->from > b->from) - (a->from < b->from) : (a->to > b->to) - (a->to < b->to);
}

static void merge(struct kl_op_traffic *l)
{
    int n = 0;

    qsort(l->flight, (size_t)l->nflights, sizeof *l->flight, by_ends);
    for (int i = 0; i < l->nflights; i++) {
        if (n && !by_ends(&l->flight[n - 1], &l->flight[i]))
            l->flight[n - 1].wire += l->flight[i].wire;
        else
            l->flight[n++] = l->flight[i];
    }
    l->nflights = n;
}

static int64_t across(const struct kl_op_traffic *l, const int *pod, const int *order)
{
    int64_t sum = 0;

    for (int i = 0; i < l->nflights; i++)
        if (pod[order[l->flight[i].from]] != pod[order[l->flight[i].to]]) sum += l->flight[i].wire;
    return sum;
}

static void swap(int *order, int a, int b)
{
    const int host = order[a];

    order[a] = order[b];
    order[b] = host;
}

struct place {
    int pod, host;
};

static int by_pod(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    return a->pod != b->pod ? (a->pod > b->pod) - (a->pod < b->pod) : (a->host > b->host) - (a->host < b->host);
}

/* Hosts of a pod side by side. */
static ncclResult_t sort_by_pod(const struct kl_op_traffic *l, const int *pod, int *order)
{
    struct place *place = calloc((size_t)l->nhosts + 1, sizeof *place);

    if (!place) return KL_NOMEM("an order of hosts");
    for (int h = 0; h < l->nhosts; h++) place[h] = (struct place){pod[h], h};
    qsort(place, (size_t)l->nhosts, sizeof *place, by_pod);
    for (int h = 0; h < l->nhosts; h++) order[h] = place[h].host;
    free(place);
    return ncclSuccess;
}

static bool improve(struct kl_op_traffic *l, const int *pod)
{
    bool better = false;

    for (int a = 0; a < l->nhosts; a++)
        for (int b = a + 1; b < l->nhosts; b++) {
            if (pod[l->best_order[a]] == pod[l->best_order[b]]) continue;
            swap(l->best_order, a, b);
            const int64_t sum = across(l, pod, l->best_order);

            if (sum < l->best_across_pods) {
                l->best_across_pods = sum;
                better = true;
            } else {
                swap(l->best_order, a, b);
            }
        }
    return better;
}

ncclResult_t kl_op_traffic_order(struct kl_op_traffic *l, const int *pod)
{
    l->best_order = calloc((size_t)l->nhosts + 1, sizeof *l->best_order);
    if (!l->best_order) return KL_NOMEM("an order of hosts");
    merge(l);
    KL_TRY(sort_by_pod(l, pod, l->best_order));
    l->best_across_pods = across(l, pod, l->best_order);
    if (l->best_across_pods >= l->across_pods) { /* as they are */
        for (int h = 0; h < l->nhosts; h++) l->best_order[h] = h;
        l->best_across_pods = l->across_pods;
    }
    for (int pass = 0; l->nhosts <= MOST_SWAPPED && pass < PASSES && improve(l, pod); pass++) continue;
    return ncclSuccess;
}
