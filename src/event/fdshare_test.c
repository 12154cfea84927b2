/* SPDX-License-Identifier: Apache-2.0 */
#include "event/fdshare.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/thread.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char own_path[] = "/proc/self/exe";

/* The service ends on the event loop, a moment after the last withdrawal. */
static void await_fds(int n)
{
    while (count_fds() != n) sched_yield();
}

static uint64_t soon(void)
{
    return kl_deadline_in_ms(kolo_test_hang_ms());
}

static int memory_file(const char *content)
{
    int fd = memfd_create("fdshare-test", MFD_CLOEXEC);

    assert_in_range(fd, 0, 1 << 20);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    return fd;
}

static int same_file(int a, int b)
{
    struct stat sa, sb;

    return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_ino == sb.st_ino && sa.st_dev == sb.st_dev;
}

static ncclResult_t redeem(const struct kl_fd_export_handle *handle, uint64_t deadline, int *fd)
{
    struct kl_fd_request *r;
    ncclResult_t rc = kl_fdshare_request(handle, deadline, &r);

    if (rc) return rc;
    while ((rc = kl_fdshare_poll(r, fd)) == ncclInProgress) sched_yield();
    kl_fdshare_request_free(r);
    return rc;
}

/* ---- one process ---- */

static void a_handle_gets_the_descriptor(void **state)
{
    int fds = count_fds(), a = memory_file("a"), b = memory_file("b"), got = -1;
    struct kl_fd_export_handle ta, tb;

    (void)state;
    assert_int_equal(kl_fdshare_offer(a, &ta), ncclSuccess);
    assert_int_equal(kl_fdshare_offer(b, &tb), ncclSuccess);
    assert_int_equal(ta.service, tb.service);
    for (int i = 0; i < 3; i++) { /* repeatedly */
        assert_int_equal(redeem(i == 1 ? &tb : &ta, soon(), &got), ncclSuccess);
        assert_true(same_file(got, i == 1 ? b : a));
        assert_true(fcntl(got, F_GETFD) & FD_CLOEXEC);
        close(got);
    }
    kl_fdshare_withdraw(&ta);
    kl_fdshare_withdraw(&ta);
    assert_int_equal(redeem(&tb, soon(), &got), ncclSuccess);
    close(got);
    kl_fdshare_withdraw(&tb);
    close(a);
    close(b);
    await_fds(fds);
}

static void a_wrong_or_used_up_handle_gets_nothing(void **state)
{
    int fds = count_fds(), a = memory_file("a"), b = memory_file("b"), got = -7;
    struct kl_fd_export_handle ta, tb, wrong;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_fdshare_offer(a, &ta), ncclSuccess);
    assert_int_equal(kl_fdshare_offer(b, &tb), ncclSuccess);
    wrong = ta;
    wrong.secret[15] ^= 1;
    assert_int_equal(redeem(&wrong, soon(), &got), ncclRemoteError);
    assert_non_null(strstr(kl_error_text(), "no longer offered"));
    kl_fdshare_withdraw(&ta);
    assert_int_equal(redeem(&ta, soon(), &got), ncclRemoteError);
    kl_fdshare_withdraw(&tb);
    await_fds(fds + 2);
    assert_int_equal(redeem(&tb, soon(), &got), ncclRemoteError);
    assert_non_null(strstr(kl_error_text(), "is gone"));
    assert_int_equal(got, -7);
    close(a);
    close(b);
    await_fds(fds);
}

static int connect_raw(const struct kl_fd_export_handle *handle)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "kolo-fd-%016llx",
                     (unsigned long long)handle->service);

    assert_int_equal(
        connect(sock, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
        0);
    return sock;
}

/* More silent clients than are served at a time: other clients get through once the silent ones are dropped. */
static void silent_and_talkative_clients_do_no_harm(void **state)
{
    enum { N = 300, SERVED = 256 };
    int fds = count_fds(), a = memory_file("a"), got = -1, silent[N];
    char garbage[100] = "GET / HTTP/1.1", reply;
    struct kl_fd_export_handle handle;

    (void)state;
    assert_int_equal(kl_fdshare_offer(a, &handle), ncclSuccess);
    int sock = connect_raw(&handle);
    assert_int_equal(send(sock, garbage, sizeof garbage, MSG_NOSIGNAL), sizeof garbage);
    assert_in_range(recv(sock, &reply, 1, 0) + 1, 0, 2); /* dropped, or refused */
    close(sock);
    await_fds(fds + 5); /* the file, the event loop's three, the listener */
    int idle = count_fds();
    for (int i = 0; i < N; i++) silent[i] = connect_raw(&handle);
    await_fds(idle + N + SERVED);
    kl_error_quiet(1);
    assert_int_equal(redeem(&handle, kl_deadline_in_ms(20), &got), ncclRemoteError);
    for (int i = 0; i < N; i++) close(silent[i]);
    assert_int_equal(redeem(&handle, soon(), &got), ncclSuccess);
    close(got);
    kl_fdshare_withdraw(&handle);
    close(a);
    await_fds(fds);
}

static void offer_and_redeem(void *arg)
{
    int *failures = arg;

    for (int i = 0; i < 50; i++) {
        int fd = memfd_create("fdshare-test", MFD_CLOEXEC), got = -1;
        struct kl_fd_export_handle handle;

        if (kl_fdshare_offer(fd, &handle) || redeem(&handle, soon(), &got))
            ++*failures;
        else
            *failures += !same_file(fd, got);
        kl_fdshare_withdraw(&handle);
        close(fd);
        close(got);
    }
}

