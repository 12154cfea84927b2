/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

#include "tests/kolo_test.h"

enum {
    BYTES = 64 << 20,
    LITTLE = (4 << 20) - 1, /* costs little to try: as many uses, at first */
    BLOCK = 3,
    SOON = KL_LATELY_SOON * BLOCK,
    AGAIN = KL_LATELY_SELDOM * BLOCK,
    TRIED = BLOCK + 1, /* uses of the second way in a comparison */
    TOUCH = 1,         /* of the first way before the first one */
    COMPARED = KL_LATELY_WARM + 2 * BLOCK
};

static struct kl_lately_use use_of(size_t bytes, int guess)
{
    return (struct kl_lately_use){.bytes = bytes, .guess = guess};
}

/* One whose cycles are as long as they become. */
static struct kl_lately begun(void)
{
    struct kl_lately l = {0};

    kl_lately_of(&l, 1, 0, use_of(BYTES, 0));
    l.again = KL_LATELY_SELDOM;
    return l;
}

static int next_way(struct kl_lately *l)
{
    if (kl_lately_is_compared(l)) kl_lately_decide(l, l->ns);
    return kl_lately_way(l);
}

/* Of `n` uses, where a way takes so long: how many go the second way? What is not timed has taken no time. */
static int second_of(struct kl_lately *l, int n, const uint64_t ns[2])
{
    int second = 0;

    for (int i = 0; i < n; i++) {
        const int way = next_way(l);
        second += way;
        kl_lately_took(l, kl_lately_is_timed(l) ? ns[way] : 0);
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
        assert_int_equal(second_of(&l, COMPARED, ns), TRIED);
        int rest = AGAIN - COMPARED;
        assert_int_equal(second_of(&l, rest, ns), faster ? rest : 0);
        int second = second_of(&l, 10 * AGAIN, ns); /* the other one again and again */
        assert_int_equal(second, faster ? 10 * (AGAIN - (2 * BLOCK - TRIED)) : 10 * TRIED);
    }
}

/* What is said of uses to come is what they are, whatever they take; and of most it is said. */
static void what_is_foreseen_comes(void **state)
{
    enum { USES = 4 * AGAIN, AHEAD = 8 };

    (void)state;
    for (int i = 0; i < 4; i++) {
        const int faster = i / 2;
        struct kl_lately l = {0};
        int said[USES + AHEAD] = {0}, foreseen = 0;
        const uint64_t *ns = faster ? second_faster : first_faster;

        assert_false(kl_lately_stays(&l, 0, 1));
        kl_lately_of(&l, 1, 0, use_of(LITTLE / 4, i % 2));
        for (int use = 0; use < USES; use++) {
            const int way = next_way(&l);
            assert_true(!said[use] || said[use] == 1 + way);
            foreseen += said[use] != 0;
            for (int later = 1; later < AHEAD; later++)
                for (int other = 0; other < 2; other++)
                    if (kl_lately_stays(&l, other, (uint32_t)later)) said[use + later] = 1 + other;
            kl_lately_took(&l, ns[way]);
        }
        assert_true(foreseen > USES * 3 / 4);
    }
}

/* Small uses go through all memory that is staged in before times count, whichever way is guessed; later comparisons need not. */
static void memory_is_touched_before_times_count(void **state)
{
    enum { SMALL = KL_LATELY_WARM_BYTES / 100, FIRST = 100 + 2 * 32 };
    struct kl_lately l = {0};

    (void)state;
    kl_lately_of(&l, 1, 0, use_of(SMALL, 0));
    assert_int_equal(second_of(&l, FIRST, first_faster), 32 + 1);
    assert_true(kl_lately_is_compared(&l));
    assert_int_equal(second_of(&l, KL_LATELY_SOON * 32 - FIRST, first_faster), 0);
    assert_int_equal(second_of(&l, KL_LATELY_WARM + 2 * 64, first_faster), 64 + 1);
    l = (struct kl_lately){0};
    kl_lately_of(&l, 1, 0, use_of(SMALL, 1));
    assert_int_equal(second_of(&l, 100, second_faster), 100 / 2);
    assert_int_equal(second_of(&l, 2 * 32, second_faster), 32 + 1);
    assert_int_equal(second_of(&l, KL_LATELY_SOON * 32 - FIRST, second_faster), KL_LATELY_SOON * 32 - FIRST);
    assert_int_equal(second_of(&l, KL_LATELY_WARM, second_faster), KL_LATELY_WARM);
}

