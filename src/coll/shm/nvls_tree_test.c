/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVLSTree over several nodes, each an ordinary block of memory, whose heads are joined by real fifos: many ranks in
 * one thread, progressed in a changing order, with every type and operation; a thread per rank; and failures between
 * nodes.
 */
#include "coll/shm/nvls_tree.h"

#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/shm/nvls_group.h"
#include "graph/tree.h"
#include "tests/kolo_test.h"
#include "transport/test_join.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MAX_NODES = 9, MAX_LOCAL = 5, MAX_RANKS = MAX_NODES * MAX_LOCAL, CHANNELS = 2, BUFFER = 60000, SLOTS = 2 };
enum { MAX_CONNECTORS = 4 * MAX_NODES * MAX_LOCAL * CHANNELS };

static const struct kl_algorithm *const row = &kl_algorithm_nvls_tree;

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* ---- a cluster ---- */

struct rank {
    struct kl_edges edges[CHANNELS];
    struct kl_nvls_group group[CHANNELS];
    void *op[CHANNELS];
    bool done[CHANNELS];
    char *send, *recv;
};

struct node {
    int first, n; /* its ranks, among all */
    int32_t ranks[MAX_LOCAL];
    int heads[CHANNELS][MAX_LOCAL];
    struct kl_arena arena[CHANNELS];
};

struct world {
    int nnodes, nranks, nheads;
    struct kl_nvls_shape shape; /* but for nranks */
    const struct kl_transport *transport;
    struct kl_fifo_shape fifo;
    struct node node[MAX_NODES];
    struct rank rank[MAX_RANKS];
    struct kl_connector connector[MAX_CONNECTORS];
    int nconnectors;
    bool network; /* heads meet in a network that reduces, emulated by these fields: */
    struct kl_connector *in[CHANNELS][MAX_LOCAL][MAX_NODES], *out[CHANNELS][MAX_LOCAL][MAX_NODES];
};

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(KL_LINE, (bytes + KL_LINE - 1) / KL_LINE * KL_LINE);

    assert_non_null(memory);
    return memset(memory, 0, bytes);
}

