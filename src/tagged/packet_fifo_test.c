/* SPDX-License-Identifier: Apache-2.0 */
#include "tagged/packet_fifo.h"

#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct kl_packet_fifo *fifo;

static int begin(void **state)
{
    (void)state;
    fifo = aligned_alloc(KL_LINE, sizeof *fifo);
    memset(fifo, 0, sizeof *fifo);
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(fifo);
    return 0;
}

/* Bytes that tell the number of a packet; it is as long as the number says. */
static size_t length_of(uint32_t number)
{
    return number * 2654435761u % (KL_PACKET_FIFO_LARGEST + 1 - sizeof number) + sizeof number;
}

static bool put(uint32_t number)
{
    static unsigned char data[KL_PACKET_FIFO_LARGEST];
    size_t rest = length_of(number) - sizeof number;

    memset(data, (int)number, rest);
    return kl_packet_fifo_put(fifo, 7 * number, &number, sizeof number, data, rest);
}

/* False: there is none. */
static bool take(uint32_t number)
{
    struct kl_packet p;
    bool broken;
    uint32_t found;

    if (!kl_packet_fifo_first(fifo, &p, &broken)) {
        assert_false(broken);
        return false;
    }
    memcpy(&found, p.data, sizeof found);
    assert_int_equal(found, number);
    assert_int_equal(p.before, 7 * number);
    assert_int_equal(p.bytes, length_of(number));
    for (size_t i = sizeof number; i < p.bytes; i++) assert_int_equal(p.data[i], (unsigned char)number);
    kl_packet_fifo_take(fifo, &p);
    return true;
}

static void packets_keep_order_and_data(void **state)
{
    uint32_t written = 0, read = 0;

    (void)state;
    assert_false(take(0));
    while (read < 3000) {
        unsigned n = (unsigned)rand() % 5;
        while (n-- && put(written)) written++;
        n = (unsigned)rand() % 5;
        while (n-- && take(read)) read++;
        assert_true(read <= written);
    }
}

static void a_full_fifo_takes_no_more(void **state)
{
    char word[8] = "8 bytes";
    struct kl_packet p;
    bool broken;
    int n = 0;

    (void)state;
    while (kl_packet_fifo_put(fifo, 0, word, sizeof word, NULL, 0)) n++;
    assert_int_equal(n, KL_PACKET_FIFO_BYTES / 16);
    assert_true(kl_packet_fifo_first(fifo, &p, &broken));
    kl_packet_fifo_take(fifo, &p);
    assert_true(kl_packet_fifo_put(fifo, 0, word, sizeof word, NULL, 0));
    assert_false(kl_packet_fifo_put(fifo, 0, word, sizeof word, NULL, 0));
}

static void packets_that_are_too_large_are_refused(void **state)
{
    static char data[KL_PACKET_FIFO_LARGEST + 1];

    (void)state;
    assert_false(kl_packet_fifo_put(fifo, 0, data, 1, data, KL_PACKET_FIFO_LARGEST));
    assert_true(kl_packet_fifo_put(fifo, 0, data, 1, data, KL_PACKET_FIFO_LARGEST - 1));
    assert_true(kl_packet_fifo_put(fifo, 0, data, 0, data, KL_PACKET_FIFO_LARGEST));
}

static void an_unwatched_fifo_calls_once(void **state)
{
    (void)state;
    assert_true(kl_packet_fifo_must_call(fifo));
    assert_false(kl_packet_fifo_must_call(fifo));
    kl_packet_fifo_watch(fifo, true);
    assert_false(kl_packet_fifo_must_call(fifo));
    kl_packet_fifo_watch(fifo, false);
    assert_true(kl_packet_fifo_must_call(fifo));
}

/* Nothing outside of the fifo is read, whatever is in it. */
static void any_contents_are_safe(void **state)
{
    struct kl_packet p;
    int packets = 0, broken_ones = 0;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t head = (uint64_t)rand() % (3 * KL_PACKET_FIFO_BYTES / 8) * 8;
        uint32_t length =
            rand() % 3 ? (uint32_t)rand() % (2 * KL_PACKET_FIFO_BYTES) : UINT32_MAX - (uint32_t)rand() % 2;
        bool broken;
        memcpy(fifo->data + head % KL_PACKET_FIFO_BYTES, &length, sizeof length);
        kl_store_relaxed(&fifo->head, head);
        kl_store_relaxed(&fifo->tail, head + (uint64_t)rand() % (KL_PACKET_FIFO_BYTES + 99));
        if (kl_packet_fifo_first(fifo, &p, &broken)) {
            assert_true(p.data >= fifo->data && p.data + p.bytes <= fifo->data + KL_PACKET_FIFO_BYTES);
            assert_true(p.end <= kl_load_relaxed(&fifo->tail));
            packets++;
        }
        broken_ones += broken;
    }
    assert_true(packets > 1000 && broken_ones > 1000);
}

/* ---- two threads: no packet stays without a reader, which sleeps unless called ---- */

enum { TURNS = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static int calls;

static void *send_all(void *arg)
{
    for (uint32_t i = 0; i < TURNS; i++) {
        while (!kl_packet_fifo_put(fifo, 0, &i, sizeof i, NULL, 0)) continue;
        if (!kl_packet_fifo_must_call(fifo)) continue;
        pthread_mutex_lock(&lock);
        calls++;
        pthread_cond_signal(&called);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void await_call(void)
{
    pthread_mutex_lock(&lock);
    while (!calls) pthread_cond_wait(&called, &lock);
    calls--;
    pthread_mutex_unlock(&lock);
    kl_packet_fifo_watch(fifo, false);
}

static uint32_t take_all(uint32_t next)
{
    struct kl_packet p;
    bool broken;
    uint32_t found;

    while (kl_packet_fifo_first(fifo, &p, &broken)) {
        memcpy(&found, p.data, sizeof found);
        assert_int_equal(found, next++);
        kl_packet_fifo_take(fifo, &p);
    }
    assert_false(broken);
    return next;
}

static void no_packet_stays_unread(void **state)
{
    pthread_t sender;
    uint32_t next = 0;

    (void)state;
    calls = 0;
    pthread_create(&sender, NULL, send_all, NULL);
    while ((next = take_all(next)) < TURNS) {
        if (next % 3) { /* look for a while, as a waiting thread does */
            kl_packet_fifo_watch(fifo, true);
            next = take_all(next);
            kl_packet_fifo_watch(fifo, false);
        }
        if ((next = take_all(next)) < TURNS) await_call();
    }
    pthread_join(sender, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packets_keep_order_and_data, begin, end),
        cmocka_unit_test_setup_teardown(a_full_fifo_takes_no_more, begin, end),
        cmocka_unit_test_setup_teardown(packets_that_are_too_large_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(an_unwatched_fifo_calls_once, begin, end),
        cmocka_unit_test_setup_teardown(any_contents_are_safe, begin, end),
        cmocka_unit_test_setup_teardown(no_packet_stays_unread, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
