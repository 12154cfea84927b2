/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/duplex.h"

#include "base/log.h"
#include "net/socket/send.h"

#include <stdio.h>

static ncclResult_t make(struct kl_conn *c, const struct kl_net_end *me, struct kl_conn **opposite)
{
    struct kl_conn *t;

    KL_TRY(kl_conn_create(!c->sends, me, (struct kl_socket_shape){.threads = 0, .lanes = 0}, &t));
    snprintf(t->where, sizeof t->where, "%s", c->where);
    t->both_ways = c->halved = t->halved = true;
    t->opposite = c;
    c->opposite = t;
    t->lane[0].fd = c->lane[0].fd;
    if (t->sends)
        kl_out_take(&t->lane[0].out, &c->lane[0].out);
    else
        kl_in_take(&t->lane[0].in, &c->lane[0].in);
    KL_INFO(KL_NET, "NET/Socket : rank %d %s rank %d at %s, over the connection that goes the other way", t->rank,
            t->sends ? "sends to" : "receives from", t->peer, t->where);
    *opposite = t;
    return ncclSuccess;
}

/* May the other direction of its socket be used? */
static bool is_free(const struct kl_conn *c, const struct kl_net_end *me)
{
    return c->both_ways && !c->halved && !c->failed && c->rank == me->rank && c->peer == me->peer;
}

ncclResult_t kl_duplex_send(struct kl_conn *recv, const struct kl_net_end *me, struct kl_conn **send)
{
    *send = NULL;
    if (!is_free(recv, me)) return ncclSuccess;
    KL_TRY(make(recv, me, send));
    kl_out_begin(&(*send)->lane[0].out, KL_HEAD_BACK, 0, me->id, NULL, 0); /* with the first message, or at once */
    kl_send_work(*send);
    return kl_conn_report(*send);
}

ncclResult_t kl_duplex_recv(struct kl_conn *send, const struct kl_net_end *me, struct kl_conn **recv)
{
    *recv = NULL;
    if (!is_free(send, me)) return ncclInProgress;
    KL_TRY(kl_send_listen(send));
    if (!send->called_back) return ncclInProgress;
    if (send->back != me->id) return kl_conn_lost(send, KL_FLOW_FORGED);
    return make(send, me, recv);
}
