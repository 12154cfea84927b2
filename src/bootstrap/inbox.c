/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/inbox.h"

#include "base/error.h"
#include "os/chaos.h"

#include <stdlib.h>
#include <string.h>

/* An empty frame takes memory, too. */
static size_t weight(const struct kl_frame *f)
{
    return sizeof *f + f->head.length;
}

void kl_inbox_put(struct kl_contact *peer, struct kl_frame *f)
{
    struct kl_bootstrap *b = peer->bootstrap;

    f->next = NULL;
    if (peer->last_in)
        peer->last_in->next = f;
    else
        peer->first_in = f;
    peer->last_in = f;
    b->inbox_bytes += weight(f);
    if (f->head.type == KL_FRAME_DATA) kl_fetch_add_acq_rel(&peer->arrived, 1);
    if (b->awaited == peer->rank) pthread_cond_broadcast(&b->changed);
    if (b->on_message) b->on_message(b->on_message_ctx);
}

ncclResult_t kl_inbox_put_own(struct kl_bootstrap *b, const struct kl_frame_head *head, const void *data)
{
    struct kl_contact *me;
    struct kl_frame *f;

    KL_TRY(kl_contact_make(b, b->rank, &me));
    f = kl_chaos_malloc(sizeof *f + head->length);
    if (!f) return KL_NOMEM("a message");
    f->head = *head;
    if (head->length) memcpy(f->body, data, head->length);
    kl_inbox_put(me, f);
    return ncclSuccess;
}

static struct kl_frame *take(struct kl_contact *peer, const struct kl_frame_head *head)
{
    struct kl_frame *before = NULL;

    for (struct kl_frame *f = peer->first_in; f; before = f, f = f->next) {
        if (f->head.type != head->type || f->head.tag != head->tag) continue;
        if (before)
            before->next = f->next;
        else
            peer->first_in = f->next;
        if (!f->next) peer->last_in = before;
        peer->bootstrap->inbox_bytes -= weight(f);
        if (f->head.type == KL_FRAME_DATA) kl_fetch_sub_acq_rel(&peer->arrived, 1);
        return f;
    }
    return NULL;
}

static ncclResult_t unpack(const struct kl_contact *peer, const struct kl_frame *f, uint32_t length, void *data)
{
    const struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    if (f->head.length != length)
        return KL_FAIL(ncclInternalError, "rank %d expected a message of %u bytes from %s in phase %s, and got %u",
                       b->rank, length, kl_who(b, peer->rank, who), b->phase, f->head.length);
    if (length) memcpy(data, f->body, length);
    return ncclSuccess;
}

static ncclResult_t nothing_will_come(const struct kl_contact *peer)
{
    const struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    return KL_FAIL(ncclRemoteError, "rank %d: %s has left without the message that phase %s waits for", b->rank,
                   kl_who(b, peer->rank, who), b->phase);
}

ncclResult_t kl_inbox_take(struct kl_contact *peer, const struct kl_frame_head *head, void *data, bool *here)
{
    struct kl_frame *f = take(peer, head);

    *here = f != NULL;
    if (!f) return peer->state == KL_LINK_LEFT ? nothing_will_come(peer) : ncclSuccess;
    ncclResult_t rc = unpack(peer, f, head->length, data);
    free(f);
    return rc;
}

void kl_inbox_fini(struct kl_contact *peer)
{
    for (struct kl_frame *f; (f = peer->first_in);) {
        peer->first_in = f->next;
        free(f);
    }
}
