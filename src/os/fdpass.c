/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fdpass.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the control message of one descriptor; with padding the kernel sees room for two. */
union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int))];
};

static ncclResult_t check_size(size_t bytes)
{
    if (bytes >= 1 && bytes <= KL_FDPASS_BYTES) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "a message with a descriptor has 1 to %d bytes, not %zu", KL_FDPASS_BYTES,
                   bytes);
}

/* After EAGAIN and EINTR: wait until the socket is ready again. */
static ncclResult_t wait_for(int sock, short events, uint64_t deadline)
{
    struct pollfd p = {.fd = sock, .events = events};

    if (kl_deadline_passed(deadline)) return KL_FAIL(ncclRemoteError, "a local peer is silent past the deadline");
    if (poll(&p, 1, kl_deadline_left_ms(deadline, 1000)) < 0 && errno != EINTR)
        return KL_FAIL_ERRNO("cannot wait for a local peer");
    return ncclSuccess;
}

/* Map errno after a failed transfer to a result; ncclSuccess: try again. */
static ncclResult_t after_failure(int sock, short events, uint64_t deadline)
{
    if (errno == EAGAIN || errno == EINTR) return wait_for(sock, events, deadline);
    if (errno == EPIPE || errno == ECONNRESET)
        return KL_FAIL(ncclRemoteError, "a local peer closed its connection while a descriptor was passed");
    return KL_FAIL_ERRNO("cannot pass a descriptor");
}

static void attach_fd(struct msghdr *msg, union control *control, int fd)
{
    msg->msg_control = control->room;
    msg->msg_controllen = sizeof control->room;
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

ncclResult_t kl_fdpass_send(int sock, int fd, const void *data, size_t bytes, uint64_t deadline)
{
    size_t done = 0;

    KL_TRY(check_size(bytes));
    while (done < bytes) {
        struct iovec io = {(char *)data + done, bytes - done};
        struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
        union control control = {0};

        if (fd >= 0 && !done) attach_fd(&msg, &control, fd);
        ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            KL_TRY(after_failure(sock, POLLOUT, deadline));
        else
            done += (size_t)n;
    }
    return ncclSuccess;
}

/* Keep the first descriptor of a message in `*fd`, close any other; returns how many came. */
static size_t take_fds(struct msghdr *msg, int *fd)
{
    size_t taken = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++, taken++) {
            int one;
            memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
            if (*fd < 0)
                *fd = one;
            else
                close(one);
        }
    }
    return taken;
}

/* A non-blocking receive from a SEQPACKET socket first looks at the queue, then, if that was empty, at whether the peer
 * has closed (unix_dgram_recvmsg in Linux; unix(7) does not mention it). If a peer sends and closes between the two, it
 * returns 0 with the message in the queue. After a 0 no more can be sent, so a second receive is enough. */
static ssize_t receive(int sock, struct msghdr *msg)
{
    const struct msghdr fresh = *msg; /* an empty receive has changed the lengths */
    ssize_t n = recvmsg(sock, msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (n || msg->msg_controllen) return n;
    *msg = fresh;
    return recvmsg(sock, msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
}

/* The kernel drops a descriptor for which there is no room. */
static void make_room_for_one(int sock)
{
    int fd;

    do fd = fcntl(sock, F_DUPFD_CLOEXEC, 0);
    while (fd < 0 && kl_files_make_room(errno));
    if (fd >= 0) close(fd);
}

/* Receive one piece; `*got` is its size, 0 if the call should be repeated. */
static ncclResult_t recv_some(int sock, int *fd, struct iovec *io, uint64_t deadline, size_t *got)
{
    union control control;
    struct msghdr msg = {
        .msg_iov = io, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    bool had_one = *fd >= 0;
    ssize_t n = receive(sock, &msg);

    *got = 0;
    if (n < 0) return after_failure(sock, POLLIN, deadline);
    if (take_fds(&msg, fd) + had_one > 1) return KL_FAIL(ncclRemoteError, "a local peer sent more than one descriptor");
    if (msg.msg_flags & MSG_CTRUNC)
        return KL_FAIL(ncclSystemError, "no room for a descriptor that a local peer sent%s", kl_errno_remedy(EMFILE));
    if (msg.msg_flags & MSG_TRUNC)
        return KL_FAIL(ncclRemoteError, "a local peer sent more than %zu bytes", io->iov_len);
    if (!n) return KL_FAIL(ncclRemoteError, "a local peer closed its connection before its message was complete");
    *got = (size_t)n;
    return ncclSuccess;
}

ncclResult_t kl_fdpass_recv(int sock, int *fd, void *data, size_t bytes, uint64_t deadline)
{
    ncclResult_t rc = ncclSuccess;
    char text[KL_FDPASS_BYTES];
    int received = -1;

    KL_TRY(check_size(bytes));
    make_room_for_one(sock);
    for (size_t done = 0, got; done < bytes; done += got) {
        struct iovec io = {text + done, bytes - done};
        KL_TRY_OR(rc, out, recv_some(sock, &received, &io, deadline, &got));
    }
    memcpy(data, text, bytes);
    *fd = received; /* the caller owns it from here */
    received = -1;
out:
    if (received >= 0) close(received);
    return rc;
}
