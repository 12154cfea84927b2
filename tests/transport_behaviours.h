/* SPDX-License-Identifier: Apache-2.0 */
/**
 * transport_behaviours.h - for transport_test: the behaviours of every transport, seen from one end. A behaviour joins
 * by being in the list at the end. Behaviours that do not apply to a transport say so where they are left out.
 */
#ifndef KOLO_TRANSPORT_BEHAVIOURS_H
#define KOLO_TRANSPORT_BEHAVIOURS_H

#include "tests/hang.h"
#include "tests/kolo_test.h"
#include "tests/transport_ends.h"
#include "transport/pool.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- behaviours ---- */

/* Every size around every limit of a step, through every slot. */
static void steps_arrive_whole(struct end *e)
{
    static const size_t sizes[] = {
        0, 1, 8, 63, 64, 65, 103, 104, 105, 127, 128, 129, 4095, 4096, 4097, SLOT_BYTES - 1, SLOT_BYTES};
    uint64_t step = 0;

    join(e);
    for (int round = 0; round < 2 * SLOTS + 1; round++) FOR_EACH_CASE(bytes, sizes)
        {
            if (e->sends)
                put(e, step, *bytes);
            else
                take(e, step, *bytes);
            step++;
        }
    part(e);
}

static void many_steps_keep_their_order(struct end *e)
{
    join(e);
    for (uint64_t step = 0; step < 5000; step++) {
        size_t bytes = step * 2654435761u % (step % 3 ? 200 : SLOT_BYTES + 1);
        if (e->sends)
            put(e, step, bytes);
        else
            take(e, step, bytes);
    }
    part(e);
}

/* LL and LL128. */
static void flagged_lines_arrive_whole(struct end *e)
{
    static unsigned char scratch[2][KL_LL_BYTES]; /* for each end: they may be threads */
    unsigned char *own = scratch[e->sends];
    uint64_t step = 0;

    join(e);
    for (size_t bytes = 0; bytes <= KL_LL_BYTES; bytes += bytes < 400 || bytes > KL_LL_BYTES - 100 ? 1 : 53) {
        uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
        if (e->sends) {
            wait_for_room(e);
            fill(own, bytes, step);
            kl_ll_publish(&e->c.tx, own, bytes, step % 2 && kl_ll_wide_works());
            pump(e);
        } else {
            size_t got;
            while (!kl_ll_ready(&e->c.rx)) {
                must(!kl_deadline_passed(deadline));
                pump(e);
                sched_yield();
            }
            const unsigned char *data = kl_ll_open(&e->c.rx, own, &got);
            must(got == bytes);
            expect_filled(data, bytes, step);
            kl_fifo_release(&e->c.rx);
        }
        step++;
    }
    part(e);
}

/* Messages of ranks that share no memory have a pool, once the receiver has announced it. */
static void pooled_steps_arrive_whole(struct end *e)
{
    join(e);
    if (e->sends) {
        struct kl_pool *pool = e->c.tx.pool;
        must(!pool || e->messages);
        must(!pool || kl_fifo_pool_usable(&e->c.tx)); /* both ends are connected */
        must(pool || e->c.tx.zcopy_from < SIZE_MAX || !e->messages);
        for (uint64_t step = 0; pool && step < 300; step++) {
            size_t bytes = step * 2654435761u % (kl_pool_slot_bytes(pool) + 1);
            uint64_t offset;
            unsigned char *slot;
            wait_for_room(e);
            while (!(slot = kl_pool_take(pool, &e->c.tx, bytes, &offset))) sched_yield();
            fill(slot, bytes, step);
            kl_fifo_publish_pooled(&e->c.tx, offset, bytes, step % 2);
        }
        size_t slot_bytes = pool ? kl_pool_slot_bytes(pool) : 0;
        tell(e, &slot_bytes, sizeof slot_bytes);
        part(e);
        return;
    }
    for (uint64_t step = 0; e->c.rx.pool && step < 300; step++) {
        size_t got;
        bool more;
        wait_for_step(e);
        const unsigned char *data = kl_fifo_open(&e->c.rx, &got, &more);
        expect_filled(data, got, step);
        kl_fifo_release(&e->c.rx);
    }
    size_t slot_bytes;
    hear(e, &slot_bytes, sizeof slot_bytes);
    must(slot_bytes <= e->c.rx.pool_bytes);
    part(e);
}

