/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped: many ranks in one thread, progressed in a changing order, in each other's buffers: by address, and as ranks of several processes,
 * who have to be told of allocations; what is declined, and what goes wrong; and a thread per rank, which a thread sanitizer can watch.
 */
#include "coll/zcopy/peer_direct.h"

#include "coll/shm/test_shm_exchange_calls.h"
#include "device/host/bulk_copy.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CALLS = 60 }; /* of random kind, for each number of ranks */

/* Calls that the kernel still obeys. */
static struct {
    _Atomic long reads, writes;
} kernel = {LONG_MAX, LONG_MAX};

static void obey(long reads, long writes)
{
    kl_store_relaxed(&kernel.reads, reads);
    kl_store_relaxed(&kernel.writes, writes);
}

static bool refuses(_Atomic long *left)
{
    if (kl_fetch_sub_acq_rel(left, 1) > 0) return false;
    errno = EPERM;
    return true;
}

/* In place of the system's. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
                         unsigned long nfrom, unsigned long flags)
{
    return refuses(&kernel.reads) ? -1 : syscall(SYS_process_vm_readv, pid, to, nto, from, nfrom, flags);
}

/* What is refused may have been done in part. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom, const struct iovec *to,
                          unsigned long nto, unsigned long flags)
{
    if (!refuses(&kernel.writes)) return syscall(SYS_process_vm_writev, pid, from, nfrom, to, nto, flags);
    memcpy(to->iov_base, from->iov_base, from->iov_len / 2);
    return -1;
}

static struct kl_peer_direct peer_direct[MAX_RANKS];
static struct kl_peer_direct_op ops[MAX_RANKS];
static bool processes; /* ranks behave as those of several, */
static bool readable;  /* who let others read their memory, and would like to */
static bool nt;        /* results use non-temporal stores */
static uint64_t mark[MAX_RANKS];

static void open_peer_direct(struct world *w, int n, size_t buffer, bool small_cache)
{
    open_world(w, n, buffer);
    nt = small_cache;
    for (int r = 0; r < n; r++) {
        peer_direct[r] = (struct kl_peer_direct){.mark = w->mark};
        kl_shm_exchange_init(&peer_direct[r].shm, n, r, oversubscribed);
        kl_shm_exchange_attach(&peer_direct[r].shm, w->memory, w->mark);
        assert_int_equal(kl_peer_buffers_init(&peer_direct[r].buffers, &kl_host_devices, n, r), ncclSuccess);
        peer_direct[r].scratch = zeroed(kl_cma_scratch_bytes(n));
        mark[r] = 1000 + (uint64_t)r;
    }
}

static void close_peer_direct(struct world *w)
{
    for (int r = 0; r < w->n; r++) kl_peer_buffers_fini(&peer_direct[r].buffers), free(peer_direct[r].scratch);
    close_world(w);
}

static void start(struct world *w, int rank, const struct kl_channel_work *share)
{
    struct kl_channel_work *s = &w->share[rank];

    *s = *share;
    s->exposed = true;
    s->processes = processes;
    s->mark = readable ? &mark[rank] : NULL;
    s->reads = readable;
    s->nt = nt;
    kl_peer_direct_start(&ops[rank], &peer_direct[rank], s);
}

static enum kl_progress progress(struct world *w, int rank, ncclResult_t *rc)
{
    (void)w;
    return kl_peer_direct_progress(&ops[rank], rc);
}

static const struct engine engine = {start, progress};

static void assert_declined(int n, bool declined)
{
    for (int r = 0; r < n; r++) assert_int_equal(ops[r].agreed <= KL_AGREED_REFUSED, declined);
}

/* ---- by address ---- */

static void every_collective_is_right(void **state)
{
    static struct world w;
    uint64_t seed = 1;

    (void)state;
    processes = false;
    for (int n = 2; n <= MAX_RANKS; n += n < 9 ? 1 : 11) {
        size_t buffer = n < 9 ? 1500000 : 40000;
        oversubscribed = n % 3 == 0;
        open_peer_direct(&w, n, buffer, n % 2);
        for (int i = 0; i < (n < 9 ? CALLS : CALLS / 3); i++) {
            struct call c = draw_call(&seed, n, buffer);
            run_call(&w, &engine, &c, &seed);
            assert_declined(n, false);
        }
        close_peer_direct(&w);
    }
    oversubscribed = false;
}

