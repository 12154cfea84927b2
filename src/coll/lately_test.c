/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

#include "tests/kolo_test.h"

enum { BYTES = 64 << 20, BLOCK = 2, AGAIN = KL_LATELY_AGAIN * BLOCK, COMPARED = KL_LATELY_WARM + 2 * BLOCK };

static struct kl_lately begun(void)
{
    struct kl_lately l = {0};

    return *kl_lately_of(&l, 1, 0, BYTES, 0);
}

static int next_way(struct kl_lately *l)
{
    if (kl_lately_is_compared(l)) kl_lately_decide(l, l->ns);
    return kl_lately_way(l);
}

/* Of `n` uses, where a way takes so long: how many go the second way? */
static int second_of(struct kl_lately *l, int n, const uint64_t ns[2])
{
    int second = 0;

    for (int i = 0; i < n; i++) {
        const int way = next_way(l);
        second += way;
        kl_lately_took(l, ns[way]);
    }
    return second;
}

static const uint64_t first_faster[] = {100, 200}, second_faster[] = {200, 100};

static void both_are_tried_and_the_faster_one_is_taken(void **state)
{
    (void)state;
    for (int faster = 0; faster < 2; faster++) {
        struct kl_lately l = begun();
        const uint64_t *ns = faster ? second_faster : first_faster;
        assert_int_equal(second_of(&l, COMPARED, ns), BLOCK);
        int rest = AGAIN - COMPARED;
        assert_int_equal(second_of(&l, rest, ns), faster ? rest : 0);
        int second = second_of(&l, 10 * AGAIN, ns); /* the other one again and again */
        assert_int_equal(faster ? 10 * AGAIN - second : second, 10 * BLOCK);
    }
}

static void one_that_becomes_faster_is_found(void **state)
{
    struct kl_lately l = begun();

    (void)state;
    second_of(&l, 4 * AGAIN, first_faster);
    second_of(&l, AGAIN, second_faster);
    assert_int_equal(second_of(&l, AGAIN, second_faster), AGAIN - BLOCK);
}

static void what_is_hardly_faster_changes_nothing(void **state)
{
    static const uint64_t hardly[] = {100, 90};
    struct kl_lately l = begun();

    (void)state;
    assert_int_equal(second_of(&l, 10 * AGAIN, hardly), 10 * BLOCK);
}

/* The first uses after a change are slow, and for a while those after the first one of all. */
static void cold_caches_decide_nothing(void **state)
{
    struct kl_lately l = begun();
    int last = -1, second = 0;

    (void)state;
    for (int i = 0; i < AGAIN; i++) {
        const int way = next_way(&l);
        second += way;
        kl_lately_took(&l, way == last && i >= KL_LATELY_WARM ? first_faster[way] : 1000000);
        last = way;
    }
    assert_int_equal(second, BLOCK);
}

/* Whichever is guessed: until they are compared. */
static void a_guess_is_put_right(void **state)
{
    struct kl_lately l = {0};

    (void)state;
    kl_lately_of(&l, 1, 0, BYTES, 1);
    assert_int_equal(second_of(&l, KL_LATELY_WARM, first_faster), KL_LATELY_WARM);
    assert_int_equal(second_of(&l, 2 * BLOCK, first_faster), BLOCK);
    assert_int_equal(second_of(&l, AGAIN - COMPARED, first_faster), 0);
}

/* Until both ways are compared at a size, what was found nearby counts, */
static void one_begins_as_another_has_ended(void **state)
{
    struct kl_lately of[4] = {0};

    (void)state;
    second_of(kl_lately_of(of, 4, 0, BYTES, 0), AGAIN, second_faster);
    struct kl_lately *l = kl_lately_of(of, 4, 2, BYTES, 0);
    assert_int_equal(second_of(l, KL_LATELY_WARM, first_faster), KL_LATELY_WARM);
    assert_int_equal(second_of(l, AGAIN - KL_LATELY_WARM, first_faster), BLOCK);
}

/* but not if it has not been found yet, or is far away, or something else was to be expected there. */
static void what_is_not_alike_has_no_say(void **state)
{
    struct kl_lately of[5] = {0};

    (void)state;
    second_of(kl_lately_of(of, 5, 0, BYTES, 0), AGAIN, second_faster);
    second_of(kl_lately_of(of, 5, 4, BYTES, 1), KL_LATELY_WARM, first_faster);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 5, 1, BYTES, 1)), 1);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 5, 3, BYTES, 0)), 0);
    second_of(&of[4], AGAIN, first_faster);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 5, 2, BYTES, 1)), 0);
}

static void later_comparisons_are_longer(void **state)
{
    struct kl_lately l = {0};

    (void)state;
    kl_lately_of(&l, 1, 0, 1 << 20, 0);
    for (int longer = 2; longer <= 8; longer *= 2)
        assert_int_equal(second_of(&l, longer * AGAIN, first_faster), longer * BLOCK);
    assert_int_equal(second_of(&l, 8 * AGAIN, first_faster), 8 * BLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_are_tried_and_the_faster_one_is_taken),
        cmocka_unit_test(one_that_becomes_faster_is_found),
        cmocka_unit_test(what_is_hardly_faster_changes_nothing),
        cmocka_unit_test(cold_caches_decide_nothing),
        cmocka_unit_test(a_guess_is_put_right),
        cmocka_unit_test(later_comparisons_are_longer),
        cmocka_unit_test(one_begins_as_another_has_ended),
        cmocka_unit_test(what_is_not_alike_has_no_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
