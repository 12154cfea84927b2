/* SPDX-License-Identifier: Apache-2.0 */
/* Receives without a message, and messages without a receive. */
#include "tagged/state.h"

static bool fits(int peer, int tag, int source, int its_tag)
{
    return (peer == KL_TAGGED_ANY || peer == source) && (tag == KL_TAGGED_ANY || tag == its_tag);
}

void kl_tagged_queue(struct kl_tagged *m, struct kl_tagged_request *r)
{
    r->next = NULL;
    r->queued = true;
    if (m->last)
        m->last->next = r;
    else
        m->first = r;
    m->last = r;
}

static struct kl_tagged_request *unlink_receive(struct kl_tagged *m, struct kl_tagged_request *before,
                                                struct kl_tagged_request *r)
{
    if (before)
        before->next = r->next;
    else
        m->first = r->next;
    if (m->last == r) m->last = before;
    r->queued = false;
    return r;
}

void kl_tagged_unqueue(struct kl_tagged *m, struct kl_tagged_request *receive)
{
    struct kl_tagged_request *before = NULL;

    for (struct kl_tagged_request *r = m->first; r; before = r, r = r->next)
        if (r == receive) {
            unlink_receive(m, before, r);
            return;
        }
}

struct kl_tagged_request *kl_tagged_take_receive(struct kl_tagged *m, int source, int tag)
{
    struct kl_tagged_request *before = NULL;

    for (struct kl_tagged_request *r = m->first; r; before = r, r = r->next)
        if (fits(r->peer, r->tag, source, tag)) return unlink_receive(m, before, r);
    return NULL;
}

void kl_tagged_queue_message(struct kl_tagged *m, struct kl_tagged_message *message)
{
    message->next = NULL;
    if (m->last_here)
        m->last_here->next = message;
    else
        m->first_here = message;
    m->last_here = message;
}

static struct kl_tagged_message *unlink_message(struct kl_tagged *m, struct kl_tagged_message *before,
                                                struct kl_tagged_message *message)
{
    if (before)
        before->next = message->next;
    else
        m->first_here = message->next;
    if (m->last_here == message) m->last_here = before;
    return message;
}

struct kl_tagged_message *kl_tagged_find_message(struct kl_tagged *m, int peer, int tag, bool take)
{
    struct kl_tagged_message *before = NULL;

    for (struct kl_tagged_message *a = m->first_here; a; before = a, a = a->next)
        if (fits(peer, tag, a->source, a->tag)) return take ? unlink_message(m, before, a) : a;
    return NULL;
}
