/* SPDX-License-Identifier: Apache-2.0 */
/* Receives without a message, and messages without a receive. */
#include "mail/state.h"

static bool fits(int peer, int tag, int source, int its_tag)
{
    return (peer == KL_MAIL_ANY || peer == source) && (tag == KL_MAIL_ANY || tag == its_tag);
}

void kl_mail_queue(struct kl_mail *m, struct kl_mail_request *r)
{
    r->next = NULL;
    r->queued = true;
    if (m->last)
        m->last->next = r;
    else
        m->first = r;
    m->last = r;
}

static struct kl_mail_request *unlink_receive(struct kl_mail *m, struct kl_mail_request *before,
                                              struct kl_mail_request *r)
{
    if (before)
        before->next = r->next;
    else
        m->first = r->next;
    if (m->last == r) m->last = before;
    r->queued = false;
    return r;
}

void kl_mail_unqueue(struct kl_mail *m, struct kl_mail_request *receive)
{
    struct kl_mail_request *before = NULL;

    for (struct kl_mail_request *r = m->first; r; before = r, r = r->next)
        if (r == receive) {
            unlink_receive(m, before, r);
            return;
        }
}

struct kl_mail_request *kl_mail_take_receive(struct kl_mail *m, int source, int tag)
{
    struct kl_mail_request *before = NULL;

    for (struct kl_mail_request *r = m->first; r; before = r, r = r->next)
        if (fits(r->peer, r->tag, source, tag)) return unlink_receive(m, before, r);
    return NULL;
}

void kl_mail_queue_message(struct kl_mail *m, struct kl_mail_message *message)
{
    message->next = NULL;
    if (m->last_here)
        m->last_here->next = message;
    else
        m->first_here = message;
    m->last_here = message;
}

static struct kl_mail_message *unlink_message(struct kl_mail *m, struct kl_mail_message *before,
                                              struct kl_mail_message *message)
{
    if (before)
        before->next = message->next;
    else
        m->first_here = message->next;
    if (m->last_here == message) m->last_here = before;
    return message;
}

struct kl_mail_message *kl_mail_find_message(struct kl_mail *m, int peer, int tag, bool take)
{
    struct kl_mail_message *before = NULL;

    for (struct kl_mail_message *a = m->first_here; a; before = a, a = a->next)
        if (fits(peer, tag, a->source, a->tag)) return take ? unlink_message(m, before, a) : a;
    return NULL;
}
