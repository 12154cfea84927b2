/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/pool.h"

#include "tests/kolo_test.h"

#include <stdlib.h>

enum { SLOTS = 5, SLOT_BYTES = 4096, STEPS = 4 };

/* A fifo with a receiver that maps the sender's pool. */
struct link {
    struct kl_fifo *fifo;
    struct kl_fifo_tx tx;
    struct kl_fifo_rx rx;
};

static void make_link(struct link *l, struct kl_pool *pool)
{
    struct kl_fifo_shape shape = {.nslots = STEPS, .slot_bytes = KL_LINE};
    size_t size = kl_fifo_size(&shape);

    l->fifo = aligned_alloc(KL_LINE, (size + KL_LINE - 1) / KL_LINE * KL_LINE);
    memset(l->fifo, 0, size);
    kl_fifo_init(l->fifo, &shape);
    assert_int_equal(kl_fifo_attach_tx(&l->tx, l->fifo, size, false), ncclSuccess);
    assert_int_equal(kl_fifo_attach_rx(&l->rx, l->fifo, size, false), ncclSuccess);
    l->tx.pool = pool;
    l->rx.pool = kl_pool_segment(pool)->base;
    l->rx.pool_bytes = kl_pool_segment(pool)->bytes;
}

static void make_pool(struct kl_pool **pool)
{
    assert_int_equal(kl_pool_create(SLOTS, SLOT_BYTES, 0, pool), ncclSuccess);
    assert_int_equal(kl_pool_slot_bytes(*pool), SLOT_BYTES);
}

/* Send one slot full of `fill`; false when the pool has none. */
static bool put(struct link *l, unsigned char fill)
{
    uint64_t offset = UINT64_MAX;
    unsigned char *slot = kl_pool_take(l->tx.pool, &l->tx, SLOT_BYTES, &offset);

    if (!slot) return false;
    assert_ptr_equal(slot, (unsigned char *)kl_pool_segment(l->tx.pool)->base + offset);
    assert_int_equal(offset % SLOT_BYTES, 0);
    memset(slot, fill, SLOT_BYTES);
    kl_fifo_publish_pooled(&l->tx, offset, SLOT_BYTES, false);
    return true;
}

static void take(struct link *l, unsigned char fill)
{
    size_t bytes;
    bool more;

    assert_true(kl_fifo_ready(&l->rx));
    const unsigned char *data = kl_fifo_open(&l->rx, &bytes, &more);
    assert_non_null(data);
    assert_int_equal(bytes, SLOT_BYTES);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(data[i], fill);
    kl_fifo_release(&l->rx);
}

/* Slots go to any fifo, are all different, and come back when they have been read, in any order. */
static void slots_are_shared_and_come_back(void **state)
{
    struct kl_pool *pool;
    struct link a, b;

    (void)state;
    make_pool(&pool);
    make_link(&a, pool);
    make_link(&b, pool);
    for (unsigned char round = 0; round < 50; round++) {
        assert_true(put(&a, round) && put(&b, round + 1) && put(&a, round + 2) && put(&b, round + 3));
        assert_true(put(&a, round + 4));
        assert_false(put(&b, 0)); /* no data were read */
        take(&b, round + 1);
        assert_true(put(&b, round + 5));
        assert_false(put(&b, 0));
        take(&a, round), take(&a, round + 2), take(&a, round + 4);
        take(&b, round + 3), take(&b, round + 5);
    }
    free(a.fifo);
    free(b.fifo);
    kl_pool_free(pool);
}

/* A receiver that never reads holds its slots, and no others. */
static void a_slow_reader_takes_nothing_from_the_others(void **state)
{
    struct kl_pool *pool;
    struct link slow, fast;

    (void)state;
    make_pool(&pool);
    make_link(&slow, pool);
    make_link(&fast, pool);
    for (unsigned char i = 0; i < STEPS; i++) assert_true(put(&slow, i));
    for (unsigned char i = 0; i < 100; i++) {
        assert_true(put(&fast, i));
        assert_false(put(&fast, i));
        take(&fast, i);
    }
    for (unsigned char i = 0; i < STEPS; i++) take(&slow, i);
    free(slow.fifo);
    free(fast.fifo);
    kl_pool_free(pool);
}

/* The slots of a freed fifo are free again, and its memory is not read any more (for AddressSanitizer). */
static void forgetting_a_fifo_frees_its_slots(void **state)
{
    struct kl_pool *pool;
    struct link gone, left;

    (void)state;
    make_pool(&pool);
    make_link(&gone, pool);
    make_link(&left, pool);
    assert_true(put(&gone, 1) && put(&left, 2) && put(&gone, 3));
    kl_pool_forget(pool, &gone.tx);
    free(gone.fifo);
    kl_pool_forget(pool, &gone.tx); /* again: it holds nothing */
    for (unsigned char i = 0; i < STEPS - 1; i++) assert_true(put(&left, i));
    take(&left, 2);
    assert_true(put(&left, STEPS - 1)); /* the fifth */
    take(&left, 0);
    assert_true(put(&left, STEPS)); /* the one just read: so every slot was in use, and once */
    for (unsigned char i = 1; i <= STEPS; i++) take(&left, i);
    free(left.fifo);
    kl_pool_free(pool);
}

