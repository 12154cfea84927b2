/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose ranks are threads of this process: all successful uses, and failures to join. */
#include "bootstrap/bootstrap.h"

#include "base/error.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/inbox.h"
#include "bootstrap/test_jobs.h"
#include "bootstrap/root.h"
#include "bootstrap/state.h"
#include "os/netif.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static const int sizes[] = {1, 2, 3, 5, 8, 17};

/* ---- exchanges ---- */

static void all_gather_puts_records_in_order(void **state)
{
    (void)state;
    FOR_EACH_CASE(n, sizes) run_job(*n, gather_and_check);
}

static void messages_find_their_tags(void **state)
{
    (void)state;
    FOR_EACH_CASE(n, sizes) run_job(*n, talk_to_all);
}

static void many_in_order(struct rank *me, struct kl_bootstrap *b)
{
    int peer = 1 - me->config.rank, got;

    for (int i = 0; i < 1000; i++) must(kl_bootstrap_send(b, peer, 7, &i, sizeof i) == ncclSuccess);
    for (int i = 0; i < 1000; i++) {
        must(kl_bootstrap_recv(b, peer, 7, &got, sizeof got) == ncclSuccess);
        must(got == i);
    }
}

static void messages_of_one_tag_arrive_in_order(void **state)
{
    (void)state;
    run_job(2, many_in_order);
}

/* Both send first: the largest message does not fit into the sockets' buffers. */
static void swap_all_sizes(struct rank *me, struct kl_bootstrap *b)
{
    static const size_t bytes[] = {0, 1, 65537, KL_FRAME_MAX};
    int peer = 1 - me->config.rank;

    FOR_EACH_CASE(n, bytes)
    {
        unsigned char *out = malloc(*n + 1), *in = calloc(1, *n + 1);
        for (size_t i = 0; i < *n; i++) out[i] = (unsigned char)(i * 7 + i / 251 + (size_t)me->config.rank);
        must(kl_bootstrap_send(b, peer, 1, out, *n) == ncclSuccess);
        must(kl_bootstrap_recv(b, peer, 1, in, *n) == ncclSuccess);
        for (size_t i = 0; i < *n; i++)
            if (in[i] != (unsigned char)(i * 7 + i / 251 + (size_t)peer)) must(!"every byte");
        free(out);
        free(in);
    }
}

static void messages_have_any_size(void **state)
{
    (void)state;
    run_job(2, swap_all_sizes);
}

/* The records are longer than one message may be. */
static void gather_much(struct rank *me, struct kl_bootstrap *b)
{
    size_t bytes = KL_FRAME_MAX / 2 + 1;
    unsigned char *all = calloc(5, bytes);

    memset(all + (size_t)me->config.rank * bytes, 'A' + me->config.rank, bytes);
    must(kl_bootstrap_allgather(b, all, bytes) == ncclSuccess);
    for (size_t r = 0; r < 5; r++)
        for (size_t i = 0; i < bytes; i += 4093) must(all[r * bytes + i] == 'A' + r);
    free(all);
}

static void records_may_be_larger_than_a_message(void **state)
{
    (void)state;
    run_job(5, gather_much);
}

static void send_wrong_sizes(struct rank *me, struct kl_bootstrap *b)
{
    int value[2] = {1, 2}, got[2] = {7, 7};

    kl_error_quiet(1);
    if (me->config.rank == 0) {
        must(kl_bootstrap_send(b, 1, 1, value, 8) == ncclSuccess);
        must(kl_bootstrap_send(b, 1, 1, value, 4) == ncclSuccess);
        must(kl_bootstrap_send(b, 2, 1, value, 4) == ncclInvalidArgument);
        must(kl_bootstrap_send(b, -1, 1, value, 4) == ncclInvalidArgument);
        must(kl_bootstrap_send(b, 1, 1, value, KL_FRAME_MAX + 1) == ncclInvalidArgument);
        must(kl_bootstrap_recv(b, 2, 1, value, 4) == ncclInvalidArgument);
    } else {
        must(kl_bootstrap_recv(b, 0, 1, got, 4) == ncclInternalError);
        must(strstr(kl_error_text(), "expected a message of 4 bytes from rank 0"));
        must(strstr(kl_error_text(), "got 8"));
        must(got[0] == 7);
        must(kl_bootstrap_recv(b, 0, 1, got, 4) == ncclSuccess); /* the next message is intact */
        must(got[0] == 1);
    }
    must(kl_bootstrap_barrier(b) == ncclSuccess);
}