/* Some of its ranks, in any order, another one on every channel. */
static void choose_heads(const struct world *w, struct node *node, uint64_t *seed)
{
    for (int ch = 0; ch < CHANNELS; ch++) {
        int order[MAX_LOCAL] = {0};
        for (int i = 0; i < node->n; i++) {
            int at = (int)draw(seed, (uint64_t)i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        memcpy(node->heads[ch], order, (size_t)w->nheads * sizeof *order);
    }
}

static void make_rank(struct world *w, struct node *node, int local)
{
    struct rank *r = &w->rank[node->first + local];
    struct kl_nvls_shape shape = w->shape;

    *r = (struct rank){.send = zeroed(BUFFER), .recv = zeroed(BUFFER)};
    shape.nranks = (uint32_t)node->n;
    for (int ch = 0; ch < CHANNELS; ch++) {
        r->group[ch] = (struct kl_nvls_group){
            .n = node->n, .own = local, .ranks = node->ranks, .nheads = w->nheads, .heads = node->heads[ch]};
        assert_int_equal(kl_nvls_init(&r->group[ch].nvls, &shape, local), ncclSuccess);
        r->edges[ch] = (struct kl_edges){.own = &r->group[ch], .arena = &node->arena[ch]};
        r->op[ch] = zeroed(row->op_bytes);
    }
}

static void make_node(struct world *w, struct node *node, uint64_t *seed)
{
    struct kl_nvls_shape shape = w->shape;

    choose_heads(w, node, seed);
    shape.nranks = (uint32_t)node->n;
    for (int ch = 0; ch < CHANNELS; ch++)
        node->arena[ch] = (struct kl_arena){.memory = zeroed(kl_nvls_bytes(&shape)),
                                            .mark = zeroed((size_t)node->n * sizeof(struct kl_arena_mark))};
    for (int i = 0; i < node->n; i++) {
        node->ranks[i] = node->first + i;
        make_rank(w, node, i);
    }
}

static struct kl_connector *new_connector(struct world *w, bool sends)
{
    struct kl_connector *c = &w->connector[w->nconnectors++];

    assert_true(w->nconnectors <= MAX_CONNECTORS);
    *c = (struct kl_connector){.transport = w->transport, .sends = sends};
    return c;
}

static int note(int *count, int number)
{
    if (number >= *count) *count = number + 1;
    return number;
}

static void connect(struct world *w, struct kl_connector **tx, struct kl_connector **rx)
{
    struct kl_connect_info info = {.version = KL_CONNECT_INFO_VERSION};
    struct kl_connect_reply reply = {.pool_bytes = 0};

    *tx = new_connector(w, true);
    *rx = new_connector(w, false);
    assert_int_equal(w->transport->setup(*rx, &w->fifo, &info), ncclSuccess);
    assert_int_equal(test_connect(*tx, &info, &reply), ncclSuccess);
    assert_int_equal(test_settle(*rx, &reply), ncclSuccess);
}

/* Edge `out` of rank `from` is edge `in` of rank `to`. */
static void join(struct world *w, int ch, int from, int out, int to, int in)
{
    struct kl_edges *a = &w->rank[from].edges[ch], *b = &w->rank[to].edges[ch];
    int send = note(&a->nsend, out), recv = note(&b->nrecv, in);

    connect(w, &a->send[send], &b->recv[recv]);
    a->send[send]->peer = to;
    b->recv[recv]->peer = from;
}

static int head_rank(const struct world *w, int ch, int node, int head)
{
    return w->node[node].first + w->node[node].heads[ch][head];
}

/* The trees of the channels complement each other. */
static void join_heads(struct world *w, int ch, int head)
{
    for (int node = 0; node < w->nnodes; node++) {
        struct kl_tree_links t = kl_double_tree(w->nnodes, node, ch % 2);
        int parent = head_rank(w, ch, node, head);
        for (int i = 0; i < 2; i++) {
            if (t.down[i] < 0) continue;
            int child = head_rank(w, ch, t.down[i], head), number = w->rank[parent].edges[ch].position.ndown++;
            w->rank[child].edges[ch].position.up = 1;
            join(w, ch, child, KL_TREE_UP, parent, number);
            join(w, ch, parent, number, child, KL_TREE_UP);
        }
    }
}

static void join_network(struct world *w, int ch, int head)
{
    for (int node = 0; node < w->nnodes; node++) {
        struct rank *r = &w->rank[head_rank(w, ch, node, head)];
        struct kl_edges *l = &r->edges[ch];
        r->group[ch].network = (void *)w; /* there is one */
        l->position.up = 1;
        l->nsend = l->nrecv = KL_TREE_UP + 1;
        connect(w, &l->send[KL_TREE_UP], &w->in[ch][head][node]);
        connect(w, &w->out[ch][head][node], &l->recv[KL_TREE_UP]);
    }
}

/* Nodes of `least` to MAX_LOCAL ranks. */
static void open_world(struct world *w, int nnodes, int least, uint32_t steps, uint64_t chunk_bytes, uint64_t *seed)
{
    bool network = w->network;

    *w = (struct world){
        .network = network,
        .nnodes = nnodes,
        .nheads = 1 + (int)draw(seed, (uint64_t)least),
        .shape = {.steps = steps, .chunk_bytes = chunk_bytes},
        .transport = draw(seed, 2) ? &kl_transport_p2p : &kl_transport_shm,
        .fifo = {.nslots = SLOTS, .slot_bytes = chunk_bytes},
    };
    for (int i = 0; i < nnodes; i++) {
        w->node[i].first = w->nranks;
        w->node[i].n = least + (int)draw(seed, (uint64_t)(MAX_LOCAL - least) + 1);
        w->nranks += w->node[i].n;
        make_node(w, &w->node[i], seed);
    }
    for (int ch = 0; ch < CHANNELS; ch++)
        for (int h = 0; h < w->nheads; h++) network ? join_network(w, ch, h) : join_heads(w, ch, h);
}

static void close_world(struct world *w)
{
    for (int i = 0; i < w->nconnectors; i++) kl_connector_free(&w->connector[i]);
    for (int r = 0; r < w->nranks; r++) {
        for (int ch = 0; ch < CHANNELS; ch++) {
            kl_nvls_fini(&w->rank[r].group[ch].nvls);
            free(w->rank[r].op[ch]);
        }
        free(w->rank[r].send), free(w->rank[r].recv);
    }
    for (int i = 0; i < w->nnodes; i++)
        for (int ch = 0; ch < CHANNELS; ch++) free(w->node[i].arena[ch].memory), free(w->node[i].arena[ch].mark);
}

/* ---- an operation ---- */

struct call {
    struct kl_redop redop;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t count;
    bool in_place;
    uint64_t seed;
};

static struct call draw_call(const struct world *w, uint64_t *seed, int type, int op)
{
    static const size_t most[] = {20, 200, 3000, BUFFER};
    struct call c = {.type = (ncclDataType_t)type, .op = (ncclRedOp_t)op, .in_place = draw(seed, 2)};

    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, w->nranks), ncclSuccess);
    c.count = draw(seed, most[draw(seed, 4)] / c.redop.elem_bytes + 1);
    c.seed = *seed;
    return c;
}

