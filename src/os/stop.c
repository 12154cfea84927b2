/* SPDX-License-Identifier: Apache-2.0 */
#include "os/stop.h"

#include "base/error.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

ncclResult_t kl_stop_init(struct kl_stop *stop)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0) return KL_FAIL_ERRNO("cannot create an event descriptor");
    stop->fd = fd;
    return ncclSuccess;
}

void kl_stop_fini(struct kl_stop *stop)
{
    if (stop->fd >= 0) close(stop->fd);
    stop->fd = -1;
}

void kl_stop_raise(const struct kl_stop *stop)
{
    uint64_t one = 1;
    ssize_t written = write(stop->fd, &one, sizeof one);

    (void)written; /* can only fail by being raised 2^64 times */
}
