/* SPDX-License-Identifier: Apache-2.0 */
/* When ranks negotiate, and that all of them think so, whatever their clocks and settings say. */
#include "coll/negotiation.h"

#include "base/clock.h"
#include "tests/kolo_test.h"

#include <string.h>

enum { RANKS = 3, SIZE = 1 << 20, FUNC = KL_FUNC_ALL_TO_ALL, MANY = 3000 };

struct ranks {
    struct kl_negotiation of[RANKS];
    bool map, read;    /* what they all can */
    int held, done[3]; /* negotiations, and collectives by how they were done */
};

static struct ranks ranks_of(enum kl_kernel_copies first, enum kl_kernel_copies others)
{
    struct ranks r = {.read = first != KL_KERNEL_COPIES_NEVER && others != KL_KERNEL_COPIES_NEVER};

    for (int i = 0; i < RANKS; i++)
        r.of[i] = (struct kl_negotiation){.nranks = RANKS, .rank = i, .lending.copies = i ? others : first};
    return r;
}

/* Do they all negotiate? They may ask again and again. */
static bool are_due(struct ranks *r, int func, size_t bytes)
{
    const bool due = kl_negotiation_due(&r->of[0], func, bytes);

    for (int i = 0; i < RANKS; i++) assert_int_equal(kl_negotiation_due(&r->of[i], func, bytes), due);
    return due;
}

static enum kl_negotiation_end negotiate(struct ranks *r)
{
    struct kl_negotiation_word word = {0};
    for (int i = 0; i < RANKS; i++) {
        const struct kl_negotiation_word said = kl_negotiation_word(&r->of[i]);
        kl_negotiation_gather(&word, i, &said);
    }
    const struct kl_negotiation_outcome outcome = {r->map                  ? KL_NEGOTIATED_MAPPED
                                                   : r->read && word.reads ? KL_NEGOTIATED_READ
                                                                           : KL_NEGOTIATED_DECLINED,
                                                   word};

    for (int i = 0; i < RANKS; i++) kl_negotiation_held(&r->of[i], outcome);
    r->held++;
    return outcome.end;
}

/* A collective that takes the ranks so long, in ns, by how it is done. */
static void run_apart(struct ranks *r, int func, size_t bytes, const uint64_t ns[RANKS][3])
{
    enum kl_negotiation_end end = KL_NEGOTIATED_DECLINED;

    if (are_due(r, func, bytes)) end = negotiate(r);
    if (end == KL_NEGOTIATED_DECLINED) assert_false(are_due(r, func, bytes));
    r->done[end]++;
    for (int i = 0; i < RANKS && end != KL_NEGOTIATED_MAPPED; i++) {
        r->of[i].began = kl_now_ns() - ns[i][end];
        kl_negotiation_ended(&r->of[i]);
    }
}

static void run(struct ranks *r, int func, size_t bytes, const uint64_t ns[3])
{
    uint64_t of[RANKS][3];

    for (int i = 0; i < RANKS; i++) memcpy(of[i], ns, sizeof of[i]);
    run_apart(r, func, bytes, of);
}

static void run_many(struct ranks *r, const uint64_t ns[3])
{
    for (int i = 0; i < MANY; i++) run(r, FUNC, SIZE, ns);
}

static const uint64_t staging_faster[] = {[KL_NEGOTIATED_DECLINED] = 1000000, [KL_NEGOTIATED_READ] = 2000000},
                      reading_faster[] = {[KL_NEGOTIATED_DECLINED] = 2000000, [KL_NEGOTIATED_READ] = 1000000};

static void the_faster_way_is_taken(void **state)
{
    struct ranks r = ranks_of(KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_AUTO);

    (void)state;
    run_many(&r, reading_faster);
    assert_true(r.done[KL_NEGOTIATED_READ] > MANY * 9 / 10);
    const int before = r.done[KL_NEGOTIATED_READ];
    run_many(&r, staging_faster);
    run_many(&r, staging_faster);
    assert_true(r.done[KL_NEGOTIATED_READ] - before < MANY / 2);
    const int negotiated = r.held, read = r.done[KL_NEGOTIATED_READ];
    run_many(&r, staging_faster);
    assert_true(r.held - negotiated - (r.done[KL_NEGOTIATED_READ] - read) < MANY / 100); /* seldom in vain */
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* A root that has staged everything is done before the others are. */
static void the_slowest_rank_counts(void **state)
{
    static const uint64_t ns[RANKS][3] = {
        {[KL_NEGOTIATED_DECLINED] = 100000, [KL_NEGOTIATED_READ] = 1000000},
        {[KL_NEGOTIATED_DECLINED] = 1000000, [KL_NEGOTIATED_READ] = 1000000},
        {[KL_NEGOTIATED_DECLINED] = 2000000, [KL_NEGOTIATED_READ] = 1000000},
    };
    struct ranks r = ranks_of(KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_AUTO);

    (void)state;
    for (int i = 0; i < MANY; i++) run_apart(&r, KL_FUNC_BROADCAST, KL_NEGOTIATION_LEAST, ns);
    assert_true(r.done[KL_NEGOTIATED_READ] > (MANY - KL_LATELY_MOST_WARM) * 9 / 10);
}

/* Also when their times say now this, now that. */
static void all_ranks_report_the_same(void **state)
{
    struct ranks r = ranks_of(KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_AUTO);
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t ns[RANKS][3] = {0};
        for (int rank = 0; rank < RANKS; rank++)
            for (int end = 0; end < 3; end++) ns[rank][end] = draw(&seed, 1000000);
        const int func = (int)draw(&seed, KL_FUNCS + 1);
        r.map = !draw(&seed, 100);
        run_apart(&r, func, (size_t)1 << draw(&seed, 34), ns);
    }
    for (int way = 0; way < 3; way++) assert_true(r.done[way] > 0);
}