/*
 * Where an address means the same at both ends, memory is read in place and comes back; elsewhere an address is refused. A
 * network carries zero-copy memory to the receiver's buffer.
 */
static void direct_memory_is_read_or_refused(struct end *e)
{
    static unsigned char own[1 << 20], wanted[1 << 20];
    size_t got;
    bool more;

    join(e);
    for (uint64_t step = 0; step < 20; step++) {
        if (e->sends) {
            fill(own, sizeof own, step);
            kl_fifo_publish_direct(&e->c.tx, own, sizeof own, false);
            drain(e);
            continue;
        }
        must(e->c.rx.places == is_net(e));
        if (e->c.rx.places) kl_fifo_want(&e->c.rx, wanted, sizeof wanted);
        wait_for_step(e);
        const unsigned char *data = kl_fifo_open(&e->c.rx, &got, &more);
        must(!data == !(e->c.rx.shares_memory || e->c.rx.places));
        must(!data || data == (e->c.rx.places ? wanted : own));
        if (data) expect_filled(data, got, step);
        kl_fifo_release(&e->c.rx);
    }
    part(e);
}

/* The receiver learns that nothing more comes, and where a network reports the reason, whose end it is. */
static void expect_sender_gone(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());

    while (!kl_fifo_sender_gone(&e->c.rx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
    }
    if (!e->transport->loss) return;
    must(e->transport->loss(&e->c) && strstr(e->transport->loss(&e->c), "rank 0"));
    pump(e); /* it stays so */
}

/* Sending goes on until the network reports that there is no receiver, and its name. */
static void expect_lost(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclResult_t rc;

    while (!(rc = try_to_pump(e))) {
        must(!kl_deadline_passed(deadline));
        if (!kl_fifo_can_send(&e->c.tx)) continue;
        memset(kl_fifo_reserve(&e->c.tx, SLOT_BYTES), 5, SLOT_BYTES);
        kl_fifo_publish(&e->c.tx, SLOT_BYTES, false);
    }
    must(rc == ncclRemoteError && strstr(kl_error_text(), "rank 1"));
    must(try_to_pump(e) == ncclRemoteError);
}

/* Published data count although their sender has left; then no end waits. */
static void a_sender_leaves(struct end *e)
{
    join(e);
    if (e->sends) {
        for (uint64_t step = 0; step < 5; step++) put(e, step, 1000 * (size_t)step);
        drain(e);
        kl_connector_leave(&e->c);
        let_go(e);
        return;
    }
    for (uint64_t step = 0; step < 5; step++) {
        wait_for_step(e);
        must(!kl_fifo_sender_gone(&e->c.rx));
        take(e, step, 1000 * (size_t)step);
    }
    expect_sender_gone(e);
    let_go(e);
}

/* The mark of a receiver that leaves works for the same memory: through a network the end of the connection takes its
 * place. */
static void a_receiver_leaves(struct end *e)
{
    join(e);
    if (!e->sends) {
        take(e, 0, 100);
        kl_connector_leave(&e->c);
        let_go(e);
        return;
    }
    put(e, 0, 100);
    if (is_net(e)) {
        expect_lost(e);
        let_go(e);
        return;
    }
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    uint64_t step = 1;
    while (!kl_fifo_receiver_gone(&e->c.tx, e->c.tx.shape.nslots)) {
        must(!kl_deadline_passed(deadline));
        if (kl_fifo_can_send(&e->c.tx)) put(e, step++, 100); /* while there is room, its leaving hinders no one */
    }
    must(step == SLOTS + 1);
    must(!kl_fifo_receiver_gone(&e->c.tx, 0)); /* nothing was published */
    let_go(e);
}