static void every_type_and_operator(void **state)
{
    static struct world w;
    uint64_t seed = 2;

    (void)state;
    processes = false;
    open_peer_direct(&w, 4, 80000, true);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int func = 0; func <= KL_FUNC_ALL_TO_ALL; func++) {
                struct call c = draw_call(&seed, 4, 20000);
                c.func = func, c.in_place = false, c.type = (ncclDataType_t)type, c.op = (ncclRedOp_t)op;
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 4), ncclSuccess);
                c.count = draw_count(&seed, 20000 / c.redop.elem_bytes);
                run_call(&w, &engine, &c, &seed);
            }
    close_peer_direct(&w);
}

static void nontemporal_copies_are_copies(void **state)
{
    static char from[700], to[700];
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t skip = draw(&seed, 70), at = draw(&seed, 70), bytes = draw(&seed, 500);
        for (size_t k = 0; k < sizeof from; k++) from[k] = (char)draw(&seed, 256);
        memset(to, 0x5a, sizeof to);
        kl_copy_nontemporal(to + at, from + skip, bytes, i % 2 ? from : NULL);
        kl_nontemporal_fence();
        assert_memory_equal(to + at, from + skip, bytes);
        for (size_t k = 0; k < sizeof to; k++)
            if (k < at || k >= at + bytes) assert_int_equal(to[k], 0x5a);
    }
}

/* ---- allocations that others are told of ---- */

static char *shareable(size_t bytes)
{
    void *memory;

    assert_int_equal(kl_host_devices.alloc(0, KL_MEMORY_SHAREABLE, bytes, &memory), ncclSuccess);
    return memory;
}

/* Buffers of the world in memory that can be mapped, from here on, instead of what they were. */
static void allocate(struct world *w, size_t buffer, char *own[2][MAX_RANKS])
{
    for (int r = 0; r < w->n; r++) {
        own[0][r] = w->send[r], own[1][r] = w->recv[r];
        w->send[r] = shareable(buffer + GUARD), w->recv[r] = shareable(buffer + GUARD);
    }
}

static void give_back(struct world *w, char *own[2][MAX_RANKS])
{
    for (int r = 0; r < w->n; r++) {
        assert_int_equal(kl_host_devices.free(w->send[r]), ncclSuccess);
        assert_int_equal(kl_host_devices.free(w->recv[r]), ncclSuccess);
        w->send[r] = own[0][r], w->recv[r] = own[1][r];
    }
}

static void processes_map_what_they_are_told_of(void **state)
{
    enum { BUFFER = 100000 };
    static struct world w;
    char *own[2][MAX_RANKS];
    uint64_t seed = 4;

    (void)state;
    processes = true;
    for (int n = 2; n <= 5; n++) {
        open_peer_direct(&w, n, BUFFER, false);
        allocate(&w, BUFFER, own);
        for (int i = 0; i < 120; i++) {
            struct call c = draw_call(&seed, n, BUFFER);
            int changed = (int)draw(&seed, (uint64_t)n);
            run_call(&w, &engine, &c, &seed);
            assert_declined(n, false);
            if (i % 3) continue; /* now and then one takes another buffer: more of them than the list has room for */
            assert_int_equal(kl_host_devices.free(w.send[changed]), ncclSuccess);
            w.send[changed] = shareable(BUFFER + GUARD + (size_t)i * 4096);
        }
        give_back(&w, own);
        close_peer_direct(&w);
    }
}

static bool was_announced(const struct kl_peer_buffers *buffers)
{
    for (int i = 0; i < buffers->nown; i++)
        if (!buffers->own[i].announced) return false;
    return buffers->nown > 0;
}

static void info_is_fresh_until_all_have_mapped_it(void **state)
{
    static struct world w;
    char *own[2][MAX_RANKS];
    struct call c = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 9000, .seed = 9};
    uint64_t seed = 5;

    (void)state;
    processes = true;
    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 3), ncclSuccess);
    open_peer_direct(&w, 3, 40000, false);
    allocate(&w, 40000, own);
    run_call(&w, &engine, &c, &seed);
    const uint64_t first = peer_direct[0].shm.round;
    for (int r = 0; r < 3; r++) assert_true(was_announced(&peer_direct[r].buffers));
    run_call(&w, &engine, &c, &seed);
    assert_int_equal(peer_direct[0].shm.round - first, 2); /* info, end */
    assert_int_equal(first, 4);                            /* with handles and verdicts between */
    give_back(&w, own);
    close_peer_direct(&w);
}

