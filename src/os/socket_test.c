/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/thread.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *loopback; /* of the family under test */

static struct kl_io_wait within(int ms)
{
    return (struct kl_io_wait){.deadline = kl_deadline_in_ms((uint64_t)ms)};
}

static int lowest_fd(void)
{
    int fd = dup(STDIN_FILENO);

    close(fd);
    return fd;
}

struct pair {
    int listener, a, b;
    union kl_address address;
};

static int listen_at(const char *text, union kl_address *address)
{
    int fd;

    assert_int_equal(kl_address_parse(text, address), ncclSuccess);
    assert_int_equal(kl_socket_listen(address, &fd), ncclSuccess);
    assert_int_not_equal(kl_address_port(address), 0);
    return fd;
}

static int listen_on(union kl_address *address)
{
    return listen_at(loopback, address);
}

/* KL_IO_ERROR: see errno. */
static enum kl_io connect_to(const union kl_address *address, int *fd)
{
    enum kl_io io = kl_socket_connect_begin(address, fd);

    if (io) return io;
    struct pollfd p = {.fd = *fd, .events = POLLOUT};
    assert_int_equal(poll(&p, 1, (int)kolo_test_hang_ms()), 1);
    return kl_socket_connect_finish(*fd);
}

static struct pair connect_pair_at(const char *text)
{
    struct pair p;
    struct kl_io_wait wait = within((int)kolo_test_hang_ms());

    p.listener = listen_at(text, &p.address);
    assert_int_equal(connect_to(&p.address, &p.a), KL_IO_DONE);
    assert_int_equal(kl_socket_accept(p.listener, &wait, &p.b), KL_IO_DONE);
    return p;
}

static struct pair connect_pair(void)
{
    return connect_pair_at(loopback);
}

static void close_pair(struct pair *p)
{
    kl_socket_close(p->a);
    kl_socket_close(p->b);
    kl_socket_close(p->listener);
}

/* ---- bytes ---- */

struct transfer {
    int fd;
    size_t bytes;
    unsigned char *data;
    enum kl_io io;
    struct kl_thread thread;
};

static void send_all(void *arg)
{
    struct transfer *t = arg;
    struct kl_io_wait wait = within((int)kolo_test_hang_ms());

    t->io = kl_socket_send(t->fd, t->data, t->bytes, &wait);
}

static void bytes_arrive_whole_and_in_order(void **state)
{
    static const size_t sizes[] = {0, 1, 4095, 8 << 20}; /* the last does not fit into any socket's buffer */
    int before = lowest_fd();
    struct pair p = connect_pair();

    (void)state;
    FOR_EACH_CASE(bytes, sizes)
    {
        struct transfer t = {.fd = p.a, .bytes = *bytes, .data = malloc(*bytes + 1)};
        unsigned char *got = calloc(1, *bytes + 1);
        struct kl_io_wait wait = within((int)kolo_test_hang_ms());

        for (size_t i = 0; i < *bytes; i++) t.data[i] = (unsigned char)(i * 31 >> 3);
        assert_int_equal(kl_thread_start(&t.thread, "sender", send_all, &t), ncclSuccess);
        assert_int_equal(kl_socket_recv(p.b, got, *bytes, &wait), KL_IO_DONE);
        kl_thread_join(&t.thread);
        assert_int_equal(t.io, KL_IO_DONE);
        assert_memory_equal(got, t.data, *bytes);
        free(t.data);
        free(got);
    }
    close_pair(&p);
    assert_int_equal(lowest_fd(), before);
}

static void a_closed_peer_is_told_from_a_silent_one(void **state)
{
    struct pair p = connect_pair();
    struct kl_io_wait wait = within((int)kolo_test_hang_ms()), brief = within(1);
    char c, much[65536] = {0};
    enum kl_io io = KL_IO_DONE;

    (void)state;
    assert_int_equal(kl_socket_recv(p.a, &c, 1, &brief), KL_IO_TIMEOUT);
    assert_int_equal(kl_socket_accept(p.listener, &brief, &p.listener), KL_IO_TIMEOUT);
    assert_int_equal(kl_socket_send(p.b, "x", 1, &wait), KL_IO_DONE);
    kl_socket_close(p.b);
    p.b = -1;
    assert_int_equal(kl_socket_recv(p.a, much, 2, &wait), KL_IO_CLOSED); /* one byte of two */
    while (!io) io = kl_socket_send(p.a, much, sizeof much, &wait);
    assert_int_equal(io, KL_IO_CLOSED); /* and no SIGPIPE */
    close_pair(&p);
}

static void nobody_reading_makes_a_sender_late(void **state)
{
    struct pair p = connect_pair();
    struct kl_io_wait brief = within(20);
    size_t bytes = 64 << 20;
    char *much = calloc(1, bytes);

    (void)state;
    assert_int_equal(kl_socket_send(p.a, much, bytes, &brief), KL_IO_TIMEOUT);
    free(much);
    close_pair(&p);
}

