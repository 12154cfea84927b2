/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of a connection: which address answers, retries, and the error when none does. */
#include "bootstrap/dialer.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/test_loop.h"
#include "tests/kolo_test.h"

#include <errno.h>

static const struct kl_key key = {{1, 2, 3}};

/* ---- listeners ---- */

/* A listener that never accepts. */
static int listen_silently(union kl_address *address)
{
    int fd;

    assert_int_equal(kl_address_parse("127.0.0.1:0", address), ncclSuccess);
    assert_int_equal(kl_socket_listen(address, &fd), ncclSuccess);
    return fd;
}

static union kl_address nobody(void)
{
    union kl_address address;

    kl_socket_close(listen_silently(&address));
    return address;
}

static void let_in(void *ctx, struct kl_incoming *incoming)
{
    struct kl_connection c;

    (void)ctx;
    if (kl_incoming_admit(incoming, &c)) kl_socket_close(c.fd);
}

/* At a given port, so that it is not shared: it answers every caller that has the key. */
static struct kl_acceptor *somebody(union kl_address *address, uint16_t version)
{
    const struct kl_hello me = {.version = version, .type = KL_CONNECTION_PEER, .side = KL_HOST};
    struct kl_acceptor *acceptor;
    int n = 1;

    assert_int_equal(kl_acceptor_create(loop, address, &n, &me, let_in, NULL, &acceptor), ncclSuccess);
    kl_acceptor_open(acceptor, &key);
    return acceptor;
}

static struct kl_call call_to(const union kl_address *addresses, int n)
{
    return (struct kl_call){.addresses = addresses,
                            .naddresses = n,
                            .key = &key,
                            .hello = {.version = KL_PROTOCOL, .type = KL_CONNECTION_PEER, .side = KL_CALLER, .from = 1},
                            .deadline = KL_NO_DEADLINE,
                            .retry = {.count = 1000, .sleep_ms = 1}};
}

static void expect_failure(struct kl_call *call, ncclResult_t expected, const char *text)
{
    struct kl_connection c;

    assert_int_equal(call_and_wait(call, &c), expected);
    if (!strstr(kl_error_text(), text)) fail_msg("\"%s\" does not say \"%s\"", kl_error_text(), text);
    assert_int_equal(strncmp(kl_error_text(), "a test: ", 8), 0);
    assert_int_equal(c.fd, -1);
}

static void expect_connection(struct kl_call *call)
{
    struct kl_connection c;

    if (call_and_wait(call, &c)) fail_msg("%s", kl_error_text());
    assert_in_range(c.fd, 0, 1 << 20);
    kl_socket_close(c.fd);
}

/* ---- several addresses ---- */

static void the_address_that_answers_is_taken(void **state)
{
    union kl_address addresses[3] = {nobody(), nobody(), nobody()};
    int silent;

    (void)state;
    for (int right = 0; right < 3; right++) {
        struct kl_call call = call_to(addresses, 3);
        struct kl_acceptor *acceptor = somebody(&addresses[right], KL_PROTOCOL);
        expect_connection(&call);
        kl_acceptor_close(acceptor);
    }
    silent = listen_silently(&addresses[0]); /* delays the others, at most */
    struct kl_acceptor *acceptor = somebody(&addresses[1], KL_PROTOCOL);
    struct kl_call call = call_to(addresses, 2);
    expect_connection(&call);
    kl_acceptor_close(acceptor);
    kl_socket_close(silent);
}

/* A host that has said hello and then takes its time is not given up for another address: it may have admitted the
 * caller, and would take it for dead. */
static void who_has_said_hello_is_waited_for(void **state)
{
    const struct kl_hello me = {.version = KL_PROTOCOL, .type = KL_CONNECTION_PEER, .side = KL_HOST};
    const struct kl_io_wait longer_than_a_turn = {.deadline = kl_deadline_in_ms(1500)};
    union kl_address addresses[2] = {nobody()};
    int silent = listen_silently(&addresses[1]), n = 1, fd;
    struct awaited_call a = {.connection = {.fd = -1}};
    struct kl_call call = call_to(addresses, 2);
    struct kl_acceptor *acceptor;
    struct kl_dialer *caller;

    (void)state;
    call.error_prefix = "a test";
    sem_init(&a.done, 0, 0);
    assert_int_equal(kl_acceptor_create(loop, &addresses[0], &n, &me, let_in, NULL, &acceptor), ncclSuccess);
    assert_int_equal(kl_dialer_start(loop, &call, note_call, &a, &caller), ncclSuccess);
    assert_int_equal(kl_socket_accept(silent, &longer_than_a_turn, &fd), KL_IO_TIMEOUT); /* no call arrives there */
    kl_acceptor_open(acceptor, &key);
    while (sem_wait(&a.done)) continue;
    assert_int_equal(a.rc, ncclSuccess);
    kl_socket_close(a.connection.fd);
    sem_destroy(&a.done);
    kl_acceptor_close(acceptor);
    kl_socket_close(silent);
}