static void a_wrong_size_is_an_error_with_both_sizes(void **state)
{
    (void)state;
    run_job(2, send_wrong_sizes);
}

/* ---- a full inbox ---- */

enum { FLOOD = 8 }; /* messages of KL_FRAME_MAX: twice the limit of an inbox */

static void await_pause(struct kl_bootstrap *b, int links)
{
    for (int paused = 0; paused < links; sched_yield()) {
        pthread_mutex_lock(&b->lock);
        paused = b->npaused;
        must(b->inbox_bytes <= KL_INBOX_BYTES + 2 * KL_FRAME_MAX);
        pthread_mutex_unlock(&b->lock);
    }
}

/* Except for the first messages of the barrier that follows. */
static void expect_empty_inbox(struct kl_bootstrap *b)
{
    pthread_mutex_lock(&b->lock);
    must(b->npaused == 0);
    must(b->inbox_bytes < 1024);
    pthread_mutex_unlock(&b->lock);
}

static void flood(struct rank *me, struct kl_bootstrap *b)
{
    char *much = calloc(1, KL_FRAME_MAX), last = 'x';

    if (me->config.rank == 0) {
        for (int i = 0; i < FLOOD; i++) {
            much[0] = (char)i;
            must(kl_bootstrap_send(b, 1, 1, much, KL_FRAME_MAX) == ncclSuccess);
        }
        must(kl_bootstrap_send(b, 1, 2, &last, 1) == ncclSuccess);
    } else {
        await_pause(b, 1);
        must(kl_bootstrap_recv(b, 0, 2, &last, 1) == ncclSuccess); /* behind all of them */
        must(last == 'x');
        for (int i = 0; i < FLOOD; i++) {
            must(kl_bootstrap_recv(b, 0, 1, much, KL_FRAME_MAX) == ncclSuccess);
            must(much[0] == i);
        }
        expect_empty_inbox(b);
    }
    must(kl_bootstrap_barrier(b) == ncclSuccess);
    free(much);
}

static void a_full_inbox_holds_back_the_sender(void **state)
{
    (void)state;
    run_job(2, flood);
}

/* Rank 1 fills the inbox of rank 0, so that rank 2 is held back, too, until there is room, whatever frees it. */
static void flood_beside_another(struct rank *me, struct kl_bootstrap *b)
{
    char *much = calloc(1, KL_FRAME_MAX), word = 'x';

    if (me->config.rank == 0) {
        await_pause(b, 1);
        must(!kl_bootstrap_send(b, 2, 1, &word, 1));
        await_pause(b, 2);
        for (int i = 0; i < FLOOD; i++) must(!kl_bootstrap_recv(b, 1, 1, much, KL_FRAME_MAX));
        /* rank 2 has sent everything, although rank 0 has not waited for it */
        must(!kl_bootstrap_recv(b, 1, 2, &word, 1));
        for (int i = 0; i < 3; i++) must(!kl_bootstrap_recv(b, 2, 1, much, KL_FRAME_MAX));
    } else if (me->config.rank == 1) {
        for (int i = 0; i < FLOOD; i++) must(!kl_bootstrap_send(b, 0, 1, much, KL_FRAME_MAX));
        must(!kl_bootstrap_recv(b, 2, 1, &word, 1));
        must(!kl_bootstrap_send(b, 0, 2, &word, 1));
    } else {
        must(!kl_bootstrap_recv(b, 0, 1, &word, 1));
        for (int i = 0; i < 3; i++) must(!kl_bootstrap_send(b, 0, 1, much, KL_FRAME_MAX));
        must(!kl_bootstrap_send(b, 1, 1, &word, 1));
    }
    must(!kl_bootstrap_barrier(b));
    free(much);
}

static void who_was_held_back_goes_on_when_there_is_room(void **state)
{
    (void)state;
    run_job(3, flood_beside_another);
}

/* ---- failures to join ---- */

static const struct missing_case {
    const char *label, *present;
    int n;
    const char *text;
} missing_cases[] = {
    {"one", "01", 3, "1 of 3 ranks did not join within 2 s: rank 2;"},
    {"rank 0", "12", 3, "rank 0;"},
    {"several", "0124", 8, "4 of 8 ranks did not join within 2 s: ranks 3, 5-7;"},
};

