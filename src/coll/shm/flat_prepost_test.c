/* SPDX-License-Identifier: Apache-2.0 */
/* Flat where ranks do not keep step: a rank that runs ahead goes through one cycle and no further, and data posted before
 * their round are read in it. */
#include "coll/shm/test_shm_exchange_calls.h"

/* ---- a rank that runs ahead ---- */

/* The rank that runs ahead in a broadcast, or in a reduce to rank 0. */
static int who_runs_ahead(const struct call *c)
{
    return c->func == KL_FUNC_REDUCE ? 1 : 0;
}

/* All others do the next one. */
static void follow(struct world *w, const struct call *c)
{
    const int ahead = who_runs_ahead(c);

    for (int i = 1; i < w->n; i++) {
        const int r = (ahead + i) % w->n;
        struct kl_channel_work s = share_of(c, r, w->send[r], w->recv[r]);
        assert_int_equal(go_on(w, ahead), KL_STALLED);
        start_flat(w, r, &s);
        assert_int_equal(go_on(w, r), KL_DONE);
    }
}

/* As after many posts in each area. */
static void use_all_places(struct kl_shm_exchange *b)
{
    for (int i = 0; i < KL_SHM_EXCHANGE_AREAS; i++) {
        b->area[i].used = b->area[i].places;
        b->area[i].uses = (uint64_t)KL_SHM_EXCHANGE_USES_PER_PLACE * b->area[i].places;
    }
}

/* `n` ranks and `bytes`. One ends `most` operations before any other has followed, and continues when all have
 * completed `in` of them, and not before. */
static void expect_ahead(int n, int func, size_t bytes, int most, int followed)
{
    static struct world w;
    struct call c = {.func = func, .type = ncclInt8, .count = bytes, .seed = 7};
    const int rank = who_runs_ahead(&c);
    int ahead = 0;

    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, n), ncclSuccess);
    open_world(&w, n, 40000);
    use_all_places(&w.shm[rank]);
    for (;; ahead++) {
        struct kl_channel_work s = share_of(&c, rank, w.send[rank], w.recv[rank]);
        start_flat(&w, rank, &s);
        if (go_on(&w, rank) != KL_DONE) break;
    }
    assert_int_equal(kl_flat_blocked_on(&w.op[rank], false), !rank);
    assert_int_equal(kl_flat_blocked_on(&w.op[rank], true), -1);
    for (int i = 0; i < followed; i++) follow(&w, &c);
    assert_int_equal(go_on(&w, rank), KL_DONE);
    assert_int_equal(ahead, most);
    close_world(&w);
}

/* An area with so many places, in such an exchange. The writer waits for a sixteenth, and one; small rounds are acknowledged
 * in groups. */
static void expect_cycle(const struct kl_shm_exchange *shm, int func, size_t bytes, uint32_t places)
{
    uint32_t followed = places / 16 + 1;

    if (bytes <= shm->cell_bytes)
        followed = (followed + KL_SHM_EXCHANGE_ANNOUNCED - 1) / KL_SHM_EXCHANGE_ANNOUNCED * KL_SHM_EXCHANGE_ANNOUNCED;
    expect_ahead(shm->nranks, func, bytes, (int)places, (int)followed);
}

/* Where each post needs a line, there are no more posts than lines. */
static void expect_places(const struct kl_shm_exchange *shm, int func, size_t bytes, uint32_t places)
{
    const bool packed = shm->oversubscribed &&
                        bytes > (size_t)(func == KL_FUNC_BROADCAST ? KL_SHM_EXCHANGE_INLINE : KL_SHM_EXCHANGE_PACKET);

    expect_cycle(shm, func, bytes, packed || places < shm->nlines ? places : shm->nlines);
}

