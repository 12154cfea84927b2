/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/overflow.h"

#include <stdlib.h>

enum { MOST = 1 << 16 };

void kl_overflow_init(struct kl_overflow *o)
{
    pthread_mutex_init(&o->lock, NULL);
    o->first = NULL;
    o->n = 0;
    kl_store_relaxed(&o->any, 0);
}

void kl_overflow_clear(struct kl_overflow *o)
{
    while (o->first) kl_overflow_drop_first(o);
    kl_overflow_init(o);
}

static void insert(struct kl_overflow *o, struct kl_overflow_work *w)
{
    struct kl_overflow_work **link = &o->first;

    while (*link && (*link)->ticket < w->ticket) link = &(*link)->next;
    w->next = *link;
    *link = w;
    o->n++;
    kl_store_relaxed(&o->any, 1);
}

bool kl_overflow_put(struct kl_overflow *o, uint64_t ticket, const struct kl_work *work)
{
    struct kl_overflow_work *w = malloc(sizeof *w);

    if (!w) return false;
    *w = (struct kl_overflow_work){.ticket = ticket, .work = *work};
    kl_overflow_lock(o);
    bool room = o->n < MOST;
    if (room) insert(o, w);
    kl_overflow_unlock(o);
    if (!room) free(w);
    return room;
}

void kl_overflow_lock(struct kl_overflow *o)
{
    pthread_mutex_lock(&o->lock);
}

void kl_overflow_unlock(struct kl_overflow *o)
{
    pthread_mutex_unlock(&o->lock);
}

void kl_overflow_drop_first(struct kl_overflow *o)
{
    struct kl_overflow_work *w = o->first;

    o->first = w->next;
    o->n--;
    kl_store_relaxed(&o->any, o->first != NULL);
    free(w);
}
