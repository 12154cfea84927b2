/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/link.h"

#include "base/clock.h"
#include "os/fault_inject.h"
#include "os/socket.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRAIN_MS = 200, POLL = 16 };

/* ---- lists ---- */

void kl_verbs_list_append(struct kl_verbs_list *list, struct kl_verbs_request *r)
{
    r->next = NULL;
    if (list->last)
        list->last->next = r;
    else
        list->first = r;
    list->last = r;
}

void kl_verbs_list_remove(struct kl_verbs_list *list, const struct kl_verbs_request *r)
{
    struct kl_verbs_request *before = NULL, **link = &list->first;

    while (*link != r) {
        before = *link;
        link = &before->next;
    }
    *link = r->next;
    if (list->last == r) list->last = before;
}

/* ---- stopping ---- */

static bool is_drained(const struct kl_verbs_link *l)
{
    for (int i = 0; i < l->nqueues; i++)
        if (l->queue[i].done < l->queue[i].posted) return false;
    return true;
}

/* Behind all other requests, so that its completion means that the device has done with them: in the error state it is flushed at once.
 * Requests without a signal that have succeeded never say so. */
static void post_mark(struct kl_verbs_queue *q, int queue)
{
    struct kl_ibv_send_wr wr = {.wr_id = kl_verbs_wr_id_encode(KL_VERBS_WR_SEND, queue, q->posted),
                                .opcode = KL_IBV_WRITE,
                                .send_flags = KL_IBV_SEND_SIGNALED},
                          *bad;

    if (q->done < q->posted && !q->qp->context->post_send(q->qp, &wr, &bad)) q->posted++;
}

static void drain(struct kl_verbs_link *l)
{
    uint64_t deadline = kl_deadline_in_ms(DRAIN_MS);
    struct kl_ibv_wc wc[POLL];

    while (!is_drained(l) && !kl_deadline_passed(deadline)) {
        int n = l->cq->context->poll_cq(l->cq, POLL, wc);
        for (int i = 0; i < n; i++) {
            struct kl_verbs_wr_id id = kl_verbs_wr_id(wc[i].wr_id);
            if (id.kind == KL_VERBS_WR_SEND && id.queue < l->nqueues) l->queue[id.queue].done = id.number + 1;
        }
    }
}

static void destroy_queues(struct kl_verbs_link *l)
{
    for (int i = 0; i < KL_VERBS_QPS_MAX; i++) {
        if (l->queue[i].qp) kl_verbs()->destroy_qp(l->queue[i].qp);
        l->queue[i].qp = NULL;
    }
}

/* Afterwards the device accesses no memory of the link or of its requests: they are complete, or its queue pairs are gone. */
static void stop_queues(struct kl_verbs_link *l)
{
    struct kl_ibv_qp_attr attr = {.qp_state = KL_IBV_QPS_ERR};

    for (int i = 0; i < l->nqueues; i++) (void)kl_verbs()->modify_qp(l->queue[i].qp, &attr, KL_IBV_QP_STATE);
    for (int i = 0; i < l->nqueues; i++) post_mark(&l->queue[i], i);
    if (l->cq) drain(l);
    if (!is_drained(l)) destroy_queues(l);
}

static void free_queues(struct kl_verbs_link *l)
{
    const struct kl_verbs_library *v = kl_verbs();

    destroy_queues(l);
    if (l->events) v->ack_cq_events(l->cq, l->events);
    if (l->cq) v->destroy_cq(l->cq);
    if (l->channel) v->destroy_comp_channel(l->channel);
}

/* ---- life ---- */

ncclResult_t kl_verbs_link_create(struct kl_verbs_device *d, const struct kl_net_end *me, enum kl_side side,
                                  struct kl_verbs_link **link)
{
    struct kl_verbs_link *l = kl_inject_calloc(1, sizeof *l);

    if (!l) return KL_NOMEM("an RDMA connection");
    l->device = d;
    l->rank = me->rank;
    l->peer = me->peer;
    l->id = me->id;
    l->side = side;
    l->fd = l->epoll = -1;
    for (int i = KL_NET_REQUESTS - 1; i >= 0; i--) {
        l->send[i].request.next = l->free_sends;
        l->free_sends = &l->send[i].request;
        l->recv[i].request.next = l->free_recvs;
        l->free_recvs = &l->recv[i].request;
    }
    *link = l;
    return ncclSuccess;
}

