/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net.c - ranks of different hosts: a fifo at each end, and a network between them.
 *
 * The receiver's connect info has its address; both ends then connect by themselves, so there is no reply to wait for.
 */
#include "base/error.h"
#include "device/host/idle.h"
#include "transport/net/relay_sender.h"
#include "transport/net/link.h"
#include "transport/transport.h"

static enum kl_refusal net_refuses(const struct kl_pair_facts *facts)
{
    return facts->network ? KL_REFUSAL_NONE : KL_REFUSAL_NO_NETWORK;
}

static struct kl_net_end end_of(const struct kl_connector *c, uint64_t deadline)
{
    const struct kl_net_context *home = &c->common->net;

    return (struct kl_net_end){
        .secret = home->secret, .rank = home->rank, .peer = c->peer, .id = c->number, .deadline = deadline};
}

static ncclResult_t net_setup(struct kl_connector *c, const struct kl_fifo_shape *shape, struct kl_connect_info *info)
{
    struct kl_net_context *home = &c->common->net;
    const struct kl_net_handle *handle;

    KL_TRY(kl_net_context_listen(home, c->route.device, &handle));
    KL_TRY(kl_net_link_create(home->net, shape, false, &c->net.link));
    c->net.link->number = c->number;
    KL_TRY(kl_net_gpu_memory_create(&c->route.reach, &c->net.link->gpu));
    info->net = *handle;
    KL_TRY(kl_fifo_attach_rx(&c->rx, c->net.link->fifo, c->net.link->mapped, false));
    c->rx.places = true;
    c->net.link->long_steps = c->messages; /* steps of collectives fit into slots, with or without a wanted address */
    return ncclSuccess;
}

/* ---- one connection for both directions: where the plan wants the same NIC for both, and the net can ---- */

/* The other direction, if it uses the same NIC. With a relay there is no connection here. */
static struct kl_connector *like_opposite(const struct kl_connector *c)
{
    struct kl_connector *o = c->opposite;
    bool alike =
        o && o->transport == c->transport && o->route.device == c->route.device && o->route.planned == c->route.planned;

    return alike && !o->route.relayed && c->common->net.net->send_back ? o : NULL;
}

/* Both directions are being connected, and the lower rank begins. Only for collectives, where both ranks need both: a message's
 * sender may have to connect before its peer does. */
static bool peer_begins(const struct kl_connector *c, const struct kl_connector *opposite)
{
    return !c->messages && c->peer < c->common->net.rank && !opposite->ready;
}

static ncclResult_t connect_link(struct kl_connector *c, const struct kl_connect_info *info)
{
    const struct kl_net *net = c->common->net.net;
    const struct kl_connector *o = like_opposite(c);
    struct kl_net_end me = end_of(c, c->net.deadline);
    struct kl_net_link *l = c->net.link;

    if (o && !l->connection) {
        if (peer_begins(c, o)) return ncclInProgress;
        if (o->ready) KL_TRY(net->send_back(o->net.link->connection, &me, &l->connection));
        if (l->connection) return ncclSuccess;
    }
    me.both_ways = o && !o->ready;
    return net->connect(c->route.device, &me, &info->net, &l->connection);
}

static ncclResult_t accept_link(struct kl_connector *c)
{
    const struct kl_net_context *home = &c->common->net;
    const struct kl_connector *o = like_opposite(c);
    const struct kl_net_end me = end_of(c, c->net.deadline);
    ncclResult_t rc = home->net->accept(home->device[c->route.device].listener, &me, &c->net.link->connection);

    if (rc != ncclInProgress || !o || !o->ready) return rc;
    return home->net->recv_back(o->net.link->connection, &me, &c->net.link->connection);
}

static ncclResult_t net_connect(struct kl_connector *c, const struct kl_connect_info *info, uint64_t deadline,
                                struct kl_connect_reply *reply)
{
    (void)reply;
    if (c->route.relayed) return kl_relay_sender_connect(c, &kl_transport_shm, info, deadline);
    if (!c->net.link) {
        KL_TRY(kl_net_link_create(c->common->net.net, c->shape, true, &c->net.link));
        KL_TRY(kl_net_gpu_memory_create(&c->route.reach, &c->net.link->gpu));
    }
    c->net.link->number = c->number;
    if (!c->net.deadline) c->net.deadline = deadline;
    KL_TRY(connect_link(c, info));
    KL_TRY(kl_net_link_opened(c->net.link));
    KL_TRY(kl_fifo_attach_tx(&c->tx, c->net.link->fifo, c->net.link->mapped, true));
    c->tx.zcopy_all = true;
    return ncclSuccess;
}

static ncclResult_t net_settle(struct kl_connector *c, uint64_t deadline, const struct kl_connect_reply *reply)
{
    (void)reply;
    if (!c->net.deadline) c->net.deadline = deadline;
    KL_TRY(accept_link(c));
    return kl_net_link_opened(c->net.link);
}

static ncclResult_t net_use_gpu(struct kl_connector *c, const void *data, size_t bytes)
{
    struct kl_net_link *l = c->net.link;

    if (l && l->gpu) return kl_net_gpu_memory_use(l->gpu, l->net, l->connection, data, bytes);
    return KL_FAIL(ncclInternalError, "a message in memory of a GPU for a connection that takes none");
}

static enum kl_progress net_progress(struct kl_connector *c, ncclResult_t *rc)
{
    struct kl_net_link *l = c->net.link;

    if (c->net.handover) return kl_relay_sender_progress(c);
    int quiet = kl_error_quiet(1);
    enum kl_progress got = c->sends ? kl_net_outgoing_progress(l, rc) : kl_net_incoming_progress(l, &c->rx, rc);
    kl_error_quiet(quiet);
    if (*rc) *rc = kl_net_link_describe(l, *rc, c->sends ? l->released : l->in.step);
    return got;
}

static bool net_sleep_on(struct kl_connector *c)
{
    const struct kl_net_link *l = c->net.link;
    int fd = -1, quiet;

    if (!l || l->cancelled || l->left || l->loss) return false; /* handed over: the relay reports in memory */
    quiet = kl_error_quiet(1);                                  /* the next user of the connection reports it */
    ncclResult_t rc = l->net->sleep_on(l->connection, &fd);
    kl_error_quiet(quiet);
    return !rc && fd >= 0 && kl_idle_wait_fd(fd);
}

static void net_revoke(struct kl_connector *c)
{
    kl_net_link_cancel(c->net.link); /* steps that were handed over are in no users' memory */
}

static const char *net_loss(const struct kl_connector *c)
{
    return c->net.link ? c->net.link->loss : NULL;
}

static void net_free(struct kl_connector *c)
{
    if (c->sends) kl_net_outgoing_leave(c->net.link);
    kl_net_link_free(c->net.link, c->sends);
    if (c->net.handover) kl_relay_sender_free(c);
}

const struct kl_transport kl_transport_net = {
    .name = "NET",
    .via = "NET",
    .refuses = net_refuses,
    .setup = net_setup,
    .connect = net_connect,
    .settle = net_settle,
    .progress = net_progress,
    .use_gpu = net_use_gpu,
    .sleep_on = net_sleep_on,
    .revoke = net_revoke,
    .loss = net_loss,
    .free = net_free,
};
