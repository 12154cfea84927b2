/* SPDX-License-Identifier: Apache-2.0 */
/* The rank that first has something to send opens the connection. When two ranks call each other at the same time,
 * the call of the lower rank prevails: the lower answers "elsewhere" to the call it gets, the higher admits it, and
 * the higher's own call ends with "elsewhere". No frame is sent before a call has been admitted, so none is lost. */
#include "bootstrap/peer_connect.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/dialer.h"
#include "bootstrap/failure.h"
#include "bootstrap/link.h"
#include "bootstrap/liveness.h"

#include <errno.h>
#include <stdio.h>

enum { LATE_BY_MS = 100 }; /* a call ends this long before its deadline, if another round would not fit */

/* A connection that cannot be made fails the bootstrap: threads that wait for the peer, or have queued messages for
 * it, get the reason. But a peer that failed, and told other ranks, cannot be reached either: wait for a notice. */
static void suspect(struct kl_bootstrap *b, int peer, ncclResult_t code)
{
    kl_bootstrap_suspect(b, code == ncclSystemError ? b->rank : peer, code, kl_error_text());
}

/* A call has failed. Its host may be fine, and be waiting for another rank before it joins. */
static void suspect_failed_call(const struct kl_contact *peer, ncclResult_t code)
{
    bool late = kl_now_ns() + LATE_BY_MS * 1000000ull >= peer->call_deadline;

    if (late && code == ncclRemoteError)
        kl_failure_suspect_late(peer->bootstrap, peer->rank, code, kl_error_text());
    else
        suspect(peer->bootstrap, peer->rank, code);
}

/* A peer that connects after a failure is told of it. Under lock. */
static ncclResult_t connected(struct kl_contact *peer, const struct kl_connection *connection)
{
    KL_TRY(kl_link_begin(peer, connection));
    kl_liveness_watch(peer);
    kl_failure_clear_suspicion(peer->bootstrap, peer->rank);
    if (peer->bootstrap->failed) kl_failure_send_notice(peer);
    return ncclSuccess;
}

/* ---- incoming calls; on the event loop ---- */

/* Decide about a caller; from here on a contact exists. */
static enum kl_handshake_outcome judge(struct kl_bootstrap *b, uint32_t caller, struct kl_contact **contact)
{
    if (caller >= (uint32_t)b->nranks || (int)caller == b->rank) return KL_NOT_HERE;
    if (kl_contact_make(b, (int)caller, contact)) return KL_NOT_HERE;
    switch ((*contact)->state) {
    case KL_LINK_NONE:
    case KL_LINK_EXPECTED:
    case KL_LINK_UNREACHED:
        return KL_ADMITTED;
    case KL_LINK_CALLING:
        return (int)caller < b->rank ? KL_ADMITTED : KL_ELSEWHERE;
    default:
        return KL_ELSEWHERE;
    }
}

static ncclResult_t no_room_for(const struct kl_contact *peer)
{
    const struct kl_bootstrap *b = peer->bootstrap;
    char me[KL_RANK_DESCRIPTION], who[KL_RANK_DESCRIPTION];

    return KL_FAIL_ERRNO("%s cannot accept the connection of %s", kl_rank_describe(b, b->rank, me),
                         kl_rank_describe(b, peer->rank, who));
}

void kl_peer_connect_on_call(void *ctx, struct kl_incoming *incoming)
{
    struct kl_bootstrap *b = ctx;
    uint32_t caller = kl_incoming_rank(incoming);
    struct kl_contact *contact = NULL;
    struct kl_connection connection;
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&b->lock);
    enum kl_handshake_outcome outcome = judge(b, caller, &contact);
    if (outcome != KL_ADMITTED) {
        kl_incoming_decline(incoming, outcome);
    } else if (kl_incoming_admit(incoming, &connection)) {
        rc = connected(contact, &connection);
        kl_connection_forget(&connection);
    } else if (errno == EMFILE) {
        rc = no_room_for(contact);
    }
    pthread_mutex_unlock(&b->lock);
    if (rc) suspect(b, (int)caller, rc);
}

/* ---- calling ---- */

