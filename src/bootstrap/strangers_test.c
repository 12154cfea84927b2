/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose ranks are threads of this process, and strangers that connect to them, or tamper with their
 * connections. */
#include "bootstrap/bootstrap.h"

#include "bootstrap/acceptor.h"
#include "bootstrap/test_jobs.h"
#include "bootstrap/state.h"
#include "tests/kolo_test.h"

#include <stdio.h>

static const char garbage[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something that scans ports\r\n\r\n";

/* Strangers of all kinds; their sockets, for the caller to close. */
static void annoy(const union kl_address *address, int fds[4])
{
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    char half_a_hello[20] = "KOLOboot";

    for (int i = 0; i < 4; i++) fds[i] = dial(address);
    (void)kl_socket_send(fds[0], garbage, sizeof garbage, &wait);
    (void)kl_socket_send(fds[1], half_a_hello, sizeof half_a_hello, &wait);
    kl_socket_close(fds[2]); /* a port scanner; fds[3] is silent */
    fds[2] = -1;
}

static void close_all(int fds[4])
{
    for (int i = 0; i < 4; i++) kl_socket_close(fds[i]);
}

static void talk_beside_strangers(struct rank *me, struct kl_bootstrap *b)
{
    int fds[4];

    annoy(&b->address_records[b->rank].address[0], fds);
    gather_and_check(me, b);
    talk_to_all(me, b);
    close_all(fds);
}

static void strangers_do_no_harm(void **state)
{
    struct rank ranks[5];
    struct kl_id id;
    int fds[4];

    (void)state;
    setup_job(ranks, 5, talk_beside_strangers);
    assert_true(kl_id_unpack(&ranks[0].config.id, &id));
    annoy(&id.address[0], fds);
    run_ranks(ranks, 5);
    expect_joined(ranks, 5);
    close_all(fds);
}

static void silent_strangers_are_dropped(void **state)
{
    struct rank ranks[2];
    struct kl_id id;
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    int fds[4];
    char c;

    (void)state;
    setup_job(ranks, 2, NULL);
    assert_true(kl_id_unpack(&ranks[0].config.id, &id));
    annoy(&id.address[0], fds);
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0) assert_int_equal(kl_socket_recv(fds[i], &c, 1, &wait), KL_IO_CLOSED);
    close_all(fds);
    run_ranks(ranks, 2);
    expect_joined(ranks, 2);
}

static void more_strangers_than_room_do_no_harm(void **state)
{
    enum { N = KL_INCOMING_MAX(1) + 50 };
    struct rank ranks[3];
    struct kl_connection root;
    struct kl_id id;
    int fds[N];

    (void)state;
    int before = count_fds();
    setup_job(ranks, 3, gather_and_check);
    assert_true(kl_id_unpack(&ranks[0].config.id, &id));
    for (int i = 0; i < N; i++) fds[i] = dial(&id.address[0]);
    /* When this gets through, all that came before have been accepted. */
    assert_int_equal(knock(&ranks[0].config.id, 0, &root), ncclSuccess);
    kl_socket_close(root.fd);
    assert_in_range(count_fds(), before + N, before + N + KL_INCOMING_MAX(1) + 10); /* and the oldest of them dropped */
    run_ranks(ranks, 3);
    expect_joined(ranks, 3);
    for (int i = 0; i < N; i++) kl_socket_close(fds[i]);
}

/* Of six ranks, 0 and 3 are no partners: the place of 3 at rank 0 is free for a process that has the key. */
static void impersonate(struct rank *me, struct kl_bootstrap *b, struct kl_connection *c)
{
    struct kl_hello hello = {
        .version = KL_PROTOCOL, .type = KL_CONNECTION_PEER, .side = KL_CALLER, .from = 3, .name = b->name};
    enum kl_handshake_outcome outcome;

    (void)kl_bootstrap_barrier(b); /* rank 0 continues when all have joined; others may be told of the failure in it */
    if (me->config.rank) return;
    c->fd = dial(&b->address_records[b->rank].address[0]);
    must(shake_hands(c, &b->key, &hello, &outcome) == KL_IO_DONE);
    must(outcome == KL_ADMITTED);
}

static void expect_rank_3(struct rank *me, const char *text)
{
    await_failure(me);
    must(me->culprit == 3);
    must(me->code == ncclRemoteError);
    must(strstr(me->failure, "rank 3 (host "));
    must(strstr(me->failure, text));
}

static void talk_nonsense(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_connection c = {.fd = -1};

    impersonate(me, b, &c);
    if (c.fd >= 0) say_sealed(&c, garbage, KL_FRAME_HEAD);
    expect_rank_3(me, " is gone: it sent no frame at rank 0");
    kl_socket_close(c.fd);
}

static void nonsense_from_a_peer_is_a_failure(void **state)
{
    (void)state;
    run_job(6, talk_nonsense);
}