/* ---- again ---- */

struct late {
    union kl_address address;
    struct kl_acceptor *acceptor;
    pthread_t thread;
};

/* Appears when the caller has been dropped, or refused, at least once. */
static void *come_late(void *arg)
{
    struct late *l = arg;
    const struct kl_io_wait wait = {.deadline = KL_NO_DEADLINE};
    int listener, fd;

    must(!kl_socket_listen(&l->address, &listener));
    must(!kl_socket_accept(listener, &wait, &fd));
    kl_socket_close(fd);
    kl_socket_close(listener);
    l->acceptor = somebody(&l->address, KL_PROTOCOL);
    return NULL;
}

static void who_comes_late_is_found(void **state)
{
    struct late late = {.address = nobody()};
    struct kl_call call = call_to(&late.address, 1);

    (void)state;
    assert_int_equal(pthread_create(&late.thread, NULL, come_late, &late), 0);
    expect_connection(&call);
    pthread_join(late.thread, NULL);
    kl_acceptor_close(late.acceptor);
}

static void refusals_are_counted(void **state)
{
    union kl_address address = nobody();
    struct kl_call call = call_to(&address, 1);

    (void)state;
    call.retry.count = 2;
    expect_failure(&call, ncclRemoteError, "Connection refused");
    call.retry.count = 1 << 20;
    call.listening = true; /* so that a refusal means that it is gone */
    expect_failure(&call, ncclRemoteError, "Connection refused");
}

static void the_deadline_ends_all_tries(void **state)
{
    union kl_address address = nobody();
    struct kl_call call = call_to(&address, 1);
    int silent;

    (void)state;
    call.retry.count = 1 << 20;
    call.deadline = kl_deadline_in_ms(2000);                      /* enough for the first try */
    expect_failure(&call, ncclRemoteError, "Connection refused"); /* says more than "too late" */
    silent = listen_silently(&address);
    call.deadline = kl_deadline_in_ms(30);
    expect_failure(&call, ncclRemoteError, "no answer within ");
    kl_socket_close(silent);
}

/* ---- other answers ---- */

static void who_refuses_is_named(void **state)
{
    static const struct kl_key other = {{9}};
    union kl_address address = nobody();
    struct kl_acceptor *acceptor = somebody(&address, KL_PROTOCOL);
    struct kl_call call = call_to(&address, 1);
    char text[KL_ADDRESS_TEXT], versions[64];

    (void)state;
    call.key = &other;
    expect_failure(&call, ncclRemoteError, "secret mismatch with ");
    expect_failure(&call, ncclRemoteError, kl_address_format(&address, text));
    call.is_public = true; /* no process has a secret */
    expect_failure(&call, ncclRemoteError, "which has no KOLO_SECRET");
    call.is_public = false;
    call.key = &key;
    call.hello.to = 5;
    expect_failure(&call, ncclRemoteError, "is another rank");
    kl_acceptor_close(acceptor);

    acceptor = somebody(&address, KL_PROTOCOL + 1);
    call.hello.to = 0;
    snprintf(versions, sizeof versions, "version %d of the protocol, we speak %d", KL_PROTOCOL + 1, KL_PROTOCOL);
    expect_failure(&call, ncclInvalidUsage, versions);
    kl_acceptor_close(acceptor);
}

struct babbler {
    int listener;
    pthread_t thread;
};

static void *babble(void *arg)
{
    struct babbler *b = arg;
    const struct kl_io_wait wait = {.deadline = KL_NO_DEADLINE};
    char text[KL_HELLO_BYTES] = "220 mail.example.org ESMTP ready, and much more";
    int fd;

    must(!kl_socket_accept(b->listener, &wait, &fd));
    (void)kl_socket_send(fd, text, sizeof text, &wait);
    while (recv(fd, text, sizeof text, 0) != 0 && errno == EAGAIN) sched_yield();
    kl_socket_close(fd);
    return NULL;
}