static void free_stage(struct kl_verbs_stage *s)
{
    kl_verbs_memory_unmap(s->data, (size_t)KL_VERBS_STAGES * KL_VERBS_STAGE_BYTES, s->mr);
}

void kl_verbs_link_free(struct kl_verbs_link *l)
{
    if (!l) return;
    if (!l->failed) stop_queues(l);
    free_queues(l);
    free_stage(&l->stage_out);
    free_stage(&l->stage_in);
    kl_verbs_memory_unmap(l->rings, sizeof *l->rings, l->mr);
    kl_socket_close(l->fd);
    if (l->epoll >= 0) close(l->epoll);
    kl_key_wipe(&l->key);
    free(l);
}

ncclResult_t kl_verbs_end_create(struct kl_verbs_link *l, bool sends, struct kl_verbs_end **end)
{
    struct kl_verbs_end *e = kl_inject_calloc(1, sizeof *e);

    if (!e) return KL_NOMEM("an RDMA connection");
    *e = (struct kl_verbs_end){.link = l, .sends = sends};
    if (l) *(sends ? &l->out : &l->in) = e;
    *end = e;
    return ncclSuccess;
}

int kl_verbs_stage_take(struct kl_verbs_link *l, struct kl_verbs_stage *s)
{
    void *data = NULL;

    if (!s->data) {
        ncclResult_t rc = kl_verbs_memory_map(l->device, (size_t)KL_VERBS_STAGES * KL_VERBS_STAGE_BYTES, &data, &s->mr);
        if (rc) {
            kl_verbs_fail(l, rc, "%s", kl_error_text());
            return -1;
        }
        s->data = data;
    }
    for (int i = 0; i < KL_VERBS_STAGES; i++) {
        if (s->used & 1u << i) continue;
        s->used |= 1u << i;
        return i;
    }
    return -1;
}

/* ---- failure ---- */

static void tell_failure(struct kl_verbs_link *l)
{
    struct kl_verbs_record r = {.type = KL_VERBS_FAILED};

    snprintf(r.reason, sizeof r.reason, "%.*s", (int)sizeof r.reason - 1, l->why);
    kl_verbs_link_tell(l, &r);
}

ncclResult_t kl_verbs_fail(struct kl_verbs_link *l, ncclResult_t code, const char *fmt, ...)
{
    char why[KL_ERROR_TEXT];
    va_list ap;

    if (l->failed) return l->failed;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    memcpy(l->why, why, sizeof why);
    l->failed = code;
    stop_queues(l);
    tell_failure(l);
    if (l->fd >= 0) shutdown(l->fd, SHUT_WR);
    return KL_FAIL(code, "%s", l->why);
}

ncclResult_t kl_verbs_report(const struct kl_verbs_link *l)
{
    if (l->failed) kl_error_adopt(l->why);
    return l->failed;
}

/* ---- records ---- */

void kl_verbs_link_tell(struct kl_verbs_link *l, const struct kl_verbs_record *record)
{
    unsigned char wire[KL_VERBS_RECORD];

    if (l->fd < 0) return;
    kl_verbs_record_encode(record, &l->key, l->side, l->records_out++, wire);
    (void)!send(l->fd, wire, sizeof wire, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool kl_verbs_link_receive(struct kl_verbs_link *l, struct kl_verbs_record *record, bool *ended)
{
    *ended = false;
    while (l->have < sizeof l->record) {
        ssize_t n = kl_inject_recv(l->fd, l->record + l->have, sizeof l->record - l->have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            *ended = !n || (errno != EAGAIN && errno != EWOULDBLOCK);
            return false;
        }
        l->have += (size_t)n;
    }
    l->have = 0;
    enum kl_side other = l->side == KL_CALLER ? KL_HOST : KL_CALLER;
    *ended = !kl_verbs_record_decode(l->record, &l->key, other, l->records_in++, record);
    return !*ended;
}
