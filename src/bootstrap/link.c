/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/state.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { READ_AT_ONCE = 1 << 20 }; /* bytes from one peer before the loop looks at the others */

/* Whoever waits for a parcel frees it; the others free themselves. */
struct kl_parcel {
    struct kl_parcel *next;
    unsigned char head[KL_FRAME_HEAD];
    const unsigned char *body; /* the waiting sender's, or `copy` */
    unsigned char *copy;
    size_t bytes; /* of the body */
    size_t sent;  /* of head and body */
    bool awaited;
    bool gone; /* no longer in the list */
};

/* ---- outgoing; under lock ---- */

static void parcel_free(struct kl_parcel *p)
{
    if (!p) return;
    free(p->copy);
    free(p);
}

static struct kl_parcel *parcel_create(const struct kl_frame *frame, const void *body)
{
    struct kl_parcel *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    kl_frame_encode(frame, p->head);
    p->body = body;
    p->bytes = frame->length;
    return p;
}

/* The sender stops waiting, or never did: the body becomes ours. */
static bool parcel_keep(struct kl_parcel *p)
{
    p->copy = malloc(p->bytes ? p->bytes : 1);
    if (!p->copy) return false;
    if (p->bytes) memcpy(p->copy, p->body, p->bytes);
    p->body = p->copy;
    p->awaited = false;
    return true;
}

static void append(struct kl_contact *peer, struct kl_parcel *p)
{
    if (peer->last_out)
        peer->last_out->next = p;
    else
        peer->first_out = p;
    peer->last_out = p;
}

/* The first parcel leaves the list, sent or not. */
static void drop_first(struct kl_contact *peer)
{
    struct kl_parcel *p = peer->first_out;

    peer->first_out = p->next;
    if (!p->next) peer->last_out = NULL;
    p->gone = true;
    if (p->awaited)
        pthread_cond_broadcast(&peer->bootstrap->changed);
    else
        parcel_free(p);
}

static bool whole(const struct kl_parcel *p)
{
    return p->sent == KL_FRAME_HEAD + p->bytes;
}

/* Hand over what the socket takes: 0 or more bytes, or -1 with errno. */
static ssize_t send_some(int fd, const struct kl_parcel *p)
{
    size_t head = p->sent < KL_FRAME_HEAD ? KL_FRAME_HEAD - p->sent : 0;
    size_t body = p->sent < KL_FRAME_HEAD ? 0 : p->sent - KL_FRAME_HEAD;
    struct iovec part[2] = {{.iov_base = (void *)(p->head + KL_FRAME_HEAD - head), .iov_len = head},
                            {.iov_base = (void *)(p->body + body), .iov_len = p->bytes - body}};
    struct msghdr m = {.msg_iov = head ? part : part + 1, .msg_iovlen = head && p->bytes ? 2 : 1};

    return sendmsg(fd, &m, MSG_NOSIGNAL);
}

/* What the reader wants, and the writer. A peer that is not read is still watched for its end. */
static uint32_t wanted(const struct kl_contact *peer)
{
    uint32_t events = peer->paused ? EPOLLRDHUP : EPOLLIN;

    if (peer->state != KL_LINK_UP) return 0;
    return peer->first_out && !peer->mute ? events | EPOLLOUT : events;
}

static void watch(struct kl_contact *peer)
{
    if (peer->source) kl_source_watch(peer->source, wanted(peer)); /* else we are leaving */
}

static void flush(struct kl_contact *peer)
{
    while (peer->first_out && peer->state == KL_LINK_UP && !peer->mute) {
        ssize_t n = send_some(peer->fd, peer->first_out);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) {
            peer->mute = true;
            break;
        }
        peer->first_out->sent += (size_t)n;
        if (whole(peer->first_out)) drop_first(peer);
    }
    watch(peer);
}

bool kl_link_post(struct kl_contact *peer, const struct kl_frame *frame, const void *body)
{
    struct kl_parcel *p = parcel_create(frame, body);

    if (!p || !parcel_keep(p)) {
        parcel_free(p);
        return false;
    }
    append(peer, p);
    flush(peer);
    return true;
}

/* The deadline has passed, or somebody else failed: the frame must still be completed, or nothing can follow it. */
static void abandon(struct kl_contact *peer, struct kl_parcel *p)
{
    if (p->gone) {
        parcel_free(p);
    } else if (!parcel_keep(p)) {
        shutdown(peer->fd, SHUT_RDWR);
        while (!p->gone) drop_first(peer);
        parcel_free(p);
    }
}