/* Without a seal, or with the seal of another connection: a frame, but not from its supposed sender. */
static void talk_unsealed(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_io_wait wait = {.deadline = UINT64_MAX};
    struct kl_connection c = {.fd = -1};
    char address[KL_ADDRESS_TEXT], text[160];

    impersonate(me, b, &c);
    if (c.fd >= 0) {
        union kl_address from = kl_socket_local(c.fd);
        must(!kl_socket_send(c.fd, garbage, sizeof garbage, &wait));
        snprintf(text, sizeof text, " at %s was altered on the way to rank 0 in phase ",
                 kl_address_format(&from, address));
    }
    expect_rank_3(me, c.fd < 0 ? " was altered on the way to rank 0 in phase " : text);
    kl_socket_close(c.fd);
}

static void what_was_altered_on_the_way_is_a_failure(void **state)
{
    (void)state;
    run_job(6, talk_unsealed);
}

/* The first announcement, or the second; all ranks are told, late ones, too. */
static void an_altered_announcement_is_told_to_everybody(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        struct kl_io_wait wait = {.deadline = UINT64_MAX};
        union kl_address nowhere = free_address("127.0.0.1:0");
        struct kl_connection root;
        struct rank ranks[3];
        unsigned char c[KL_FRAME_SEALED_HEAD];
        int early = -1;

        setup_job(ranks, 3, NULL);
        if (before) early = announce_somebody(&ranks[0].config.id, 0, 3, &nowhere);
        assert_int_equal(knock(&ranks[0].config.id, 2, &root), ncclSuccess);
        assert_int_equal(kl_socket_send(root.fd, garbage, sizeof c, &wait), KL_IO_DONE);
        assert_int_equal(kl_socket_recv(root.fd, c, sizeof c, &wait), KL_IO_DONE); /* it is answered */
        assert_true(kl_seal_open(&root.in, c, KL_FRAME_HEAD));
        assert_int_equal(c[0], KL_FRAME_REFUSE);
        run_ranks(ranks + before, 2 - before);
        for (int r = before; r < 2; r++) {
            assert_int_equal(ranks[r].joined, ncclRemoteError);
            if (!strstr(ranks[r].text, "a frame from rank 2 at ") ||
                !strstr(ranks[r].text, " was altered on the way to the rendezvous"))
                fail_msg("rank %d: %s", r, ranks[r].text);
        }
        kl_socket_close(root.fd);
        kl_socket_close(early);
    }
}

static const struct call_case {
    const char *label;
    struct kl_hello hello;
    bool right_key;
    enum kl_handshake_outcome outcome;
} call_cases[] = {
    {"fine", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 3, 0, 0}, true, KL_ADMITTED},
    {"wrong key", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 3, 0, 0}, false, KL_REFUSED},
    {"connected already", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 1, 0, 0}, true, KL_ELSEWHERE},
    {"another version", {KL_PROTOCOL + 1, KL_CONNECTION_PEER, KL_CALLER, 3, 0, 0}, true, KL_OTHER_VERSION},
    {"for nobody", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 3, 6, 0}, true, KL_UNKNOWN},
    {"for a root", {KL_PROTOCOL, KL_CONNECTION_ROOT, KL_CALLER, 3, 0, 0}, true, KL_UNKNOWN},
    {"of another job", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 3, 0, 1}, true, KL_UNKNOWN},
    {"the host's part", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_HOST, 3, 0, 0}, true, KL_UNKNOWN},
    {"from itself", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 0, 0, 0}, true, KL_NOT_HERE},
    {"from nobody", {KL_PROTOCOL, KL_CONNECTION_PEER, KL_CALLER, 6, 0, 0}, true, KL_NOT_HERE},
};

static void call_in_many_ways(struct rank *me, struct kl_bootstrap *b)
{

    (void)kl_bootstrap_barrier(b); /* as above */
    for (size_t i = 1; me->config.rank == 0 && i <= sizeof call_cases / sizeof call_cases[0]; i++) {
        const struct call_case *c = &call_cases[i % (sizeof call_cases / sizeof call_cases[0])]; /* the fine one last */
        struct kl_key key = b->key;
        enum kl_handshake_outcome outcome = 0;

        if (!c->right_key) key.bytes[0] ^= 1;
        struct kl_connection connection = {.fd = dial(&b->address_records[b->rank].address[0])};
        struct kl_hello hello = c->hello;
        hello.name += b->name; /* 1 is the name of another job */
        must(!shake_hands(&connection, &key, &hello, &outcome));
        must(outcome == c->outcome);
        kl_socket_close(connection.fd);
    }
    await_failure(me); /* the admitted caller has closed without a goodbye */
}

static void callers_are_judged(void **state)
{
    (void)state;
    run_job(6, call_in_many_ways);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        leak_test(strangers_do_no_harm),
        leak_test(silent_strangers_are_dropped),
        leak_test(more_strangers_than_room_do_no_harm),
        leak_test(nonsense_from_a_peer_is_a_failure),
        leak_test(what_was_altered_on_the_way_is_a_failure),
        leak_test(an_altered_announcement_is_told_to_everybody),
        leak_test(callers_are_judged),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
