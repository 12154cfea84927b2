/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* In the list while it is KL_QUEUED. Then the sender of a lent one has it; others are freed. */
struct kl_queued_frame {
    struct kl_queued_frame *next;
    unsigned char head[KL_FRAME_HEAD];
    const unsigned char *body; /* the sender's, or `copy` */
    unsigned char *copy;
    size_t bytes; /* of the body */
    size_t sent;  /* of head and body */
    bool lent;
    enum kl_queued_state state;
};

static void frame_free(struct kl_queued_frame *q)
{
    if (!q) return;
    free(q->copy);
    free(q);
}

static struct kl_queued_frame *frame_create(const struct kl_frame_head *head, const void *body)
{
    struct kl_queued_frame *q = calloc(1, sizeof *q);

    if (!q) return NULL;
    kl_frame_encode(head, q->head);
    q->body = body;
    q->bytes = head->length;
    return q;
}

static bool copy_body(struct kl_queued_frame *q)
{
    q->copy = malloc(q->bytes + 1);
    if (!q->copy) return false;
    if (q->bytes) memcpy(q->copy, q->body, q->bytes);
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
    if (!q->lent) frame_free(q);
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

struct kl_queued_frame *kl_outbox_lend(struct kl_outbox *o, const struct kl_frame_head *head, const void *body)
{
    struct kl_queued_frame *q = frame_create(head, body);

    if (!q) return NULL;
    q->lent = true;
    append(o, q);
    return q;
}

enum kl_queued_state kl_queued_state(const struct kl_queued_frame *q)
{
    return q->state;
}

bool kl_outbox_take_back(struct kl_outbox *o, struct kl_queued_frame *q)
{
    bool kept = q->state != KL_QUEUED || copy_body(q);

    while (!kept && q->state == KL_QUEUED) remove_first(o, KL_QUEUED_DROPPED);
    if (q->state == KL_QUEUED)
        q->lent = false;
    else
        frame_free(q);
    return kept;
}

/* What the socket takes of one frame: 0 or more bytes, or -1 with errno. */
static ssize_t send_some(int fd, const struct kl_queued_frame *q)
{
    size_t head = q->sent < KL_FRAME_HEAD ? KL_FRAME_HEAD - q->sent : 0;
    size_t body = q->sent < KL_FRAME_HEAD ? 0 : q->sent - KL_FRAME_HEAD;
    struct iovec part[2] = {{.iov_base = (void *)(q->head + KL_FRAME_HEAD - head), .iov_len = head},
                            {.iov_base = (void *)(q->body + body), .iov_len = q->bytes - body}};
    struct msghdr m = {.msg_iov = head ? part : part + 1, .msg_iovlen = head && q->bytes ? 2 : 1};

    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int kl_outbox_flush(struct kl_outbox *o, int fd, bool *gone)
{
    for (struct kl_queued_frame *q; (q = o->first);) {
        ssize_t n = send_some(fd, q);
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) q->sent += (size_t)n;
        if (q->sent < KL_FRAME_HEAD + q->bytes) continue;
        *gone |= q->lent;
        remove_first(o, KL_QUEUED_SENT);
    }
    return 0;
}

void kl_outbox_drop(struct kl_outbox *o)
{
    while (o->first) remove_first(o, KL_QUEUED_DROPPED);
}
