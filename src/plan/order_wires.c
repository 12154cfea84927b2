/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_wires.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

ncclResult_t kl_order_wires_init(int nranks, int nnodes, int nchannels, int nheads, struct kl_order_wires *w)
{
    size_t all = (size_t)nranks * (size_t)nchannels;

    *w = (struct kl_order_wires){.nranks = nranks, .nnodes = nnodes, .nchannels = nchannels, .nheads = nheads};
    w->ring = calloc(all + 1, sizeof *w->ring);
    w->place = calloc(all + 1, sizeof *w->place);
    w->tree = calloc(all + 1, sizeof *w->tree);
    w->head = calloc((size_t)nnodes * (size_t)nheads + 1, sizeof *w->head);
    return w->ring && w->place && w->tree && w->head ? ncclSuccess : KL_NOMEM("rings and trees");
}

void kl_order_wires_fini(struct kl_order_wires *w)
{
    free(w->ring);
    free(w->place);
    free(w->tree);
    free(w->head);
    *w = (struct kl_order_wires){.nranks = 0};
}

void kl_order_wires_set_ring(struct kl_order_wires *w, int channel, const int32_t *order)
{
    size_t n = (size_t)w->nranks;
    int32_t *ring = &w->ring[(size_t)channel * n], *place = &w->place[(size_t)channel * n];

    for (size_t i = 0; i < n; i++) {
        ring[i] = order[i];
        place[order[i]] = (int32_t)i;
    }
}

static ncclResult_t copy_ring(const struct kl_connect *c, int channel, struct kl_order_wires *w)
{
    int32_t *order = malloc((size_t)w->nranks * sizeof *order);
    ncclResult_t rc = order ? kl_connect_ring_order(c, channel, 0, order) : KL_NOMEM("a ring");

    if (!rc) kl_order_wires_set_ring(w, channel, order);
    free(order);
    return rc;
}

ncclResult_t kl_order_wires_of(const struct kl_connect *c, struct kl_order_wires *w)
{
    int heads = c->nvls ? c->nheads : 0;

    KL_TRY(kl_order_wires_init(c->ranks.nranks, c->nodes.nnodes, c->nchannels, heads, w));
    for (int k = 0; k < c->nchannels; k++) {
        KL_TRY(copy_ring(c, k, w));
        for (int r = 0; r < w->nranks; r++)
            w->tree[(size_t)k * (size_t)w->nranks + (size_t)r] = kl_connect_tree(c, k, r);
    }
    for (int node = 0; node < w->nnodes; node++)
        for (int h = 0; h < heads; h++) w->head[node * heads + h] = kl_connect_nvls_head(c, h, node);
    return ncclSuccess;
}