/* Any bits: types take them as they are. */
static void fill(const struct call *c, int rank, char *to)
{
    uint64_t seed = c->seed + (uint64_t)rank * 1000003;
    size_t bytes = c->count * c->redop.elem_bytes;

    for (size_t i = 0; i < bytes; i += sizeof seed) {
        uint64_t bits = draw(&seed, UINT64_MAX);
        memcpy(to + i, &bits, bytes - i < sizeof bits ? bytes - i : sizeof bits);
    }
}

static void start(struct world *w, const struct call *c, int rank)
{
    struct rank *r = &w->rank[rank];
    const size_t half = c->count / 2;
    struct kl_channel_work share = {.func = KL_FUNC_ALL_REDUCE,
                                    .proto = KL_PROTO_SIMPLE,
                                    .redop = &c->redop,
                                    .send = c->in_place ? r->recv : r->send,
                                    .recv = r->recv,
                                    .count = c->count,
                                    .signature = c->count,
                                    .elem_bytes = c->redop.elem_bytes};

    fill(c, rank, c->in_place ? r->recv : r->send);
    for (int ch = 0; ch < CHANNELS; ch++) {
        share.first = ch ? half : 0;
        share.end = ch ? c->count : half;
        row->start(row, r->op[ch], &r->edges[ch], &share);
        r->done[ch] = false;
    }
}

static bool is_integer(ncclDataType_t type)
{
    return type <= ncclUint64;
}

/* Integer sums do not depend on the order. */
static void check_values(const struct world *w, const struct call *c, const char *got)
{
    char *own = malloc(BUFFER), *want = malloc(BUFFER);

    fill(c, 0, want);
    if (c->redop.first) c->redop.first(&c->redop, want, want, c->count);
    for (int r = 1; r < w->nranks; r++) {
        fill(c, r, own);
        c->redop.combine(&c->redop, want, want, own, c->count);
    }
    if (c->redop.last) c->redop.last(&c->redop, want, c->count);
    if (memcmp(got, want, c->count * c->redop.elem_bytes))
        fail_msg("%s of %zu %s on %d nodes, %d ranks, %d heads is wrong", kl_redop_name(c->op), c->count,
                 kl_type_name(c->type), w->nnodes, w->nranks, w->nheads);
    free(own), free(want);
}

static void check_result(const struct world *w, const struct call *c)
{
    if (is_integer(c->type)) check_values(w, c, w->rank[0].recv);
    for (int r = 1; r < w->nranks; r++)
        if (memcmp(w->rank[r].recv, w->rank[0].recv, c->count * c->redop.elem_bytes))
            fail_msg("%s of %zu %s on %d nodes, %d heads: rank %d has another result than rank 0", kl_redop_name(c->op),
                     c->count, kl_type_name(c->type), w->nnodes, w->nheads, r);
}

/* ---- many ranks in one thread ---- */

