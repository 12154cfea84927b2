/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/send.h"

#include "net/socket/keepalive.h"
#include "net/socket/receive.h"
#include "net/socket/stripe.h"

#include <errno.h>

static enum kl_flow receive_back_alone(struct kl_conn *c)
{
    struct kl_head head;

    while (!c->failed && !c->called_back) {
        enum kl_flow flow = kl_in_head(&c->lane[0].in, &head);
        if (flow) return flow;
        if (head.kind == KL_HEAD_BACK && c->both_ways && !c->headed) {
            c->called_back = true;
            c->back = head.tag;
        } else if (head.kind == KL_HEAD_TOO_LARGE)
            kl_conn_refused(c, &head);
        else
            return KL_FLOW_FORGED;
    }
    return KL_FLOW_DONE;
}

/* The receiver sends only: that it sends back from now on, or, before it ends the connection, that a message was too
 * large. */
static enum kl_flow receive_back(struct kl_conn *c)
{
    if (c->opposite) return kl_receive_look(c->opposite);
    return c->halved ? KL_FLOW_BLOCKED : receive_back_alone(c);
}

ncclResult_t kl_send_listen(struct kl_conn *c)
{
    enum kl_flow heard = c->failed ? KL_FLOW_DONE : receive_back(c);

    if (heard && heard != KL_FLOW_BLOCKED) kl_conn_lost(c, heard);
    return kl_conn_report(c);
}

/* The connection has ended; an earlier refusal by the receiver is the better reason. */
static void end(struct kl_conn *c, enum kl_flow flow)
{
    int err = errno;
    enum kl_flow heard = flow == KL_FLOW_LOST ? receive_back(c) : flow;

    if (c->failed) return;
    if (heard != KL_FLOW_FORGED) heard = flow;
    if (heard == KL_FLOW_LOST) errno = err;
    kl_conn_lost(c, heard);
}

/* Messages that use the lanes have a head without data. */
static void begin(struct kl_conn *c, const struct kl_request *r)
{
    const struct kl_request_message *m = r->message;

    kl_out_begin(&c->lane[0].out, r->striped ? KL_HEAD_STRIPED : KL_HEAD_MESSAGE, m->bytes, m->tag, m->data,
                 r->striped ? 0 : m->bytes);
}

/* As many frames as fit together. */
static void begin_more(struct kl_conn *c)
{
    struct kl_request *r = c->first;

    for (int i = 0; i < c->begun; i++) r = r->next;
    for (; r && kl_out_has_room(&c->lane[0].out); r = r->next, c->begun++) begin(c, r);
}

static void end_begun(struct kl_conn *c)
{
    for (; c->begun; c->begun--) {
        struct kl_request *r = c->first;

        kl_conn_remove(c, r);
        kl_fetch_sub_acq_rel(&r->left, 1);
    }
}

static enum kl_flow send_first_lane(struct kl_conn *c)
{
    while (c->first || c->lane[0].out.busy) {
        begin_more(c);
        enum kl_flow flow = kl_out_move(&c->lane[0].out);
        if (flow) return flow;
        end_begun(c);
    }
    return KL_FLOW_DONE;
}

static bool lanes_wait(const struct kl_conn *c)
{
    for (int i = 1; i <= c->shape.lanes; i++)
        if (!kl_lane_is_idle(&c->lane[i])) return true;
    return false;
}

/* Posted data waits for the receiver: check that it is alive. */
static void look_after(struct kl_conn *c)
{
    if (kl_send_listen(c) || kl_keepalive_check(c)) return;
    errno = ETIMEDOUT;
    kl_conn_lost(c, KL_FLOW_LOST);
}

void kl_send_work(struct kl_conn *c)
{
    if (c->failed) return;
    enum kl_flow flow = send_first_lane(c);
    bool blocked = flow == KL_FLOW_BLOCKED;
    if (!flow || blocked) flow = kl_stripe_progress(c);
    if (flow)
        end(c, flow);
    else if (blocked || lanes_wait(c))
        look_after(c);
}

ncclResult_t kl_send_post(struct kl_conn *c, const void *data, size_t bytes, int tag, struct kl_request **request)
{
    struct kl_request *r = NULL;

    *request = NULL;
    if (c->failed) return kl_conn_report(c);
    if (bytes > KL_HEAD_MAX_BYTES)
        return KL_FAIL(ncclInvalidArgument, "a message to rank %d has %zu bytes; 2^40 is the most", c->peer, bytes);
    if (!(r = kl_conn_take(c))) {
        kl_send_work(c);
        return kl_conn_report(c);
    }
    r->n = 1;
    r->message[0] = (struct kl_request_message){.data = (void *)(uintptr_t)data, .bytes = bytes, .tag = (uint32_t)tag};
    r->striped = kl_stripe_wanted(c, bytes);
    kl_store_relaxed(&r->left, 1);
    kl_conn_append(c, r);
    if (r->striped) KL_TRY(kl_stripe_put(c, r, r->message[0].data, bytes));
    if (bytes > KL_STREAM_SMALL) kl_send_work(c); /* a small one waits for further messages, or for test */
    *request = r;
    return ncclSuccess;
}
