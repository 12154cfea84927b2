/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/message.h"

#include "base/error.h"
#include "coll/schedule/signature.h"
#include "device/host/bulk_copy.h"
#include "tests/kolo_test.h"
#include "transport/pool.h"
#include "transport/test_join.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOT_BYTES = 1024, STEPS = 4, MOST = 3 << 20 };

static const struct kl_transport *const transports[] = {&kl_transport_p2p, &kl_transport_shm};

/* The state of a sender and a receiver of messages; several links of a sender share its pool. */
struct link {
    struct kl_connector tx, rx;
};

static struct kl_common sender, receiver;
static struct kl_zcopy_offers sender_offers = {.zcopy.maps = true, .nranks = 2},
                              receiver_offers = {.zcopy.maps = true, .nranks = 2, .rank = 1};

static void make_link_of_slots(struct link *l, const struct kl_transport *t, size_t from, size_t slot)
{
    struct kl_fifo_shape shape = {.nslots = STEPS, .slot_bytes = slot};
    struct kl_connect_info info = {.version = KL_CONNECT_INFO_VERSION};
    struct kl_connect_reply reply = {.pool_bytes = 0};

    *l = (struct link){
        .tx = {.transport = t, .peer = 1, .sends = true, .messages = true, .zcopy_from = from, .common = &sender},
        .rx = {.transport = t, .messages = true, .common = &receiver}};
    assert_int_equal(t->setup(&l->rx, &shape, &info), ncclSuccess);
    assert_int_equal(test_connect(&l->tx, &info, &reply), ncclSuccess);
    assert_int_equal(test_settle(&l->rx, &reply), ncclSuccess);
    l->tx.ready = l->rx.ready = true;
    assert_int_equal(l->tx.tx.pool != NULL, t == &kl_transport_shm);
}

static void make_link_with_zcopy(struct link *l, const struct kl_transport *t, size_t from)
{
    make_link_of_slots(l, t, from, SLOT_BYTES);
}

static void make_link(struct link *l, const struct kl_transport *t)
{
    make_link_with_zcopy(l, t, 0);
}

static void free_link(struct link *l)
{
    kl_connector_free(&l->tx);
    kl_connector_free(&l->rx);
}

static int end_of_pools(void **state)
{
    (void)state;
    kl_zcopy_offers_fini(&sender_offers);
    kl_zcopy_offers_fini(&receiver_offers);
    kl_common_fini(&sender);
    kl_common_fini(&receiver);
    return 0;
}

/* Poll both sides in turn, until both are done, one has failed, or nothing moves; returns the receiver's result. */
static ncclResult_t transfer(struct link *l, char *from, size_t sent, char *to, size_t received)
{
    struct kl_message out = {.data = from, .bytes = sent, .signature = kl_message_signature(ncclInt8, sent)};
    struct kl_message in = {.data = to, .bytes = received};
    in.signature = kl_message_signature(ncclInt8, received);
    enum kl_progress s = KL_STALLED, r = KL_STALLED;
    ncclResult_t rc = ncclSuccess;

    while (s != KL_DONE || r != KL_DONE) {
        enum kl_progress s_got = s, r_got = r;
        if (s != KL_DONE) s_got = s = kl_message_send(&out, &l->tx, &sender_offers);
        if (r != KL_DONE) r_got = r = kl_message_recv(&in, &l->rx, &receiver_offers, &rc);
        if (rc) return rc;
        if (s_got == KL_STALLED && r_got == KL_STALLED) return ncclInProgress;
    }
    assert_int_equal(out.moved, sent);
    assert_int_equal(in.moved, received);
    return rc;
}

