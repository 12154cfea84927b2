/* SPDX-License-Identifier: Apache-2.0 */
/* Life, and the calls of a program. */
#include "tagged/tagged.h"

#include "base/clock.h"
#include "bootstrap/keys.h"
#include "tagged/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

ncclResult_t kl_tagged_create(const struct kl_tagged_config *config, struct kl_tagged **tagged)
{
    struct kl_tagged *m = calloc(1, sizeof *m);
    struct kl_tagged_peer *peers = calloc((size_t)config->nranks, sizeof *peers);
    pthread_condattr_t monotonic;

    if (!m || !peers) {
        free(m);
        free(peers);
        return KL_NOMEM("messages");
    }
    m->config = *config;
    m->peer = peers;
    m->handle = kl_tagged_handle;
    kl_key_random(&m->mark, sizeof m->mark);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *tagged = m;
    return ncclSuccess;
}

void kl_tagged_free(struct kl_tagged *m)
{
    if (!m) return;
    for (struct kl_tagged_message *a; (a = m->first_here);) {
        m->first_here = a->next;
        free(a);
    }
    for (uint32_t i = 0; i < m->nrequests; i++) free(m->request[i]);
    free(m->request);
    kl_tagged_near_free(m);
    free(m->peer);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- sending ---- */

/* To this rank itself: there is no wire. */
static ncclResult_t send_here(struct kl_tagged *m, struct kl_tagged_request *s)
{
    struct kl_tagged_request *r = kl_tagged_take_receive(m, s->peer, s->tag);

    if (r) {
        kl_tagged_fill(m, r, s->peer, s->tag, s->data, s->room);
        kl_tagged_end(m, s, ncclSuccess);
        return ncclSuccess;
    }
    bool small = s->room <= KL_TAGGED_EAGER_BYTES;
    struct kl_tagged_message *a = malloc(sizeof *a + (small ? s->room : 0));
    if (!a) return KL_NOMEM("a message");
    *a = (struct kl_tagged_message){.source = s->peer, .tag = s->tag, .bytes = s->room, .offer = small ? 0 : s->id};
    if (small && s->room) memcpy(a->data, s->data, s->room);
    kl_tagged_queue_message(m, a);
    if (small) kl_tagged_end(m, s, ncclSuccess);
    return ncclSuccess;
}

static ncclResult_t send_with_data(struct kl_tagged *m, struct kl_tagged_request *s)
{
    const struct kl_tagged_head head = {.kind = KL_TAGGED_EAGER, .tag = s->tag, .bytes = s->room};

    KL_TRY(kl_tagged_post(m, s->peer, &head, s->data, s->room));
    m->peer[s->peer].unpaid += s->room + KL_TAGGED_MESSAGE_WEIGHT;
    kl_tagged_end(m, s, ncclSuccess);
    return ncclSuccess;
}

static ncclResult_t offer(struct kl_tagged *m, struct kl_tagged_request *s)
{
    const struct kl_tagged_head head = {.kind = KL_TAGGED_OFFER, .tag = s->tag, .bytes = s->room, .from = s->id};
    const struct kl_tagged_place place = {
        .process = kl_cma_self(&m->mark), .at = (uint64_t)(uintptr_t)s->data, .readable = m->config.reads};

    return kl_tagged_post(m, s->peer, &head, &place, sizeof place);
}

static ncclResult_t send(struct kl_tagged *m, struct kl_tagged_request *s)
{
    const struct kl_tagged_peer *to = &m->peer[s->peer];

    if (s->peer == m->config.rank) return send_here(m, s);
    if (to->left) {
        kl_tagged_has_left(m, s, s->peer);
        return ncclSuccess;
    }
    bool small =
        s->room <= KL_TAGGED_EAGER_BYTES && to->unpaid + s->room + KL_TAGGED_MESSAGE_WEIGHT <= KL_TAGGED_CREDIT;
    ncclResult_t rc = small ? send_with_data(m, s) : offer(m, s);
    if (rc != ncclInProgress) return rc;
    kl_tagged_has_left(m, s, s->peer);
    return ncclSuccess;
}

/* ---- receiving ---- */

static ncclResult_t await_message(struct kl_tagged *m, struct kl_tagged_request *r)
{
    bool one = r->peer != KL_TAGGED_ANY && r->peer != m->config.rank;

    if (one && m->peer[r->peer].left) {
        kl_tagged_has_left(m, r, r->peer);
        return ncclSuccess;
    }
    kl_tagged_queue(m, r);
    return one ? m->config.watch(m->config.ctx, r->peer) : ncclSuccess;
}

static ncclResult_t receive(struct kl_tagged *m, struct kl_tagged_request *r)
{
    struct kl_tagged_message *a = kl_tagged_find_message(m, r->peer, r->tag, true);

    if (!a) return await_message(m, r);
    kl_tagged_deliver(m, r, a);
    free(a);
    return ncclSuccess;
}

/* ---- calls ---- */

static ncclResult_t begin(struct kl_tagged *m, const struct kl_tagged_request *call, uint64_t *id)
{
    struct kl_tagged_request *r;

    if (m->failed) return ncclInternalError; /* the caller says why */
    KL_TRY(kl_tagged_new(m, &r));
    r->sends = call->sends;
    r->peer = call->peer;
    r->tag = call->tag;
    r->data = call->data;
    r->room = call->room;
    r->timeout_ns = call->timeout_ns;
    if (r->sends) r->status = (struct kl_tagged_status){.source = r->peer, .tag = r->tag, .bytes = r->room};
    *id = r->id;
    ncclResult_t rc = r->sends ? send(m, r) : receive(m, r);
    if (!rc) return ncclSuccess;
    if (r->queued) kl_tagged_unqueue(m, r);
    kl_tagged_drop(m, r);
    return rc;
}

static ncclResult_t call(struct kl_tagged *m, const struct kl_tagged_request *wanted, uint64_t *id)
{
    kl_tagged_lock(m);
    bool failed = m->failed;
    ncclResult_t rc = begin(m, wanted, id);
    kl_tagged_unlock(m);
    return failed ? m->config.failure(m->config.ctx) : rc;
}

ncclResult_t kl_tagged_send(struct kl_tagged *m, const void *data, size_t bytes, int peer, int tag, uint64_t timeout_ns,
                            uint64_t *request)
{
    const struct kl_tagged_request s = {.sends = true,
                                        .peer = peer,
                                        .tag = tag,
                                        .data = (char *)(uintptr_t)data,
                                        .room = bytes,
                                        .timeout_ns = timeout_ns};

    return call(m, &s, request);
}

ncclResult_t kl_tagged_receive(struct kl_tagged *m, void *data, size_t bytes, int peer, int tag, uint64_t timeout_ns,
                               uint64_t *request)
{
    const struct kl_tagged_request r = {
        .peer = peer, .tag = tag, .data = data, .room = bytes, .timeout_ns = timeout_ns};

    return call(m, &r, request);
}

ncclResult_t kl_tagged_probe(struct kl_tagged *m, int peer, int tag, struct kl_tagged_status *status)
{
    kl_tagged_lock(m);
    kl_tagged_look(m);
    const struct kl_tagged_message *a = kl_tagged_find_message(m, peer, tag, false);
    if (a) *status = (struct kl_tagged_status){.source = a->source, .tag = a->tag, .bytes = a->bytes};
    bool failed = !a && m->failed, left = !a && peer != KL_TAGGED_ANY && m->peer[peer].left;
    kl_tagged_unlock(m);
    if (failed) return m->config.failure(m->config.ctx);
    if (left)
        return KL_FAIL(ncclRemoteError, "rank %d: rank %d has left, and sends nothing more", m->config.rank, peer);
    return a ? ncclSuccess : ncclInProgress;
}

/* ---- waiting ---- */

static ncclResult_t unknown(uint64_t id, const char *function)
{
    return KL_FAIL(ncclInvalidArgument, "%s: %#llx is no request, or was freed", function, (unsigned long long)id);
}

static void describe(const struct kl_tagged *m, const struct kl_tagged_request *r, char *text, size_t size)
{
    char peer[32] = "any rank", tag[32] = "any tag";

    if (r->peer != KL_TAGGED_ANY) snprintf(peer, sizeof peer, "rank %d", r->peer);
    if (r->tag != KL_TAGGED_ANY) snprintf(tag, sizeof tag, "tag %d", r->tag);
    if (r->sends)
        snprintf(text, size, "rank %d: %s has not taken the message of %zu bytes with %s", m->config.rank, peer,
                 r->room, tag);
    else if (r->queued)
        snprintf(text, size, "rank %d: no message with %s has come from %s", m->config.rank, tag, peer);
    else
        snprintf(text, size, "rank %d: %zu of %zu bytes have come of the message with tag %d from rank %d",
                 m->config.rank, r->moved, r->status.bytes, r->status.tag, r->status.source);
}

static void expire(struct kl_tagged *m, const struct kl_tagged_request *r)
{
    char state[256];
    int culprit = r->sends || r->peer != KL_TAGGED_ANY ? r->peer : m->config.rank;

    describe(m, r, state, sizeof state);
    kl_tagged_trouble(m, culprit,
                      KL_FAIL(ncclRemoteError, "%s: nothing moved for %g s", state, (double)r->timeout_ns / 1e9));
}

static uint64_t limit_of(const struct kl_tagged_request *r)
{
    return r->timeout_ns ? r->since + r->timeout_ns : KL_NO_DEADLINE;
}

static void sleep_until(struct kl_tagged *m, uint64_t deadline)
{
    const struct timespec t = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};

    if (deadline == KL_NO_DEADLINE)
        pthread_cond_wait(&m->changed, &m->lock);
    else
        (void)pthread_cond_timedwait(&m->changed, &m->lock, &t);
}