static void one_that_becomes_faster_is_found(void **state)
{
    struct kl_lately l = begun();

    (void)state;
    second_of(&l, 4 * AGAIN, first_faster);
    second_of(&l, 2 * COMPARED, second_faster); /* it is compared twice */
    assert_int_equal(second_of(&l, AGAIN - COMPARED, second_faster), AGAIN - COMPARED);
}

static void what_is_hardly_faster_changes_nothing(void **state)
{
    static const uint64_t hardly[] = {100, 96};
    struct kl_lately l = begun();

    (void)state;
    second_of(&l, AGAIN, first_faster);
    assert_int_equal(second_of(&l, 10 * AGAIN, hardly), 10 * TRIED);
}

/* In three comparisons in a row; it does not add up. */
static void what_is_a_little_faster_is_found_in_time(void **state)
{
    static const uint64_t little[] = {100, 90};
    struct kl_lately l = begun();

    (void)state;
    second_of(&l, AGAIN, first_faster);
    assert_int_equal(second_of(&l, 2 * AGAIN, little), 2 * TRIED);
    second_of(&l, AGAIN, first_faster);
    assert_int_equal(second_of(&l, 2 * AGAIN + COMPARED, little), 3 * TRIED);
    assert_int_equal(second_of(&l, AGAIN - COMPARED, little), AGAIN - COMPARED);
}

/* Up to a quarter of the uses; more is what they take. */
static void few_of_many_may_stall(void **state)
{
    enum { USES = 32, COUNTED = USES, SELDOM = 5, OFTEN = 3 };

    (void)state;
    for (uint32_t every = OFTEN; every <= SELDOM; every += SELDOM - OFTEN) {
        struct kl_lately l = {0};
        kl_lately_of(&l, 1, 0, use_of(1, 0));
        assert_int_equal(l.block, USES);
        for (uint32_t left = l.warm + 2 * USES; left; left--) kl_lately_took(&l, left % every ? 100 : 1000);
        for (int way = 0; way < 2; way++)
            assert_true(every == SELDOM ? l.ns[way] == COUNTED * 100 : l.ns[way] > COUNTED * 300);
    }
}

/* One use meets a time slice of another program: of the first way or of the second. Where ranks take turns it may be one of theirs. */
static void stalls_do_not_count(void **state)
{
    enum { FIRST = KL_LATELY_WARM + 1, SECOND = KL_LATELY_WARM + BLOCK + 2 };
    static const struct {
        int use;
        uint64_t took;
        bool crowded;
        uint64_t ns[2];
    } cases[] = {{FIRST, 401, false, {300, 300}},  {FIRST, 400, false, {600, 300}},  {FIRST, 401, true, {601, 300}},
                 {SECOND, 401, false, {300, 300}}, {SECOND, 400, false, {300, 750}}, {SECOND, 401, true, {300, 751}}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_lately l = begun();
        l.crowded = c->crowded;
        for (int i = 0; i < COMPARED; i++) kl_lately_took(&l, i == c->use ? c->took : 100);
        assert_int_equal(l.ns[0], c->ns[0]);
        assert_int_equal(l.ns[1], c->ns[1]);
    }
}

/* All uses of the better way meet one, in one comparison or in two. */
static int second_after_slices(struct kl_lately *l, int slices)
{
    static const uint64_t slices_of_first[] = {3000, 200};

    for (int i = 0; i < slices; i++) assert_int_equal(second_of(l, COMPARED, slices_of_first), TRIED);
    return second_of(l, KL_LATELY_WARM, first_faster);
}

