/* SPDX-License-Identifier: Apache-2.0 */
/* Acceptors behind shared listeners: which acceptor a caller reaches, callers that wait, and the ports used. */
#include "bootstrap/acceptor.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/test_loop.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- helpers ---- */

/* An acceptor that records its callers, and admits all of them. */
struct host {
    struct kl_acceptor *acceptor;
    union kl_address address;
    struct kl_hello me;
    struct kl_key key;
    int last; /* the last caller's rank */
    sem_t handed_over;
};

static void let_in(void *ctx, struct kl_incoming *incoming)
{
    struct host *h = ctx;
    struct kl_connection c;

    h->last = (int)kl_incoming_rank(incoming);
    if (kl_incoming_admit(incoming, &c)) kl_socket_close(c.fd);
    sem_post(&h->handed_over);
}

static union kl_address loopback(int port)
{
    union kl_address a;

    assert_int_equal(kl_address_parse("127.0.0.1:0", &a), ncclSuccess);
    kl_address_set_port(&a, port);
    return a;
}

static void host_create(struct host *h, union kl_address address, uint32_t name, uint32_t rank, int key)
{
    int n = 1;

    *h = (struct host){
        .address = address, .me = {KL_PROTOCOL, KL_CONNECTION_PEER, KL_HOST, rank, KL_NO_RANK, name}, .last = -1};
    memset(&h->key, key, sizeof h->key);
    sem_init(&h->handed_over, 0, 0);
    assert_int_equal(kl_acceptor_create(loop, &h->address, &n, &h->me, let_in, h, &h->acceptor), ncclSuccess);
}

static void host_open(struct host *h)
{
    kl_acceptor_open(h->acceptor, &h->key);
}

static void host_close(struct host *h)
{
    kl_acceptor_close(h->acceptor);
    sem_destroy(&h->handed_over);
}

/* Call at an address, as a caller of this host. */
static enum kl_handshake_outcome call(const union kl_address *address, const struct host *h, uint32_t from)
{
    struct kl_hello hello = {h->me.version, h->me.type, KL_CALLER, from, h->me.from, h->me.name};
    enum kl_handshake_outcome outcome = 0;
    struct kl_connection c = {.fd = dial(address)};

    assert_int_equal(shake_hands(&c, &h->key, &hello, &outcome), KL_IO_DONE);
    kl_socket_close(c.fd);
    return outcome;
}

/* ---- one listener for all ---- */

static void all_share_one_port(void **state)
{
    enum { N = 40 };
    struct host hosts[N];

    (void)state;
    int before = count_fds();
    for (int i = 0; i < N; i++) {
        host_create(&hosts[i], loopback(0), (uint32_t)i * 256 + (uint32_t)i / 10, (uint32_t)i % 7, i);
        assert_int_equal(kl_address_port(&hosts[i].address), kl_address_port(&hosts[0].address));
        host_open(&hosts[i]);
    }
    assert_int_equal(count_fds(), before + 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(call(&hosts[0].address, &hosts[i], (uint32_t)(100 + i)), KL_ADMITTED);
        sem_wait(&hosts[i].handed_over);
        assert_int_equal(hosts[i].last, 100 + i);
    }
    for (int i = 0; i < N; i++) host_close(&hosts[i]);
}

/* Successive jobs at one address with one secret have equal names, and equal rank numbers. */
static void among_equal_names_the_proof_decides(void **state)
{
    struct host hosts[3];

    (void)state;
    for (int i = 0; i < 3; i++) host_create(&hosts[i], loopback(0), 5, 0, i);
    for (int i = 0; i < 3; i++) host_open(&hosts[i]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call(&hosts[0].address, &hosts[i], (uint32_t)(10 + i)), KL_ADMITTED);
        sem_wait(&hosts[i].handed_over);
        assert_int_equal(hosts[i].last, 10 + i);
    }
    struct host liar = hosts[0];
    memset(&liar.key, 99, sizeof liar.key);
    assert_int_equal(call(&hosts[0].address, &liar, 1), KL_REFUSED);
    for (int i = 0; i < 3; i++) host_close(&hosts[i]);
}

static void who_is_not_here_is_unknown(void **state)
{
    struct host here, gone;

    (void)state;
    host_create(&here, loopback(0), 5, 0, 1);
    host_create(&gone, loopback(0), 5, 1, 1);
    host_open(&here);
    host_open(&gone);
    assert_int_equal(call(&here.address, &gone, 7), KL_ADMITTED);
    host_close(&gone);
    assert_int_equal(call(&here.address, &gone, 7), KL_UNKNOWN);
    assert_int_equal(call(&here.address, &here, 7), KL_ADMITTED);
    host_close(&here);
}

/* ---- acceptors without a key yet ---- */

struct early {
    const struct host *host;
    enum kl_handshake_outcome outcome;
    pthread_t thread;
};

