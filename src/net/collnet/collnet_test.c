/* SPDX-License-Identifier: Apache-2.0 */
/* Groups whose members reduce among themselves over sockets, all in one thread. */
#include "net/collnet.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/host/redop.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <stdlib.h>

enum { MOST = 5, MOST_BYTES = 1 << 18 };

static const struct kl_collnet *const collnet = &kl_collnet_software;
static const int32_t ranks[MOST] = {3, 11, 17, 20, 31};

struct member {
    struct kl_collnet_end end;
    void *listener, *group;
    unsigned char *send, *recv; /* MOST parts of MOST_BYTES */
};

struct party {
    int n;
    struct kl_net_handle handle[MOST];
    struct member member[MOST];
};

static uint64_t seed;

static unsigned dice(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

/* ---- a party ---- */

static void prepare(struct party *p, int n, uint64_t timeout_ms)
{
    *p = (struct party){.n = n};
    for (int m = 0; m < n; m++) {
        struct member *me = &p->member[m];

        me->end = (struct kl_collnet_end){.net = &kl_net_socket,
                                          .ranks = ranks,
                                          .n = n,
                                          .own = m,
                                          .id = 7,
                                          .most = MOST_BYTES,
                                          .deadline = kl_deadline_in_ms(timeout_ms)};
        memset(me->end.secret.bytes, 42, sizeof me->end.secret.bytes);
        assert_int_equal(collnet->listen(0, &me->end, &p->handle[m], &me->listener), ncclSuccess);
        me->send = malloc((size_t)MOST * MOST_BYTES);
        me->recv = malloc((size_t)MOST * MOST_BYTES);
    }
}

static ncclResult_t connect_one(struct party *p, int m)
{
    struct member *me = &p->member[m];

    return collnet->connect(0, &me->end, p->handle, me->listener, &me->group);
}

static void open_party(struct party *p, int n)
{
    bool joined[MOST] = {false};
    int left = n;

    prepare(p, n, kolo_test_hang_ms());
    while (left) {
        int m = (int)dice((unsigned)n);
        if (joined[m]) continue;
        ncclResult_t rc = connect_one(p, m);
        if (rc && rc != ncclInProgress) fail_msg("member %d: %s", m, kl_error_text());
        joined[m] = !rc;
        left -= !rc;
    }
}

static void leave(struct party *p, int m)
{
    struct member *me = &p->member[m];

    collnet->close(me->group);
    collnet->close_listen(me->listener);
    me->group = me->listener = NULL;
}

static void close_party(struct party *p)
{
    for (int m = 0; m < p->n; m++) {
        leave(p, m);
        free(p->member[m].send);
        free(p->member[m].recv);
    }
}

/* ---- requests ---- */

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, KINDS };

/* A call that all members make, each with its own data. */
struct call {
    enum kind kind;
    size_t count;
    struct kl_collnet_op op;
};

static void fill(struct party *p, uint64_t from)
{
    seed = from;
    for (int m = 0; m < p->n; m++)
        for (size_t i = 0; i < (size_t)MOST * MOST_BYTES; i += 8) {
            uint64_t eight = (uint64_t)dice(1u << 31) << 32 | dice(1u << 31);
            memcpy(p->member[m].send + i, &eight, 8);
        }
}

static void parts_of(unsigned char *data, int n, struct kl_collnet_part *part)
{
    for (int i = 0; i < n; i++) part[i] = (struct kl_collnet_part){.data = data + (size_t)i * MOST_BYTES};
}

static ncclResult_t ask(struct party *p, int m, const struct call *c, void **request)
{
    struct member *me = &p->member[m];
    struct kl_collnet_part part[MOST];

    if (c->kind == ALL_REDUCE) return collnet->iallreduce(me->group, me->send, me->recv, c->count, c->op, request);
    parts_of(c->kind == ALL_GATHER ? me->recv : me->send, p->n, part);
    if (c->kind == ALL_GATHER)
        return collnet->iallgather(me->group, me->send, part, c->count * kl_type_bytes(c->op.type), request);
    return collnet->ireducescatter(me->group, part, me->recv, c->count, c->op, request);
}