/* Around every limit: the step's line, a slot, an offer, a pool's slot, all of the pool, the largest direct step. */
static void messages_arrive_whole(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   104,
                                   105,
                                   SLOT_BYTES - 1,
                                   SLOT_BYTES,
                                   1025,
                                   2 * SLOT_BYTES,
                                   2 * SLOT_BYTES + 1,
                                   4095,
                                   4096,
                                   4097,
                                   65535,
                                   65536,
                                   65537,
                                   65536 * 4,
                                   65536 * 4 + 1025,
                                   1 << 20,
                                   (1 << 20) + 1,
                                   MOST};
    char *from = malloc(MOST), *to = malloc(MOST);

    (void)state;
    for (size_t i = 0; i < MOST; i++) from[i] = (char)(i * 7 + i / 251);
    FOR_EACH_CASE(t, transports)
    {
        struct link l;
        make_link(&l, *t);
        FOR_EACH_CASE(bytes, sizes)
        {
            memset(to, 0, MOST);
            assert_int_equal(transfer(&l, from, *bytes, to, *bytes), ncclSuccess);
            assert_memory_equal(from, to, *bytes);
            assert_true(*bytes == MOST || !to[*bytes]);
        }
        free_link(&l);
    }
    free(from);
    free(to);
}

/* Bytes of the smallest step of a message that a network carries. */
static size_t smallest_step(struct link *l, char *data, size_t bytes)
{
    struct kl_message out = {.data = data, .bytes = bytes};
    size_t least = bytes, moved = 0, step;
    bool more;

    while (kl_message_send(&out, &l->tx, &sender_offers) != KL_DONE) {
        if (!kl_fifo_ready(&l->rx.rx)) continue;
        assert_non_null(kl_fifo_open(&l->rx.rx, &step, &more));
        kl_fifo_release(&l->rx.rx);
        moved += step;
        least = step < least ? step : least;
    }
    assert_int_equal(moved, bytes);
    return least;
}

/* In place, and copied to slots as for another rank's NIC. */
static void steps_over_a_network_are_not_small(void **state)
{
    static const size_t sizes[] = {4096, 4097, 5119, 5120, 8193, 1 << 20, (1 << 20) + 1, (1 << 20) + 1024, MOST - 1};
    char *data = calloc(1, MOST);

    (void)state;
    for (int copied = 0; copied < 2; copied++) {
        struct link l;
        make_link_of_slots(&l, &kl_transport_p2p, 0, 4096);
        l.tx.tx.zcopy_all = true;
        if (copied) l.tx.tx.zcopy_from = SIZE_MAX;
        FOR_EACH_CASE(bytes, sizes) assert_true(smallest_step(&l, data, *bytes) >= KL_FIFO_STEP_LEAST);
        assert_int_equal(smallest_step(&l, data, 100), 100);
        free_link(&l);
    }
    free(data);
}

/* A message of `bytes`, at once; false: not now. */
static bool send_whole(struct link *l, const char *from, size_t bytes)
{
    return kl_message_try_send(&l->tx, from, bytes, kl_message_signature(ncclInt8, bytes));
}

static bool recv_whole(struct link *l, char *to, size_t bytes)
{
    return kl_message_try_recv(&l->rx, to, bytes, kl_message_signature(ncclInt8, bytes));
}

static void two_slots_are_sent_at_once_or_not_at_all(void **state)
{
    enum { TWO = 2 * SLOT_BYTES };
    char from[TWO + 1], to[TWO + 1];
    struct link l;

    (void)state;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i * 7 + i / 251);
    make_link(&l, &kl_transport_shm);
    assert_false(send_whole(&l, from, TWO + 1));
    for (size_t bytes = SLOT_BYTES; bytes <= TWO; bytes += SLOT_BYTES / 2) {
        memset(to, 0, sizeof to);
        assert_true(send_whole(&l, from, bytes));
        assert_true(recv_whole(&l, to, bytes));
        assert_memory_equal(from, to, bytes);
        assert_int_equal(to[bytes], 0);
    }
    assert_true(send_whole(&l, from, SLOT_BYTES));
    assert_true(send_whole(&l, from, TWO));
    assert_false(send_whole(&l, from, TWO)); /* one slot is left */
    assert_true(recv_whole(&l, to, SLOT_BYTES));
    assert_true(send_whole(&l, from, TWO));
    for (int i = 0; i < 2; i++) assert_true(recv_whole(&l, to, TWO));
    assert_false(recv_whole(&l, to, TWO));
    free_link(&l);
}

