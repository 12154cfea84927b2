/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who calls whom: whoever has something to send and no connection yet. When two ranks call each other at the same time,
 * the call of the lower rank counts: the lower answers "elsewhere" to the call it gets, the higher admits it, and the
 * higher's own call ends with "elsewhere". No frame is on the wire before a call has been admitted, so none is lost.
 */
#include "bootstrap/state.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/call.h"

#include <stdio.h>

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
    int fd;

    pthread_mutex_lock(&b->lock);
    enum kl_verdict verdict = verdict_on(b, kl_guest_rank(guest));
    if (verdict != KL_WELCOME)
        kl_guest_decline(guest, verdict);
    else if (kl_guest_admit(guest, &fd))
        kl_link_begin(&b->peers[kl_guest_rank(guest)], fd);
    pthread_mutex_unlock(&b->lock);
}

/* ---- calling ---- */

/* The call itself, without lock. `*fd` -1: the connection is, or will be, the one that the peer opens. */
static ncclResult_t call_peer(struct kl_contact *peer, const struct kl_card *card, const char *who_calls_whom,
                              const struct kl_wait *wait, int *fd)
{
    struct kl_bootstrap *b = peer->bootstrap;
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
                           .scope = b->scope};

    return kl_call(&call, wait, who_calls_whom, fd);
}

/* Under lock, released during the call. */
static ncclResult_t call(struct kl_contact *peer, uint64_t deadline)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_wait wait = {.deadline = deadline, .stop = &b->stop};
    struct kl_card card = peer->card;
    char text[256], who[KL_WHO_TEXT], address[KL_ADDRESS_TEXT];
    int fd = -1;

    snprintf(text, sizeof text, "rank %d cannot connect to %s at %s in phase %s", b->rank, kl_who(b, peer->rank, who),
             kl_address_format(&card.address[0], address), b->phase);
    peer->state = KL_LINK_CALLING;
    pthread_mutex_unlock(&b->lock);
    ncclResult_t rc = call_peer(peer, &card, text, &wait, &fd);
    pthread_mutex_lock(&b->lock);

    if (peer->state != KL_LINK_CALLING) { /* the peer's call came through meanwhile */
        kl_socket_close(fd);
        return ncclSuccess;
    }
    peer->state = rc ? KL_LINK_NONE : KL_LINK_EXPECTED;
    if (rc) {
        ncclResult_t why = kl_bootstrap_check(b); /* what made the call stop, if something did */
        return why ? why : rc;
    }
    return fd < 0 ? ncclSuccess : kl_link_begin(peer, fd);
}

/* Its own stop has been raised by the failure, so this call has none. "Elsewhere" means that the peer is calling us. */
static void call_to_tell(struct kl_contact *peer, uint64_t deadline)
{
    struct kl_bootstrap *b = peer->bootstrap;
    struct kl_wait wait = {.deadline = deadline};
    struct kl_card card = peer->card;
    int fd = -1;

    peer->state = KL_LINK_CALLING;
    pthread_mutex_unlock(&b->lock);
    ncclResult_t rc = call_peer(peer, &card, "telling of a failure", &wait, &fd);
    pthread_mutex_lock(&b->lock);
    if (peer->state != KL_LINK_CALLING) {
        kl_socket_close(fd);
    } else if (fd >= 0) {
        (void)kl_link_begin(peer, fd);
    } else if (!rc) {
        peer->state = KL_LINK_EXPECTED;
    }
}

void kl_reach_to_tell(struct kl_contact *peer, uint64_t deadline)
{
    int quiet = kl_error_quiet(1);

    pthread_mutex_lock(&peer->bootstrap->lock);
    if (peer->state == KL_LINK_NONE && peer->card.naddresses) call_to_tell(peer, deadline);
    pthread_mutex_unlock(&peer->bootstrap->lock);
    kl_error_quiet(quiet);
}

void kl_reach_await_calls(struct kl_bootstrap *b, uint64_t deadline)
{
    pthread_mutex_lock(&b->lock);
    for (int rank = 0; rank < b->nranks; rank++)
        while (b->peers[rank].state == KL_LINK_EXPECTED && kl_bootstrap_wait(b, deadline)) continue;
    pthread_mutex_unlock(&b->lock);
}

static ncclResult_t not_called(struct kl_contact *peer)
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
        if (peer->state == KL_LINK_NONE && peer->card.naddresses)
            KL_TRY(call(peer, deadline));
        else if (!kl_bootstrap_wait(b, deadline))
            return not_called(peer);
    }
}