/* ranks with these settings; times make the opposite look better */
static void settings_are_followed(void **state)
{
    const enum kl_kernel_copies AUTO = KL_KERNEL_COPIES_AUTO, NEVER = KL_KERNEL_COPIES_NEVER,
                                ALWAYS = KL_KERNEL_COPIES_ALWAYS;
    const struct {
        enum kl_kernel_copies first, others;
        int read;
        const uint64_t *ns;
    } cases[] = {
        {ALWAYS, ALWAYS, MANY, staging_faster}, {NEVER, NEVER, 0, reading_faster}, {ALWAYS, NEVER, 0, reading_faster},
        {NEVER, ALWAYS, 0, reading_faster},     {AUTO, NEVER, 0, reading_faster},  {ALWAYS, AUTO, MANY, staging_faster},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct ranks r = ranks_of(c->first, c->others);
        run_many(&r, c->ns);
        assert_int_equal(r.done[KL_NEGOTIATED_READ], c->read);
        if (!c->read) assert_true(r.held < 40); /* ever more seldom: somebody might map something */
    }
}

static void mapped_buffers_are_always_asked_for(void **state)
{
    struct ranks r = ranks_of(KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_AUTO);

    (void)state;
    r.map = true;
    run_many(&r, staging_faster);
    assert_int_equal(r.done[KL_NEGOTIATED_MAPPED], MANY);
    assert_int_equal(r.of[0].reads[FUNC][5].uses, 0); /* the size: its times say nothing of other ways */
}

/* Said `later` before it. */
static bool is_foreseen(const struct ranks *r, size_t bytes, uint32_t later)
{
    const bool staged = kl_negotiation_stages(&r->of[0], FUNC, bytes, later);

    for (int i = 0; i < RANKS; i++) assert_int_equal(kl_negotiation_stages(&r->of[i], FUNC, bytes, later), staged);
    return staged;
}

/* Before what is said to be staged nobody negotiates, however they have come to it; and of most it is said. */
static void what_is_said_to_be_staged_is(void **state)
{
    static const enum kl_kernel_copies copies[] = {KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_NEVER,
                                                   KL_KERNEL_COPIES_ALWAYS};
    static const uint64_t ns[3] = {[KL_NEGOTIATED_DECLINED] = 1000, [KL_NEGOTIATED_READ] = 5000};
    enum { AHEAD = 4 };

    (void)state;
    FOR_EACH_CASE(c, copies)
    {
        struct ranks r = ranks_of(*c, *c);
        bool said[MANY + AHEAD] = {false};
        int foreseen = 0;
        for (int i = 0; i < MANY; i++) {
            const int held = r.held;
            run(&r, FUNC, SIZE, ns);
            if (said[i]) assert_int_equal(r.held, held);
            foreseen += said[i];
            for (uint32_t later = 2; later <= AHEAD; later++) /* behind the next, which is under way then */
                said[i + (int)later] |= is_foreseen(&r, SIZE, later);
        }
        if (*c == KL_KERNEL_COPIES_ALWAYS) assert_int_equal(foreseen, 0);
        if (*c != KL_KERNEL_COPIES_ALWAYS) assert_true(foreseen > MANY * 2 / 3);
    }
}

static void a_failed_collective_leaves_nothing_behind(void **state)
{
    struct ranks r = ranks_of(KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_AUTO);

    (void)state;
    assert_true(are_due(&r, FUNC, SIZE));
    for (int i = 0; i < RANKS; i++) {
        kl_negotiation_held(&r.of[i], (struct kl_negotiation_outcome){.end = KL_NEGOTIATED_DECLINED});
        kl_negotiation_reset(&r.of[i]);
        assert_false(r.of[i].over);
        assert_null(r.of[i].times);
    }
}

static void it_is_known_whether_ranks_take_turns(void **state)
{
    (void)state;
    for (int crowded = 0; crowded < 2; crowded++) {
        struct kl_negotiation n = {.nranks = RANKS, .lending.crowded = crowded};
        kl_negotiation_due(&n, FUNC, SIZE);
        assert_int_equal(n.times->crowded, crowded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_is_taken),
        cmocka_unit_test(the_slowest_rank_counts),
        cmocka_unit_test(all_ranks_report_the_same),
        cmocka_unit_test(settings_are_followed),
        cmocka_unit_test(mapped_buffers_are_always_asked_for),
        cmocka_unit_test(it_is_known_whether_ranks_take_turns),
        cmocka_unit_test(what_is_said_to_be_staged_is),
        cmocka_unit_test(a_failed_collective_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
