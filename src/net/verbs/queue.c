/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/queue.h"

#include "net/verbs/reason.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
    INLINE_BYTES = 220, /* a slot of a usual line; fewer where the device has not so many */
    RNR_TIMER = 12,     /* 0.64 ms; 0 would be 655 ms */
    RNR_RETRIES = 3,    /* none is needed: a receive request is always posted */
    HOPS = 255,
    NUMBER_MASK = 0xffffff,
    SIGNAL_EVERY = 16,
};

/* ---- creation ---- */

static ncclResult_t lacks(const struct kl_verbs_link *l, const char *thing, int err)
{
    char hint[256], reason[128];

    return KL_FAIL(ncclSystemError, "rank %d: %s cannot create %s for rank %d: %s%s", l->rank, l->device->name, thing,
                   l->peer, strerror_r(err, reason, sizeof reason), kl_verbs_memlock_hint(err, hint, sizeof hint));
}

static bool post_recvs(struct kl_verbs_link *l, int queue, int n)
{
    struct kl_ibv_qp *qp = l->queue[queue].qp;
    struct kl_ibv_recv_wr wr = {.wr_id = kl_verbs_wr_id_encode(KL_VERBS_WR_RECV, queue, 0)}, *bad;
    int err = 0;

    for (int i = 0; i < n && !err; i++) err = qp->context->post_recv(qp, &wr, &bad);
    return !err;
}

/* Cards differ in the inline data that they take: ask for less until it is accepted. */
static int create_pair(const struct kl_verbs_link *l, struct kl_verbs_queue *q)
{
    int err = 0;

    for (uint32_t bytes = INLINE_BYTES;; bytes /= 2) {
        struct kl_ibv_qp_init_attr init = {.send_cq = l->cq,
                                           .recv_cq = l->cq,
                                           .cap = {.max_send_wr = KL_VERBS_SQ + 1, /* and one when it ends */
                                                   .max_recv_wr = KL_VERBS_RQ,
                                                   .max_send_sge = 1,
                                                   .max_recv_sge = 1,
                                                   .max_inline_data = bytes},
                                           .qp_type = KL_IBV_QPT_RC};
        q->qp = kl_verbs()->create_qp(l->device->card->pd, &init);
        if (q->qp) q->inline_bytes = init.cap.max_inline_data;
        if (!q->qp) err = errno;
        if (q->qp || !bytes || err != EINVAL) return q->qp ? 0 : err;
    }
}

static int initialise(const struct kl_verbs_link *l, struct kl_ibv_qp *qp)
{
    struct kl_ibv_qp_attr attr = {.qp_state = KL_IBV_QPS_INIT,
                                  .pkey_index = (uint16_t)kl_verbs_settings()->pkey,
                                  .port_num = l->device->port,
                                  .access_flags = KL_IBV_REMOTE_WRITE};

    return kl_verbs()->modify_qp(qp, &attr, KL_IBV_QP_STATE | KL_IBV_QP_ACCESS | KL_IBV_QP_PKEY | KL_IBV_QP_PORT);
}

static ncclResult_t create_queue(struct kl_verbs_link *l, int i)
{
    struct kl_verbs_queue *q = &l->queue[i];
    int err = create_pair(l, q);

    if (err) return lacks(l, "a queue pair", err);
    l->nqueues = i + 1;
    err = initialise(l, q->qp);
    if (err) return lacks(l, "a queue pair (to INIT)", err);
    if (!post_recvs(l, i, KL_VERBS_RQ)) return lacks(l, "receive requests", ENOMEM);
    l->mine.qpn[i] = q->qp->qp_num;
    kl_key_random(&l->mine.psn[i], sizeof l->mine.psn[i]);
    l->mine.psn[i] &= NUMBER_MASK;
    return ncclSuccess;
}

static ncclResult_t create_completions(struct kl_verbs_link *l, int n)
{
    const struct kl_verbs_library *v = kl_verbs();
    struct kl_ibv_context *context = l->device->card->context;

    l->channel = v->create_comp_channel(context);
    if (!l->channel) return lacks(l, "a completion channel", errno);
    int flags = fcntl(l->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(l->channel->fd, F_SETFL, flags | O_NONBLOCK)) return lacks(l, "a channel", errno);
    l->cq = v->create_cq(context, n * (KL_VERBS_SQ + 1 + KL_VERBS_RQ), NULL, l->channel, 0);
    return l->cq ? ncclSuccess : lacks(l, "a completion queue", errno);
}

