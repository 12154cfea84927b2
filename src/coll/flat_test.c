/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat over an ordinary block of memory: many ranks in one thread, progressed in a changing order, operation after operation on the
 * same board, with every function, type and operator; and a thread per rank, which a thread sanitizer can watch.
 */
#include "coll/board_calls.h"

#include <limits.h>

static void start_flat(struct world *w, int rank, const struct kl_share *share)
{
    w->share[rank] = *share;
    kl_flat_start(&w->op[rank], &w->board[rank], &w->share[rank]);
}

static enum kl_progress progress_flat(struct world *w, int rank, ncclResult_t *rc)
{
    return kl_flat_progress(&w->op[rank], rc);
}

static const struct engine flat = {start_flat, progress_flat};

static void many_calls(int most_ranks)
{
    static struct world w;
    uint64_t seed = 1;

    for (int n = 2; n <= most_ranks; n += n < 9 ? 1 : 11) {
        size_t buffer = n < 9 ? 400000 : 40000;
        open_world(&w, n, buffer);
        for (int i = 0; i < (n < 9 ? 80 : 20); i++) {
            struct call c = draw_call(&seed, n, buffer);
            run_call(&w, &flat, &c, &seed);
        }
        close_world(&w);
    }
}

static void every_collective_is_right(void **state)
{
    (void)state;
    many_calls(MAX_RANKS);
}

static void every_collective_is_right_where_cores_are_shared(void **state)
{
    (void)state;
    crowded = true;
    many_calls(6);
    crowded = false;
}

static void each_type_and_operator(int nranks)
{
    static struct world w;
    uint64_t seed = 2;

    open_world(&w, nranks, 80000); /* 2,000 of the largest type, times ranks */
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int func = 0; func <= KL_FUNC_ALL_TO_ALL; func++) {
                struct call c = draw_call(&seed, nranks, 2000);
                c.func = func, c.type = (ncclDataType_t)type, c.op = (ncclRedOp_t)op;
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, nranks), ncclSuccess);
                c.in_place = c.in_place && func != KL_FUNC_ALL_TO_ALL;
                run_call(&w, &flat, &c, &seed);
            }
    close_world(&w);
}

static void every_type_and_operator(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++) each_type_and_operator(n);
}

/* ---- ranks by core ---- */

static void check_groups(const struct kl_board *b, int n, int size)
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
    struct kl_board b;

    (void)state;
    kl_board_init(&b, 6, 0, true);
    check_groups(&b, 1, 6);
    kl_board_group(&b, turns);
    check_groups(&b, 2, 3);
    assert_int_equal(b.groups.rank[3], 1);
    kl_board_group(&b, blocks);
    check_groups(&b, 3, 2);
    kl_board_group(&b, uneven);
    check_groups(&b, 1, 6);
    kl_board_group(&b, alone);
    check_groups(&b, 1, 6);
    kl_board_group(&b, same);
    check_groups(&b, 1, 6);
}

static void open_cores(struct world *w, int n, int cores, bool turns, size_t buffer)
{
    int32_t core[MAX_RANKS];

    for (int r = 0; r < n; r++) core[r] = turns ? r % cores : r / (n / cores) * (n / cores);
    crowded = true;
    open_world(w, n, buffer);
    crowded = false;
    for (int r = 0; r < n; r++) kl_board_group(&w->board[r], core);
}

/* Whatever could go by core does. */
static void go_by_core(struct world *w)
{
    for (int r = 0; r < w->n; r++)
        for (int i = 0; i < 2 * KL_BOARD_COMPARED; i++)
            w->board[r].ways[i % 2][i / 2] =
                (struct kl_lately){.block = 8, .warm = 1u << 30, .again = 1u << 20, .better = 1};
}

/* Calls, most of them of more than a turn for each piece. How many went core by core. */
static int calls_of_cores(int n, int cores, bool turns)
{
    enum { CALLS = 6, BYTES = 600000 };
    static struct world w;
    uint64_t seed = 3;
    int across = 0;

    open_cores(&w, n, cores, turns, BYTES);
    go_by_core(&w);
    for (int i = 0; i < CALLS; i++) {
        struct call c = draw_call(&seed, n, BYTES);
        c.exact = true;
        if (c.op == ncclAvg && n & (n - 1)) c.op = ncclSum; /* a sixth has no exact number */
        assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, n), ncclSuccess);
        if (draw(&seed, 4)) c.func = draw(&seed, 2) ? KL_FUNC_ALL_REDUCE : KL_FUNC_REDUCE_SCATTER;
        const size_t half = BYTES / 2 / c.redop.elem_bytes / (size_t)n;
        c.count = half + draw(&seed, half);
        run_call(&w, &flat, &c, &seed);
        across += w.op[0].by_core;
    }
    close_world(&w);
    return across;
}

