/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every transport does, whatever it is made of: each one in kl_transports[], its two ends in every placement that it does
 * not refuse. A transport joins by being in the table, a behaviour by being in the list below.
 *
 * Both ends run in processes of their own, forked before any thread is started, or as two threads of one; they talk over a
 * socket pair, as ranks do through the bootstrap.
 *
 * Through a network each end has a fifo of its own, and moves it (`progress`): who waits for something pumps. What lies in the
 * fifo is over once it has been sent, so a sender drains before it leaves, as operations do.
 */
#include "transport/transport.h"

#include "base/clock.h"
#include "base/error.h"
#include "tests/kolo_test.h"
#include "transport/lines.h"
#include "transport/pool.h"
#include "transport/test_join.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 8, SLOT_BYTES = 16384, HANG_S = 60, EXIT_FINE = 0, EXIT_CANNOT = 77 };

static const struct kl_fifo_shape shape = {.nslots = SLOTS, .ll_bytes = KL_LINES_LL_BYTES, .slot_bytes = SLOT_BYTES};

/* ---- the two ends ---- */

/* An assertion for threads and children, where those of cmocka do not work. */
#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s (last error: %s)\n", __FILE__, __LINE__, doing, #condition,                 \
                    kl_error_text());                                                                                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static _Thread_local char doing[160];

struct end {
    bool sends;
    int sock; /* to the other end */
    struct kl_peer me, it;
    const struct kl_transport *transport;
    uint32_t index;
    bool messages;
    uint32_t number; /* of the connector */
    struct kl_common *common;
    struct kl_connector c;
};

static bool is_net(const struct end *e)
{
    return e->transport == &kl_transport_net;
}

