/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/state.h"

#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

const char *kl_who(const struct kl_bootstrap *b, int rank, char text[KL_WHO_TEXT])
{
    const struct kl_card *card = rank == b->rank ? &b->me : &b->peers[rank].card;

    if (card->host[0])
        snprintf(text, KL_WHO_TEXT, "rank %d (host %s, pid %llu)", rank, card->host, (unsigned long long)card->pid);
    else
        snprintf(text, KL_WHO_TEXT, "rank %d", rank);
    return text;
}

/* In a child of fork, the connections are the parent's, and locks may be held by threads that exist there only. */
bool kl_bootstrap_inherited(const struct kl_bootstrap *b)
{
    return b->loop && kl_loop_inherited(b->loop);
}

ncclResult_t kl_bootstrap_check(struct kl_bootstrap *b)
{
    if (b->aborted) return KL_FAIL(ncclInternalError, "rank %d: aborted in phase %s", b->rank, b->phase);
    if (b->failed) kl_error_adopt(b->failure.text);
    return b->failed ? b->failure.code : ncclSuccess;
}

void kl_bootstrap_tell(struct kl_contact *peer)
{
    unsigned char wire[KL_NOTICE_WIRE_MAX];
    size_t bytes = kl_notice_encode(&peer->bootstrap->failure, wire);
    struct kl_frame frame = {.type = KL_FRAME_NOTICE, .length = (uint32_t)bytes};

    kl_link_post(peer, &frame, wire);
}

/* Every rank passes the first notice it gets on to all it is connected with; so it reaches all. Under lock. */
static void spread(struct kl_bootstrap *b)
{
    for (int rank = 0; rank < b->nranks; rank++)
        if (b->peers[rank].state == KL_LINK_UP) kl_bootstrap_tell(&b->peers[rank]);
}

void kl_bootstrap_fail(struct kl_bootstrap *b, const struct kl_notice *why, bool tell_owner)
{
    pthread_mutex_lock(&b->lock);
    bool first = !b->failed;
    if (first) {
        b->failed = true;
        b->failure = *why;
        kl_store_release(&b->over, true);
        spread(b);
        kl_stop_raise(&b->stop);
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    if (!first) return;
    KL_INFO(KL_BOOTSTRAP, "rank %d: failure: %s", b->rank, why->text);
    if (tell_owner && b->on_failure) b->on_failure(b->ctx, why->culprit, why->code, why->text);
}

ncclResult_t kl_bootstrap_give_up(struct kl_bootstrap *b, int culprit, ncclResult_t rc)
{
    kl_bootstrap_report(b, culprit, rc, kl_error_text());
    return rc;
}

void kl_bootstrap_report(struct kl_bootstrap *b, int culprit, ncclResult_t code, const char *text)
{
    struct kl_notice why = {.culprit = culprit, .code = code};

    if (kl_bootstrap_inherited(b)) return;
    snprintf(why.text, sizeof why.text, "%s", text);
    kl_bootstrap_fail(b, &why, false);
}

void kl_bootstrap_abort(struct kl_bootstrap *b)
{
    if (kl_bootstrap_inherited(b)) return;
    pthread_mutex_lock(&b->lock);
    b->aborted = true;
    kl_store_release(&b->over, true);
    kl_stop_raise(&b->stop);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void kl_bootstrap_phase(struct kl_bootstrap *b, const char *name)
{
    if (kl_bootstrap_inherited(b)) return;
    pthread_mutex_lock(&b->lock);
    b->phase = name;
    pthread_mutex_unlock(&b->lock);
}