static void missing_ranks_are_named(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, missing_cases)
    {
        struct rank ranks[MAX_RANKS];
        int n = (int)strlen(c->present);

        setup_job(ranks, n, NULL);
        for (int i = 0; i < n; i++) {
            ranks[i].config.rank = c->present[i] - '0';
            ranks[i].config.nranks = c->n;
            ranks[i].config.timeout_ms = 2000;
        }
        run_ranks(ranks, n);
        for (int i = 0; i < n; i++) {
            expect_case(c->label, ranks[i].joined == ncclRemoteError);
            if (!strstr(ranks[i].text, c->text)) fail_msg("%s: %s", c->label, ranks[i].text);
        }
    }
}

/* The first rank that gives up tells the others, also later ones. */
static void a_late_rank_learns_what_happened(void **state)
{
    struct rank ranks[2];

    (void)state;
    setup_job(ranks, 2, NULL);
    for (int i = 0; i < 2; i++) ranks[i].config.nranks = 3;
    ranks[0].config.timeout_ms = 1000;
    run_ranks(ranks, 1);
    ranks[0].config.timeout_ms = kolo_test_hang_ms();
    run_ranks(ranks + 1, 1);
    assert_int_equal(ranks[1].joined, ncclRemoteError);
    assert_string_equal(ranks[1].text, ranks[0].text);
    assert_non_null(strstr(ranks[1].text, "ranks 1-2"));
}

/* Otherwise a quick rank could announce itself for the next job at the same address to the rendezvous of this one. */
static void a_rendezvous_that_introduces_is_closed(void **state)
{
    union kl_address nowhere = free_address("127.0.0.1:0");
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    char frame[KL_FRAME_SEALED_HEAD];
    struct kl_connection root;
    ncclUniqueId id;
    int fds[2];

    (void)state;
    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
    for (int r = 0; r < 2; r++) fds[r] = announce_somebody(&id, r, 2, &nowhere);
    assert_int_equal(kl_socket_recv(fds[0], frame, sizeof frame, &wait), KL_IO_DONE);
    int quiet = kl_error_quiet(1);
    assert_int_equal(knock(&id, 0, &root), ncclRemoteError);
    kl_error_quiet(quiet);
    assert_non_null(strstr(kl_error_text(), "Connection refused"));
    for (int r = 0; r < 2; r++) kl_socket_close(fds[r]);
}

static void who_goes_away_while_joining_is_named(void **state)
{
    struct rank ranks[2];
    union kl_address nowhere = free_address("127.0.0.1:0");

    (void)state;
    setup_job(ranks, 2, NULL);
    kl_socket_close(announce_somebody(&ranks[0].config.id, 2, 3, &nowhere));
    for (int r = 0; r < 2; r++) ranks[r].config.nranks = 3;
    run_ranks(ranks, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ranks[r].joined, ncclRemoteError);
        assert_non_null(strstr(ranks[r].text, "rank 2 (host elsewhere, pid 77) has gone again"));
    }
}

/* Rank 0 has been introduced and dies before it is called: the others do not wait for the deadline. */
static void who_dies_after_the_introduction_is_named(void **state)
{
    struct rank ranks[2];
    union kl_address nowhere = free_address("127.0.0.1:0");

    (void)state;
    setup_job(ranks, 2, NULL);
    int fd = announce_somebody(&ranks[0].config.id, 2, 3, &nowhere);
    for (int r = 0; r < 2; r++) ranks[r].config.nranks = 3;
    run_ranks(ranks, 2);
    kl_socket_close(fd);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ranks[r].joined, ncclRemoteError);
        if (!strstr(ranks[r].text, "cannot connect to rank 2 (host elsewhere, pid 77) at 127.0.0.1:"))
            fail_msg("rank %d: %s", r, ranks[r].text);
        assert_non_null(strstr(ranks[r].text, "Connection refused"));
    }
}