static void half_a_message_is_not_taken(void **state)
{
    enum { TWO = 2 * SLOT_BYTES };
    char from[TWO], to[TWO] = {0};
    struct link l;

    (void)state;
    memset(from, 1, sizeof from);
    make_link(&l, &kl_transport_shm);
    l.tx.tx.signature = kl_message_signature(ncclInt8, TWO);
    memcpy(kl_fifo_reserve(&l.tx.tx, SLOT_BYTES), from, SLOT_BYTES);
    kl_fifo_publish(&l.tx.tx, SLOT_BYTES, true);
    assert_false(recv_whole(&l, to, TWO));
    assert_int_equal(to[0], 0);
    memcpy(kl_fifo_reserve(&l.tx.tx, SLOT_BYTES), from, SLOT_BYTES);
    kl_fifo_publish(&l.tx.tx, SLOT_BYTES, false);
    assert_false(recv_whole(&l, to, SLOT_BYTES)); /* of another size */
    assert_false(recv_whole(&l, to, TWO - 1));
    assert_true(recv_whole(&l, to, TWO));
    assert_memory_equal(from, to, TWO);
    free_link(&l);
}

static void different_sizes_are_an_error(void **state)
{
    static const size_t sizes[][2] = {{0, 1},          {1, 0},          {10, 20},     {20, 10},     {1024, 1025},
                                      {3000, 2048},    {2048, 3000},    {9000, 5000}, {70000, 200}, {200, 70000},
                                      {131072, 65536}, {65536, 131072}, {MOST, 4096}, {4096, MOST}, {MOST, MOST - 1}};
    char *from = calloc(1, MOST), *to = calloc(1, MOST);

    (void)state;
    FOR_EACH_CASE(t, transports)
    FOR_EACH_CASE(pair, sizes)
    {
        struct link l;
        make_link(&l, *t);
        assert_int_equal(transfer(&l, from, (*pair)[0], to, (*pair)[1]), ncclInvalidUsage);
        assert_non_null(strstr(kl_error_text(), "counts or types differ"));
        kl_connector_revoke(&l.tx); /* does not wait for a reader that has refused */
        free_link(&l);
    }
    free(from);
    free(to);
}

/* A copied message leaves the buffer to the sender: it may be changed before the copy has been read. */
static void a_send_that_is_done_has_let_go_of_its_buffer(void **state)
{
    static const size_t sizes[] = {1, 104, 1000, 3000, 4 * SLOT_BYTES, 4 * KL_POOL_SLOT_BYTES};
    char *from = malloc(4 * KL_POOL_SLOT_BYTES), *to = malloc(4 * KL_POOL_SLOT_BYTES);

    (void)state;
    FOR_EACH_CASE(t, transports)
    FOR_EACH_CASE(bytes, sizes)
    {
        struct kl_message out = {.data = from, .bytes = *bytes}, in = {.data = to, .bytes = *bytes};
        ncclResult_t rc = ncclSuccess;
        struct link l;
        make_link(&l, *t);
        memset(from, 5, *bytes);
        memset(to, 0, *bytes);
        enum kl_progress got = kl_message_send(&out, &l.tx, &sender_offers);
        if (got == KL_DONE) memset(from, 6, *bytes);
        assert_true(got == KL_DONE ||
                    (*t == &kl_transport_p2p && *bytes >= 4096)); /* read in place: until that is done */
        while (kl_message_recv(&in, &l.rx, &receiver_offers, &rc) != KL_DONE)
            kl_message_send(&out, &l.tx, &sender_offers);
        assert_int_equal(rc, ncclSuccess);
        for (size_t i = 0; i < *bytes; i++) assert_int_equal(to[i], 5);
        free_link(&l);
    }
    free(from);
    free(to);
}

