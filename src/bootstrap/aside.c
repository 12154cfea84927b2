/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages: sent over existing connections only, and dropped if the receiver has no handler. */
#include "bootstrap/link.h"

#include <stdlib.h>

enum { CLOGGED = 4096 }; /* queued frames at which a peer counts as stuck */

/* Under lock. */
static bool say(struct kl_contact *peer, const void *data, size_t bytes)
{
    struct kl_frame_head head = {.type = KL_FRAME_ASIDE, .length = (uint32_t)bytes};

    if (!peer || peer->state != KL_LINK_UP || peer->mute || kl_outbox_holds_more(&peer->out, CLOGGED)) return false;
    return kl_link_post(peer, &head, data);
}

bool kl_bootstrap_aside(struct kl_bootstrap *b, int peer, const void *data, size_t bytes)
{
    if (kl_state_inherited(b) || peer < 0 || peer >= b->nranks || bytes > KL_FRAME_MAX) return false;
    pthread_mutex_lock(&b->lock);
    bool said = say(kl_contact_find(b, peer), data, bytes);
    pthread_mutex_unlock(&b->lock);
    return said;
}

int kl_bootstrap_aside_all(struct kl_bootstrap *b, int except, const void *data, size_t bytes)
{
    int said = 0;

    if (kl_state_inherited(b) || bytes > KL_FRAME_MAX) return 0;
    pthread_mutex_lock(&b->lock);
    for (int peer = 0; peer < b->nranks; peer++)
        if (peer != except) said += say(kl_contact_find(b, peer), data, bytes);
    pthread_mutex_unlock(&b->lock);
    return said;
}