static void one_comparison_changes_nothing(void **state)
{
    struct kl_lately once = begun(), twice = begun();

    (void)state;
    second_of(&once, AGAIN, first_faster);
    assert_int_equal(second_after_slices(&once, 1), 0);
    assert_int_equal(second_of(&once, 2 * BLOCK, first_faster), TRIED); /* at once, the second comparison; */
    assert_int_equal(second_of(&once, AGAIN - COMPARED, first_faster), 0);
    assert_int_equal(second_after_slices(&once, 1), 0); /* what the one before it said is forgotten */
    second_of(&twice, AGAIN, first_faster);
    assert_int_equal(second_after_slices(&twice, 2), KL_LATELY_WARM);
}

/* The first uses after a change take half as long again; and those after the first one of all, as memory is touched, any time. */
static void cold_caches_decide_nothing(void **state)
{
    struct kl_lately l = begun();
    int last = -1, second = 0;

    (void)state;
    for (int i = 0; i < AGAIN; i++) {
        const int way = next_way(&l);
        const uint64_t ns = first_faster[way];
        second += way;
        kl_lately_took(&l, i < KL_LATELY_WARM ? 1000000 : way == last ? ns : ns * 3 / 2);
        last = way;
    }
    assert_int_equal(second, TRIED);
}

/* What the first way puts off, the second one has to wait for. */
static void what_is_put_off_counts(void **state)
{
    struct kl_lately l = begun();
    uint64_t left = 0;

    (void)state;
    l.crowded = true;
    for (int i = 0; i < COMPARED; i++) {
        const int way = next_way(&l);
        kl_lately_took(&l, way ? second_faster[1] + left : 1);
        left = way ? 0 : left + second_faster[0];
    }
    assert_int_equal(next_way(&l), 1);
}

/* Whichever is guessed: until they are compared. */
static void a_guess_is_put_right(void **state)
{
    struct kl_lately l = {0};

    (void)state;
    kl_lately_of(&l, 1, 0, use_of(BYTES, 1));
    assert_int_equal(second_of(&l, KL_LATELY_WARM, first_faster), KL_LATELY_WARM - TOUCH);
    assert_int_equal(second_of(&l, 2 * BLOCK, first_faster), TRIED);
    assert_int_equal(second_of(&l, SOON - COMPARED, first_faster), 0);
}

/* Until both ways are compared at a size, what was found nearby counts, */
static void one_begins_as_another_has_ended(void **state)
{
    struct kl_lately of[4] = {0};

    (void)state;
    second_of(kl_lately_of(of, 4, 0, use_of(LITTLE, 0)), SOON, second_faster);
    struct kl_lately *l = kl_lately_of(of, 4, 2, use_of(LITTLE, 0));
    assert_int_equal(second_of(l, KL_LATELY_WARM, first_faster), KL_LATELY_WARM - TOUCH);
    assert_int_equal(second_of(l, SOON - KL_LATELY_WARM, first_faster), TRIED);
}

/* for a whole cycle if it costs much to try, even if it is further away; */
static void what_costs_much_is_tried_late(void **state)
{
    struct kl_lately of[6] = {0};

    (void)state;
    second_of(kl_lately_of(of, 6, 0, use_of(BYTES, 0)), SOON, second_faster);
    struct kl_lately *l = kl_lately_of(of, 6, 4, use_of(BYTES, 0));
    enum { LATE = SOON - 2 * BLOCK - KL_LATELY_HEARS };
    assert_int_equal(second_of(l, LATE, first_faster), LATE - TOUCH);
    assert_int_equal(second_of(l, 2 * BLOCK, first_faster), TRIED);
    assert_int_equal(next_way(l), 0);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 6, 5, use_of(BYTES, 1))), 1);
}

/* also if another guess there was wrong, as this one would have been right; */
static void a_wrong_guess_speaks_for_the_other(void **state)
{
    struct kl_lately of[3] = {0};

    (void)state;
    second_of(kl_lately_of(of, 3, 0, use_of(BYTES, 0)), SOON, second_faster);
    struct kl_lately *l = kl_lately_of(of, 3, 2, use_of(BYTES, 1));
    assert_int_equal(second_of(l, SOON - 2 * BLOCK - KL_LATELY_HEARS, first_faster),
                     SOON - 2 * BLOCK - KL_LATELY_HEARS - TOUCH);
}

