/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/copy_out.h"

#include "tests/kolo_test.h"

enum { ROOM = 80000, GUARD = 64 };

static unsigned char from[ROOM], to[ROOM + 2 * GUARD];

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* `bytes` from any place to any other: all of them, and no other. */
static void copy_some(struct kl_copy_out *out, size_t bytes, uint64_t *seed)
{
    const size_t at = draw(seed, ROOM - bytes + 1), begin = GUARD + draw(seed, ROOM - bytes + 1);

    memset(to, 0, sizeof to);
    for (size_t i = 0; i < bytes; i++) from[at + i] = (unsigned char)(1 + draw(seed, 255));
    kl_copy_out(out, to + begin, from + at, bytes);
    assert_memory_equal(to + begin, from + at, bytes);
    for (size_t i = 0; i < GUARD; i++) assert_true(!to[begin - 1 - i] && !to[begin + bytes + i]);
}

static void copies_are_whole_either_way(void **state)
{
    static const size_t limits[] = {200, 2000, 10000, ROOM};
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct kl_copy_out out = {.copies = (uint32_t)i, .past = i % 2};
        copy_some(&out, 1 + draw(&seed, limits[i % 4]), &seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_whole_either_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