ncclResult_t kl_link_ended(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    KL_TRY(kl_bootstrap_check(b));
    return KL_FAIL(ncclRemoteError, "rank %d: %s has left; nothing can be sent to it in phase %s", b->rank,
                   kl_who(b, peer->rank, who), b->phase);
}

static ncclResult_t not_taken(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    return KL_FAIL(ncclRemoteError, "rank %d: %s has not taken a message within %g s in phase %s; is it stuck?",
                   b->rank, kl_who(b, peer->rank, who), (double)b->timeout_ms / 1000, b->phase);
}

ncclResult_t kl_link_send(struct kl_contact *peer, const struct kl_frame *frame, const void *body, uint64_t deadline)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_parcel *p = parcel_create(frame, body);
    ncclResult_t rc = ncclSuccess;

    if (!p) return KL_NOMEM("a message");
    p->awaited = true;
    append(peer, p);
    flush(peer);
    while (!p->gone && !b->failed && !b->aborted && !rc)
        if (!kl_bootstrap_wait(b, deadline)) rc = not_taken(peer);
    if (!rc && !(p->gone && whole(p))) rc = kl_link_ended(peer);
    abandon(peer, p);
    return rc;
}

/* ---- inbox; under lock ---- */

/* An empty message is not free either. */
static size_t weight(const struct kl_message *m)
{
    return sizeof *m + m->frame.length;
}

void kl_inbox_put(struct kl_contact *peer, struct kl_message *m)
{
    struct kl_bootstrap *b = peer->bootstrap;

    m->next = NULL;
    if (peer->last_in)
        peer->last_in->next = m;
    else
        peer->first_in = m;
    peer->last_in = m;
    b->inbox_bytes += weight(m);
    if (m->frame.type == KL_FRAME_DATA) kl_fetch_add_acq_rel(&peer->arrived, 1);
    pthread_cond_broadcast(&b->changed);
}

struct kl_message *kl_inbox_take(struct kl_contact *peer, enum kl_frame_type type, uint32_t tag)
{
    struct kl_message *before = NULL;

    for (struct kl_message *m = peer->first_in; m; before = m, m = m->next) {
        if (m->frame.type != type || m->frame.tag != tag) continue;
        if (before)
            before->next = m->next;
        else
            peer->first_in = m->next;
        if (!m->next) peer->last_in = before;
        peer->bootstrap->inbox_bytes -= weight(m);
        if (m->frame.type == KL_FRAME_DATA) kl_fetch_sub_acq_rel(&peer->arrived, 1);
        peer->polled = false;
        kl_link_resume_all(peer->bootstrap);
        return m;
    }
    return NULL;
}

static void pause_if_full(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;

    if (b->inbox_bytes <= KL_INBOX_BYTES || b->awaited == peer->rank || peer->polled || peer->paused) return;
    peer->paused = true;
    kl_fetch_add_acq_rel(&peer->arrived, KL_ARRIVED_PAUSED);
    b->npaused++;
    watch(peer);
}

void kl_link_resume(struct kl_contact *peer)
{
    if (!peer->paused) return;
    peer->paused = false;
    kl_fetch_sub_acq_rel(&peer->arrived, KL_ARRIVED_PAUSED);
    peer->bootstrap->npaused--;
    watch(peer);
}

void kl_link_resume_all(struct kl_bootstrap *b)
{
    if (b->inbox_bytes > KL_INBOX_BYTES) return;
    for (int rank = 0; rank < b->nranks && b->npaused; rank++) kl_link_resume(&b->peers[rank]);
}

/* ---- incoming; on the event loop, without lock ---- */

/* Source and descriptor stay until the owner leaves: removing the source is how it waits for this callback. */
static void end_link(struct kl_contact *peer, enum kl_link_state state)
{
    struct kl_bootstrap *b = peer->bootstrap;

    peer->ended = true;
    pthread_mutex_lock(&b->lock);
    kl_link_resume(peer);
    peer->state = state;
    kl_fetch_add_acq_rel(&peer->arrived, KL_ARRIVED_ENDED);
    watch(peer);
    shutdown(peer->fd, SHUT_RDWR);
    while (peer->first_out) drop_first(peer);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void lose(struct kl_contact *peer, const char *how)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_notice why = {.culprit = peer->rank, .code = ncclRemoteError};
    char who[KL_WHO_TEXT];

    pthread_mutex_lock(&b->lock);
    snprintf(why.text, sizeof why.text, "%s is gone: %s at rank %d in phase %s", kl_who(b, peer->rank, who), how,
             b->rank, b->phase);
    pthread_mutex_unlock(&b->lock);
    kl_bootstrap_fail(b, &why, true); /* first, so that a sender that sees the link end knows why */
    end_link(peer, KL_LINK_LOST);
}