/* and so is what is sure; */
static void what_is_sure_is_tried_late(void **state)
{
    struct kl_lately costly = {0}, cheap = {0};
    struct kl_lately_use use = use_of(BYTES, 1);

    (void)state;
    use.sure = true;
    kl_lately_of(&costly, 1, 0, use);
    assert_int_equal(costly.warm, SOON - 2 * BLOCK - KL_LATELY_HEARS);
    use.bytes = LITTLE;
    kl_lately_of(&cheap, 1, 0, use);
    assert_true(cheap.warm < SOON - 2 * BLOCK - KL_LATELY_HEARS);
}

/* but not if it has not been found yet, or is far away, or another guess there was right. */
static void what_is_not_alike_has_no_say(void **state)
{
    struct kl_lately of[5] = {0};

    (void)state;
    second_of(kl_lately_of(of, 5, 0, use_of(LITTLE, 0)), SOON, first_faster);
    second_of(kl_lately_of(of, 5, 4, use_of(LITTLE, 1)), KL_LATELY_WARM, first_faster);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 5, 1, use_of(LITTLE, 1))), 1);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 5, 3, use_of(LITTLE, 0))), 0);
    second_of(&of[4], SOON, first_faster);
    assert_int_equal(kl_lately_way(kl_lately_of(of, 5, 2, use_of(LITTLE, 1))), 0);
}

/* ---- others ---- */

/* One that found the first way better, and has now been compared again, with these times. */
static struct kl_lately found(const uint64_t ns[2])
{
    struct kl_lately l = begun();

    second_of(&l, AGAIN, first_faster);
    second_of(&l, COMPARED, first_faster);
    l.ns[0] = ns[0];
    l.ns[1] = ns[1];
    (void)next_way(&l);
    return l;
}

/* Whatever each of them found, and then both do the same, for longer than until the next comparison. */
static void those_who_hear_each_other_agree(void **state)
{
    static const struct {
        const char *text;
        uint64_t one[2], other[2];
        int way;
    } cases[] = {
        {"both keep it", {100, 200}, {150, 160}, 0},
        {"one doubts it", {300, 200}, {100, 290}, 0},
        {"the slowest says that it is the other", {300, 100}, {100, 90}, 1},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_lately one = found(c->one), other = found(c->other);
        uint64_t said[2] = {one.slowest[0], one.slowest[1]};
        bool same = true;
        kl_lately_hear(&one, other.slowest);
        kl_lately_took(&other, 100); /* it hears a use later */
        kl_lately_hear(&other, said);
        kl_lately_took(&one, 100);
        for (int i = 0; i < 2 * AGAIN; i++) {
            const int way = next_way(&one);
            same &= way == next_way(&other);
            kl_lately_took(&one, c->way ? second_faster[way] : first_faster[way]);
            kl_lately_took(&other, c->way ? second_faster[way] : first_faster[way]);
        }
        expect_case(c->text, same && one.better == c->way && other.better == c->way);
    }
}

static void others_are_heard_for_a_while(void **state)
{
    struct kl_lately l = begun();

    (void)state;
    second_of(&l, COMPARED, first_faster);
    assert_false(kl_lately_hears(&l));
    (void)next_way(&l);
    for (int i = 0; i < KL_LATELY_HEARS; i++, kl_lately_took(&l, 100)) assert_true(kl_lately_hears(&l));
    assert_false(kl_lately_hears(&l));
}

/* At first whichever is faster is taken. */
static void a_guess_counts_for_little(void **state)
{
    static const uint64_t hardly[] = {100, 90};
    struct kl_lately l = begun();

    (void)state;
    assert_int_equal(second_of(&l, AGAIN, hardly), AGAIN - COMPARED + TRIED);
}