static void run_declined(struct world *w, const struct call *c, uint64_t *seed)
{
    static struct kl_channel_work shares[MAX_RANKS];

    start_all(w, c, shares);
    run_all(w, &engine, shares, seed);
    assert_declined(w->n, true);
    for (int r = 0; r < w->n; r++)
        for (size_t i = 0; i < result_bytes(c, w->n, r); i++) assert_int_equal(w->recv[r][i], 0x5a);
}

static void one_that_cannot_export_makes_all_decline(void **state)
{
    static struct world w;
    char *own[2][MAX_RANKS], *foreign, *was;
    struct call c = {.func = KL_FUNC_ALL_GATHER, .type = ncclFloat32, .count = 3000, .seed = 9};
    uint64_t seed = 6;

    (void)state;
    processes = true;
    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 3), ncclSuccess);
    open_peer_direct(&w, 3, 40000, false);
    allocate(&w, 40000, own);
    foreign = zeroed(40000);
    was = w.send[1];
    w.send[1] = foreign;
    run_declined(&w, &c, &seed);
    w.send[1] = was;
    run_call(&w, &engine, &c, &seed);
    assert_declined(3, false);
    free(foreign);
    give_back(&w, own);
    close_peer_direct(&w);
}

static void unmappable_memory_is_not_tried_again(void **state)
{
    static struct world w;
    static struct kl_channel_work shares[MAX_RANKS];
    char *own[2][MAX_RANKS];
    struct call c = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 3000, .seed = 9};
    uint64_t seed = 7;

    (void)state;
    processes = true;
    assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 3), ncclSuccess);
    open_peer_direct(&w, 3, 40000, false);
    allocate(&w, 40000, own);
    start_all(&w, &c, shares);
    for (int r = 0; r < 3; r++) start(&w, r, &shares[r]);
    for (int r = 0; r < 3; r++) assert_int_equal(progress(&w, r, &(ncclResult_t){ncclSuccess}), KL_MOVED); /* info */
    peer_direct[1].buffers.own[0].handle.bytes = 0; /* no such range */
    for (int i = 0; i < 6; i++)
        for (int r = 0; r < 3; r++) {
            ncclResult_t rc = ncclSuccess;
            if (ops[r].stage != KL_PEER_DIRECT_END) (void)progress(&w, r, &rc);
            assert_int_equal(rc, ncclSuccess);
        }
    assert_declined(3, true);
    run_declined(&w, &c, &seed);
    give_back(&w, own);
    close_peer_direct(&w);
}

/* ---- the kernel copies, which it does within a process as well ---- */

static bool kernel_copies(void)
{
    const struct kl_cma_process self = kl_cma_self(mark);

    return kl_cma_is_permitted(&self);
}

static void assert_read(int n)
{
    for (int r = 0; r < n; r++) assert_int_equal(ops[r].agreed, KL_AGREED_KERNEL);
}

/* With ordinary stores, or non-temporal ones. */
static void unmapped_memory_is_read(void **state)
{
    static struct world w;
    uint64_t seed = 8;

    (void)state;
    if (!kernel_copies()) skip();
    processes = readable = true;
    for (int n = 2; n <= 11; n += n < 6 ? 1 : 5) {
        const size_t buffer = 1500000;
        oversubscribed = n % 3 == 0;
        open_peer_direct(&w, n, buffer, n % 2);
        for (int i = 0; i < CALLS; i++) {
            struct call c = draw_call(&seed, n, buffer);
            run_call(&w, &engine, &c, &seed);
            assert_read(n);
        }
        for (int r = 0; r < n; r++) assert_true(peer_direct[r].proved);
        close_peer_direct(&w);
    }
    readable = oversubscribed = false;
}

