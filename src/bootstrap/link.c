/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/link.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/inbox.h"
#include "os/fault_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    READ_AT_ONCE = 1 << 20, /* bytes from one peer before the loop serves others */
    READ_MORE = 4096,       /* bytes read beyond the assembler's next piece */
    NO_MEMORY_MS = 50,      /* before writing again when the kernel had no memory */
};

/* ---- outgoing; under lock ---- */

bool kl_link_flushing(const struct kl_contact *peer)
{
    return peer->state == KL_LINK_UP && peer->out.first && !peer->mute;
}

/* Events of interest to the reader and the writer. A peer that is not read is still watched for its end. */
static uint32_t wanted(const struct kl_contact *peer)
{
    uint32_t events = peer->paused ? EPOLLRDHUP : EPOLLIN;

    if (peer->state != KL_LINK_UP) return 0;
    return kl_link_flushing(peer) && !peer->rests ? events | EPOLLOUT : events;
}

static void watch(struct kl_contact *peer)
{
    if (peer->source) kl_source_watch(peer->source, wanted(peer)); /* NULL while leaving */
}

/* Map errno after a write. The end of the connection is left to the reader, which may have more to read before it. */
static void after_write(struct kl_contact *peer, int err)
{
    bool ended = err == EPIPE || err == ECONNRESET;

    peer->rests = err == ENOBUFS || err == ENOMEM;
    if (!err || err == EAGAIN) return;
    peer->mute = !peer->rests;
    if (ended || !peer->source) return;
    if (peer->mute) peer->broken = err;
    kl_source_deadline(peer->source, peer->rests ? kl_deadline_in_ms(NO_MEMORY_MS) : 0); /* on_link continues */
}

static void flush(struct kl_contact *peer)
{
    bool gone = false;

    if (peer->state != KL_LINK_UP) return;
    if (!peer->mute) after_write(peer, kl_outbox_flush(&peer->out, peer->fd, &gone));
    if (gone) pthread_cond_broadcast(&peer->bootstrap->changed);
    watch(peer);
}

static bool queued(struct kl_contact *peer, const struct kl_frame_head *head, bool added)
{
    if (!added) return false;
    kl_state_count_message(peer->bootstrap, head->length);
    flush(peer);
    return true;
}

bool kl_link_post(struct kl_contact *peer, const struct kl_frame_head *head, const void *body)
{
    return queued(peer, head, kl_outbox_add(&peer->out, head, body));
}

bool kl_link_post_owned(struct kl_contact *peer, const struct kl_frame_head *head, void *body)
{
    return queued(peer, head, kl_outbox_add_owned(&peer->out, head, body));
}

ncclResult_t kl_link_ended(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_RANK_DESCRIPTION];

    KL_TRY(kl_state_check(b));
    return KL_FAIL(ncclRemoteError, "rank %d: %s has left; nothing can be sent to it in phase %s", b->rank,
                   kl_rank_describe(b, peer->rank, who), b->phase);
}

static ncclResult_t not_taken(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_RANK_DESCRIPTION], text[KL_ERROR_TEXT];

    snprintf(text, sizeof text, "rank %d: %s has not taken a message within %g s in phase %s; is it stuck?", b->rank,
             kl_rank_describe(b, peer->rank, who), (double)b->timeout_ms / 1000, b->phase);
    return kl_state_late(text);
}

ncclResult_t kl_link_send(struct kl_contact *peer, const struct kl_frame_head *head, const void *body,
                          uint64_t deadline)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_queued_frame *q = kl_outbox_add_borrowed(&peer->out, head, body);
    ncclResult_t rc = ncclSuccess;

    if (!q) return KL_NOMEM("a message");
    kl_state_count_message(b, head->length);
    flush(peer);
    while (kl_queued_state(q) == KL_QUEUED && !b->failed && !b->aborted && !rc)
        if (!kl_state_wait(b, deadline)) rc = not_taken(peer);
    if (!rc && kl_queued_state(q) != KL_QUEUED_SENT) rc = kl_link_ended(peer);
    if (!kl_outbox_reclaim(&peer->out, q)) {
        shutdown(peer->fd, SHUT_RDWR); /* the reader notices */
        pthread_cond_broadcast(&b->changed);
    }
    return rc;
}

/* ---- a full inbox; under lock ---- */

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
    for (int rank = 0; rank < b->nranks && b->npaused; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (peer) kl_link_resume(peer);
    }
}

/* ---- incoming; on the event loop, without lock ---- */

