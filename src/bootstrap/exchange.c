/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/state.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/partners.h"

#include <stdlib.h>
#include <string.h>

bool kl_bootstrap_wait(struct kl_bootstrap *b, uint64_t deadline)
{
    struct timespec t = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};

    if (deadline == KL_NO_DEADLINE) {
        pthread_cond_wait(&b->changed, &b->lock);
        return true;
    }
    return !pthread_cond_timedwait(&b->changed, &b->lock, &t) || !kl_deadline_passed(deadline);
}

/* ---- one message ---- */

ncclResult_t kl_inbox_put_own(struct kl_bootstrap *b, const struct kl_frame *frame, const void *data)
{
    struct kl_message *m = malloc(sizeof *m + frame->length);

    if (!m) return KL_NOMEM("a message");
    m->frame = *frame;
    if (frame->length) memcpy(m->body, data, frame->length);
    kl_inbox_put(&b->peers[b->rank], m);
    return ncclSuccess;
}

static ncclResult_t send_locked(struct kl_bootstrap *b, int peer, const struct kl_frame *frame, const void *data,
                                uint64_t deadline)
{
    KL_TRY(kl_bootstrap_check(b));
    if (peer == b->rank) return kl_inbox_put_own(b, frame, data);
    KL_TRY(kl_reach(&b->peers[peer], deadline));
    return kl_link_send(&b->peers[peer], frame, data, deadline);
}

static ncclResult_t nothing_came(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    return KL_FAIL(ncclRemoteError,
                   "rank %d: no message from %s within %g s in phase %s; see whether it is stuck, or raise "
                   "KOLO_BOOTSTRAP_TIMEOUT",
                   b->rank, kl_who(b, peer->rank, who), (double)b->timeout_ms / 1000, b->phase);
}

ncclResult_t kl_inbox_ended(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    return KL_FAIL(ncclRemoteError, "rank %d: %s has left without the message that phase %s waits for", b->rank,
                   kl_who(b, peer->rank, who), b->phase);
}

static ncclResult_t await(struct kl_contact *peer, enum kl_frame_type type, uint32_t tag, uint64_t deadline,
                          struct kl_message **message)
{
    for (;;) {
        KL_TRY(kl_bootstrap_check(peer->bootstrap));
        if ((*message = kl_inbox_take(peer, type, tag))) return ncclSuccess;
        if (peer->state == KL_LINK_LEFT) return kl_inbox_ended(peer);
        if (!kl_bootstrap_wait(peer->bootstrap, deadline)) return nothing_came(peer);
    }
}

ncclResult_t kl_message_unpack(struct kl_contact *peer, struct kl_message *m, uint32_t bytes, void *data)
{
    struct kl_bootstrap *b = peer->bootstrap;
    ncclResult_t rc = ncclSuccess;
    char who[KL_WHO_TEXT];

    if (m->frame.length != bytes)
        rc = KL_FAIL(ncclInternalError, "rank %d expected a message of %u bytes from %s in phase %s, and got %u",
                     b->rank, bytes, kl_who(b, peer->rank, who), b->phase, m->frame.length);
    else if (bytes)
        memcpy(data, m->body, bytes);
    free(m);
    return rc;
}

static ncclResult_t recv_locked(struct kl_bootstrap *b, int peer, const struct kl_frame *frame, void *data,
                                uint64_t deadline)
{
    struct kl_contact *p = &b->peers[peer];
    struct kl_message *m = NULL;

    b->awaited = peer;
    kl_link_resume(p); /* what we wait for may be behind what filled the inbox */
    ncclResult_t rc = await(p, frame->type, frame->tag, deadline, &m);
    b->awaited = -1;
    return rc ? rc : kl_message_unpack(p, m, frame->length, data);
}

/* A failure that is not the caller's mistake nor an abort concerns everybody; one that came from others is known. */
ncclResult_t kl_exchange_settle(struct kl_bootstrap *b, int peer, ncclResult_t rc)
{
    if (rc == ncclRemoteError) return kl_bootstrap_give_up(b, peer, rc);
    if (rc == ncclSystemError) return kl_bootstrap_give_up(b, b->rank, rc);
    return rc;
}

static ncclResult_t send_frame(struct kl_bootstrap *b, int peer, const struct kl_frame *frame, const void *data,
                               uint64_t deadline)
{
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = send_locked(b, peer, frame, data, deadline);
    pthread_mutex_unlock(&b->lock);
    return kl_exchange_settle(b, peer, rc);
}

static ncclResult_t recv_frame(struct kl_bootstrap *b, int peer, const struct kl_frame *frame, void *data,
                               uint64_t deadline)
{
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = recv_locked(b, peer, frame, data, deadline);
    pthread_mutex_unlock(&b->lock);
    return kl_exchange_settle(b, peer, rc);
}