/* All members make the call, polled in random order. Returns the first failure. */
static ncclResult_t run(struct party *p, const struct call *c)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    void *request[MOST] = {NULL};
    bool done[MOST] = {false};

    for (int left = p->n; left;) {
        int m = (int)dice((unsigned)p->n);
        ncclResult_t rc = ncclSuccess;

        if (done[m] || !p->member[m].group) continue;
        if (!request[m]) rc = ask(p, m, c, &request[m]);
        if (!rc && request[m]) rc = collnet->test(request[m], &done[m]);
        if (rc) return rc;
        left -= done[m];
        if (kl_deadline_passed(deadline)) fail_msg("%d members are not done", left);
    }
    return ncclSuccess;
}

/* ---- expected results ---- */

/* Combine the data of all members at `offset`, in the order of members. */
static void reference(const struct party *p, const struct call *c, size_t offset, unsigned char *sum)
{
    struct kl_redop redop;

    assert_int_equal(kl_redop_init(&redop, c->op.type, c->op.op == ncclAvg ? ncclSum : c->op.op, 1), ncclSuccess);
    memcpy(sum, p->member[0].send + offset, c->count * redop.elem_bytes);
    for (int m = 1; m < p->n; m++) redop.merge(&redop, sum, sum, p->member[m].send + offset, c->count);
}

static void check(const struct party *p, const struct call *c, const char *what)
{
    static unsigned char want[MOST_BYTES];
    const size_t bytes = c->count * kl_type_bytes(c->op.type);

    if (c->kind == ALL_REDUCE) reference(p, c, 0, want);
    for (int m = 0; m < p->n; m++) {
        if (c->kind == REDUCE_SCATTER) reference(p, c, (size_t)m * MOST_BYTES, want);
        if (c->kind != ALL_GATHER) expect_case(what, !memcmp(p->member[m].recv, want, bytes));
        for (int from = 0; from < p->n && c->kind == ALL_GATHER; from++)
            expect_case(what, !memcmp(p->member[m].recv + (size_t)from * MOST_BYTES, p->member[from].send, bytes));
    }
}

static void run_and_check(struct party *p, const struct call *c)
{
    static const char *const names[KINDS] = {"all-reduce", "all-gather", "reduce-scatter"};
    char what[96];

    snprintf(what, sizeof what, "%s of %zu %s, %s, %d members", names[c->kind], c->count, kl_type_name(c->op.type),
             kl_redop_name(c->op.op), p->n);
    for (int m = 0; m < p->n; m++) memset(p->member[m].recv, 0xa5, (size_t)MOST * MOST_BYTES);
    if (run(p, c)) fail_msg("%s: %s", what, kl_error_text());
    check(p, c, what);
}

/* ---- tests ---- */

static const struct kl_collnet_op sum_of_floats = {ncclFloat32, ncclSum};

static void every_size(void **state)
{
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 1023, 1024, 1025, 2048, 3000, 16384, 40001, MOST_BYTES / 4};
    struct party p;

    (void)state;
    for (int n = 1; n <= MOST; n++) {
        open_party(&p, n);
        fill(&p, (uint64_t)n);
        FOR_EACH_CASE(count, counts)
        for (int kind = 0; kind < KINDS; kind++)
            run_and_check(&p, &(struct call){.kind = (enum kind)kind, .count = *count, .op = sum_of_floats});
        close_party(&p);
    }
}

static void every_type_and_operation(void **state)
{
    struct party p;

    (void)state;
    open_party(&p, 3);
    fill(&p, 99);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++) {
            const struct kl_collnet_op o = {(ncclDataType_t)type, (ncclRedOp_t)op};

            assert_true(collnet->reduces(o));
            run_and_check(&p, &(struct call){.kind = ALL_REDUCE, .count = 5003, .op = o});
            run_and_check(&p, &(struct call){.kind = REDUCE_SCATTER, .count = 777, .op = o});
        }
    close_party(&p);
}

/* Every member posts as many requests as allowed, of any kind, and tests them in any order; members that are ahead
 * make progress for slower ones. */
