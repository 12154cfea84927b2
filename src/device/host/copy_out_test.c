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

/* Copy `bytes` between arbitrary offsets: all of them are written, and no others. */
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
        struct kl_copy_out out = {.nontemporal = i % 2};
        copy_some(&out, 1 + draw(&seed, limits[i % 4]), &seed);
    }
}

/* The same sample, `times` times. */
static void take(struct kl_copy_out *out, uint64_t ns, int times)
{
    for (int i = 0; i < times; i++) kl_copy_out_took(out, ns);
}

static void it_goes_past_where_lines_come_from_far(void **state)
{
    struct kl_copy_out out = {.line_ns = 0};

    (void)state;
    take(&out, 60, 100);
    assert_false(out.nontemporal);
    take(&out, 140, 20);
    assert_true(out.nontemporal);
    take(&out, 20, 20);
    assert_false(out.nontemporal);
}

/* An interrupt, a page fault, or a line that was in this cache already. */
static void one_line_is_not_enough(void **state)
{
    struct kl_copy_out near = {.line_ns = 40}, far = {.line_ns = 140, .nontemporal = true};

    (void)state;
    kl_copy_out_took(&near, 150);
    assert_false(near.nontemporal);
    take(&near, 5000, 100);
    assert_false(near.nontemporal);
    kl_copy_out_took(&far, 0);
    assert_true(far.nontemporal);
}

/* Negative differences between readings of the clock count as 0. */
static void time_does_not_run_backwards(void **state)
{
    struct kl_copy_out out = {.line_ns = 100, .nontemporal = true};

    (void)state;
    for (int i = 0; i < 20; i++) kl_copy_out_timed(&out, UINT64_MAX);
    assert_false(out.nontemporal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_whole_either_way),
        cmocka_unit_test(it_goes_past_where_lines_come_from_far),
        cmocka_unit_test(one_line_is_not_enough),
        cmocka_unit_test(time_does_not_run_backwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
