/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVLS over an ordinary block of memory: many ranks in one thread, progressed in a changing order, with every type and
 * operation; and a thread per rank, which a thread sanitizer can watch.
 */
#include "coll/shm/nvls_op.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MAX_RANKS = 64, CHANNELS = 2 };

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* ---- ranks ---- */

struct world {
    int n;
    uint64_t chunk_bytes;
    void *memory[CHANNELS];
    struct kl_arena_mark *mark;
    struct kl_nvls nvls[MAX_RANKS][CHANNELS];
    struct kl_nvls_op op[MAX_RANKS][CHANNELS];
    char *send[MAX_RANKS], *recv[MAX_RANKS], *want;
};

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(KL_LINE, bytes);

    assert_non_null(memory);
    return memset(memory, 0, bytes);
}

static void open_world(struct world *w, int n, uint32_t steps, uint64_t chunk_bytes)
{
    const struct kl_nvls_shape shape = {(uint32_t)n, steps, chunk_bytes};

    *w = (struct world){.n = n, .chunk_bytes = chunk_bytes, .mark = zeroed((size_t)n * sizeof *w->mark)};
    for (int ch = 0; ch < CHANNELS; ch++) {
        w->memory[ch] = zeroed(kl_nvls_bytes(&shape));
        for (int r = 0; r < n; r++) {
            assert_int_equal(kl_nvls_init(&w->nvls[r][ch], &shape, r), ncclSuccess);
            kl_nvls_attach(&w->nvls[r][ch], w->memory[ch], w->mark);
        }
    }
}

static void close_world(struct world *w)
{
    for (int ch = 0; ch < CHANNELS; ch++) {
        for (int r = 0; r < w->n; r++) kl_nvls_fini(&w->nvls[r][ch]);
        free(w->memory[ch]);
    }
    free(w->mark);
}

/* ---- an operation: chosen by a seed, so that all ranks agree on it ---- */

struct call {
    const struct kl_nvls_kind *kind;
    ncclDataType_t type;
    ncclRedOp_t op;
    struct kl_redop redop;
    size_t count, most, grain;
    bool in_place;
    int channels, nheads, heads[MAX_RANKS];
    uint64_t seed;
};

static const struct kl_nvls_kind *const kinds[] = {&kl_nvls_allreduce, &kl_nvls_allgather, &kl_nvls_reducescatter};

static size_t draw_count(uint64_t *seed, size_t most)
{
    const size_t likely[] = {20, 200, most, most}, limit = likely[draw(seed, 4)];

    return draw(seed, (limit < most ? limit : most) + 1);
}

static struct call draw_call(uint64_t *seed, int n, size_t most_bytes)
{
    struct call c = {.kind = kinds[draw(seed, 3)], .type = (ncclDataType_t)draw(seed, ncclNumTypes)};

    c.op = (ncclRedOp_t)draw(seed, ncclNumOps);
    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, n), ncclSuccess);
    c.count = draw_count(seed, most_bytes / c.redop.elem_bytes / (c.kind == &kl_nvls_allreduce ? 1 : (size_t)n));
    c.most = draw(seed, 2) ? 0 : 1 + draw(seed, 100);
    c.grain = draw(seed, 2) ? 0 : 1 + draw(seed, 64);
    c.in_place = draw(seed, 2);
    c.channels = 1 + (int)draw(seed, CHANNELS);
    for (int r = 0; r < n; r++) { /* some of them, in any order */
        int at = (int)draw(seed, (uint64_t)r + 1);
        c.heads[r] = c.heads[at];
        c.heads[at] = r;
    }
    c.nheads = draw(seed, 2) ? 0 : 1 + (int)draw(seed, (uint64_t)n);
    c.seed = *seed;
    return c;
}

static size_t parts_of_send(const struct call *c, int n)
{
    return c->kind == &kl_nvls_reducescatter ? (size_t)n : 1;
}

static size_t parts_of_recv(const struct call *c, int n)
{
    return c->kind == &kl_nvls_allgather ? (size_t)n : 1;
}

static size_t bytes_of(const struct call *c, size_t parts)
{
    return parts * c->count * c->redop.elem_bytes;
}