/* Where the receiver may have to wait for a CPU, the sender continues at once. */
static void small_messages_are_copied(void **state)
{
    char from[4 * SLOT_BYTES] = {0};

    (void)state;
    for (int more = 0; more <= 1; more++) {
        struct kl_message out = {.data = from, .bytes = sizeof from};
        struct link l;
        make_link_with_zcopy(&l, &kl_transport_p2p, sizeof from + (size_t)more);
        assert_int_equal(kl_message_send(&out, &l.tx, &sender_offers), more ? KL_DONE : KL_MOVED);
        kl_connector_revoke(&l.tx);
        free_link(&l);
    }
}

static void nt_stores_arrive(void **state)
{
    char *from = malloc(MOST), *to = calloc(1, MOST);

    (void)state;
    for (size_t i = 0; i < MOST; i++) from[i] = (char)(i * 13 % 127);
    receiver_offers.nt = true;
    FOR_EACH_CASE(t, transports)
    {
        struct link l;
        make_link(&l, *t);
        memset(to, 0, MOST);
        assert_int_equal(transfer(&l, from, MOST - 1, to + 1, MOST - 1), ncclSuccess);
        assert_memory_equal(from, to + 1, MOST - 1);
        free_link(&l);
    }
    receiver_offers.nt = false;
    free(from);
    free(to);
}

/* However much has arrived: between two pieces other receivers are served. */
static void a_poll_receives_a_piece_of_a_large_message(void **state)
{
    enum { BYTES = 3 << 20 };
    char *from = malloc(BYTES), *to = calloc(1, BYTES);
    struct kl_message out = {.data = from, .bytes = BYTES}, in = {.data = to, .bytes = BYTES};
    ncclResult_t rc = ncclSuccess;
    struct link l;
    int polls = 1;

    (void)state;
    memset(from, 9, BYTES);
    make_link(&l, &kl_transport_p2p);
    assert_int_equal(kl_message_send(&out, &l.tx, &sender_offers), KL_MOVED);
    for (; kl_message_recv(&in, &l.rx, &receiver_offers, &rc) != KL_DONE; polls++)
        kl_message_send(&out, &l.tx, &sender_offers);
    assert_int_equal(rc, ncclSuccess);
    assert_true(polls >= 3);
    assert_memory_equal(from, to, BYTES);
    free_link(&l);
    free(from);
    free(to);
}

/* Many to one another at once: more than the pool has slots for. None waits for another, and no slot has two owners. */
static void an_empty_pool_blocks_no_message(void **state)
{
    enum { LINKS = 40, BYTES = 5 * KL_POOL_SLOT_BYTES + 77 };
    static struct link l[LINKS];
    struct kl_message out[LINKS], in[LINKS];
    char *from[LINKS], *to[LINKS];
    ncclResult_t rc = ncclSuccess;
    int left = LINKS;

    (void)state;
    for (int i = 0; i < LINKS; i++) {
        make_link(&l[i], &kl_transport_shm);
        from[i] = malloc(BYTES);
        to[i] = calloc(1, BYTES);
        memset(from[i], i + 1, BYTES);
        out[i] = (struct kl_message){.data = from[i], .bytes = BYTES};
        in[i] = (struct kl_message){.data = to[i], .bytes = BYTES};
        kl_message_send(&out[i], &l[i].tx, &sender_offers); /* the first ones take all slots */
        assert_true(out[i].moved > 0);
    }
    for (int i = LINKS - 1; i >= 0; i--) { /* the last ones are received while the first wait */
        enum kl_progress got = KL_STALLED;
        while (got != KL_DONE) {
            kl_message_send(&out[i], &l[i].tx, &sender_offers);
            got = kl_message_recv(&in[i], &l[i].rx, &receiver_offers, &rc);
            assert_int_equal(rc, ncclSuccess);
            assert_int_not_equal(got, KL_STALLED);
        }
        for (int k = 0; k < BYTES; k++) assert_int_equal(to[i][k], i + 1);
        left--;
    }
    assert_int_equal(left, 0);
    for (int i = 0; i < LINKS; i++) {
        free_link(&l[i]);
        free(from[i]);
        free(to[i]);
    }
}

