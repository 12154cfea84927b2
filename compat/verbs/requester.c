/* SPDX-License-Identifier: Apache-2.0 */
/* The sending half of a queue pair: its requests go over a TCP connection of its own, each answered by a status. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { AGAIN_MS = 2, RNR_INFINITE = 7, PORT_SHIFT = 8 };

static struct vs_send *request(const struct vs_qp *q, uint64_t i)
{
    return &q->sq[i % q->cap.max_send_wr];
}

/* ---- completions ---- */

static void complete(struct vs_qp *q, int status)
{
    const struct vs_send *s = request(q, q->acked);
    struct kl_ibv_wc wc = {.wr_id = s->id,
                           .status = status,
                           .opcode = KL_IBV_WC_RDMA_WRITE,
                           .vendor_err = status == KL_IBV_WC_RETRY_EXC ? 129 : 0,
                           .byte_len = s->sge.length,
                           .qp_num = q->ib.qp_num};

    q->acked++;
    q->lost_at = 0;
    if (status || q->signal_all || (s->flags & KL_IBV_SEND_SIGNALED)) vs_cq_push(q->ib.send_cq, &wc);
    if (!status) return;
    vs_fault_count(q->ib.context->device, status);
    vs_qp_fail(q);
}

/* ---- connecting ---- */

static bool address_of(const struct vs_qp *q, struct sockaddr_in *to)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    const union kl_ibv_gid *gid = &q->attr.ah.dgid;

    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)(q->attr.dest_qp_num >> PORT_SHIFT))};
    to->sin_addr = vs_settings()->address; /* of InfiniBand: one host is all there is */
    if (!q->attr.ah.is_global) return true;
    memcpy(&to->sin_addr, gid->raw + 12, sizeof to->sin_addr);
    return !memcmp(gid->raw, mapped, sizeof mapped);
}

/* Nobody answers, or not any more: all unanswered requests are sent again after a pause. */
static void lose(struct vs_qp *q)
{
    if (q->out.fd >= 0) vs_wire_close(&q->out);
    q->sent = q->acked;
    q->part = q->answered = 0;
    q->connecting = q->greeted = false;
    if (q->acked == q->posted) return;
    if (!q->lost_at) q->lost_at = vs_now_ms();
    q->again_at = vs_now_ms() + AGAIN_MS;
}