/* Any bits: types take them as they are, and sums of them round and saturate. */
static void fill(const struct call *c, int n, int rank, char *send)
{
    uint64_t seed = c->seed + (uint64_t)rank * 1000003;

    size_t bytes = bytes_of(c, parts_of_send(c, n));

    for (size_t i = 0; i < bytes; i += sizeof seed) {
        uint64_t bits = draw(&seed, UINT64_MAX);
        memcpy(send + i, &bits, bytes - i < sizeof bits ? bytes - i : sizeof bits);
    }
}

static struct kl_nvls_task task_of(const struct call *c, int n, int rank, int channel, char *send, char *recv)
{
    const size_t share = c->count / (size_t)c->channels, part = (size_t)rank * bytes_of(c, 1);
    const bool last = channel == c->channels - 1;
    struct kl_nvls_task t = {
        .kind = c->kind,
        .redop = c->kind->reduces ? &c->redop : NULL,
        .send = send,
        .recv = recv,
        .count = c->count,
        .first = share * (size_t)channel,
        .end = last ? c->count : share * (size_t)(channel + 1),
        .elem_bytes = c->redop.elem_bytes,
        .most = c->most,
        .grain = c->grain,
        .heads = c->nheads ? c->heads : NULL,
        .nheads = c->nheads,
        .operation = (uint32_t)(c->type * 100 + c->op),
    };

    (void)n;
    if (c->in_place && c->kind == &kl_nvls_allreduce) t.send = recv;
    if (c->in_place && c->kind == &kl_nvls_allgather) t.send = recv + part;
    if (c->in_place && c->kind == &kl_nvls_reducescatter) t.recv = send + part;
    return t;
}

/* In-place calls find their data where the result will be. */
static void place(const struct call *c, int rank, const char *send, char *recv)
{
    if (!c->in_place || c->kind == &kl_nvls_reducescatter) return;
    memcpy(recv + (c->kind == &kl_nvls_allgather ? (size_t)rank * bytes_of(c, 1) : 0), send, bytes_of(c, 1));
}

/* ---- expected results ---- */

/* Elements [at, at + count) of all ranks' `in`, added up by `head`: its own, then the others' by rank. */
static void add_up(const struct call *c, int n, char *const *in, int head, size_t at, size_t count, char *out)
{
    const size_t skip = at * c->redop.elem_bytes;
    char *first = malloc(count * c->redop.elem_bytes + 1);
    bool begun = false;

    for (int r = 0; r < n; r++) {
        if (r == head) continue;
        if (c->redop.first)
            c->redop.first(&c->redop, first, in[r] + skip, count);
        else
            memcpy(first, in[r] + skip, count * c->redop.elem_bytes);
        if (begun)
            c->redop.merge(&c->redop, out, out, first, count);
        else
            c->redop.combine(&c->redop, out, first, in[head] + skip, count);
        begun = true;
    }
    if (!begun && c->redop.first)
        c->redop.first(&c->redop, out, in[head] + skip, count);
    else if (!begun)
        memcpy(out, in[head] + skip, count * c->redop.elem_bytes);
    if (c->redop.last) c->redop.last(&c->redop, out, count);
    free(first);
}

/* The channel's share of an all-reduce, block by block and head by head. */
static void want_share(const struct call *c, int n, char *const *in, size_t slot_bytes, size_t first, size_t end,
                       char *want)
{
    const size_t fits = slot_bytes / c->redop.elem_bytes, nheads = (size_t)(c->nheads ? c->nheads : n);
    const size_t most = c->most && c->most < fits ? c->most : fits;
    const size_t grain = c->grain ? (c->grain < most ? c->grain : most) : 1;

    while (first < end) {
        size_t slice = ((end - first + nheads - 1) / nheads + grain - 1) / grain * grain;
        if (slice > most) slice = most;
        for (size_t h = 0; h < nheads && first < end; h++) {
            size_t count = end - first < slice ? end - first : slice;
            int head = c->nheads ? c->heads[h] : (int)h;
            add_up(c, n, in, head, first, count, want + first * c->redop.elem_bytes);
            first += count;
        }
    }
}