/*
 * Through a network the whole connection ends: nothing is expected of a failed communicator any more. zero-copy memory may
 * be gone at once, also the receiver's buffer, and both ends may still be polled.
 */
static void revoke_network(struct end *e)
{
    enum { DIRECT = 1 << 25 }; /* more than sockets hold */
    unsigned char *own = mmap(NULL, DIRECT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(own != MAP_FAILED);
    if (e->sends) {
        put(e, 0, 50);
        kl_fifo_publish_direct(&e->c.tx, own, DIRECT, false);
        pump(e);
    } else {
        take(e, 0, 50);
    }
    meet(e);
    if (!e->sends) {
        kl_fifo_want(&e->c.rx, own, DIRECT);
        pump(e); /* the data that are here */
    }
    meet(e);
    kl_connector_revoke(&e->c);
    must(!munmap(own, DIRECT));
    kl_connector_revoke(&e->c);
    for (int i = 0; i < 100; i++) pump(e);
    must(e->sends ? !kl_fifo_drained(&e->c.tx) : !kl_fifo_ready(&e->c.rx));
    meet(e);
    let_go(e);
}

/* Memory that was published and not read is revoked; copied data stay. */
static void a_sender_revokes(struct end *e)
{
    static unsigned char own[8192];
    size_t got;
    bool more;

    join(e);
    if (is_net(e)) {
        revoke_network(e);
        return;
    }
    if (e->sends) {
        put(e, 0, 50);
        kl_fifo_publish_direct(&e->c.tx, own, sizeof own, false);
        put(e, 2, 5000);
        kl_connector_revoke(&e->c);
        kl_connector_revoke(&e->c);
        meet(e);
        part(e);
        return;
    }
    meet(e);
    kl_connector_revoke(&e->c); /* the receiver's: nothing to do */
    take(e, 0, 50);
    must(kl_fifo_ready(&e->c.rx) && kl_fifo_revoked(&e->c.rx));
    must(!kl_fifo_open(&e->c.rx, &got, &more));
    kl_fifo_release(&e->c.rx);
    take(e, 2, 5000);
    part(e);
}

/* Either end first; the other one's memory is there until it unmaps it itself, and so are the data sent to it. */
static void either_end_is_freed_first(struct end *e)
{
    for (int sender_first = 0; sender_first < 2; sender_first++) {
        join(e);
        if (e->sends) put(e, 7, 5000);
        drain(e);
        meet(e);
        bool first = e->sends == (bool)sender_first;
        if (first) let_go(e);
        meet(e);
        if (first) continue;
        if (!e->sends)
            take(e, 7, 5000);
        else if (is_net(e))
            expect_lost(e);
        else
            for (uint64_t step = 0; step + 1 < SLOTS; step++) put(e, step, SLOT_BYTES);
        let_go(e);
    }
}

/* After every step of the way, and after one that failed. */
static void both_ends_are_freed_in_any_state(struct end *e)
{
    reset(e); /* nothing done */
    kl_connector_revoke(&e->c);
    kl_connector_leave(&e->c);
    let_go(e);

    set_up(e); /* set up, and never connected; the connect info is invalid now */
    struct kl_connect_info info = e->sends ? receive_info(e) : (struct kl_connect_info){.version = 0};
    if (!e->sends) {
        kl_connector_leave(&e->c);
        let_go(e);
    }
    meet(e);
    if (e->sends) {
        struct kl_connect_reply reply = {.pool_bytes = 0};
        must(test_connect(&e->c, &info, &reply) != ncclSuccess);
        must(*kl_error_text());
        kl_connector_revoke(&e->c);
        kl_connector_leave(&e->c);
        let_go(e);
    }
    meet(e);

    set_up(e); /* connected, and never settled: through a network that is a connection in the making */
    if (e->sends) {
        struct kl_connect_reply reply = {.pool_bytes = 0};
        info = receive_info(e);
        ncclResult_t rc = is_net(e)
                              ? e->transport->connect(&e->c, &info, kl_deadline_in_ms(kolo_test_hang_ms()), &reply)
                              : test_connect(&e->c, &info, &reply);
        must(rc == (is_net(e) ? ncclInProgress : ncclSuccess));
        kl_connector_revoke(&e->c);
        kl_connector_leave(&e->c);
        let_go(e);
    } else if (is_net(e)) {
        must(e->transport->settle(&e->c, kl_deadline_in_ms(kolo_test_hang_ms()), NULL) == ncclInProgress);
        kl_connector_revoke(&e->c);
    }
    part(e);
}

/* Connect info out of which nothing can be made is an error; the same connector can then be connected with a sound one. */
static void cards_that_lie_are_refused(struct end *e)
{
    static const struct {
        const char *what;
        uint64_t bytes, offset; /* added to the true values */
        unsigned char garble;
    } lies[] = {
        {"more memory than there is", 1 << 20, 0, 0}, {"all memory", UINT64_MAX / 2, 0, 0},
        {"a place at the end", 0, 1u << 30, 0},       {"a place between lines", 0, 8, 0},
        {"a place without a fifo", 0, 4096, 0},       {"a secret that is none", 0, 0, 0x55},
    };

    FOR_EACH_CASE(lie, lies)
    {
        if (is_net(e) && !lie->garble) continue; /* its card has an address only, and no memory */
        set_up(e);
        if (e->sends) {
            struct kl_connect_info info = receive_info(e), wrong = info;
            struct kl_connect_reply reply = {.pool_bytes = 0};
            wrong.bytes += lie->bytes;
            wrong.offset += lie->offset;
            for (size_t i = 0; i < sizeof wrong.room; i++) wrong.room[i] ^= lie->garble;
            bool same = e->transport == &kl_transport_p2p && !lie->garble; /* the number alone decides */
            ncclResult_t rc = test_connect(&e->c, &wrong, &reply);
            snprintf(doing, sizeof doing, "%s: a card that lies about %s", e->transport->name, lie->what);
            must(same ? rc == ncclSuccess : rc != ncclSuccess);
            kl_connector_free(&e->c);
            reset(e);
            settle_with(e, &info);
            put(e, 1, 100);
        } else {
            settle_with(e, NULL);
            take(e, 1, 100);
        }
        part(e);
    }
}

/* Several at a time, freed in another order than they were made in. */
static void many_stand_side_by_side(struct end *e)
{
    enum { MANY = 70 };
    static struct end ends[2][MANY];
    struct end *own = ends[e->sends];

    for (int i = 0; i < MANY; i++) {
        own[i] = *e;
        own[i].number = (uint32_t)i;
        join(&own[i]);
    }
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 3; k++) {
            struct end *one = &own[(i * 37 + k) % MANY];
            if (e->sends)
                put(one, (uint64_t)i, 2000);
            else
                take(one, (uint64_t)i, 2000);
        }
    for (int i = 0; i < MANY; i++) drain(&own[i]);
    meet(e);
    for (int i = 0; i < MANY; i++) kl_connector_free(&own[i * 11 % MANY].c);
    kl_common_fini(e->common);
}

static const struct behaviour {
    const char *name;
    void (*run)(struct end *e);
} behaviours[] = {
    {"steps arrive whole", steps_arrive_whole},
    {"many steps keep their order", many_steps_keep_their_order},
    {"flagged lines arrive whole", flagged_lines_arrive_whole},
    {"pooled steps arrive whole", pooled_steps_arrive_whole},
    {"direct memory is read or refused", direct_memory_is_read_or_refused},
    {"a sender leaves", a_sender_leaves},
    {"a receiver leaves", a_receiver_leaves},
    {"a sender revokes", a_sender_revokes},
    {"either end is freed first", either_end_is_freed_first},
    {"both ends are freed in any state", both_ends_are_freed_in_any_state},
    {"cards that lie are refused", cards_that_lie_are_refused},
    {"many stand side by side", many_stand_side_by_side},
};
enum { BEHAVIOURS = sizeof behaviours / sizeof behaviours[0] };

#endif