static void every_type_and_operator_is_read(void **state)
{
    static struct world w;
    uint64_t seed = 9;

    (void)state;
    if (!kernel_copies()) skip();
    processes = readable = true;
    open_peer_direct(&w, 3, 80000, false);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++)
            for (int func = 0; func < KL_FUNC_ALL_TO_ALL; func++) {
                struct call c = draw_call(&seed, 3, 20000);
                c.func = func, c.in_place = false, c.type = (ncclDataType_t)type, c.op = (ncclRedOp_t)op;
                assert_int_equal(kl_redop_init(&c.redop, c.type, c.op, 3), ncclSuccess);
                c.count = draw_count(&seed, 20000 / c.redop.elem_bytes);
                run_call(&w, &engine, &c, &seed);
                assert_read(3);
            }
    close_peer_direct(&w);
    readable = false;
}

static void begin_three(struct world *w, struct call *c, struct kl_channel_work *shares)
{
    *c = (struct call){.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 20000, .seed = 9};
    processes = readable = true;
    assert_int_equal(kl_redop_init(&c->redop, c->type, c->op, 3), ncclSuccess);
    open_peer_direct(w, 3, 100000, false);
    start_all(w, c, shares);
    for (int r = 0; r < 3; r++) start(w, r, &shares[r]);
}

static void one_that_may_not_be_read_makes_all_decline(void **state)
{
    static struct world w;
    static struct kl_channel_work shares[MAX_RANKS];
    struct call c;
    uint64_t seed = 10;

    (void)state;
    begin_three(&w, &c, shares);
    for (int r = 0; r < 3; r++) assert_int_equal(progress(&w, r, &(ncclResult_t){ncclSuccess}), KL_MOVED); /* info */
    mark[1]++; /* as if it were in another process */
    for (int i = 0; i < 6; i++)
        for (int r = 0; r < 3; r++) {
            ncclResult_t rc = ncclSuccess;
            if (ops[r].stage != KL_PEER_DIRECT_END) (void)progress(&w, r, &rc);
            assert_int_equal(rc, ncclSuccess);
        }
    assert_declined(3, true);
    for (size_t i = 0; i < result_bytes(&c, 3, 0); i++) assert_int_equal(w.recv[0][i], 0x5a);
    readable = false; /* nobody lets others any more */
    run_declined(&w, &c, &seed);
    close_peer_direct(&w);
}

/* In the middle, of reads or writes or both: wherever that is, all find the same and have the results, also in place. */
static void what_the_kernel_refuses_in_the_middle_is_mended(void **state)
{
    static struct world w;
    uint64_t seed = 11;
    int mended = 0;

    (void)state;
    if (!kernel_copies()) skip();
    processes = readable = true;
    for (int n = 2; n <= 9; n = 2 * n - 1) {
        const size_t buffer = 800000;
        oversubscribed = n % 3 == 0;
        open_peer_direct(&w, n, buffer, n % 2);
        for (int r = 0; r < n; r++) peer_direct[r].proved = true;
        for (int i = 0; i < CALLS; i++) {
            struct call c = draw_call(&seed, n, buffer);
            obey(i % 3 == 1 ? LONG_MAX : (long)draw(&seed, (uint64_t)(4 * n)),
                 i % 3 == 2 ? LONG_MAX : (long)draw(&seed, (uint64_t)(4 * n)));
            run_call(&w, &engine, &c, &seed);
            for (int r = 1; r < n; r++) assert_int_equal(ops[r].agreed, ops[0].agreed);
            assert_int_not_equal(ops[0].agreed, KL_AGREED_STAGED);
            mended += ops[0].agreed == KL_AGREED_REPAIRED;
        }
        close_peer_direct(&w);
    }
    obey(LONG_MAX, LONG_MAX);
    readable = oversubscribed = false;
    assert_true(mended > CALLS);
}

/* Of one rank, whose memory the others do not reach any more. */
static void memory_that_is_out_of_reach_is_done_without(void **state)
{
    static struct world w;
    static struct kl_channel_work shares[MAX_RANKS];
    struct call c;
    bool done[3] = {false};

    (void)state;
    if (!kernel_copies()) skip();
    begin_three(&w, &c, shares);
    for (int r = 0; r < 3; r++) peer_direct[r].proved = true;
    for (int r = 0; r < 3; r++)
        (void)progress(&w, r, &(ncclResult_t){ncclSuccess}); /* info; the last one works already */
    mark[1]++;
    for (int i = 0; i < 10000 && !(done[0] && done[1] && done[2]); i++)
        for (int r = 0; r < 3; r++) {
            ncclResult_t rc = ncclSuccess;
            if (!done[r]) done[r] = progress(&w, r, &rc) == KL_DONE;
            assert_int_equal(rc, ncclSuccess);
        }
    for (int r = 0; r < 3; r++) {
        make_want(&c, &w, r);
        assert_true(done[r] && ops[r].agreed == KL_AGREED_REPAIRED);
        assert_memory_equal(w.recv[r], w.want, result_bytes(&c, 3, r));
    }
    assert_int_equal(kl_load_relaxed(&w.mark[0].touching), 0);
    readable = false;
    close_peer_direct(&w);
}