/* All parts of the result one after the other; of a reduce-scatter each rank gets its own. */
static void make_want(const struct call *c, int n, char *const *in, size_t slot_bytes, char *want)
{
    const size_t share = c->count / (size_t)c->channels;

    for (int r = 0; r < n && c->kind == &kl_nvls_allgather; r++)
        memcpy(want + (size_t)r * bytes_of(c, 1), in[r], bytes_of(c, 1));
    for (int r = 0; r < n && c->kind == &kl_nvls_reducescatter; r++)
        add_up(c, n, in, r, (size_t)r * c->count, c->count, want + (size_t)r * bytes_of(c, 1));
    for (int ch = 0; ch < c->channels && c->kind == &kl_nvls_allreduce; ch++)
        want_share(c, n, in, slot_bytes, share * (size_t)ch,
                   ch == c->channels - 1 ? c->count : share * (size_t)(ch + 1), want);
}

static bool right(const struct call *c, int n, int rank, const char *result, const char *want)
{
    if (c->kind == &kl_nvls_reducescatter) want += (size_t)rank * bytes_of(c, 1);
    return !memcmp(result, want, bytes_of(c, parts_of_recv(c, n)));
}

/* ---- many ranks in one thread ---- */

enum { BUFFER = 40000 };

static void make_buffers(struct world *w)
{
    for (int r = 0; r < w->n; r++) assert_non_null((w->send[r] = malloc(BUFFER), w->recv[r] = malloc(BUFFER)));
    assert_non_null(w->want = malloc(BUFFER));
}

static void drop_buffers(struct world *w)
{
    for (int r = 0; r < w->n; r++) free(w->send[r]), free(w->recv[r]);
    free(w->want);
}

static void start_all(struct world *w, const struct call *c, struct kl_nvls_task tasks[][CHANNELS])
{
    for (int r = 0; r < w->n; r++) {
        fill(c, w->n, r, w->send[r]);
    }
    make_want(c, w->n, w->send, w->chunk_bytes, w->want);
    for (int r = 0; r < w->n; r++) {
        place(c, r, w->send[r], w->recv[r]);
        for (int ch = 0; ch < c->channels; ch++) {
            tasks[r][ch] = task_of(c, w->n, r, ch, w->send[r], w->recv[r]);
            kl_nvls_op_start(&w->op[r][ch], &w->nvls[r][ch], &tasks[r][ch]);
        }
    }
}

/* Progress a few at a time, in random order, until all are done. */
static void run_all(struct world *w, const struct call *c, uint64_t *seed)
{
    bool done[MAX_RANKS][CHANNELS] = {{false}};
    int left = w->n * c->channels, idle = 0;

    while (left) {
        int r = (int)draw(seed, (uint64_t)w->n), ch = (int)draw(seed, (uint64_t)c->channels);
        ncclResult_t rc = ncclSuccess;
        if (done[r][ch]) continue;
        enum kl_progress p = kl_nvls_op_progress(&w->op[r][ch], &rc);
        assert_int_equal(rc, ncclSuccess);
        if (p == KL_DONE) done[r][ch] = true, left--;
        idle = p == KL_STALLED ? idle + 1 : 0;
        assert_true(idle < 4000 + 200 * w->n); /* else it hangs */
    }
}

static void check_all(struct world *w, const struct call *c, struct kl_nvls_task tasks[][CHANNELS])
{
    for (int r = 0; r < w->n; r++)
        if (!right(c, w->n, r, tasks[r][0].recv, w->want))
            fail_msg("%s of %zu %s %s over %d ranks, %d channels, %d heads%s: rank %d is wrong", c->kind->name,
                     c->count, kl_type_name(c->type), kl_redop_name(c->op), w->n, c->channels, c->nheads,
                     c->in_place ? ", in place" : "", r);
}

static void every_collective_is_right(void **state)
{
    static struct kl_nvls_task tasks[MAX_RANKS][CHANNELS];
    static const uint32_t slots[] = {1, 2, KL_NVLS_STEPS};
    static struct world w;
    uint64_t seed = 1;

    (void)state;
    for (int n = 1; n <= MAX_RANKS; n++) {
        for (int i = 0; i < (n < 10 ? 60 : 8); i++) {
            if (i % 4 == 0) open_world(&w, n, slots[i / 4 % 3], n < 10 ? 1024 : 256), make_buffers(&w);
            struct call c = draw_call(&seed, n, n < 10 ? BUFFER : BUFFER / 4);
            start_all(&w, &c, tasks);
            run_all(&w, &c, &seed);
            check_all(&w, &c, tasks);
            if (i % 4 == 3) drop_buffers(&w), close_world(&w);
        }
    }
}