static void *call_early(void *arg)
{
    struct early *e = arg;

    e->outcome = call(&e->host->address, e->host, 3);
    return NULL;
}

/* Callers whose proof has been read wait; calls made later are answered later, so all proofs have been read by then. */
static void begin_early_calls(struct early *calls, int n, const struct host *wanted, const struct host *open)
{
    for (int i = 0; i < n; i++) {
        calls[i] = (struct early){.host = wanted};
        assert_int_equal(pthread_create(&calls[i].thread, NULL, call_early, &calls[i]), 0);
    }
    for (int i = 0; i < 100; i++) assert_int_equal(call(&open->address, open, 9), KL_ADMITTED);
}

static void end_early_calls(struct early *calls, int n, enum kl_handshake_outcome expected)
{
    for (int i = 0; i < n; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_int_equal(calls[i].outcome, expected);
    }
}

static void early_callers_wait_for_the_key(void **state)
{
    enum { N = 5 };
    struct early calls[N];
    struct host early, open;

    (void)state;
    host_create(&early, loopback(0), 5, 0, 1);
    host_create(&open, loopback(0), 5, 1, 2);
    host_open(&open);
    begin_early_calls(calls, N, &early, &open);
    assert_int_equal(early.last, -1); /* no caller was handed over */
    host_open(&early);
    end_early_calls(calls, N, KL_ADMITTED);
    assert_int_equal(early.last, 3);

    host_close(&early);
    host_create(&early, loopback(0), 5, 0, 1);
    begin_early_calls(calls, N, &early, &open);
    host_close(&early); /* it never gets a key */
    end_early_calls(calls, N, KL_UNKNOWN);
    host_close(&open);
}

/* ---- ports ---- */

static void a_closed_listeners_port_is_used_again(void **state)
{
    int port = 0, changes = 0;

    (void)state;
    for (int i = 0; i < 50; i++) {
        struct host h;

        host_create(&h, loopback(0), 5, 0, 1);
        host_open(&h);
        changes += port != kl_address_port(&h.address);
        port = kl_address_port(&h.address);
        assert_int_equal(call(&h.address, &h, 7), KL_ADMITTED); /* leaves a connection that lingers on the port */
        host_close(&h);
    }
    assert_in_range(changes, 1, 5); /* another process may take it meanwhile */
}

static void a_port_that_was_taken_meanwhile_is_no_obstacle(void **state)
{
    struct host h;
    int thief;

    (void)state;
    host_create(&h, loopback(0), 5, 0, 1);
    union kl_address taken = h.address;
    host_close(&h);
    assert_int_equal(kl_socket_listen(&taken, &thief), ncclSuccess);
    host_create(&h, loopback(0), 5, 0, 1);
    assert_int_not_equal(kl_address_port(&h.address), kl_address_port(&taken));
    host_open(&h);
    assert_int_equal(call(&h.address, &h, 7), KL_ADMITTED);
    host_close(&h);
    kl_socket_close(thief);
}

/* The listener is not shared, and its only acceptor identifies callers by their secret alone. */
static void a_given_port_has_a_listener_of_its_own(void **state)
{
    struct host shared, fixed, other;
    int n = 1;

    (void)state;
    host_create(&shared, loopback(0), 5, 0, 1);
    host_open(&shared);
    host_create(&fixed, loopback(0), 6, 0, 2);
    union kl_address given = fixed.address;
    host_close(&fixed);
    host_close(&shared);
    host_create(&fixed, given, 6, 0, 2);
    host_open(&fixed);
    host_create(&shared, loopback(0), 5, 0, 1);
    host_open(&shared);
    assert_int_not_equal(kl_address_port(&shared.address), kl_address_port(&given));
    assert_int_equal(call(&given, &fixed, 7), KL_ADMITTED);
    assert_int_equal(call(&given, &shared, 7), KL_REFUSED);
    assert_int_equal(call(&shared.address, &fixed, 7), KL_UNKNOWN);
    other.me = fixed.me;
    int quiet = kl_error_quiet(1);
    assert_int_equal(kl_acceptor_create(loop, &given, &n, &other.me, let_in, &other, &other.acceptor), ncclSystemError);
    kl_error_quiet(quiet);
    host_close(&fixed);
    host_close(&shared);
}

/* Connections in a handshake are dropped with the last acceptor. */
static void the_last_acceptor_takes_all_with_it(void **state)
{
    const struct kl_io_wait wait = {.deadline = KL_NO_DEADLINE};
    struct host h;
    char c;

    (void)state;
    host_create(&h, loopback(0), 5, 0, 1);
    host_open(&h);
    int fd = dial(&h.address);
    assert_int_equal(call(&h.address, &h, 7), KL_ADMITTED); /* the first has been accepted, too */
    host_close(&h);
    assert_int_equal(kl_socket_recv(fd, &c, 1, &wait), KL_IO_CLOSED);
    kl_socket_close(fd);
}

