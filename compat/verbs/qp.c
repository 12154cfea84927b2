/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs of the stand-in, their states and queues. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WR = 16384 };

int vs_post_send(struct kl_ibv_qp *qp, struct kl_ibv_send_wr *wr, struct kl_ibv_send_wr **bad);
int vs_post_recv(struct kl_ibv_qp *qp, struct kl_ibv_recv_wr *wr, struct kl_ibv_recv_wr **bad);

/* ---- life ---- */

static void free_qp(struct vs_qp *q)
{
    free(q->sq);
    free(q->rq);
    free(q);
}

static int check_init(const struct kl_ibv_qp_init_attr *attr)
{
    const struct kl_ibv_qp_cap *cap = &attr->cap;
    bool fits = cap->max_send_wr <= MAX_WR && cap->max_recv_wr <= MAX_WR && cap->max_send_sge <= 1 &&
                cap->max_recv_sge <= 1 && (int)cap->max_inline_data <= vs_settings()->inline_bytes;

    return attr->qp_type == KL_IBV_QPT_RC && attr->send_cq && attr->recv_cq && fits ? 0 : EINVAL;
}

static int fill(struct vs_qp *q, struct kl_ibv_pd *pd, struct kl_ibv_qp_init_attr *attr)
{
    int error = check_init(attr);

    if (!error) error = vs_fault("create_qp");
    if (error) return error;
    attr->cap.max_inline_data = (uint32_t)vs_settings()->inline_bytes;
    q->ib = (struct kl_ibv_qp){.context = pd->context,
                               .qp_context = attr->qp_context,
                               .pd = pd,
                               .send_cq = attr->send_cq,
                               .recv_cq = attr->recv_cq,
                               .qp_type = attr->qp_type};
    q->cap = attr->cap;
    q->signal_all = attr->sq_sig_all != 0;
    q->out.fd = -1;
    q->sq = calloc(attr->cap.max_send_wr + 1, sizeof *q->sq);
    q->rq = calloc(attr->cap.max_recv_wr + 1, sizeof *q->rq);
    return q->sq && q->rq ? vs_engine_add(q) : ENOMEM;
}

VS_EXPORT struct kl_ibv_qp *ibv_create_qp(struct kl_ibv_pd *pd, struct kl_ibv_qp_init_attr *attr);
VS_EXPORT struct kl_ibv_qp *ibv_create_qp(struct kl_ibv_pd *pd, struct kl_ibv_qp_init_attr *attr)
{
    struct vs_qp *q = calloc(1, sizeof *q);
    int error = ENOMEM;

    if (q) {
        vs_enter();
        error = fill(q, pd, attr);
        vs_leave();
    }
    if (!error) return &q->ib;
    if (q) free_qp(q);
    errno = error;
    return NULL;
}

VS_EXPORT int ibv_destroy_qp(struct kl_ibv_qp *qp);
VS_EXPORT int ibv_destroy_qp(struct kl_ibv_qp *qp)
{
    struct vs_qp *q = (struct vs_qp *)qp;

    vs_enter();
    vs_qp_leave_wires(q);
    vs_engine_remove(q);
    vs_leave();
    free_qp(q);
    return 0;
}

/* ---- states ---- */

enum {
    TO_INIT = KL_IBV_QP_STATE | KL_IBV_QP_ACCESS | KL_IBV_QP_PKEY | KL_IBV_QP_PORT,
    TO_RTR = KL_IBV_QP_STATE | KL_IBV_QP_AV | KL_IBV_QP_MTU | KL_IBV_QP_RQ_PSN | KL_IBV_QP_MIN_RNR |
             KL_IBV_QP_MAX_DEST_RD | KL_IBV_QP_DEST_QPN,
    TO_RTS =
        KL_IBV_QP_STATE | KL_IBV_QP_TIMEOUT | KL_IBV_QP_RETRY | KL_IBV_QP_RNR | KL_IBV_QP_MAX_RD | KL_IBV_QP_SQ_PSN,
};

static bool is_zero(const union kl_ibv_gid *gid)
{
    return !gid->half[0] && !gid->half[1];
}

static int to_init(struct vs_qp *q, const struct kl_ibv_qp_attr *attr)
{
    if (q->ib.state != KL_IBV_QPS_RESET || attr->port_num != 1) return EINVAL;
    q->attr.access_flags = attr->access_flags;
    return vs_fault("modify_init");
}

static int to_rtr(struct vs_qp *q, const struct kl_ibv_qp_attr *attr)
{
    unsigned access = q->attr.access_flags;
    union kl_ibv_gid mine;

    if (q->ib.state != KL_IBV_QPS_INIT || attr->path_mtu > vs_settings()->mtu || attr->path_mtu < 1) return EINVAL;
    if (attr->ah.is_global &&
        (ibv_query_gid(q->ib.context, 1, attr->ah.sgid_index, &mine) || is_zero(&mine) || is_zero(&attr->ah.dgid)))
        return EINVAL;
    if (!attr->ah.is_global && !vs_settings()->infiniband) return EINVAL;
    q->attr = *attr;
    q->attr.access_flags = access;
    return vs_fault("modify_rtr");
}

