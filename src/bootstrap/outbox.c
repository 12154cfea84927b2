/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/outbox.h"

#include "os/fault_inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* In the list while it is KL_QUEUED. Afterwards the sender owns a borrowed one; others are freed. */
struct kl_queued_frame {
    struct kl_queued_frame *next;
    struct kl_frame_head head;
    const unsigned char *body; /* the sender's, or `copy` */
    unsigned char *copy;
    size_t done; /* bytes of the body that have been sealed */
    /* bytes in `wire`, and how many of them have been written; pieces are sealed only when their turn comes */
    size_t sealed, sent;
    bool borrowed;
    enum kl_queued_state state;
    unsigned char wire[]; /* the head and the first piece, then one piece after the other */
};

static void frame_free(struct kl_queued_frame *q)
{
    if (!q) return;
    free(q->copy);
    free(q);
}

static struct kl_queued_frame *frame_create(const struct kl_frame_head *head, const void *body)
{
    size_t piece = head->length < KL_FRAME_PIECE ? head->length : KL_FRAME_PIECE;
    struct kl_queued_frame *q = malloc(sizeof *q + KL_FRAME_SEALED(piece));

    if (q) *q = (struct kl_queued_frame){.head = *head, .body = body};
    return q;
}

static bool copy_body(struct kl_queued_frame *q)
{
    q->copy = malloc(q->head.length + (size_t)1);
    if (!q->copy) return false;
    if (q->head.length) memcpy(q->copy, q->body, q->head.length);
    q->body = q->copy;
    return true;
}

static void append(struct kl_outbox *o, struct kl_queued_frame *q)
{
    if (o->last)
        o->last->next = q;
    else
        o->first = q;
    o->last = q;
}

static void remove_first(struct kl_outbox *o, enum kl_queued_state state)
{
    struct kl_queued_frame *q = o->first;

    o->first = q->next;
    if (!q->next) o->last = NULL;
    q->state = state;
    if (!q->borrowed) frame_free(q);
}

bool kl_outbox_add(struct kl_outbox *o, const struct kl_frame_head *head, const void *body)
{
    struct kl_queued_frame *q = frame_create(head, body);

    if (!q || !copy_body(q)) {
        frame_free(q);
        return false;
    }
    append(o, q);
    return true;
}

bool kl_outbox_add_owned(struct kl_outbox *o, const struct kl_frame_head *head, void *body)
{
    struct kl_queued_frame *q = frame_create(head, body);

    if (!q) {
        free(body);
        return false;
    }
    q->copy = body;
    append(o, q);
    return true;
}

struct kl_queued_frame *kl_outbox_add_borrowed(struct kl_outbox *o, const struct kl_frame_head *head, const void *body)
{
    struct kl_queued_frame *q = frame_create(head, body);

    if (!q) return NULL;
    q->borrowed = true;
    append(o, q);
    return q;
}

enum kl_queued_state kl_queued_state(const struct kl_queued_frame *q)
{
    return q->state;
}

bool kl_outbox_reclaim(struct kl_outbox *o, struct kl_queued_frame *q)
{
    bool kept = q->state != KL_QUEUED || copy_body(q);

    while (!kept && q->state == KL_QUEUED) remove_first(o, KL_QUEUED_DROPPED);
    if (q->state == KL_QUEUED)
        q->borrowed = false;
    else
        frame_free(q);
    return kept;
}

/* ---- sealing, piece by piece ---- */

static bool all_sealed(const struct kl_queued_frame *q)
{
    return q->sealed && q->done == q->head.length;
}

/* The previous piece has been written. */
static void seal_next(struct kl_outbox *o, struct kl_queued_frame *q)
{
    bool begins = !q->sealed;
    size_t head = begins ? KL_FRAME_SEALED_HEAD : 0, left = q->head.length - q->done, piece = 0;

    if (begins) kl_frame_seal_head(&o->seal, &q->head, q->wire);
    if (left) piece = kl_frame_seal_piece(&o->seal, q->body + q->done, left, q->wire + head);
    q->done += piece;
    q->sealed = head + (piece ? piece + KL_SEAL_BYTES : 0);
    q->sent = 0;
}

int kl_outbox_flush(struct kl_outbox *o, int fd, bool *gone)
{
    for (struct kl_queued_frame *q; (q = o->first);) {
        if (q->sent == q->sealed) seal_next(o, q);
        ssize_t n = kl_inject_send(fd, q->wire + q->sent, q->sealed - q->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) q->sent += (size_t)n;
        if (q->sent < q->sealed || !all_sealed(q)) continue;
        *gone |= q->borrowed;
        remove_first(o, KL_QUEUED_SENT);
    }
    return 0;
}

bool kl_outbox_holds_more(const struct kl_outbox *o, size_t n)
{
    const struct kl_queued_frame *q = o->first;

    for (; q && n; n--) q = q->next;
    return q;
}

void kl_outbox_drop(struct kl_outbox *o)
{
    while (o->first) remove_first(o, KL_QUEUED_DROPPED);
}

void kl_outbox_fini(struct kl_outbox *o)
{
    kl_outbox_drop(o);
    kl_key_wipe(&o->seal.key);
}
