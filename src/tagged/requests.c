/* SPDX-License-Identifier: Apache-2.0 */
/* The table of requests. An id is never used twice within 2^28 requests of a process:
 *
 *      63      36 35    16 15                0
 *     | use      | entry  | config's number  |
 */
#include "tagged/state.h"

#include "base/atomic.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_BITS = 16, ENTRY_BITS = 20, USE_BITS = 28 };

#define MOST ((uint32_t)1 << ENTRY_BITS)

void kl_tagged_lock(struct kl_tagged *m)
{
    pthread_mutex_lock(&m->lock);
}

void kl_tagged_unlock(struct kl_tagged *m)
{
    ncclResult_t trouble = m->trouble;
    int culprit = m->culprit;
    char text[KL_ERROR_TEXT];

    if (trouble) snprintf(text, sizeof text, "%s", m->trouble_text);
    m->trouble = ncclSuccess;
    pthread_mutex_unlock(&m->lock);
    if (trouble) m->config.fail(m->config.ctx, culprit, trouble, text);
}

void kl_tagged_trouble(struct kl_tagged *m, int culprit, ncclResult_t code)
{
    if (m->trouble || m->failed) return;
    m->trouble = code;
    m->culprit = culprit;
    snprintf(m->trouble_text, sizeof m->trouble_text, "%s", kl_error_text());
}

static uint64_t new_id(const struct kl_tagged *m, uint32_t entry)
{
    static _Atomic uint64_t uses;
    uint64_t use;

    do use = kl_fetch_add_relaxed(&uses, 1) & (((uint64_t)1 << USE_BITS) - 1);
    while (!use);
    return use << (NUMBER_BITS + ENTRY_BITS) | (uint64_t)entry << NUMBER_BITS | m->config.number;
}

static uint32_t entry_of(uint64_t id)
{
    return (uint32_t)(id >> NUMBER_BITS) & (MOST - 1);
}

static ncclResult_t grow(struct kl_tagged *m)
{
    uint32_t room = m->room ? 2 * m->room : 64;

    if (m->nrequests == MOST)
        return KL_FAIL(ncclInvalidUsage, "%u messages of rank %d are not over, or were not freed: there cannot be more",
                       MOST, m->config.rank);
    struct kl_tagged_request **table = realloc(m->request, room * sizeof(void *));
    if (!table) return KL_NOMEM("messages");
    m->request = table;
    m->room = room;
    return ncclSuccess;
}

static ncclResult_t add(struct kl_tagged *m)
{
    if (m->nrequests == m->room) KL_TRY(grow(m));
    struct kl_tagged_request *r = calloc(1, sizeof *r);
    if (!r) return KL_NOMEM("a message");
    r->next = m->spare;
    r->tag = (int)m->nrequests; /* its entry, until it is used */
    m->spare = r;
    m->request[m->nrequests++] = r;
    return ncclSuccess;
}

ncclResult_t kl_tagged_new(struct kl_tagged *m, struct kl_tagged_request **request)
{
    if (!m->spare) KL_TRY(add(m));
    struct kl_tagged_request *r = m->spare;
    uint32_t entry = (uint32_t)r->tag;
    m->spare = r->next;
    *r = (struct kl_tagged_request){.id = new_id(m, entry), .since = kl_now_ns()};
    *request = r;
    return ncclSuccess;
}

struct kl_tagged_request *kl_tagged_find(const struct kl_tagged *m, uint64_t id)
{
    uint32_t entry = entry_of(id);

    return id && entry < m->nrequests && m->request[entry]->id == id ? m->request[entry] : NULL;
}

void kl_tagged_drop(struct kl_tagged *m, struct kl_tagged_request *r)
{
    r->tag = (int)entry_of(r->id);
    r->id = 0;
    r->next = m->spare;
    m->spare = r;
}

void kl_tagged_end(struct kl_tagged *m, struct kl_tagged_request *r, ncclResult_t rc)
{
    r->rc = rc;
    r->over = true;
    kl_fetch_add_relaxed(&m->ends, 1); /* for threads that look at it without the lock, and then take it */
    pthread_cond_broadcast(&m->changed);
}

void kl_tagged_end_with(struct kl_tagged *m, struct kl_tagged_request *r, ncclResult_t rc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->text, sizeof r->text, format, args);
    va_end(args);
    kl_tagged_end(m, r, rc);
}

void kl_tagged_has_left(struct kl_tagged *m, struct kl_tagged_request *r, int peer)
{
    kl_tagged_end_with(m, r, ncclRemoteError, "rank %d: rank %d has left, and %s", m->config.rank, peer,
                       r->sends ? "does not take the message" : "sends nothing more");
}