static void contradictions_are_told_to_everybody(void **state)
{
    static const struct {
        const char *label;
        int rank, nranks;
        const char *text;
    } cases[] = {
        {"twice the same rank", 0, 3, "both joined as rank 0; give each process its own rank"},
        {"another number of ranks", 2, 4, "give all ranks the same number"},
        {"more ranks", 70, 71, "joins 71"},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct rank ranks[3];

        setup_job(ranks, 3, NULL);
        for (int i = 0; i < 3; i++)
            ranks[i].config.timeout_ms = 20000; /* as long as it may wait for ranks that it takes to be alive */
        ranks[2].config.rank = c->rank;
        ranks[2].config.nranks = c->nranks;
        run_ranks(ranks, 3);
        for (int i = 0; i < 3; i++) {
            expect_case(c->label, ranks[i].joined == ncclInvalidUsage);
            if (!strstr(ranks[i].text, c->text)) fail_msg("%s: %s", c->label, ranks[i].text);
        }
    }
}

static void bad_configurations_are_refused(void **state)
{
    static const struct {
        const char *label;
        int rank, nranks;
        uint64_t timeout_ms;
        int corrupt;
    } cases[] = {
        {"negative rank", -1, 2, 1000, 0}, {"rank too large", 2, 2, 1000, 0}, {"no ranks", 0, 0, 1000, 0},
        {"no timeout", 0, 1, 0, 0},        {"not an id", 0, 1, 1000, 1},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct rank r;

        setup_job(&r, 1, NULL);
        struct kl_bootstrap_config good = r.config;
        r.config.rank = c->rank;
        r.config.nranks = c->nranks;
        r.config.timeout_ms = c->timeout_ms;
        if (c->corrupt) r.config.id.internal[0] ^= 1;
        run_ranks(&r, 1);
        expect_case(c->label, r.joined == ncclInvalidArgument);
        r.config = good; /* the rendezvous has not noticed, and its process ends when it is used */
        run_ranks(&r, 1);
        expect_case(c->label, r.joined == ncclSuccess);
    }
}

static void a_wrong_secret_is_refused_and_does_no_harm(void **state)
{
    struct rank ranks[3], liar;

    (void)state;
    setup_job(ranks, 3, gather_and_check);
    liar = ranks[0];
    liar.config.id.internal[20] ^= 1;
    run_ranks(&liar, 1);
    assert_int_equal(liar.joined, ncclRemoteError);
    assert_non_null(strstr(liar.text, "there is a secret mismatch"));
    run_ranks(ranks, 3);
    expect_joined(ranks, 3);
}

static void nobody_behind_an_id_is_an_error(void **state)
{
    struct rank r;

    (void)state;
    setup_job(&r, 1, NULL);
    run_ranks(&r, 1);
    expect_joined(&r, 1);
    run_ranks(&r, 1); /* the rendezvous is over */
    assert_int_equal(r.joined, ncclRemoteError);
    assert_non_null(strstr(r.text, "cannot join the rendezvous at "));
    assert_non_null(strstr(r.text, "has no rank of this job any more")); /* the address belongs to its own process */
}

/* ---- several jobs, rendezvous at an address ---- */

static void *run_a_job(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) run_job(3, talk_to_all);
    return NULL;
}

static void jobs_run_beside_each_other(void **state)
{
    pthread_t threads[3];

    (void)state;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_a_job, NULL), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static void set_address(const char *variable, const union kl_address *address)
{
    char text[KL_ADDRESS_TEXT];

    setenv(variable, kl_address_format(address, text), 1);
}

static void ranks_meet_at_an_address(void **state)
{
    union kl_address address = free_address("127.0.0.1:0");

    (void)state;
    set_address("NCCL_COMM_ID", &address);
    for (int i = 0; i < 5; i++) run_job(5, gather_and_check); /* one after the other, at the same address */
    setenv("KOLO_SECRET", "open sesame", 1);
    run_job(5, gather_and_check);
    unsetenv("NCCL_COMM_ID");
    unsetenv("KOLO_SECRET");
}

static void await_root(const ncclUniqueId *id)
{
    int quiet = kl_error_quiet(1);
    struct kl_connection root;

    while (knock(id, 1, &root)) sched_yield();
    kl_socket_close(root.fd);
    kl_error_quiet(quiet);
}

