/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cancel.h"

#include "base/error.h"
#include "os/wakeup_fd.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

ncclResult_t kl_cancel_init(struct kl_cancel *stop)
{
    int fd = kl_wakeup_open();

    if (fd < 0) return KL_FAIL_ERRNO("cannot create an event descriptor");
    stop->fd = fd;
    return ncclSuccess;
}

void kl_cancel_fini(struct kl_cancel *stop)
{
    if (stop->fd >= 0) close(stop->fd);
    stop->fd = -1;
}

void kl_cancel_raise(const struct kl_cancel *stop)
{
    kl_wakeup_signal(stop->fd);
}