static ncclResult_t check_owner(const struct kl_bootstrap *b)
{
    if (!kl_bootstrap_inherited(b)) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "rank %d is the parent process: a child of fork cannot speak for it", b->rank);
}

ncclResult_t kl_exchange_check(const struct kl_bootstrap *b, int peer, size_t bytes)
{
    KL_TRY(check_owner(b));
    if (peer < 0 || peer >= b->nranks) return KL_FAIL(ncclInvalidArgument, "no rank %d among %d", peer, b->nranks);
    if (bytes > KL_FRAME_MAX)
        return KL_FAIL(ncclInvalidArgument, "a bootstrap message of %zu bytes; %u is the most", bytes, KL_FRAME_MAX);
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_send(struct kl_bootstrap *b, int peer, uint32_t tag, const void *data, size_t bytes)
{
    struct kl_frame frame = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    KL_TRY(kl_exchange_check(b, peer, bytes));
    return send_frame(b, peer, &frame, data, kl_deadline_in_ms(b->timeout_ms));
}

ncclResult_t kl_bootstrap_recv(struct kl_bootstrap *b, int peer, uint32_t tag, void *data, size_t bytes)
{
    struct kl_frame frame = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    KL_TRY(kl_exchange_check(b, peer, bytes));
    return recv_frame(b, peer, &frame, data, kl_deadline_in_ms(b->timeout_ms));
}

/* ---- collective ---- */

/* One step of a collective exchange: what goes to `to` is as long as what comes from `from`. */
struct step {
    int to, from;
    const unsigned char *out;
    unsigned char *in;
    size_t bytes;
};

/* In pieces, each received before the next is sent: no rank has more than one piece per peer in its inbox. */
static ncclResult_t take_step(struct kl_bootstrap *b, const struct step *s, uint64_t deadline)
{
    size_t done = 0;

    do {
        size_t piece = s->bytes - done < KL_FRAME_MAX ? s->bytes - done : KL_FRAME_MAX;
        struct kl_frame frame = {.type = KL_FRAME_STEP, .tag = b->exchanges, .length = (uint32_t)piece};
        KL_TRY(send_frame(b, s->to, &frame, s->out + done, deadline));
        KL_TRY(recv_frame(b, s->from, &frame, s->in + done, deadline));
        done += piece;
    } while (done < s->bytes);
    return ncclSuccess;
}

/* Bruck: after step k every rank has 2^(k+1) records, its own and those of the ranks above it, in order. */
static ncclResult_t gather_upwards(struct kl_bootstrap *b, unsigned char *mine, size_t bytes)
{
    uint64_t deadline = kl_deadline_in_ms(b->timeout_ms);

    for (long have = 1; have < b->nranks; have *= 2) {
        long more = have < b->nranks - have ? have : b->nranks - have;
        struct step s = {.to = kl_rank_at(b->rank, (int)-have, b->nranks),
                         .from = kl_rank_at(b->rank, (int)have, b->nranks),
                         .out = mine,
                         .in = mine + (size_t)have * bytes,
                         .bytes = (size_t)more * bytes};
        KL_TRY(take_step(b, &s, deadline));
    }
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_allgather(struct kl_bootstrap *b, void *all, size_t bytes)
{
    size_t n = (size_t)b->nranks, rank = (size_t)b->rank;
    unsigned char *to = all, *mine;

    KL_TRY(check_owner(b));
    if (bytes > SIZE_MAX / n)
        return KL_FAIL(ncclInvalidArgument, "an all-gather of %zu records of %zu bytes", n, bytes);
    mine = malloc(n * bytes + 1);
    if (!mine) return KL_NOMEM("an all-gather");
    if (bytes) memcpy(mine, to + rank * bytes, bytes);
    b->exchanges++;
    ncclResult_t rc = gather_upwards(b, mine, bytes);
    if (!rc && bytes) { /* from "mine first" to "rank 0 first" */
        memcpy(to + rank * bytes, mine, (n - rank) * bytes);
        memcpy(to, mine + (n - rank) * bytes, rank * bytes);
    }
    free(mine);
    return rc;
}

/* Dissemination: after step k every rank knows that the 2^(k+1) - 1 ranks below it have come. */
ncclResult_t kl_bootstrap_barrier(struct kl_bootstrap *b)
{
    uint64_t deadline = kl_deadline_in_ms(b->timeout_ms);
    unsigned char nothing[1];

    KL_TRY(check_owner(b));
    b->exchanges++;
    for (long distance = 1; distance < b->nranks; distance *= 2) {
        struct step s = {.to = kl_rank_at(b->rank, (int)distance, b->nranks),
                         .from = kl_rank_at(b->rank, (int)-distance, b->nranks),
                         .out = nothing,
                         .in = nothing};
        KL_TRY(take_step(b, &s, deadline));
    }
    return ncclSuccess;
}
