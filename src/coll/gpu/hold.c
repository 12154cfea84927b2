/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/hold.h"

#include "base/clock.h"
#include "event/loop.h"

#include <pthread.h>
#include <stdlib.h>

enum { AGAIN_MS = 10 };

struct range {
    _Atomic uint32_t *word;
    size_t n;
};

static struct {
    pthread_mutex_t lock;
    struct range *range;
    size_t count, room;
    struct kl_loop *loop;
    struct kl_source *again;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set(const struct range *r)
{
    for (size_t i = 0; i < r->n; i++) kl_store_release(&r->word[i], 1); /* for streams that wait */
}

static void set_all(void *unused, uint32_t events)
{
    (void)unused;
    (void)events;
    pthread_mutex_lock(&held.lock);
    for (size_t i = 0; i < held.count; i++) set(&held.range[i]);
    kl_source_deadline(held.again, kl_deadline_in_ms(AGAIN_MS));
    pthread_mutex_unlock(&held.lock);
}

static struct range *find(const _Atomic uint32_t *word)
{
    size_t i = 0;

    while (i < held.count && held.range[i].word != word) i++;
    return i < held.count ? &held.range[i] : NULL;
}

static struct range *add(void)
{
    if (held.count == held.room) {
        const size_t room = held.room ? 2 * held.room : 8;
        struct range *grown = realloc(held.range, room * sizeof *grown);
        if (!grown) return NULL;
        held.range = grown;
        held.room = room;
    }
    return &held.range[held.count++];
}

/* Without a loop, or in a child of a fork, the words were set once. */
static void start(void)
{
    if (held.again || kl_loop_ref(&held.loop)) return;
    if (!kl_loop_add(held.loop, -1, 0, set_all, NULL, &held.again))
        kl_source_deadline(held.again, kl_deadline_in_ms(AGAIN_MS));
}

void kl_gpu_hold(_Atomic uint32_t *word, size_t n)
{
    const struct range now = {.word = word, .n = n};

    if (!n) return;
    pthread_mutex_lock(&held.lock);
    set(&now);
    struct range *r = find(word);
    if (!r) r = add();
    if (r) *r = now;
    start();
    pthread_mutex_unlock(&held.lock);
}