static void sockets_have_the_promised_options(void **state)
{
    struct pair p = connect_pair();
    const int fds[] = {p.a, p.b};

    (void)state;
    FOR_EACH_CASE(fd, fds)
    {
        int on = 0;
        socklen_t bytes = sizeof on;

        assert_int_equal(getsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, &bytes), 0);
        assert_true(on);
        assert_true(fcntl(*fd, F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(*fd, F_GETFL) & O_NONBLOCK);
    }
    assert_true(fcntl(p.listener, F_GETFD) & FD_CLOEXEC);
    close_pair(&p);
}

static void expect_probes(int fd, bool expected)
{
    int on = 0, idle = 0;
    socklen_t bytes = sizeof on;

    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &bytes), 0);
    assert_int_equal(!!on, expected);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &bytes), 0);
    if (expected) assert_int_equal(idle, 10);
}

/* A client reaches 127.0.0.2 from 127.0.0.1: two addresses, as of two hosts. */
static void only_other_hosts_are_probed(void **state)
{
    struct pair inside = connect_pair(), outside = connect_pair_at("127.0.0.2:0");

    (void)state;
    expect_probes(inside.a, false);
    expect_probes(inside.b, false);
    expect_probes(outside.a, true);
    expect_probes(outside.b, true);
    close_pair(&inside);
    close_pair(&outside);
}

/* ---- connecting ---- */

static void a_taken_port_is_named(void **state)
{
    union kl_address address, same;
    char text[KL_ADDRESS_TEXT];
    int before = lowest_fd(), fd = listen_on(&address), other = -7;

    (void)state;
    same = address;
    kl_error_quiet(1);
    assert_int_equal(kl_socket_listen(&same, &other), ncclSystemError);
    assert_int_equal(other, -7);
    assert_non_null(strstr(kl_error_text(), kl_address_format(&address, text)));
    kl_socket_close(fd);
    assert_int_equal(kl_socket_listen(&same, &fd), ncclSuccess); /* free again at once */
    kl_socket_close(fd);
    assert_int_equal(lowest_fd(), before);
}

/* A port without a listener, unless another process takes it. */
static union kl_address free_address(void)
{
    union kl_address address;

    kl_socket_close(listen_on(&address));
    return address;
}

static void nobody_there_is_broken_by_refusal(void **state)
{
    union kl_address address = free_address();
    int before = lowest_fd(), fd = -1;

    (void)state;
    assert_int_equal(connect_to(&address, &fd), KL_IO_ERROR);
    assert_int_equal(errno, ECONNREFUSED);
    kl_socket_close(fd);
    assert_int_equal(lowest_fd(), before);
}

static void pauses_grow(void **state)
{
    const struct kl_retry nccl = {.count = 34, .sleep_ms = 100}, large = {.sleep_ms = 60000}, none = {.sleep_ms = 0};

    (void)state;
    assert_int_equal(kl_retry_pause_ms(&nccl, 1), 2);
    assert_int_equal(kl_retry_pause_ms(&nccl, 8), 256);
    assert_int_equal(kl_retry_pause_ms(&nccl, 34), 3400);
    assert_int_equal(kl_retry_pause_ms(&large, 10000), 600000000);
    assert_int_equal(kl_retry_pause_ms(&large, 100000), INT_MAX);
    assert_int_equal(kl_retry_pause_ms(&none, 9), 0);
}

static void ends_know_their_addresses(void **state)
{
    struct pair p = connect_pair();
    union kl_address a = kl_socket_local(p.a), b = kl_socket_peer(p.b), none = kl_socket_peer(p.listener);

    (void)state;
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(kl_address_is_none(&none));
    close_pair(&p);
}

/* ---- stopping ---- */

static void raise_stop(void *arg)
{
    kl_cancel_raise(arg);
}

static void a_stop_ends_every_wait(void **state)
{
    struct pair p = connect_pair();
    struct kl_cancel stop;
    struct kl_thread thread;
    char c;

    (void)state;
    assert_int_equal(kl_cancel_init(&stop), ncclSuccess);
    struct kl_io_wait wait = {.deadline = KL_NO_DEADLINE, .stop = &stop};
    assert_int_equal(kl_thread_start(&thread, "stopper", raise_stop, &stop), ncclSuccess);
    assert_int_equal(kl_socket_recv(p.a, &c, 1, &wait), KL_IO_CANCELLED);
    kl_thread_join(&thread);
    assert_int_equal(kl_socket_accept(p.listener, &wait, &p.b), KL_IO_CANCELLED);
    kl_cancel_fini(&stop);
    kl_cancel_fini(&stop);
    close_pair(&p);
}

/* ---- errors ---- */