static void begin_connect(struct vs_qp *q)
{
    struct sockaddr_in to;
    int one = 1;

    q->again_at = 0;
    bool reachable = address_of(q, &to);
    q->out.fd = reachable ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (q->out.fd < 0 || (connect(q->out.fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS)) {
        lose(q);
        return;
    }
    setsockopt(q->out.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    q->connecting = true;
    vs_wire_watch(&q->out, EPOLLOUT);
}

static bool is_connected(struct vs_qp *q)
{
    struct pollfd p = {.fd = q->out.fd, .events = POLLOUT};
    socklen_t size = sizeof(int);
    int error = 0;

    if (!q->connecting) return true;
    if (poll(&p, 1, 0) <= 0) return false;
    if (getsockopt(q->out.fd, SOL_SOCKET, SO_ERROR, &error, &size) || error) {
        lose(q);
        return false;
    }
    q->connecting = false;
    return true;
}

static void greet(struct vs_qp *q)
{
    const struct vs_hello hello = {
        .magic = VS_MAGIC, .to = q->attr.dest_qp_num, .from = q->ib.qp_num, .psn = q->attr.sq_psn};

    q->greeted = send(q->out.fd, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
    if (!q->greeted) lose(q);
}

/* ---- sending ---- */

static uint32_t rnr_ms(const struct vs_qp *q)
{
    return q->attr.rnr_retry == RNR_INFINITE ? UINT32_MAX : (uint32_t)q->attr.rnr_retry + 1;
}

static struct vs_request head_of(const struct vs_qp *q, const struct vs_send *s)
{
    return (struct vs_request){.opcode = (uint32_t)s->opcode,
                               .imm = s->imm,
                               .rkey = s->rkey,
                               .length = s->sge.length,
                               .remote_addr = s->remote_addr,
                               .rnr_ms = rnr_ms(q)};
}

/* The data of a request; NULL: its key does not allow it. */
static const unsigned char *data_of(const struct vs_qp *q, const struct vs_send *s)
{
    if (!s->sge.length || (s->flags & KL_IBV_SEND_INLINE)) return s->data;
    return vs_memory_at(q->ib.context, s->sge.lkey, s->sge.addr, s->sge.length, 0);
}

/* Send a piece of the current request. False: the socket takes no more, or it was the last. */
static bool send_piece(struct vs_qp *q)
{
    struct vs_send *s = request(q, q->sent);
    struct vs_request head = head_of(q, s);
    const unsigned char *data = data_of(q, s);
    int fault = !q->part ? vs_fault("send") : 0;
    size_t of_head = q->part < sizeof head ? sizeof head - q->part : 0, of_data = q->part + of_head - sizeof head;

    if (fault || !data) {
        if (q->sent > q->acked) return false; /* first those before it, as in reality */
        complete(q, fault ? fault : KL_IBV_WC_LOC_PROT);
        return false;
    }
    struct iovec part[2] = {{.iov_base = (char *)&head + sizeof head - of_head, .iov_len = of_head},
                            {.iov_base = (void *)(uintptr_t)(data + of_data), .iov_len = s->sge.length - of_data}};
    const struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
    ssize_t n = sendmsg(q->out.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
        if (errno != EAGAIN) lose(q);
        return false;
    }
    q->part += (size_t)n;
    if (q->part < sizeof head + s->sge.length) return true;
    q->part = 0;
    q->sent++;
    return q->sent < q->posted;
}

/* ---- answers ---- */

static void read_answers(struct vs_qp *q)
{
    while (q->out.fd >= 0 && q->ib.state == KL_IBV_QPS_RTS) {
        ssize_t n = recv(q->out.fd, (char *)&q->answer + q->answered, sizeof q->answer - q->answered, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            lose(q);
            return;
        }
        q->answered += (size_t)n;
        if (q->answered < sizeof q->answer) continue;
        q->answered = 0;
        complete(q, (int)q->answer);
    }
}

/* ---- both ---- */

/* Milliseconds that the hardware would go on trying; 0: for ever. */
static uint64_t retry_ms(const struct vs_qp *q)
{
    if (!q->attr.timeout) return 0;
    return (((uint64_t)4096 << q->attr.timeout) * (q->attr.retry_cnt + 1u)) / 1000000 + 1;
}

static bool is_given_up(const struct vs_qp *q)
{
    return q->lost_at && retry_ms(q) && vs_now_ms() >= q->lost_at + retry_ms(q);
}

void vs_requester_progress(struct vs_qp *q)
{
    if (q->ib.state != KL_IBV_QPS_RTS) return;
    if (q->out.fd >= 0 && !q->connecting) read_answers(q);
    if (q->ib.state != KL_IBV_QPS_RTS || q->acked == q->posted) return;
    if (is_given_up(q)) {
        complete(q, KL_IBV_WC_RETRY_EXC);
        return;
    }
    if (q->out.fd < 0 && vs_now_ms() >= q->again_at) begin_connect(q);
    if (q->out.fd < 0 || !is_connected(q)) return;
    if (!q->greeted) greet(q);
    if (!q->greeted) return;
    while (q->sent < q->posted && send_piece(q))
        ;
    if (q->out.fd >= 0) vs_wire_watch(&q->out, q->sent < q->posted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

int vs_requester_timer(const struct vs_qp *q)
{
    if (q->ib.state != KL_IBV_QPS_RTS || q->acked == q->posted || q->out.fd >= 0) return -1;
    return AGAIN_MS;
}
