/* SPDX-License-Identifier: Apache-2.0 */
#include "os/stop.h"

#include "base/error.h"
#include "os/bell.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

ncclResult_t kl_stop_init(struct kl_stop *stop)
{
    int fd = kl_bell_open();

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
    kl_bell_ring(stop->fd);
}