static const struct error_case {
    const char *label;
    enum kl_io io;
    int err;
    ncclResult_t rc;
    const char *text;
} error_cases[] = {
    {"done", KL_IO_DONE, 0, ncclSuccess, NULL},
    {"closed", KL_IO_CLOSED, 0, ncclRemoteError, "calling 3: the other side closed the connection"},
    {"late", KL_IO_TIMEOUT, 0, ncclRemoteError, "calling 3: no answer before the deadline"},
    {"stopped", KL_IO_CANCELLED, 0, ncclInternalError, "calling 3: aborted"},
    {"refused", KL_IO_ERROR, ECONNREFUSED, ncclRemoteError, "calling 3: Connection refused"},
    {"another protocol", KL_IO_ERROR, EPROTO, ncclRemoteError, "calling 3: Protocol error"},
    {"no descriptors", KL_IO_ERROR, EMFILE, ncclSystemError,
     "calling 3: Too many open files; raise `ulimit -n` (it is "},
};

static void results_become_errors(void **state)
{
    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(c, error_cases)
    {
        errno = c->err;
        expect_case(c->label, kl_io_fail(c->io, "calling %d", 3) == c->rc);
        if (c->text) assert_memory_equal(kl_error_text(), c->text, strlen(c->text));
    }
}

/* ---- main ---- */

static int run_family(const char *name, const char *address)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_whole_and_in_order),
        cmocka_unit_test(a_closed_peer_is_told_from_a_silent_one),
        cmocka_unit_test(nobody_reading_makes_a_sender_late),
        cmocka_unit_test(sockets_have_the_promised_options),
        cmocka_unit_test(only_other_hosts_are_probed),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(nobody_there_is_broken_by_refusal),
        cmocka_unit_test(pauses_grow),
        cmocka_unit_test(ends_know_their_addresses),
        cmocka_unit_test(a_stop_ends_every_wait),
        cmocka_unit_test(results_become_errors),
    };

    loopback = address;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static int has_v6(void)
{
    union kl_address address;
    int fd;

    kl_error_quiet(1);
    if (kl_address_parse("[::1]:0", &address) || kl_socket_listen(&address, &fd)) return 0;
    kl_socket_close(fd);
    return 1;
}

/* ---- Unix sockets ---- */

static void a_unix_socket_is_a_connection(void **state)
{
    const struct kl_io_wait wait = within((int)kolo_test_hang_ms());
    union kl_address local = kl_address_new_unix(1), other = local;
    char word[6] = "";
    int listener, second, a, b;

    (void)state;
    assert_int_equal(kl_socket_listen(&local, &listener), ncclSuccess);
    assert_int_equal(kl_socket_listen(&other, &second), ncclSuccess);
    assert_true(kl_address_is_bound(&local) && !kl_address_same_port(&local, &other));
    kl_error_quiet(1);
    int taken;
    assert_int_equal(kl_socket_listen(&local, &taken), ncclSystemError);
    assert_int_equal(errno, EADDRINUSE);
    kl_error_quiet(0);
    assert_int_equal(connect_to(&local, &a), KL_IO_DONE);
    assert_int_equal(kl_socket_accept(listener, &wait, &b), KL_IO_DONE);
    assert_int_equal(kl_socket_send(a, "hello", 5, &wait), KL_IO_DONE);
    assert_int_equal(kl_socket_recv(b, word, 5, &wait), KL_IO_DONE);
    assert_string_equal(word, "hello");
    kl_socket_close(a);
    assert_int_equal(kl_socket_recv(b, word, 1, &wait), KL_IO_CLOSED);
    kl_socket_close(b);
    kl_socket_close(second);
    kl_socket_close(listener);
    assert_int_equal(connect_to(&local, &a), KL_IO_ERROR);
    assert_int_equal(errno, ECONNREFUSED);
}

/* As another user. */
static int knock(const union kl_address *local)
{
    int fd;

    if (setgid(65534) || setuid(65534)) return 2;
    return connect_to(local, &fd) != KL_IO_ERROR || errno != EACCES;
}

static void a_unix_socket_is_open_to_one_user(void **state)
{
    union kl_address local = kl_address_new_unix(1);
    int listener, fd, status;

    (void)state;
    if (geteuid()) {
        print_message("skipped: only root can be another user\n");
        skip();
    }
    assert_int_equal(kl_socket_listen(&local, &listener), ncclSuccess);
    pid_t child = fork();
    if (!child) _exit(knock(&local));
    const struct kl_io_wait wait = within(200);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(kl_socket_accept(listener, &wait, &fd), KL_IO_TIMEOUT);
    kl_socket_close(listener);
}

static int run_unix(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unix_socket_is_a_connection),
        cmocka_unit_test(a_unix_socket_is_open_to_one_user),
    };

    return cmocka_run_group_tests_name("socket (Unix)", tests, NULL, NULL);
}

int main(void)
{
    int failures = run_family("socket (IPv4)", "127.0.0.1:0") + run_unix();

    if (!has_v6())
        print_message("IPv6 skipped: %s\n", kl_error_text());
    else
        failures += run_family("socket (IPv6)", "[::1]:0");
    return failures;
}