/* In a broadcast, or a reduce, whose areas are of one cell, two, four. `packed`: places of the smallest. */
static void expect_cycles(int func, const struct kl_shm_exchange *shm, const struct kl_shm_exchange_area *areas,
                          uint32_t packed)
{
    expect_cycle(shm, func, KL_SHM_EXCHANGE_PACKED, packed);
    expect_cycle(shm, func, KL_SHM_EXCHANGE_PACKED + 1, shm->nlines);
    expect_cycle(shm, func, KL_SHM_EXCHANGE_INLINE, shm->nlines);
    expect_cycle(shm, func, KL_SHM_EXCHANGE_INLINE + 1, shm->area[KL_SHM_EXCHANGE_PACKETS].places);
    expect_cycle(shm, func, KL_SHM_EXCHANGE_PACKET, shm->area[KL_SHM_EXCHANGE_PACKETS].places);
    expect_places(shm, func, KL_SHM_EXCHANGE_PACKET + 1, areas[0].places);
    expect_places(shm, func, shm->cell_bytes, areas[0].places);
    for (size_t i = 1, cells = 2; i < KL_SHM_EXCHANGE_SIZES; i++, cells *= 2) {
        expect_places(shm, func, cells / 2 * shm->cell_bytes + 1, areas[i].places);
        expect_places(shm, func, cells * shm->cell_bytes, areas[i].places);
    }
}

static void expect_all_cycles(void)
{
    struct kl_shm_exchange b;

    kl_shm_exchange_init(&b, 3, 0, oversubscribed);
    expect_cycles(KL_FUNC_BROADCAST, &b, &b.area[KL_SHM_EXCHANGE_SOLO],
                  oversubscribed ? KL_SHM_EXCHANGE_AHEAD : b.nlines);
    expect_cycles(KL_FUNC_REDUCE, &b, &b.area[KL_SHM_EXCHANGE_CELLS], b.nlines);
    expect_places(&b, KL_FUNC_REDUCE, 4 * b.cell_bytes + 1, b.area[KL_SHM_EXCHANGE_SLOTS].places);
    expect_places(&b, KL_FUNC_REDUCE, b.slot_bytes, b.area[KL_SHM_EXCHANGE_SLOTS].places);
}

/* Of so many ranks that lines are fewer than other places. */
static void expect_fewer_lines(void)
{
    enum { RANKS = 20 };
    struct kl_shm_exchange b;

    kl_shm_exchange_init(&b, RANKS, 0, oversubscribed);
    assert_true(b.nlines < b.area[KL_SHM_EXCHANGE_SOLO].places);
    expect_cycle(&b, KL_FUNC_BROADCAST, KL_SHM_EXCHANGE_PACKED, oversubscribed ? KL_SHM_EXCHANGE_AHEAD : b.nlines);
    expect_places(&b, KL_FUNC_BROADCAST, KL_SHM_EXCHANGE_PACKET + 1, b.area[KL_SHM_EXCHANGE_SOLO].places);
    expect_places(&b, KL_FUNC_REDUCE, KL_SHM_EXCHANGE_PACKET + 1, b.area[KL_SHM_EXCHANGE_CELLS].places);
}

static void a_rank_ahead_waits_only_on_wrap_around(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        oversubscribed = shared;
        expect_all_cycles();
        expect_fewer_lines();
    }
    oversubscribed = false;
}

/* ---- a rank that posts before its turn ---- */

enum { EARLY_RANKS = 3, EARLY_CALLS = 5000, LARGEST = 6000, KEPT = 64 };

static struct early {
    struct kl_shm_exchange shm;
    struct kl_flat_op op;
    struct kl_channel_work share;
    struct kl_redop sum;
    int call, next; /* in progress, and the first not posted */
    bool begun;
    int32_t send[KEPT][LARGEST], recv[EARLY_RANKS * LARGEST]; /* by call */
} early[EARLY_RANKS];

static int32_t value_of(int call, int rank, int i)
{
    return 1000000 * rank + 10 * call + i;
}

/* Of call `call`, which all ranks draw alike: small ones, mostly, which all wait for. */
static struct kl_channel_work early_share(struct early *e, int call)
{
    static const int funcs[] = {KL_FUNC_ALL_REDUCE, KL_FUNC_ALL_GATHER, KL_FUNC_ALL_GATHER,
                                KL_FUNC_ALL_REDUCE, KL_FUNC_BROADCAST,  KL_FUNC_REDUCE};
    uint64_t seed = (uint64_t)call;
    const int func = funcs[draw(&seed, 100) < 92 ? draw(&seed, 4) : 4 + draw(&seed, 2)],
              limits[] = {3, 3, 28, 28, 500, LARGEST};
    const size_t count = 1 + draw(&seed, (uint64_t)limits[draw(&seed, 100) < 85 ? draw(&seed, 5) : 5]);
    int32_t *send = e->send[call % KEPT];

