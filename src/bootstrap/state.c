/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/state.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/keys.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- life ---- */

static void init_lock(struct kl_bootstrap *b)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

ncclResult_t kl_state_create(int rank, int nranks, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b = calloc(1, sizeof *b);

    if (!b) return KL_NOMEM("a bootstrap");
    b->rank = rank;
    b->nranks = nranks;
    b->stop = b->outer = KL_CANCEL_NONE;
    b->phase = "join";
    b->awaited = b->waits_for = -1;
    init_lock(b);
    b->contacts = calloc((size_t)nranks, sizeof *b->contacts);
    b->address_records = calloc((size_t)nranks, sizeof *b->address_records);
    if (!b->contacts || !b->address_records) {
        kl_state_free(b);
        return KL_NOMEM("a bootstrap");
    }
    *out = b;
    return ncclSuccess;
}

struct kl_key kl_bootstrap_key(const struct kl_bootstrap *b, const char *label)
{
    return kl_key_derive(&b->key, label, NULL, 0);
}

void kl_state_free(struct kl_bootstrap *b)
{
    if (!b) return;
    for (int rank = 0; b->contacts && rank < b->nranks; rank++) free(kl_contact_find(b, rank));
    kl_cancel_fini(&b->outer);
    kl_cancel_fini(&b->stop);
    kl_key_wipe(&b->key);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b->contacts);
    free(b->address_records);
    free(b);
}

ncclResult_t kl_contact_make(struct kl_bootstrap *b, int rank, struct kl_contact **out)
{
    struct kl_contact *c = kl_contact_find(b, rank);

    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c) return KL_NOMEM("a contact");
        c->bootstrap = b;
        c->rank = rank;
        c->fd = -1;
        kl_store_release(&b->contacts[rank], c); /* pairs with kl_contact_find */
    }
    *out = c;
    return ncclSuccess;
}

/* ---- checks ---- */

void kl_state_count_message(struct kl_bootstrap *b, size_t bytes)
{
    b->traffic.messages++;
    b->traffic.bytes += bytes;
}

struct kl_bootstrap_traffic kl_bootstrap_traffic(struct kl_bootstrap *b)
{
    struct kl_bootstrap_traffic traffic = {0};

    if (kl_state_inherited(b)) return traffic;
    pthread_mutex_lock(&b->lock);
    traffic = b->traffic;
    pthread_mutex_unlock(&b->lock);
    return traffic;
}

const char *kl_rank_describe(const struct kl_bootstrap *b, int rank, char text[KL_RANK_DESCRIPTION])
{
    const struct kl_address_record *record = &b->address_records[rank];

    if (record->host[0])
        snprintf(text, KL_RANK_DESCRIPTION, "rank %d (host %s, pid %llu)", rank, record->host,
                 (unsigned long long)record->pid);
    else
        snprintf(text, KL_RANK_DESCRIPTION, "rank %d", rank);
    return text;
}

bool kl_state_wait(struct kl_bootstrap *b, uint64_t deadline)
{
    struct timespec t = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};

    if (deadline == KL_NO_DEADLINE) {
        pthread_cond_wait(&b->changed, &b->lock);
        return true;
    }
    return !pthread_cond_timedwait(&b->changed, &b->lock, &t) || !kl_deadline_passed(deadline);
}

void kl_state_waits_for(struct kl_bootstrap *b, int peer)
{
    pthread_mutex_lock(&b->lock);
    b->waits_for = peer;
    pthread_mutex_unlock(&b->lock);
}

ncclResult_t kl_state_late(const char *text)
{
    kl_error_adopt(text);
    return ncclRemoteError;
}

ncclResult_t kl_state_check(struct kl_bootstrap *b)
{
    if (b->aborted) return KL_FAIL(ncclInternalError, "rank %d: aborted in phase %s", b->rank, b->phase);
    if (b->failed) kl_error_adopt(b->failure.text);
    return b->failed ? b->failure.code : ncclSuccess;
}

/* In a child of fork, the connections are the parent's, and locks may be held by threads that exist there only. */
bool kl_state_inherited(const struct kl_bootstrap *b)
{
    return b->loop && kl_loop_inherited(b->loop);
}

ncclResult_t kl_state_check_owner(const struct kl_bootstrap *b)
{
    if (!kl_state_inherited(b)) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "rank %d is the parent process: a child of fork cannot speak for it", b->rank);
}

ncclResult_t kl_state_check_message(const struct kl_bootstrap *b, int peer, size_t bytes)
{
    KL_TRY(kl_state_check_owner(b));
    if (peer < 0 || peer >= b->nranks) return KL_FAIL(ncclInvalidArgument, "no rank %d among %d", peer, b->nranks);
    if (bytes > KL_FRAME_MAX)
        return KL_FAIL(ncclInvalidArgument, "a bootstrap message of %zu bytes; %u is the most", bytes, KL_FRAME_MAX);
    return ncclSuccess;
}