/* A receiver reads nothing outside of the pool that it has mapped. */
static void places_outside_of_the_pool_are_refused(void **state)
{
    enum { BYTES = SLOTS * SLOT_BYTES };
    static const struct {
        const char *what;
        uint64_t offset;
        uint32_t bytes;
        bool refused;
    } cases[] = {
        {"the first", 0, SLOT_BYTES, false},
        {"all", 0, BYTES, false},
        {"nothing at the end", BYTES, 0, false},
        {"the last byte", BYTES - 1, 1, false},
        {"one too many", 0, BYTES + 1, true},
        {"across the end", BYTES - 1, 2, true},
        {"behind the end", BYTES, 1, true},
        {"far behind it", UINT64_MAX, 1, true},
        {"round the end of memory", UINT64_MAX - 7, 16, true},
        {"as much as a step can say", 0, KL_FIFO_MORE - 1, true},
    };
    struct kl_pool *pool;
    struct link l;
    size_t bytes;
    bool more;

    (void)state;
    make_pool(&pool);
    make_link(&l, pool);
    FOR_EACH_CASE(c, cases)
    {
        kl_fifo_publish_pooled(&l.tx, c->offset, c->bytes, true);
        expect_case(c->what, kl_fifo_ready(&l.rx));
        expect_case(c->what, !kl_fifo_open(&l.rx, &bytes, &more) == c->refused);
        expect_case(c->what, more && bytes == c->bytes);
        kl_fifo_release(&l.rx);
    }
    l.rx.pool = NULL; /* none was mapped */
    l.rx.pool_bytes = 0;
    kl_fifo_publish_pooled(&l.tx, 0, 0, false);
    assert_null(kl_fifo_open(&l.rx, &bytes, &more));
    kl_fifo_release(&l.rx);
    kl_fifo_publish_pooled(&l.tx, 0, 8, false);
    assert_null(kl_fifo_open(&l.rx, &bytes, &more));
    free(l.fifo);
    kl_pool_free(pool);
}

/* The number of the slot that the next `bytes` go to; they are read at once. */
static uint64_t next_slot(struct link *l, size_t bytes)
{
    uint64_t offset = UINT64_MAX;

    assert_non_null(kl_pool_take(l->tx.pool, &l->tx, bytes, &offset));
    kl_fifo_publish_pooled(&l->tx, offset, bytes, false);
    assert_true(kl_fifo_ready(&l->rx));
    kl_fifo_release(&l->rx);
    return offset / SLOT_BYTES;
}

/* Memory is written anew when a cycle of it has been, however much of each slot is used. */
static void slots_are_taken_in_turn(void **state)
{
    struct kl_pool *pool;
    struct link l;

    (void)state;
    assert_int_equal(kl_pool_create(SLOTS, SLOT_BYTES, 3 * SLOT_BYTES, &pool), ncclSuccess);
    make_link(&l, pool);
    for (uint64_t i = 0; i < 9; i++) assert_int_equal(next_slot(&l, SLOT_BYTES), i % 3);
    for (uint64_t i = 0; i < 10; i++) assert_int_equal(next_slot(&l, SLOT_BYTES / 2), (3 + i) % SLOTS);
    free(l.fifo);
    kl_pool_free(pool);
}

/* A sender of few messages touches little memory; one of many goes through the whole cycle. */
static void more_slots_are_used_the_more_are_taken(void **state)
{
    enum { MANY = 64 };
    struct kl_pool *pool;
    struct link l;
    uint64_t used = 0;

    (void)state;
    assert_int_equal(kl_pool_create(MANY, SLOT_BYTES, MANY * SLOT_BYTES, &pool), ncclSuccess);
    make_link(&l, pool);
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t slot = next_slot(&l, SLOT_BYTES);
        if (slot + 1 > used) used = slot + 1;
        assert_true(used <= 8 + i / 2 && (i < 7 || used >= 8));
    }
    for (uint64_t i = 0; i < 4 * MANY; i++) (void)next_slot(&l, SLOT_BYTES);
    const uint64_t from = next_slot(&l, SLOT_BYTES);
    for (uint64_t i = 1; i < 2 * MANY; i++) assert_int_equal(next_slot(&l, SLOT_BYTES), (from + i) % MANY);
    free(l.fifo);
    kl_pool_free(pool);
}

static void a_pool_that_cannot_be_is_an_error(void **state)
{
    struct kl_pool *pool = NULL;

    (void)state;
    assert_int_not_equal(kl_pool_create(1, SIZE_MAX / 2 + 1, 0, &pool), ncclSuccess);
    assert_null(pool);
    kl_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_shared_and_come_back),
        cmocka_unit_test(a_slow_reader_takes_nothing_from_the_others),
        cmocka_unit_test(forgetting_a_fifo_frees_its_slots),
        cmocka_unit_test(slots_are_taken_in_turn),
        cmocka_unit_test(more_slots_are_used_the_more_are_taken),
        cmocka_unit_test(places_outside_of_the_pool_are_refused),
        cmocka_unit_test(a_pool_that_cannot_be_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
