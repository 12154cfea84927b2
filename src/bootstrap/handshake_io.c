/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/handshake_io.h"

#include "os/fault_inject.h"

#include <errno.h>

enum kl_io kl_handshake_say(int fd, const void *bytes, size_t n)
{
    const struct kl_io_wait at_once = {.deadline = 0};

    return kl_socket_send(fd, bytes, n, &at_once);
}

enum kl_io kl_handshake_receive(int fd, unsigned char *to, size_t *have, size_t whole)
{
    while (*have < whole) {
        ssize_t n = kl_inject_recv(fd, to + *have, whole - *have, MSG_DONTWAIT);

        if (n > 0) {
            *have += (size_t)n;
            continue;
        }
        if (!n) errno = 0;
        if (!n || errno == ECONNRESET) return KL_IO_CLOSED;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return KL_IO_TIMEOUT;
        if (errno != EINTR) return KL_IO_ERROR;
    }
    return KL_IO_DONE;
}