static void cores_give_what_ranks_give(void **state)
{
    static const struct {
        int n, cores;
    } cases[] = {{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int turns = 0; turns < 2; turns++) assert_true(calls_of_cores(cases[i].n, cases[i].cores, turns) > 1);
}

static void every_type_and_operator_by_core(void **state)
{
    static struct world w;
    uint64_t seed = 2;

    (void)state;
    open_cores(&w, 4, 2, true, 160000);
    go_by_core(&w);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int func = KL_FUNC_REDUCE_SCATTER; func <= KL_FUNC_ALL_REDUCE; func++) {
                struct call c = {.func = func, .type = (ncclDataType_t)type, .op = (ncclRedOp_t)op, .exact = true};
                c.in_place = draw(&seed, 2);
                c.seed = draw(&seed, UINT64_MAX);
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 4), ncclSuccess);
                c.count = (func == KL_FUNC_ALL_REDUCE ? 80000 : 10000) / c.redop.elem_bytes;
                run_call(&w, &flat, &c, &seed);
                assert_true(w.op[3].by_core);
            }
    close_world(&w);
}

static bool is_alike(const struct kl_lately *a, const struct kl_lately *b)
{
    return a->better == b->better && a->uses == b->uses && a->number == b->number && a->block == b->block;
}

/* Both ways are used, and all ranks find the same, though each has times of its own. */
static void ranks_choose_alike(void **state)
{
    enum { CALLS = 260, LEAST = 32 << 10 };
    static struct world w;
    uint64_t seed = 4;
    int across = 0;

    (void)state;
    open_cores(&w, 4, 2, true, 160000);
    for (int i = 0; i < CALLS; i++) {
        struct call c = {
            .func = KL_FUNC_REDUCE_SCATTER, .type = ncclInt32, .count = LEAST / 4 / sizeof(int32_t), .seed = seed};
        assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 4), ncclSuccess);
        run_call(&w, &flat, &c, &seed);
        across += w.op[0].by_core;
        for (int r = 1; r < 4; r++) {
            assert_int_equal(w.op[r].by_core, w.op[0].by_core);
            for (int k = 0; k < 2 * KL_BOARD_COMPARED; k++)
                assert_true(is_alike(&w.board[r].ways[k % 2][k / 2], &w.board[0].ways[k % 2][k / 2]));
        }
    }
    assert_true(across > 0 && across < CALLS && w.board[0].comparisons >= 1);
    close_world(&w);
}

/* ---- who runs ahead ---- */

static enum kl_progress go_on(struct world *w, int rank)
{
    ncclResult_t rc = ncclSuccess;
    enum kl_progress p = kl_flat_progress(&w->op[rank], &rc);

    assert_int_equal(rc, ncclSuccess);
    return p;
}

/* The rank that a broadcast, or a reduce to rank 0, lets run ahead. */
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
        struct kl_share s = share_of(c, r, w->send[r], w->recv[r]);
        assert_int_equal(go_on(w, ahead), KL_STALLED);
        start_flat(w, r, &s);
        assert_int_equal(go_on(w, r), KL_DONE);
    }
}

