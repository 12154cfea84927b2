/* SPDX-License-Identifier: Apache-2.0 */
/* A shared-memory exchange by itself: ranks that share a core, places of posts, and the pauses of a reader. */
#include "coll/shm/test_shm_exchange_calls.h"

#include <limits.h>

/* ---- ranks by core ---- */

static void check_groups(const struct kl_shm_exchange *b, int n, int size)
{
    assert_int_equal(b->groups.n, n);
    assert_int_equal(b->groups.size, size);
    for (int r = 0; r < b->nranks; r++)
        assert_int_equal(b->groups.rank[b->groups.group[r] * size + b->groups.place[r]], r);
}

/* If all cores have as many ranks, and some have several. */
static void ranks_are_grouped_by_core(void **state)
{
    static const int32_t turns[] = {0, 1, 0, 1, 0, 1}, blocks[] = {0, 0, 2, 2, 4, 4}, uneven[] = {0, 1, 0, 1, 0, 0},
                         alone[] = {0, 1, 2, 3, 4, 5}, same[6] = {0};
    struct kl_shm_exchange b;

    (void)state;
    kl_shm_exchange_init(&b, 6, 0, true);
    check_groups(&b, 1, 6);
    kl_shm_exchange_group(&b, turns);
    check_groups(&b, 2, 3);
    assert_int_equal(b.groups.rank[3], 1);
    kl_shm_exchange_group(&b, blocks);
    check_groups(&b, 3, 2);
    kl_shm_exchange_group(&b, uneven);
    check_groups(&b, 1, 6);
    kl_shm_exchange_group(&b, alone);
    check_groups(&b, 1, 6);
    kl_shm_exchange_group(&b, same);
    check_groups(&b, 1, 6);
}

/* ---- where small posts lie ---- */

/* From the flag of a round to the flag of the next one, bytes. */
static ptrdiff_t step_after(const struct kl_shm_exchange *b, uint64_t round, size_t bytes)
{
    const char *flag = (const char *)kl_shm_exchange_flag_of(b, 1, round, bytes);

    return (const char *)kl_shm_exchange_flag_of(b, 1, round + 1, bytes) - flag;
}

/* Over many rounds: the smallest of these steps, to either side, and whether all are equal. */
static size_t least_step(const struct kl_shm_exchange *b, size_t bytes, bool *alike)
{
    size_t least = SIZE_MAX;

    *alike = true;
    for (uint64_t round = 0; round < KL_SHM_EXCHANGE_LEAST_LINES - 1; round++) {
        const ptrdiff_t step = step_after(b, round, bytes);
        const size_t size = (size_t)(step < 0 ? -step : step);
        if (size < least) least = size;
        *alike = *alike && step == step_after(b, 0, bytes);
    }
    return least;
}

static void small_posts_are_scattered_where_they_are_read_at_once(void **state)
{
    static const struct place_case {
        const char *text;
        bool oversubscribed, solo, rooted;
        size_t bytes, step; /* from round to round; 0: scattered */
    } cases[] = {
        {"a broadcast between cores", false, true, true, 8, 0},
        {"a reduce between cores", false, false, true, 8, 0},
        {"all contributions, between cores", false, false, false, 8, 0},
        {"a packet between cores", false, true, true, KL_SHM_EXCHANGE_PACKET, 0},
        {"a broadcast where cores are shared", true, true, true, KL_SHM_EXCHANGE_PACKED,
         sizeof(struct kl_shm_exchange_packed)},
        {"a line of it", true, true, true, KL_SHM_EXCHANGE_INLINE, sizeof(struct kl_shm_exchange_line)},
        {"a packet of it", true, true, true, KL_SHM_EXCHANGE_PACKET, sizeof(struct kl_shm_exchange_packed)},
        {"a reduce where cores are shared", true, false, true, KL_SHM_EXCHANGE_PACKET, 0},
        {"a large one", true, false, true, KL_SHM_EXCHANGE_PACKET + 1, sizeof(struct kl_shm_exchange_packed)},
        {"all contributions, where cores are shared", true, false, false, 8, sizeof(struct kl_shm_exchange_line)},
    };
    void *memory = zeroed(kl_shm_exchange_bytes(2)), *mark = zeroed(2 * sizeof(struct kl_arena_mark));

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_shm_exchange b;
        bool alike;

        kl_shm_exchange_init(&b, 2, 0, k->oversubscribed);
        kl_shm_exchange_attach(&b, memory, mark);
        kl_shm_exchange_begin(&b, k->solo, k->rooted);
        const size_t step = least_step(&b, k->bytes, &alike);
        expect_case(k->text, k->step ? alike && step == k->step : !alike && step > 8 * KL_LINE);
    }
    free(memory);
    free(mark);
}

/* ---- places ---- */

enum { PLACES_SEEN = 1 << 14, OPENS = 200000 };

/* The last use of each place, as 1 + the round, by address. */
struct places {
    const void *at[PLACES_SEEN];
    uint64_t used[PLACES_SEEN];
    int n; /* in use so far */
};

static uint64_t *used_of(struct places *p, const void *at)
{
    uint32_t i = (uint32_t)((uintptr_t)at / KL_LINE % PLACES_SEEN);

    while (p->at[i] && p->at[i] != at) i = (i + 1) % PLACES_SEEN;
    if (!p->at[i]) p->n++;
    p->at[i] = at;
    return &p->used[i];
}

/* The other rank reads as late as allowed: only as many rounds late as this one waits for. */
static void *open_when_allowed(struct kl_shm_exchange *b, size_t bytes)
{
    int blocker;

    while (!kl_shm_exchange_may_post(b, bytes, &blocker)) {
        assert_int_equal(blocker, 1);
        kl_fetch_add_relaxed(&b->posts[1].done, 1);
    }
    return kl_shm_exchange_open(b, bytes);
}