ncclResult_t kl_verbs_queues_create(struct kl_verbs_link *l, int n)
{
    const struct kl_verbs_device *d = l->device;
    void *rings = NULL;

    KL_TRY(kl_verbs_memory_map(d, sizeof *l->rings, &rings, &l->mr));
    l->rings = rings;
    KL_TRY(create_completions(l, n));
    for (int i = 0; i < n; i++) KL_TRY(create_queue(l, i));
    l->mine.link_layer = d->attr.link_layer;
    l->mine.mtu = (uint8_t)d->attr.active_mtu;
    l->mine.port = d->port;
    l->mine.qps = (uint8_t)n;
    l->mine.lid = d->attr.lid;
    l->mine.memory = (uint64_t)(uintptr_t)l->rings;
    l->mine.rkey = l->mr->rkey;
    l->mine.max_message = d->attr.max_msg_sz;
    snprintf(l->mine.device, sizeof l->mine.device, "%s", d->name);
    return ncclSuccess;
}

/* ---- connecting ---- */

static bool needs_route(const struct kl_verbs_link *l)
{
    const struct kl_verbs_conn_params *a = &l->mine, *b = &l->theirs;

    return a->link_layer == KL_IBV_LINK_ETHERNET || a->gid.half[0] != b->gid.half[0] ||
           (l->device->attr.flags & KL_IBV_PORT_NEEDS_GRH);
}

static struct kl_ibv_ah_attr path_of(const struct kl_verbs_link *l)
{
    const struct kl_verbs_params *p = kl_verbs_settings();
    int class = p->traffic_class < 0 ? 0 : (int)p->traffic_class;
    int level = p->service_level >= 0 ? (int)p->service_level : class & 0xf;

    return (struct kl_ibv_ah_attr){.dgid = l->theirs.gid,
                                   .sgid_index = (uint8_t)l->gid.index,
                                   .hop_limit = HOPS,
                                   .traffic_class = (uint8_t) class,
                                   .dlid = l->theirs.lid,
                                   .sl = (uint8_t)level,
                                   .is_global = needs_route(l),
                                   .port_num = l->device->port};
}

static int to_receive(const struct kl_verbs_link *l, int i)
{
    struct kl_ibv_qp_attr attr = {.qp_state = KL_IBV_QPS_RTR,
                                  .path_mtu = l->mine.mtu < l->theirs.mtu ? l->mine.mtu : l->theirs.mtu,
                                  .rq_psn = l->theirs.psn[i],
                                  .dest_qp_num = l->theirs.qpn[i],
                                  .ah = path_of(l),
                                  .max_dest_rd_atomic = 1,
                                  .min_rnr_timer = RNR_TIMER};

    return kl_verbs()->modify_qp(l->queue[i].qp, &attr,
                                 KL_IBV_QP_STATE | KL_IBV_QP_AV | KL_IBV_QP_MTU | KL_IBV_QP_RQ_PSN | KL_IBV_QP_MIN_RNR |
                                     KL_IBV_QP_MAX_DEST_RD | KL_IBV_QP_DEST_QPN);
}

static int to_send(const struct kl_verbs_link *l, int i)
{
    const struct kl_verbs_params *p = kl_verbs_settings();
    struct kl_ibv_qp_attr attr = {.qp_state = KL_IBV_QPS_RTS,
                                  .timeout = (uint8_t)p->timeout,
                                  .retry_cnt = (uint8_t)p->retry_count,
                                  .rnr_retry = RNR_RETRIES,
                                  .sq_psn = l->mine.psn[i],
                                  .max_rd_atomic = 1};

    return kl_verbs()->modify_qp(l->queue[i].qp, &attr,
                                 KL_IBV_QP_STATE | KL_IBV_QP_TIMEOUT | KL_IBV_QP_RETRY | KL_IBV_QP_RNR |
                                     KL_IBV_QP_MAX_RD | KL_IBV_QP_SQ_PSN);
}