static void a_revoked_message_is_not_read(void **state)
{
    char from[8192] = {0}, to[8192];
    struct kl_message out = {.data = from, .bytes = sizeof from}, in = {.data = to, .bytes = sizeof to};
    ncclResult_t rc = ncclSuccess;
    struct link l;

    (void)state;
    make_link(&l, &kl_transport_p2p);
    assert_int_equal(kl_message_send(&out, &l.tx, &sender_offers), KL_MOVED); /* not yet read */
    assert_int_equal(kl_message_send(&out, &l.tx, &sender_offers), KL_STALLED);
    kl_connector_revoke(&l.tx);
    for (int i = 0; i < 3; i++)
        assert_int_equal(kl_message_recv(&in, &l.rx, &receiver_offers, &rc), KL_STALLED); /* to get the reason */
    assert_int_equal(rc, ncclSuccess);
    assert_int_equal(in.moved, 0);
    free_link(&l);
}

/* ---- between processes, in memory that can be mapped ---- */

enum { OFFERED = (9 << 20) + 5 };

static char *shareable(size_t bytes)
{
    void *memory;

    assert_int_equal(kl_host_devices.alloc(0, KL_MEMORY_SHAREABLE, bytes, &memory), ncclSuccess);
    return memory;
}

/* A sender's memory, its message, and the receiver. */
struct offered_pair {
    struct link l;
    char *from, *to;
    struct kl_message out, in;
};

static void begin_mapped(struct offered_pair *p)
{
    *p = (struct offered_pair){.from = shareable(OFFERED), .to = calloc(1, OFFERED + 1)};
    make_link(&p->l, &kl_transport_shm);
    for (size_t i = 0; i < OFFERED; i++) p->from[i] = (char)(i * 7 + i / 251);
    p->out = (struct kl_message){.data = p->from, .bytes = OFFERED};
    p->in = (struct kl_message){.data = p->to, .bytes = OFFERED};
}

static void end_pair(struct offered_pair *p)
{
    free_link(&p->l);
    assert_int_equal(kl_host_devices.free(p->from), ncclSuccess);
    free(p->to);
    kl_zcopy_offers_fini(&sender_offers);
    kl_zcopy_offers_fini(&receiver_offers);
    sender_offers.zcopy = (struct kl_zcopy_config){.maps = true};
    sender_offers.reads = false;
    sender_offers.select = NULL;
}

static struct kl_select kernel_table; /* a table that says so */

/* The same, in memory that the receiver does not map. */
static void begin_read(struct offered_pair *p)
{
    begin_mapped(p);
    kl_select_make(&kernel_table,
                   &(struct kl_select_facts){.nranks = 2, .processes = true, .kernel = true, .kernel_always = true});
    sender_offers.select = &kernel_table;
    sender_offers.zcopy = (struct kl_zcopy_config){.reads = true, .process = 77};
    kl_zcopy_offers_begin(&sender_offers, OFFERED, 1, 1);
}

static void (*const begin_either[])(struct offered_pair *) = {begin_mapped, begin_read};

static enum kl_progress receive_some(struct offered_pair *p)
{
    ncclResult_t rc = ncclSuccess;
    enum kl_progress got = kl_message_recv(&p->in, &p->l.rx, &receiver_offers, &rc);

    assert_int_equal(rc, ncclSuccess);
    return got;
}

static void receive_all(struct offered_pair *p)
{
    while (receive_some(p) != KL_DONE) kl_message_send(&p->out, &p->l.tx, &sender_offers);
    while (kl_message_send(&p->out, &p->l.tx, &sender_offers) != KL_DONE) continue;
    assert_memory_equal(p->from, p->to, OFFERED);
    assert_int_equal(p->to[OFFERED], 0);
}

