/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fifo.h"

#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 4, PLACES = 8, SLOT_BYTES = 1024, CELLS = 16, CELL_BYTES = 512, STEPS = 20000 };

struct pair {
    struct kl_fifo *fifo;
    struct kl_fifo_tx tx;
    struct kl_fifo_rx rx;
};

static void make_pair(struct pair *p, bool shares_memory)
{
    struct kl_fifo_shape shape = {
        .nslots = SLOTS, .slot_bytes = SLOT_BYTES, .cell_bytes = CELL_BYTES, .cells = CELLS, .places = PLACES};
    size_t size = kl_fifo_size(&shape);

    p->fifo = aligned_alloc(KL_LINE, (size + KL_LINE - 1) / KL_LINE * KL_LINE);
    memset(p->fifo, 0, size);
    kl_fifo_init(p->fifo, &shape);
    assert_int_equal(kl_fifo_attach_tx(&p->tx, p->fifo, size, shares_memory), ncclSuccess);
    assert_int_equal(kl_fifo_attach_rx(&p->rx, p->fifo, size, shares_memory), ncclSuccess);
}

static void put(struct kl_fifo_tx *tx, unsigned char fill, size_t bytes)
{
    memset(kl_fifo_reserve(tx, bytes), fill, bytes);
    kl_fifo_publish(tx, bytes, false);
}

static void expect(struct kl_fifo_rx *rx, unsigned char fill, size_t bytes)
{
    size_t got;
    bool more;

    assert_true(kl_fifo_ready(rx));
    const unsigned char *data = kl_fifo_open(rx, &got, &more);
    assert_non_null(data);
    assert_int_equal(got, bytes);
    for (size_t i = 0; i < got; i++) assert_int_equal(data[i], fill);
    kl_fifo_release(rx);
}

static void steps_arrive_in_order_and_whole(void **state)
{
    static const size_t sizes[] = {
        0, 1, KL_FIFO_INLINE - 1, KL_FIFO_INLINE, KL_FIFO_INLINE + 1, CELL_BYTES, CELL_BYTES + 1, SLOT_BYTES};
    struct pair p;

    (void)state;
    make_pair(&p, false);
    for (unsigned round = 0; round < 100; round++) {
        size_t a = sizes[round % 8], b = sizes[(round + 1) % 8];
        put(&p.tx, (unsigned char)round, a);
        put(&p.tx, (unsigned char)(round + 1), b);
        expect(&p.rx, (unsigned char)round, a);
        expect(&p.rx, (unsigned char)(round + 1), b);
        assert_false(kl_fifo_ready(&p.rx));
    }
    free(p.fifo);
}

static void a_full_fifo_takes_no_more(void **state)
{
    struct pair p;

    (void)state;
    make_pair(&p, false);
    for (int i = 0; i < SLOTS; i++) {
        assert_true(kl_fifo_can_send(&p.tx));
        put(&p.tx, (unsigned char)i, 8);
    }
    assert_false(kl_fifo_can_send(&p.tx));
    expect(&p.rx, 0, 8);
    assert_true(kl_fifo_can_send(&p.tx));
    free(p.fifo);
}

static void direct_memory_is_read_in_place(void **state)
{
    struct pair p;
    char own[64] = "own";
    size_t bytes;
    bool more;

    (void)state;
    make_pair(&p, true);
    kl_fifo_publish_direct(&p.tx, own, sizeof own, true);
    assert_false(kl_fifo_drained(&p.tx));
    assert_ptr_equal(kl_fifo_open(&p.rx, &bytes, &more), own);
    assert_int_equal(bytes, sizeof own);
    assert_true(more);
    kl_fifo_release(&p.rx);
    assert_true(kl_fifo_drained(&p.tx));
    free(p.fifo);
}

static void revoked_memory_is_not_read(void **state)
{
    struct pair p;
    char own[64] = "own";
    size_t bytes;
    bool more;

    (void)state;
    make_pair(&p, true);
    kl_fifo_publish_direct(&p.tx, own, sizeof own, false);
    kl_fifo_revoke(&p.tx);
    assert_true(kl_fifo_ready(&p.rx));
    assert_null(kl_fifo_open(&p.rx, &bytes, &more));
    free(p.fifo);
}

static void addresses_from_another_process_are_refused(void **state)
{
    struct pair p;
    char own[64];
    size_t bytes;
    bool more;

    (void)state;
    make_pair(&p, false);
    kl_fifo_publish_direct(&p.tx, own, sizeof own, false);
    assert_null(kl_fifo_open(&p.rx, &bytes, &more));
    free(p.fifo);
}

