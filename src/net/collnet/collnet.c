/* SPDX-License-Identifier: Apache-2.0 */
/** collnet.c - the table of reductions done by the members themselves: software.h, over the net that the end names. */
#include "net/collnet/request.h"

#include <stdlib.h>

struct listener {
    const struct kl_net *net;
    void *listener;
};

/* ---- devices ---- */

static ncclResult_t init(const struct kl_net *net)
{
    return net->init();
}

static bool reduces(struct kl_collnet_op op)
{
    return kl_type_bytes(op.type) && kl_redop_name(op.op);
}

/* ---- groups ---- */

static ncclResult_t listen_for(int device, const struct kl_collnet_end *me, struct kl_net_handle *handle,
                               void **listener)
{
    struct kl_net_end end = {.secret = me->secret, .rank = me->ranks[me->own], .peer = -1, .id = me->id};
    struct listener *l = calloc(1, sizeof *l);

    if (!l) return KL_NOMEM("a listener of CollNet");
    l->net = me->net;
    ncclResult_t rc = me->net->listen(device, &end, handle, &l->listener);
    kl_key_wipe(&end.secret);
    if (rc)
        free(l);
    else
        *listener = l;
    return rc;
}

static ncclResult_t connect_all(int device, const struct kl_collnet_end *me, const struct kl_net_handle *handles,
                                void *listener, void **group)
{
    const struct listener *l = listener;
    struct kl_software_group *g = *group;

    if (!g) KL_TRY(kl_software_create(device, me, &g));
    ncclResult_t rc = kl_software_join(g, handles, l->listener);
    if (rc && rc != ncclInProgress) {
        kl_software_free(g);
        g = NULL;
    }
    *group = g;
    return rc;
}

static void cancel(void *group)
{
    struct kl_software_group *g = group;

    for (int m = 0; m < g->me.n; m++) {
        if (g->member[m].sends) g->me.net->cancel(g->member[m].send);
        if (g->member[m].receives) g->me.net->cancel(g->member[m].recv);
    }
    int quiet = kl_error_quiet(1); /* the code that cancels has reported the reason */
    if (!g->failed)
        kl_software_fail(
            g, KL_FAIL(ncclInternalError, "CollNet: the group of rank %d was given up", g->me.ranks[g->me.own]));
    kl_error_quiet(quiet);
}

static void close_group(void *group)
{
    kl_software_free(group);
}

static void close_listen(void *listener)
{
    struct listener *l = listener;

    if (!l) return;
    l->net->close_listen(l->listener);
    free(l);
}

/* ---- requests ---- */

static ncclResult_t iallreduce(void *group, const void *send, void *recv, size_t count, struct kl_collnet_op op,
                               void **request)
{
    struct kl_software_request *r;
    ncclResult_t rc = kl_software_allreduce(group, send, recv, count, op, &r);

    *request = r;
    return rc;
}

static ncclResult_t iallgather(void *group, const void *send, const struct kl_collnet_part *recv, size_t bytes,
                               void **request)
{
    struct kl_software_request *r;
    ncclResult_t rc = kl_software_allgather(group, send, recv, bytes, &r);

    *request = r;
    return rc;
}

static ncclResult_t ireducescatter(void *group, const struct kl_collnet_part *send, void *recv, size_t count,
                                   struct kl_collnet_op op, void **request)
{
    struct kl_software_request *r;
    ncclResult_t rc = kl_software_reducescatter(group, send, recv, count, op, &r);

    *request = r;
    return rc;
}

static ncclResult_t test(void *request, bool *done)
{
    return kl_software_test(request, done);
}

static int waits_for(const void *group)
{
    return kl_software_waits_for(group);
}

const struct kl_collnet kl_collnet_software = {
    .name = "Socket",
    .init = init,
    .reduces = reduces,
    .listen = listen_for,
    .connect = connect_all,
    .iallreduce = iallreduce,
    .iallgather = iallgather,
    .ireducescatter = ireducescatter,
    .test = test,
    .waits_for = waits_for,
    .cancel = cancel,
    .close = close_group,
    .close_listen = close_listen,
};