static void tell(const struct end *e, const void *data, size_t bytes)
{
    must(send(e->sock, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

static void hear(const struct end *e, void *data, size_t bytes)
{
    must(recv(e->sock, data, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* Both have come here. */
static void meet(const struct end *e)
{
    char mine = 'm', its = 0;

    tell(e, &mine, 1);
    hear(e, &its, 1);
    must(its == 'm');
}

static void reset(struct end *e)
{
    e->c = (struct kl_connector){.transport = e->transport,
                                 .peer = e->sends,
                                 .sends = e->sends,
                                 .messages = e->messages,
                                 .shape = &shape,
                                 .number = e->number,
                                 .planned = -1,
                                 .common = e->common};
    if (!is_net(e) || e->common->net.net) return;
    e->common->net = (struct kl_net_home){.net = kl_nets[0], .rank = !e->sends};
    memset(e->common->net.secret.bytes, 42, sizeof e->common->net.secret.bytes);
}

/* The steps of transport.h, as the connections of a communicator do them. */
static void set_up(struct end *e)
{
    struct kl_card card = {.transport = e->index, .version = KL_CARD_VERSION};

    reset(e);
    if (e->sends) return;
    must(e->transport->setup(&e->c, &shape, &card) == ncclSuccess);
    tell(e, &card, sizeof card);
}

static struct kl_card hear_card(struct end *e)
{
    struct kl_card card;

    hear(e, &card, sizeof card);
    must(card.transport == e->index && card.version == KL_CARD_VERSION);
    return card;
}

/* Who moves its own end waits for no reply. */
static void settle_with(struct end *e, const struct kl_card *card)
{
    struct kl_card_reply reply = {.pool_bytes = 0};
    bool replies = !e->transport->progress;

    if (e->sends) {
        must(test_connect(&e->c, card, &reply) == ncclSuccess);
        if (replies) tell(e, &reply, sizeof reply);
    } else {
        if (replies) hear(e, &reply, sizeof reply);
        must(test_settle(&e->c, &reply) == ncclSuccess);
    }
    e->c.ready = true;
}

static void settle(struct end *e)
{
    struct kl_card card = e->sends ? hear_card(e) : (struct kl_card){.version = 0};

    settle_with(e, &card);
    meet(e);
}

static void join(struct end *e)
{
    set_up(e);
    settle(e);
}

/* Without a word to the other end: it may still be at work. */
static void let_go(struct end *e)
{
    kl_connector_free(&e->c);
    must(!e->c.transport);
    kl_connector_free(&e->c); /* again: nothing happens */
    kl_common_fini(e->common);
}

/* Move what this end has to move. */
static ncclResult_t try_to_pump(struct end *e)
{
    ncclResult_t rc = ncclSuccess;

    if (!e->transport->progress) return rc;
    must((e->transport->progress(&e->c, &rc) == KL_DONE) == (rc != ncclSuccess));
    return rc;
}

static void pump(struct end *e)
{
    must(try_to_pump(e) == ncclSuccess);
}

/* Until nothing that was sent depends on this end any more. */
static void drain(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);

    while (e->sends && e->c.ready && !kl_fifo_drained(&e->c.tx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
        sched_yield();
    }
}

static void part(struct end *e)
{
    drain(e);
    meet(e);
    let_go(e);
}

/* ---- steps ---- */

static unsigned char pattern(uint64_t step, size_t i)
{
    return (unsigned char)(step * 131 + i * 7 + i / 253);
}

static void fill(unsigned char *data, size_t bytes, uint64_t step)
{
    for (size_t i = 0; i < bytes; i++) data[i] = pattern(step, i);
}

static void expect_filled(const unsigned char *data, size_t bytes, uint64_t step)
{
    must(data != NULL);
    for (size_t i = 0; i < bytes; i++) must(data[i] == pattern(step, i));
}

static void wait_for_room(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);

    while (!kl_fifo_can_send(&e->c.tx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
        sched_yield();
    }
}

static void wait_for_step(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);

    while (!kl_fifo_ready(&e->c.rx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
        sched_yield();
    }
}

static void put(struct end *e, uint64_t step, size_t bytes)
{
    wait_for_room(e);
    fill(kl_fifo_reserve(&e->c.tx, bytes), bytes, step);
    kl_fifo_publish(&e->c.tx, bytes, step % 2);
    pump(e);
}

static void take(struct end *e, uint64_t step, size_t bytes)
{
    size_t got;
    bool more;

    wait_for_step(e);
    const unsigned char *data = kl_fifo_open(&e->c.rx, &got, &more);
    must(got == bytes && more == (step % 2));
    expect_filled(data, bytes, step);
    kl_fifo_release(&e->c.rx);
}

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
    static unsigned char scratch[2][KL_LINES_BYTES]; /* for each end: they may be threads */
    unsigned char *own = scratch[e->sends];
    uint64_t step = 0;

    join(e);
    for (size_t bytes = 0; bytes <= KL_LINES_BYTES; bytes += bytes < 400 || bytes > KL_LINES_BYTES - 100 ? 1 : 53) {
        uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);
        if (e->sends) {
            wait_for_room(e);
            fill(own, bytes, step);
            kl_lines_publish(&e->c.tx, own, bytes, step % 2 && kl_lines_wide_works());
            pump(e);
        } else {
            size_t got;
            while (!kl_lines_ready(&e->c.rx)) {
                must(!kl_deadline_passed(deadline));
                pump(e);
                sched_yield();
            }
            const unsigned char *data = kl_lines_open(&e->c.rx, own, &got);
            must(got == bytes);
            expect_filled(data, bytes, step);
            kl_fifo_release(&e->c.rx);
        }
        step++;
    }
    part(e);
}

/* Messages of ranks that share no memory have a pool, once the receiver has said so. */
static void pooled_steps_arrive_whole(struct end *e)
{
    join(e);
    if (e->sends) {
        struct kl_pool *pool = e->c.tx.pool;
        must(!pool || e->messages);
        must(!pool || kl_fifo_pool_usable(&e->c.tx)); /* both ends have met */
        must(pool || e->c.tx.shares_memory || !e->messages);
        for (uint64_t step = 0; pool && step < 300; step++) {
            size_t bytes = step * 2654435761u % (kl_pool_slot_bytes(pool) + 1);
            uint64_t offset;
            unsigned char *slot;
            wait_for_room(e);
            while (!(slot = kl_pool_take(pool, &e->c.tx, &offset))) sched_yield();
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
 * Where an address means the same at both ends, memory is lent and comes back; elsewhere an address is refused. A network carries
 * what was lent to where the receiver wants it.
 */
static void lent_memory_is_read_or_refused(struct end *e)
{
    static unsigned char lent[1 << 20], wanted[1 << 20];
    size_t got;
    bool more;

    join(e);
    for (uint64_t step = 0; step < 20; step++) {
        if (e->sends) {
            fill(lent, sizeof lent, step);
            kl_fifo_publish_direct(&e->c.tx, lent, sizeof lent, false);
            drain(e);
            continue;
        }
        must(e->c.rx.places == is_net(e));
        if (e->c.rx.places) kl_fifo_want(&e->c.rx, wanted, sizeof wanted);
        wait_for_step(e);
        const unsigned char *data = kl_fifo_open(&e->c.rx, &got, &more);
        must(!data == !(e->c.rx.shares_memory || e->c.rx.places));
        must(!data || data == (e->c.rx.places ? wanted : lent));
        if (data) expect_filled(data, got, step);
        kl_fifo_release(&e->c.rx);
    }
    part(e);
}

/* The receiver comes to know that nothing more comes, and where a network tells why, whose end it is. */
static void expect_sender_gone(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);

    while (!kl_fifo_sender_gone(&e->c.rx)) {
        must(!kl_deadline_passed(deadline));
        pump(e);
    }
    if (!e->transport->loss) return;
    must(e->transport->loss(&e->c) && strstr(e->transport->loss(&e->c), "rank 0"));
    pump(e); /* it stays so */
}

/* Sending goes on until the network says that there is no receiver, and whom it misses. */
static void expect_lost(struct end *e)
{
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);
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

/* What was published counts although its sender has left; then nobody waits. */
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

/* The mark of a receiver that leaves is for the same memory: through a network its end of the connection tells. */
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
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);
    uint64_t step = 1;
    while (!kl_fifo_receiver_gone(&e->c.tx, true)) {
        must(!kl_deadline_passed(deadline));
        if (kl_fifo_can_send(&e->c.tx)) put(e, step++, 100); /* while there is room, its going hinders nobody */
    }
    must(step == SLOTS + 1);
    must(!kl_fifo_receiver_gone(&e->c.tx, false)); /* nothing was lent */
    let_go(e);
}

/*
 * Through a network the whole connection ends: of a failed communicator nothing is expected any more. What was lent may be gone
 * at once, also what the receiver wanted to have somewhere, and both ends may go on being looked at.
 */
static void revoke_network(struct end *e)
{
    enum { LENT = 1 << 25 }; /* more than sockets hold */
    unsigned char *lent = mmap(NULL, LENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(lent != MAP_FAILED);
    if (e->sends) {
        put(e, 0, 50);
        kl_fifo_publish_direct(&e->c.tx, lent, LENT, false);
        pump(e);
    } else {
        take(e, 0, 50);
    }
    meet(e);
    if (!e->sends) {
        kl_fifo_want(&e->c.rx, lent, LENT);
        pump(e); /* what is here */
    }
    meet(e);
    kl_connector_revoke(&e->c);
    must(!munmap(lent, LENT));
    kl_connector_revoke(&e->c);
    for (int i = 0; i < 100; i++) pump(e);
    must(e->sends ? !kl_fifo_drained(&e->c.tx) : !kl_fifo_ready(&e->c.rx));
    meet(e);
    let_go(e);
}

/* What was lent and not read is taken back; what was copied stays. */
static void a_sender_revokes(struct end *e)
{
    static unsigned char lent[8192];
    size_t got;
    bool more;

    join(e);
    if (is_net(e)) {
        revoke_network(e);
        return;
    }
    if (e->sends) {
        put(e, 0, 50);
        kl_fifo_publish_direct(&e->c.tx, lent, sizeof lent, false);
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

/* Either end first; the other one's memory is there until it lets go itself, and what was sent to it. */
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

    set_up(e); /* set up, and never connected; the card leads nowhere any more */
    struct kl_card card = e->sends ? hear_card(e) : (struct kl_card){.version = 0};
    if (!e->sends) {
        kl_connector_leave(&e->c);
        let_go(e);
    }
    meet(e);
    if (e->sends) {
        struct kl_card_reply reply = {.pool_bytes = 0};
        must(test_connect(&e->c, &card, &reply) != ncclSuccess);
        must(*kl_error_text());
        kl_connector_revoke(&e->c);
        kl_connector_leave(&e->c);
        let_go(e);
    }
    meet(e);

    set_up(e); /* connected, and never settled: through a network that is a connection in the making */
    if (e->sends) {
        struct kl_card_reply reply = {.pool_bytes = 0};
        card = hear_card(e);
        ncclResult_t rc = is_net(e) ? e->transport->connect(&e->c, &card, kl_deadline_in_ms(TEST_JOIN_MS), &reply)
                                    : test_connect(&e->c, &card, &reply);
        must(rc == (is_net(e) ? ncclInProgress : ncclSuccess));
        kl_connector_revoke(&e->c);
        kl_connector_leave(&e->c);
        let_go(e);
    } else if (is_net(e)) {
        must(e->transport->settle(&e->c, kl_deadline_in_ms(TEST_JOIN_MS), NULL) == ncclInProgress);
        kl_connector_revoke(&e->c);
    }
    part(e);
}

/* A card out of which nothing can be made is an error; the same connector can then be connected with a sound one. */
static void cards_that_lie_are_refused(struct end *e)
{
    static const struct {
        const char *what;
        uint64_t bytes, offset; /* added to what is true */
        unsigned char garble;
    } lies[] = {
        {"more memory than there is", 1 << 20, 0, 0}, {"all memory", UINT64_MAX / 2, 0, 0},
        {"a place at the end", 0, 1u << 30, 0},       {"a place between lines", 0, 8, 0},
        {"a place without a fifo", 0, 4096, 0},       {"a secret that is none", 0, 0, 0x55},
    };

    FOR_EACH_CASE(lie, lies)
    {
        if (is_net(e) && !lie->garble) continue; /* its card tells an address, and nothing of memory */
        set_up(e);
        if (e->sends) {
            struct kl_card card = hear_card(e), wrong = card;
            struct kl_card_reply reply = {.pool_bytes = 0};
            wrong.bytes += lie->bytes;
            wrong.offset += lie->offset;
            for (size_t i = 0; i < sizeof wrong.room; i++) wrong.room[i] ^= lie->garble;
            bool same = e->transport == &kl_transport_p2p && !lie->garble; /* the number says it all */
            ncclResult_t rc = test_connect(&e->c, &wrong, &reply);
            snprintf(doing, sizeof doing, "%s: a card that lies about %s", e->transport->name, lie->what);
            must(same ? rc == ncclSuccess : rc != ncclSuccess);
            kl_connector_free(&e->c);
            reset(e);
            settle_with(e, &card);
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
    {"lent memory is read or refused", lent_memory_is_read_or_refused},
    {"a sender leaves", a_sender_leaves},
    {"a receiver leaves", a_receiver_leaves},
    {"a sender revokes", a_sender_revokes},
    {"either end is freed first", either_end_is_freed_first},
    {"both ends are freed in any state", both_ends_are_freed_in_any_state},
    {"cards that lie are refused", cards_that_lie_are_refused},
    {"many stand side by side", many_stand_side_by_side},
};
enum { BEHAVIOURS = sizeof behaviours / sizeof behaviours[0] };

/* ---- what is left ---- */

struct holdings {
    int descriptors, segments;
};

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static int count_segments(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (f && fgets(line, sizeof line, f)) n += strstr(line, "memfd:kolo") != NULL;
    if (f) fclose(f);
    return n;
}

/* Private memory that can be written, not what is only reserved. */
static unsigned long private_bytes(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, to, sum = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx rw-p", &from, &to) == 2 && strstr(line, " rw-p ")) sum += to - from;
    if (f) fclose(f);
    return sum;
}

static struct holdings count_now(void)
{
    return (struct holdings){.descriptors = count_entries("/proc/self/fd"), .segments = count_segments()};
}

/* Counting takes descriptors, too: threads take turns. */
static struct holdings count_holdings(const struct end *e)
{
    struct holdings h;

    meet(e);
    if (e->sends) meet(e);
    h = count_now();
    if (!e->sends) meet(e);
    meet(e);
    return h;
}

/* The event loop closes what is its own a little later. */
static void expect_nothing_left(const struct end *e, const struct holdings *before)
{
    uint64_t deadline = kl_deadline_in_ms(HANG_S * 1000);

    if (e->sends) meet(e);
    for (;;) {
        struct holdings now = count_now();
        if (now.descriptors == before->descriptors && now.segments == before->segments) break;
        if (kl_deadline_passed(deadline))
            snprintf(doing + strlen(doing), 60, " (%d descriptors, %d segments before; %d, %d now)",
                     before->descriptors, before->segments, now.descriptors, now.segments);
        must(!kl_deadline_passed(deadline));
        sched_yield();
    }
    if (!e->sends) meet(e);
    meet(e);
}

/* ---- an end's life ---- */

static void describe(struct end *e, int rank, uint64_t process)
{
    struct stat st;

    e->me = (struct kl_peer){.rank = rank, .pid = getpid(), .host = 1, .process = process};
    snprintf(e->me.host_name, sizeof e->me.host_name, "%s", rank ? "here" : "there");
    must(!stat("/proc/self/ns/net", &st));
    e->me.memory = st.st_ino;
    tell(e, &e->me, sizeof e->me);
    hear(e, &e->it, sizeof e->it);
}

/* Made and freed many times: what each one leaves behind would add up. Threads and their stacks come and go meanwhile. */
static void expect_no_growth(struct end *e)
{
    const int times = is_net(e) ? 100 : 400; /* what is there of a network end is as large as a fifo: it shows sooner */
    unsigned long before = 0;

    for (int i = 0; i < times; i++) {
        if (i == 10) before = private_bytes();
        join(e);
        part(e);
        meet(e);
    }
    must(private_bytes() < before + (unsigned long)times / 2 * kl_fifo_size(&shape));
}

static void behave(struct end *e, const struct holdings *before)
{
    for (int i = 0; i < BEHAVIOURS; i++) {
        snprintf(doing, sizeof doing, "%s%s, %s, %s", e->transport->name, e->messages ? ", messages" : "",
                 e->sends ? "sender" : "receiver", behaviours[i].name);
        meet(e);
        behaviours[i].run(e);
        meet(e);
        expect_nothing_left(e, before);
    }
    expect_no_growth(e);
}

/* Both ends ask the same questions and get the same answers. */
static bool agree_on_use(struct end *e)
{
    struct kl_pair_facts facts = {.a = &e->me, .b = &e->it, .network = true},
                         swapped = {.a = &e->it, .b = &e->me, .network = true};
    uint32_t why = e->transport->refuses(&facts), its = 0;

    must(e->transport->refuses(&swapped) == why);
    tell(e, &why, sizeof why);
    hear(e, &its, sizeof its);
    must(why == its);
    return why == KL_REFUSAL_NONE;
}

/* Somebody must take the pair, or the refusal names both ranks and every reason. */
static void choose(struct end *e, bool mappable)
{
    struct kl_pair_facts facts = {.a = &e->me, .b = &e->it};
    const struct kl_transport *chosen = NULL;
    uint32_t index = 99;
    ncclResult_t rc = kl_transport_choose(&facts, &chosen, &index);

    snprintf(doing, sizeof doing, "choosing");
    must(chosen == kl_transport_first(&facts));
    if (mappable) {
        must(rc == ncclSuccess && kl_transports[index] == chosen);
        return;
    }
    must(rc == ncclSystemError && !chosen);
    must(strstr(kl_error_text(), "rank 0 (there)") && strstr(kl_error_text(), "rank 1 (here)"));
    for (int i = 0; kl_transports[i]; i++) must(strstr(kl_error_text(), kl_transports[i]->name));
    must(strstr(kl_error_text(), "network namespace"));
}

/* A transport that refused a pair and is used all the same fails, and nothing is left. */
static void fail_to_connect(struct end *e, const struct holdings *before)
{
    set_up(e);
    if (e->sends) {
        struct kl_card card = hear_card(e);
        struct kl_card_reply reply = {.pool_bytes = 0};
        must(test_connect(&e->c, &card, &reply) == ncclRemoteError);
    }
    part(e);
    meet(e);
    expect_nothing_left(e, before);
}

/*
 * A network refuses nobody: whom it cannot reach it tells when it connects. Here the sender has an interface of its own kind only,
 * and nothing leads from there to where the receiver listens.
 */
static void fail_to_reach(struct end *e, const struct holdings *before)
{
    set_up(e);
    struct kl_card card = e->sends ? hear_card(e) : (struct kl_card){.version = 0};
    struct kl_card_reply reply = {.pool_bytes = 0};
    uint64_t deadline = kl_deadline_in_ms(300);
    ncclResult_t rc;

    do
        rc = e->sends ? e->transport->connect(&e->c, &card, deadline, &reply)
                      : e->transport->settle(&e->c, deadline, NULL);
    while (rc == ncclInProgress);
    must(rc == ncclRemoteError && strstr(kl_error_text(), e->sends ? "rank 1" : "rank 0"));
    kl_connector_revoke(&e->c);
    part(e);
    meet(e);
    expect_nothing_left(e, before);
}

struct placement {
    const char *name;
    bool threads;
    int (*prepare)(void); /* the sender, before it begins; EXIT_CANNOT: not allowed here */
    bool mappable;        /* their memory */
};

static int used[8]; /* by transport: in how many placements; the receiver's */

static void live(struct end *e, const struct placement *p)
{
    struct kl_common common = {.pool = NULL};

    e->common = &common;
    kl_error_quiet(1);
    must(kl_nets[0]->init() == ncclSuccess);
    const struct holdings before = count_holdings(e);
    choose(e, p->mappable);
    for (e->index = 0; kl_transports[e->index]; e->index++) {
        e->transport = kl_transports[e->index];
        snprintf(doing, sizeof doing, "%s", e->transport->name);
        bool usable = agree_on_use(e);
        if (usable && is_net(e) && !p->mappable) {
            fail_to_reach(e, &before);
        } else if (usable) {
            used[e->index]++;
            for (e->messages = false;; e->messages = true) {
                behave(e, &before);
                if (e->messages) break;
            }
        } else if (!p->mappable && e->transport == &kl_transport_shm) {
            fail_to_connect(e, &before);
        }
    }
}

static void *live_as_thread(void *arg)
{
    struct end *e = arg;
    static const struct placement threads = {.threads = true, .mappable = true};

    describe(e, !e->sends, 77);
    live(e, &threads);
    return NULL;
}

/* ---- placements ---- */

static void make_sockets(int sock[2])
{
    struct timeval hang = {.tv_sec = HANG_S};

    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
    for (int i = 0; i < 2; i++) must(!setsockopt(sock[i], SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof hang));
}

/* Two threads of a child. */
static int run_threads(void)
{
    static struct end ends[2];
    int sock[2];
    pthread_t thread;

    make_sockets(sock);
    ends[0] = (struct end){.sock = sock[0]};
    ends[1] = (struct end){.sock = sock[1], .sends = true};
    must(!pthread_create(&thread, NULL, live_as_thread, &ends[1]));
    live_as_thread(&ends[0]);
    pthread_join(thread, NULL);
    return EXIT_FINE;
}

static int run_end(const struct placement *p, int sock, bool sends)
{
    static struct end e;
    char ready = p->prepare && sends ? (char)p->prepare() : EXIT_FINE, its = 0;

    e = (struct end){.sock = sock, .sends = sends};
    tell(&e, &ready, 1);
    hear(&e, &its, 1);
    if (ready || its) return ready ? ready : its;
    describe(&e, !sends, sends ? 1 : 2);
    live(&e, p);
    return EXIT_FINE;
}

/* A child that crashes shall do so, and not go on with the next test, as cmocka would have it. */
static pid_t fork_child(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    fflush(NULL);
    pid_t pid = fork();

    if (!pid) FOR_EACH_CASE(number, signals) signal(*number, SIG_DFL);
    return pid;
}

static pid_t start(const struct placement *p, int sock[2], bool sends)
{
    pid_t pid = fork_child();

    if (pid) return pid;
    if (p->threads) _exit(run_threads());
    close(sock[!sends]);
    _exit(run_end(p, sock[sends], sends));
}

static int status_of(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void run_placement(const struct placement *p)
{
    int sock[2];

    make_sockets(sock);
    pid_t receiver = start(p, sock, false), sender = p->threads ? 0 : start(p, sock, true);
    close(sock[0]);
    close(sock[1]);
    int got = status_of(receiver), its = sender ? status_of(sender) : EXIT_FINE;
    if (got == EXIT_CANNOT || its == EXIT_CANNOT) {
        print_message("%s: not permitted here\n", p->name);
        skip();
    }
    if (got || its) fail_msg("%s: the receiver ended with %d, the sender with %d", p->name, got, its);
}

static int enter_user_namespace(void)
{
    return unshare(CLONE_NEWUSER) ? EXIT_CANNOT : EXIT_FINE;
}

/* As `unshare -r`: root there, whoever it is here. */
static int enter_user_namespace_as_root(void)
{
    char map[32];
    int n = snprintf(map, sizeof map, "0 %u 1", (unsigned)geteuid());

    if (unshare(CLONE_NEWUSER)) return EXIT_CANNOT;
    int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    bool mapped = fd >= 0 && write(fd, map, (size_t)n) == n;
    if (fd >= 0) close(fd);
    return mapped ? EXIT_FINE : EXIT_CANNOT;
}

/* With its own loopback interface, so that there is a network. */
static int enter_network_namespace(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) return EXIT_CANNOT;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo);
    if (fd >= 0) close(fd);
    return up ? EXIT_FINE : EXIT_CANNOT;
}

static void threads_of_a_process(void **state)
{
    (void)state;
    run_placement(&(struct placement){.name = "threads", .threads = true, .mappable = true});
}

static void processes(void **state)
{
    (void)state;
    run_placement(&(struct placement){.name = "processes", .mappable = true});
}

static void processes_of_two_user_namespaces(void **state)
{
    (void)state;
    run_placement(
        &(struct placement){.name = "another user namespace", .prepare = enter_user_namespace, .mappable = true});
}

static void root_of_another_user_namespace(void **state)
{
    (void)state;
    run_placement(&(struct placement){
        .name = "root of another user namespace", .prepare = enter_user_namespace_as_root, .mappable = true});
}

/* Descriptors cannot be passed: nothing connects them, and the refusal says whom and why. */
static void processes_of_two_network_namespaces(void **state)
{
    (void)state;
    run_placement(&(struct placement){.name = "another network namespace", .prepare = enter_network_namespace});
}

/* ---- an end that dies ---- */

static void die_or_survive(int sock, const struct kl_transport *t, uint32_t index, bool sends, bool dies)
{
    struct kl_common common = {.pool = NULL};
    struct end e = {.sock = sock, .sends = sends, .transport = t, .index = index, .messages = true, .common = &common};

    kl_error_quiet(1);
    must(kl_nets[0]->init() == ncclSuccess);
    snprintf(doing, sizeof doing, "%s: the %s dies", t->name, sends == dies ? "sender" : "receiver");
    join(&e);
    if (sends) put(&e, 7, 5000);
    drain(&e);
    meet(&e);
    if (dies) kill(getpid(), SIGKILL);
    char end;
    must(recv(sock, &end, 1, 0) == 0); /* it is dead */
    if (!sends)
        take(&e, 7, 5000);
    else if (is_net(&e))
        expect_lost(&e);
    else
        for (uint64_t step = 0; step + 1 < SLOTS; step++) put(&e, step, SLOT_BYTES);
    if (!sends && is_net(&e)) expect_sender_gone(&e);
    kl_connector_revoke(&e.c);
    kl_connector_leave(&e.c);
    let_go(&e);
    _exit(EXIT_FINE);
}

/* What it published is there, what it would have read can be written, and everything can be freed. */
static void an_end_that_dies_takes_nothing_along(void **state)
{
    (void)state;
    for (uint32_t i = 0; kl_transports[i]; i++)
        for (int sender_dies = 0; sender_dies < 2; sender_dies++) {
            pid_t pid[2];
            int sock[2];
            if (kl_transports[i] == &kl_transport_p2p) continue; /* both in one process */
            make_sockets(sock);
            for (int sends = 0; sends < 2; sends++) {
                pid[sends] = fork_child();
                if (pid[sends]) continue;
                close(sock[!sends]);
                die_or_survive(sock[sends], kl_transports[i], i, sends, sends == sender_dies);
            }
            close(sock[0]);
            close(sock[1]);
            assert_int_equal(status_of(pid[sender_dies]), 1000 + SIGKILL);
            assert_int_equal(status_of(pid[!sender_dies]), EXIT_FINE);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_a_process),
        cmocka_unit_test(processes),
        cmocka_unit_test(processes_of_two_user_namespaces),
        cmocka_unit_test(root_of_another_user_namespace),
        cmocka_unit_test(processes_of_two_network_namespaces),
        cmocka_unit_test(an_end_that_dies_takes_nothing_along),
    };

    setenv("NCCL_SOCKET_RETRY_CNT", "2", 1); /* whoever is not there does not come later */
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