/* The network reduces a slice, once all nodes have sent theirs. */
static bool reduce(struct world *w, int ch, int head, const struct kl_redop *redop)
{
    struct kl_connector **in = w->in[ch][head], **out = w->out[ch][head];
    char sum[8192];
    size_t bytes = 0;
    bool more;

    for (int node = 0; node < w->nnodes; node++)
        if (!kl_fifo_ready(&in[node]->rx) || !kl_fifo_can_send(&out[node]->tx)) return false;
    for (int node = 0; node < w->nnodes; node++) {
        const void *own = kl_fifo_open(&in[node]->rx, &bytes, &more);
        assert_true(own && bytes <= sizeof sum);
        out[node]->tx.signature = kl_fifo_signature(&in[node]->rx);
        if (node)
            redop->merge(redop, sum, sum, own, bytes / redop->elem_bytes);
        else
            memcpy(sum, own, bytes);
        kl_fifo_release(&in[node]->rx);
    }
    for (int node = 0; node < w->nnodes; node++) kl_edges_send_step(&out[node]->tx, sum, bytes, false);
    return true;
}

/* Progress in random order until all are done; ncclInProgress: nothing moves any more. */
static ncclResult_t run(struct world *w, const struct call *c, uint64_t *seed)
{
    int left = w->nranks * CHANNELS, idle = 0;

    while (left) {
        struct rank *r = &w->rank[draw(seed, (uint64_t)w->nranks)];
        int ch = (int)draw(seed, CHANNELS);
        ncclResult_t rc = ncclSuccess;
        if (w->network && reduce(w, ch, (int)draw(seed, (uint64_t)w->nheads), &c->redop)) idle = 0;
        if (r->done[ch]) continue;
        enum kl_progress got = row->progress(r->op[ch], &rc);
        if (rc) return rc;
        if (got == KL_DONE) r->done[ch] = true, left--;
        idle = got == KL_STALLED ? idle + 1 : 0;
        if (idle > 4000 + 400 * w->nranks) return ncclInProgress;
    }
    return ncclSuccess;
}

static void do_call(struct world *w, uint64_t *seed, int type, int op)
{
    struct call c = draw_call(w, seed, type, op);

    for (int r = 0; r < w->nranks; r++) start(w, &c, r);
    assert_int_equal(run(w, &c, seed), ncclSuccess);
    check_result(w, &c);
}

static void every_cluster_is_right(void **state)
{
    static const uint32_t steps[] = {1, 2, KL_NVLS_STEPS};
    static const uint64_t chunks[] = {128, 512, 8192}; /* the last is read in place, where memory is shared */
    static struct world w;
    uint64_t seed = 1;

    (void)state;
    for (int nnodes = 2; nnodes <= MAX_NODES; nnodes++)
        for (int i = 0; i < 18; i++) {
            open_world(&w, nnodes, 1 + i % MAX_LOCAL, steps[i % 3], chunks[i / 3 % 3], &seed);
            for (int k = 0; k < 4; k++)
                do_call(&w, &seed, (int)draw(&seed, ncclNumTypes), (int)draw(&seed, ncclNumOps));
            close_world(&w);
        }
}

static void do_every_call(struct world *w, uint64_t seed)
{
    open_world(w, 3, 2, 2, 1024, &seed);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int k = 0; k < 3; k++) do_call(w, &seed, type, op);
    close_world(w);
}

static void every_type_and_operation(void **state)
{
    static struct world w;

    (void)state;
    do_every_call(&w, 2);
}

/* It only adds: heads finish. */
static void heads_meet_in_a_network(void **state)
{
    static struct world w = {.network = true};

    (void)state;
    do_every_call(&w, 6);
}

/* ---- a thread per rank ---- */

struct member {
    struct world *w;
    const struct call *calls;
    int rank, ncalls;
    ncclResult_t rc;
    pthread_t thread;
    pthread_barrier_t *barrier;
};

