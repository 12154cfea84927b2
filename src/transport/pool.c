/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pool.h"

#include "base/error.h"
#include "os/chaos.h"

#include <stdlib.h>

/** A slot in use: by which fifo, until its receiver is past which step. */
struct taken {
    const struct kl_fifo_tx *by; /* NULL: free */
    uint64_t step;
};

struct kl_pool {
    struct kl_segment segment;
    size_t slot_bytes;
    uint32_t nslots, nfree;
    uint32_t used; /* slots from here on have never been taken */
    uint32_t *free_slots;
    struct taken *taken;
};

static bool is_read(const struct taken *t)
{
    return kl_load_acquire(&t->by->fifo->head) >
           t->step; /* pairs with kl_fifo_release: the slot is not read any more */
}

static void release(struct kl_pool *pool, uint32_t slot)
{
    pool->taken[slot].by = NULL;
    pool->free_slots[pool->nfree++] = slot;
}

/* All that have been read: those are taken next, before any that has not been used, so that few slots stay in the caches. */
static void reclaim(struct kl_pool *pool)
{
    for (uint32_t slot = 0; slot < pool->used; slot++)
        if (pool->taken[slot].by && is_read(&pool->taken[slot])) release(pool, slot);
}

ncclResult_t kl_pool_create(uint32_t nslots, size_t slot_bytes, struct kl_pool **pool)
{
    struct kl_pool *p = kl_chaos_calloc(1, sizeof *p);
    ncclResult_t rc;

    if (!p) return KL_NOMEM("a pool of message slots");
    *p = (struct kl_pool){.segment = KL_SEGMENT_NONE, .slot_bytes = slot_bytes, .nslots = nslots, .nfree = nslots};
    p->free_slots = kl_chaos_malloc(nslots * sizeof *p->free_slots);
    p->taken = kl_chaos_calloc(nslots, sizeof *p->taken);
    rc = p->free_slots && p->taken ? kl_segment_create(&p->segment, "kolo-messages", nslots * slot_bytes)
                                   : KL_NOMEM("a pool of message slots");
    if (rc) {
        kl_pool_free(p);
        return rc;
    }
    for (uint32_t i = 0; i < nslots; i++) p->free_slots[i] = nslots - 1 - i; /* low ones first: touched pages are few */
    *pool = p;
    return ncclSuccess;
}

void kl_pool_free(struct kl_pool *pool)
{
    if (!pool) return;
    kl_segment_close(&pool->segment);
    free(pool->free_slots);
    free(pool->taken);
    free(pool);
}

const struct kl_segment *kl_pool_segment(const struct kl_pool *pool)
{
    return &pool->segment;
}

size_t kl_pool_slot_bytes(const struct kl_pool *pool)
{
    return pool->slot_bytes;
}

void *kl_pool_take(struct kl_pool *pool, struct kl_fifo_tx *tx, uint64_t *offset)
{
    reclaim(pool);
    if (!pool->nfree) return NULL;
    uint32_t slot = pool->free_slots[--pool->nfree];
    if (slot >= pool->used) pool->used = slot + 1;
    pool->taken[slot] = (struct taken){.by = tx, .step = tx->step};
    *offset = slot * pool->slot_bytes;
    return (unsigned char *)pool->segment.base + *offset;
}

void kl_pool_forget(struct kl_pool *pool, const struct kl_fifo_tx *tx)
{
    for (uint32_t i = 0; i < pool->nslots; i++)
        if (pool->taken[i].by == tx) release(pool, i);
}