    for (size_t i = 0; i < count; i++) send[i] = value_of(call, e->shm.rank, (int)i);
    return (struct kl_channel_work){.func = func,
                                    .root = call % EARLY_RANKS,
                                    .signature = (uint64_t)call,
                                    .redop = kl_func_info[func].reduces ? &e->sum : NULL,
                                    .send = send,
                                    .recv = e->recv,
                                    .count = count,
                                    .end = count,
                                    .elem_bytes = sizeof(int32_t)};
}

static void check_early(const struct early *e)
{
    const struct kl_channel_work *s = &e->share;
    const int n = (int)s->count;

    if (s->func == KL_FUNC_REDUCE && e->shm.rank != s->root) return;
    for (int i = 0; i < n; i++) {
        if (kl_func_info[s->func].reduces)
            assert_int_equal(e->recv[i], 3 * value_of(e->call, 1, i));
        else if (s->func == KL_FUNC_BROADCAST)
            assert_int_equal(e->recv[i], value_of(e->call, s->root, i));
        else
            for (int r = 0; r < EARLY_RANKS; r++) assert_int_equal(e->recv[r * n + i], value_of(e->call, r, i));
    }
}

static int post_early(struct early *e, uint64_t *seed)
{
    int posted = 0;

    if (e->next <= e->call) e->next = e->call + 1;
    for (; e->next - e->call < KL_SHM_EXCHANGE_EARLY && draw(seed, 10); e->next++, posted++) {
        const struct kl_channel_work s = early_share(e, e->next);
        if (!kl_flat_prepost(&e->op, &s, (uint64_t)(e->next - e->call))) break;
    }
    return posted;
}

/* A rank may not overwrite its post while others have not come so far: some lag behind by as much as posts allow. */
static void run_early(void)
{
    void *memory = zeroed(kl_shm_exchange_bytes(EARLY_RANKS)),
         *mark = zeroed(EARLY_RANKS * sizeof(struct kl_arena_mark));
    uint64_t seed = 11;
    int left = EARLY_RANKS, posted = 0;

    for (int r = 0; r < EARLY_RANKS; r++) {
        early[r] = (struct early){0};
        kl_shm_exchange_init(&early[r].shm, EARLY_RANKS, r, oversubscribed);
        for (int i = KL_SHM_EXCHANGE_CELLS + 1; i < KL_SHM_EXCHANGE_AREAS; i++)
            early[r].shm.area[i].places = KL_SHM_EXCHANGE_LEAST_SLOTS; /* fewer than rounds that are posted early */
        kl_shm_exchange_attach(&early[r].shm, memory, mark);
        assert_int_equal(kl_redop_init(&early[r].sum, ncclInt32, ncclSum, EARLY_RANKS), ncclSuccess);
    }
    for (int favourite = 0; left; favourite = draw(&seed, 50) ? favourite : (int)draw(&seed, EARLY_RANKS)) {
        struct early *e = &early[draw(&seed, 3) ? favourite : (int)draw(&seed, EARLY_RANKS)];
        ncclResult_t rc = ncclSuccess;
        if (e->call == EARLY_CALLS) continue;
        if (!e->begun) {
            e->share = early_share(e, e->call);
            kl_flat_start(&e->op, &e->shm, &e->share);
        }
        e->begun = kl_flat_progress(&e->op, &rc) != KL_DONE;
        assert_int_equal(rc, ncclSuccess);
        if (e->begun) {
            posted += post_early(e, &seed);
            continue;
        }
        check_early(e);
        left -= ++e->call == EARLY_CALLS;
    }
    assert_true(posted > EARLY_CALLS);
    free(memory);
    free(mark);
}

static void posts_before_their_turn_are_read_in_it(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        oversubscribed = shared;
        run_early();
    }
    oversubscribed = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_ahead_waits_only_on_wrap_around),
        cmocka_unit_test(posts_before_their_turn_are_read_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
