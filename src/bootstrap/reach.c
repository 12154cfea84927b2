/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who calls whom: whoever has something to send and no connection yet. When two ranks call each other at the same time,
 * the call of the lower rank counts: the lower answers "elsewhere" to the call it gets, the higher admits it, and the
 * higher's own call ends with "elsewhere". No frame is on the wire before a call has been admitted, so none is lost.
 */
#include "bootstrap/state.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/caller.h"

#include <stdio.h>

/* A connection that cannot be had is a failure of the bootstrap: whoever waits for the peer, or has queued something for it,
   hears why. */
static void fail_of(struct kl_contact *peer, ncclResult_t code)
{
    struct kl_notice why = {.culprit = peer->rank, .code = code};

    snprintf(why.text, sizeof why.text, "%s", kl_error_text());
    kl_bootstrap_fail(peer->bootstrap, &why, true);
}

/* ---- being called; on the event loop ---- */

static enum kl_verdict verdict_on(const struct kl_bootstrap *b, uint32_t caller)
{
    if (caller >= (uint32_t)b->nranks || (int)caller == b->rank) return KL_NOT_HERE;
    switch (b->peers[caller].state) {
    case KL_LINK_NONE:
    case KL_LINK_EXPECTED:
        return KL_WELCOME;
    case KL_LINK_CALLING:
        return (int)caller < b->rank ? KL_WELCOME : KL_ELSEWHERE;
    default:
        return KL_ELSEWHERE;
    }
}

void kl_reach_called(void *ctx, struct kl_guest *guest)
{
    struct kl_bootstrap *b = ctx;
    uint32_t caller = kl_guest_rank(guest);
    ncclResult_t rc = ncclSuccess;
    int fd;

    pthread_mutex_lock(&b->lock);
    enum kl_verdict verdict = verdict_on(b, caller);
    if (verdict != KL_WELCOME)
        kl_guest_decline(guest, verdict);
    else if (kl_guest_admit(guest, &fd))
        rc = kl_link_begin(&b->peers[caller], fd);
    pthread_mutex_unlock(&b->lock);
    if (rc) fail_of(&b->peers[caller], rc);
}

/* ---- calling ---- */

/* The caller's callback. The state is another one when the peer's call came through meanwhile. */
static void called(void *ctx, ncclResult_t rc, int fd)
{
    struct kl_contact *peer = ctx;
    struct kl_bootstrap *b = peer->bootstrap;

    pthread_mutex_lock(&b->lock);
    peer->caller = NULL;
    bool superseded = peer->state != KL_LINK_CALLING;
    if (superseded)
        kl_socket_close(fd);
    else if (fd >= 0)
        rc = kl_link_begin(peer, fd);
    else
        peer->state = rc ? KL_LINK_NONE : KL_LINK_EXPECTED;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (rc && !superseded) fail_of(peer, rc);
}

ncclResult_t kl_reach_begin(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    const struct kl_card *card = &peer->card;
    struct kl_call call = {.addresses = card->address,
                           .naddresses = card->naddresses,
                           .key = &b->key,
                           .hello = {.version = KL_PROTOCOL,
                                     .type = KL_CONNECTION_PEER,
                                     .side = KL_CALLER,
                                     .from = (uint32_t)b->rank,
                                     .to = (uint32_t)peer->rank},
                           .retry = b->retry,
                           .listening = true,
                           .quiet = b->failed, /* it is told of that, if it can be reached */
                           .scope = b->scope};
    char text[256], who[KL_WHO_TEXT], address[KL_ADDRESS_TEXT];

    if (peer->state != KL_LINK_NONE || peer->caller || !card->naddresses) return ncclSuccess;
    snprintf(text, sizeof text, "rank %d cannot connect to %s at %s in phase %s", b->rank, kl_who(b, peer->rank, who),
             kl_address_format(&card->address[0], address), b->phase);
    KL_TRY(kl_caller_start(b->loop, &call, kl_deadline_in_ms(b->timeout_ms), text, called, peer, &peer->caller));
    peer->state = KL_LINK_CALLING;
    return ncclSuccess;
}

void kl_reach_stop(struct kl_contact *peer)
{
    pthread_mutex_lock(&peer->bootstrap->lock);
    struct kl_caller *caller = peer->caller;
    peer->caller = NULL;
    pthread_mutex_unlock(&peer->bootstrap->lock);
    kl_caller_cancel(caller);
}

/* ---- waiting ---- */

static bool busy(const struct kl_contact *peer)
{
    if (peer->state == KL_LINK_CALLING || peer->state == KL_LINK_EXPECTED) return true;
    return peer->state == KL_LINK_UP && peer->first_out && !peer->mute && !peer->bootstrap->aborted;
}

void kl_reach_finish(struct kl_bootstrap *b, uint64_t deadline)
{
    pthread_mutex_lock(&b->lock);
    for (int rank = 0; rank < b->nranks; rank++)
        while (busy(&b->peers[rank]) && kl_bootstrap_wait(b, deadline)) continue;
    pthread_mutex_unlock(&b->lock);
}

static ncclResult_t not_connected(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_WHO_TEXT];

    return KL_FAIL(ncclRemoteError, "rank %d: %s has not connected within %g s in phase %s; is it stuck?", b->rank,
                   kl_who(b, peer->rank, who), (double)b->timeout_ms / 1000, b->phase);
}

ncclResult_t kl_reach(struct kl_contact *peer, uint64_t deadline)
{
    struct kl_bootstrap *b = peer->bootstrap;

    for (;;) {
        KL_TRY(kl_bootstrap_check(b));
        if (peer->state == KL_LINK_UP) return ncclSuccess;
        if (peer->state == KL_LINK_LEFT || peer->state == KL_LINK_LOST) return kl_link_ended(peer);
        KL_TRY(kl_reach_begin(peer));
        if (!kl_bootstrap_wait(b, deadline)) return not_connected(peer);
    }
}
