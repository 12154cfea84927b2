/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without waiting: what goes out is queued, what comes in is looked for. Also beside an exchange of another thread. */
#include "bootstrap/state.h"

#include "base/atomic.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static ncclResult_t post_locked(struct kl_contact *peer, const struct kl_frame *frame, const void *data)
{
    struct kl_bootstrap *b = peer->bootstrap;

    KL_TRY(kl_bootstrap_check(b));
    if (peer->rank == b->rank) return kl_inbox_put_own(b, frame, data);
    if (peer->state == KL_LINK_LEFT || peer->state == KL_LINK_LOST) return kl_link_ended(peer);
    if (!kl_link_post(peer, frame, data)) return KL_NOMEM("a message");
    return kl_reach_begin(peer);
}

ncclResult_t kl_bootstrap_post(struct kl_bootstrap *b, int peer, uint32_t tag, const void *data, size_t bytes)
{
    struct kl_frame frame = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    KL_TRY(kl_exchange_check(b, peer, bytes));
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = post_locked(&b->peers[peer], &frame, data);
    pthread_mutex_unlock(&b->lock);
    return kl_exchange_settle(b, peer, rc);
}

static ncclResult_t poll_locked(struct kl_contact *peer, const struct kl_frame *frame, void *data, bool *here)
{
    KL_TRY(kl_bootstrap_check(peer->bootstrap));
    struct kl_message *m = kl_inbox_take(peer, frame->type, frame->tag);
    if (m) {
        ncclResult_t rc = kl_message_unpack(peer, m, frame->length, data);
        *here = !rc;
        return rc;
    }
    if (peer->state == KL_LINK_LEFT) return kl_inbox_ended(peer);
    if (peer->paused) { /* what is looked for may be behind what filled the inbox */
        peer->polled = true;
        kl_link_resume(peer);
    }
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_poll(struct kl_bootstrap *b, int peer, uint32_t tag, void *data, size_t bytes, bool *here)
{
    struct kl_frame frame = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    *here = false;
    KL_TRY(kl_exchange_check(b, peer, bytes));
    if (!kl_load_acquire(&b->peers[peer].arrived) && !kl_load_acquire(&b->over)) return ncclSuccess;
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = poll_locked(&b->peers[peer], &frame, data, here);
    pthread_mutex_unlock(&b->lock);
    return kl_exchange_settle(b, peer, rc);
}

/* One that has left may have posted before all that we need: polls find out. */
ncclResult_t kl_bootstrap_watch(struct kl_bootstrap *b, int peer)
{
    ncclResult_t rc = ncclSuccess;

    KL_TRY(kl_exchange_check(b, peer, 0));
    pthread_mutex_lock(&b->lock);
    if (peer != b->rank) rc = kl_bootstrap_check(b);
    if (peer != b->rank && !rc) rc = kl_reach_begin(&b->peers[peer]);
    pthread_mutex_unlock(&b->lock);
    return kl_exchange_settle(b, peer, rc);
}
