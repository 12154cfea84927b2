/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/receive.h"

#include "net/socket/stripe.h"

#include <errno.h>
#include <inttypes.h>

/* ---- matching messages and receives ---- */

/* The first unmatched message of a request with this tag. */
static struct kl_request_message *find_in(struct kl_request *r, uint32_t tag)
{
    for (int i = 0; i < r->n; i++)
        if (!r->message[i].met && r->message[i].tag == tag) return &r->message[i];
    return NULL;
}

/* The first receive posted for the head's tag; false: there is none. */
static bool find(struct kl_conn *c)
{
    for (c->of = c->first; c->of; c->of = c->of->next)
        if ((c->message = find_in(c->of, c->head.tag))) return true;
    return false;
}

/* All requests are in use, so a message without a receive now would never get one. */
static void wait_for_receive(struct kl_conn *c)
{
    if (!c->free)
        kl_conn_fail(c, ncclInvalidUsage,
                     "rank %d has sent a message with tag %d, and none of the %d receives that rank %d has posted is "
                     "for that; the ranks disagree about the next message",
                     c->peer, (int)c->head.tag, KL_NET_REQUESTS, c->rank);
}

/* Send the refusal to the sender, as far as the socket takes it, and end the connection. */
static void refuse(struct kl_conn *c)
{
    const struct kl_request_message *m = c->message;
    const uint64_t sizes[] = {c->head.bytes, m->bytes};
    struct kl_out *out = c->opposite ? &c->opposite->lane[0].out : c->halved ? NULL : &c->lane[0].out;

    for (int i = 0; out && i < 2 && kl_out_has_room(out); i++) {
        kl_out_begin(out, KL_HEAD_TOO_LARGE, sizes[i], m->tag, NULL, 0);
        (void)kl_out_move(out);
    }
    kl_conn_fail(c, ncclInvalidUsage,
                 "rank %d at %s has sent %" PRIu64 " bytes (tag %d) to rank %d, which has posted %zu; sizes and "
                 "settings have to be alike on all ranks",
                 c->peer, c->where, c->head.bytes, (int)m->tag, c->rank, m->bytes);
}

/* ---- a message ---- */

static void meet(struct kl_conn *c)
{
    c->message->met = true;
    c->message->came = c->head.bytes;
    if (!--c->of->unmet) kl_conn_remove(c, c->of);
}

/* The first lane is done with the current message. */
static void leave(struct kl_conn *c)
{
    struct kl_request *r = c->of;

    c->headed = false;
    c->message = NULL;
    kl_fetch_sub_acq_rel(&r->left, 1);
}

/* Read the next message head; heads for an opposite in between are passed on. */
static enum kl_flow get_head(struct kl_conn *c)
{
    while (!c->headed) {
        enum kl_flow flow = kl_in_head(&c->lane[0].in, &c->head);
        if (flow) return flow;
        c->headed = c->head.kind != KL_HEAD_TOO_LARGE || !c->opposite;
        if (!c->headed) kl_conn_refused(c->opposite, &c->head);
        if (c->failed) return KL_FLOW_BLOCKED;
    }
    return KL_FLOW_DONE;
}

enum kl_flow kl_receive_look(struct kl_conn *c)
{
    enum kl_flow flow = c->failed || c->message ? KL_FLOW_BLOCKED : get_head(c);

    return flow ? flow : KL_FLOW_BLOCKED;
}

/* Read the next head, and find its receive. BLOCKED: not possible now. */
static enum kl_flow begin(struct kl_conn *c)
{
    if (!c->headed && !c->first) return KL_FLOW_BLOCKED;
    enum kl_flow flow = get_head(c);
    if (flow) return flow;
    bool striped = c->head.kind == KL_HEAD_STRIPED;
    if (!striped && c->head.kind != KL_HEAD_MESSAGE) return KL_FLOW_FORGED;
    if (striped && (!c->shape.lanes || !c->head.bytes)) return KL_FLOW_FORGED;
    if (striped && !kl_stripe_has_room(c)) return KL_FLOW_BLOCKED;
    if (!find(c)) {
        wait_for_receive(c);
        return KL_FLOW_BLOCKED;
    }
    if (c->head.bytes > c->message->bytes) {
        refuse(c);
        return KL_FLOW_BLOCKED;
    }
    meet(c);
    return KL_FLOW_DONE;
}

static enum kl_flow receive_data(struct kl_conn *c)
{
    if (c->head.kind == KL_HEAD_MESSAGE) return kl_in_data(&c->lane[0].in, c->message->data, c->head.bytes);
    return kl_stripe_put(c, c->of, c->message->data, c->head.bytes) ? KL_FLOW_BLOCKED : KL_FLOW_DONE;
}

static enum kl_flow receive_first_lane(struct kl_conn *c)
{
    for (;;) {
        enum kl_flow flow = c->message ? KL_FLOW_DONE : begin(c);
        if (!flow) flow = receive_data(c);
        if (flow) return flow;
        leave(c);
    }
}

/* A sender that has finished may have closed: data from its other lanes is still read after the first has ended. */
void kl_receive_work(struct kl_conn *c)
{
    if (c->failed) return;
    enum kl_flow first = receive_first_lane(c);
    int err = errno;
    if (c->failed) return;
    enum kl_flow flow = first == KL_FLOW_BLOCKED || first == KL_FLOW_LOST ? kl_stripe_progress(c) : first;
    if (flow) {
        kl_conn_lost(c, flow);
    } else if (first == KL_FLOW_LOST && (c->message || kl_stripe_is_idle(c))) {
        errno = err;
        kl_conn_lost(c, first);
    }
}

/* ---- posting ---- */

static ncclResult_t check(const struct kl_conn *c, int n)
{
    if (n >= 1 && n <= KL_NET_RECVS) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%d messages of rank %d in one receive; 1 to %d are possible", n, c->peer,
                   KL_NET_RECVS);
}

ncclResult_t kl_receive_post(struct kl_conn *c, int n, const struct kl_net_recv *recvs, struct kl_request **request)
{
    struct kl_request *r = NULL;

    *request = NULL;
    if (c->failed) return kl_conn_report(c);
    KL_TRY(check(c, n));
    if (!(r = kl_conn_take(c))) {
        kl_receive_work(c);
        return kl_conn_report(c);
    }
    r->n = r->unmet = n;
    for (int i = 0; i < n; i++)
        r->message[i] =
            (struct kl_request_message){.data = recvs[i].data, .bytes = recvs[i].bytes, .tag = (uint32_t)recvs[i].tag};
    kl_store_relaxed(&r->left, n);
    kl_conn_append(c, r);
    *request = r;
    return ncclSuccess;
}
