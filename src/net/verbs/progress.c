/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/progress.h"

#include "base/clock.h"
#include "net/verbs/queue.h"
#include "net/verbs/reason.h"
#include "net/verbs/receive.h"
#include "net/verbs/send.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    POLL = 16,
    LOOK_NS = 4000000,   /* between two looks for the peer */
    GRACE_NS = 20000000, /* after its end: for completions of data that came before */
    ACK_BATCH = 16,
};

/* ---- failures ---- */

/* "; counters since start: out_of_sequence +3" */
static const char *counters_of(const struct kl_verbs_device *d, char *text, size_t bytes)
{
    struct kl_verbs_counters now;
    char moved[200];

    kl_verbs_counters_read(d->sysfs, &now);
    kl_verbs_counters_moved(&d->before, &now, moved, sizeof moved);
    snprintf(text, bytes, "%s%s", *moved ? "; counters that moved: " : "", moved);
    return text;
}

static void lost_by(struct kl_verbs_link *l, const struct kl_ibv_wc *wc)
{
    const struct kl_verbs_gid far = {
        .gid = l->theirs.gid, .index = l->theirs.gid_index, .version = l->theirs.gid_version};
    struct kl_verbs_wr_id id = kl_verbs_wr_id(wc->wr_id);
    char mine[KL_VERBS_GID_TEXT], theirs[KL_VERBS_GID_TEXT], counters[256];
    int q = id.queue < l->nqueues ? id.queue : 0;

    kl_verbs_fail(
        l, ncclRemoteError,
        "rank %d has lost its connection with rank %d at %s: %s port %d: status %d (%s), vendor code %u, of a "
        "%s; GID %s to %s, queue pair %u to %u; likely: %s%s",
        l->rank, l->peer, l->where, l->device->name, l->device->port, wc->status, kl_verbs()->wc_status_str(wc->status),
        wc->vendor_err, id.kind == KL_VERBS_WR_SEND ? "write" : "receive", kl_verbs_gid_format(&l->gid, mine),
        kl_verbs_gid_format(&far, theirs), l->mine.qpn[q], l->theirs.qpn[q], kl_verbs_status_cause(wc->status),
        counters_of(l->device, counters, sizeof counters));
}

static void closed(struct kl_verbs_link *l)
{
    kl_verbs_fail(l, ncclRemoteError, "rank %d has lost its connection with rank %d at %s: the other side closed it",
                  l->rank, l->peer, l->where);
}

/* ---- completions ---- */

static void received(struct kl_verbs_link *l, int queue, uint32_t imm)
{
    l->queue[queue].spent++;
    switch (kl_verbs_imm_kind(imm)) {
    case KL_VERBS_DATA:
        kl_verbs_recv_data(l, imm & KL_VERBS_IMM_MASK);
        return;
    case KL_VERBS_MESSAGE:
        kl_verbs_recv_message(l);
        break;
    case KL_VERBS_CTS:
        kl_verbs_send_requested(l);
        break;
    case KL_VERBS_CREDIT:
        break;
    }
    kl_verbs_send_credited(l, imm);
}

static void completed(struct kl_verbs_link *l, const struct kl_ibv_wc *wc)
{
    struct kl_verbs_wr_id id = kl_verbs_wr_id(wc->wr_id);

    if (l->failed || id.queue >= l->nqueues) return;
    if (wc->status)
        lost_by(l, wc);
    else if (id.kind == KL_VERBS_WR_SEND)
        kl_verbs_send_completed(l, id.queue, id.number);
    else
        received(l, id.queue, ntohl(wc->imm));
}

/* Events of the channel make it readable until they are read. */
static void take_events(struct kl_verbs_link *l)
{
    struct kl_ibv_cq *cq;
    void *unused;

    while (l->armed && !kl_verbs()->get_cq_event(l->channel, &cq, &unused)) {
        l->armed = false;
        l->events++;
    }
    if (l->events < ACK_BATCH) return;
    kl_verbs()->ack_cq_events(l->cq, l->events);
    l->events = 0;
}

static void poll_all(struct kl_verbs_link *l)
{
    struct kl_ibv_wc wc[POLL];
    int n;

    do {
        n = l->cq->context->poll_cq(l->cq, POLL, wc);
        for (int i = 0; i < n; i++) completed(l, &wc[i]);
        for (int i = 0; i < l->nqueues; i++) kl_verbs_queue_refill(l, i);
    } while (n == POLL && !l->failed);
}

/* ---- the peer ---- */

static void on_record(struct kl_verbs_link *l, const struct kl_verbs_record *r)
{
    if (r->type == KL_VERBS_REFUSED)
        kl_verbs_fail(l, ncclInvalidUsage,
                      "rank %d has sent %" PRIu64 " bytes (tag %d) to rank %d at %s, which has posted %" PRIu64
                      "; sizes and settings have to be alike on all ranks",
                      l->rank, r->sent, (int)r->tag, l->peer, l->where, r->posted);
    else
        kl_verbs_fail(l, ncclRemoteError, "rank %d has lost its connection with rank %d at %s, which says: %s", l->rank,
                      l->peer, l->where, r->reason);
}

/* The TCP connection shows at once that a peer has died; the device would try for half a minute. */
static void look(struct kl_verbs_link *l, uint64_t now)
{
    struct kl_verbs_record r;
    bool ended = false;

    l->looked = now;
    kl_verbs_device_events(l->device);
    int fatal = kl_load_acquire(&l->device->card->fatal);
    if (fatal) {
        kl_verbs_fail(l, ncclSystemError, "rank %d has lost its connection with rank %d at %s: %s has failed: %s",
                      l->rank, l->peer, l->where, l->device->name, kl_verbs()->event_type_str(fatal - 1));
        return;
    }
    while (!l->failed && kl_verbs_link_receive(l, &r, &ended)) on_record(l, &r);
    if (ended && !l->ended) l->ended = now;
}

void kl_verbs_progress(struct kl_verbs_link *l)
{
    uint64_t now = kl_now_coarse_ns();

    if (l->failed) return;
    take_events(l);
    bool was_ended = l->ended && now - l->ended >= GRACE_NS;
    poll_all(l);
    if (!l->failed) kl_verbs_send_work(l);
    if (!l->failed) kl_verbs_recv_work(l);
    if (!l->failed) kl_verbs_send_credit(l);
    if (!l->failed && now - l->looked >= LOOK_NS) look(l, now);
    if (!l->failed && was_ended) closed(l);
}

/* ---- sleeping ---- */

/* Completions between a poll and the request for an event make no event: poll again. */
static void arm(struct kl_verbs_link *l)
{
    if (l->failed || l->armed) return;
    l->armed = !l->cq->context->req_notify_cq(l->cq, 0);
    kl_verbs_progress(l);
}

void kl_verbs_progress_again(struct kl_verbs_link *l)
{
    if (l->epoll >= 0) arm(l);
}

ncclResult_t kl_verbs_sleep_on(struct kl_verbs_link *l, int *fd)
{
    KL_TRY(kl_watch_open(&l->epoll));
    KL_TRY(kl_watch(l->epoll, &l->watched_fd, l->fd, EPOLLIN));
    KL_TRY(kl_watch(l->epoll, &l->watched_channel, l->channel->fd, EPOLLIN));
    arm(l);
    *fd = l->epoll;
    return ncclSuccess;
}