static void many_are_outstanding(void **state)
{
    enum { CALLS = 400, N = 4 };
    static struct call call[CALLS];
    static int32_t from[N][CALLS][64], to[N][CALLS][N * 64];
    void *request[N][CALLS] = {{NULL}};
    int asked[N] = {0}, left = N * CALLS;
    struct party p;

    (void)state;
    open_party(&p, N);
    for (int i = 0; i < CALLS; i++)
        call[i] = (struct call){.kind = (enum kind)dice(KINDS), .count = 1 + dice(16), .op = {ncclInt32, ncclSum}};
    while (left) {
        int m = (int)dice(N), i = asked[m] - 1 - (int)dice(KL_COLLNET_REQUESTS);
        bool done = false;

        if (dice(2) && asked[m] < CALLS) {
            struct call *c = &call[asked[m]];
            struct kl_collnet_part part[N];
            int32_t *own = from[m][asked[m]], *result = to[m][asked[m]];
            void **r = &request[m][asked[m]];

            for (int k = 0; k < 64; k++) own[k] = asked[m] * 100000 + m * 1000 + k;
            for (int k = 0; k < N; k++) part[k].data = (c->kind == ALL_GATHER ? result : own) + (size_t)k * c->count;
            if (c->kind == ALL_REDUCE)
                assert_int_equal(collnet->iallreduce(p.member[m].group, own, result, c->count, c->op, r), 0);
            else if (c->kind == ALL_GATHER)
                assert_int_equal(collnet->iallgather(p.member[m].group, own, part, c->count * 4, r), 0);
            else
                assert_int_equal(collnet->ireducescatter(p.member[m].group, part, result, c->count, c->op, r), 0);
            asked[m] += *r != NULL;
        } else if (i >= 0 && request[m][i]) {
            if (collnet->test(request[m][i], &done)) fail_msg("%s", kl_error_text());
            if (done) request[m][i] = NULL;
            left -= done;
        }
    }
    for (int i = 0; i < CALLS; i++)
        for (int m = 0; m < N; m++)
            for (size_t k = 0; k < call[i].count * (call[i].kind == ALL_GATHER ? N : 1); k++) {
                int place = (int)k, part = (int)(k / call[i].count), want = 0;

                if (call[i].kind == REDUCE_SCATTER) place += m * (int)call[i].count;
                for (int a = 0; a < N; a++) want += i * 100000 + a * 1000 + place;
                if (call[i].kind == ALL_GATHER) want = i * 100000 + part * 1000 + (int)(k % call[i].count);
                assert_int_equal(to[m][i][k], want);
            }
    close_party(&p);
}

static void there_is_room_for_so_many(void **state)
{
    struct party p;
    void *request[KL_COLLNET_REQUESTS], *more;
    const struct call c = {.kind = ALL_REDUCE, .count = 100, .op = sum_of_floats};
    bool done;

    (void)state;
    open_party(&p, 2);
    for (int i = 0; i < KL_COLLNET_REQUESTS; i++) {
        assert_int_equal(ask(&p, 0, &c, &request[i]), ncclSuccess);
        assert_non_null(request[i]);
    }
    assert_int_equal(ask(&p, 0, &c, &more), ncclSuccess);
    assert_null(more);
    assert_int_equal(collnet->waits_for(p.member[0].group), ranks[1]);
    assert_int_equal(collnet->waits_for(p.member[1].group), -1);
    for (int i = 0; i < KL_COLLNET_REQUESTS; i++) {
        void *other;

        assert_int_equal(ask(&p, 1, &c, &other), ncclSuccess);
        do assert_int_equal(collnet->test(request[i], &done), ncclSuccess);
        while (!done && !collnet->test(other, &done));
        if (done) continue;
    }
    close_party(&p);
}

static void expect_in_error(const char *text)
{
    if (!strstr(kl_error_text(), text)) fail_msg("\"%s\" is not in \"%s\"", text, kl_error_text());
}

static void what_it_cannot_do_is_refused(void **state)
{
    const struct kl_collnet_op no_type = {ncclNumTypes, ncclSum}, no_op = {ncclFloat32, ncclNumOps};
    struct party p;
    void *request;

    (void)state;
    assert_false(collnet->reduces(no_type));
    assert_false(collnet->reduces(no_op));
    open_party(&p, 2);
    struct member *me = &p.member[0];
    assert_int_equal(collnet->iallreduce(me->group, me->send, me->recv, 1, no_type, &request), ncclInvalidArgument);
    assert_int_equal(collnet->iallreduce(me->group, me->send, me->recv, 1, no_op, &request), ncclInvalidArgument);
    assert_int_equal(ask(&p, 0, &(struct call){REDUCE_SCATTER, MOST_BYTES / 4 + 1, sum_of_floats}, &request),
                     ncclInvalidArgument);
    expect_in_error("262148 bytes of a member in one request; the group was made for 262144");
    run_and_check(&p, &(struct call){ALL_REDUCE, 100, sum_of_floats}); /* it still works */
    close_party(&p);
}