static void another_service_is_not_taken_for_ours(void **state)
{
    union kl_address address;
    struct babbler b = {.listener = listen_silently(&address)};
    struct kl_call call = call_to(&address, 1);

    (void)state;
    call.retry.count = 0;
    assert_int_equal(pthread_create(&b.thread, NULL, babble, &b), 0);
    expect_failure(&call, ncclRemoteError, "Protocol error");
    pthread_join(b.thread, NULL);
    kl_socket_close(b.listener);
}

/* ---- giving up ---- */

static void never_called_back(void *ctx, ncclResult_t rc, const struct kl_connection *connection)
{
    (void)ctx, (void)rc, (void)connection;
    must(!"a call that was cancelled ends without a word");
}

static ncclResult_t cancel(void *ctx)
{
    kl_dialer_cancel(ctx);
    return ncclSuccess;
}

static void a_call_may_be_cancelled_at_any_time(void **state)
{
    union kl_address address;
    int silent = listen_silently(&address);

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct kl_call call = call_to(&address, 1);
        struct kl_dialer *caller;

        call.error_prefix = "a test";
        assert_int_equal(kl_dialer_start(loop, &call, never_called_back, NULL, &caller), ncclSuccess);
        /* NULL is fine; the call continues */
        if (i % 2) assert_int_equal(kl_loop_run(loop, cancel, NULL), ncclSuccess);
        assert_int_equal(kl_loop_run(loop, cancel, caller), ncclSuccess);
    }
    kl_socket_close(silent);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, hold_loop, drop_loop)

/* ---- Unix addresses ---- */

enum { HERE = 7, ELSEWHERE = 8 };

static union kl_address unix_address_of(uint64_t place)
{
    union kl_address local = kl_address_new_unix(place);

    memset(local.un.number, 0x5e, sizeof local.un.number);
    local.un.number[0] = (unsigned char)getpid();
    local.un.number[1] = (unsigned char)(getpid() >> 8);
    return local;
}

/* Also if no other address would answer, as without loopback. */
static void a_unix_socket_is_tried_first(void **state)
{
    union kl_address addresses[2] = {{.any = {0}}, unix_address_of(HERE)};
    int silent = listen_silently(&addresses[0]);
    struct kl_acceptor *acceptor = somebody(&addresses[1], KL_PROTOCOL);
    struct kl_call call = call_to(addresses, 2);
    struct kl_connection c;

    (void)state;
    call.place = HERE;
    assert_int_equal(call_and_wait(&call, &c), ncclSuccess);
    const union kl_address peer = kl_socket_peer(c.fd);
    assert_true(kl_address_is_unix(&peer));
    kl_socket_close(c.fd);
    kl_acceptor_close(acceptor);
    kl_socket_close(silent);
}

/* If a Unix address is gone, so is its host, even if another process has its IP address; callers that cannot reach
 * Unix addresses try there. */
static void a_unix_socket_that_is_gone_is_an_end(void **state)
{
    union kl_address addresses[2] = {{.any = {0}}, unix_address_of(HERE)};
    int silent = listen_silently(&addresses[0]);
    struct kl_call call = call_to(addresses, 2);

    (void)state;
    call.place = HERE;
    call.listening = true;
    expect_failure(&call, ncclRemoteError, "Connection refused");
    kl_socket_close(silent);
    addresses[0] = nobody();
    struct kl_acceptor *acceptor = somebody(&addresses[0], KL_PROTOCOL);
    call = call_to(addresses, 2);
    call.place = ELSEWHERE;
    expect_connection(&call);
    kl_acceptor_close(acceptor);
}

static void a_unix_socket_elsewhere_is_out_of_reach(void **state)
{
    union kl_address address = unix_address_of(ELSEWHERE);
    const uint64_t places[] = {HERE, 0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct kl_call call = call_to(&address, 1);
        struct kl_dialer *caller;
        call.place = places[i];
        assert_int_equal(kl_dialer_start(loop, &call, NULL, NULL, &caller), ncclRemoteError);
        assert_non_null(strstr(kl_error_text(), "in another host or network namespace"));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        loop_test(the_address_that_answers_is_taken),
        loop_test(who_has_said_hello_is_waited_for),
        loop_test(who_comes_late_is_found),
        loop_test(refusals_are_counted),
        loop_test(the_deadline_ends_all_tries),
        loop_test(who_refuses_is_named),
        loop_test(another_service_is_not_taken_for_ours),
        loop_test(a_call_may_be_cancelled_at_any_time),
        loop_test(a_unix_socket_is_tried_first),
        loop_test(a_unix_socket_that_is_gone_is_an_end),
        loop_test(a_unix_socket_elsewhere_is_out_of_reach),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("callers", tests, NULL, NULL);
}
