/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/exchange.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/failure.h"
#include "bootstrap/inbox.h"
#include "bootstrap/link.h"
#include "bootstrap/partners.h"
#include "bootstrap/reach.h"
#include "bootstrap/silence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one message ---- */

static ncclResult_t send_locked(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, const void *data,
                                uint64_t deadline)
{
    struct kl_contact *to;

    KL_TRY(kl_state_check(b));
    if (peer == b->rank) return kl_inbox_put_own(b, head, data);
    KL_TRY(kl_contact_make(b, peer, &to));
    KL_TRY(kl_reach(to, deadline));
    return kl_link_send(to, head, data, deadline);
}

static ncclResult_t nothing_came(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT], text[KL_ERROR_TEXT];

    snprintf(text, sizeof text,
             "rank %d: no message from %s within %g s in phase %s; see whether it is stuck, or raise "
             "KOLO_BOOTSTRAP_TIMEOUT",
             b->rank, kl_who(b, peer->rank, who), (double)b->timeout_ms / 1000, b->phase);
    return kl_state_late(text);
}

static ncclResult_t await(struct kl_contact *peer, const struct kl_frame_head *head, void *data, uint64_t deadline)
{
    for (;;) {
        bool here;
        KL_TRY(kl_state_check(peer->bootstrap));
        KL_TRY(kl_inbox_take(peer, head, data, &here));
        if (here) return ncclSuccess;
        if (!kl_state_wait(peer->bootstrap, deadline)) return nothing_came(peer);
    }
}

static ncclResult_t recv_locked(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, void *data,
                                uint64_t deadline)
{
    struct kl_contact *from;

    KL_TRY(kl_contact_make(b, peer, &from));
    b->awaited = peer;
    kl_link_resume(from); /* the awaited message may be behind those that filled the inbox */
    ncclResult_t rc = await(from, head, data, deadline);
    b->awaited = -1;
    kl_link_resume_all(b);
    return rc;
}

/* A late rank may itself be waiting: ask all ranks, to find the one that is silent. */
static ncclResult_t settle(struct kl_bootstrap *b, int peer, uint64_t deadline, ncclResult_t rc)
{
    if (rc == ncclRemoteError && kl_deadline_passed(deadline)) rc = kl_silence_explain(b, peer, rc);
    kl_state_waits_for(b, -1);
    return kl_failure_settle(b, peer, rc);
}

static ncclResult_t send_frame(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, const void *data,
                               uint64_t deadline)
{
    kl_state_waits_for(b, peer);
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = send_locked(b, peer, head, data, deadline);
    pthread_mutex_unlock(&b->lock);
    return settle(b, peer, deadline, rc);
}

static ncclResult_t recv_frame(struct kl_bootstrap *b, int peer, const struct kl_frame_head *head, void *data,
                               uint64_t deadline)
{
    kl_state_waits_for(b, peer);
    pthread_mutex_lock(&b->lock);
    ncclResult_t rc = recv_locked(b, peer, head, data, deadline);
    pthread_mutex_unlock(&b->lock);
    return settle(b, peer, deadline, rc);
}

ncclResult_t kl_bootstrap_send(struct kl_bootstrap *b, int peer, uint32_t tag, const void *data, size_t bytes)
{
    struct kl_frame_head head = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    KL_TRY(kl_state_check_message(b, peer, bytes));
    return send_frame(b, peer, &head, data, kl_deadline_in_ms(b->timeout_ms));
}

ncclResult_t kl_bootstrap_recv(struct kl_bootstrap *b, int peer, uint32_t tag, void *data, size_t bytes)
{
    struct kl_frame_head head = {.type = KL_FRAME_DATA, .tag = tag, .length = (uint32_t)bytes};

    KL_TRY(kl_state_check_message(b, peer, bytes));
    return recv_frame(b, peer, &head, data, kl_deadline_in_ms(b->timeout_ms));
}

/* ---- collective ---- */

static size_t piece_of(size_t left)
{
    return left < KL_FRAME_MAX ? left : KL_FRAME_MAX;
}

/* A step without data still exchanges one empty frame. */
ncclResult_t kl_exchange_step(struct kl_bootstrap *b, const struct kl_step *s, uint64_t deadline)
{
    size_t sent = 0, got = 0;
    bool first = true;

    for (; first || sent < s->out_bytes || got < s->in_bytes; first = false) {
        size_t out = piece_of(s->out_bytes - sent), in = piece_of(s->in_bytes - got);
        struct kl_frame_head head = {.type = KL_FRAME_STEP, .tag = b->exchanges, .length = (uint32_t)out};
        if (out || first) KL_TRY(send_frame(b, s->to, &head, s->out + sent, deadline));
        head.length = (uint32_t)in;
        if (in || first) KL_TRY(recv_frame(b, s->from, &head, s->in + got, deadline));
        sent += out;
        got += in;
    }
    return ncclSuccess;
}

/* Bruck: after step k every rank has 2^(k+1) records, its own and those of the ranks above it, in order. */
static ncclResult_t gather_upwards(struct kl_bootstrap *b, unsigned char *mine, size_t bytes)
{
    uint64_t deadline = kl_deadline_in_ms(b->timeout_ms);

    for (long have = 1; have < b->nranks; have *= 2) {
        long more = have < b->nranks - have ? have : b->nranks - have;
        struct kl_step s = {.to = kl_rank_at(b->rank, (int)-have, b->nranks),
                            .from = kl_rank_at(b->rank, (int)have, b->nranks),
                            .out = mine,
                            .in = mine + (size_t)have * bytes,
                            .out_bytes = (size_t)more * bytes,
                            .in_bytes = (size_t)more * bytes};
        KL_TRY(kl_exchange_step(b, &s, deadline));
    }
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_allgather(struct kl_bootstrap *b, void *all, size_t bytes)
{
    size_t n = (size_t)b->nranks, rank = (size_t)b->rank;
    unsigned char *to = all, *mine;

    KL_TRY(kl_state_check_owner(b));
    if (bytes > SIZE_MAX / n)
        return KL_FAIL(ncclInvalidArgument, "an all-gather of %zu records of %zu bytes", n, bytes);
    mine = malloc(n * bytes + 1);
    if (!mine) return KL_NOMEM("an all-gather");
    if (bytes) memcpy(mine, to + rank * bytes, bytes);
    b->exchanges++;
    ncclResult_t rc = gather_upwards(b, mine, bytes);
    if (!rc && bytes) { /* rotate from "mine first" to "rank 0 first" */
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

    KL_TRY(kl_state_check_owner(b));
    b->exchanges++;
    for (long distance = 1; distance < b->nranks; distance *= 2) {
        struct kl_step s = {.to = kl_rank_at(b->rank, (int)distance, b->nranks),
                            .from = kl_rank_at(b->rank, (int)-distance, b->nranks),
                            .out = nothing,
                            .in = nothing};
        KL_TRY(kl_exchange_step(b, &s, deadline));
    }
    return ncclSuccess;
}

void kl_bootstrap_phase(struct kl_bootstrap *b, const char *name)
{
    if (kl_state_inherited(b)) return;
    pthread_mutex_lock(&b->lock);
    b->phase = name;
    pthread_mutex_unlock(&b->lock);
}