static void mapped_memory_is_copied_once(void **state)
{
    struct offered_pair p;

    (void)state;
    begin_mapped(&p);
    assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
    assert_int_equal(p.out.offered, OFFERED);
    for (int i = 0; i < 3; i++) assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_STALLED);
    receive_all(&p);
    assert_true(p.out.accepted);
    end_pair(&p);
}

static void other_memory_is_not_offered(void **state)
{
    struct offered_pair p;

    (void)state;
    begin_mapped(&p);
    p.out.data = malloc(OFFERED);
    memcpy(p.out.data, p.from, OFFERED);
    receive_all(&p);
    assert_false(p.out.accepted);
    free(p.out.data);
    p.out = (struct kl_message){.data = p.from, .bytes = OFFERED};
    p.in = (struct kl_message){.data = p.to, .bytes = OFFERED};
    sender_offers.zcopy.maps = false;
    receive_all(&p);
    sender_offers.zcopy.maps = true;
    assert_false(p.out.accepted);
    end_pair(&p);
}

/* Memory that its sender seems to have freed in the meantime. */
static void lose_offered_memory(struct offered_pair *p)
{
    struct kl_range_export_handle *exported = (void *)((char *)(uintptr_t)kl_fifo_payload(&p->l.rx.rx) + 16);

    memset(exported->handle, 0xff, sizeof exported->handle);
}

/* After so many refusals in a row the receiver is not asked any more. */
static void unmappable_memory_is_sent_otherwise(void **state)
{
    (void)state;
    for (int lost = KL_ZCOPY_REFUSALS - 1; lost <= KL_ZCOPY_REFUSALS; lost++) {
        struct offered_pair p;
        begin_mapped(&p);
        for (int i = 0; i < lost + 2; i++) {
            const bool asks = i < KL_ZCOPY_REFUSALS || lost < KL_ZCOPY_REFUSALS;
            memset(p.to, 0, OFFERED);
            p.out = (struct kl_message){.data = p.from, .bytes = OFFERED};
            p.in = (struct kl_message){.data = p.to, .bytes = OFFERED};
            assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
            assert_int_equal(p.out.offered != 0, asks);
            if (i < lost) lose_offered_memory(&p);
            receive_all(&p);
            assert_int_equal(p.out.accepted, asks && i >= lost);
        }
        end_pair(&p);
    }
}

static void offered_memory_can_be_revoked_at_any_time(void **state)
{
    (void)state;
    FOR_EACH_CASE(begin, begin_either)
    for (int copied = 0; copied < 2; copied++) {
        struct offered_pair p;
        (*begin)(&p);
        assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
        if (copied) assert_int_equal(receive_some(&p), KL_MOVED); /* a piece of it */
        kl_connector_revoke(&p.l.tx);                             /* does not wait */
        for (int i = 0; i < 3; i++) assert_int_equal(receive_some(&p), KL_STALLED);
        assert_false(p.in.ended);
        end_pair(&p);
    }
}

/* ---- in any memory ---- */

static bool kernel_copies(const char *test)
{
    const uint64_t mark = 1;
    const struct kl_cma_process self = kl_cma_self(&mark);
    struct kl_cma_cache seen = {0};
    uint64_t copy;
    const bool can = kl_cma_read(&self, &seen, &copy, (uint64_t)(uintptr_t)&mark, sizeof copy);

    if (!can) printf("skipped %s: process_vm_readv is not allowed here\n", test);
    return can;
}

static void unmappable_memory_is_read_by_the_kernel(void **state)
{
    struct offered_pair p;

    (void)state;
    if (!kernel_copies(__func__)) return;
    begin_read(&p);
    assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
    assert_int_equal(p.out.offered, OFFERED);
    receive_all(&p);
    assert_true(p.out.accepted);
    end_pair(&p);
}