/* Of n ranks and `bytes`. One ends `most` operations before anybody has followed, and goes on when all have in so many, and not before. */
static void expect_ahead(int n, int func, size_t bytes, int most, int followed)
{
    static struct world w;
    struct call c = {.func = func, .type = ncclInt8, .count = bytes, .seed = 7};
    const int rank = who_runs_ahead(&c);
    int ahead = 0;

    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, n), ncclSuccess);
    open_world(&w, n, 40000);
    for (;; ahead++) {
        struct kl_share s = share_of(&c, rank, w.send[rank], w.recv[rank]);
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

/* Of so many places, on such a board. It waits for a sixteenth, and one; of small turns it hears of some at a time. */
static void expect_round(const struct kl_board *board, int func, size_t bytes, uint32_t places)
{
    uint32_t followed = places / 16 + 1;

    if (bytes <= board->cell_bytes) followed = (followed + KL_BOARD_TOLD - 1) / KL_BOARD_TOLD * KL_BOARD_TOLD;
    expect_ahead(board->nranks, func, bytes, (int)places, (int)followed);
}

/* Where a line tells of each post, no more of them than there are lines. */
static void expect_places(const struct kl_board *board, int func, size_t bytes, uint32_t places)
{
    const bool packed =
        board->crowded && bytes > (size_t)(func == KL_FUNC_BROADCAST ? KL_BOARD_INLINE : KL_BOARD_PACKET);

    expect_round(board, func, bytes, packed || places < board->nlines ? places : board->nlines);
}

/* In a broadcast, or a reduce, whose areas are these: of a cell, two, four. `brief`: places of the smallest. */
static void expect_rounds(int func, const struct kl_board *board, const struct kl_board_area *areas, uint32_t brief)
{
    expect_round(board, func, KL_BOARD_BRIEF, brief);
    expect_round(board, func, KL_BOARD_BRIEF + 1, board->nlines);
    expect_round(board, func, KL_BOARD_INLINE, board->nlines);
    expect_round(board, func, KL_BOARD_INLINE + 1, board->area[KL_BOARD_PACKETS].places);
    expect_round(board, func, KL_BOARD_PACKET, board->area[KL_BOARD_PACKETS].places);
    expect_places(board, func, KL_BOARD_PACKET + 1, areas[0].places);
    expect_places(board, func, board->cell_bytes, areas[0].places);
    for (size_t i = 1, cells = 2; i < KL_BOARD_SIZES; i++, cells *= 2) {
        expect_places(board, func, cells / 2 * board->cell_bytes + 1, areas[i].places);
        expect_places(board, func, cells * board->cell_bytes, areas[i].places);
    }
}

static void expect_all_rounds(void)
{
    struct kl_board b;

    kl_board_init(&b, 3, 0, crowded);
    expect_rounds(KL_FUNC_BROADCAST, &b, &b.area[KL_BOARD_SOLO], crowded ? KL_BOARD_AHEAD : b.nlines);
    expect_rounds(KL_FUNC_REDUCE, &b, &b.area[KL_BOARD_CELLS], b.nlines);
    expect_places(&b, KL_FUNC_REDUCE, 4 * b.cell_bytes + 1, b.area[KL_BOARD_SLOTS].places);
    expect_places(&b, KL_FUNC_REDUCE, b.slot_bytes, b.area[KL_BOARD_SLOTS].places);
}

/* Of so many ranks that lines are fewer than other places. */
static void expect_fewer_lines(void)
{
    enum { RANKS = 20 };
    struct kl_board b;

    kl_board_init(&b, RANKS, 0, crowded);
    assert_true(b.nlines < b.area[KL_BOARD_SOLO].places);
    expect_round(&b, KL_FUNC_BROADCAST, KL_BOARD_BRIEF, crowded ? KL_BOARD_AHEAD : b.nlines);
    expect_places(&b, KL_FUNC_BROADCAST, KL_BOARD_PACKET + 1, b.area[KL_BOARD_SOLO].places);
    expect_places(&b, KL_FUNC_REDUCE, KL_BOARD_PACKET + 1, b.area[KL_BOARD_CELLS].places);
}

static void who_runs_ahead_waits_for_nobody_until_it_has_gone_round(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        crowded = shared;
        expect_all_rounds();
        expect_fewer_lines();
    }
    crowded = false;
}

/* ---- where small posts lie ---- */

/* From the flag of a turn to that of the next one, bytes. */
static ptrdiff_t step_after(const struct kl_board *b, uint64_t turn, size_t bytes)
{
    const char *flag = (const char *)kl_board_flag_of(b, 1, turn, bytes);

    return (const char *)kl_board_flag_of(b, 1, turn + 1, bytes) - flag;
}

