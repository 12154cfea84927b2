/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ll.h"

#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4, SLOT_BYTES = 1024, STEPS = 20000 };

struct pair {
    struct kl_fifo *fifo;
    struct kl_fifo_tx tx;
    struct kl_fifo_rx rx;
    unsigned char sent[KL_LL_BYTES + 64];
    unsigned char scratch[KL_LL_BYTES];
};

static void make_pair(struct pair *p, uint32_t ll_bytes, bool shares_memory)
{
    struct kl_fifo_shape shape = {.nslots = SLOTS, .ll_bytes = ll_bytes, .slot_bytes = SLOT_BYTES};
    size_t size = kl_fifo_size(&shape);

    p->fifo = aligned_alloc(KL_LINE, (size + KL_LINE - 1) / KL_LINE * KL_LINE);
    memset(p->fifo, 0, size);
    kl_fifo_init(p->fifo, &shape);
    assert_int_equal(kl_fifo_attach_tx(&p->tx, p->fifo, size, shares_memory), ncclSuccess);
    assert_int_equal(kl_fifo_attach_rx(&p->rx, p->fifo, size, shares_memory), ncclSuccess);
}

static void fill(unsigned char *data, size_t bytes, uint64_t step)
{
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(step * 131 + i * 7 + i / 251);
}

static void put(struct pair *p, uint64_t step, size_t bytes, bool wide)
{
    fill(p->sent, bytes, step);
    kl_ll_publish(&p->tx, p->sent, bytes, wide);
}

static void expect(struct pair *p, uint64_t step, size_t bytes)
{
    size_t got = 0;

    assert_true(kl_ll_ready(&p->rx));
    const void *data = kl_ll_open(&p->rx, p->scratch, &got);
    assert_non_null(data);
    assert_int_equal(got, bytes);
    fill(p->sent, bytes, step);
    if (memcmp(data, p->sent, bytes)) fail_msg("a step of %zu bytes arrived with others", bytes);
    kl_fifo_release(&p->rx);
}

/* Every size in every slot; the lines still hold data of earlier steps of other sizes. */
static void pass_every_size(bool wide)
{
    struct pair p;
    uint64_t step = 0;

    make_pair(&p, KL_LL_LINES_BYTES, false);
    for (size_t bytes = 0; bytes <= KL_LL_BYTES; bytes++) {
        put(&p, step, bytes, wide);
        put(&p, step + 1, KL_LL_BYTES - bytes, wide);
        expect(&p, step++, bytes);
        expect(&p, step++, KL_LL_BYTES - bytes);
        assert_false(kl_ll_ready(&p.rx));
    }
    free(p.fifo);
}

static void every_size_arrives_whole(void **state)
{
    (void)state;
    pass_every_size(false);
}

static void every_size_arrives_whole_in_wide_stores(void **state)
{
    (void)state;
    if (!kl_ll_wide_works()) {
        print_message("no 64-byte stores here: LL128 stores as LL does\n");
        skip();
    }
    pass_every_size(true);
}

/* The sender stops between two lines: the receiver waits for the rest, and sees the step when the last one is there. */
static void a_step_is_not_ready_before_its_last_line(void **state)
{
    static const size_t sizes[] = {KL_FIFO_INLINE + 1, KL_FIFO_INLINE + KL_LL_DATA, KL_FIFO_INLINE + 57, KL_LL_BYTES};
    struct pair p;
    uint64_t step = 0;

    (void)state;
    make_pair(&p, KL_LL_LINES_BYTES, false);
    FOR_EACH_CASE(bytes, sizes)
    {
        unsigned char *lines = kl_fifo_ll_lines(p.fifo, step, &p.tx.shape);
        size_t n = (*bytes - KL_FIFO_INLINE + KL_LL_DATA - 1) / KL_LL_DATA;
        put(&p, step, *bytes, false);
        for (size_t i = 0; i < n; i++) {
            uint64_t *flag = (uint64_t *)(void *)(lines + i * 64 + KL_LL_DATA), there = *flag;
            *flag = i % 2 ? 0 : there - SLOTS; /* nothing yet, or the flag of the step before */
            p.rx.ll_lines_seen = 0;
            assert_false(kl_ll_ready(&p.rx));
            assert_int_equal(p.rx.ll_lines_seen, i);
            *flag = there;
        }
        expect(&p, step++, *bytes);
    }
    free(p.fifo);
}

/* As many as lines hold, and not one more, whatever the sender says. */
static void too_many_bytes_are_refused(void **state)
{
    static const struct {
        uint32_t ll_bytes, bytes;
        bool refused;
    } cases[] = {
        {KL_LL_LINES_BYTES, KL_LL_BYTES, false},
        {KL_LL_LINES_BYTES, KL_LL_BYTES + 1, true},
        {KL_LL_LINES_BYTES, KL_FIFO_MORE - 1, true},
        {KL_LL_LINES_BYTES, KL_FIFO_MORE | 8, true},
        {KL_LINE, KL_FIFO_INLINE + 2 * KL_LL_DATA, false},
        {KL_LINE, KL_FIFO_INLINE + 2 * KL_LL_DATA + 1, true},
        {0, KL_FIFO_INLINE, false},
        {0, KL_FIFO_INLINE + 1, true},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct pair p;
        size_t got;
        char label[64];
        snprintf(label, sizeof label, "%u bytes in lines of %u", c->bytes, c->ll_bytes);
        make_pair(&p, c->ll_bytes, false);
        if (c->refused) { /* a sender of another library, or a hostile one */
            kl_fifo_publish_as(&p.tx, KL_CLAIM_LL, 0, false);
            p.fifo->lines[0].bytes = c->bytes;
        } else {
            put(&p, 0, c->bytes, false);
        }
        expect_case(label, kl_ll_ready(&p.rx));
        expect_case(label, !kl_ll_open(&p.rx, p.scratch, &got) == c->refused);
        free(p.fifo);
    }
}