/* The peer seems to be another process, last seen too long ago. */
static void change_lender(const struct offered_pair *p)
{
    sender_offers.zcopy.process++;
    if (receiver_offers.peers) receiver_offers.peers[p->l.rx.peer].seen.at = 0;
}

/* Before anything was read, or later. */
static void unreadable_memory_is_staged(void **state)
{
    (void)state;
    if (!kernel_copies(__func__)) return;
    for (int pieces = 0; pieces < 3; pieces++) {
        struct offered_pair p;
        begin_read(&p);
        assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
        for (int i = 0; i < pieces; i++) assert_int_equal(receive_some(&p), KL_MOVED);
        change_lender(&p);
        assert_int_equal(receive_some(&p), KL_MOVED);
        assert_int_equal(p.in.moved + p.in.offered, 0);
        receive_all(&p);
        assert_false(p.out.accepted);
        end_pair(&p);
    }
}

static void a_send_that_need_not_wait_is_complete_before_its_receive(void **state)
{
    enum { BYTES = STEPS * KL_POOL_SLOT_BYTES }; /* capacity of this link */
    struct offered_pair p;

    (void)state;
    begin_read(&p);
    p.out.bytes = p.in.bytes = BYTES;
    kl_zcopy_offers_begin(&sender_offers, BYTES, 1, 0);
    assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_DONE);
    while (receive_some(&p) != KL_DONE) continue;
    assert_memory_equal(p.from, p.to, BYTES);
    end_pair(&p);
}

static void a_receiver_that_left_is_not_waited_for(void **state)
{
    struct offered_pair p;

    (void)state;
    begin_mapped(&p);
    assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
    assert_false(kl_message_waits_for_departed(&p.out, &p.l.tx));
    kl_connector_leave(&p.l.rx);
    assert_true(kl_message_waits_for_departed(&p.out, &p.l.tx));
    end_pair(&p);
}

static void an_offer_of_another_size_is_refused(void **state)
{
    struct offered_pair p;
    ncclResult_t rc = ncclSuccess;

    (void)state;
    begin_mapped(&p);
    p.in.bytes--;
    assert_int_equal(kl_message_send(&p.out, &p.l.tx, &sender_offers), KL_MOVED);
    assert_int_equal(kl_message_recv(&p.in, &p.l.rx, &receiver_offers, &rc), KL_DONE);
    assert_int_equal(rc, ncclInvalidUsage);
    end_pair(&p);
}

/* ---- a rank that leaves ---- */

static void messages_sent_before_leaving_arrive(void **state)
{
    static const size_t sizes[] = {0, 104, 4000, 4 * SLOT_BYTES - 1};
    char from[4 * SLOT_BYTES] = "sent", to[4 * SLOT_BYTES];

    (void)state;
    FOR_EACH_CASE(t, transports)
    FOR_EACH_CASE(bytes, sizes)
    {
        struct kl_message out = {.data = from, .bytes = *bytes}, in = {.data = to, .bytes = *bytes};
        struct kl_message next = {.data = to, .bytes = 8};
        ncclResult_t rc = ncclSuccess;
        struct link l;
        make_link(&l, *t);
        assert_int_equal(kl_message_send(&out, &l.tx, &sender_offers), KL_DONE);
        kl_connector_leave(&l.tx);
        kl_connector_free(&l.tx);
        assert_false(kl_message_waits_for_departed(&in, &l.rx));
        assert_int_equal(kl_message_recv(&in, &l.rx, &receiver_offers, &rc), KL_DONE);
        assert_int_equal(rc, ncclSuccess);
        assert_memory_equal(from, to, *bytes);
        assert_true(kl_message_waits_for_departed(&next, &l.rx));
        free_link(&l);
    }
}