static ncclResult_t run_alone(struct rank *r)
{
    ncclResult_t rc = ncclSuccess;

    for (int left = CHANNELS; left && !rc;) {
        bool moved = false;
        for (int ch = 0; ch < CHANNELS && !rc; ch++) {
            if (r->done[ch]) continue;
            enum kl_progress got = row->progress(r->op[ch], &rc);
            moved |= got != KL_STALLED;
            if (got == KL_DONE) r->done[ch] = true, left--;
        }
        if (!moved) sched_yield();
    }
    return rc;
}

/* Results are checked when all are done: the first of the members does it. */
static void *run_member(void *arg)
{
    struct member *m = arg;

    for (int i = 0; i < m->ncalls && !m->rc; i++) {
        start(m->w, &m->calls[i], m->rank);
        m->rc = run_alone(&m->w->rank[m->rank]);
        pthread_barrier_wait(m->barrier);
        if (!m->rank) check_result(m->w, &m->calls[i]);
        pthread_barrier_wait(m->barrier);
    }
    return NULL;
}

static void threads_agree(void **state)
{
    enum { CALLS = 12 };
    static struct world w;
    struct call calls[CALLS];
    struct member member[MAX_RANKS];
    pthread_barrier_t barrier;
    uint64_t seed = 3;

    (void)state;
    for (int nnodes = 2; nnodes <= 3; nnodes++) {
        open_world(&w, nnodes, 2, (uint32_t)nnodes, 512, &seed);
        for (int i = 0; i < CALLS; i++)
            calls[i] = draw_call(&w, &seed, (int)draw(&seed, ncclNumTypes), (int)draw(&seed, ncclNumOps));
        pthread_barrier_init(&barrier, NULL, (unsigned)w.nranks);
        for (int r = 0; r < w.nranks; r++) {
            member[r] = (struct member){.w = &w, .calls = calls, .rank = r, .ncalls = CALLS, .barrier = &barrier};
            assert_int_equal(pthread_create(&member[r].thread, NULL, run_member, &member[r]), 0);
        }
        for (int r = 0; r < w.nranks; r++) {
            pthread_join(member[r].thread, NULL);
            assert_int_equal(member[r].rc, ncclSuccess);
        }
        pthread_barrier_destroy(&barrier);
        close_world(&w);
    }
}

/* ---- the order of things ---- */

/* Two nodes of one rank: rank 0 is the root of one tree, rank 1 of the other. */
static struct call open_pair(struct world *w, uint64_t chunk_bytes, size_t count)
{
    struct call c = {.type = ncclInt32, .op = ncclSum, .count = count};
    uint64_t seed = 4;

    for (;;) {
        open_world(w, 2, 1, 2, chunk_bytes, &seed);
        if (w->nranks == 2 && w->transport == &kl_transport_p2p) break;
        close_world(w);
    }
    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, w->nranks), ncclSuccess);
    return c;
}

static const struct kl_edges *edges_that_rise(const struct world *w, int rank)
{
    return &w->rank[rank].edges[w->rank[rank].edges[0].position.up ? 0 : 1];
}

/* Slices rise while none has come down: up to an edge's capacity. */
static void slices_follow_each_other(void **state)
{
    static struct world w;
    struct call c = open_pair(&w, 128, 4000);
    ncclResult_t rc = ncclSuccess;

    (void)state;
    start(&w, &c, 1);
    for (int ch = 0; ch < CHANNELS; ch++) assert_int_not_equal(row->progress(w.rank[1].op[ch], &rc), KL_DONE);
    assert_int_equal(edges_that_rise(&w, 1)->send[KL_TREE_UP]->tx.step, SLOTS);
    assert_int_equal(rc, ncclSuccess);
    close_world(&w);
}

/* The root is not done before its child has read the zero-copy memory. */
static void direct_memory_is_waited_for(void **state)
{
    static struct world w;
    struct call c = open_pair(&w, 8192, 4096);
    int ch = w.rank[0].edges[0].position.up; /* the channel in which rank 0 is the root */
    void *root = w.rank[0].op[ch], *child = w.rank[1].op[ch];
    ncclResult_t rc = ncclSuccess;

    (void)state;
    for (int r = 0; r < w.nranks; r++) start(&w, &c, r);
    assert_int_not_equal(row->progress(child, &rc), KL_DONE);
    for (int i = 0; i < 3; i++) assert_int_not_equal(row->progress(root, &rc), KL_DONE);
    assert_int_equal(row->progress(child, &rc), KL_DONE);
    assert_int_equal(row->progress(root, &rc), KL_DONE);
    assert_int_equal(rc, ncclSuccess);
    close_world(&w);
}

