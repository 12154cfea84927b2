/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues and channels of the stand-in. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int vs_poll_cq(struct kl_ibv_cq *cq, int n, struct kl_ibv_wc *wc);
int vs_req_notify_cq(struct kl_ibv_cq *cq, int solicited_only);

/* ---- channels ---- */

VS_EXPORT struct kl_ibv_comp_channel *ibv_create_comp_channel(struct kl_ibv_context *context);
VS_EXPORT struct kl_ibv_comp_channel *ibv_create_comp_channel(struct kl_ibv_context *context)
{
    struct vs_channel *c = calloc(1, sizeof *c);
    int fds[2];

    if (!c || pipe2(fds, O_CLOEXEC)) {
        free(c);
        return NULL;
    }
    c->ib = (struct kl_ibv_comp_channel){.context = context, .fd = fds[0]};
    c->in = fds[1];
    return &c->ib;
}

VS_EXPORT int ibv_destroy_comp_channel(struct kl_ibv_comp_channel *channel);
VS_EXPORT int ibv_destroy_comp_channel(struct kl_ibv_comp_channel *channel)
{
    struct vs_channel *c = (struct vs_channel *)channel;

    if (channel->refcnt) return EBUSY;
    close(channel->fd);
    close(c->in);
    free(c);
    return 0;
}

/* ---- queues ---- */

VS_EXPORT struct kl_ibv_cq *ibv_create_cq(struct kl_ibv_context *context, int cqe, void *cq_context,
                                          struct kl_ibv_comp_channel *channel, int vector);
VS_EXPORT struct kl_ibv_cq *ibv_create_cq(struct kl_ibv_context *context, int cqe, void *cq_context,
                                          struct kl_ibv_comp_channel *channel, int vector)
{
    struct vs_cq *q = calloc(1, sizeof *q);
    struct kl_ibv_wc *wc = calloc((size_t)cqe, sizeof *wc);

    (void)vector;
    vs_enter();
    int error = q && wc ? vs_fault("create_cq") : ENOMEM;
    if (!error && channel) channel->refcnt++;
    vs_leave();
    if (error) {
        free(q);
        free(wc);
        errno = error;
        return NULL;
    }
    q->ib = (struct kl_ibv_cq){.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
    q->wc = wc;
    return &q->ib;
}

/* The real one waits for ever where events were not acknowledged. */
VS_EXPORT int ibv_destroy_cq(struct kl_ibv_cq *cq);
VS_EXPORT int ibv_destroy_cq(struct kl_ibv_cq *cq)
{
    struct vs_cq *q = (struct vs_cq *)cq;

    if (q->events != q->acked) {
        fprintf(stderr, "libibverbs (Kolo's stand-in): %u events of a queue were not acknowledged\n",
                q->events - q->acked);
        return EBUSY;
    }
    if (cq->channel) cq->channel->refcnt--;
    free(q->wc);
    free(q);
    return 0;
}

/* Do several threads poll? Then one that finds nothing lets the others have the lock. */
static bool others_poll(void)
{
    enum { A_WHILE = 64 };
    static pthread_t last;
    static int left;

    if (!pthread_equal(last, pthread_self())) left = A_WHILE;
    last = pthread_self();
    return left && left--;
}

int vs_poll_cq(struct kl_ibv_cq *cq, int n, struct kl_ibv_wc *wc)
{
    struct vs_cq *q = (struct vs_cq *)cq;
    int got = 0;

    /* The program plays the NIC itself where it polls: where cores are few, the thread would come late. */
    vs_enter();
    if (q->head == q->tail) vs_engine_help(cq);
    while (got < n && q->head != q->tail) wc[got++] = q->wc[q->head++ % (unsigned)cq->cqe];
    bool yields = others_poll() && !got;
    vs_leave();
    if (yields) sched_yield();
    return got;
}

int vs_req_notify_cq(struct kl_ibv_cq *cq, int solicited_only)
{
    struct vs_cq *q = (struct vs_cq *)cq;

    (void)solicited_only;
    vs_enter();
    q->armed = true;
    vs_leave();
    return 0;
}

VS_EXPORT int ibv_get_cq_event(struct kl_ibv_comp_channel *channel, struct kl_ibv_cq **cq, void **cq_context);
VS_EXPORT int ibv_get_cq_event(struct kl_ibv_comp_channel *channel, struct kl_ibv_cq **cq, void **cq_context)
{
    struct kl_ibv_cq *of;

    if (read(channel->fd, &of, sizeof(void *)) != sizeof(void *)) return -1;
    vs_enter();
    ((struct vs_cq *)of)->events++;
    vs_leave();
    *cq = of;
    *cq_context = of->cq_context;
    return 0;
}

VS_EXPORT void ibv_ack_cq_events(struct kl_ibv_cq *cq, unsigned n);
VS_EXPORT void ibv_ack_cq_events(struct kl_ibv_cq *cq, unsigned n)
{
    vs_enter();
    ((struct vs_cq *)cq)->acked += n;
    vs_leave();
}
