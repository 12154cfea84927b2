/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking messages: outgoing ones are queued, incoming ones polled. Also beside an exchange of another thread.
 * Packets are queued alike; those that arrive go to the owner at once. */
#include "base/error.h"
#include "bootstrap/failure.h"
#include "bootstrap/inbox.h"
#include "bootstrap/link.h"
#include "bootstrap/peer_connect.h"

#include <stdlib.h>
#include <string.h>

static bool has_left(const struct kl_bootstrap *b, int peer)
{
    const struct kl_contact *contact = kl_contact_find(b, peer);

    return contact && contact->state == KL_LINK_LEFT;
}

static ncclResult_t post_locked(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, const void *data)
{
    struct kl_contact *to;

    KL_TRY(kl_state_check(b));
    if (peer == b->rank) return kl_inbox_put_own(b, head, data);
    KL_TRY(kl_contact_make(b, peer, &to));
    if (to->state == KL_LINK_LEFT || to->state == KL_LINK_LOST) return kl_link_ended(to);
    if (!kl_link_post(to, head, data)) return KL_NOMEM("a message");
    return kl_peer_connect_begin(to);
}

ncclResult_t kl_bootstrap_post(struct kl_bootstrap *b, int peer, uint32_t tag, const void *data, size_t bytes)
{
    struct kl_frame_head head = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    KL_TRY(kl_state_check_message(b, peer, bytes));
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = post_locked(b, peer, &head, data);
    bool left = has_left(b, peer);
    pthread_mutex_unlock(&b->lock);
    return left ? rc : kl_failure_report_result(b, peer, rc);
}

/* Gives `body` away. */
static ncclResult_t packet_send_locked(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, void *body)
{
    struct kl_contact *to = NULL;
    ncclResult_t rc = kl_state_check(b);

    if (!rc) rc = kl_contact_make(b, peer, &to);
    if (!rc && (to->state == KL_LINK_LEFT || to->state == KL_LINK_LOST)) rc = kl_link_ended(to);
    if (rc) {
        free(body);
        return rc;
    }
    if (!kl_link_post_owned(to, head, body)) return KL_NOMEM("a packet");
    return kl_peer_connect_begin(to);
}

ncclResult_t kl_bootstrap_packet_send(struct kl_bootstrap *b, int peer, const void *first, size_t first_bytes,
                                      const void *data, size_t bytes)
{
    struct kl_frame_head head = {.type = KL_FRAME_PACKET, .length = (uint32_t)(first_bytes + bytes)};

    KL_TRY(kl_state_check_message(b, peer, first_bytes + bytes));
    if (peer == b->rank) return KL_FAIL(ncclInternalError, "rank %d sends a packet to itself", peer);
    unsigned char *body = malloc(first_bytes + bytes + 1);
    if (!body) return KL_NOMEM("a packet");
    memcpy(body, first, first_bytes);
    if (bytes) memcpy(body + first_bytes, data, bytes);
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = packet_send_locked(b, peer, &head, body);
    bool left = has_left(b, peer);
    pthread_mutex_unlock(&b->lock);
    return left ? rc : kl_failure_report_result(b, peer, rc);
}

static ncclResult_t poll_locked(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, void *data,
                                bool *here)
{
    struct kl_contact *from = kl_contact_find(b, peer);

    KL_TRY(kl_state_check(b));
    if (!from) return ncclSuccess;
    ncclResult_t rc = kl_inbox_take(from, head, data, here);
    if (*here) {
        from->polled = false;
        kl_link_resume_all(b);
    } else if (from->paused) { /* the wanted message may be behind those that filled the inbox */
        from->polled = true;
        kl_link_resume(from);
    }
    return rc;
}

/* True: no event that a poll has to handle. */
static bool silent(const struct kl_bootstrap *b, int peer)
{
    const struct kl_contact *from = kl_contact_find(b, peer);

    return (!from || !kl_load_acquire(&from->arrived)) && !kl_load_acquire(&b->over);
}

ncclResult_t kl_bootstrap_poll(struct kl_bootstrap *b, int peer, uint32_t tag, void *data, size_t bytes, bool *here)
{
    struct kl_frame_head head = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    *here = false;
    KL_TRY(kl_state_check_message(b, peer, bytes));
    if (silent(b, peer)) return ncclSuccess;
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = poll_locked(b, peer, &head, data, here);
    bool left = has_left(b, peer);
    pthread_mutex_unlock(&b->lock);
    if (rc) *here = false;
    return left ? rc : kl_failure_report_result(b, peer, rc);
}

bool kl_bootstrap_has_left(struct kl_bootstrap *b, int peer)
{
    pthread_mutex_lock(&b->lock);
    bool left = has_left(b, peer);
    pthread_mutex_unlock(&b->lock);
    return left;
}

/* A peer that has left may have posted all messages before: polls find out. */
static ncclResult_t watch_locked(struct kl_bootstrap *b, int peer)
{
    struct kl_contact *contact;

    KL_TRY(kl_state_check(b));
    KL_TRY(kl_contact_make(b, peer, &contact));
    if (contact->state == KL_LINK_LEFT || contact->state == KL_LINK_LOST) return ncclSuccess;
    return kl_peer_connect_begin(contact);
}

ncclResult_t kl_bootstrap_watch(struct kl_bootstrap *b, int peer)
{
    KL_TRY(kl_state_check_message(b, peer, 0));
    if (peer == b->rank) return ncclSuccess;
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = watch_locked(b, peer);
    pthread_mutex_unlock(&b->lock);
    return kl_failure_report_result(b, peer, rc);
}

void kl_bootstrap_on_message(struct kl_bootstrap *b, void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&b->lock);
    b->on_message = fn;
    b->on_message_ctx = ctx;
    pthread_mutex_unlock(&b->lock);
}