static void every_type_and_operator(void **state)
{
    static struct kl_nvls_task tasks[MAX_RANKS][CHANNELS];
    static struct world w;
    uint64_t seed = 2;

    (void)state;
    open_world(&w, 5, 2, 1024);
    make_buffers(&w);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++) FOR_EACH_CASE(kind, kinds)
            {
                struct call c = draw_call(&seed, 5, BUFFER);
                c.kind = *kind;
                c.type = (ncclDataType_t)type;
                c.op = (ncclRedOp_t)op;
                c.count = 777;
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 5), ncclSuccess);
                start_all(&w, &c, tasks);
                run_all(&w, &c, &seed);
                check_all(&w, &c, tasks);
            }
    drop_buffers(&w);
    close_world(&w);
}

/* ---- a thread per rank ---- */

struct job {
    struct world *world;
    uint64_t seed;
    int calls;
    _Atomic int failed; /* rank + 1 */
};

struct member {
    struct job *job;
    int rank;
    pthread_t thread;
};

/* False as soon as any rank failed: others would wait for it. */
static bool run_channels(struct job *job, const struct call *c, int rank, char *send, char *recv)
{
    struct world *w = job->world;
    bool done[CHANNELS] = {false};
    int left = c->channels;

    for (int ch = 0; ch < c->channels; ch++) {
        struct kl_nvls_task t = task_of(c, w->n, rank, ch, send, recv);
        kl_nvls_op_start(&w->op[rank][ch], &w->nvls[rank][ch], &t);
    }
    while (left && !kl_load_relaxed(&job->failed)) {
        bool moved = false;
        for (int ch = 0; ch < c->channels; ch++) {
            ncclResult_t rc = ncclSuccess;
            if (done[ch]) continue;
            enum kl_progress p = kl_nvls_op_progress(&w->op[rank][ch], &rc);
            if (rc) return false;
            moved |= p != KL_STALLED;
            if (p == KL_DONE) done[ch] = true, left--;
        }
        if (!moved) sched_yield();
    }
    return !left;
}

static void *run_member(void *arg)
{
    struct member *m = arg;
    struct world *w = m->job->world;
    uint64_t seed = m->job->seed;
    char *in[MAX_RANKS], *want = malloc(BUFFER), *send = malloc(BUFFER), *recv = malloc(BUFFER);

    for (int r = 0; r < w->n; r++) in[r] = malloc(BUFFER);
    for (int i = 0; i < m->job->calls && !kl_load_relaxed(&m->job->failed); i++) {
        struct call c = draw_call(&seed, w->n, 8000);
        for (int r = 0; r < w->n; r++) fill(&c, w->n, r, in[r]);
        make_want(&c, w->n, in, w->chunk_bytes, want);
        memcpy(send, in[m->rank], bytes_of(&c, parts_of_send(&c, w->n)));
        place(&c, m->rank, send, recv);
        const char *result = task_of(&c, w->n, m->rank, 0, send, recv).recv;
        if (!run_channels(m->job, &c, m->rank, send, recv) || !right(&c, w->n, m->rank, result, want))
            kl_store_relaxed(&m->job->failed, m->rank + 1);
    }
    for (int r = 0; r < w->n; r++) free(in[r]);
    free(want), free(send), free(recv);
    return NULL;
}

static void threads_agree(void **state)
{
    static const struct {
        int n, calls;
        uint32_t steps;
    } jobs[] = {{2, 60, 1}, {2, 60, 4}, {3, 40, 2}, {5, 16, 4}, {8, 8, 1}};
    static struct world w;
    struct member members[8];

    (void)state;
    FOR_EACH_CASE(j, jobs)
    {
        struct job job = {.world = &w, .seed = (uint64_t)j->n, .calls = j->calls};
        open_world(&w, j->n, j->steps, 512);
        for (int r = 0; r < j->n; r++) {
            members[r] = (struct member){.job = &job, .rank = r};
            assert_int_equal(pthread_create(&members[r].thread, NULL, run_member, &members[r]), 0);
        }
        for (int r = 0; r < j->n; r++) pthread_join(members[r].thread, NULL);
        assert_int_equal(kl_load_relaxed(&job.failed), 0);
        close_world(&w);
    }
}