static ncclResult_t cannot_connect(const struct kl_verbs_link *l, const char *state, int err)
{
    char mine[KL_VERBS_GID_TEXT], theirs[KL_VERBS_GID_TEXT], reason[128];
    const struct kl_verbs_gid far = {
        .gid = l->theirs.gid, .index = l->theirs.gid_index, .version = l->theirs.gid_version};

    return KL_FAIL(
        ncclSystemError,
        "rank %d cannot connect %s port %d with rank %d at %s, %s port %d (to %s: %s); GID %s to %s; likely: "
        "%s",
        l->rank, l->device->name, l->device->port, l->peer, l->where, l->theirs.device, l->theirs.port, state,
        strerror_r(err, reason, sizeof reason), kl_verbs_gid_format(&l->gid, mine), kl_verbs_gid_format(&far, theirs),
        kl_verbs_connect_cause(err));
}

static ncclResult_t check_layers(const struct kl_verbs_link *l)
{
    static const char *const layers[] = {"", "InfiniBand", "RoCE"};

    if (l->mine.link_layer == l->theirs.link_layer) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "rank %d uses %s, which is %s, and rank %d at %s %s, which is %s: they do not reach each other; "
                   "select ports of one network with NCCL_IB_HCA",
                   l->rank, l->device->name, layers[l->mine.link_layer], l->peer, l->where, l->theirs.device,
                   layers[l->theirs.link_layer]);
}

ncclResult_t kl_verbs_queues_connect(struct kl_verbs_link *l)
{
    KL_TRY(check_layers(l));
    if (l->theirs.qps < l->nqueues) l->nqueues = l->theirs.qps;
    for (int i = 0; i < l->nqueues; i++) {
        int err = to_receive(l, i);
        if (err) return cannot_connect(l, "RTR", err);
        err = to_send(l, i);
        if (err) return cannot_connect(l, "RTS", err);
    }
    return ncclSuccess;
}

/* ---- posting ---- */

bool kl_verbs_queue_write(struct kl_verbs_link *l, int queue, const struct kl_verbs_write *w)
{
    struct kl_verbs_queue *q = &l->queue[queue];
    struct kl_ibv_sge sge = {.addr = (uint64_t)(uintptr_t)w->data, .length = (uint32_t)w->bytes, .lkey = w->lkey};
    struct kl_ibv_send_wr wr = {.wr_id = kl_verbs_wr_id_encode(KL_VERBS_WR_SEND, queue, q->posted),
                                .sg_list = &sge,
                                .num_sge = w->bytes ? 1 : 0,
                                .opcode = w->opcode,
                                .imm = htonl(w->imm),
                                .remote_addr = w->to,
                                .rkey = w->rkey},
                          *bad;

    if (l->failed || q->posted - q->done == KL_VERBS_SQ) return false;
    if (w->signals || q->posted % SIGNAL_EVERY == SIGNAL_EVERY - 1) wr.send_flags |= KL_IBV_SEND_SIGNALED;
    if (w->bytes && w->bytes <= q->inline_bytes && !w->of_gpu) wr.send_flags |= KL_IBV_SEND_INLINE;
    int err = q->qp->context->post_send(q->qp, &wr, &bad);
    if (err) {
        kl_verbs_fail(l, ncclSystemError,
                      "rank %d cannot send to rank %d at %s: %s refuses a request of %zu bytes (%d)", l->rank, l->peer,
                      l->where, l->device->name, w->bytes, err);
        return false;
    }
    q->wr[q->posted++ % KL_VERBS_SQ] = w->what;
    return true;
}

void kl_verbs_queue_refill(struct kl_verbs_link *l, int queue)
{
    struct kl_verbs_queue *q = &l->queue[queue];

    if (q->spent < KL_VERBS_RQ_BATCH || l->failed) return;
    bool right = post_recvs(l, queue, (int)q->spent);
    q->spent = 0;
    if (!right)
        kl_verbs_fail(l, ncclSystemError, "rank %d cannot receive from rank %d at %s: %s refuses receive requests",
                      l->rank, l->peer, l->where, l->device->name);
}