/* Rank 0, which opens the rendezvous and learns of the failure first, stays for late ranks. */
static void who_comes_late_hears_who_failed(void **state)
{
    union kl_address address = free_address("127.0.0.1:0"), nowhere = free_address("127.0.0.1:0");
    struct rank ranks[3];

    (void)state;
    set_address("NCCL_COMM_ID", &address);
    setup_job(ranks, 3, NULL);
    unsetenv("NCCL_COMM_ID");
    assert_int_equal(pthread_create(&ranks[0].thread, NULL, rank_main, &ranks[0]), 0);
    await_root(&ranks[0].config.id);
    kl_socket_close(announce_somebody(&ranks[0].config.id, 1, 3, &nowhere));
    run_ranks(&ranks[2], 1);
    pthread_join(ranks[0].thread, NULL);
    for (int r = 0; r < 3; r += 2) {
        assert_int_equal(ranks[r].joined, ncclRemoteError);
        assert_non_null(strstr(ranks[r].text, "rank 1 (host elsewhere, pid 77) has gone again"));
    }
}

/* It fails before it has announced itself; ranks that wait in the same process, or at a root of it, are told at
 * once. */
static void who_cannot_even_begin_is_heard_of(void **state)
{
    union kl_address nowhere = free_address("127.0.0.1:0");
    struct rank ranks[2];
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    char answer;

    (void)state;
    setup_job(ranks, 2, NULL);
    int fd = announce_somebody(&ranks[0].config.id, 0, 2, &nowhere);
    setenv("NCCL_SOCKET_IFNAME", "=nosuchinterface", 1);
    run_ranks(&ranks[1], 1);
    unsetenv("NCCL_SOCKET_IFNAME");
    assert_int_equal(ranks[1].joined, ncclSystemError);
    /* Not introduced: the other rank has not come. */
    assert_int_equal(kl_socket_recv(fd, &answer, 1, &wait), KL_IO_DONE);
    kl_socket_close(fd);
}

/* If the rendezvous was not opened, or is closed again, the text names the rank that should have kept it open. */
static void a_rendezvous_that_is_not_open_names_rank_0(void **state)
{
    union kl_address address = free_address("127.0.0.1:0");
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    struct rank rank[2];
    int listener, fd;

    (void)state;
    set_address("NCCL_COMM_ID", &address);
    setup_job(rank, 2, NULL);
    unsetenv("NCCL_COMM_ID");
    rank[1].config.timeout_ms = 50;
    run_ranks(&rank[1], 1);
    assert_int_equal(rank[1].joined, ncclRemoteError);
    assert_non_null(strstr(rank[1].text, ", which rank 0 opens: "));
    assert_int_equal(kl_socket_listen(&address, &listener), ncclSuccess);
    rank[1].config.timeout_ms = 2000; /* it calls before that time is over */
    assert_int_equal(pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]), 0);
    assert_int_equal(kl_socket_accept(listener, &wait, &fd), KL_IO_DONE); /* and sends no byte */
    pthread_join(rank[1].thread, NULL);
    assert_int_equal(rank[1].joined, ncclRemoteError);
    assert_non_null(strstr(rank[1].text, ", which rank 0 opens: "));
    kl_socket_close(fd);
    kl_socket_close(listener);
}

/* Another process's listener, which then closes: an earlier job's, or one that had no room. */
static void who_is_dropped_tries_again(void **state)
{
    union kl_address address = free_address("127.0.0.1:0");
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    struct rank ranks[2];
    int listener, fd;

    (void)state;
    assert_int_equal(kl_socket_listen(&address, &listener), ncclSuccess);
    set_address("NCCL_COMM_ID", &address);
    setup_job(ranks, 2, gather_and_check);
    unsetenv("NCCL_COMM_ID");
    assert_int_equal(pthread_create(&ranks[1].thread, NULL, rank_main, &ranks[1]), 0);
    assert_int_equal(kl_socket_accept(listener, &wait, &fd), KL_IO_DONE);
    kl_socket_close(fd);
    kl_socket_close(listener);
    run_ranks(ranks, 1);
    pthread_join(ranks[1].thread, NULL);
    expect_joined(ranks, 2);
}

static void a_taken_address_is_an_error(void **state)
{
    union kl_address address = free_address("127.0.0.1:0");
    struct rank ranks[2];
    char text[KL_ADDRESS_TEXT];
    int fd;

    (void)state;
    assert_int_equal(kl_socket_listen(&address, &fd), ncclSuccess);
    set_address("NCCL_COMM_ID", &address);
    setup_job(ranks, 2, NULL);
    unsetenv("NCCL_COMM_ID");
    ranks[1].config.timeout_ms = 50;
    run_ranks(ranks, 2);
    assert_int_equal(ranks[0].joined, ncclSystemError);
    assert_non_null(strstr(ranks[0].text, kl_address_format(&address, text)));
    assert_int_equal(ranks[1].joined, ncclRemoteError);
    kl_socket_close(fd);
}