/* Posts of several areas in turn: none overwrites an unread one, also while places are doubled. */
static void a_place_is_written_anew_when_it_was_read(void **state)
{
    struct places *seen = zeroed(sizeof *seen);
    void *memory = zeroed(kl_shm_exchange_bytes(2)), *mark = zeroed(2 * sizeof(struct kl_arena_mark));
    struct kl_shm_exchange b;
    uint32_t random = 1;

    (void)state;
    kl_shm_exchange_init(&b, 2, 0, false);
    kl_shm_exchange_attach(&b, memory, mark);
    kl_shm_exchange_begin(&b, false, false);
    const size_t bytes[] = {KL_SHM_EXCHANGE_INLINE + 1, b.cell_bytes, 4 * b.cell_bytes, b.slot_bytes};
    for (; b.round < OPENS; b.round++) {
        random = random * 1664525u + 1013904223u;
        const size_t n = bytes[(random >> 16) % (b.round < OPENS / 2 ? 1 + b.round / (OPENS / 8) % 4 : 4)];
        void *at = open_when_allowed(&b, n);
        uint64_t *used = used_of(seen, at);
        assert_true(*used <= kl_load_relaxed(&b.posts[1].done));
        assert_ptr_equal(kl_shm_exchange_open(&b, n), at);
        *used = b.round + 1;
        kl_shm_exchange_announce(&b, n, 5);
    }
    for (int i = KL_SHM_EXCHANGE_CELLS; i < KL_SHM_EXCHANGE_AREAS; i++)
        if (b.area[i].uses) assert_int_equal(b.area[i].used, b.area[i].places);
    free(memory);
    free(mark);
    free(seen);
}

/* A rank that posts seldom touches little memory. */
static void few_posts_use_few_places(void **state)
{
    struct places *seen = zeroed(sizeof *seen);
    void *memory = zeroed(kl_shm_exchange_bytes(2)), *mark = zeroed(2 * sizeof(struct kl_arena_mark));
    struct kl_shm_exchange b;

    (void)state;
    kl_shm_exchange_init(&b, 2, 0, false);
    kl_shm_exchange_attach(&b, memory, mark);
    kl_shm_exchange_begin(&b, false, false);
    for (; b.round < 1000; b.round++) {
        *used_of(seen, open_when_allowed(&b, b.slot_bytes)) = 1;
        assert_in_range(seen->n, 0, KL_SHM_EXCHANGE_FIRST_PLACES + b.round / (KL_SHM_EXCHANGE_USES_PER_PLACE / 2));
    }
    free(memory);
    free(mark);
    free(seen);
}

/* Two notices may wait; a rank that has not heard one holds up the one after the next. */
static void notices_are_heard_in_order(void **state)
{
    enum { N = 3 };
    void *memory = zeroed(kl_shm_exchange_bytes(N)), *mark = zeroed(N * sizeof(struct kl_arena_mark));
    struct kl_shm_exchange b[N];
    uint32_t word;
    int blocker = -1;

    (void)state;
    for (int r = 0; r < N; r++) {
        kl_shm_exchange_init(&b[r], N, r, false);
        kl_shm_exchange_attach(&b[r], memory, mark);
    }
    assert_false(kl_shm_exchange_receive_notice(&b[1], 1, &word));
    assert_true(kl_shm_exchange_give_notice(&b[0], 1, 11, &blocker) &&
                kl_shm_exchange_give_notice(&b[0], 2, 22, &blocker));
    assert_true(kl_shm_exchange_receive_notice(&b[1], 1, &word) && word == 11);
    assert_true(kl_shm_exchange_receive_notice(&b[1], 2, &word) && word == 22);
    assert_false(kl_shm_exchange_give_notice(&b[0], 3, 33, &blocker));
    assert_int_equal(blocker, 2);
    assert_true(kl_shm_exchange_receive_notice(&b[2], 1, &word) && word == 11);
    assert_true(kl_shm_exchange_give_notice(&b[0], 3, 33, &blocker));
    assert_true(kl_shm_exchange_receive_notice(&b[2], 2, &word) && word == 22);
    assert_true(kl_shm_exchange_receive_notice(&b[2], 3, &word) && word == 33);
    free(memory);
    free(mark);
}

/* As long as posts came at once before, up to a limit; not where another rank may need the core, nor where all wait for
 * all. */
static void a_close_follower_skips_polls(void **state)
{
    static const struct pause_case {
        const char *text;
        bool oversubscribed, rooted;
        unsigned hits, pauses;
    } cases[] = {
        {"none", false, true, 0, 0},
        {"some", false, true, 7, 7 * KL_SHM_EXCHANGE_PAUSES_PER_POST},
        {"many", false, true, 1000, KL_SHM_EXCHANGE_PAUSES},
        {"most", false, true, UINT_MAX, KL_SHM_EXCHANGE_PAUSES},
        {"cores are shared", true, true, 7, 0},
        {"all wait for all", false, false, 7, 0},
    };

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_shm_exchange b;

        kl_shm_exchange_init(&b, 2, 0, k->oversubscribed);
        kl_shm_exchange_begin(&b, k->rooted, k->rooted);
        b.hits = k->hits;
        expect_case(k->text, kl_shm_exchange_pauses(&b) == k->pauses && kl_shm_exchange_pauses(&b) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_grouped_by_core),
        cmocka_unit_test(small_posts_are_scattered_where_they_are_read_at_once),
        cmocka_unit_test(a_place_is_written_anew_when_it_was_read),
        cmocka_unit_test(few_posts_use_few_places),
        cmocka_unit_test(notices_are_heard_in_order),
        cmocka_unit_test(a_close_follower_skips_polls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