/* ---- what goes wrong ---- */

static void begin_all(struct world *w, struct call *c, uint64_t other)
{
    static struct kl_channel_work shares[MAX_RANKS];

    *c = (struct call){.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 300000, .seed = 9};
    processes = false;
    assert_int_equal(kl_redop_init(&c->redop, c->type, c->op, w->n), ncclSuccess);
    start_all(w, c, shares);
    shares[w->n - 1].signature += other;
    for (int r = 0; r < w->n; r++) start(w, r, &shares[r]);
}

static void another_call_is_refused_before_data_are_touched(void **state)
{
    static struct world w;
    struct call c;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_peer_direct(&w, 2, 1200000, false);
    begin_all(&w, &c, 1);
    assert_int_equal(progress(&w, 0, &rc), KL_MOVED);
    assert_int_equal(kl_peer_direct_blocked_on(&ops[0], false), 1);
    kl_error_quiet(1);
    assert_int_equal(progress(&w, 1, &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "rank 0 sent data of another call than rank 1"));
    kl_error_quiet(0);
    assert_int_equal(w.recv[0][0], 0x5a);
    close_peer_direct(&w);
}

static void revoked_arena_memory_is_not_touched(void **state)
{
    static struct world w;
    struct call c;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_peer_direct(&w, 2, 1200000, false);
    begin_all(&w, &c, 0);
    assert_int_equal(progress(&w, 0, &rc), KL_MOVED);
    kl_store_release(&w.mark[0].revoked, 1);
    kl_error_quiet(1);
    assert_int_equal(progress(&w, 1, &rc), KL_DONE);
    kl_error_quiet(0);
    assert_int_equal(rc, ncclRemoteError);
    assert_int_equal(w.recv[0][600000], 0x5a);
    assert_int_equal(kl_load_relaxed(&w.mark[1].touching), 0);
    close_peer_direct(&w);
}

static void a_departed_rank_is_named(void **state)
{
    static struct world w;
    struct call c;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    open_peer_direct(&w, 3, 1200000, false);
    begin_all(&w, &c, 0);
    assert_int_equal(progress(&w, 0, &rc), KL_MOVED);
    kl_store_release(&w.mark[1].left, 1);
    assert_int_equal(kl_peer_direct_blocked_on(&ops[0], true), 1);
    close_peer_direct(&w);
}

/* ---- a thread per rank ---- */

static void threads_agree(void **state)
{
    static struct world w;

    (void)state;
    processes = false;
    open_peer_direct(&w, THREADS, THREADS_BYTES, false);
    run_threads(&w, &engine);
    close_peer_direct(&w);
}

int main(void)
{
    const struct CMUnitTest one_thread[] = {
        cmocka_unit_test(every_collective_is_right),
        cmocka_unit_test(every_type_and_operator),
        cmocka_unit_test(nontemporal_copies_are_copies),
        cmocka_unit_test(processes_map_what_they_are_told_of),
        cmocka_unit_test(info_is_fresh_until_all_have_mapped_it),
        cmocka_unit_test(one_that_cannot_export_makes_all_decline),
        cmocka_unit_test(unmappable_memory_is_not_tried_again),
        cmocka_unit_test(unmapped_memory_is_read),
        cmocka_unit_test(every_type_and_operator_is_read),
        cmocka_unit_test(one_that_may_not_be_read_makes_all_decline),
        cmocka_unit_test(what_the_kernel_refuses_in_the_middle_is_mended),
        cmocka_unit_test(memory_that_is_out_of_reach_is_done_without),
        cmocka_unit_test(another_call_is_refused_before_data_are_touched),
        cmocka_unit_test(revoked_arena_memory_is_not_touched),
        cmocka_unit_test(a_departed_rank_is_named),
    };
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(threads_agree),
    };
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(one_thread, NULL, NULL);

    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
