/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/coll.h"

#include "base/error.h"
#include "device/host/redop.h"

#include <stdlib.h>

static bool is_power(int n)
{
    return (n & (n - 1)) == 0;
}

/* Does rank 0, which is the root where there is one, send to `peer` at all? */
static bool sends(enum kl_coll_id id, int n, int peer)
{
    switch (id) {
    case KL_SENDRECV:
        return peer == 1 % n;
    case KL_GATHER:
        return peer == 0;
    case KL_HYPERCUBE:
        return peer && is_power(peer);
    default:
        return true;
    }
}

static bool receives(enum kl_coll_id id, int n, int peer)
{
    switch (id) {
    case KL_SENDRECV:
        return peer == n - 1;
    case KL_SCATTER:
        return peer == 0;
    case KL_HYPERCUBE:
        return peer && is_power(peer);
    default:
        return true;
    }
}

static void add_round(struct kl_coll_messages *m, const struct kl_connect *c, int i, const struct kl_p2p_round *r)
{
    enum kl_coll_id id = kl_coll_id(m->asked.coll);
    struct kl_coll_round *out = &m->round[m->nrounds];
    int n = m->place.ranks;

    *out = (struct kl_coll_round){.round = i,
                                  .send = sends(id, n, r->send) ? r->send : -1,
                                  .recv = receives(id, n, r->recv) ? r->recv : -1,
                                  .base = kl_p2p_base(c, i)};
    m->nrounds += out->send >= 0 || out->recv >= 0;
}

static ncclResult_t list_rounds(struct kl_coll_messages *m, const struct kl_connect *c)
{
    int n = m->place.ranks;
    struct kl_p2p_round *all = malloc((size_t)n * sizeof *all);
    ncclResult_t rc;

    m->round = calloc((size_t)n, sizeof *m->round);
    KL_TRY_OR(rc, out, all && m->round ? ncclSuccess : KL_NOMEM("rounds"));
    KL_TRY_OR(rc, out, kl_p2p_schedule(c, all));
    for (int i = 0; i < n; i++) add_round(m, c, i, &all[i]);
out:
    free(all);
    if (rc) free(m->round);
    return rc;
}

static int64_t piece(const struct kl_coll_messages *m, int64_t bytes)
{
    size_t element = kl_type_bytes(m->asked.type);
    enum kl_coll_id id = kl_coll_id(m->asked.coll);

    return (int64_t)(kl_coll_shape(id, (size_t)bytes, element, m->place.ranks, 0).count * element);
}

ncclResult_t kl_coll_find_messages(const struct kl_coll_asked *a, const struct kl_coll_place *place,
                                   const struct kl_plan *plan, struct kl_coll_messages *m)
{
    enum kl_coll_id id = kl_coll_id(a->coll);

    if (id == KL_HYPERCUBE && !is_power(place->ranks))
        return KL_FAIL(ncclInvalidUsage, "a hypercube has 2, 4, 8, ... ranks, and here are %d", place->ranks);
    *m = (struct kl_coll_messages){.asked = *a, .place = *place, .channels = plan->p2p};
    m->first_piece = piece(m, a->first);
    m->last_piece = piece(m, a->last);
    m->by_node = place->nodes > 1 && !kl_p2p_flat(plan->connect);
    m->steps = kl_coll_steps(id, place->ranks);
    return list_rounds(m, plan->connect);
}
