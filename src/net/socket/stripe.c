/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/stripe.h"

#include <errno.h>

bool kl_stripe_wanted(const struct kl_conn *c, size_t bytes)
{
    return c->shape.lanes && bytes >= KL_STRIPE_MIN_BYTES && kl_stripe_has_room(c);
}

/* A message puts at most one part into a lane. */
bool kl_stripe_has_room(const struct kl_conn *c)
{
    for (int i = 1; i <= c->shape.lanes; i++)
        if (!kl_lane_has_room(&c->lane[i])) return false;
    return true;
}

bool kl_stripe_is_idle(const struct kl_conn *c)
{
    for (int i = 1; i <= c->shape.lanes; i++)
        if (!kl_lane_is_idle(&c->lane[i])) return false;
    return true;
}

static size_t part_bytes(const struct kl_conn *c, size_t bytes)
{
    size_t each = (bytes - 1) / (size_t)c->shape.lanes + 1;

    return each < KL_PART_LEAST ? KL_PART_LEAST : each;
}

static ncclResult_t wake_io_threads(struct kl_conn *c)
{
    const struct kl_socket_shape *shape = &c->shape;

    if (!shape->threads) return ncclSuccess;
    if (c->io_threads) {
        kl_io_threads_wake(c->io_threads);
        return ncclSuccess;
    }
    ncclResult_t rc = kl_io_threads_start(c->lane + 1, shape, c->sends, &c->sleeper, &c->io_threads);
    return rc ? kl_conn_fail(c, rc, "%s", kl_error_text()) : ncclSuccess;
}

ncclResult_t kl_stripe_put(struct kl_conn *c, struct kl_request *r, void *data, size_t bytes)
{
    size_t each = part_bytes(c, bytes);
    struct kl_lane_part part = {.data = data, .left = &r->left};

    kl_fetch_add_relaxed(&r->left, (int)((bytes - 1) / each + 1));
    for (; bytes; bytes -= part.bytes) {
        part.bytes = bytes < each ? bytes : each;
        kl_lane_put(&c->lane[1 + c->turn], &part);
        c->turn = (c->turn + 1) % c->shape.lanes;
        part.data = (unsigned char *)part.data + part.bytes;
    }
    return wake_io_threads(c);
}

enum kl_flow kl_stripe_progress(struct kl_conn *c)
{
    for (int i = 1; i <= c->shape.lanes; i++) {
        struct kl_socket_lane *l = &c->lane[i];

        if (!c->shape.threads) kl_lane_move(l, c->sends);
        enum kl_flow flow = (enum kl_flow)kl_load_acquire(&l->flow);
        errno = flow ? l->err : 0;
        if (flow) return flow;
    }
    return KL_FLOW_DONE;
}