/* Source and descriptor stay until the owner leaves: it waits for this callback by removing the source. */
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
    kl_outbox_drop(&peer->out);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

/* Report first, so that a sender that sees the end of the link knows the reason. */
static void give_up(struct kl_contact *peer, const struct kl_notice *why)
{
    peer->bootstrap->on_bad_news(peer->bootstrap, why);
    end_link(peer, KL_LINK_LOST);
}

static void lose(struct kl_contact *peer, const char *how)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_notice why = {.culprit = peer->rank, .code = ncclRemoteError};
    char who[KL_RANK_DESCRIPTION];

    pthread_mutex_lock(&b->lock);
    snprintf(why.text, sizeof why.text, "%s is gone: %s at rank %d in phase %s", kl_rank_describe(b, peer->rank, who),
             how, b->rank, b->phase);
    pthread_mutex_unlock(&b->lock);
    give_up(peer, &why);
}

/* Both ranks may be fine; but data from this connection can no longer be trusted. */
static void distrust(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    union kl_address from = kl_socket_peer(peer->fd);
    struct kl_notice why = {.culprit = peer->rank, .code = ncclRemoteError};
    char who[KL_RANK_DESCRIPTION], address[KL_ADDRESS_TEXT];

    pthread_mutex_lock(&b->lock);
    snprintf(why.text, sizeof why.text,
             "a frame from %s at %s was altered on the way to rank %d in phase %s; check the network between them",
             kl_rank_describe(b, peer->rank, who), kl_address_format(&from, address), b->rank, b->phase);
    pthread_mutex_unlock(&b->lock);
    give_up(peer, &why);
}

void kl_link_lose(struct kl_contact *peer, const char *how)
{
    if (!peer->ended) lose(peer, how);
}

static void on_notice(struct kl_contact *peer, const struct kl_frame *f)
{
    struct kl_notice why;

    if (!kl_notice_decode(f->body, f->head.length, &why)) return;
    if (why.culprit >= peer->bootstrap->nranks) return;
    peer->bootstrap->on_bad_news(peer->bootstrap, &why);
}

/* Carries the final status, for status queries. */
static void on_bye(struct kl_contact *peer, const struct kl_frame *f)
{
    struct kl_bootstrap *b = peer->bootstrap;

    b->on_status_frame(peer, f);
    end_link(peer, KL_LINK_LEFT);
    if (b->on_left) b->on_left(b->ctx, peer->rank);
}

static void on_control_msg_frame(struct kl_contact *peer, const struct kl_frame *f)
{
    struct kl_bootstrap *b = peer->bootstrap;

    if (b->on_control_msg) b->on_control_msg(b->ctx, b, peer->rank, f->body, f->head.length);
}

static void on_packet_frame(struct kl_contact *peer, const struct kl_frame *f)
{
    struct kl_bootstrap *b = peer->bootstrap;

    if (b->on_packet) b->on_packet(b->ctx, peer->rank, f->body, f->head.length);
}

static void deliver(struct kl_contact *peer, struct kl_frame *f)
{
    struct kl_bootstrap *b = peer->bootstrap;

    pthread_mutex_lock(&b->lock);
    kl_inbox_put(peer, f);
    pause_if_full(peer);
    pthread_mutex_unlock(&b->lock);
}

/* False: the connection has ended. Takes over the frame. */
static bool on_frame(struct kl_contact *peer, struct kl_frame *f)
{
    bool query = f->head.type == KL_FRAME_STATUS_QUERY || f->head.type == KL_FRAME_STATUS_REPLIES;
    bool goes_on =
        query || f->head.type == KL_FRAME_NOTICE || f->head.type == KL_FRAME_CONTROL || f->head.type == KL_FRAME_PACKET;

    if (f->head.type == KL_FRAME_DATA || f->head.type == KL_FRAME_STEP) {
        deliver(peer, f);
        return true;
    }
    if (query)
        peer->bootstrap->on_status_frame(peer, f);
    else if (f->head.type == KL_FRAME_CONTROL)
        on_control_msg_frame(peer, f);
    else if (f->head.type == KL_FRAME_PACKET)
        on_packet_frame(peer, f);
    else if (f->head.type == KL_FRAME_NOTICE)
        on_notice(peer, f);
    else if (f->head.type == KL_FRAME_BYE)
        on_bye(peer, f);
    else
        lose(peer, "it sent a frame that does not belong between ranks");
    free(f);
    return goes_on;
}