/* Under lock, which is released while it waits. NULL: it was freed. */
static struct kl_tagged_request *await(struct kl_tagged *m, uint64_t id, uint64_t deadline)
{
    struct kl_poll_wait pause = KL_WAIT_START;
    struct kl_tagged_request *r = kl_tagged_find(m, id);

    if (r && !r->over && kl_deadline_passed(deadline)) kl_tagged_look(m);
    while ((r = kl_tagged_find(m, id)) && !r->over && !kl_deadline_passed(deadline)) {
        uint64_t limit = limit_of(r);
        if (kl_deadline_passed(limit)) {
            expire(m, r);
            kl_tagged_unlock(m); /* the communicator fails, and with it this request */
            kl_tagged_lock(m);
            if (r->copies) sleep_until(m, kl_deadline_in_ms(1));
        } else if (!kl_tagged_watch_for(m, r, &pause) && !kl_tagged_rest(m)) {
            sleep_until(m, limit < deadline ? limit : deadline);
        }
    }
    if (r && !r->over && kl_deadline_passed(limit_of(r))) expire(m, r);
    return r;
}

ncclResult_t kl_tagged_wait(struct kl_tagged *m, uint64_t id, uint64_t deadline, const char *function,
                            struct kl_tagged_status *status)
{
    ncclResult_t rc = ncclInProgress;
    char text[sizeof((struct kl_tagged_request *)0)->text] = "";

