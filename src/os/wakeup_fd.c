/* SPDX-License-Identifier: Apache-2.0 */
#include "os/wakeup_fd.h"

#include "os/fd_limit.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int kl_wakeup_open(void)
{
    int fd;

    do fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    while (fd < 0 && kl_fd_limit_make_room(errno));
    return fd;
}

void kl_wakeup_signal(int fd)
{
    const uint64_t one = 1;
    int saved = errno;
    ssize_t written = write(fd, &one, sizeof one); /* fails only after 2^64 - 2 writes without a read */

    (void)written;
    errno = saved;
}

void kl_wakeup_clear(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);

    (void)got;
}
