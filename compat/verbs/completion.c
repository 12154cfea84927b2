/* SPDX-License-Identifier: Apache-2.0 */
/* Completions go into their queue, and wake sleepers. */
#include "compat/verbs/standin.h"

#include <stdio.h>
#include <unistd.h>

static void notify(struct vs_cq *q)
{
    struct kl_ibv_cq *self = &q->ib;

    q->armed = false;
    if (write(((struct vs_channel *)q->ib.channel)->in, &self, sizeof(void *)) != sizeof(void *))
        fprintf(stderr, "libibverbs (Kolo's stand-in): a wake-up is lost\n");
}

void vs_cq_push(struct kl_ibv_cq *cq, const struct kl_ibv_wc *wc)
{
    struct vs_cq *q = (struct vs_cq *)cq;

    if (q->tail - q->head == (unsigned)cq->cqe) {
        vs_device_event(cq->context, KL_IBV_EVENT_CQ_ERR, cq);
        return;
    }
    q->wc[q->tail++ % (unsigned)cq->cqe] = *wc;
    if (q->armed) notify(q);
}
