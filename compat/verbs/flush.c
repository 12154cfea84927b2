/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a queue pair's work: its requests are flushed, its connections closed. */
#include "compat/verbs/standin.h"

#include <sys/socket.h>

void vs_qp_leave_wires(struct vs_qp *q)
{
    if (q->out.fd >= 0) vs_wire_close(&q->out);
    if (q->in) {
        shutdown(q->in->fd, SHUT_RDWR); /* the engine frees it */
        q->in->qp = NULL;
    }
    q->in = NULL;
}

void vs_qp_flush(const struct vs_qp *q, struct kl_ibv_cq *cq, uint64_t id, int opcode)
{
    vs_cq_push(cq,
               &(struct kl_ibv_wc){.wr_id = id, .status = KL_IBV_WC_FLUSHED, .opcode = opcode, .qp_num = q->ib.qp_num});
}

void vs_qp_fail(struct vs_qp *q)
{
    if (q->ib.state == KL_IBV_QPS_ERR) return;
    q->ib.state = KL_IBV_QPS_ERR;
    for (; q->acked < q->posted; q->acked++)
        vs_qp_flush(q, q->ib.send_cq, q->sq[q->acked % q->cap.max_send_wr].id, KL_IBV_WC_RDMA_WRITE);
    for (; q->recv_used < q->recv_posted; q->recv_used++)
        vs_qp_flush(q, q->ib.recv_cq, q->rq[q->recv_used % q->cap.max_recv_wr].id, KL_IBV_WC_RECV);
    vs_qp_leave_wires(q);
}