static void a_message_that_nobody_will_take_is_known(void **state)
{
    char *from = calloc(1, MOST);

    (void)state;
    FOR_EACH_CASE(t, transports)
    {
        struct kl_message out = {.data = from, .bytes = MOST};
        struct link l;
        make_link(&l, *t);
        kl_message_send(&out, &l.tx, &sender_offers);
        assert_false(kl_message_waits_for_departed(&out, &l.tx));
        kl_connector_leave(&l.rx);
        assert_true(kl_message_waits_for_departed(&out, &l.tx));
        kl_connector_revoke(&l.tx);
        free_link(&l);
    }
    free(from);
}

/* ---- two threads ---- */

enum { MESSAGES = 400 };

/* The fifo is mapped here twice; a thread sanitizer does not see that both maps are the same memory, which orders the
 * accesses to zero-copy memory. */
#ifdef __SANITIZE_THREAD__
#define OFFERS false
#else
#define OFFERS true
#endif

static size_t bytes_of(int i)
{
    static const size_t most[] = {105, 2000, 20000, 300000};

    return (size_t)i * 2654435761u % most[i % 4];
}

static void *send_all(void *arg)
{
    struct link *l = arg;
    unsigned char *data = (unsigned char *)shareable(300000);

    for (int i = 0; i < MESSAGES; i++) {
        struct kl_message out = {.data = (char *)data, .bytes = bytes_of(i)};
        memset(data, i, bytes_of(i));
        while (kl_message_send(&out, &l->tx, &sender_offers) != KL_DONE) sched_yield();
    }
    assert_int_equal(kl_host_devices.free(data), ncclSuccess);
    return NULL;
}

static void messages_between_threads_keep_their_order(void **state)
{
    unsigned char *data = malloc(300000);

    (void)state;
    sender_offers.zcopy.maps = OFFERS;
    FOR_EACH_CASE(t, transports)
    {
        pthread_t thread;
        struct link l;
        make_link(&l, *t);
        assert_int_equal(pthread_create(&thread, NULL, send_all, &l), 0);
        for (int i = 0; i < MESSAGES; i++) {
            struct kl_message in = {.data = (char *)data, .bytes = bytes_of(i)};
            ncclResult_t rc = ncclSuccess;
            while (kl_message_recv(&in, &l.rx, &receiver_offers, &rc) != KL_DONE) sched_yield();
            assert_int_equal(rc, ncclSuccess);
            for (size_t k = 0; k < bytes_of(i); k++) assert_int_equal(data[k], (unsigned char)i);
        }
        pthread_join(thread, NULL);
        free_link(&l);
    }
    sender_offers.zcopy.maps = true;
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_whole),
        cmocka_unit_test(steps_over_a_network_are_not_small),
        cmocka_unit_test(two_slots_are_sent_at_once_or_not_at_all),
        cmocka_unit_test(half_a_message_is_not_taken),
        cmocka_unit_test(different_sizes_are_an_error),
        cmocka_unit_test(a_send_that_is_done_has_let_go_of_its_buffer),
        cmocka_unit_test(small_messages_are_copied),
        cmocka_unit_test(nt_stores_arrive),
        cmocka_unit_test(a_poll_receives_a_piece_of_a_large_message),
        cmocka_unit_test(an_empty_pool_blocks_no_message),
        cmocka_unit_test(a_revoked_message_is_not_read),
        cmocka_unit_test(mapped_memory_is_copied_once),
        cmocka_unit_test(other_memory_is_not_offered),
        cmocka_unit_test(unmappable_memory_is_sent_otherwise),
        cmocka_unit_test(offered_memory_can_be_revoked_at_any_time),
        cmocka_unit_test(unmappable_memory_is_read_by_the_kernel),
        cmocka_unit_test(unreadable_memory_is_staged),
        cmocka_unit_test(a_send_that_need_not_wait_is_complete_before_its_receive),
        cmocka_unit_test(a_receiver_that_left_is_not_waited_for),
        cmocka_unit_test(an_offer_of_another_size_is_refused),
        cmocka_unit_test(messages_sent_before_leaving_arrive),
        cmocka_unit_test(a_message_that_nobody_will_take_is_known),
        cmocka_unit_test(messages_between_threads_keep_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, end_of_pools);
}