/* One member passes a larger count than the others. */
static void counts_that_differ_are_named(void **state)
{
    const struct call few = {ALL_REDUCE, 100, sum_of_floats}, many = {ALL_REDUCE, 120, sum_of_floats};
    ncclResult_t rc = ncclSuccess;
    void *request[3] = {NULL};
    struct party p;
    bool done;

    (void)state;
    open_party(&p, 3);
    for (int m = 0; m < 3 && !rc; m++) rc = ask(&p, m, m == 1 ? &many : &few, &request[m]);
    for (int m = 0; !rc; m = (m + 1) % 3) rc = collnet->test(request[m], &done);
    assert_int_equal(rc, ncclInvalidUsage);
    expect_in_error("do they agree on count and type?");
    close_party(&p);
}

/* Requests that need the lost member fail, and name it; finished ones stay done. */
static void a_member_that_is_lost(void **state)
{
    const struct call c = {ALL_REDUCE, 50000, sum_of_floats};
    struct party p;

    (void)state;
    for (int lost = 0; lost < 3; lost++) {
        char name[16];

        open_party(&p, 3);
        fill(&p, 5);
        run_and_check(&p, &c);
        leave(&p, lost);
        assert_int_equal(run(&p, &c), ncclRemoteError);
        snprintf(name, sizeof name, "rank %d", ranks[lost]);
        expect_in_error(name);
        for (int m = 0; m < 3; m++) {
            void *request = NULL;
            if (m == lost) continue;
            for (ncclResult_t rc = ncclSuccess; !rc;) {
                bool done = false;
                if (!request) rc = ask(&p, m, &c, &request);
                if (!rc && request) rc = collnet->test(request, &done);
                assert_false(done);
            }
            expect_in_error(name);
        }
        close_party(&p);
    }
}

/* Buffers are no longer accessed, and the others notice. */
static void cancel_ends_all(void **state)
{
    const struct call c = {ALL_REDUCE, 60000, sum_of_floats};
    ncclResult_t rc = ncclSuccess;
    void *request[3];
    struct party p;
    bool done;

    (void)state;
    open_party(&p, 3);
    for (int m = 0; m < 3; m++) assert_int_equal(ask(&p, m, &c, &request[m]), ncclSuccess);
    collnet->cancel(p.member[1].group);
    free(p.member[1].send);
    free(p.member[1].recv);
    p.member[1].send = p.member[1].recv = NULL;
    assert_int_not_equal(collnet->test(request[1], &done), ncclSuccess);
    while (!rc) rc = collnet->test(request[0], &done);
    assert_int_equal(rc, ncclRemoteError);
    expect_in_error("rank 11");
    close_party(&p);
}

static void who_does_not_come_is_waited_for_until_the_deadline(void **state)
{
    ncclResult_t rc;
    struct party p;

    (void)state;
    prepare(&p, 2, 200);
    do rc = connect_one(&p, 0);
    while (rc == ncclInProgress);
    assert_int_equal(rc, ncclRemoteError);
    expect_in_error("rank 11");
    close_party(&p);
}

static void it_can_be_given_up_at_any_time(void **state)
{
    struct party p;

    (void)state;
    for (int steps = 0; steps < 40; steps += 3) {
        prepare(&p, 3, kolo_test_hang_ms());
        for (int i = 0; i < steps; i++) connect_one(&p, i % 3);
        close_party(&p);
    }
}

/* ---- leaks ---- */

static int note_fds(void **state)
{
    static int fds;

    fds = count_fds();
    *state = &fds;
    return 0;
}

static int expect_no_more_fds(void **state)
{
    return count_fds() != *(int *)*state;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)
    const struct CMUnitTest tests[] = {
        T(every_size),
        T(every_type_and_operation),
        T(many_are_outstanding),
        T(there_is_room_for_so_many),
        T(what_it_cannot_do_is_refused),
        T(counts_that_differ_are_named),
        T(a_member_that_is_lost),
        T(cancel_ends_all),
        T(who_does_not_come_is_waited_for_until_the_deadline),
        T(it_can_be_given_up_at_any_time),
    };

    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    kl_error_quiet(1);
    if (collnet->init(&kl_net_socket)) return KOLO_TEST_SKIP;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