/* Of many turns: the least of these steps, to either side, and whether they are all alike. */
static size_t least_step(const struct kl_board *b, size_t bytes, bool *alike)
{
    size_t least = SIZE_MAX;

    *alike = true;
    for (uint64_t turn = 0; turn < KL_BOARD_LEAST_LINES - 1; turn++) {
        const ptrdiff_t step = step_after(b, turn, bytes);
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
        bool crowded, solo, ahead;
        size_t bytes, step; /* from turn to turn; 0: scattered */
    } cases[] = {
        {"a broadcast between cores", false, true, true, 8, 0},
        {"a reduce between cores", false, false, true, 8, 0},
        {"what all bring, between cores", false, false, false, 8, 0},
        {"a packet between cores", false, true, true, KL_BOARD_PACKET, 0},
        {"a broadcast where cores are shared", true, true, true, KL_BOARD_BRIEF, sizeof(struct kl_board_brief)},
        {"a line of it", true, true, true, KL_BOARD_INLINE, sizeof(struct kl_board_line)},
        {"a packet of it", true, true, true, KL_BOARD_PACKET, sizeof(struct kl_board_brief)},
        {"a reduce where cores are shared", true, false, true, KL_BOARD_PACKET, 0},
        {"a large one", true, false, true, KL_BOARD_PACKET + 1, sizeof(struct kl_board_brief)},
        {"what all bring, where cores are shared", true, false, false, 8, sizeof(struct kl_board_line)},
    };
    void *memory = zeroed(kl_board_bytes(2)), *mark = zeroed(2 * sizeof(struct kl_arena_mark));

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_board b;
        bool alike;

        kl_board_init(&b, 2, 0, k->crowded);
        kl_board_attach(&b, memory, mark);
        kl_board_begin(&b, k->solo, k->ahead);
        const size_t step = least_step(&b, k->bytes, &alike);
        expect_case(k->text, k->step ? alike && step == k->step : !alike && step > 8 * KL_LINE);
    }
    free(memory);
    free(mark);
}

/* As posts came at once before, up to a limit; not where another rank may need the core, nor where all wait for all. */
static void who_follows_on_the_heels_falls_behind(void **state)
{
    static const struct pause_case {
        const char *text;
        bool crowded, ahead;
        unsigned there, pauses;
    } cases[] = {
        {"none", false, true, 0, 0},
        {"some", false, true, 7, 7 * KL_BOARD_PAUSES_PER_POST},
        {"many", false, true, 1000, KL_BOARD_PAUSES},
        {"most", false, true, UINT_MAX, KL_BOARD_PAUSES},
        {"cores are shared", true, true, 7, 0},
        {"all wait for all", false, false, 7, 0},
    };

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_board b;

        kl_board_init(&b, 2, 0, k->crowded);
        kl_board_begin(&b, k->ahead, k->ahead);
        b.there = k->there;
        expect_case(k->text, kl_board_pauses(&b) == k->pauses && kl_board_pauses(&b) == 0);
    }
}

/* ---- who posts before its turn ---- */

enum { EARLY_RANKS = 3, EARLY_CALLS = 5000, LARGEST = 6000, KEPT = 64 };

static struct early {
    struct kl_board board;
    struct kl_flat_op op;
    struct kl_share share;
    struct kl_redop sum;
    int call, next; /* under way, and the first not posted */
    bool begun;
    int32_t send[KEPT][LARGEST], recv[EARLY_RANKS * LARGEST]; /* by call */
} early[EARLY_RANKS];

static int32_t value_of(int call, int rank, int i)
{
    return 1000000 * rank + 10 * call + i;
}

/* Of call `call`, which all ranks draw alike: small ones, mostly, which all wait for. */
static struct kl_share early_share(struct early *e, int call)
{
    static const int funcs[] = {KL_FUNC_ALL_REDUCE, KL_FUNC_ALL_GATHER, KL_FUNC_ALL_GATHER,
                                KL_FUNC_ALL_REDUCE, KL_FUNC_BROADCAST,  KL_FUNC_REDUCE};
    uint64_t seed = (uint64_t)call;
    const int func = funcs[draw(&seed, 100) < 92 ? draw(&seed, 4) : 4 + draw(&seed, 2)],
              limits[] = {3, 3, 28, 28, 500, LARGEST};
    const size_t count = 1 + draw(&seed, (uint64_t)limits[draw(&seed, 100) < 85 ? draw(&seed, 5) : 5]);
    int32_t *send = e->send[call % KEPT];

