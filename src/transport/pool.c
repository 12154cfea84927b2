/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pool.h"

#include "base/error.h"
#include "os/chaos.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 8, TAKES_PER_SLOT = 2 };

/** A slot in use: its fifo, and the step that the receiver must pass. */
struct taken {
    struct kl_fifo_tx *by; /* NULL: free */
    uint64_t step;
};

struct kl_pool {
    struct kl_segment segment;
    size_t slot_bytes, cycle_bytes;
    uint32_t nslots;
    uint32_t next;  /* the slot to begin with */
    uint64_t takes; /* slots taken so far */
    struct taken *taken;
};

/* Has the receiver read it? */
static bool is_free(const struct taken *t)
{
    return !t->by || kl_fifo_is_behind(t->by, t->step);
}

ncclResult_t kl_pool_create(uint32_t nslots, size_t slot_bytes, size_t cycle_bytes, struct kl_pool **pool)
{
    struct kl_pool *p = kl_chaos_calloc(1, sizeof *p);
    ncclResult_t rc;

    if (!p) return KL_NOMEM("a pool of message slots");
    *p = (struct kl_pool){
        .segment = KL_SEGMENT_NONE, .slot_bytes = slot_bytes, .cycle_bytes = cycle_bytes, .nslots = nslots};
    p->taken = kl_chaos_calloc(nslots, sizeof *p->taken);
    rc = p->taken ? kl_segment_create(&p->segment, "kolo-messages", nslots * slot_bytes)
                  : KL_NOMEM("a pool of message slots");
    if (rc) {
        kl_pool_free(p);
        return rc;
    }
    *pool = p;
    return ncclSuccess;
}

void kl_pool_free(struct kl_pool *pool)
{
    if (!pool) return;
    kl_segment_close(&pool->segment);
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

/* The number of slots to use in turn, if so many bytes are written to each: few at first, more after many messages, so that first
 * touching memory stays a small part of the time.
 */
static size_t slots_in_turn(const struct kl_pool *pool, size_t bytes)
{
    const size_t cycle = bytes ? pool->cycle_bytes / bytes : pool->nslots,
                 grown = FIRST_SLOTS + pool->takes / TAKES_PER_SLOT;
    const size_t n = cycle < grown ? cycle : grown;

    return n < 1 ? 1 : n < pool->nslots ? n : pool->nslots;
}

/* Search from the next slot in turn; nslots: none is free. */
static uint32_t find_free(const struct kl_pool *pool, size_t bytes)
{
    const uint32_t first = pool->next < slots_in_turn(pool, bytes) ? pool->next : 0;

    for (uint32_t i = 0; i < pool->nslots; i++) {
        const uint32_t slot = first + i < pool->nslots ? first + i : first + i - pool->nslots;
        if (is_free(&pool->taken[slot])) return slot;
    }
    return pool->nslots;
}

void *kl_pool_take(struct kl_pool *pool, struct kl_fifo_tx *tx, size_t bytes, uint64_t *offset)
{
    const uint32_t slot = find_free(pool, bytes);

    if (slot == pool->nslots) return NULL;
    pool->next = slot + 1;
    pool->takes++;
    pool->taken[slot] = (struct taken){.by = tx, .step = tx->step};
    *offset = slot * pool->slot_bytes;
    return (unsigned char *)pool->segment.base + *offset;
}

void kl_pool_forget(struct kl_pool *pool, const struct kl_fifo_tx *tx)
{
    for (uint32_t i = 0; i < pool->nslots; i++)
        if (pool->taken[i].by == tx) pool->taken[i].by = NULL;
}