static void a_step_larger_than_a_slot_is_refused(void **state)
{
    struct pair p;
    size_t bytes;
    bool more;

    (void)state;
    make_pair(&p, false);
    kl_fifo_publish(&p.tx, SLOT_BYTES + 1, false);
    assert_null(kl_fifo_open(&p.rx, &bytes, &more));
    free(p.fifo);
}

/*
 * Memory of a step that fills its cell is written anew after CELLS steps, of half a cell after twice as many, of others after PLACES; and after SLOTS at first. In
 * between it is after twice as many each time that so many times as many steps have gone by.
 */
static void small_steps_have_cells(void **state)
{
    static const struct {
        size_t bytes;
        int steps;
    } cases[] = {{SLOT_BYTES, PLACES},           {CELL_BYTES + 1, PLACES},    {CELL_BYTES, CELLS},
                 {CELL_BYTES / 2 + 1, CELLS},    {CELL_BYTES / 2, 2 * CELLS}, {CELL_BYTES / 4, 4 * CELLS},
                 {KL_FIFO_INLINE + 1, 4 * CELLS}};
    struct pair p;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        make_pair(&p, false);
        const unsigned char *first = kl_fifo_reserve(&p.tx, c->bytes);
        int steps = SLOTS;
        for (int i = 0; i < 2 * KL_FIFO_STEPS_PER_PLACE * c->steps; i++) {
            if (i >= 2 * KL_FIFO_STEPS_PER_PLACE * steps && steps < c->steps) steps *= 2;
            assert_int_equal(kl_fifo_reserve(&p.tx, c->bytes) == first, i % steps == 0);
            put(&p.tx, (unsigned char)i, c->bytes);
            expect(&p.rx, (unsigned char)i, c->bytes);
        }
        assert_int_equal(steps, c->steps);
        free(p.fifo);
    }
}

/* However large they are: steps that wait together have their own memory. */
static void steps_that_wait_together_lie_apart(void **state)
{
    struct pair p;

    (void)state;
    make_pair(&p, false);
    for (unsigned i = 0; i < 10000; i++) {
        size_t bytes[SLOTS];
        for (unsigned k = 0; k < SLOTS; k++) {
            bytes[k] = (i * SLOTS + k) * 2654435761u % (SLOT_BYTES + 1);
            put(&p.tx, (unsigned char)(i + k), bytes[k]);
        }
        for (unsigned k = 0; k < SLOTS; k++) expect(&p.rx, (unsigned char)(i + k), bytes[k]);
    }
    free(p.fifo);
}

static void memory_that_is_no_fifo_is_refused(void **state)
{
    static const struct {
        const char *what;
        uint32_t magic;
        struct kl_fifo_shape shape;
        size_t size;
    } cases[] = {
        {"no magic", 0, {SLOTS, 0, SLOT_BYTES, 0, 0, SLOTS, 0}, 1 << 16},
        {"no slots", 1, {0, 0, SLOT_BYTES, 0, 0, SLOTS, 0}, 1 << 16},
        {"three slots", 1, {3, 0, SLOT_BYTES, 0, 0, SLOTS, 0}, 1 << 16},
        {"no bytes", 1, {SLOTS, 0, 0, 0, 0, SLOTS, 0}, 1 << 16},
        {"odd bytes", 1, {SLOTS, 0, 100, 0, 0, SLOTS, 0}, 1 << 16},
        {"odd lines", 1, {SLOTS, 64, SLOT_BYTES, 0, 0, SLOTS, 0}, 1 << 16},
        {"too many lines", 1, {SLOTS, UINT32_MAX - 127, SLOT_BYTES, 0, 0, SLOTS, 0}, 1 << 16},
        {"too many slots", 1, {1 << 30, 0, 1 << 30, 0, 0, SLOTS, 0}, 1 << 16},
        {"too small", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, SLOTS, 0}, 1 << 12},
        {"overflow", 1, {SLOTS, 0, UINT64_MAX - 127, 0, 0, SLOTS, 0}, 1 << 16},
        {"cells of no bytes", 1, {SLOTS, 0, SLOT_BYTES, 0, SLOTS, SLOTS, 0}, 1 << 16},
        {"odd cells", 1, {SLOTS, 0, SLOT_BYTES, 100, SLOTS, SLOTS, 0}, 1 << 16},
        {"cells as large as slots", 1, {SLOTS, 0, SLOT_BYTES, SLOT_BYTES, SLOTS, SLOTS, 0}, 1 << 16},
        {"fewer cells than slots", 1, {SLOTS, 0, SLOT_BYTES, KL_LINE, SLOTS / 2, SLOTS, 0}, 1 << 16},
        {"no power of two", 1, {SLOTS, 0, SLOT_BYTES, KL_LINE, 3 * SLOTS, SLOTS, 0}, 1 << 16},
        {"too many cells", 1, {SLOTS, 0, SLOT_BYTES, KL_LINE, 1 << 30, SLOTS, 0}, 1 << 16},
        {"no places", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, 0, 0}, 1 << 16},
        {"fewer places than slots", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, SLOTS / 2, 0}, 1 << 16},
        {"three times as many", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, 3 * SLOTS, 0}, 1 << 16},
        {"too many places", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, 1 << 30, 0}, 1 << 16},
        {"places that do not fit", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, 32 * SLOTS, 0}, 1 << 16},
        {"no header", 1, {SLOTS, 0, SLOT_BYTES, 0, 0, SLOTS, 0}, 64},
    };
    struct pair p;
    struct kl_fifo_tx tx;
    struct kl_fifo_rx rx;

    (void)state;
    make_pair(&p, false);
    uint32_t magic = p.fifo->magic;
    FOR_EACH_CASE(c, cases)
    {
        p.fifo->magic = c->magic ? magic : 0;
        p.fifo->shape = c->shape;
        expect_case(c->what, kl_fifo_attach_tx(&tx, p.fifo, c->size, false) == ncclInternalError);
        expect_case(c->what, kl_fifo_attach_rx(&rx, p.fifo, c->size, false) == ncclInternalError);
    }
    free(p.fifo);
}