    kl_tagged_lock(m);
    const struct kl_tagged_request *r = await(m, id, deadline);
    bool over = r && r->over, found = r;
    if (over) {
        rc = r->rc;
        memcpy(text, r->text, sizeof text);
        if (status) *status = r->status;
    }
    kl_tagged_unlock(m);
    if (!found) return unknown(id, function);
    if (!over || !rc) return rc;
    if (!*text) return m->config.failure(m->config.ctx);
    return KL_FAIL(rc, "%s: %s", function, text);
}

ncclResult_t kl_tagged_cancel(struct kl_tagged *m, uint64_t id, const char *function)
{
    kl_tagged_lock(m);
    struct kl_tagged_request *r = kl_tagged_find(m, id);
    bool found = r, free = r && (r->over || r->queued);
    if (free && r->queued) kl_tagged_unqueue(m, r);
    if (free) kl_tagged_drop(m, r);
    kl_tagged_unlock(m);
    if (!found) return unknown(id, function);
    return free ? ncclSuccess : ncclInProgress;
}

ncclResult_t kl_tagged_forget(struct kl_tagged *m, uint64_t id, const char *function)
{
    kl_tagged_lock(m);
    struct kl_tagged_request *r = kl_tagged_find(m, id);
    bool found = r, over = r && r->over;
    if (over) kl_tagged_drop(m, r);
    kl_tagged_unlock(m);
    if (!found) return unknown(id, function);
    if (!over)
        return KL_FAIL(ncclInvalidUsage, "%s: the request is not over: wait for it, or cancel a receive", function);
    return ncclSuccess;
}

/* ---- ends ---- */

static bool waits_for(const struct kl_tagged *m, const struct kl_tagged_request *r, int peer)
{
    if (r->peer == KL_TAGGED_ANY && r->queued) return m->nleft == m->config.nranks - 1;
    return r->peer == peer || (!r->sends && !r->queued && r->status.source == peer);
}

void kl_tagged_on_left(struct kl_tagged *m, int peer)
{
    kl_tagged_lock(m);
    (void)kl_tagged_read_from(m, peer);
    m->nleft += !m->peer[peer].left;
    m->peer[peer].left = true;
    for (uint32_t i = 0; i < m->nrequests; i++) {
        struct kl_tagged_request *r = m->request[i];
        if (!r->id || r->over || r->copies || !waits_for(m, r, peer)) continue;
        if (r->queued) kl_tagged_unqueue(m, r);
        kl_tagged_has_left(m, r, peer);
    }
    kl_tagged_unlock(m);
}

void kl_tagged_fail(struct kl_tagged *m)
{
    kl_tagged_lock(m);
    m->failed = true;
    for (uint32_t i = 0; i < m->nrequests; i++) {
        struct kl_tagged_request *r = m->request[i];
        if (!r->id || r->over || r->copies) continue;
        if (r->queued) kl_tagged_unqueue(m, r);
        kl_tagged_end(m, r, ncclInternalError);
    }
    kl_tagged_unlock(m);
}