/* ---- errors ---- */

static void nodes_that_differ_are_an_error(void **state)
{
    static struct world w;
    struct call c = open_pair(&w, 128, 40), less = c;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    less.count = 30;
    start(&w, &c, 0);
    start(&w, &less, 1);
    for (int i = 0; i < 10 && !rc; i++)
        for (int k = 0; k < 2 * CHANNELS && !rc; k++) row->progress(w.rank[k % 2].op[k / 2], &rc);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "different counts"));
    close_world(&w);
}

static void expect_blocked(const struct world *w, int rank, bool gone, int peer)
{
    for (int ch = 0; ch < CHANNELS; ch++) assert_int_equal(row->blocked_on(w->rank[rank].op[ch], gone), peer);
}

/* Root or not: the head of the other node is waited for, also when it has left. */
static void missing_ranks_are_found(void **state)
{
    static struct world w;

    (void)state;
    for (int missing = 0; missing < 2; missing++) {
        struct call c = open_pair(&w, 128, 40);
        ncclResult_t rc = ncclSuccess;
        start(&w, &c, 1 - missing);
        for (int ch = 0; ch < CHANNELS; ch++)
            assert_int_not_equal(row->progress(w.rank[1 - missing].op[ch], &rc), KL_DONE);
        expect_blocked(&w, 1 - missing, false, missing);
        expect_blocked(&w, 1 - missing, true, -1);
        for (int i = 0; i < w.nconnectors; i++)
            if (w.connector[i].peer != missing) kl_connector_leave(&w.connector[i]);
        expect_blocked(&w, 1 - missing, true, missing);
        assert_int_equal(rc, ncclSuccess);
        close_world(&w);
    }
}

/* Ranks are named by their numbers in the communicator. */
static void missing_ranks_of_a_later_node_are_found(void **state)
{
    static struct world w;
    uint64_t seed = 5;

    (void)state;
    open_world(&w, 3, MAX_LOCAL, 2, 128, &seed);
    struct call c = {.type = ncclInt32, .op = ncclSum, .count = 1000};
    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, w.nranks), ncclSuccess);
    int missing = w.node[2].first + 1, head = head_rank(&w, 0, 2, 0);
    if (missing == head) missing++;
    for (int r = 0; r < w.nranks; r++)
        if (r != missing) start(&w, &c, r);
    for (int ch = 0; ch < CHANNELS; ch++) w.rank[missing].done[ch] = true;
    for (int i = 0; i < 20; i++)
        for (int r = 0; r < w.nranks; r++) {
            ncclResult_t rc = ncclSuccess;
            if (r != missing) row->progress(w.rank[r].op[0], &rc);
            assert_int_equal(rc, ncclSuccess);
        }
    assert_int_equal(row->blocked_on(w.rank[head].op[0], false), missing);
    assert_int_equal(row->blocked_on(w.rank[head].op[0], true), -1);
    kl_store_release(&w.node[2].arena[0].mark[missing - w.node[2].first].left, 1);
    assert_int_equal(row->blocked_on(w.rank[head].op[0], true), missing);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest one_thread[] = {
        cmocka_unit_test(every_cluster_is_right),      cmocka_unit_test(every_type_and_operation),
        cmocka_unit_test(heads_meet_in_a_network),     cmocka_unit_test(slices_follow_each_other),
        cmocka_unit_test(direct_memory_is_waited_for), cmocka_unit_test(nodes_that_differ_are_an_error),
        cmocka_unit_test(missing_ranks_are_found),     cmocka_unit_test(missing_ranks_of_a_later_node_are_found),
    };
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(threads_agree),
    };
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(one_thread, NULL, NULL);

    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