/* `n` bytes have been read to the place that the assembler gave. False: the connection has ended. */
static bool filled(struct kl_contact *peer, size_t n)
{
    struct kl_frame *frame;
    enum kl_frame_fault fault = kl_assembler_filled(&peer->assembler, n, KL_FRAME_MAX, &frame);

    if (fault == KL_FRAME_ALTERED)
        distrust(peer);
    else if (fault)
        lose(peer, fault == KL_FRAME_NO_MEMORY ? "there was no memory for a frame from it" : "it sent no frame");
    return !fault && (!frame || on_frame(peer, frame));
}

static bool fill(struct kl_contact *peer, const unsigned char *from, size_t n)
{
    for (size_t room; n; from += room, n -= room) {
        unsigned char *to = kl_assembler_room(&peer->assembler, &room);
        if (room > n) room = n;
        memcpy(to, from, room);
        if (!filled(peer, room)) return false;
    }
    return true;
}

static void broke(struct kl_contact *peer, ssize_t n)
{
    char how[160], reason[128];

    snprintf(how, sizeof how, "its connection %s%s", n ? "broke: " : "was closed",
             n ? strerror_r(errno, reason, sizeof reason) : "");
    lose(peer, how);
}

/* Read available bytes with one system call: large bodies go to their final place, and a few small frames that
 * follow are copied. False: nothing more to read now, or ever. */
static bool read_some(struct kl_contact *peer, size_t *total)
{
    unsigned char more[READ_MORE];
    size_t room;
    unsigned char *to = kl_assembler_room(&peer->assembler, &room);
    struct iovec parts[2] = {{.iov_base = to, .iov_len = room}, {.iov_base = more, .iov_len = sizeof more}};
    ssize_t n = kl_inject_readv(peer->fd, parts, 2);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
    if (n <= 0) {
        broke(peer, n);
        return false;
    }
    size_t got = (size_t)n, first = got < room ? got : room;
    *total += got;
    return filled(peer, first) && fill(peer, more, got - first) && got == room + sizeof more;
}

/* Write as much as the kernel takes. False: the connection has ended. */
static bool write_on(struct kl_contact *peer)
{
    char how[160], reason[128];

    pthread_mutex_lock(&peer->bootstrap->lock);
    if (!peer->broken) flush(peer);
    int broken = peer->broken;
    pthread_mutex_unlock(&peer->bootstrap->lock);
    if (!broken) return true;
    snprintf(how, sizeof how, "writing to it failed: %s", strerror_r(broken, reason, sizeof reason));
    lose(peer, how);
    return false;
}

static void on_link(void *ctx, uint32_t events)
{
    struct kl_contact *peer = ctx;
    size_t total = 0;

    if (peer->ended) return; /* while leaving, events may arrive that are no longer wanted */
    if ((!events || events & EPOLLOUT) && !write_on(peer)) return;
    if (!(events & ~(uint32_t)EPOLLOUT)) return;
    while (total < READ_AT_ONCE && read_some(peer, &total)) continue;
}

/* ---- life ---- */

ncclResult_t kl_link_begin(struct kl_contact *peer, const struct kl_connection *c)
{
    struct kl_bootstrap *b = peer->bootstrap;

    peer->fd = c->fd;
    peer->out.seal = c->out;
    peer->assembler.seal = c->in;
    ncclResult_t rc = kl_loop_add(b->loop, c->fd, EPOLLIN, on_link, peer, &peer->source);
    if (rc) {
        kl_socket_close(c->fd);
        peer->fd = -1;
    }
    peer->state = rc ? KL_LINK_UNREACHED : KL_LINK_UP;
    b->traffic.connections += !rc;
    flush(peer);
    pthread_cond_broadcast(&b->changed);
    return rc;
}

/* Send the goodbye. Data sent before stays deliverable after the close, unless received data is unread. */
static void send_bye(struct kl_contact *peer)
{
    const struct kl_bootstrap *b = peer->bootstrap;
    struct kl_frame_head bye = {.type = KL_FRAME_BYE, .length = b->has_last_words ? KL_STATUS_BYTES : 0};
    char rest[4096];

    kl_link_post(peer, &bye, b->final_status);
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
    if (peer->state == KL_LINK_UP) send_bye(peer);
    kl_socket_close(peer->fd);
    kl_outbox_fini(&peer->out);
    kl_inbox_fini(peer);
    free(peer->final_status);
    kl_assembler_fini(&peer->assembler);
}