/* Among time slices of other ranks a few uses tell little. */
static void oversubscribed_ranks_compare_more(void **state)
{
    (void)state;
    for (int crowded = 0; crowded < 2; crowded++) {
        struct kl_lately l = {0};
        struct kl_lately_use use = use_of((size_t)64 << 20, 0);
        use.crowded = crowded;
        kl_lately_of(&l, 1, 0, use);
        assert_int_equal(second_of(&l, KL_LATELY_WARM + 16, first_faster), 1 + (crowded ? 8 : 3));
    }
}

/* The first way takes 100 for all ranks, and this one is up to 16 uses ahead, also before the comparison. The second way takes 150, when all have come to it. */
static void who_runs_ahead_counts_what_it_leaves_behind(void **state)
{
    struct kl_lately l = {0};
    uint64_t ahead = 0;

    (void)state;
    kl_lately_of(&l, 1, 0, (struct kl_lately_use){.bytes = LITTLE / 128, .crowded = true});
    for (int i = 0; i < 10 * KL_LATELY_SELDOM * 64; i++) {
        const int way = next_way(&l);
        const uint64_t ns = way ? 100 * ahead + 150 : ahead < 16 ? 1 : 100;
        ahead = way ? 0 : ahead < 16 ? ahead + 1 : ahead;
        assert_true(!way || !l.compared || kl_lately_is_timed(&l) || l.uses == l.warm);
        kl_lately_took(&l, kl_lately_is_timed(&l) ? ns : 0);
    }
    assert_true(l.number > 2);
    assert_int_equal(l.better, 0);
}

static void later_comparisons_are_longer_and_more_seldom(void **state)
{
    static const struct {
        int block, again;
    } cycles[] = {{4, 16}, {8, 32}, {8, 64}, {8, 64}}; /* blocks of a MiB */
    struct kl_lately l = {0};

    (void)state;
    kl_lately_of(&l, 1, 0, use_of(1 << 20, 0));
    FOR_EACH_CASE(c, cycles) assert_int_equal(second_of(&l, c->again * c->block, first_faster), c->block + 1);
}

static void only_what_is_compared_is_timed(void **state)
{
    struct kl_lately l = begun();
    int timed = 0;

    (void)state;
    for (int i = 0; i < AGAIN; i++) {
        next_way(&l);
        timed += kl_lately_is_timed(&l);
        kl_lately_took(&l, 100);
    }
    assert_int_equal(timed, 2 * BLOCK - 1); /* not the one it begins with */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_are_tried_and_the_faster_one_is_taken),
        cmocka_unit_test(what_is_foreseen_comes),
        cmocka_unit_test(memory_is_touched_before_times_count),
        cmocka_unit_test(one_that_becomes_faster_is_found),
        cmocka_unit_test(what_is_hardly_faster_changes_nothing),
        cmocka_unit_test(only_what_is_compared_is_timed),
        cmocka_unit_test(what_is_a_little_faster_is_found_in_time),
        cmocka_unit_test(few_of_many_may_stall),
        cmocka_unit_test(stalls_do_not_count),
        cmocka_unit_test(one_comparison_changes_nothing),
        cmocka_unit_test(cold_caches_decide_nothing),
        cmocka_unit_test(what_is_put_off_counts),
        cmocka_unit_test(a_guess_is_put_right),
        cmocka_unit_test(a_guess_counts_for_little),
        cmocka_unit_test(oversubscribed_ranks_compare_more),
        cmocka_unit_test(who_runs_ahead_counts_what_it_leaves_behind),
        cmocka_unit_test(later_comparisons_are_longer_and_more_seldom),
        cmocka_unit_test(one_begins_as_another_has_ended),
        cmocka_unit_test(what_costs_much_is_tried_late),
        cmocka_unit_test(a_wrong_guess_speaks_for_the_other),
        cmocka_unit_test(what_is_sure_is_tried_late),
        cmocka_unit_test(what_is_not_alike_has_no_say),
        cmocka_unit_test(those_who_hear_each_other_agree),
        cmocka_unit_test(others_are_heard_for_a_while),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