    for (size_t i = 0; i < count; i++) send[i] = value_of(call, e->board.rank, (int)i);
    return (struct kl_share){.func = func,
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
    const struct kl_share *s = &e->share;
    const int n = (int)s->count;

    if (s->func == KL_FUNC_REDUCE && e->board.rank != s->root) return;
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
    for (; e->next - e->call < KL_BOARD_EARLY && draw(seed, 10); e->next++, posted++) {
        const struct kl_share s = early_share(e, e->next);
        if (!kl_flat_post_ahead(&e->op, &s, (uint64_t)(e->next - e->call))) break;
    }
    return posted;
}

/* What a rank has posted, it may not write again while others have not come so far: some lag behind by as much as posts allow. */
static void run_early(void)
{
    void *memory = zeroed(kl_board_bytes(EARLY_RANKS)), *mark = zeroed(EARLY_RANKS * sizeof(struct kl_arena_mark));
    uint64_t seed = 11;
    int left = EARLY_RANKS, posted = 0;

    for (int r = 0; r < EARLY_RANKS; r++) {
        early[r] = (struct early){0};
        kl_board_init(&early[r].board, EARLY_RANKS, r, crowded);
        for (int i = KL_BOARD_CELLS + 1; i < KL_BOARD_AREAS; i++)
            early[r].board.area[i].places = KL_BOARD_LEAST_SLOTS; /* fewer than turns that are posted in early */
        kl_board_attach(&early[r].board, memory, mark);
        assert_int_equal(kl_redop_init(&early[r].sum, ncclInt32, ncclSum, EARLY_RANKS), ncclSuccess);
    }
    for (int favourite = 0; left; favourite = draw(&seed, 50) ? favourite : (int)draw(&seed, EARLY_RANKS)) {
        struct early *e = &early[draw(&seed, 3) ? favourite : (int)draw(&seed, EARLY_RANKS)];
        ncclResult_t rc = ncclSuccess;
        if (e->call == EARLY_CALLS) continue;
        if (!e->begun) {
            e->share = early_share(e, e->call);
            kl_flat_start(&e->op, &e->board, &e->share);
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
        crowded = shared;
        run_early();
    }
    crowded = false;
}

static enum kl_progress begin_broadcast(struct world *w, int rank, struct call *c, bool more)
{
    struct kl_share s = share_of(c, rank, w->send[rank], w->recv[rank]);

    s.more = more;
    start_flat(w, rank, &s);
    return kl_flat_progress(&w->op[rank], &(ncclResult_t){ncclSuccess});
}

/* Rank 3 of four takes what the root posts before rank 2 comes, who makes `first` and then the same calls. What rank 3 is told at last. */
static ncclResult_t read_before_neighbour(struct call *c, struct call *first)
{
    static struct world w;
    ncclResult_t rc = ncclSuccess;

    open_world(&w, 4, 1000);
    for (int i = 0; i < KL_BOARD_LAG; i++) assert_int_equal(begin_broadcast(&w, 0, c, true), KL_DONE);
    for (int i = 1; i < KL_BOARD_LAG; i++) assert_int_equal(begin_broadcast(&w, 3, c, true), KL_DONE);
    assert_int_equal(begin_broadcast(&w, 3, c, false), KL_MOVED);
    assert_int_equal(go_on(&w, 3), KL_STALLED); /* the last one waits */
    assert_int_equal(kl_flat_blocked_on(&w.op[3], false), 2);
    begin_broadcast(&w, 2, first, true);
    for (int i = 1; i < KL_BOARD_LAG; i++) begin_broadcast(&w, 2, c, true);
    assert_int_equal(kl_flat_progress(&w.op[3], &rc), KL_DONE);
    close_world(&w);
    return rc;
}

static void readers_compare_later_what_they_call(void **state)
{
    struct call c = {.func = KL_FUNC_BROADCAST, .type = ncclInt8, .count = 8, .seed = 7}, other = c;

    (void)state;
    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 3), ncclSuccess);
    other = c;
    other.root = 2; /* itself */
    other.seed = 8;
    assert_int_equal(read_before_neighbour(&c, &c), ncclSuccess);
    kl_error_quiet(1);
    assert_int_equal(read_before_neighbour(&c, &other), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "rank 2 sent what belongs to another call"));
    kl_error_quiet(0);
}

/* Of two ranks. */
static struct call broadcast_of(int root)
{
    struct call c = {.func = KL_FUNC_BROADCAST, .type = ncclInt8, .count = 8, .root = root, .seed = 7 + (unsigned)root};

    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 2), ncclSuccess);
    return c;
}