static void threads_share_the_service(void **state)
{
    int fds = count_fds(), failures[3] = {0};
    struct kl_thread threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(kl_thread_start(&threads[i], "offer", offer_and_redeem, &failures[i]), ncclSuccess);
    for (int i = 0; i < 3; i++) {
        kl_thread_join(&threads[i]);
        assert_int_equal(failures[i], 0);
    }
    await_fds(fds);
}

/* ---- two processes ---- */

static void to_hex(const void *bytes, size_t n, char *text)
{
    for (size_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
}

static void from_hex(const char *text, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1]};
        ((unsigned char *)bytes)[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

/* The other program: redeem the export handle and write through it. Exit code: the result. */
static int redeemer(const char *hex)
{
    struct kl_fd_export_handle handle;
    int fd = -1;

    from_hex(hex, &handle, sizeof handle);
    ncclResult_t rc = redeem(&handle, soon(), &fd);
    if (!rc && pwrite(fd, "from the child", 14, 0) != 14) return 99;
    if (!rc) close(fd);
    return rc;
}

static int run_redeemer(const struct kl_fd_export_handle *handle)
{
    char hex[2 * sizeof *handle + 1];
    int status = -1;

    to_hex(handle, sizeof *handle, hex);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (!child) {
        execl(own_path, own_path, hex, (char *)NULL);
        _exit(98);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void another_process_redeems(void **state)
{
    int fds = count_fds(), a = memory_file("from the parent");
    struct kl_fd_export_handle handle;
    char content[16] = "";

    (void)state;
    assert_int_equal(kl_fdshare_offer(a, &handle), ncclSuccess);
    assert_int_equal(run_redeemer(&handle), ncclSuccess);
    assert_int_equal(pread(a, content, 14, 0), 14);
    assert_string_equal(content, "from the child");
    kl_fdshare_withdraw(&handle);
    assert_int_equal(run_redeemer(&handle), ncclRemoteError);
    close(a);
    await_fds(fds);
}

static int redeem_as_another_user(const struct kl_fd_export_handle *handle)
{
    int got = -1;

    if (setuid(65534)) return 1;
    return redeem(handle, soon(), &got) != ncclRemoteError;
}

/* The export handle is valid, the user differs: both sides refuse. */
static void another_user_gets_nothing(void **state)
{
    int fds = count_fds(), a = memory_file("a"), status = -1;
    struct kl_fd_export_handle handle;
    char reply;

    (void)state;
    if (geteuid()) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    assert_int_equal(kl_fdshare_offer(a, &handle), ncclSuccess);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (!child) {
        kl_error_quiet(1);
        int sock = setuid(65534) ? -1 : connect_raw(&handle);
        bool dropped = send(sock, handle.secret, 16, MSG_NOSIGNAL) < 0 || recv(sock, &reply, 1, 0) <= 0;
        _exit(dropped ? redeem_as_another_user(&handle) : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    kl_fdshare_withdraw(&handle);
    close(a);
    await_fds(fds);
}

/* A child of fork, without exec, redeems from its parent and does not answer for it. */
static void a_forked_child_is_another_process(void **state)
{
    int fds = count_fds(), a = memory_file("a"), status = -1;
    struct kl_fd_export_handle handle;

    (void)state;
    assert_int_equal(kl_fdshare_offer(a, &handle), ncclSuccess);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (!child) {
        int got = -1, rc = redeem(&handle, soon(), &got);
        kl_fdshare_withdraw(&handle); /* not its own offer: no effect */
        _exit(rc ? rc : !same_file(a, got));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(run_redeemer(&handle), ncclSuccess);
    kl_fdshare_withdraw(&handle);
    close(a);
    await_fds(fds);
}

/* ---- a process that has no descriptor left ---- */

enum { FEW = 40 };

/* Offer a file, use up all descriptors, and stay until `until` ends. */
static int live_at_the_limit(int handle_to, int until)
{
    const struct rlimit few = {FEW, FEW};
    struct kl_fd_export_handle handle;
    char byte;
    int a = memory_file("a");

    if (setrlimit(RLIMIT_NOFILE, &few) || kl_fdshare_offer(a, &handle)) return 1;
    while (dup(a) >= 0) continue;
    if (write(handle_to, &handle, sizeof handle) != sizeof handle) return 2;
    return read(until, &byte, 1) ? 3 : 0;
}

static void a_process_at_its_limit_hands_out(void **state)
{
    int there[2], back[2], got = -1, status;
    struct kl_fd_export_handle handle;

    (void)state;
    assert_false(pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC));
    pid_t child = fork();
    if (!child) {
        close(back[1]);
        _exit(live_at_the_limit(there[1], back[0]));
    }
    assert_int_equal(read(there[0], &handle, sizeof handle), sizeof handle);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(redeem(&handle, soon(), &got), ncclSuccess);
        close(got);
    }
    int silent = connect_raw(&handle); /* holds the reserve descriptor until it is dropped */
    assert_int_equal(redeem(&handle, soon(), &got), ncclSuccess);
    close(got);
    close(silent);
    close(back[1]);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    close(there[0]);
    close(there[1]);
    close(back[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_gets_the_descriptor),
        cmocka_unit_test(a_wrong_or_used_up_handle_gets_nothing),
        cmocka_unit_test(silent_and_talkative_clients_do_no_harm),
        cmocka_unit_test(threads_share_the_service),
        cmocka_unit_test(another_process_redeems),
        cmocka_unit_test(another_user_gets_nothing),
        cmocka_unit_test(a_forked_child_is_another_process),
        cmocka_unit_test(a_process_at_its_limit_hands_out),
    };

    if (argc > 1) return redeemer(argv[1]);

    return cmocka_run_group_tests_name("fdshare", tests, NULL, NULL);
}