static int to_rts(struct vs_qp *q, const struct kl_ibv_qp_attr *attr)
{
    if (q->ib.state != KL_IBV_QPS_RTR) return EINVAL;
    q->attr.timeout = attr->timeout;
    q->attr.retry_cnt = attr->retry_cnt;
    q->attr.rnr_retry = attr->rnr_retry;
    q->attr.sq_psn = attr->sq_psn;
    return vs_fault("modify_rts");
}

static int modify(struct vs_qp *q, const struct kl_ibv_qp_attr *attr, int mask)
{
    int error = EINVAL;

    if (attr->qp_state == KL_IBV_QPS_ERR) {
        vs_qp_fail(q);
        return 0;
    }
    if (attr->qp_state == KL_IBV_QPS_INIT && mask == TO_INIT) error = to_init(q, attr);
    if (attr->qp_state == KL_IBV_QPS_RTR && mask == TO_RTR) error = to_rtr(q, attr);
    if (attr->qp_state == KL_IBV_QPS_RTS && mask == TO_RTS) error = to_rts(q, attr);
    if (!error) q->ib.state = attr->qp_state;
    return error;
}

VS_EXPORT int ibv_modify_qp(struct kl_ibv_qp *qp, struct kl_ibv_qp_attr *attr, int mask);
VS_EXPORT int ibv_modify_qp(struct kl_ibv_qp *qp, struct kl_ibv_qp_attr *attr, int mask)
{
    vs_enter();
    int error = modify((struct vs_qp *)qp, attr, mask);
    vs_leave();
    return error;
}

VS_EXPORT int ibv_query_qp(struct kl_ibv_qp *qp, struct kl_ibv_qp_attr *attr, int mask,
                           struct kl_ibv_qp_init_attr *init);
VS_EXPORT int ibv_query_qp(struct kl_ibv_qp *qp, struct kl_ibv_qp_attr *attr, int mask,
                           struct kl_ibv_qp_init_attr *init)
{
    struct vs_qp *q = (struct vs_qp *)qp;

    (void)mask;
    vs_enter();
    *attr = q->attr;
    attr->qp_state = q->ib.state;
    *init = (struct kl_ibv_qp_init_attr){.cap = q->cap, .qp_type = q->ib.qp_type};
    vs_leave();
    return 0;
}

/* ---- posting ---- */

static int take_send(struct vs_qp *q, const struct kl_ibv_send_wr *wr)
{
    struct vs_send *s = &q->sq[q->posted % q->cap.max_send_wr];
    bool is_inline = wr->send_flags & KL_IBV_SEND_INLINE;
    uint32_t bytes = wr->num_sge ? wr->sg_list->length : 0;

    if (q->ib.state < KL_IBV_QPS_RTS) return EINVAL;
    if (q->posted - q->acked == q->cap.max_send_wr) return ENOMEM;
    if (wr->num_sge > 1 || bytes > vs_settings()->max_msg) return EINVAL;
    if (is_inline && bytes > q->cap.max_inline_data) return EINVAL;
    s->id = wr->wr_id;
    s->opcode = wr->opcode;
    s->flags = wr->send_flags;
    s->imm = wr->imm;
    s->remote_addr = wr->remote_addr;
    s->rkey = wr->rkey;
    s->sge = wr->num_sge ? *wr->sg_list : (struct kl_ibv_sge){.length = 0};
    if (is_inline && bytes) memcpy(s->data, (const void *)(uintptr_t)wr->sg_list->addr, bytes);
    q->posted++;
    if (q->ib.state != KL_IBV_QPS_ERR) return 0;
    vs_qp_flush(q, q->ib.send_cq, s->id, KL_IBV_WC_RDMA_WRITE);
    q->acked++;
    return 0;
}

int vs_post_send(struct kl_ibv_qp *qp, struct kl_ibv_send_wr *wr, struct kl_ibv_send_wr **bad)
{
    struct vs_qp *q = (struct vs_qp *)qp;
    int error = 0;

    vs_enter();
    for (; wr && !error; wr = error ? wr : wr->next) error = take_send(q, wr);
    if (q->ib.state == KL_IBV_QPS_RTS) vs_requester_progress(q);
    vs_leave();
    if (error) *bad = wr;
    return error;
}

static int take_recv(struct vs_qp *q, const struct kl_ibv_recv_wr *wr)
{
    struct vs_recv *r = &q->rq[q->recv_posted % q->cap.max_recv_wr];

    if (q->recv_posted - q->recv_used == q->cap.max_recv_wr) return ENOMEM;
    if (wr->num_sge > 1) return EINVAL;
    *r = (struct vs_recv){.id = wr->wr_id};
    if (wr->num_sge) r->sge = *wr->sg_list;
    q->recv_posted++;
    if (q->ib.state != KL_IBV_QPS_ERR) return 0;
    vs_qp_flush(q, q->ib.recv_cq, r->id, KL_IBV_WC_RECV);
    q->recv_used++;
    return 0;
}

int vs_post_recv(struct kl_ibv_qp *qp, struct kl_ibv_recv_wr *wr, struct kl_ibv_recv_wr **bad)
{
    struct vs_qp *q = (struct vs_qp *)qp;
    int error = 0;

    vs_enter();
    for (; wr && !error; wr = error ? wr : wr->next) error = take_recv(q, wr);
    if (q->rnr_until) vs_engine_wake();
    vs_leave();
    if (error) *bad = wr;
    return error;
}