/* Who takes nothing looks at no lines that its neighbour may be writing, but finds out what that calls when it is near, once in 8 turns. */
static void a_root_ahead_compares_when_its_neighbour_is_near(void **state)
{
    static struct world w;
    struct call c = broadcast_of(0), other = broadcast_of(1); /* who is the root takes nothing */
    struct kl_share s;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_world(&w, 2, 1000);
    for (int i = 0; i < 14; i++) assert_int_equal(begin_broadcast(&w, 0, &c, false), KL_DONE);
    for (int i = 0; i < 7; i++) assert_int_equal(begin_broadcast(&w, 1, &c, true), KL_DONE);
    assert_int_equal(begin_broadcast(&w, 0, &c, false), KL_DONE);
    assert_int_equal(w.board[0].compared, 0);
    for (int i = 7; i < 14; i++) assert_int_equal(begin_broadcast(&w, 1, &c, true), KL_DONE);
    kl_error_quiet(1);
    begin_broadcast(&w, 1, &other, true); /* the fifteenth */
    s = share_of(&c, 0, w.send[0], w.recv[0]);
    start_flat(&w, 0, &s);
    assert_int_equal(kl_flat_progress(&w.op[0], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    kl_error_quiet(0);
    close_world(&w);
}

/* Who has not run ahead finds it out at once. */
static void the_later_one_of_two_roots_sees_the_other(void **state)
{
    static struct world w;
    struct call c = broadcast_of(0), other = broadcast_of(1);
    struct kl_share s;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_world(&w, 2, 1000);
    assert_int_equal(begin_broadcast(&w, 1, &other, false), KL_DONE);
    s = share_of(&c, 0, w.send[0], w.recv[0]);
    start_flat(&w, 0, &s);
    kl_error_quiet(1);
    assert_int_equal(kl_flat_progress(&w.op[0], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    kl_error_quiet(0);
    close_world(&w);
}

/* ---- what goes wrong ---- */

static void another_call_is_refused_before_data_are_touched(void **state)
{
    static struct world w;
    struct call c = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 8, .seed = 9};
    ncclResult_t rc = ncclSuccess;

    (void)state;
    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 2), ncclSuccess);
    open_world(&w, 2, 1000);
    memset(w.recv[0], 0x5a, 64);
    for (int r = 0; r < 2; r++) {
        struct kl_share s = share_of(&c, r, w.send[r], w.recv[r]);
        s.signature += (uint64_t)r;
        start_flat(&w, r, &s);
    }
    assert_int_equal(go_on(&w, 0), KL_MOVED);
    assert_int_equal(kl_flat_blocked_on(&w.op[0], false), 1);
    kl_error_quiet(1);
    assert_int_equal(kl_flat_progress(&w.op[1], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "rank 0 sent what belongs to another call than that of rank 1"));
    rc = ncclSuccess;
    assert_int_equal(kl_flat_progress(&w.op[0], &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    kl_error_quiet(0);
    assert_int_equal(w.recv[0][0], 0x5a);
    close_world(&w);
}

struct size_case {
    const char *text;
    int func;
    size_t posted, expected;
};

static void refuse_another_size(const struct size_case *k)
{
    static struct world w;
    struct call c = {.func = k->func, .type = ncclInt8, .root = k->func == KL_FUNC_BROADCAST ? 1 : 0};
    ncclResult_t rc = ncclSuccess;

    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 2), ncclSuccess);
    open_world(&w, 2, 4000);
    memset(w.recv[0], 0x5a, 2000);
    for (int r = 0; r < 2; r++) {
        c.count = c.seed = r ? k->posted : k->expected;
        struct kl_share s = share_of(&c, r, w.send[r], w.recv[r]);
        start_flat(&w, r, &s);
    }
    (void)kl_flat_progress(&w.op[1], &rc);
    for (int i = 0; i < 2 * KL_BOARD_VAIN && !rc; i++) (void)kl_flat_progress(&w.op[0], &rc);
    expect_case(k->text, rc == ncclInvalidUsage && w.recv[0][0] == 0x5a);
    close_world(&w);
}

/* What is posted elsewhere than where it is looked for, as may be where cores are shared, shows all the same, after a while, and is not taken for data that do not come. */
static void another_size_is_refused(void **state)
{
    static const struct size_case cases[] = {
        {"more than is brief", KL_FUNC_BROADCAST, 64, 8},         {"brief", KL_FUNC_BROADCAST, 8, 64},
        {"as much as a cell takes", KL_FUNC_BROADCAST, 1000, 64}, {"no cell", KL_FUNC_REDUCE, 64, 1000},
        {"more of what all bring", KL_FUNC_ALL_GATHER, 1000, 64},
    };

    (void)state;
    kl_error_quiet(1);
    for (int shared = 0; shared < 2; shared++) {
        crowded = shared;
        FOR_EACH_CASE(k, cases) refuse_another_size(k);
    }
    crowded = false;
    kl_error_quiet(0);
}

/* Nobody takes what those post who name another root, but a neighbour sees it. */
static void one_of_ranks_that_name_different_roots_finds_out(void **state)
{
    static const struct roots_case {
        const char *text;
        int func, n, root[3];
    } cases[] = {
        {"one of three", KL_FUNC_BROADCAST, 3, {0, 1, 0}},
        {"each itself, of two", KL_FUNC_BROADCAST, 2, {0, 1}},
        {"each itself, of three", KL_FUNC_BROADCAST, 3, {0, 1, 2}},
        {"each the other", KL_FUNC_REDUCE, 2, {1, 0}},
        {"one of three, reducing", KL_FUNC_REDUCE, 3, {0, 1, 0}},
    };

    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(k, cases)
    {
        static struct world w;
        struct call c = {.func = k->func, .type = ncclFloat32, .count = 8};
        int refused = 0;

        assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, k->n), ncclSuccess);
        open_world(&w, k->n, 1000);
        for (int r = 0; r < k->n; r++) {
            c.root = k->root[r];
            c.seed = (uint64_t)c.root;
            struct kl_share s = share_of(&c, r, w.send[r], w.recv[r]);
            start_flat(&w, r, &s);
        }
        for (int r = 0, turns = 0; turns < 2 * k->n; turns++, r = (r + 1) % k->n) {
            ncclResult_t rc = ncclSuccess;
            if (kl_flat_progress(&w.op[r], &rc) == KL_DONE) refused += rc == ncclInvalidUsage;
        }
        expect_case(k->text, refused > 0);
        close_world(&w);
    }
    kl_error_quiet(0);
}

