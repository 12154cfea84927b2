/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/profile.h"

#include "base/clock.h"
#include "coll/pipeline/pipeline.h"
#include "transport/net/link.h"
#include "transport/net/profile.h"

/* The link of a connector that this side moves; NULL: another transport, or a relay sends. */
static struct kl_net_link *link_of(const struct kl_connector *c)
{
    return c && c->ready ? c->net.link : NULL;
}

static uint64_t step_of(const struct kl_connector *c)
{
    return c->sends ? c->tx.step : c->rx.step;
}

static void begin_link(const struct kl_profiler *profiler, void *parent, struct kl_connector *c, int channel, int steps)
{
    struct kl_net_link *l = link_of(c);
    const size_t chunk = c && c->shape ? c->shape->slot_bytes : 0;
    const struct kl_profile_descr d = {
        .type = KL_PROFILE_PROXY_OP,
        .parent = parent,
        .channel = channel,
        .peer = c ? c->peer : -1,
        .steps = steps,
        .chunk_bytes = (int)chunk,
        .is_send = c && c->sends,
    };

    if (l) kl_net_profile_begin(l, profiler, &d, step_of(c));
}

static void end_link(const struct kl_connector *c)
{
    struct kl_net_link *l = link_of(c);

    if (l) kl_net_profile_end(l, step_of(c));
}

/* ---- collectives ---- */

void kl_exec_profile_begin(struct kl_exec_profile *p, int channel, const struct kl_algorithm *a, void *op,
                           struct kl_edges *edges, const struct kl_channel_work *share)
{
    const struct kl_profile_descr kernel = {
        .type = KL_PROFILE_KERNEL_CH, .parent = p->parent, .channel = channel, .timer = kl_now_ns()};
    struct kl_pipeline_steps steps;

    kl_profile_start(p->profiler, &kernel, &p->kernel[channel]);
    if (!a->schedule[share->func] || !edges->moved_here) return;
    kl_pipeline_count(op, &steps);
    for (int i = 0; i < edges->nsend; i++) begin_link(p->profiler, p->parent, edges->send[i], channel, steps.send[i]);
    for (int i = 0; i < edges->nrecv; i++) begin_link(p->profiler, p->parent, edges->recv[i], channel, steps.recv[i]);
}

void kl_exec_profile_end(struct kl_exec_profile *p, int channel, const struct kl_edges *edges)
{
    for (int i = 0; i < edges->nsend; i++) end_link(edges->send[i]);
    for (int i = 0; i < edges->nrecv; i++) end_link(edges->recv[i]);
    kl_profile_state(&p->kernel[channel], KL_PROFILE_KERNEL_CH_STOP, kl_now_ns());
    kl_profile_stop(&p->kernel[channel]);
}

/* ---- messages ---- */

void kl_exec_profile_message_begin(const struct kl_profiler *profiler, void *parent, struct kl_connector *c)
{
    begin_link(profiler, parent, c, 0, KL_NET_PROFILE_STEPS_UNKNOWN);
}

void kl_exec_profile_message_end(const struct kl_connector *c)
{
    end_link(c);
}