static union kl_address address_of(const char *text)
{
    union kl_address address;

    assert_int_equal(kl_address_parse(text, &address), ncclSuccess);
    return address;
}

static void never_called(void *ctx, struct kl_incoming *incoming)
{
    (void)ctx;
    kl_incoming_decline(incoming, KL_NOT_HERE);
}

/* An address that the host does not have (203.0.113.1 is for documentation) does not prevent listening on another. */
static void addresses_that_are_not_to_be_had_are_left_out(void **state)
{
    union kl_address addresses[] = {address_of("203.0.113.1:0"), address_of("127.0.0.1:0")};
    const struct kl_hello me = {.version = KL_PROTOCOL, .type = KL_CONNECTION_PEER, .side = KL_HOST};
    struct kl_acceptor *acceptor;
    struct kl_loop *loop;
    int n = 2, none = 1;

    (void)state;
    assert_int_equal(kl_loop_ref(&loop), ncclSuccess);
    kl_error_quiet(1);
    assert_int_equal(kl_acceptor_create(loop, addresses, &n, &me, never_called, NULL, &acceptor), ncclSuccess);
    assert_int_equal(n, 1);
    assert_int_not_equal(kl_address_port(&addresses[0]), 0);
    kl_acceptor_close(acceptor);
    addresses[0] = address_of("203.0.113.1:0");
    assert_int_equal(kl_acceptor_create(loop, addresses, &none, &me, never_called, NULL, &acceptor), ncclSystemError);
    assert_non_null(strstr(kl_error_text(), "cannot listen on 203.0.113.1"));
    kl_error_quiet(0);
    kl_loop_unref(loop);
}

static void secrets_must_agree(void **state)
{
    union kl_address address = free_address("127.0.0.1:0");
    struct rank ranks[2];
    ncclUniqueId id[2];
    char text[KL_ADDRESS_TEXT];

    (void)state;
    kl_address_format(&address, text);
    for (int r = 0; r < 2; r++) {
        setenv("KOLO_SECRET", r ? "right" : "wrong", 1);
        assert_int_equal(kl_bootstrap_id_parse(text, &id[r]), ncclSuccess);
    }
    setup_ranks(ranks, 2, &id[0], NULL);
    ranks[1].config.id = id[1];
    unsetenv("KOLO_SECRET");
    ranks[0].config.timeout_ms = 3000; /* by then the other rank has called */
    run_ranks(ranks, 2);
    assert_int_equal(ranks[1].joined, ncclRemoteError);
    assert_non_null(strstr(ranks[1].text, "secret mismatch with "));
    assert_non_null(strstr(ranks[1].text, text));
    assert_int_equal(ranks[0].joined, ncclRemoteError);
    assert_non_null(strstr(ranks[0].text, "rank 1;")); /* it continues without having noticed */
}

/* ---- IPv6 ---- */

static void jobs_run_over_ipv6(void **state)
{
    struct kl_netif chosen[KL_NETIF_MAX];
    struct kl_netif_constraints constraints = {.family = AF_INET6};
    union kl_address loopback;
    int count = 0, quiet = kl_error_quiet(1);

    (void)state;
    if (kl_netif_choose(&constraints, chosen, &count)) {
        print_message("skipped: %s\n", kl_error_text());
        skip();
    }
    kl_error_quiet(quiet);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
    run_job(5, talk_to_all);
    unsetenv("NCCL_SOCKET_FAMILY");
    loopback = free_address("[::1]:0");
    set_address("NCCL_COMM_ID", &loopback);
    run_job(3, talk_to_all);
    unsetenv("NCCL_COMM_ID");
}

static bool find_link_local(union kl_address *address)
{
    struct kl_netif list[64];
    int n = 0;

    if (kl_netif_list(list, 64, &n)) return false;
    for (int i = 0; i < n; i++) {
        *address = list[i].address;
        if (kl_address_is_link_local(address)) return true;
    }
    return false;
}

