/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/bulk_copy.h"

#include "tests/kolo_test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 64 };

/* Ranks that wait for their turns on a core need room to run ahead. */
static void a_cycle_is_shorter_where_ranks_share_cores_but_never_short(void **state)
{
    const size_t alone = kl_cache_cycle(1);

    (void)state;
    assert_int_equal(kl_cache_cycle(0), alone);
    for (int n = 2; n <= RANKS; n++) {
        assert_true(kl_cache_cycle(n) <= kl_cache_cycle(n - 1));
        assert_true(kl_cache_cycle(n) >= alone / RANKS);
    }
}

static void cores_that_are_idle_hold_nothing(void **state)
{
    const size_t one = kl_cache_own_bytes(1);
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

    (void)state;
    assert_true(one > 0 && kl_cache_bytes() > 0);
    for (int n = 1; n <= cpus; n++) assert_int_equal(kl_cache_own_bytes(n), one * (size_t)n);
    assert_int_equal(kl_cache_own_bytes(cpus + 1), one * (size_t)cpus);
}

/* Longer than a piece, and shifted by less and by more than one. */
static void bulk_copies_are_moves(void **state)
{
    enum { BYTES = (1 << 20) + 13 };
    static const size_t shifts[] = {0, 1, 4096, 300000, BYTES};
    unsigned char *memory = malloc(2 * BYTES);

    (void)state;
    FOR_EACH_CASE(shift, shifts)
    {
        for (int back = 0; back < 2; back++) {
            unsigned char *from = memory + (back ? *shift : 0), *to = memory + (back ? 0 : *shift);
            for (size_t i = 0; i < BYTES; i++) from[i] = (unsigned char)(i * 7 % 251);
            kl_copy_bulk(to, from, BYTES);
            for (size_t i = 0; i < BYTES; i++) assert_int_equal(to[i], i * 7 % 251);
        }
    }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_is_shorter_where_ranks_share_cores_but_never_short),
        cmocka_unit_test(cores_that_are_idle_hold_nothing),
        cmocka_unit_test(bulk_copies_are_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
