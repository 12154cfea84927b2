/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/failure.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/link.h"

#include <stdio.h>

/* ---- the first failure ---- */

void kl_failure_tell(struct kl_contact *peer)
{
    unsigned char wire[KL_NOTICE_WIRE_MAX];
    size_t bytes = kl_notice_encode(&peer->bootstrap->failure, wire);
    struct kl_frame_head head = {.type = KL_FRAME_NOTICE, .length = (uint32_t)bytes};

    kl_link_post(peer, &head, wire);
}

/* Every rank forwards the first notice to all its connections, so that all ranks get it. Under lock. */
static void spread(struct kl_bootstrap *b)
{
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (peer && peer->state == KL_LINK_UP) kl_failure_tell(peer);
    }
}

/* False: there has been an earlier failure. Without lock. */
static bool record(struct kl_bootstrap *b, const struct kl_notice *why)
{
    pthread_mutex_lock(&b->lock);
    bool first = !b->failed;
    if (first) {
        b->failed = true;
        b->failure = *why;
        kl_store_release(&b->over, true); /* pairs with kl_bootstrap_poll */
        spread(b);
        kl_stop_raise(&b->stop);
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    if (first) KL_INFO(KL_BOOTSTRAP, "rank %d: failure: %s", b->rank, why->text);
    return first;
}

void kl_failure_hear(struct kl_bootstrap *b, const struct kl_notice *why)
{
    if (record(b, why) && b->on_failure) b->on_failure(b->ctx, why->culprit, why->code, why->text);
}

static struct kl_notice notice_of(int culprit, ncclResult_t code, const char *text)
{
    struct kl_notice why = {.culprit = culprit, .code = code};

    snprintf(why.text, sizeof why.text, "%s", text);
    return why;
}

void kl_bootstrap_report(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text)
{
    struct kl_notice why = notice_of(culprit, code, text);

    if (!kl_state_inherited(b)) (void)record(b, &why);
}

ncclResult_t kl_failure_settle(struct kl_bootstrap *b, int peer, ncclResult_t rc)
{
    if (rc == ncclRemoteError) kl_bootstrap_report(b, peer, rc, kl_error_text());
    if (rc == ncclSystemError) kl_bootstrap_report(b, b->rank, rc, kl_error_text());
    return rc;
}

/* ---- possible consequences of another failure ---- */

enum {
    WAKE_MS = 1000,       /* a failure notice reaches all ranks in much less, over existing connections */
    LATE_WAKE_MS = 13000, /* more than the diagnosis of a timeout takes (KL_SILENCE_MS) */
};

ncclResult_t kl_bootstrap_cause(struct kl_bootstrap *b, ncclResult_t rc)
{
    uint64_t deadline = kl_deadline_in_ms(rc == ncclRemoteError ? WAKE_MS : 0);

    if (kl_state_inherited(b)) return rc;
    pthread_mutex_lock(&b->lock);
    while (!b->failed && !b->aborted && kl_state_wait(b, deadline)) continue;
    ncclResult_t why = kl_state_check(b);
    pthread_mutex_unlock(&b->lock);
    return why ? why : rc;
}

static void suspect(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text, uint64_t ms)
{
    if (kl_state_inherited(b)) return;
    pthread_mutex_lock(&b->lock);
    if (!b->suspects && !b->failed) {
        b->suspects = true;
        b->suspicion = notice_of(culprit, code, text);
        kl_source_deadline(b->clock, kl_deadline_in_ms(ms));
    }
    pthread_mutex_unlock(&b->lock);
}

void kl_bootstrap_suspect(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text)
{
    suspect(b, culprit, code, text, WAKE_MS);
}

void kl_failure_suspect_late(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text)
{
    suspect(b, culprit, code, text, LATE_WAKE_MS);
}

void kl_failure_trust(struct kl_bootstrap *b, int rank)
{
    if (b->suspects && b->suspicion.culprit == rank) b->suspects = false;
}

void kl_failure_on_clock(void *ctx, uint32_t events)
{
    struct kl_bootstrap *b = ctx;

    (void)events;
    pthread_mutex_lock(&b->lock);
    bool suspects = b->suspects;
    struct kl_notice why = b->suspicion;
    pthread_mutex_unlock(&b->lock);
    if (suspects) kl_failure_hear(b, &why);
}

/* ---- abort ---- */

void kl_bootstrap_abort(struct kl_bootstrap *b)
{
    if (kl_state_inherited(b)) return;
    pthread_mutex_lock(&b->lock);
    b->aborted = true;
    kl_store_release(&b->over, true); /* pairs with kl_bootstrap_poll */
    kl_stop_raise(&b->stop);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}