static void hear_notice(struct kl_contact *peer, const struct kl_message *m)
{
    struct kl_notice why;

    if (!kl_notice_decode(m->body, m->frame.length, &why)) return;
    if (why.culprit >= peer->bootstrap->nranks) return;
    kl_bootstrap_fail(peer->bootstrap, &why, true);
}

static void deliver(struct kl_contact *peer, struct kl_message *m)
{
    struct kl_bootstrap *b = peer->bootstrap;

    pthread_mutex_lock(&b->lock);
    kl_inbox_put(peer, m);
    pause_if_full(peer);
    pthread_mutex_unlock(&b->lock);
}

/* False: the connection has ended. Takes over the message. */
static bool hear(struct kl_contact *peer, struct kl_message *m)
{
    bool goes_on = m->frame.type == KL_FRAME_NOTICE;

    if (m->frame.type == KL_FRAME_DATA || m->frame.type == KL_FRAME_STEP) {
        deliver(peer, m);
        return true;
    }
    if (goes_on)
        hear_notice(peer, m);
    else if (m->frame.type == KL_FRAME_BYE)
        end_link(peer, KL_LINK_LEFT);
    else
        lose(peer, "it sent a frame that does not belong between ranks");
    free(m);
    return goes_on;
}

/* One recv. False: nothing more to read now, or ever. */
static bool read_some(struct kl_contact *peer, size_t *total)
{
    struct kl_message *message;
    size_t room;
    char how[160], reason[128];
    unsigned char *to = kl_assembler_room(&peer->assembler, &room);
    ssize_t n = recv(peer->fd, to, room, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
    if (n <= 0) {
        snprintf(how, sizeof how, "its connection %s%s", n ? "broke: " : "was closed",
                 n ? strerror_r(errno, reason, sizeof reason) : "");
        lose(peer, how);
        return false;
    }
    *total += (size_t)n;
    if (kl_assembler_filled(&peer->assembler, (size_t)n, KL_FRAME_MAX, &message)) {
        lose(peer, "it sent no frame, or there was no memory for it");
        return false;
    }
    return !message || hear(peer, message);
}

static void on_link(void *ctx, uint32_t events)
{
    struct kl_contact *peer = ctx;
    size_t total = 0;

    if (peer->ended) return; /* while we are leaving, events still come that are no longer wanted */
    if (events & EPOLLOUT) {
        pthread_mutex_lock(&peer->bootstrap->lock);
        flush(peer);
        pthread_mutex_unlock(&peer->bootstrap->lock);
    }
    if (!(events & ~(uint32_t)EPOLLOUT)) return;
    while (total < READ_AT_ONCE && read_some(peer, &total)) continue;
}

/* ---- life ---- */

ncclResult_t kl_link_begin(struct kl_contact *peer, int fd)
{
    struct kl_bootstrap *b = peer->bootstrap;

    peer->fd = fd;
    ncclResult_t rc = kl_loop_add(b->loop, fd, EPOLLIN, on_link, peer, &peer->source);
    if (rc) {
        kl_socket_close(fd);
        peer->fd = -1;
    }
    peer->state = rc ? KL_LINK_LOST : KL_LINK_UP;
    if (!rc && b->failed) kl_bootstrap_tell(peer);
    if (!rc) flush(peer);
    pthread_cond_broadcast(&b->changed);
    return rc;
}

/* The last words. What was sent before stays deliverable after the close, if nothing unread is in its way. */
static void say_bye(struct kl_contact *peer)
{
    struct kl_frame bye = {.type = KL_FRAME_BYE};
    char rest[4096];

    kl_link_post(peer, &bye, NULL);
    shutdown(peer->fd, SHUT_WR);
    while (recv(peer->fd, rest, sizeof rest, 0) > 0) continue;
}

void kl_link_stop(struct kl_contact *peer)
{
    pthread_mutex_lock(&peer->bootstrap->lock);
    struct kl_source *source = peer->source;
    peer->source = NULL; /* callbacks of other peers may still want to send to this one */
    pthread_mutex_unlock(&peer->bootstrap->lock);
    kl_source_remove(source);
}

void kl_link_fini(struct kl_contact *peer)
{
    if (peer->state == KL_LINK_UP) say_bye(peer);
    kl_socket_close(peer->fd);
    while (peer->first_out) drop_first(peer);
    for (struct kl_message *m; (m = peer->first_in);) {
        peer->first_in = m->next;
        free(m);
    }
    kl_assembler_fini(&peer->assembler);
}