/* Ranks that chose different protocols: the receiver fails, and does not wait forever. */
static void steps_of_the_other_protocol_are_refused(void **state)
{
    static unsigned char own[SLOT_BYTES];
    struct pair p;
    size_t got;
    bool more;

    (void)state;
    make_pair(&p, KL_LL_LINES_BYTES, true);
    memset(kl_fifo_reserve(&p.tx, SLOT_BYTES), 1, SLOT_BYTES);
    kl_fifo_publish(&p.tx, SLOT_BYTES, false);
    kl_fifo_publish_direct(&p.tx, own, sizeof own, false);
    kl_fifo_publish_pooled(&p.tx, 0, 8, false);
    put(&p, 3, SLOT_BYTES, false);
    for (int i = 0; i < 3; i++) {
        assert_true(kl_ll_ready(&p.rx));
        assert_null(kl_ll_open(&p.rx, p.scratch, &got));
        kl_fifo_release(&p.rx);
    }
    assert_true(kl_fifo_ready(&p.rx));
    assert_null(kl_fifo_open(&p.rx, &got, &more));
    free(p.fifo);
}

/* ---- two threads ---- */

struct sender {
    struct pair *pair;
    bool wide;
};

static size_t step_bytes(uint64_t step)
{
    return step * 2654435761u % (KL_LL_BYTES + 1);
}

static void *send_steps(void *arg)
{
    struct sender *s = arg;

    for (uint64_t step = 0; step < STEPS; step++) {
        unsigned char data[KL_LL_BYTES];
        while (!kl_fifo_can_send(&s->pair->tx)) sched_yield();
        fill(data, step_bytes(step), step);
        kl_ll_publish(&s->pair->tx, data, step_bytes(step), s->wide);
    }
    return NULL;
}

static void receive_from_a_thread(bool wide)
{
    struct pair p;
    struct sender s = {.pair = &p, .wide = wide};
    pthread_t thread;

    make_pair(&p, KL_LL_LINES_BYTES, false);
    assert_int_equal(pthread_create(&thread, NULL, send_steps, &s), 0);
    for (uint64_t step = 0; step < STEPS; step++) {
        while (!kl_ll_ready(&p.rx)) sched_yield();
        expect(&p, step, step_bytes(step));
    }
    pthread_join(thread, NULL);
    free(p.fifo);
}

static void every_byte_is_visible_to_the_other_thread(void **state)
{
    (void)state;
    receive_from_a_thread(false);
    if (kl_ll_wide_works()) receive_from_a_thread(true);
}

#ifndef __SANITIZE_THREAD__ /* a broken peer causes a race */

struct liar {
    struct kl_fifo_line *line;
    _Atomic bool enough;
};

/* A peer that changes a published step, between sizes that fit and sizes that do not. */
static void *lie(void *arg)
{
    struct liar *l = arg;
    volatile uint32_t *bytes = &l->line->bytes;

    for (uint32_t i = 0; !kl_load_relaxed(&l->enough); i++) *bytes = i % 2 ? KL_FIFO_INLINE + 1 : 1u << 30;
    return NULL;
}

static void what_is_checked_is_what_is_used(void **state)
{
    struct pair p;
    struct liar liar = {0};
    pthread_t thread;
    bool more;

    (void)state;
    make_pair(&p, KL_LL_LINES_BYTES, false);
    liar.line = &p.fifo->lines[0];
    put(&p, 0, KL_FIFO_INLINE + 1, false);
    assert_int_equal(pthread_create(&thread, NULL, lie, &liar), 0);
    for (int i = 0; i < 2000000; i++) {
        size_t got;
        (void)kl_ll_ready(&p.rx);
        const void *data = kl_ll_open(&p.rx, p.scratch, &got);
        assert_true(!data || got == KL_FIFO_INLINE + 1);
        kl_store_relaxed(&liar.line->claim, (uint32_t)KL_CLAIM_NONE);
        data = kl_fifo_open(&p.rx, &got, &more);
        assert_true(!data || got == KL_FIFO_INLINE + 1);
        kl_store_relaxed(&liar.line->claim, (uint32_t)KL_CLAIM_LL);
    }
    kl_store_relaxed(&liar.enough, true);
    pthread_join(thread, NULL);
    free(p.fifo);
}

#endif

static void *ask(void *answer)
{
    *(bool *)answer = kl_ll_wide_works();
    return NULL;
}

static void all_threads_get_the_same_answer_about_wide_stores(void **state)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    bool answer[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, ask, &answer[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) assert_int_equal(answer[i], kl_ll_wide_works());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_threads_get_the_same_answer_about_wide_stores),
        cmocka_unit_test(every_size_arrives_whole),
        cmocka_unit_test(every_size_arrives_whole_in_wide_stores),
        cmocka_unit_test(a_step_is_not_ready_before_its_last_line),
        cmocka_unit_test(too_many_bytes_are_refused),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(what_is_checked_is_what_is_used),
#endif
        cmocka_unit_test(steps_of_the_other_protocol_are_refused),
        cmocka_unit_test(every_byte_is_visible_to_the_other_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