/* ---- two threads over two mappings of one memory: for ThreadSanitizer and weak memory models ---- */

static unsigned long checksum(const unsigned char *data, size_t bytes)
{
    unsigned long sum = 0;

    for (size_t i = 0; i < bytes; i++) sum = sum * 31 + data[i];
    return sum;
}

static size_t step_bytes(uint64_t step)
{
    return step % 3 ? step * 37 % SLOT_BYTES : step * 7 % KL_FIFO_INLINE;
}

static void *send_steps(void *arg)
{
    struct kl_fifo_tx *tx = arg;

    for (uint64_t step = 0; step < STEPS; step++) {
        size_t bytes = step_bytes(step);
        while (!kl_fifo_can_send(tx)) sched_yield();
        memset(kl_fifo_reserve(tx, bytes), (int)step, bytes);
        kl_fifo_publish(tx, bytes, false);
    }
    return NULL;
}

static void every_byte_is_visible_to_the_other_thread(void **state)
{
    struct pair p;
    pthread_t sender;
    unsigned char want[SLOT_BYTES];

    (void)state;
    make_pair(&p, false);
    pthread_create(&sender, NULL, send_steps, &p.tx);
    for (uint64_t step = 0; step < STEPS; step++) {
        size_t bytes;
        bool more;
        while (!kl_fifo_ready(&p.rx)) sched_yield();
        const unsigned char *data = kl_fifo_open(&p.rx, &bytes, &more);
        assert_int_equal(bytes, step_bytes(step));
        memset(want, (int)step, bytes);
        assert_int_equal(checksum(data, bytes), checksum(want, bytes));
        kl_fifo_release(&p.rx);
    }
    pthread_join(sender, NULL);
    free(p.fifo);
}

/* A sender that fills, publishes, waits and refills: the receiver must never see the next filling early. */
static void *publish_steps(void *arg)
{
    struct kl_fifo_tx *tx = arg;
    unsigned char *own = malloc(SLOT_BYTES);

    for (unsigned step = 0; step < 2000; step++) {
        memset(own, (int)step, SLOT_BYTES);
        kl_fifo_publish_direct(tx, own, SLOT_BYTES, false);
        while (!kl_fifo_drained(tx)) sched_yield();
    }
    free(own);
    return NULL;
}

static void direct_memory_comes_back_after_it_was_read(void **state)
{
    struct pair p;
    pthread_t sender;

    (void)state;
    make_pair(&p, true);
    pthread_create(&sender, NULL, publish_steps, &p.tx);
    for (unsigned step = 0; step < 2000; step++) {
        while (!kl_fifo_ready(&p.rx)) sched_yield();
        expect(&p.rx, (unsigned char)step, SLOT_BYTES);
    }
    pthread_join(sender, NULL);
    free(p.fifo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_arrive_in_order_and_whole),
        cmocka_unit_test(a_full_fifo_takes_no_more),
        cmocka_unit_test(direct_memory_is_read_in_place),
        cmocka_unit_test(revoked_memory_is_not_read),
        cmocka_unit_test(addresses_from_another_process_are_refused),
        cmocka_unit_test(a_step_larger_than_a_slot_is_refused),
        cmocka_unit_test(small_steps_have_cells),
        cmocka_unit_test(steps_that_wait_together_lie_apart),
        cmocka_unit_test(memory_that_is_no_fifo_is_refused),
        cmocka_unit_test(every_byte_is_visible_to_the_other_thread),
        cmocka_unit_test(direct_memory_comes_back_after_it_was_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
