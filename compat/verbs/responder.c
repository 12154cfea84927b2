/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving half of a queue pair: executes the requests that a TCP connection brings. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static bool close_wire(struct vs_wire *w)
{
    if (w->qp) {
        w->qp->in = NULL;
        w->qp->taken = 0;
    }
    vs_wire_close(w);
    free(w);
    return false;
}

/* Read until `bytes` are in `to`, of which `*have` are there. 1: they are; 0: not yet; -1: the connection has ended. */
static int read_into(struct vs_wire *w, void *to, size_t bytes, size_t *have)
{
    while (*have < bytes) {
        ssize_t n = recv(w->fd, (char *)to + *have, bytes - *have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? 0 : -1;
        if (!n) return -1;
        *have += (size_t)n;
    }
    return 1;
}

/* ---- the hello ---- */

static bool is_for(const struct vs_qp *q, const struct vs_hello *hello)
{
    bool ready = q && (q->ib.state == KL_IBV_QPS_RTR || q->ib.state == KL_IBV_QPS_RTS);

    return ready && !q->in && q->attr.dest_qp_num == hello->from && q->attr.rq_psn == hello->psn;
}

static int be_greeted(struct vs_wire *w)
{
    struct vs_hello hello;
    int got = read_into(w, w->head, sizeof hello, &w->have);

    if (got <= 0) return got;
    memcpy(&hello, w->head, sizeof hello);
    struct vs_qp *q = hello.magic == VS_MAGIC ? vs_wire_find(hello.to) : NULL;
    if (!is_for(q, &hello)) return -1;
    w->qp = q;
    w->have = 0;
    q->in = w;
    return 1;
}

/* ---- one request ---- */

static bool answer(struct vs_wire *w, uint32_t status)
{
    return send(w->fd, &status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof status;
}

/* Refuse a request: both queue pairs are in error afterwards. */
static int refuse(struct vs_wire *w, uint32_t status)
{
    struct vs_qp *q = w->qp;

    (void)answer(w, status);
    if (status == KL_IBV_WC_REM_ACCESS) vs_device_event(q->ib.context, KL_IBV_EVENT_QP_ACCESS_ERR, &q->ib);
    w->qp = NULL;
    q->in = NULL;
    vs_qp_fail(q);
    return -1;
}

static bool needs_recv(const struct vs_request *r)
{
    return r->opcode == KL_IBV_SEND || r->opcode == KL_IBV_WRITE_IMM;
}

/* Where the data go; NULL: they may not. */
static unsigned char *target_of(const struct vs_qp *q, const struct vs_request *r)
{
    const struct kl_ibv_sge *sge = &q->rq[q->recv_used % q->cap.max_recv_wr].sge;
    uint64_t to = r->opcode == KL_IBV_SEND ? sge->addr : r->remote_addr;
    uint32_t key = r->opcode == KL_IBV_SEND ? sge->lkey : r->rkey;
    int access = r->opcode == KL_IBV_SEND ? KL_IBV_LOCAL_WRITE : KL_IBV_REMOTE_WRITE;

    if (r->opcode == KL_IBV_SEND && r->length > sge->length) return NULL;
    if (r->opcode != KL_IBV_SEND && !(q->attr.access_flags & KL_IBV_REMOTE_WRITE)) return NULL;
    return vs_memory_at(q->ib.context, key, to, r->length, access);
}

static void complete(struct vs_qp *q, const struct vs_request *r)
{
    const struct vs_recv *recv = &q->rq[q->recv_used++ % q->cap.max_recv_wr];
    struct kl_ibv_wc wc = {.wr_id = recv->id,
                           .status = vs_fault("recv"),
                           .opcode = r->opcode == KL_IBV_SEND ? KL_IBV_WC_RECV : KL_IBV_WC_RECV_IMM,
                           .byte_len = r->length,
                           .imm = r->imm,
                           .qp_num = q->ib.qp_num,
                           .wc_flags = r->opcode == KL_IBV_SEND ? 0 : KL_IBV_WC_WITH_IMM};

    vs_cq_push(q->ib.recv_cq, &wc);
}

/* No receive request is posted: the sender tries again for some time. */
static int wait_for_recv(struct vs_wire *w, const struct vs_request *r)
{
    struct vs_qp *q = w->qp;

    if (!q->rnr_until) q->rnr_until = r->rnr_ms == UINT32_MAX ? UINT64_MAX : vs_now_ms() + r->rnr_ms;
    vs_wire_watch(w, 0);
    if (vs_now_ms() < q->rnr_until) return 0;
    (void)answer(w, KL_IBV_WC_RNR_RETRY_EXC);
    return -1;
}

static int execute(struct vs_wire *w)
{
    struct vs_qp *q = w->qp;
    struct vs_request r;
    int event = 0;

    memcpy(&r, w->head, sizeof r);
    if (needs_recv(&r) && q->recv_used == q->recv_posted) return wait_for_recv(w, &r);
    if (q->rnr_until) vs_wire_watch(w, EPOLLIN);
    q->rnr_until = 0;
    if (r.length) {
        unsigned char *to = target_of(q, &r);
        if (!to) return refuse(w, r.opcode == KL_IBV_SEND ? KL_IBV_WC_REM_INV_REQ : KL_IBV_WC_REM_ACCESS);
        int got = read_into(w, to, r.length, &q->taken);
        if (got <= 0) return got;
    }
    q->taken = w->have = 0;
    event = vs_fault("async");
    if (event) vs_device_event(q->ib.context, event, &q->ib);
    if (needs_recv(&r)) complete(q, &r);
    return answer(w, KL_IBV_WC_SUCCESS) ? 1 : -1;
}

bool vs_responder_progress(struct vs_wire *w)
{
    int got = 1;

    while (got > 0) {
        if (!w->qp)
            got = be_greeted(w);
        else {
            got = read_into(w, w->head, sizeof(struct vs_request), &w->have);
            if (got > 0) got = execute(w);
        }
    }
    return got < 0 ? close_wire(w) : true;
}

void vs_responder_timer(struct vs_qp *q)
{
    if (q->in && q->rnr_until && (q->recv_used < q->recv_posted || vs_now_ms() >= q->rnr_until))
        (void)vs_responder_progress(q->in);
}