/* ---- the memory ---- */

/* Mark bytes of the memory as a writer's; no other may have marked them. */
static void claim(unsigned char *owner, const void *memory, const void *at, size_t bytes, int writer)
{
    size_t begin = (size_t)((const char *)at - (const char *)memory);

    for (size_t i = begin; i < begin + bytes; i++) {
        assert_int_equal(owner[i], 0);
        owner[i] = (unsigned char)(writer + 1);
    }
}

static void every_line_has_one_writer(void **state)
{
    static const struct kl_nvls_shape shapes[] = {{1, 1, 128}, {3, 2, 256}, {8, 4, 512}, {64, 1, 128}};

    (void)state;
    FOR_EACH_CASE(shape, shapes)
    {
        size_t bytes = kl_nvls_bytes(shape);
        unsigned char *memory = zeroed(bytes), *owner = calloc(1, bytes);
        struct kl_nvls nvls;
        assert_int_equal(kl_nvls_init(&nvls, shape, 0), ncclSuccess);
        kl_nvls_attach(&nvls, memory, NULL);
        for (int head = 0; head < (int)shape->nranks; head++) {
            struct kl_nvls_head h = kl_nvls_head(&nvls, head);
            for (int r = 0; r < (int)shape->nranks; r++) claim(owner, memory, &h.taken[r], KL_LINE, r);
            for (uint64_t step = 0; step < shape->steps; step++) {
                for (int r = 0; r < (int)shape->nranks; r++) {
                    claim(owner, memory, kl_nvls_contribution(&h, r, step), KL_LINE, r);
                    claim(owner, memory, kl_nvls_contributed(&h, r, step, 113), shape->chunk_bytes, r);
                }
                claim(owner, memory, kl_nvls_result(&h, step), KL_LINE, head);
                claim(owner, memory, kl_nvls_published(&h, step, 113), shape->chunk_bytes, head);
            }
        }
        for (size_t i = 0; i < bytes; i++) assert_true(owner[i]);
        kl_nvls_fini(&nvls);
        free(memory), free(owner);
    }
}

static void impossible_shapes_are_refused(void **state)
{
    static const struct kl_nvls_shape impossible[] = {{0, 1, 128}, {1, 0, 128},           {1, 1, 0},
                                                      {1, 1, 129}, {4096, 1024, 1 << 30}, {1 << 20, 1, 128}};
    const struct kl_nvls_shape shape = {4, 2, 256};
    struct kl_nvls nvls;

    (void)state;
    FOR_EACH_CASE(s, impossible)
    {
        assert_int_equal(kl_nvls_bytes(s), 0);
        assert_int_equal(kl_nvls_init(&nvls, s, 0), ncclInternalError);
    }
    assert_int_equal(kl_nvls_init(&nvls, &shape, 4), ncclInternalError);
    assert_int_equal(kl_nvls_init(&nvls, &shape, -1), ncclInternalError);
    kl_nvls_fini(&nvls);
    kl_nvls_fini(&nvls);
}

static void chunks_fit_the_ranks(void **state)
{
    (void)state;
    assert_int_equal(kl_nvls_chunk_bytes(1, 131072), 131072);
    assert_int_equal(kl_nvls_chunk_bytes(8, 131072), 32768);
    assert_int_equal(kl_nvls_chunk_bytes(8, 10000), 9984);
    assert_int_equal(kl_nvls_chunk_bytes(64, 131072), 4096);
    assert_int_equal(kl_nvls_chunk_bytes(1000, 131072), 1024);
}

/* ---- errors ---- */

static void start_one(struct world *w, int rank, const struct kl_nvls_kind *kind, size_t count, uint32_t operation,
                      const struct kl_redop *redop)
{
    struct kl_nvls_task t = {.kind = kind,
                             .redop = redop,
                             .send = w->send[rank],
                             .recv = w->recv[rank],
                             .count = count,
                             .end = count,
                             .elem_bytes = redop->elem_bytes,
                             .operation = operation};

    kl_nvls_op_start(&w->op[rank][0], &w->nvls[rank][0], &t);
}

