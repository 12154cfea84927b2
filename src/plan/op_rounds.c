/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/op_rounds.h"

#include "base/error.h"

#include <stdlib.h>

static bool is_power(int n)
{
    return (n & (n - 1)) == 0;
}

/* Does rank 0 send to `peer` at all? */
static bool sends(enum kl_op_peers peers, int n, int peer)
{
    switch (peers) {
    case KL_PEERS_NEXT:
        return peer == 1 % n;
    case KL_PEERS_TO_ROOT:
        return peer == 0;
    case KL_PEERS_CUBE:
        return peer && is_power(peer);
    default:
        return true;
    }
}

static bool receives(enum kl_op_peers peers, int n, int peer)
{
    switch (peers) {
    case KL_PEERS_NEXT:
        return peer == n - 1;
    case KL_PEERS_OF_ROOT:
        return peer == 0;
    case KL_PEERS_CUBE:
        return peer && is_power(peer);
    default:
        return true;
    }
}

static void add_round(struct kl_op_rounds *rounds, enum kl_op_peers peers, const struct kl_connect *c, int i,
                      const struct kl_p2p_round *r)
{
    struct kl_op_round *out = &rounds->round[rounds->nrounds];
    int n = c->ranks.nranks;

    *out = (struct kl_op_round){.round = i,
                                .send = sends(peers, n, r->send) ? r->send : -1,
                                .recv = receives(peers, n, r->recv) ? r->recv : -1,
                                .base = kl_p2p_base(c, i)};
    rounds->nrounds += out->send >= 0 || out->recv >= 0;
}

static ncclResult_t list_rounds(struct kl_op_rounds *rounds, enum kl_op_peers peers, const struct kl_connect *c)
{
    int n = c->ranks.nranks;
    struct kl_p2p_round *all = malloc((size_t)n * sizeof *all);
    ncclResult_t rc;

    rounds->round = calloc((size_t)n, sizeof *rounds->round);
    KL_TRY_OR(rc, out, all && rounds->round ? ncclSuccess : KL_NOMEM("rounds"));
    KL_TRY_OR(rc, out, kl_p2p_schedule(c, all));
    for (int i = 0; i < n; i++) add_round(rounds, peers, c, i, &all[i]);
out:
    free(all);
    if (rc) kl_op_rounds_fini(rounds);
    return rc;
}

ncclResult_t kl_op_rounds_find(enum kl_op_peers peers, const struct kl_plan *plan, struct kl_op_rounds *rounds)
{
    const struct kl_connect *c = plan->connect;

    if (peers == KL_PEERS_CUBE && !is_power(plan->nranks))
        return KL_FAIL(ncclInvalidUsage, "a hypercube has 2, 4, 8, ... ranks, and here are %d", plan->nranks);
    *rounds = (struct kl_op_rounds){.channels = plan->p2p, .by_node = c->nodes.nnodes > 1 && !kl_p2p_flat(c)};
    return list_rounds(rounds, peers, c);
}

void kl_op_rounds_fini(struct kl_op_rounds *rounds)
{
    free(rounds->round);
    rounds->round = NULL;
}