/* The caller's callback. The state has changed when the peer's call was admitted meanwhile. */
static void called(void *ctx, ncclResult_t rc, const struct kl_connection *connection)
{
    struct kl_contact *peer = ctx;
    struct kl_bootstrap *b = peer->bootstrap;

    pthread_mutex_lock(&b->lock);
    peer->caller = NULL;
    bool superseded = peer->state != KL_LINK_CALLING;
    if (superseded)
        kl_socket_close(connection ? connection->fd : -1);
    else if (connection)
        rc = connected(peer, connection);
    else
        peer->state = rc ? KL_LINK_UNREACHED : KL_LINK_EXPECTED;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (rc && !superseded) suspect_failed_call(peer, rc);
}

ncclResult_t kl_peer_connect_begin(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    const struct kl_address_record *record = &b->address_records[peer->rank];
    struct kl_call call = {.addresses = record->address,
                           .naddresses = record->naddresses,
                           .key = &b->key,
                           .hello = {.version = KL_PROTOCOL,
                                     .type = KL_CONNECTION_PEER,
                                     .side = KL_CALLER,
                                     .from = (uint32_t)b->rank,
                                     .to = (uint32_t)peer->rank,
                                     .name = b->name},
                           .retry = b->retry,
                           .deadline = kl_deadline_in_ms(b->timeout_ms),
                           .listening = true,
                           .early = b->early,
                           .quiet = b->failed, /* after a failure: the call only serves to tell the peer */
                           .scope = b->scope,
                           .place = b->place};
    char text[KL_CALL_TEXT], who[KL_RANK_DESCRIPTION], address[KL_ADDRESS_TEXT];

    if (peer->state != KL_LINK_NONE || peer->caller || !record->naddresses) return ncclSuccess;
    snprintf(text, sizeof text, "rank %d cannot connect to %s at %s in phase %s", b->rank,
             kl_rank_describe(b, peer->rank, who), kl_address_format(&record->address[0], address), b->phase);
    call.error_prefix = text;
    peer->call_deadline = call.deadline;
    KL_TRY(kl_dialer_start(b->loop, &call, called, peer, &peer->caller));
    peer->state = KL_LINK_CALLING;
    return ncclSuccess;
}

static ncclResult_t stop_calls(void *ctx)
{
    struct kl_bootstrap *b = ctx;

    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (!peer) continue;
        kl_dialer_cancel(peer->caller); /* on the loop, the only thread that changes it */
        peer->caller = NULL;
    }
    return ncclSuccess;
}

void kl_peer_connect_cancel_all(struct kl_bootstrap *b)
{
    (void)kl_loop_run(b->loop, stop_calls, b);
}

/* ---- waiting ---- */

static bool finished(const struct kl_contact *peer)
{
    if (peer->state == KL_LINK_CALLING || peer->state == KL_LINK_EXPECTED) return false;
    return peer->bootstrap->aborted || !kl_link_flushing(peer);
}

void kl_peer_connect_finish(struct kl_bootstrap *b, uint64_t deadline)
{
    pthread_mutex_lock(&b->lock);
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        while (peer && !finished(peer) && kl_state_wait(b, deadline)) continue;
    }
    pthread_mutex_unlock(&b->lock);
}

static ncclResult_t not_connected(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    char who[KL_RANK_DESCRIPTION], text[KL_ERROR_TEXT];

    snprintf(text, sizeof text, "rank %d: %s has not connected within %g s in phase %s; is it stuck?", b->rank,
             kl_rank_describe(b, peer->rank, who), (double)b->timeout_ms / 1000, b->phase);
    return kl_state_late(text);
}

ncclResult_t kl_peer_connect(struct kl_contact *peer, uint64_t deadline)
{
    struct kl_bootstrap *b = peer->bootstrap;

    for (;;) {
        KL_TRY(kl_state_check(b));
        if (peer->state == KL_LINK_UP) return ncclSuccess;
        if (peer->state == KL_LINK_LEFT || peer->state == KL_LINK_LOST) return kl_link_ended(peer);
        KL_TRY(kl_peer_connect_begin(peer));
        if (!kl_state_wait(b, deadline)) return not_connected(peer);
    }
}