static void one_that_has_left_is_named(void **state)
{
    static struct world w;
    struct call c = {.func = KL_FUNC_ALL_GATHER, .type = ncclFloat32, .count = 8, .seed = 9};

    (void)state;
    assert_int_equal(kl_redop_init(&c.redop, c.type, ncclSum, 3), ncclSuccess);
    open_world(&w, 3, 1000);
    struct kl_share s = share_of(&c, 0, w.send[0], w.recv[0]);
    start_flat(&w, 0, &s);
    assert_int_equal(go_on(&w, 0), KL_MOVED);
    kl_store_release(&w.mark[1].left, 1);
    assert_int_equal(kl_flat_blocked_on(&w.op[0], true), 1);
    close_world(&w);
}

/* ---- a thread per rank ---- */

static void threads_of_two_cores_agree(void **state)
{
    static struct world w;

    (void)state;
    open_cores(&w, THREADS, 2, true, THREADS_BYTES);
    run_threads(&w, &flat);
    close_world(&w);
}

static void threads_agree(void **state)
{
    static struct world w;

    (void)state;
    open_world(&w, THREADS, THREADS_BYTES);
    run_threads(&w, &flat);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right),
        cmocka_unit_test(every_collective_is_right_where_cores_are_shared),
        cmocka_unit_test(every_type_and_operator),
        cmocka_unit_test(readers_compare_later_what_they_call),
        cmocka_unit_test(a_root_ahead_compares_when_its_neighbour_is_near),
        cmocka_unit_test(the_later_one_of_two_roots_sees_the_other),
        cmocka_unit_test(small_posts_are_scattered_where_they_are_read_at_once),
        cmocka_unit_test(who_follows_on_the_heels_falls_behind),
        cmocka_unit_test(posts_before_their_turn_are_read_in_it),
        cmocka_unit_test(who_runs_ahead_waits_for_nobody_until_it_has_gone_round),
        cmocka_unit_test(another_call_is_refused_before_data_are_touched),
        cmocka_unit_test(another_size_is_refused),
        cmocka_unit_test(one_of_ranks_that_name_different_roots_finds_out),
        cmocka_unit_test(one_that_has_left_is_named),
        cmocka_unit_test(ranks_are_grouped_by_core),
        cmocka_unit_test(cores_give_what_ranks_give),
        cmocka_unit_test(every_type_and_operator_by_core),
        cmocka_unit_test(ranks_choose_alike),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(threads_of_two_cores_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