static void calls_that_differ_are_an_error(void **state)
{
    static const struct {
        const char *says;
        size_t counts[2];
        uint32_t operations[2];
    } cases[] = {{"same settings", {100, 60}, {1, 1}}, {"another call", {100, 100}, {1, 2}}};
    static struct world w;
    struct kl_redop redop;

    (void)state;
    assert_int_equal(kl_redop_init(&redop, ncclInt64, ncclSum, 2), ncclSuccess);
    FOR_EACH_CASE(kind, kinds)
    FOR_EACH_CASE(c, cases)
    {
        ncclResult_t rc = ncclSuccess;
        open_world(&w, 2, 2, 1024);
        make_buffers(&w);
        for (int r = 0; r < 2; r++) memset(w.send[r], 0, BUFFER);
        for (int r = 0; r < 2; r++) start_one(&w, r, *kind, c->counts[r], c->operations[r], &redop);
        for (int i = 0; i < 10 && !rc; i++)
            for (int r = 0; r < 2 && !rc; r++) kl_nvls_op_progress(&w.op[r][0], &rc);
        assert_int_equal(rc, ncclInvalidUsage);
        assert_non_null(strstr(kl_error_text(), c->says));
        drop_buffers(&w);
        close_world(&w);
    }
}

static void missing_ranks_are_found(void **state)
{
    static struct world w;
    struct kl_redop redop;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    assert_int_equal(kl_redop_init(&redop, ncclFloat32, ncclSum, 3), ncclSuccess);
    FOR_EACH_CASE(kind, kinds)
    {
        open_world(&w, 3, 2, 1024);
        make_buffers(&w);
        memset(w.send[0], 0, BUFFER), memset(w.send[2], 0, BUFFER);
        start_one(&w, 0, *kind, 3000 / 3, 0, &redop);
        start_one(&w, 2, *kind, 3000 / 3, 0, &redop);
        for (int i = 0; i < 10; i++)
            for (int r = 0; r < 3; r += 2) assert_int_not_equal(kl_nvls_op_progress(&w.op[r][0], &rc), KL_DONE);
        assert_int_equal(rc, ncclSuccess);
        for (int r = 0; r < 3; r += 2) {
            int blocker = kl_nvls_op_blocked_on(&w.op[r][0]);
            if (blocker == 0) blocker = kl_nvls_op_blocked_on(&w.op[0][0]); /* which waits, too */
            assert_int_equal(blocker, 1);
            assert_int_equal(kl_nvls_op_departed_rank(&w.op[r][0]), -1);
        }
        kl_store_release(&w.mark[1].left, 1);
        for (int r = 0; r < 3; r += 2) assert_int_equal(kl_nvls_op_departed_rank(&w.op[r][0]), 1);
        drop_buffers(&w);
        close_world(&w);
    }
}

/* A rank that did its part and left is not waited for. */
static void leaving_after_the_work_is_fine(void **state)
{
    static struct world w;
    struct kl_redop redop;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    assert_int_equal(kl_redop_init(&redop, ncclInt32, ncclSum, 2), ncclSuccess);
    open_world(&w, 2, 2, 1024);
    make_buffers(&w);
    for (int r = 0; r < 2; r++) {
        memset(w.send[r], 1, BUFFER);
        start_one(&w, r, &kl_nvls_reducescatter, 8, 0, &redop);
    }
    assert_int_not_equal(kl_nvls_op_progress(&w.op[1][0], &rc), KL_DONE);
    assert_int_equal(kl_nvls_op_progress(&w.op[0][0], &rc), KL_DONE);
    kl_store_release(&w.mark[0].left, 1);
    assert_int_equal(kl_nvls_op_departed_rank(&w.op[1][0]), -1);
    assert_int_equal(kl_nvls_op_progress(&w.op[1][0], &rc), KL_DONE);
    assert_int_equal(rc, ncclSuccess);
    drop_buffers(&w);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest one_thread[] = {
        cmocka_unit_test(every_line_has_one_writer), cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(chunks_fit_the_ranks),      cmocka_unit_test(every_collective_is_right),
        cmocka_unit_test(every_type_and_operator),   cmocka_unit_test(calls_that_differ_are_an_error),
        cmocka_unit_test(missing_ranks_are_found),   cmocka_unit_test(leaving_after_the_work_is_fine),
    };
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(threads_agree),
    };
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(one_thread, NULL, NULL);

    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