/* ---- a process that has no descriptor left ---- */

enum { FEW = 48 };

static int exhausted; /* number of callers that could not be admitted for lack of descriptors */

static void note_exhausted(void *ctx, struct kl_incoming *incoming)
{
    struct host *h = ctx;
    struct kl_connection c;

    if (kl_incoming_admit(incoming, &c))
        kl_socket_close(c.fd);
    else
        exhausted += errno == EMFILE;
    sem_post(&h->handed_over);
}

/* Reports its address while at the limit of descriptors; below the limit after the first caller. */
static int be_exhausted(struct host *h, int to)
{
    const struct rlimit few = {FEW, FEW};
    int held[FEW], nheld = 0, n = 1;

    if (setrlimit(RLIMIT_NOFILE, &few) || kl_loop_ref(&loop)) return 1;
    sem_init(&h->handed_over, 0, 0);
    if (kl_acceptor_create(loop, &h->address, &n, &h->me, note_exhausted, h, &h->acceptor)) return 2;
    host_open(h);
    for (int fd; (fd = dup(to)) >= 0;) held[nheld++] = fd;
    if (write(to, &h->address, sizeof h->address) != sizeof h->address) return 3;
    sem_wait(&h->handed_over);
    while (nheld) close(held[--nheld]);
    if (write(to, &n, sizeof n) != sizeof n) return 4;
    sem_wait(&h->handed_over);
    return exhausted == 1 ? 0 : 5;
}

static void who_calls_a_process_at_its_limit_is_told(void **state)
{
    struct host h = {.address = loopback(0), .me = {KL_PROTOCOL, KL_CONNECTION_PEER, KL_HOST, 3, KL_NO_RANK, 7}};
    int said[2], n, status;

    (void)state;
    memset(&h.key, 9, sizeof h.key);
    assert_false(pipe2(said, O_CLOEXEC));
    pid_t child = fork();
    if (!child) _exit(be_exhausted(&h, said[1]));
    assert_int_equal(read(said[0], &h.address, sizeof h.address), sizeof h.address);
    assert_int_equal(call(&h.address, &h, 5), KL_EXHAUSTED);
    assert_int_equal(read(said[0], &n, sizeof n), sizeof n);
    assert_int_equal(call(&h.address, &h, 5), KL_ADMITTED);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    close(said[0]);
    close(said[1]);
}

/* ---- declined callers ---- */

struct declined {
    struct kl_acceptor *acceptor;
    bool any;
    char text[256];
};

static ncclResult_t ask_on_loop(void *ctx)
{
    struct declined *d = ctx;

    d->any = kl_acceptor_has_declined(d->acceptor, d->text, sizeof d->text);
    return ncclSuccess;
}

static struct declined declined_by(const struct host *h)
{
    struct declined d = {.acceptor = h->acceptor};

    assert_int_equal(kl_loop_run(loop, ask_on_loop, &d), ncclSuccess);
    return d;
}

static void who_is_turned_away_is_remembered(void **state)
{
    struct host h, stranger, newer;
    char text[128];

    (void)state;
    host_create(&h, loopback(0), 7, 1, 1);
    host_open(&h);
    stranger = newer = h;
    stranger.key.bytes[0] ^= 1;
    assert_int_equal(call(&h.address, &h, 2), KL_ADMITTED);
    assert_false(declined_by(&h).any);
    assert_int_equal(call(&h.address, &stranger, 2), KL_REFUSED);
    assert_non_null(strstr(declined_by(&h).text, "somebody at 127.0.0.1:"));
    assert_non_null(strstr(declined_by(&h).text, "for it has another KOLO_SECRET, or none"));
    newer.me.version++;
    assert_int_equal(call(&h.address, &newer, 2), KL_OTHER_VERSION);
    snprintf(text, sizeof text, "speaks version %d of the protocol, and we speak %d", KL_PROTOCOL + 1, KL_PROTOCOL);
    assert_non_null(strstr(declined_by(&h).text, text));
    host_close(&h);
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, hold_loop, drop_loop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        loop_test(who_is_turned_away_is_remembered),
        loop_test(all_share_one_port),
        loop_test(among_equal_names_the_proof_decides),
        loop_test(who_is_not_here_is_unknown),
        loop_test(early_callers_wait_for_the_key),
        loop_test(a_closed_listeners_port_is_used_again),
        loop_test(a_port_that_was_taken_meanwhile_is_no_obstacle),
        loop_test(a_given_port_has_a_listener_of_its_own),
        loop_test(the_last_acceptor_takes_all_with_it),
        loop_test(who_calls_a_process_at_its_limit_is_told),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("acceptors", tests, NULL, NULL);
}