/* Rank 1 has announced itself, and rank 0 will not be told why it does not join: the end waits for neither. */
static void a_rendezvous_that_is_given_up_ends_when_all_are_told(void **state)
{
    struct kl_id id = {.kind = KL_ID_ROOT_RUNS, .naddresses = 1, .address = {free_address("127.0.0.1:0")}};
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclUniqueId packed;
    struct kl_root *root;
    char answer;

    (void)state;
    assert_int_equal(kl_root_start(&id, &root), ncclSuccess);
    kl_id_pack(&id, &packed);
    int fd = announce_somebody(&packed, 1, 2, &id.address[0]);
    kl_root_give_up(root, false, deadline);
    assert_false(kl_deadline_passed(deadline));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, (int)kolo_test_hang_ms()), 1);
    assert_int_equal(recv(fd, &answer, 1, 0), 1);
    kl_socket_close(fd);
    kl_root_stop(root);
}

/* The other host's interface number is useless here. */
static void link_local_addresses_are_reached(void **state)
{
    struct kl_id id = {.kind = KL_ID_ROOT_RUNS, .naddresses = 1};
    struct kl_connection c;
    struct kl_root *root;
    int quiet = kl_error_quiet(1);

    (void)state;
    if (!find_link_local(&id.address[0])) {
        print_message("skipped: no interface has a link-local address\n");
        skip();
    }
    assert_int_equal(kl_root_start(&id, &root), ncclSuccess);
    struct kl_key key = kl_key_derive(&id.secret, "kolo root", NULL, 0);
    struct kl_call call = {.addresses = id.address, .naddresses = 1, .key = &key};
    call.hello = (struct kl_hello){KL_PROTOCOL, KL_CONNECTION_ROOT, KL_CALLER, 0, KL_NO_RANK, kl_id_name(&id)};
    uint32_t here = id.address[0].v6.sin6_scope_id;
    id.address[0].v6.sin6_scope_id = 99999;
    assert_int_not_equal(call_and_wait(&call, &c), ncclSuccess);
    call.scope = here;
    assert_int_equal(call_and_wait(&call, &c), ncclSuccess);
    kl_socket_close(c.fd);
    kl_root_stop(root);
    kl_error_quiet(quiet);
}

static void no_interface_is_an_error(void **state)
{
    ncclUniqueId id;

    (void)state;
    setenv("NCCL_SOCKET_IFNAME", "=no-such-one", 1);
    kl_error_quiet(1);
    assert_int_equal(kl_bootstrap_id_create(&id), ncclSystemError);
    assert_non_null(strstr(kl_error_text(), "no-such-one"));
    kl_error_quiet(0);
    unsetenv("NCCL_SOCKET_IFNAME");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        leak_test(all_gather_puts_records_in_order),
        leak_test(messages_find_their_tags),
        leak_test(messages_of_one_tag_arrive_in_order),
        leak_test(messages_have_any_size),
        leak_test(records_may_be_larger_than_a_message),
        leak_test(a_wrong_size_is_an_error_with_both_sizes),
        leak_test(a_full_inbox_holds_back_the_sender),
        leak_test(who_was_held_back_goes_on_when_there_is_room),
        leak_test(missing_ranks_are_named),
        leak_test(a_late_rank_learns_what_happened),
        leak_test(a_rendezvous_that_introduces_is_closed),
        leak_test(who_goes_away_while_joining_is_named),
        leak_test(who_dies_after_the_introduction_is_named),
        leak_test(contradictions_are_told_to_everybody),
        leak_test(bad_configurations_are_refused),
        leak_test(a_wrong_secret_is_refused_and_does_no_harm),
        leak_test(nobody_behind_an_id_is_an_error),
        leak_test(jobs_run_beside_each_other),
        leak_test(ranks_meet_at_an_address),
        leak_test(who_comes_late_hears_who_failed),
        leak_test(who_cannot_even_begin_is_heard_of),
        leak_test(a_rendezvous_that_is_not_open_names_rank_0),
        leak_test(who_is_dropped_tries_again),
        leak_test(a_taken_address_is_an_error),
        leak_test(addresses_that_are_not_to_be_had_are_left_out),
        leak_test(secrets_must_agree),
        leak_test(jobs_run_over_ipv6),
        leak_test(a_rendezvous_that_is_given_up_ends_when_all_are_told),
        leak_test(link_local_addresses_are_reached),
        leak_test(no_interface_is_an_error),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("bootstrap", tests, NULL, NULL);
}
