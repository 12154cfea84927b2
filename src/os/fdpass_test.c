/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fdpass.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    int a, b;
    int fds; /* number open once both are */
};

static int open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static struct pair open_pair(int type)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    return (struct pair){ends[0], ends[1], open_fds()};
}

/* A test leaves no descriptor behind. */
static void close_pair(struct pair *p)
{
    assert_int_equal(open_fds(), p->fds);
    if (p->a >= 0) close(p->a);
    if (p->b >= 0) close(p->b);
}

static int same_file(int a, int b)
{
    struct stat sa, sb;

    return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_STREAM | SOCK_NONBLOCK};

static void carries_a_descriptor_and_bytes(void **state)
{
    static const size_t sizes[] = {1, 24, KL_FDPASS_BYTES};
    char sent[KL_FDPASS_BYTES], got[KL_FDPASS_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof sent; i++) sent[i] = (char)(i * 7);
    FOR_EACH_CASE(type, types)
    FOR_EACH_CASE(bytes, sizes)
    {
        struct pair p = open_pair(*type);
        int file = open("/dev/null", O_RDWR | O_CLOEXEC), fd = -2;

        memset(got, 0, sizeof got);
        assert_int_equal(kl_fdpass_send(p.a, file, sent, *bytes, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
        assert_int_equal(kl_fdpass_recv(p.b, &fd, got, *bytes, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
        assert_memory_equal(got, sent, *bytes);
        assert_int_not_equal(fd, file);
        assert_true(same_file(fd, file));
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        close(fd);
        close(file);
        close_pair(&p);
    }
}

static void messages_in_a_row_stay_apart(void **state)
{
    struct pair p = open_pair(SOCK_STREAM);
    int files[2] = {open("/dev/null", O_RDWR), open("/dev/zero", O_RDWR)};

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(kl_fdpass_send(p.a, files[i], i ? "two" : "one", 3, kl_deadline_in_ms(kolo_test_hang_ms())),
                         ncclSuccess);
    for (int i = 0; i < 2; i++) {
        char text[3];
        int fd;

        assert_int_equal(kl_fdpass_recv(p.b, &fd, text, 3, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
        assert_memory_equal(text, i ? "two" : "one", 3);
        assert_true(same_file(fd, files[i]));
        close(fd);
        close(files[i]);
    }
    close_pair(&p);
}

static void a_refusal_has_no_descriptor(void **state)
{
    struct pair p = open_pair(SOCK_STREAM);
    char c = 0;
    int fd = 5;

    (void)state;
    assert_int_equal(kl_fdpass_send(p.a, -1, "n", 1, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
    assert_int_equal(kl_fdpass_recv(p.b, &fd, &c, 1, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
    assert_int_equal(fd, -1);
    assert_int_equal(c, 'n');
    close_pair(&p);
}

static void silence_ends_at_the_deadline(void **state)
{
    struct pair p = open_pair(SOCK_STREAM);
    char text[8] = "before";
    int fd = 77;

    (void)state;
    assert_int_equal(kl_fdpass_recv(p.b, &fd, text, 4, kl_deadline_in_ms(1)), ncclRemoteError);
    assert_int_equal(write(p.a, "abc", 3), 3); /* one byte short */
    assert_int_equal(kl_fdpass_recv(p.b, &fd, text, 4, kl_deadline_in_ms(1)), ncclRemoteError);
    assert_int_equal(fd, 77); /* outputs untouched */
    assert_string_equal(text, "before");
    close_pair(&p);
}

static void a_full_socket_ends_at_the_deadline(void **state)
{
    struct pair p = open_pair(SOCK_STREAM);
    ncclResult_t rc = ncclSuccess;
    char text[KL_FDPASS_BYTES] = {0};

    (void)state;
    for (int i = 0; i < 100000 && !rc; i++) rc = kl_fdpass_send(p.a, -1, text, sizeof text, kl_deadline_in_ms(1));
    assert_int_equal(rc, ncclRemoteError);
    close_pair(&p);
}

static void a_dead_peer_is_noticed(void **state)
{
    struct pair p = open_pair(SOCK_STREAM);
    char text[4];
    int fd = 77, file = open("/dev/null", O_RDWR);

    (void)state;
    /* The sender ends in the middle of its message: the descriptor received so far must not stay open. */
    assert_int_equal(kl_fdpass_send(p.a, file, "ab", 2, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
    close(file);
    close(p.a);
    assert_int_equal(kl_fdpass_recv(p.b, &fd, text, 4, kl_deadline_in_ms(kolo_test_hang_ms())), ncclRemoteError);
    assert_int_equal(fd, 77);
    assert_int_equal(kl_fdpass_send(p.b, -1, text, 4, kl_deadline_in_ms(kolo_test_hang_ms())),
                     ncclRemoteError); /* and no SIGPIPE */
    p.fds--;
    p.a = -1;
    close_pair(&p);
}

/* ---- answering and closing at once ---- */

enum { ROUNDS = 20000, SPINS = 1000 };

struct answerer {
    _Atomic int round; /* rounds that the receiver has begun */
    int sock[ROUNDS];  /* the answering ends */
};

static void *answer_and_close(void *arg)
{
    struct answerer *a = arg;

    for (int i = 0; i < ROUNDS; i++) {
        for (int spins = 0; kl_load_acquire(&a->round) <= i; spins++)
            if (spins < SPINS) /* the other thread may need this core */
                kl_cpu_pause();
            else
                sched_yield();
        for (int pause = i % 64; pause; pause--) kl_cpu_pause(); /* a different moment of the receive in each round */
        (void)kl_fdpass_send(a->sock[i], -1, "x", 1, KL_NO_DEADLINE);
        close(a->sock[i]);
    }
    return NULL;
}

/* The answer is received, whether it arrived before or after the receiver's look at the queue and at the end of the
 * connection. */
static void an_answer_is_not_lost_by_closing(void **state)
{
    static struct answerer a;
    pthread_t thread;
    int lost = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, answer_and_close, &a), 0);
    for (int i = 0; i < ROUNDS; i++) {
        int ends[2], fd;
        char c = 0;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        a.sock[i] = ends[0];
        kl_store_release(&a.round, i + 1);
        lost += kl_fdpass_recv(ends[1], &fd, &c, 1, KL_NO_DEADLINE) || c != 'x';
        close(ends[1]);
    }
    pthread_join(thread, NULL);
    assert_int_equal(lost, 0);
}

/* Send `n` copies of `fd` the way an ill-behaved peer would. */
static void send_many(int sock, int fd, size_t n)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control = {0};
    struct iovec io = {(char[]){"x"}, 1};
    struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.room};

    msg.msg_controllen = CMSG_SPACE(n * sizeof fd);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof fd);
    for (size_t i = 0; i < n; i++) memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

static void more_than_one_is_refused(void **state)
{
    static const size_t counts[] = {2, 3, 4};
    char c;
    int fd = 77;

    (void)state;
    FOR_EACH_CASE(n, counts)
    {
        struct pair p = open_pair(SOCK_STREAM);

        send_many(p.a, STDIN_FILENO, *n);
        assert_int_equal(kl_fdpass_recv(p.b, &fd, &c, 1, kl_deadline_in_ms(kolo_test_hang_ms())), ncclRemoteError);
        close_pair(&p); /* checks that none stayed open */
    }
    struct pair p = open_pair(SOCK_STREAM);
    char two[2];

    send_many(p.a, STDIN_FILENO, 1); /* one per byte */
    send_many(p.a, STDIN_FILENO, 1);
    assert_int_equal(kl_fdpass_recv(p.b, &fd, two, 2, kl_deadline_in_ms(kolo_test_hang_ms())), ncclRemoteError);
    close_pair(&p);
}

/* In a child, because a lowered limit cannot be raised again. 0: passed. */
static int lack_descriptors(const struct pair *p)
{
    char c;
    int fd = 77, lowest = dup(STDIN_FILENO);
    const struct rlimit none = {(rlim_t)lowest, (rlim_t)lowest}, some = {(rlim_t)lowest, (rlim_t)lowest + 1};

    close(lowest);
    if (setrlimit(RLIMIT_NOFILE, &some) || kl_fdpass_recv(p->b, &fd, &c, 1, kl_deadline_in_ms(kolo_test_hang_ms())))
        return 1;
    if (fd != lowest || close(fd)) return 2; /* the limit was raised for it */
    if (setrlimit(RLIMIT_NOFILE, &none)) return 3;
    fd = 77;
    return kl_fdpass_recv(p->b, &fd, &c, 1, kl_deadline_in_ms(kolo_test_hang_ms())) != ncclSystemError || fd != 77;
}

static void no_free_descriptor_is_an_error_here(void **state)
{
    struct pair p = open_pair(SOCK_STREAM);
    int status = -1;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(kl_fdpass_send(p.a, STDIN_FILENO, "x", 1, kl_deadline_in_ms(kolo_test_hang_ms())),
                         ncclSuccess);
    pid_t child = fork();
    if (!child) _exit(lack_descriptors(&p));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close_pair(&p);
}

static void sizes_are_bounded(void **state)
{
    struct pair p = open_pair(SOCK_SEQPACKET);
    char text[KL_FDPASS_BYTES + 1] = {0};
    int fd;

    (void)state;
    assert_int_equal(kl_fdpass_send(p.a, -1, text, 0, kl_deadline_in_ms(1)), ncclInvalidArgument);
    assert_int_equal(kl_fdpass_send(p.a, -1, text, sizeof text, kl_deadline_in_ms(1)), ncclInvalidArgument);
    assert_int_equal(kl_fdpass_recv(p.b, &fd, text, 0, kl_deadline_in_ms(1)), ncclInvalidArgument);
    assert_int_equal(kl_fdpass_recv(p.b, &fd, text, sizeof text, kl_deadline_in_ms(1)), ncclInvalidArgument);

    assert_int_equal(kl_fdpass_send(p.a, -1, text, 20, kl_deadline_in_ms(kolo_test_hang_ms())), ncclSuccess);
    assert_int_equal(kl_fdpass_recv(p.b, &fd, text, 10, kl_deadline_in_ms(kolo_test_hang_ms())), ncclRemoteError);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_a_descriptor_and_bytes),      cmocka_unit_test(messages_in_a_row_stay_apart),
        cmocka_unit_test(a_refusal_has_no_descriptor),         cmocka_unit_test(silence_ends_at_the_deadline),
        cmocka_unit_test(a_full_socket_ends_at_the_deadline),  cmocka_unit_test(a_dead_peer_is_noticed),
        cmocka_unit_test(an_answer_is_not_lost_by_closing),    cmocka_unit_test(more_than_one_is_refused),
        cmocka_unit_test(no_free_descriptor_is_an_error_here), cmocka_unit_test(sizes_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
