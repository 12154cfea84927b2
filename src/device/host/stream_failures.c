/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/stream_failures.h"

#include <stdio.h>

static const struct kl_stream_failure none = {.code = ncclSuccess, .reported = true};

void kl_failures_clear(struct kl_stream_failures *f)
{
    pthread_mutex_lock(&f->lock);
    f->n = 0;
    f->last = none;
    kl_store_relaxed(&f->any, 0);
    pthread_mutex_unlock(&f->lock);
}

void kl_failures_init(struct kl_stream_failures *f)
{
    pthread_mutex_init(&f->lock, NULL);
    kl_failures_clear(f);
}

static void note_any(struct kl_stream_failures *f)
{
    kl_store_release(&f->any, f->n || !f->last.reported); /* pairs with kl_failures_query */
}

/* Keep the failure of an owner that has ended. If two were never reported, one sentence stands for both. */
static void keep_last(struct kl_stream_failures *f, const struct kl_stream_failure *failure, bool reported)
{
    uint64_t earlier = f->last.reported ? UINT64_MAX : f->last.ticket;

    snprintf(f->last_text, sizeof f->last_text, "%s", failure->text);
    reported = reported && f->last.reported;
    f->last = (struct kl_stream_failure){.text = f->last_text, .code = failure->code, .reported = reported};
    f->last.ticket = failure->ticket < earlier ? failure->ticket : earlier;
    kl_fetch_add_acq_rel(&f->ended, 1);
}

static int find_owner(const struct kl_stream_failures *f, const void *owner)
{
    int i = 0;

    while (i < f->n && f->of[i].owner != owner) i++;
    return i;
}

void kl_failures_add(struct kl_stream_failures *f, const void *owner, uint64_t ticket, ncclResult_t code,
                     const char *text)
{
    struct kl_stream_failure failure = {.owner = owner, .text = text, .code = code, .ticket = ticket};

    pthread_mutex_lock(&f->lock);
    int i = find_owner(f, owner);
    if (i == KL_STREAM_FAILURES)
        keep_last(f, &failure, false);
    else if (i == f->n)
        f->of[f->n++] = failure;
    note_any(f);
    pthread_mutex_unlock(&f->lock);
}

void kl_failures_end(struct kl_stream_failures *f, const void *owner, bool tell)
{
    if (!kl_load_acquire(&f->any)) return;
    pthread_mutex_lock(&f->lock);
    int i = find_owner(f, owner);
    if (i < f->n) {
        keep_last(f, &f->of[i], f->of[i].reported || !tell);
        for (f->n--; i < f->n; i++) f->of[i] = f->of[i + 1];
    }
    note_any(f);
    pthread_mutex_unlock(&f->lock);
}

static struct kl_stream_failure *find_failure(struct kl_stream_failures *f, uint64_t end, uint64_t ended_before)
{
    bool tell_last = !f->last.reported || kl_load_relaxed(&f->ended) != ended_before;

    for (int i = 0; i < f->n; i++)
        if (f->of[i].ticket < end) return &f->of[i];
    return tell_last && f->last.code && f->last.ticket < end ? &f->last : NULL;
}

ncclResult_t kl_failures_query(struct kl_stream_failures *f, uint64_t end, uint64_t ended_before)
{
    ncclResult_t rc = ncclSuccess;

    if (!kl_load_acquire(&f->any) && kl_failures_ended(f) == ended_before) return ncclSuccess;
    pthread_mutex_lock(&f->lock);
    struct kl_stream_failure *failure = find_failure(f, end, ended_before);
    if (failure) {
        rc = failure->code;
        failure->reported = true;
        kl_error_adopt(failure->text);
        note_any(f);
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}
